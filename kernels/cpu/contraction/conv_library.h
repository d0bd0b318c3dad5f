/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as problems of a library, and their computation by the CPU's. */
#ifndef TSSA_KERNELS_CPU_CONTRACTION_CONV_LIBRARY_H
#define TSSA_KERNELS_CPU_CONTRACTION_CONV_LIBRARY_H

#include "device/library_cache.h"
#include "kernels/cpu/contraction/conv.h"

/*
 * The job's x and bias are float32, and so is y, dense; w may be of any float type. *done stays
 * false where there is no library, it declines, or it is not worth it; then y may hold what is to
 * be added.
 */
tssa_status *conv_library(struct kernel_args *args, struct library_cache *cache,
                          const struct conv_job *job, float *y, bool *done);

/* For kernel.get_ready, of such a job without elements; *made: the library has not declined. */
tssa_status *conv_library_get_ready(struct kernel_args *args, struct library_cache *cache,
                                    const struct conv_job *job, bool *made);

#endif
