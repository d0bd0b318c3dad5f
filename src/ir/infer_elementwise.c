/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference for element-wise rows: the type that results of the operands' (promotion.h), and the
 * broadcast shape. What is known of elements: scalar_known.c.
 */
#include <inttypes.h>

#include "ir/infer.h"
#include "ir/promotion.h"
#include "ir/scalar.h"

/* The result's element type; UNDEFINED where the operands' are not known. */
static tssa_status *result_dtype(const struct ir_op *op, tssa_dtype *dtype)
{
    struct promotion promotion;
    const bool good = promote_op(op, &promotion);
    *dtype = promotion.result;
    if (good)
        return NULL;
    const tssa_dtype own = infer_dtype(op, promotion.wrong);
    const char *text = dtype_info(own)->ir_name;
    if (op->info->ew->result == EW_WHERE && promotion.wrong == 0)
        return ERROR(TSSA_MALFORMED, "operand 0 must be bool, not %s", text);
    if (!dtype_in(op->info->types, own))
        return ERROR(TSSA_MALFORMED, "operand %" PRIu32 " cannot be %s", promotion.wrong, text);
    return ERROR(TSSA_MALFORMED, "operand %" PRIu32 " is %s where others are %s", promotion.wrong,
                 text, dtype_info(promotion.operand)->ir_name);
}

INFER_RULE(elementwise)
{
    (void)graph;
    int rank;
    tssa_dtype dtype;
    const struct dim *dims[TSSA_MAX_RANK];
    TRY(result_dtype(op, &dtype));
    TRY(infer_broadcast(op, 0, op->n_operands, &rank, dims));
    TRY(rank < 0 ? infer_set_unranked(op, 0, dtype) : infer_set_tensor(op, 0, dtype, rank, dims));
    return infer_scalar_known(op);
}
