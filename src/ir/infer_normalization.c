/* SPDX-License-Identifier: Apache-2.0 */
/* Inference for normalizations: results mostly have their operand's type. */
#include <string.h>

#include "ir/infer.h"
#include "ir/row.h"

/* Result 0 has the type of operand 0. */
INFER_RULE(normalized)
{
    return infer_set(op, 0, infer_operand_type(graph, op, 0));
}

/* The same, along an axis that must lie within the operand. */
INFER_RULE(softmax)
{
    int rank = infer_rank(op, 0), axis;
    int64_t given = ir_op_axis(op);
    if (rank >= 0 && !(ir_row_flattens(op) && given == rank))
        TRY(infer_axis(op, given, rank, &axis));
    return infer_normalized(graph, op);
}

/* Results 1 and 2: the statistics of each block, in the type of stash_type. */
INFER_RULE(layer_normalization)
{
    TRY(infer_softmax(graph, op));
    int rank = infer_rank(op, 0), axis;
    int64_t stash = ir_attr_int(op, "stash_type", TSSA_FLOAT);
    if (stash < 0 || stash >= TSSA_DTYPE_COUNT)
        return ERROR(TSSA_MALFORMED, "stash_type is %lld", (long long)stash);
    const struct dim *dims[TSSA_MAX_RANK], *one = dim_const(&graph->dims, 1);
    if (rank >= 0)
        TRY(infer_axis(op, ir_op_axis(op), rank, &axis));
    for (uint32_t i = 1; i < 3; i++) {
        if (rank < 0) {
            TRY(infer_set_unranked(op, i, (tssa_dtype)stash));
            continue;
        }
        for (int d = 0; d < rank; d++)
            dims[d] = d < axis ? infer_dim(op, 0, d) : one;
        TRY(infer_set_tensor(op, i, (tssa_dtype)stash, rank, dims));
    }
    return NULL;
}

/* Results 1 and 2 are the running statistics, updated. */
INFER_RULE(batch_normalization)
{
    TRY(infer_normalized(graph, op));
    TRY(infer_set(op, 1, infer_operand_type(graph, op, 3)));
    return infer_set(op, 2, infer_operand_type(graph, op, 4));
}

/* Result 1 is the mask, BOOL since opset 10. */
INFER_RULE(dropout)
{
    TRY(infer_normalized(graph, op));
    const struct ir_type *type = infer_operand_type(graph, op, 0);
    tssa_dtype dtype = op->version != 0 && op->version < 10 ? infer_dtype(op, 0) : TSSA_BOOL;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return infer_set_unranked(op, 1, dtype);
    return infer_set_tensor(op, 1, dtype, type->rank, type->dims);
}

/* A number, or one per target; the second result is the log-probabilities. */
INFER_RULE(loss)
{
    const struct ir_type *target = infer_operand_type(graph, op, 1);
    tssa_dtype dtype = infer_dtype(op, 0);
    TRY(infer_set(op, 1, infer_operand_type(graph, op, 0)));
    if (strcmp(ir_attr_str(op, "reduction", "mean"), "none") != 0)
        return infer_set(op, 0, type_scalar(&graph->types, dtype));
    if (target->kind != TYPE_TENSOR || target->rank < 0)
        return infer_set_unranked(op, 0, dtype);
    return infer_set_tensor(op, 0, dtype, target->rank, target->dims);
}
