/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of 1x1 in groups, as a product of matrices for each group. */
#ifndef TSSA_KERNELS_CPU_CONTRACTION_CONV_PRODUCTS_H
#define TSSA_KERNELS_CPU_CONTRACTION_CONV_PRODUCTS_H

#include "device/conv.h"

/* Whether conv_products computes the job, which is of float32. */
bool conv_products_takes(const struct conv_job *job);

/*
 * The job, with all that is done to its sums, to y, which may lie where `added` lies. Sums are in
 * the order of gemm_fused.h, for any number of threads.
 */
void conv_products(const struct team *team, const struct conv_job *job, float *y);

#endif
