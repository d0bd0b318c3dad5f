/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which floats are never -0.0: adding 0.0 to these changes no bit, while of -0.0 it makes 0.0.
 */
#ifndef TSSA_IR_ZERO_SIGN_H
#define TSSA_IR_ZERO_SIGN_H

#include "ir/ir.h"

/* Proven: no element is -0.0 in any run. True of all that are no floats. */
bool never_minus_zero(const struct ir_value *value);
/* Is this the sign bit's zero, -0.0? Of one element of a float type. */
bool is_minus_zero(tssa_dtype dtype, const void *element);

#endif
