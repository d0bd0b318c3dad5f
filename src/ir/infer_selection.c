/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of selection.def: sizes that only a run can tell are fresh symbols. */
#include <inttypes.h>

#include "ir/infer.h"

/* How many elements operand `index` has; NULL: unknown. */
static tssa_status *element_count(struct ir_op *op, uint32_t index, const struct dim **count)
{
    struct dim_table *dims = &op->parent->graph->dims;
    *count = NULL;
    if (infer_rank(op, index) < 0)
        return NULL;
    *count = dim_const(dims, 1);
    for (int i = 0; i < infer_rank(op, index); i++)
        *count = dim_mul(dims, *count, infer_dim(op, index, i));
    TRY_ALLOC(*count);
    return NULL;
}

INFER_RULE(compress)
{
    const struct dim *dims[TSSA_MAX_RANK], *all;
    int rank = infer_rank(op, 0), axis;
    (void)graph;
    if (!ir_attr(op, "axis")) {
        TRY(element_count(op, 0, &all));
        dims[0] = infer_fresh_below(op, all);
        return infer_set_tensor(op, 0, infer_dtype(op, 0), 1, dims);
    }
    if (rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    TRY(infer_axis(op, ir_op_axis(op), rank, &axis));
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? infer_fresh_below(op, infer_dim(op, 0, i)) : infer_dim(op, 0, i);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

INFER_RULE(non_zero)
{
    int rank = infer_rank(op, 0);
    const struct dim *all;
    TRY(element_count(op, 0, &all));
    const struct dim *dims[2] = {rank < 0 ? infer_fresh(op) : dim_const(&graph->dims, rank),
                                 infer_fresh_below(op, all)};
    return infer_set_tensor(op, 0, TSSA_INT64, 2, dims);
}

INFER_RULE(unique)
{
    const struct dim *dims[TSSA_MAX_RANK], *found, *all = NULL;
    int rank = infer_rank(op, 0), axis = 0;
    bool flat = !ir_attr(op, "axis");
    (void)graph;
    if (rank >= 0 && !flat)
        TRY(infer_axis(op, ir_op_axis(op), rank, &axis));
    if (rank >= 0 && flat)
        TRY(element_count(op, 0, &all));
    else
        all = rank < 0 ? infer_fresh(op) : infer_dim(op, 0, axis);
    found = infer_fresh_below(op, all);
    TRY_ALLOC(found);
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? found : infer_dim(op, 0, i);
    if (flat)
        TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), 1, &found));
    else if (rank < 0)
        TRY(infer_set_unranked(op, 0, infer_dtype(op, 0)));
    else
        TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims));
    TRY(infer_set_tensor(op, 1, TSSA_INT64, 1, &found));
    TRY(infer_set_tensor(op, 2, TSSA_INT64, 1, &all));
    return infer_set_tensor(op, 3, TSSA_INT64, 1, &found);
}

INFER_RULE(topk)
{
    (void)graph;
    int rank = infer_rank(op, 0), axis;
    tssa_dtype dtype = infer_dtype(op, 0);
    if (rank < 0) {
        TRY(infer_set_unranked(op, 0, dtype));
        return infer_set_unranked(op, 1, TSSA_INT64);
    }
    TRY(infer_axis(op, ir_op_axis(op), rank, &axis));
    const struct ir_known *known = infer_known(op, 1);
    const struct dim *k = known && known->count == 1 ? known->elements[0] : NULL;
    int64_t wanted, there;
    if (dim_is_const(k, &wanted) && dim_is_const(infer_dim(op, 0, axis), &there) &&
        (wanted < 0 || wanted > there))
        return ERROR(TSSA_MALFORMED, "K is %" PRId64 ", but axis %d has %" PRId64 " elements",
                     wanted, axis, there);
    if (!k)
        k = infer_fresh_below(op, infer_dim(op, 0, axis));
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? k : infer_dim(op, 0, i);
    TRY(infer_set_tensor(op, 0, dtype, rank, dims));
    return infer_set_tensor(op, 1, TSSA_INT64, rank, dims);
}

INFER_RULE(non_max_suppression)
{
    for (uint32_t i = 0; i < 2; i++)
        if (infer_rank(op, i) >= 0 && infer_rank(op, i) != 3)
            return ERROR(TSSA_MALFORMED, "operand %" PRIu32 " has rank %d, not 3", i,
                         infer_rank(op, i));
    const struct dim *all; /* a box is chosen once per batch and class at most: one per score */
    TRY(element_count(op, 1, &all));
    const struct ir_known *known = infer_known(op, 2);
    const struct dim *limit = known && known->count == 1 ? known->elements[0] : NULL;
    if (infer_rank(op, 1) == 3 && limit && limit->low >= 0) { /* and of each class so many */
        limit = dim_min(&graph->dims, limit, infer_dim(op, 1, 2));
        for (int i = 0; i < 2; i++)
            limit = dim_mul(&graph->dims, limit, infer_dim(op, 1, i));
        all = limit;
    }
    const struct dim *dims[2] = {infer_fresh_below(op, all), dim_const(&graph->dims, 3)};
    return infer_set_tensor(op, 0, TSSA_INT64, 2, dims);
}
