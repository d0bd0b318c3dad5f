/* SPDX-License-Identifier: Apache-2.0 */
/* One axis resampled: weighted sums in double, in the order of the table, of float32 or double. */
#ifndef TSSA_KERNELS_CPU_WINDOW_RESAMPLE_PASS_H
#define TSSA_KERNELS_CPU_WINDOW_RESAMPLE_PASS_H

#include "kernels/cpu/window/resample.h"

/* [outer, in, inner] elements become [outer, out, inner]. */
struct resample_pass {
    const struct resample_table *table;
    const void *from;
    void *to;
    bool from_float, to_float; /* else they are doubles; sums are rounded once when stored */
    int64_t outer, in, out, inner;
    double extrapolation;
};

tssa_status *resample_pass_run(struct kernel_args *args, const struct resample_pass *pass);

#endif
