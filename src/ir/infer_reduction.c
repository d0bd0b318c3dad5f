/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference of reductions (Reduce*: axes as operand 1), ArgMax and ArgMin, and scans along an axis.
 */
#include "ir/infer.h"

/* Results of the type of operand 0, shape included. */
INFER_RULE(same_type)
{
    return infer_set(op, 0, infer_operand_type(graph, op, 0));
}

/* The dims that remain when the marked ones are reduced. */
static tssa_status *set_reduced(struct ir_graph *graph, struct ir_op *op, tssa_dtype dtype,
                                const bool *reduced, bool keep)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < infer_rank(op, 0); i++) {
        if (reduced[i] && !keep)
            continue;
        dims[rank++] = reduced[i] ? dim_const(&graph->dims, 1) : infer_dim(op, 0, i);
    }
    return infer_set_tensor(op, 0, dtype, rank, dims);
}

/* Only the number of axes is unknown when the axes are: with keepdims the rank stays. */
static tssa_status *set_unknown_axes(struct ir_op *op, bool keep)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = infer_rank(op, 0);
    if (!keep || rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    for (int i = 0; i < rank; i++)
        dims[i] = infer_fresh(op);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

INFER_RULE(reduce)
{
    int64_t axes[IR_KNOWN_MAX];
    size_t count = 0;
    bool keep = ir_attr_int(op, "keepdims", 1) != 0, reduced[TSSA_MAX_RANK] = {false};
    int rank = infer_rank(op, 0);
    if (rank < 0 || (ir_operand(op, 1) && !infer_const_ints(op, 1, axes, &count)))
        return set_unknown_axes(op, keep);
    bool all = count == 0 && !ir_attr_int(op, "noop_with_empty_axes", 0);
    for (int i = 0; i < rank; i++)
        reduced[i] = all;
    for (size_t i = 0; i < count; i++) {
        int axis;
        TRY(infer_axis(op, axes[i], rank, &axis));
        reduced[axis] = true;
    }
    return set_reduced(graph, op, infer_dtype(op, 0), reduced, keep);
}

INFER_RULE(arg_reduce)
{
    int rank = infer_rank(op, 0), axis;
    bool reduced[TSSA_MAX_RANK] = {false};
    if (rank < 0)
        return infer_set_unranked(op, 0, TSSA_INT64);
    TRY(infer_axis(op, ir_op_axis(op), rank, &axis));
    reduced[axis] = true;
    return set_reduced(graph, op, TSSA_INT64, reduced, ir_attr_int(op, "keepdims", 1) != 0);
}
