/* SPDX-License-Identifier: Apache-2.0 */
/* One axis resampled: weighted sums in the order of the table, from 0 on; products and sums are
 * rounded each. */
#ifndef TSSA_KERNELS_CPU_WINDOW_RESAMPLE_PASS_H
#define TSSA_KERNELS_CPU_WINDOW_RESAMPLE_PASS_H

#include "device/resample.h"

/* [outer, in, inner] elements become [outer, out, inner]. */
struct resample_pass {
    const struct resample_table *table;
    tssa_dtype dtype; /* FLOAT or DOUBLE */
    const void *from;
    void *to;
    int64_t outer, in, out, inner;
    double extrapolation;
};

tssa_status *resample_pass_run(struct kernel_args *args, const struct resample_pass *pass);

#endif
