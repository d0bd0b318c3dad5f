/* SPDX-License-Identifier: Apache-2.0 */
/* How long a Range is: what its operator and kernels that are made of it ask. */
#ifndef TSSA_KERNELS_CPU_GENERATOR_RANGE_H
#define TSSA_KERNELS_CPU_GENERATOR_RANGE_H

#include "base/status.h"
#include "base/value.h"

/* Of start, limit and delta. */
tssa_status *range_length(const struct tensor *const *operands, int64_t *length);

#endif
