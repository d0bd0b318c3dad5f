/* SPDX-License-Identifier: Apache-2.0 */
/* The forms that ops take with an axis in front of some of their operands (batch.h). */
#include "passes/loops/batch_rules.h"

#include "ir/infer.h"

/* ---- Operands -------------------------------------------------------------------------------- */

/* Only operand 0 has the axis. */
static bool only_first(struct batch *batch, const struct ir_op *op)
{
    for (uint32_t i = 1; i < op->n_operands; i++)
        if (batch_has_axis(batch, op, i))
            return false;
    return batch_has_axis(batch, op, 0);
}

/* Constant ints of an operand. */
static bool const_operand(const struct ir_op *op, uint32_t index, int64_t *values, size_t *count)
{
    return infer_const_ints(op, index, values, count) && *count <= TSSA_MAX_RANK;
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
    int64_t axis = ir_op_axis(op);
    struct ir_value **values = new_values(batch, op->n_operands);
    for (uint32_t i = 0; values && i < op->n_operands; i++)
        if (!(values[i] = batch_stacked(batch, ir_operand(op, i), op)))
            return false;
    struct ir_op *copy = values ? copy_with(batch, op, values) : NULL;
    return copy && batch_set_int(batch, copy, "axis", axis < 0 ? axis : axis + 1) &&
           batch_finish(batch, op, copy);
}

/* ---- Element-wise ---------------------------------------------------------------------------- */

/* Of one number every runtime makes what the standard says, of several not all of them do
 * (onnx/hazards.def): what takes the place of one at a time is to be exact. */
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
    if (!ir_op_broadcasts(op) && !only_first(batch, op))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && batch_rank(op, i) > rank)
            rank = batch_rank(op, i);
    struct ir_value **values = new_values(batch, op->n_operands);
    for (uint32_t i = 0; values && i < op->n_operands; i++) {
        values[i] = ir_operand(op, i) ? batch_aligned(batch, op, i, rank) : NULL;
        if (!values[i] && ir_operand(op, i))
            return false;
    }
    struct ir_op *copy = values ? copy_with(batch, op, values) : NULL;
    if (!copy)
        return false;
    copy->exact |= is_one_at_a_time(op);
    return batch_finish(batch, op, copy);
}

/* ---- One operand, with an axis attribute ----------------------------------------------------- */

/* Negative axes count from the end, where nothing changes. */
static bool rule_axis(struct batch *batch, const struct ir_op *op)
{
    int64_t axis = ir_op_axis(op);
    if (!only_first(batch, op))
        return false;
    struct ir_op *copy = batch_copy_operands(batch, op);
    return copy && batch_set_int(batch, copy, "axis", axis < 0 ? axis : axis + 1) &&
           batch_finish(batch, op, copy);
}

static bool rule_same(struct batch *batch, const struct ir_op *op)
{
    struct ir_op *copy = only_first(batch, op) ? batch_copy_operands(batch, op) : NULL;
    return copy && batch_finish(batch, op, copy);
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
    return batch_ints(batch, batch_rank(op, index), count, axes);
}

static bool with_axes(struct batch *batch, const struct ir_op *op, int rank)
{
    struct ir_value *axes = shifted_axes(batch, op, 1, rank);
    struct ir_op *copy = axes ? batch_copy_operands(batch, op) : NULL;
    if (!copy)
        return false;
    ir_op_set_operand(copy, 1, axes);
    return batch_finish(batch, op, copy);
}

static bool rule_reduce(struct batch *batch, const struct ir_op *op)
{
    int64_t axes[TSSA_MAX_RANK];
    size_t count = 0;
    int rank = batch_rank(op, 0);
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
    struct ir_value *operands[] = {batch_operand(batch, op, 0, &batched),
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
           batch_finish(batch, op, copy);
}

static bool rule_squeeze(struct batch *batch, const struct ir_op *op)
{
    return ir_operand(op, 1) && only_first(batch, op) && with_axes(batch, op, batch_rank(op, 0));
}

static bool rule_unsqueeze(struct batch *batch, const struct ir_op *op)
{
    return only_first(batch, op) && with_axes(batch, op, op->results[0].type->rank);
}

static bool rule_cumsum(struct batch *batch, const struct ir_op *op)
{
    return only_first(batch, op) && with_axes(batch, op, batch_rank(op, 0));
}

static bool rule_transpose(struct batch *batch, const struct ir_op *op)
{
    int64_t perm[TSSA_MAX_RANK + 1] = {0};
    size_t count;
    int rank = batch_rank(op, 0);
    bool batched;
    const int64_t *given = ir_attr_ints(op, "perm", &count);
    for (int i = 0; i < rank; i++)
        perm[i + 1] = 1 + (given ? given[i] : rank - 1 - i);
    struct ir_value *value = batch_permute(batch, op, batch_operand(batch, op, 0, &batched), perm);
    return value && batch_define(batch, op, 0, value, true);
}

/* ---- Movement with a shape ------------------------------------------------------------------- */

/* A shape operand whose numbers are constants, or could be: -1 and 0 where the result's dim is
 * known. */
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
    struct ir_value *operands[] = {batch_operand(batch, op, 0, &batched),
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
    int rank = batch_rank(op, 0), wide = (int)count > rank ? (int)count : rank;
    struct ir_value *value =
        batch_unsqueeze(batch, op, batch_operand(batch, op, 0, &batched), 1, wide - rank);
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
    struct ir_value *operands[] = {batch_operand(batch, op, 0, &batched),
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
        shifted = shifted_axes(batch, op, 3, batch_rank(op, 0));
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
        batch_operand(batch, op, 0, &batched), batch_operand(batch, op, 1, &batched),
        batch_operand(batch, op, 2, &batched), shifted, batch_operand(batch, op, 4, &batched)};
    struct ir_op *made = batch_make(batch, op, IR_OP_Slice, ir_operand(op, 4) ? 5 : 4, operands);
    return made && batch_define(batch, op, 0, &made->results[0], true);
}

/* Shape of a value with the axis: that of a row, the same for all. */
static bool rule_shape(struct batch *batch, const struct ir_op *op)
{
    int rank = batch_rank(op, 0);
    int64_t start = ir_attr_int(op, "start", 0), end = ir_attr_int(op, "end", rank);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    if (op->version < 15 || start < 0 || end < 0)
        return false;
    struct ir_op *copy = batch_copy_operands(batch, op);
    if (!copy || !batch_set_int(batch, copy, "start", start + 1) ||
        !batch_set_int(batch, copy, "end", (end < rank ? end : rank) + 1))
        return false;
    return batch_put(batch, copy) && batch_define(batch, op, 0, &copy->results[0], false);
}

/* ---- The table ------------------------------------------------------------------------------- */

static const batch_rule rules[IR_OP_COUNT] = {
    [IR_OP_Identity] = rule_same,
    [IR_OP_Cast] = rule_elementwise,
    [IR_OP_CastLike] = rule_elementwise,
    [IR_OP_BitCast] = rule_same,
    [IR_OP_Trilu] = rule_same,
    [IR_OP_ArgMax] = rule_axis,
    [IR_OP_ArgMin] = rule_axis,
    [IR_OP_CumSum] = rule_cumsum,
    [IR_OP_Softmax] = rule_axis,
    [IR_OP_LogSoftmax] = rule_axis,
    [IR_OP_Hardmax] = rule_axis,
    [IR_OP_LayerNormalization] = rule_axis,
    [IR_OP_RMSNormalization] = rule_axis,
    [IR_OP_TopK] = rule_axis,
    [IR_OP_Split] = rule_axis,
    [IR_OP_Concat] = stack_all,
    [IR_OP_Transpose] = rule_transpose,
    [IR_OP_Reshape] = rule_reshape,
    [IR_OP_Expand] = rule_expand,
    [IR_OP_Tile] = rule_tile,
    [IR_OP_Slice] = rule_slice,
    [IR_OP_Squeeze] = rule_squeeze,
    [IR_OP_Unsqueeze] = rule_unsqueeze,
    [IR_OP_Shape] = rule_shape,
    [IR_OP_Gather] = batch_rule_gather,
    [IR_OP_GatherElements] = stack_all,
    [IR_OP_access] = batch_rule_access,
    [IR_OP_assign] = batch_rule_assign,
    [IR_OP_MatMul] = batch_rule_matmul,
    [IR_OP_Gemm] = batch_rule_gemm,
};

batch_rule batch_find_rule(const struct ir_op *op)
{
    const struct ir_op_info *info = op->info;
    return info->ew ? rule_elementwise : info->reduction ? rule_reduce : rules[info->id];
}
