/* SPDX-License-Identifier: Apache-2.0 */
/* The `rule` column of the op table; see rule_draft.h. */
#include <string.h>

#include "ir/infer.h"
#include "ir/rule_draft.h"
#include "ir/slice.h"

static bool is_ranked(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR && value->type->rank >= 0;
}

static const struct ir_type *base_type(const struct ir_op *op)
{
    return ir_operand(op, 0)->type;
}

/* ---- Gather, Compress ------------------------------------------------------------------------ */

/* The number of an index of one element, from a known element or a constant. */
static bool index_number(const struct ir_value *index, int64_t *number)
{
    const struct tensor *table = ir_value_constant(index);
    if (index->known && index->known->count == 1 && dim_is_const(index->known->elements[0], number))
        return true;
    if (!table || tensor_count(table) != 1 || !dtype_is_integer(table->dtype))
        return false;
    *number = dtype_load_int64(table->dtype, table->data);
    return true;
}

/* x[.., k, ..] with the axes of size one that the index leaves behind. */
static bool gather_one(const struct ir_op *op, int axis, struct rule_draft *draft)
{
    struct ir_value *index = ir_operand(op, 1);
    int64_t number, size, axes[TSSA_MAX_RANK];
    int rank = index->type->rank;
    if (!index_number(index, &number)) {
        draft_step_value(draft, RULE_SELECT, axis, index);
    } else {
        bool sized = dim_is_const(base_type(op)->dims[axis], &size);
        if (sized && (number < -size || number >= size))
            return false; /* no run gets past it */
        number += sized && number < 0 ? size : 0;
        if (sized && rank == 1) {
            draft_slice(draft, axis, number, number + 1, 1);
            return true;
        }
        draft_select(draft, axis, number);
    }
    for (int i = 0; i < rank; i++)
        axes[i] = axis + i;
    if (rank > 0)
        draft_step(draft, RULE_UNSQUEEZE, (uint32_t)rank, axes);
    return true;
}

MOVEMENT(gather)
{
    int axis;
    int64_t given = ir_op_axis(op);
    struct ir_value *index = ir_operand(op, 1);
    int rank = base_type(op)->rank;
    if (!is_ranked(index) || given < -rank || given >= rank)
        return false;
    axis = (int)(given < 0 ? given + rank : given);
    if (type_has_one_element(index->type))
        return gather_one(op, axis, draft);
    draft_step_value(draft, RULE_GATHER, axis, index);
    return true;
}

/* Only a condition as long as the axis is a mask: a shorter one is allowed. */
MOVEMENT(compress)
{
    const struct ir_attr *attr = ir_attr(op, "axis");
    const struct ir_type *base = base_type(op);
    struct ir_value *condition = ir_operand(op, 1);
    int64_t axis = attr ? attr->i : 0;
    if ((!attr && base->rank != 1) || axis < -base->rank || axis >= base->rank)
        return false;
    axis += axis < 0 ? base->rank : 0;
    if (!is_ranked(condition) || condition->type->rank != 1 ||
        condition->type->dtype != TSSA_BOOL || condition->type->dims[0] != base->dims[axis])
        return false;
    draft_step_value(draft, RULE_MASK, axis, condition);
    return true;
}

/* ---- Slice ----------------------------------------------------------------------------------- */

struct slice {
    size_t count;
    int64_t axes[TSSA_MAX_RANK], steps[TSSA_MAX_RANK];
};

/* Axes and steps, which must be known. */
static bool read_slice(const struct ir_op *op, struct slice *slice)
{
    int64_t values[IR_KNOWN_MAX], length;
    size_t n;
    int rank = base_type(op)->rank;
    const struct ir_value *starts = ir_operand(op, 1);
    if (!is_ranked(starts) || starts->type->rank != 1 ||
        !dim_is_const(starts->type->dims[0], &length) || length > rank)
        return false;
    slice->count = (size_t)length;
    for (size_t i = 0; i < slice->count; i++) {
        slice->axes[i] = (int64_t)i;
        slice->steps[i] = 1;
    }
    if (ir_operand(op, 4)) {
        if (!infer_const_ints(op, 4, values, &n) || n != slice->count)
            return false;
        memcpy(slice->steps, values, n * sizeof *values);
    }
    if (!ir_operand(op, 3))
        return true;
    if (!infer_const_ints(op, 3, values, &n) || n != slice->count)
        return false;
    for (size_t i = 0; i < n; i++) {
        slice->axes[i] = values[i] < 0 ? values[i] + rank : values[i];
        if (slice->axes[i] < 0 || slice->axes[i] >= rank)
            return false;
    }
    return true;
}

/* Bound i of operand `index`: a known number, or the operand if it has one element; what it was,
 * where that will do. */
static bool slice_bound(const struct ir_op *op, uint32_t index, size_t i, bool needed,
                        int64_t *number, struct ir_value **value)
{
    const struct ir_known *known = infer_known(op, index);
    *value = NULL;
    if (known && i < known->count && dim_is_const(known->elements[i], number))
        return true;
    if (!type_has_one_element(ir_operand(op, index)->type))
        return !needed;
    *value = ir_operand(op, index);
    return true;
}

/* Bounds in the one way to write them: from the front, the end next to the last element that is
 * taken. */
static void plain_bounds(int64_t size, int64_t step, int64_t *start, int64_t *end)
{
    int64_t from = *start, count = slice_cut(size, &from, *end, step);
    if (count == 0) {
        *start = *end = from < 0 ? 0 : from;
        return;
    }
    *start = from;
    *end = from + (count - 1) * step + (step > 0 ? 1 : -1);
    if (*end < 0)
        *end = INT64_MIN;
}

static bool slice_axis(const struct ir_op *op, const struct slice *slice, size_t i,
                       struct rule_draft *draft)
{
    int64_t start = 0, end = slice->steps[i] > 0 ? INT64_MAX : INT64_MIN, size = 0;
    struct ir_value *start_value, *end_value;
    if (slice->steps[i] == 0 ||
        !slice_bound(op, 1, i, draft->asked < RULE_AXES, &start, &start_value) ||
        !slice_bound(op, 2, i, draft->asked < RULE_ORIGINS, &end, &end_value))
        return false;
    const struct dim *dim = base_type(op)->dims[slice->axes[i]];
    bool sized = !start_value && !end_value && dim_is_const(dim, &size);
    if (sized)
        plain_bounds(size, slice->steps[i], &start, &end);
    bool whole = !start_value && !end_value && start == 0 && slice->steps[i] == 1 &&
                 (end == INT64_MAX || (sized && end == size));
    if (!whole)
        draft_slice(draft, slice->axes[i], start_value ? 0 : start, end_value ? 0 : end,
                    slice->steps[i]);
    if (whole || draft->full)
        return true;
    struct rule_param *params = draft->params + draft->n_params - 4;
    struct ir_value *const values[] = {start_value, end_value};
    for (int k = 0; k < 2; k++)
        if (values[k]) {
            params[1 + k] = rule_operand(draft->n_operands);
            draft->operands[draft->n_operands++] = values[k];
        }
    return true;
}

MOVEMENT(slice)
{
    struct slice slice;
    if (!ir_operand(op, 1) || !ir_operand(op, 2) || !is_ranked(ir_operand(op, 2)) ||
        !read_slice(op, &slice))
        return false;
    for (size_t i = 0; i < slice.count; i++)
        if (!slice_axis(op, &slice, i, draft))
            return false;
    return true;
}

/* ---- Axes ------------------------------------------------------------------------------------ */

MOVEMENT(transpose)
{
    int64_t perm[TSSA_MAX_RANK];
    size_t n;
    const int64_t *given = ir_attr_ints(op, "perm", &n);
    int rank = base_type(op)->rank;
    if (given && n != (size_t)rank)
        return false;
    for (int i = 0; i < rank; i++) {
        perm[i] = given ? given[i] : rank - 1 - i;
        perm[i] += perm[i] < 0 ? rank : 0;
        if (perm[i] < 0 || perm[i] >= rank)
            return false;
    }
    draft_permute(draft, rank, perm);
    return true;
}

/* Marked axes in ascending order as params of a step. */
static bool step_of_axes(const struct ir_op *op, enum rule_kind kind, int rank,
                         struct rule_draft *draft)
{
    int64_t given[IR_KNOWN_MAX], axes[TSSA_MAX_RANK];
    bool marked[TSSA_MAX_RANK] = {false};
    size_t n;
    uint32_t count = 0;
    if (!infer_const_ints(op, 1, given, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        given[i] += given[i] < 0 ? rank : 0;
        if (given[i] < 0 || given[i] >= rank)
            return false;
        marked[given[i]] = true;
    }
    for (int i = 0; i < rank; i++)
        if (marked[i])
            axes[count++] = i;
    if (count)
        draft_step(draft, kind, count, axes);
    return true;
}

MOVEMENT(squeeze)
{
    const struct ir_type *type = base_type(op);
    int64_t axes[TSSA_MAX_RANK];
    uint32_t count = 0;
    if (ir_operand(op, 1))
        return step_of_axes(op, RULE_SQUEEZE, type->rank, draft);
    if (op->results[0].type->rank < 0)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (dim_is(type->dims[i], 1))
            axes[count++] = i;
    if (count)
        draft_step(draft, RULE_SQUEEZE, count, axes);
    return true;
}

MOVEMENT(unsqueeze)
{
    int rank = op->results[0].type->rank;
    return rank >= 0 && step_of_axes(op, RULE_UNSQUEEZE, rank, draft);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* A reshape to the result's dims: numbers, but for one that is the rest. */
MOVEMENT(result_shape)
{
    const struct ir_type *type = op->results[0].type;
    int64_t dims[TSSA_MAX_RANK];
    int rest = 0;
    bool empty = false;
    for (int i = 0; i < type->rank; i++) {
        if (!dim_is_const(type->dims[i], &dims[i])) {
            dims[i] = -1;
            rest++;
        }
        empty |= dims[i] == 0;
    }
    if (type->rank < 0 || rest > 1 || (rest == 1 && empty))
        return false;
    draft_step(draft, RULE_RESHAPE, (uint32_t)type->rank, dims);
    return true;
}

/* How many elements a tensor of this type has; NULL when memory runs out. */
static const struct dim *count_elements(struct dim_table *dims, const struct ir_type *type)
{
    const struct dim *count = dim_const(dims, 1);
    for (int i = 0; i < type->rank; i++)
        count = dim_mul(dims, count, type->dims[i]);
    return count;
}

/* The one dim that is not a number must be what is left in every run: the model says so with -1, or
 * the numbers of elements do. Else a shape that does not fit would no longer be refused. */
MOVEMENT(reshape)
{
    struct dim_table *dims = &op->parent->graph->dims;
    const struct ir_known *shape = infer_known(op, 1);
    bool has_rest = false;
    if (!shape || op->results[0].type->rank < 0)
        return false;
    for (size_t i = 0; i < shape->count; i++)
        has_rest |= dim_is(shape->elements[i], -1);
    if (!has_rest &&
        count_elements(dims, base_type(op)) != count_elements(dims, op->results[0].type))
        return false;
    return movement_result_shape(op, draft);
}

/* Dims that stay as they are need not be numbers. */
MOVEMENT(expand)
{
    const struct ir_type *from = base_type(op), *type = op->results[0].type;
    const struct ir_known *shape = infer_known(op, 1);
    int64_t dims[TSSA_MAX_RANK];
    if (type->rank < from->rank || !shape || shape->count > (size_t)type->rank)
        return false;
    for (int i = 0; i < type->rank; i++) {
        int own = i - (type->rank - from->rank), given = i - (type->rank - (int)shape->count);
        const struct dim *asked = given < 0 ? NULL : shape->elements[given];
        if (dim_is_const(type->dims[i], &dims[i]))
            continue;
        if (own < 0 || type->dims[i] != from->dims[own] ||
            !(given < 0 || asked == from->dims[own] || dim_is(asked, 1)))
            return false;
        dims[i] = 1;
    }
    draft_step(draft, RULE_EXPAND, (uint32_t)type->rank, dims);
    return true;
}

/* A list may be repeated as often as only a run can tell. */
MOVEMENT(tile)
{
    int64_t counts[IR_KNOWN_MAX];
    size_t n;
    if (!infer_const_ints(op, 1, counts, &n)) {
        struct ir_value *repeats = ir_operand(op, 1);
        if (base_type(op)->rank != 1 || !is_ranked(repeats) || !type_has_one_element(repeats->type))
            return false;
        draft_step(draft, RULE_TILE, 1, (const int64_t[]){0});
        if (draft->full)
            return false;
        draft->params[draft->n_params - 1] = rule_operand(draft->n_operands);
        draft->operands[draft->n_operands++] = repeats;
        return true;
    }
    if (n != (size_t)base_type(op)->rank)
        return false;
    draft_step(draft, RULE_TILE, (uint32_t)n, counts);
    return true;
}

bool rule_of_movement(const struct ir_op *op, struct rule_draft *draft)
{
    ir_rule_fn rule = op->info->rule;
    return rule && is_ranked(ir_operand(op, 0)) && rule(op, draft) && !draft->full;
}
