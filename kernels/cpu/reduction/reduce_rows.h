/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions whose outputs lie side by side, and the elements of each as well: row by row instead of output by
 * output, where elements need no wider type and the order does not matter.
 */
#ifndef TSSA_KERNELS_CPU_REDUCTION_REDUCE_ROWS_H
#define TSSA_KERNELS_CPU_REDUCTION_REDUCE_ROWS_H

#include "device/kernel.h"
#include "kernels/cpu/reduction/axes.h"

enum row_fold { ROW_SUM, ROW_PRODUCT, ROW_MAX, ROW_MIN };

/* How many outputs, of so many elements each, are enough for a thread. */
int64_t reduce_grain(int64_t reduced);

/* Whether it was done: not for other types than FLOAT (largest and smallest alone), INT32 and INT64, short rows,
 * and outputs without elements. */
bool reduce_rows(const struct team *team, enum row_fold fold, const struct tensor *in,
                 struct tensor *out, const struct axis_nest *kept, const struct axis_nest *reduced);

#endif
