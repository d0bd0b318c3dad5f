/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax and LogSoftmax of lines or columns, for kernels that have some: the bits are those of the
 * operators.
 */
#ifndef TSSA_KERNELS_CPU_NORMALIZATION_SOFTMAX_H
#define TSSA_KERNELS_CPU_NORMALIZATION_SOFTMAX_H

#include "base/dtype.h"

/* How many lines of n > 0 elements are computed together, at most. */
int64_t softmax_lines(int64_t n);
/* In place, on the first lengths[i] elements of line i, of FLOAT or DOUBLE; lines are `stride`
 * elements apart. `exps` is memory for SOFTMAX_EXPS elements, or a line of more. Lines:
 * SOFTMAX_LINES at most. */
#define SOFTMAX_LINES 64
#define SOFTMAX_EXPS 2048
#define SOFTMAX_STEP 32
void softmax_of_lines(tssa_dtype dtype, void *x, void *exps, int64_t lines, int64_t stride,
                      const int64_t *lengths);
void softmax_of_float_lines(float *x, float *exps, int64_t lines, int64_t stride,
                            const int64_t *lengths);
/* In place, on so many lines of n neighbours, one line after the other; `exps` is memory for as
 * many. */
void log_softmax_of_lines(tssa_dtype dtype, void *x, void *exps, int64_t lines, int64_t n);

/* The same along another axis than the last one: element i of column k is x[i * columns + k]. */
#define SOFTMAX_COLUMNS 512
int64_t softmax_columns(int64_t n);
void log_softmax_of_columns(tssa_dtype dtype, void *x, void *exps, int64_t columns, int64_t n);

#endif
