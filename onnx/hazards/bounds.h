/* SPDX-License-Identifier: Apache-2.0 */
/* How large integers are: what a runtime gets wrong with large ones only need not be gone around
 * then. */
#ifndef TSSA_ONNX_HAZARDS_BOUNDS_H
#define TSSA_ONNX_HAZARDS_BOUNDS_H

#include "ir/dim_range.h"
#include "ir/ir.h"

/*
 * No element of the tensor is below or above, in any run in which sizes are as ir/dim.h reckons
 * with and no INT64 tensor takes more than 8 GiB. Integers that nothing is known of are within
 * their type's limits; INT64_MIN and INT64_MAX: none is known.
 */
struct range hazard_bounds(const struct ir_value *value);

#endif
