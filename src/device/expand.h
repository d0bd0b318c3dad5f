/* SPDX-License-Identifier: Apache-2.0 */
/* Expand as any device computes it: what its result is of an operand and a shape. */
#ifndef TSSA_DEVICE_EXPAND_H
#define TSSA_DEVICE_EXPAND_H

#include "base/value.h"

/* Dims of the result, and how many elements of the operand each of its axes goes at a step. */
tssa_status *expand_resolve(const struct tensor *x, const int64_t *shape, int count, int *rank,
                            int64_t *dims, int64_t *steps);

#endif
