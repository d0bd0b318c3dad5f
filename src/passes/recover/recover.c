/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raises ops that only move elements to `access`, and what exporters made of writes (scatters with
 * generated indices, concatenations of slices around a value, selections by a mask of positions) to
 * `assign`, by proving where every element goes. What cannot be proven stays as it is, with a
 * remark that names the missing fact.
 *
 *     ScatterElements(x, Expand(k), v), ScatterND(x, [row, k] pairs, v),
 *     Transpose(ScatterND(Transpose(x), [[k]], v))                 x[.., k, ..] := v
 *     ScatterND(x, [[i]], v)                                       x[i] := v
 *     scatters with ranges in any of these ways,
 *     Concat(x[:a], v, x[b:]), TensorScatter                       x[.., a:b:step, ..] := v
 *     Where(positions, v, x) for positions that are a box          x[box] := v[box]
 *     Add(x, Pad(v))                                               x[box] := x[box] + v
 *     ScatterND(x, Unsqueeze(list), v)                             x[list] := v
 *     ScatterND(x, [i, NonZero(mask)], Expand(v))                  x[i] := Where(mask, v, x[i])
 *     a write into a slice that is scattered back                  x[slice, rest] := v
 *     a scatter or Concat of everything                            v, or x itself
 *
 * The indices may come from constants, Range, Expand, Concat, shape arithmetic, a loop's counter
 * and what exporters put between (element.h). Scatters that add or multiply (reduction) are no
 * writes. Adding the 0.0 of a Pad makes 0.0 of -0.0: floats must be proven to be none
 * (zero_sign.h).
 *
 *   needs   types, known elements; dead code and shape arithmetic that is folded help
 *   keeps   types, known elements, results' bits; the arithmetic of shapes stays in ONNX's
 *           operators
 *   breaks  nothing, but a model with these ops must be lowered before it can be written as ONNX
 */
#include "passes/recover/recover.h"

#include "ir/infer.h"
#include "passes/analysis/of_data.h"

/* Writes go first: they are recognised by the ops that moved their parts. */
static const recover_fn writes[IR_OP_COUNT] = {
    [IR_OP_Gather] = recover_gather,
    [IR_OP_ScatterND] = recover_scatter_nd,
    [IR_OP_ScatterElements] = recover_scatter_elements,
    [IR_OP_GatherND] = recover_gather_nd,
    [IR_OP_GatherElements] = recover_gather_elements,
    [IR_OP_Transpose] = recover_transpose,
    [IR_OP_Concat] = recover_concat,
    [IR_OP_Where] = recover_where,
    [IR_OP_Add] = recover_add,
    [IR_OP_TensorScatter] = recover_tensor_scatter,
};

static bool is_single_integer(const struct ir_type *type)
{
    return dtype_is_integer(type->dtype) && type_has_one_element(type);
}

/*
 * Shapes, indices and what they are computed from are left to the ops that inference understands,
 * but not what is computed of data, which it knows nothing of.
 */
static bool is_shape_arithmetic(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].known ||
            (is_single_integer(op->results[i].type) && !is_of_data(&op->results[i])))
            return true;
    return false;
}

static tssa_status *recover_split(struct pass_context *pass, struct ir_op *op)
{
    int64_t axis = ir_op_axis(op), start = 0, size = 0;
    struct ir_value *base = ir_operand(op, 0);
    if (!recover_is_ranked(base))
        return NULL;
    axis += axis < 0 ? base->type->rank : 0;
    for (uint32_t i = 0; i < op->n_results; i++) {
        if (!recover_is_ranked(&op->results[i]) ||
            !dim_is_const(op->results[i].type->dims[axis], &size))
            return NULL;
        start += size;
    }
    if (!dim_is(base->type->dims[axis], start))
        return NULL;
    start = 0;
    for (uint32_t i = 0, n = op->n_results; i < n; i++) {
        struct rule_draft draft = {0};
        bool used = op->results[i].uses != NULL;
        dim_is_const(op->results[i].type->dims[axis], &size);
        draft_slice(&draft, axis, start, start + size, 1);
        start += size;
        if (used)
            TRY(recover_access(pass, op, i, base, &draft));
        if (!op->parent)
            break;
    }
    return NULL;
}

static tssa_status *visit_write(void *context, struct ir_op *op)
{
    recover_fn raise = writes[op->info->id];
    return raise && !is_shape_arithmetic(op) && !pass_is_pinned(context, op) ? raise(context, op)
                                                                             : NULL;
}

static tssa_status *visit_read(void *context, struct ir_op *op)
{
    struct rule_draft draft = {0};
    if (is_shape_arithmetic(op) || pass_is_pinned(context, op))
        return NULL;
    if (ir_op_is(op, IR_OP_Split))
        return recover_split(context, op);
    if (op->n_results != 1 || !op->results[0].uses || !rule_of_movement(op, &draft) || draft.full)
        return NULL;
    if (draft.n_steps == 0) {
        if (op->results[0].type == ir_operand(op, 0)->type)
            recover_replace(context, op, ir_operand(op, 0));
        return NULL;
    }
    return recover_access(context, op, 0, ir_operand(op, 0), &draft);
}

/* After the reads, which it compares writes with. */
static tssa_status *visit_assign(void *context, struct ir_op *op)
{
    return ir_op_is(op, IR_OP_assign) ? recover_assign_chain(context, op) : NULL;
}

tssa_status *pass_recover(struct pass_context *pass)
{
    TRY(ir_block_walk(pass->graph->body, visit_write, pass));
    TRY(ir_block_walk(pass->graph->body, visit_read, pass));
    return ir_block_walk(pass->graph->body, visit_assign, pass);
}
