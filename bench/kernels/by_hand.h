/* SPDX-License-Identifier: Apache-2.0 */
/* What is done row by row, as one would write it by hand in vectors. A row has LANES elements at
 * least (bench/by_hand/vectors.h), and no NaN. */
#ifndef TSSA_BENCH_KERNELS_BY_HAND_H
#define TSSA_BENCH_KERNELS_BY_HAND_H

#include <stdint.h>

void softmax_by_hand(const float *x, int rows, int n, float *y);
void layer_norm_by_hand(const float *x, const float *scale, const float *bias, int rows, int n,
                        float *y);
/* The first of several. */
void argmax_by_hand(const float *x, int rows, int n, int64_t *y);

#endif
