/* SPDX-License-Identifier: Apache-2.0 */
/* The forms that ops take with an axis in front of some of their operands (batch.h). */
#include <string.h>

#include "ir/infer.h"
#include "passes/analysis/loops.h"
#include "passes/loops/batch.h"

/* ---- Operands ------------------------------------------------------------------------------------- */

static struct ir_value *operand_of(struct batch *batch, const struct ir_op *op, uint32_t index,
                                   bool *batched)
{
    const struct ir_value *value = ir_operand(op, index);
    *batched = false;
    return value ? batch_get(batch, value, batched) : NULL;
}

static bool is_batched(struct batch *batch, const struct ir_op *op, uint32_t index)
{
    bool batched;
    operand_of(batch, op, index, &batched);
    return batched;
}

/* Only operand 0 has the axis. */
static bool only_first(struct batch *batch, const struct ir_op *op)
{
    for (uint32_t i = 1; i < op->n_operands; i++)
        if (is_batched(batch, op, i))
            return false;
    return is_batched(batch, op, 0);
}

static int rank_of(const struct ir_op *op, uint32_t index)
{
    return ir_operand(op, index)->type->rank;
}

/* The operand with axes of size one after the one in front, so that it broadcasts as before. */
static struct ir_value *aligned(struct batch *batch, const struct ir_op *op, uint32_t index,
                                int rank)
{
    bool batched;
    struct ir_value *value = operand_of(batch, op, index, &batched);
    return batched ? batch_unsqueeze(batch, op, value, 1, rank - rank_of(op, index)) : value;
}

/* Constant ints of an operand. */
static bool const_operand(const struct ir_op *op, uint32_t index, int64_t *values, size_t *count)
{
    return infer_const_ints(op, index, values, count) && *count <= TSSA_MAX_RANK;
}

/* All results of `copy` have the axis. */
static bool finish(struct batch *batch, const struct ir_op *op, struct ir_op *copy)
{
    if (!batch_put(batch, copy))
        return false;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (!batch_define(batch, op, i, &copy->results[i], true))
            return false;
    return true;
}

/* A copy whose operands are what stands for the op's. */
static struct ir_op *copy_with_operands(struct batch *batch, const struct ir_op *op)
{
    bool batched;
    struct ir_op *copy = batch_copy(batch, op);
    for (uint32_t i = 0; copy && i < op->n_operands; i++)
        ir_op_set_operand(copy, i, operand_of(batch, op, i, &batched));
    return copy;
}

static struct ir_value **new_values(struct batch *batch, uint32_t count)
{
    struct ir_value **values =
        ARENA_ARRAY(&batch->graph->arena, struct ir_value *, (size_t)count + 1);
    if (!values)
        batch_out_of_memory(batch);
    return values;
}

static struct ir_op *copy_with(struct batch *batch, const struct ir_op *op,
                               struct ir_value *const *values)
{
    struct ir_op *copy = batch_copy(batch, op);
    for (uint32_t i = 0; copy && i < op->n_operands; i++)
        ir_op_set_operand(copy, i, values[i]);
    return copy;
}

/* A copy all of whose operands have the axis, along another axis than before. */
static bool stack_all(struct batch *batch, const struct ir_op *op)
{
    int64_t axis = ir_attr_int(op, "axis", 0);
    struct ir_value **values = new_values(batch, op->n_operands);
    for (uint32_t i = 0; values && i < op->n_operands; i++)
        if (!(values[i] = batch_stacked(batch, ir_operand(op, i), op)))
            return false;
    struct ir_op *copy = values ? copy_with(batch, op, values) : NULL;
    return copy && batch_set_int(batch, copy, "axis", axis < 0 ? axis : axis + 1) &&
           finish(batch, op, copy);
}

/* ---- Element-wise --------------------------------------------------------------------------------- */

/* Clip's bounds are scalars, and PRelu's slope does not widen what it is applied to. */
static bool has_main_operand(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Clip) || ir_op_is(op, IR_OP_PRelu) || ir_op_is(op, IR_OP_CastLike);
}

/* Of one number every runtime makes what the standard says, of several not all of them do (onnx/hazards.def): what
 * takes the place of one at a time is to be exact. */
static bool is_one_at_a_time(const struct ir_op *op)
{
    const struct ir_type *type = op->results[0].type;
    int64_t size = 1;
    bool extreme = ir_op_is(op, IR_OP_Max) || ir_op_is(op, IR_OP_Min) || ir_op_is(op, IR_OP_Clip) ||
                   ir_op_is(op, IR_OP_Sign) || ir_op_is(op, IR_OP_Relu);
    if (!extreme || type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    for (int i = 0; i < type->rank && size == 1; i++)
        if (!dim_is_const(type->dims[i], &size))
            return false;
    return size == 1;
}

static bool rule_elementwise(struct batch *batch, const struct ir_op *op)
{
    int rank = 0;
    if (has_main_operand(op) && !only_first(batch, op))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && rank_of(op, i) > rank)
            rank = rank_of(op, i);
    struct ir_value **values = new_values(batch, op->n_operands);
    for (uint32_t i = 0; values && i < op->n_operands; i++) {
        values[i] = ir_operand(op, i) ? aligned(batch, op, i, rank) : NULL;
        if (!values[i] && ir_operand(op, i))
            return false;
    }
    struct ir_op *copy = values ? copy_with(batch, op, values) : NULL;
    if (!copy)
        return false;
    copy->exact |= is_one_at_a_time(op);
    return finish(batch, op, copy);
}

/* ---- One operand, with an axis attribute ---------------------------------------------------------- */

/* Negative axes count from the end, where nothing changes. */
static bool shift_axis(struct batch *batch, const struct ir_op *op, int64_t fallback)
{
    int64_t axis = ir_attr_int(op, "axis", fallback);
    if (!only_first(batch, op))
        return false;
    struct ir_op *copy = copy_with_operands(batch, op);
    return copy && batch_set_int(batch, copy, "axis", axis < 0 ? axis : axis + 1) &&
           finish(batch, op, copy);
}

static bool rule_axis_0(struct batch *batch, const struct ir_op *op)
{
    return shift_axis(batch, op, 0);
}

static bool rule_axis_last(struct batch *batch, const struct ir_op *op)
{
    return shift_axis(batch, op, -1);
}

static bool rule_softmax(struct batch *batch, const struct ir_op *op)
{
    return shift_axis(batch, op, op->version < 13 ? 1 : -1);
}

static bool rule_same(struct batch *batch, const struct ir_op *op)
{
    struct ir_op *copy = only_first(batch, op) ? copy_with_operands(batch, op) : NULL;
    return copy && finish(batch, op, copy);
}

/* Axes as operand `index`, one more each; `rank` is what negative ones count from. */
static struct ir_value *shifted_axes(struct batch *batch, const struct ir_op *op, uint32_t index,
                                     int rank)
{
    int64_t axes[IR_KNOWN_MAX];
    size_t count;
    if (!const_operand(op, index, axes, &count))
        return NULL;
    for (size_t i = 0; i < count; i++)
        axes[i] += (axes[i] < 0 ? rank : 0) + 1;
    return batch_ints(batch, rank_of(op, index), count, axes);
}

static bool with_axes(struct batch *batch, const struct ir_op *op, int rank)
{
    struct ir_value *axes = shifted_axes(batch, op, 1, rank);
    struct ir_op *copy = axes ? copy_with_operands(batch, op) : NULL;
    if (!copy)
        return false;
    ir_op_set_operand(copy, 1, axes);
    return finish(batch, op, copy);
}

static bool rule_reduce(struct batch *batch, const struct ir_op *op)
{
    int64_t axes[TSSA_MAX_RANK];
    size_t count = 0;
    int rank = rank_of(op, 0);
    if (!only_first(batch, op))
        return false;
    if (ir_operand(op, 1)) {
        if (!infer_const_ints(op, 1, axes, &count))
            return false;
        if (count)
            return with_axes(batch, op, rank);
    }
    if (ir_attr_int(op, "noop_with_empty_axes", 0))
        return rule_same(batch, op);
    for (int i = 0; i < rank; i++)
        axes[i] = i + 1;
    bool batched;
    struct ir_value *operands[] = {operand_of(batch, op, 0, &batched),
                                   batch_ints(batch, 1, (size_t)rank, axes)};
    if (rank == 0) { /* a scalar is its own sum */
        return ir_op_is(op, IR_OP_ReduceSum) || ir_op_is(op, IR_OP_ReduceMax) ||
                       ir_op_is(op, IR_OP_ReduceMin)
                   ? batch_define(batch, op, 0, operands[0], true)
                   : false;
    }
    struct ir_op *copy = batch_new(batch, op, op->info->id, 2, operands);
    if (!copy)
        return false;
    copy->version = op->version;
    return batch_set_int(batch, copy, "keepdims", ir_attr_int(op, "keepdims", 1)) &&
           finish(batch, op, copy);
}

static bool rule_squeeze(struct batch *batch, const struct ir_op *op)
{
    return ir_operand(op, 1) && only_first(batch, op) && with_axes(batch, op, rank_of(op, 0));
}

static bool rule_unsqueeze(struct batch *batch, const struct ir_op *op)
{
    return only_first(batch, op) && with_axes(batch, op, op->results[0].type->rank);
}

static bool rule_cumsum(struct batch *batch, const struct ir_op *op)
{
    return only_first(batch, op) && with_axes(batch, op, rank_of(op, 0));
}

static bool rule_transpose(struct batch *batch, const struct ir_op *op)
{
    int64_t perm[TSSA_MAX_RANK + 1] = {0};
    size_t count;
    int rank = rank_of(op, 0);
    bool batched;
    const int64_t *given = ir_attr_ints(op, "perm", &count);
    for (int i = 0; i < rank; i++)
        perm[i + 1] = 1 + (given ? given[i] : rank - 1 - i);
    struct ir_value *value = batch_permute(batch, op, operand_of(batch, op, 0, &batched), perm);
    return value && batch_define(batch, op, 0, value, true);
}

/* ---- Movement with a shape ------------------------------------------------------------------------ */

/* A shape operand whose numbers are constants, or could be: -1 and 0 where the result's dim is known. */
static bool target_shape(struct batch *batch, const struct ir_op *op, int64_t *dims, size_t *count)
{
    const struct ir_type *type = op->results[0].type;
    if (!const_operand(op, 1, dims, count) || type->rank != (int)*count)
        return false;
    for (size_t i = 0; i < *count; i++) {
        if (dims[i] > 0)
            continue;
        if (dim_is_const(type->dims[i], &dims[i]) && dims[i] > 0)
            continue;
        if (dims[i] == 0 || ir_attr_int(op, "allowzero", 0) || batch_may_be_empty(batch))
            return false;
        dims[i] = -1;
    }
    return true;
}

static bool rule_reshape(struct batch *batch, const struct ir_op *op)
{
    int64_t dims[IR_KNOWN_MAX];
    size_t count;
    bool batched;
    if (!only_first(batch, op) || !target_shape(batch, op, dims, &count))
        return false;
    struct ir_value *operands[] = {operand_of(batch, op, 0, &batched),
                                   batch_shape(batch, count, dims)};
    struct ir_op *made = batch_make(batch, op, IR_OP_Reshape, 2, operands);
    return made && batch_define(batch, op, 0, &made->results[0], true);
}

static bool rule_expand(struct batch *batch, const struct ir_op *op)
{
    int64_t dims[IR_KNOWN_MAX + 1];
    size_t count;
    bool batched;
    if (!only_first(batch, op) || !const_operand(op, 1, dims + 1, &count) || count >= TSSA_MAX_RANK)
        return false;
    int rank = rank_of(op, 0), wide = (int)count > rank ? (int)count : rank;
    struct ir_value *value =
        batch_unsqueeze(batch, op, operand_of(batch, op, 0, &batched), 1, wide - rank);
    /* One in front broadcasts; missing ones too. */
    dims[0] = 1;
    struct ir_value *operands[] = {value, (int)count == wide
                                              ? batch_ints(batch, 1, count + 1, dims)
                                              : batch_ints(batch, 1, count, dims + 1)};
    struct ir_op *made = batch_make(batch, op, IR_OP_Expand, 2, operands);
    return made && batch_define(batch, op, 0, &made->results[0], true);
}

static bool rule_tile(struct batch *batch, const struct ir_op *op)
{
    int64_t counts[IR_KNOWN_MAX + 1];
    size_t count;
    bool batched;
    counts[0] = 1;
    if (!only_first(batch, op) || !const_operand(op, 1, counts + 1, &count))
        return false;
    struct ir_value *operands[] = {operand_of(batch, op, 0, &batched),
                                   batch_ints(batch, 1, count + 1, counts)};
    struct ir_op *made = batch_make(batch, op, IR_OP_Tile, 2, operands);
    return made && batch_define(batch, op, 0, &made->results[0], true);
}

static bool rule_slice(struct batch *batch, const struct ir_op *op)
{
    int64_t axes[IR_KNOWN_MAX];
    size_t count;
    struct ir_value *shifted;
    bool batched;
    if (!only_first(batch, op) || op->n_operands > 5)
        return false;
    if (ir_operand(op, 3)) {
        shifted = shifted_axes(batch, op, 3, rank_of(op, 0));
    } else {
        const struct ir_type *starts = ir_operand(op, 1)->type;
        int64_t length;
        if (starts->rank != 1 || !dim_is_const(starts->dims[0], &length) || length > TSSA_MAX_RANK)
            return false;
        count = (size_t)length;
        for (size_t i = 0; i < count; i++)
            axes[i] = (int64_t)i + 1;
        shifted = batch_ints(batch, 1, count, axes);
    }
    struct ir_value *operands[] = {
        operand_of(batch, op, 0, &batched), operand_of(batch, op, 1, &batched),
        operand_of(batch, op, 2, &batched), shifted, operand_of(batch, op, 4, &batched)};
    struct ir_op *made = batch_make(batch, op, IR_OP_Slice, ir_operand(op, 4) ? 5 : 4, operands);
    return made && batch_define(batch, op, 0, &made->results[0], true);
}

/* Shape of a value with the axis: that of a row, the same for all. */
static bool rule_shape(struct batch *batch, const struct ir_op *op)
{
    int rank = rank_of(op, 0);
    int64_t start = ir_attr_int(op, "start", 0), end = ir_attr_int(op, "end", rank);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    if (op->version < 15 || start < 0 || end < 0)
        return false;
    struct ir_op *copy = copy_with_operands(batch, op);
    if (!copy || !batch_set_int(batch, copy, "start", start + 1) ||
        !batch_set_int(batch, copy, "end", (end < rank ? end : rank) + 1))
        return false;
    return batch_put(batch, copy) && batch_define(batch, op, 0, &copy->results[0], false);
}

/* ---- Reads and writes ----------------------------------------------------------------------------- */

/* The indices of a rule that only selects along the first axes, as i64[n, count]; NULL: it is another. */
static struct ir_value *selected(struct batch *batch, const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    struct ir_value *columns[TSSA_MAX_RANK];
    if (rule->n_steps < 2 || rule->n_steps > TSSA_MAX_RANK)
        return NULL;
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        if (step->kind != RULE_SELECT || step->params[0].value != 0)
            return NULL;
        const struct ir_value *index = rule_param_value(op, &step->params[1]);
        if (!index || index->type->kind != TYPE_TENSOR || index->type->rank != 0 ||
            index->type->dtype != TSSA_INT64)
            return NULL;
    }
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        struct ir_value *index = rule_param_value(op, &rule->steps[i].params[1]);
        columns[i] = batch_unsqueeze(batch, op, batch_stacked(batch, index, op), 1, 1);
    }
    return batch_concat(batch, op, 1, rule->n_steps, columns);
}

/* Elements or rows of an invariant tensor that several indices name. */
static bool access_elements(struct batch *batch, const struct ir_op *op)
{
    bool batched;
    struct ir_value *base = operand_of(batch, op, 0, &batched);
    struct ir_value *operands[] = {base, batched ? NULL : selected(batch, op)};
    struct ir_op *made = batch_make(batch, op, IR_OP_GatherND, 2, operands);
    return made && batch_define(batch, op, 0, &made->results[0], true);
}

static bool rule_access(struct batch *batch, const struct ir_op *op)
{
    bool batched;
    struct batch_region *region = batch_new_region(batch);
    struct ir_value *base = operand_of(batch, op, 0, &batched);
    if (access_elements(batch, op))
        return true;
    if (batch->status || !region ||
        !batch_region(batch, op, batched, ir_operand(op, 0)->type, region))
        return false;
    struct ir_op *access =
        rule_access_create(batch->graph, base, region->rule, region->n_params, region->params);
    if (!batch_put(batch, access))
        return false;
    access->name = op->name;
    struct ir_value *value = &access->results[0];
    if (!region->in_range)
        value = batch_check(batch, op, value);
    return value && batch_define(batch, op, 0, value, true);
}

/* An assign into a value of the iteration; loops whose carried value it is are not handled here. */
static bool rule_assign(struct batch *batch, const struct ir_op *op)
{
    struct batch_region *region = batch_new_region(batch);
    struct ir_value *base = batch_stacked(batch, ir_operand(op, 0), op);
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_type *type = ir_operand(op, 0)->type;
    int rank;
    if (!region || !base || !batch_region(batch, op, true, type, region) || !region->in_range)
        return false;
    tssa_status *status =
        rule_region_shape((struct ir_op *)op, type->rank, type->dims, &rank, dims);
    bool known = !status && rank >= 0;
    tssa_status_free(status);
    struct ir_value *source = known ? aligned(batch, op, 1, rank) : NULL;
    if (!source)
        return false;
    struct ir_op *assign = rule_assign_create(batch->graph, base, source, region->rule,
                                              region->n_params, region->params);
    if (!batch_put(batch, assign))
        return false;
    assign->name = op->name;
    return batch_define(batch, op, 0, &assign->results[0], true);
}

/* One axis of an invariant tensor at indices that differ: the indices' axis comes to the front. */
static bool gather_stacked(struct batch *batch, const struct ir_op *op, int axis)
{
    bool batched;
    struct ir_op *copy = copy_with_operands(batch, op);
    (void)operand_of(batch, op, 0, &batched);
    if (!copy || !batch_put(batch, copy))
        return false;
    struct ir_value *value = batch_move_axis(batch, op, &copy->results[0], axis, 0);
    return value && batch_define(batch, op, 0, value, true);
}

/* Row i of a tensor, where i is the iteration: a Slice instead of a Gather. */
static bool gather_slice(struct batch *batch, const struct ir_op *op, int axis)
{
    const struct ir_known *known = ir_operand(op, 1)->known;
    struct rule_param params[2] = {rule_constant(axis), rule_operand(0)};
    const struct rule *rule =
        rule_create(batch->graph, 1, &(struct rule_step){RULE_SELECT, 2, params});
    int64_t factor, offset;
    if (!rule)
        return batch_out_of_memory(batch);
    if (rank_of(op, 1) != 0 || !known || known->count != 1 ||
        !batch_affine(batch, known->elements[0], &factor, &offset))
        return false;
    /* As an access, in the body for a moment: the rule asks its op for params. */
    struct ir_value *index = ir_operand(op, 1);
    struct ir_op *access = rule_access_create(batch->graph, ir_operand(op, 0), rule, 1, &index);
    if (!access)
        return batch_out_of_memory(batch);
    access->name = op->name;
    ir_op_insert_before(access, (struct ir_op *)op);
    bool done = rule_access(batch, access), batched;
    struct ir_value *value = done ? batch_get(batch, &access->results[0], &batched) : NULL;
    ir_op_remove(access);
    return value && batch_define(batch, op, 0, value, true);
}

/* Both differ: rows of the axis that comes next. */
static bool gather_rows(struct batch *batch, const struct ir_op *op)
{
    bool batched;
    int64_t last = rank_of(op, 1) + 1;
    struct ir_value *indices =
        batch_unsqueeze(batch, op, operand_of(batch, op, 1, &batched), (int)last, 1);
    struct ir_value *operands[] = {operand_of(batch, op, 0, &batched), indices};
    struct ir_op *made = batch_new(batch, op, IR_OP_GatherND, 2, operands);
    if (!made)
        return false;
    return batch_set_int(batch, made, "batch_dims", 1) && batch_put(batch, made) &&
           batch_define(batch, op, 0, &made->results[0], true);
}

static bool rule_gather(struct batch *batch, const struct ir_op *op)
{
    int64_t axis = ir_attr_int(op, "axis", 0);
    int rank = rank_of(op, 0);
    if (axis < 0)
        axis += rank;
    if (axis < 0 || axis >= rank)
        return false;
    if (!is_batched(batch, op, 1)) {
        struct ir_op *copy = copy_with_operands(batch, op);
        return copy && batch_set_int(batch, copy, "axis", axis + 1) && finish(batch, op, copy);
    }
    if (is_batched(batch, op, 0))
        return axis == 0 && gather_rows(batch, op);
    if (gather_slice(batch, op, (int)axis))
        return true;
    return !batch->status && gather_stacked(batch, op, (int)axis);
}

/* ---- Matrix products ------------------------------------------------------------------------------ */

/* [n, m, k] x [..., k, c]: rows of all iterations under each other, one product instead of n. */
static bool matmul_rows(struct batch *batch, const struct ir_op *op)
{
    bool batched;
    int64_t m, k, c;
    int right = rank_of(op, 1);
    const struct ir_type *a = ir_operand(op, 0)->type, *b = ir_operand(op, 1)->type;
    int64_t dims[TSSA_MAX_RANK + 1], n;
    if (!dim_is_const(a->dims[0], &m) || !dim_is_const(a->dims[1], &k) ||
        !dim_is_const(b->dims[right - 1], &c) || !dim_is_const(batch->n_trips, &n) || n < 1 ||
        m < 1 || k < 1 || c < 1)
        return false;
    for (int i = 0; i < right - 2; i++)
        if (!dim_is_const(b->dims[i], &dims[i]) || dims[i] < 1)
            return false;
    const int64_t flat[] = {n * m, k};
    struct ir_value *rows[] = {operand_of(batch, op, 0, &batched), batch_ints(batch, 1, 2, flat)};
    struct ir_op *reshaped = batch_make(batch, op, IR_OP_Reshape, 2, rows);
    if (!reshaped)
        return false;
    struct ir_value *factors[] = {&reshaped->results[0], operand_of(batch, op, 1, &batched)};
    struct ir_op *product = batch_make(batch, op, IR_OP_MatMul, 2, factors);
    dims[right - 2] = n;
    dims[right - 1] = m;
    dims[right] = c;
    struct ir_value *back[] = {product ? &product->results[0] : NULL,
                               batch_ints(batch, 1, (size_t)right + 1, dims)};
    struct ir_op *split = batch_make(batch, op, IR_OP_Reshape, 2, back);
    struct ir_value *value =
        split ? batch_move_axis(batch, op, &split->results[0], right - 2, 0) : NULL;
    return value && batch_define(batch, op, 0, value, true);
}

/* A vector becomes a matrix of one row or column. */
static struct ir_value *as_matrix(struct batch *batch, const struct ir_op *op, uint32_t index)
{
    bool batched;
    struct ir_value *value = operand_of(batch, op, index, &batched);
    if (rank_of(op, index) >= 2)
        return value;
    return batch_unsqueeze(batch, op, value, (batched ? 1 : 0) + (int)index, 1);
}

static bool rule_matmul(struct batch *batch, const struct ir_op *op)
{
    int left = rank_of(op, 0), right = rank_of(op, 1);
    if (left < 1 || right < 1)
        return false;
    if (left == 2 && right >= 2 && !is_batched(batch, op, 1) && matmul_rows(batch, op))
        return true;
    if (batch->status)
        return false;
    int rank = left > right ? left : right;
    struct ir_value *factors[2];
    rank = rank < 2 ? 2 : rank;
    for (uint32_t i = 0; i < 2; i++) {
        int have = rank_of(op, i) < 2 ? 2 : rank_of(op, i);
        factors[i] = as_matrix(batch, op, i);
        if (factors[i] && is_batched(batch, op, i))
            factors[i] = batch_unsqueeze(batch, op, factors[i], 1, rank - have);
    }
    struct ir_op *product = batch_make(batch, op, IR_OP_MatMul, 2, factors);
    struct ir_value *value = product ? &product->results[0] : NULL;
    int64_t axes[2];
    size_t n = 0;
    if (left == 1)
        axes[n++] = rank - 1;
    if (right == 1)
        axes[n++] = rank;
    if (value && n) {
        struct ir_value *operands[] = {value, batch_ints(batch, 1, n, axes)};
        struct ir_op *squeezed = batch_make(batch, op, IR_OP_Squeeze, 2, operands);
        value = squeezed ? &squeezed->results[0] : NULL;
    }
    return value && batch_define(batch, op, 0, value, true);
}

/* alpha and beta of 1, no transposed factor that has the axis: MatMul and Add. */
static bool rule_gemm(struct batch *batch, const struct ir_op *op)
{
    static const int64_t swap[] = {1, 0};
    bool batched;
    struct ir_value *factors[2];
    if (ir_attr_float(op, "alpha", 1) != 1 || ir_attr_float(op, "beta", 1) != 1)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        bool transposed = ir_attr_int(op, i ? "transB" : "transA", 0) != 0;
        factors[i] = operand_of(batch, op, i, &batched);
        if (transposed && batched)
            return false;
        if (transposed)
            factors[i] = batch_permute(batch, op, factors[i], swap);
    }
    struct ir_op *made = batch_make(batch, op, IR_OP_MatMul, 2, factors);
    if (made && ir_operand(op, 2)) {
        struct ir_value *terms[] = {&made->results[0], aligned(batch, op, 2, 2)};
        made = batch_make(batch, op, IR_OP_Add, 2, terms);
    }
    return made && batch_define(batch, op, 0, &made->results[0], true);
}

/* ---- The table ------------------------------------------------------------------------------------ */

static const batch_rule rules[IR_OP_COUNT] = {
    [IR_OP_Identity] = rule_same,
    [IR_OP_Cast] = rule_elementwise,
    [IR_OP_CastLike] = rule_elementwise,
    [IR_OP_BitCast] = rule_same,
    [IR_OP_Trilu] = rule_same,
    [IR_OP_ReduceSum] = rule_reduce,
    [IR_OP_ReduceMean] = rule_reduce,
    [IR_OP_ReduceProd] = rule_reduce,
    [IR_OP_ReduceMax] = rule_reduce,
    [IR_OP_ReduceMin] = rule_reduce,
    [IR_OP_ReduceL1] = rule_reduce,
    [IR_OP_ReduceL2] = rule_reduce,
    [IR_OP_ReduceSumSquare] = rule_reduce,
    [IR_OP_ReduceLogSum] = rule_reduce,
    [IR_OP_ReduceLogSumExp] = rule_reduce,
    [IR_OP_ArgMax] = rule_axis_0,
    [IR_OP_ArgMin] = rule_axis_0,
    [IR_OP_CumSum] = rule_cumsum,
    [IR_OP_Softmax] = rule_softmax,
    [IR_OP_LogSoftmax] = rule_softmax,
    [IR_OP_Hardmax] = rule_softmax,
    [IR_OP_LayerNormalization] = rule_axis_last,
    [IR_OP_RMSNormalization] = rule_axis_last,
    [IR_OP_TopK] = rule_axis_last,
    [IR_OP_Split] = rule_axis_0,
    [IR_OP_Concat] = stack_all,
    [IR_OP_Transpose] = rule_transpose,
    [IR_OP_Reshape] = rule_reshape,
    [IR_OP_Expand] = rule_expand,
    [IR_OP_Tile] = rule_tile,
    [IR_OP_Slice] = rule_slice,
    [IR_OP_Squeeze] = rule_squeeze,
    [IR_OP_Unsqueeze] = rule_unsqueeze,
    [IR_OP_Shape] = rule_shape,
    [IR_OP_Gather] = rule_gather,
    [IR_OP_GatherElements] = stack_all,
    [IR_OP_access] = rule_access,
    [IR_OP_assign] = rule_assign,
    [IR_OP_MatMul] = rule_matmul,
    [IR_OP_Gemm] = rule_gemm,
};

batch_rule batch_find_rule(const struct ir_op *op)
{
    return op->info->ew ? rule_elementwise : rules[op->info->id];
}
