/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Type promotion: the types that an element-wise op takes, the one that its elements are computed
 * in, and the one that results. By the row's column `result` (enum ew_result), and for kernels,
 * generated kernels and what is known of elements alike:
 *
 *     floats             FLOAT, and DOUBLE in itself: narrower ones are widened, and rounded once
 *     integers           their own type; of a row with FLOAT parameters, DOUBLE
 *     BOOL, strings      their own type
 *     of several types   DOUBLE where one is a float, else INT64 (EW_FIRST alone)
 *     EW_WHERE           nothing is computed: elements are moved
 */
#ifndef TSSA_IR_PROMOTION_H
#define TSSA_IR_PROMOTION_H

#include "ir/ir.h"

struct promotion {
    tssa_dtype operand; /* the operands' type (EW_FIRST: operand 0's); UNDEFINED: none is known */
    tssa_dtype alone;   /* what is computed of operand 0 alone is computed in: x * x of Pow(x, 2) */
    tssa_dtype compute; /* what is computed of all operands is computed in */
    tssa_dtype result;
    uint32_t wrong; /* where they do not go together: the first operand that cannot be */
};

/* Of operands of these types, UNDEFINED where one is absent or not known. False: they do not go
 * together. */
bool promote_types(const struct ir_op_info *info, uint32_t n, const tssa_dtype *operands,
                   struct promotion *promotion);
/* The same of an op's operands, as far as inference knows them. */
bool promote_op(const struct ir_op *op, struct promotion *promotion);
/* Is an element computed in the type that it has in the operands? */
bool promotes_nothing(const struct ir_op *op);

/* What kernels of floats compute in, of all operators: DOUBLE in itself, narrower floats in FLOAT;
 * integers, where there are any, in DOUBLE. */
static inline tssa_dtype computed_in(tssa_dtype dtype)
{
    return dtype_is_float(dtype) && dtype != TSSA_DOUBLE ? TSSA_FLOAT : TSSA_DOUBLE;
}

#endif
