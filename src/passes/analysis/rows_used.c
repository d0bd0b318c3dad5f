/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/rows_used.h"

#include "ir/infer.h"

#define MAX_VALUES 48

/* A value that holds the elements along an axis; if they come out of an If, whose other branch may
 * hold others, which. */
struct row_values {
    const struct ir_value *value;
    const struct ir_op *branch;
    int axis;
};

struct reach {
    struct row_values values[MAX_VALUES];
    uint32_t count;
    int64_t used;
};

bool rows_known_at(const struct ir_value *list, size_t i, int64_t *number)
{
    return list && list->known && i < list->known->count && list->known->elements[i] &&
           dim_is_const(list->known->elements[i], number);
}

static const struct row_values *find(const struct reach *reach, const struct ir_value *value)
{
    for (uint32_t i = 0; i < reach->count; i++)
        if (reach->values[i].value == value)
            return &reach->values[i];
    return NULL;
}

static bool add(struct reach *reach, const struct ir_value *value, const struct ir_op *branch,
                int axis)
{
    const struct row_values *there = find(reach, value);
    if (there)
        return there->axis == axis && there->branch == branch;
    if (reach->count == MAX_VALUES || axis < 0 || axis >= infer_value_rank(value))
        return false;
    reach->values[reach->count++] = (struct row_values){value, branch, axis};
    return true;
}

static const struct dim *rows_of(const struct row_values *of)
{
    return of->value->type->dims[of->axis];
}

/* What is made of each element of `from` by itself: so there are as many. */
static bool add_result(struct reach *reach, const struct row_values *from,
                       const struct ir_value *result, int axis)
{
    return axis >= 0 && axis < infer_value_rank(result) &&
           result->type->dims[axis] == rows_of(from) && add(reach, result, from->branch, axis);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

/* The first so many, or all along another axis. */
static bool follow_slice(struct reach *reach, const struct row_values *from,
                         const struct ir_op *slice)
{
    const struct ir_value *starts = ir_operand(slice, 1), *axes = ir_operand(slice, 3),
                          *steps = ir_operand(slice, 4);
    if (!starts || !starts->known)
        return false;
    for (size_t i = 0; i < starts->known->count; i++) {
        int64_t along = (int64_t)i, start, end, step = 1;
        int at;
        if ((axes && !rows_known_at(axes, i, &along)) ||
            !infer_find_axis(along, infer_value_rank(ir_operand(slice, 0)), &at))
            return false;
        if (at != from->axis)
            continue;
        if (!rows_known_at(starts, i, &start) || start != 0 ||
            !rows_known_at(ir_operand(slice, 2), i, &end) || end < 0 ||
            (steps && !rows_known_at(steps, i, &step)) || step != 1)
            return false;
        reach->used = end > reach->used ? end : reach->used;
        return true;
    }
    return add_result(reach, from, &slice->results[0], from->axis);
}

static bool follow_gather(struct reach *reach, const struct row_values *from,
                          const struct ir_use *use)
{
    const struct ir_op *gather = use->user;
    const struct ir_value *indices = ir_operand(gather, 1);
    int along, axis = from->axis;
    if (infer_value_rank(indices) < 0 ||
        !infer_find_axis(ir_op_axis(gather), infer_value_rank(ir_operand(gather, 0)), &along))
        return false;
    if (use == &gather->operands[1])
        return add_result(reach, from, &gather->results[0], along + axis);
    if (along == axis)
        return false;
    return add_result(reach, from, &gather->results[0],
                      axis < along ? axis : axis + infer_value_rank(indices) - 1);
}

/* The axis in a result that has others besides. */
static bool follow_unsqueeze(struct reach *reach, const struct row_values *from,
                             const struct ir_op *op)
{
    const struct ir_value *result = &op->results[0];
    int64_t axes[IR_KNOWN_MAX];
    size_t count;
    bool added[TSSA_MAX_RANK] = {false};
    if (infer_value_rank(result) < 0 || !infer_const_ints(op, 1, axes, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        int at;
        if (!infer_find_axis(axes[i], infer_value_rank(result), &at))
            return false;
        added[at] = true;
    }
    for (int at = 0, old = 0; at < infer_value_rank(result); at++)
        if (!added[at] && old++ == from->axis)
            return add_result(reach, from, result, at);
    return false;
}

static bool follow_concat(struct reach *reach, const struct row_values *from,
                          const struct ir_op *op)
{
    int along;
    return infer_find_axis(ir_op_axis(op), infer_value_rank(&op->results[0]), &along) &&
           along != from->axis && add_result(reach, from, &op->results[0], from->axis);
}

static bool is_elementwise(const struct ir_op *op)
{
    return op->info->cls == IR_CLASS_ELEMENTWISE && (op->info->flags & IR_PURE) &&
           op->n_results == 1;
}

static bool follow_return(struct reach *reach, const struct row_values *from,
                          const struct ir_use *use)
{
    const struct ir_op *owner = use->user->parent->owner;
    return owner && ir_op_is(owner, IR_OP_If) &&
           add(reach, &owner->results[use - use->user->operands], owner, from->axis);
}

static bool follow(struct reach *reach, const struct row_values *from, const struct ir_use *use)
{
    const struct ir_op *op = use->user;
    if (is_elementwise(op))
        return add_result(reach, from, &op->results[0],
                          infer_value_rank(&op->results[0]) - infer_value_rank(from->value) +
                              from->axis);
    switch (op->info->id) {
    case IR_OP_Slice:
        return use == &op->operands[0] && follow_slice(reach, from, op);
    case IR_OP_Gather:
        return follow_gather(reach, from, use);
    case IR_OP_Unsqueeze:
        return use == &op->operands[0] && follow_unsqueeze(reach, from, op);
    case IR_OP_Concat:
        return follow_concat(reach, from, op);
    case IR_OP_return:
        return follow_return(reach, from, use);
    default:
        return false;
    }
}

/* ---- Operands beside each other -------------------------------------------------------------- */

/* Has the operand nothing along the axis, counted from the last one, that would have to be fewer
 * too? */
static bool is_apart(const struct ir_value *operand, int from_last)
{
    int axis = infer_value_rank(operand) - from_last;
    return infer_value_rank(operand) >= 0 && (axis < 0 || dim_is(operand->type->dims[axis], 1));
}

static bool are_alike(const struct row_values *a, const struct row_values *b)
{
    return infer_value_rank(a->value) - a->axis == infer_value_rank(b->value) - b->axis &&
           a->branch == b->branch && rows_of(a) == rows_of(b);
}

static bool fits(const struct reach *reach, const struct row_values *from, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        const struct row_values *other = operand ? find(reach, operand) : NULL;
        if (other ? !are_alike(from, other)
                  : operand && (ir_op_is(op, IR_OP_Concat) ||
                                !is_apart(operand, infer_value_rank(from->value) - from->axis)))
            return false;
    }
    return true;
}

/* What several operands meet in has as many elements of each of them. */
static bool all_fit(const struct reach *reach)
{
    for (uint32_t i = 0; i < reach->count; i++) {
        const struct row_values *from = &reach->values[i];
        for (const struct ir_use *use = from->value->uses; use; use = use->next)
            if ((is_elementwise(use->user) || ir_op_is(use->user, IR_OP_Concat)) &&
                !fits(reach, from, use->user))
                return false;
    }
    return true;
}

bool rows_used(const struct ir_value *const *values, uint32_t n, int axis, int64_t *used)
{
    struct reach reach = {.used = 0};
    for (uint32_t i = 0; i < n; i++)
        if (!add(&reach, values[i], NULL, axis) ||
            rows_of(&reach.values[i]) != rows_of(&reach.values[0]))
            return false;
    for (uint32_t i = 0; i < reach.count; i++) {
        const struct row_values from = reach.values[i];
        for (const struct ir_use *use = from.value->uses; use; use = use->next)
            if (!follow(&reach, &from, use))
                return false;
    }
    *used = reach.used;
    return all_fit(&reach);
}
