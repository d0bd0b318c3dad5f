/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of Slice. */
#include "ir/infer_movement.h"
#include "ir/slice.h"

/* Ends that mean "to the very end": INT64_MAX, INT32_MAX and what exporters write near them. */
#define FAR ((int64_t)1 << 30)

/* One axis of a slice; NULL: unknown. */
struct cut {
    const struct dim *dim, *start, *end;
    int64_t step;
};

/* An end or start, counted from the front and within 0 and dim; NULL when its sign is not known. */
static const struct dim *cut_bound(struct ir_graph *graph, const struct dim *bound,
                                   const struct dim *dim)
{
    int64_t value;
    if (dim_is_const(bound, &value) && value < 0)
        return value <= -FAR ? dim_const(&graph->dims, 0)
                             : infer_not_negative(graph, dim_add(&graph->dims, dim, bound));
    if (!bound || bound->low < 0)
        return NULL;
    return bound->low >= FAR ? dim : dim_min(&graph->dims, bound, dim);
}

/* NULL: unknown. */
static const struct dim *cut_forward(struct ir_graph *graph, const struct cut *cut)
{
    const struct dim *end = cut_bound(graph, cut->end, cut->dim);
    /* With end <= dim, a start that is not negative needs no clamping: max(end - start, 0). */
    const struct dim *start = cut->start;
    if (start && start->low < 0)
        start = cut_bound(graph, start, cut->dim);
    if (!start || !end)
        return NULL;
    if (start->low >= FAR)
        return dim_const(&graph->dims, 0);
    const struct dim *length = infer_not_negative(graph, dim_sub(&graph->dims, end, start));
    return cut->step == 1 ? length
                          : dim_ceildiv(&graph->dims, length, dim_const(&graph->dims, cut->step));
}

static const struct dim *cut_length(struct ir_graph *graph, const struct cut *cut)
{
    int64_t dim = 0, start = 0, end = 0;
    bool start_known = dim_is_const(cut->start, &start), end_known = dim_is_const(cut->end, &end);
    if (cut->step == 0 || cut->step <= -FAR)
        return NULL;
    if (dim_is_const(cut->dim, &dim) && start_known && end_known)
        return dim_const(&graph->dims, slice_cut(dim, &start, end, cut->step));
    if (cut->step > 0)
        return cut_forward(graph, cut);
    /* Backwards, the whole axis is what is asked for in practice. */
    if (start_known && (start == -1 || start >= FAR) && end_known && end <= -FAR)
        return dim_ceildiv(&graph->dims, cut->dim, dim_const(&graph->dims, -cut->step));
    return NULL;
}

const struct dim *infer_slice_length(struct ir_graph *graph, const struct dim *dim,
                                     const struct dim *start, const struct dim *end, int64_t step)
{
    return cut_length(graph,
                      &(const struct cut){.dim = dim, .start = start, .end = end, .step = step});
}

/* Element i of a list operand, or `fallback` for an absent one; NULL: unknown. */
static const struct dim *list_element(const struct ir_op *op, uint32_t index, size_t i,
                                      const struct dim *fallback)
{
    if (!ir_operand(op, index))
        return fallback;
    const struct ir_known *known = infer_known(op, index);
    return known && i < known->count ? known->elements[i] : NULL;
}

/* The elements that a slice of a list takes. */
static tssa_status *slice_known(struct ir_op *op, const struct cut *cut)
{
    const struct ir_known *known = infer_known(op, 0);
    const struct dim *elements[IR_KNOWN_MAX];
    int64_t start = 0, end = 0;
    if (!known || !dim_is_const(cut->start, &start) || !dim_is_const(cut->end, &end) ||
        cut->step == 0)
        return NULL;
    int64_t length = slice_cut((int64_t)known->count, &start, end, cut->step);
    for (int64_t i = 0; i < length; i++)
        elements[i] = known->elements[start + i * cut->step];
    return infer_set_known(op, 0, (size_t)length, elements);
}

INFER_RULE(slice)
{
    const struct dim *dims[TSSA_MAX_RANK];
    bool seen[TSSA_MAX_RANK] = {false};
    int rank = infer_dims(op, 0, dims);
    int64_t count = infer_list_length(op, 1);
    struct cut cut = {0};
    if (rank < 0)
        return infer_set_fresh(op, -1);
    if (count < 0 || (ir_operand(op, 3) && !infer_known(op, 3)))
        return infer_set_fresh(op, rank);
    for (int64_t i = 0; i < count; i++) {
        int axis;
        int64_t value;
        const struct dim *one = dim_const(&graph->dims, 1), *at = dim_const(&graph->dims, i);
        if (!dim_is_const(list_element(op, 3, (size_t)i, at), &value))
            return infer_set_fresh(op, rank);
        TRY(infer_axis(op, value, rank, &axis));
        if (seen[axis])
            return ERROR(TSSA_MALFORMED, "axis %d is sliced twice", axis);
        seen[axis] = true;
        cut.dim = dims[axis];
        cut.start = list_element(op, 1, (size_t)i, NULL);
        cut.end = list_element(op, 2, (size_t)i, NULL);
        const struct dim *step = list_element(op, 4, (size_t)i, one);
        if (dim_is(step, 0))
            return ERROR(TSSA_MALFORMED, "the step of axis %d is 0", axis);
        if (!dim_is_const(step, &cut.step))
            cut.step = 0;
        dims[axis] = cut_length(graph, &cut);
        if (!dims[axis])
            dims[axis] = infer_fresh_below(op, cut.dim);
    }
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims));
    if (rank == 1 && count == 0)
        return infer_pass_known(op, 1);
    return rank == 1 ? slice_known(op, &cut) : NULL;
}
