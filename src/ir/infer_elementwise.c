/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference for element-wise rows: one element type, and the broadcast shape. What is known of
 * elements: scalar_known.c.
 */
#include <inttypes.h>

#include "ir/infer.h"
#include "ir/scalar.h"

/* ---- Element types --------------------------------------------------------------------------- */

static const char *dtype_text(tssa_dtype dtype)
{
    return dtype_info(dtype)->ir_name;
}

/* The element type that operands [first, n) share; UNDEFINED when none is known. */
static tssa_status *shared_dtype(const struct ir_op *op, uint32_t first, tssa_dtype *dtype)
{
    *dtype = TSSA_UNDEFINED;
    for (uint32_t i = first; i < op->n_operands; i++) {
        tssa_dtype own = infer_dtype(op, i);
        if (own == TSSA_UNDEFINED)
            continue;
        if (!dtype_in(op->info->types, own))
            return ERROR(TSSA_MALFORMED, "operand %" PRIu32 " cannot be %s", i, dtype_text(own));
        if (*dtype != TSSA_UNDEFINED && own != *dtype)
            return ERROR(TSSA_MALFORMED, "operand %" PRIu32 " is %s where others are %s", i,
                         dtype_text(own), dtype_text(*dtype));
        *dtype = own;
    }
    return NULL;
}

static tssa_status *set_broadcast(struct ir_op *op, tssa_dtype dtype)
{
    int rank;
    const struct dim *dims[TSSA_MAX_RANK];
    TRY(infer_broadcast(op, 0, op->n_operands, &rank, dims));
    if (rank < 0)
        return infer_set_unranked(op, 0, dtype);
    return infer_set_tensor(op, 0, dtype, rank, dims);
}

/* ---- Rules of elementwise.def ---------------------------------------------------------------- */

INFER_RULE(elementwise_EW_SAME)
{
    (void)graph;
    tssa_dtype dtype;
    TRY(shared_dtype(op, 0, &dtype));
    TRY(set_broadcast(op, dtype));
    return infer_scalar_known(op);
}

INFER_RULE(elementwise_EW_BOOL)
{
    (void)graph;
    tssa_dtype dtype;
    TRY(shared_dtype(op, 0, &dtype));
    TRY(set_broadcast(op, TSSA_BOOL));
    return infer_scalar_known(op);
}

INFER_RULE(elementwise_EW_FIRST)
{
    (void)graph;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        tssa_dtype dtype = infer_dtype(op, i);
        if (dtype != TSSA_UNDEFINED && !dtype_in(op->info->types, dtype))
            return ERROR(TSSA_MALFORMED, "operand %" PRIu32 " cannot be %s", i, dtype_text(dtype));
    }
    TRY(set_broadcast(op, infer_dtype(op, 0)));
    return infer_scalar_known(op);
}

INFER_RULE(elementwise_EW_WHERE)
{
    (void)graph;
    tssa_dtype condition = infer_dtype(op, 0), dtype;
    if (condition != TSSA_UNDEFINED && condition != TSSA_BOOL)
        return ERROR(TSSA_MALFORMED, "operand 0 must be bool, not %s", dtype_text(condition));
    TRY(shared_dtype(op, 1, &dtype));
    TRY(set_broadcast(op, dtype));
    return infer_scalar_known(op);
}
