/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Conv pads by itself what was padded with zeros before it:
 *
 *     Conv(Pad(x, [0, 0, 1, 1, 0, 0, 1, 1]), W) {pads = [1, 1, 1, 1]}
 *       ->   Conv(x, W) {pads = [2, 2, 2, 2]}
 *
 * The padding must be of spatial axes, constant and not negative, with the constant 0, and the Conv
 * must say its pads in numbers. Its weights must be finite constants: an infinite one times a
 * padded zero is NaN.
 *
 *   needs   constants where they are (fold_constants)
 *   keeps   nothing of the last bits: a library may sum the border in another order
 *   breaks  nothing
 */
#include <math.h>
#include <string.h>

#include "ir/infer.h"
#include "passes/lower/products.h"

static bool is_zero(const struct ir_value *value)
{
    const struct tensor *c = value ? ir_value_constant(value) : NULL;
    if (!value)
        return true;
    return c && (c->dtype == TSSA_FLOAT || c->dtype == TSSA_DOUBLE || c->dtype == TSSA_FLOAT16) &&
           tensor_count(c) == 1 && product_number(c, 0) == 0;
}

/*
 * By how much each axis is padded, in ONNX's order; false: not by constants, or by something else.
 */
static bool find_pads(const struct ir_op *pad, int rank, int64_t *pads)
{
    int64_t given[IR_KNOWN_MAX], axes[IR_KNOWN_MAX];
    size_t n_given = 0, n_axes = (size_t)rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    if (strcmp(ir_attr_str(pad, "mode", "constant"), "constant") != 0 ||
        !is_zero(ir_operand(pad, 2)) || !infer_const_ints(pad, 1, given, &n_given) ||
        (ir_operand(pad, 3) && !infer_const_ints(pad, 3, axes, &n_axes)) || n_given != 2 * n_axes)
        return false;
    memset(pads, 0, 2 * (size_t)rank * sizeof *pads);
    for (size_t i = 0; i < n_axes; i++) {
        int axis;
        if (!infer_find_axis(axes[i], rank, &axis) || given[i] < 0 || given[n_axes + i] < 0)
            return false;
        pads[axis] = given[i];
        pads[rank + axis] = given[n_axes + i];
    }
    return pads[0] == 0 && pads[1] == 0 && pads[rank] == 0 && pads[rank + 1] == 0;
}

/* Adds those of the Conv, spatial axes only; false: it does not say them, or they are too many. */
static bool add_pads(const struct ir_op *conv, int rank, const int64_t *before, int64_t *pads)
{
    size_t count = 0, spatial = (size_t)rank - 2;
    const int64_t *own = ir_attr_ints(conv, "pads", &count);
    if (strcmp(ir_attr_str(conv, "auto_pad", "NOTSET"), "NOTSET") != 0 ||
        (own && count != 2 * spatial))
        return false;
    for (size_t i = 0; i < 2 * spatial; i++) {
        size_t at = i < spatial ? i + 2 : i - spatial + (size_t)rank + 2;
        if (__builtin_add_overflow(own ? own[i] : 0, before[at], &pads[i]) || pads[i] > INT32_MAX)
            return false;
    }
    return true;
}

static bool are_finite(const struct tensor *w)
{
    int64_t count = (int64_t)tensor_count(w);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(product_number(w, i)))
            return false;
    return true;
}

static tssa_status *fold(struct pass_context *pass, struct ir_op *conv, struct ir_op *pad,
                         size_t count, const int64_t *pads)
{
    struct ir_graph *graph = pass->graph;
    const int64_t *copy = arena_copy(&graph->arena, pads, count * sizeof *pads);
    const char *name = intern_str(&graph->strings, "pads");
    TRY_ALLOC(copy);
    TRY_ALLOC(name);
    const struct ir_attr attr = {.name = name, .kind = IR_ATTR_INTS, .count = count, .ints = copy};
    if (!ir_op_set_attr(graph, conv, &attr))
        return status_out_of_memory();
    ir_op_set_operand(conv, 0, ir_operand(pad, 0));
    if (!pad->results[0].uses)
        ir_op_remove(pad);
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, conv, "pads by itself what was padded before");
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct product p;
    int64_t before[2 * TSSA_MAX_RANK], pads[2 * TSSA_MAX_RANK];
    struct ir_op *pad =
        ir_op_is(op, IR_OP_Conv) && ir_operand(op, 0) ? ir_operand(op, 0)->op : NULL;
    if (!pad || !ir_op_is(pad, IR_OP_Pad) || !ir_operand(pad, 0) || !product_open(op, &p) ||
        ir_operand(pad, 0)->type->kind != TYPE_TENSOR || ir_operand(pad, 0)->type->rank != p.rank ||
        !find_pads(pad, p.rank, before) || !add_pads(op, p.rank, before, pads))
        return NULL;
    if (!are_finite(p.w))
        return pass_remark(context, TSSA_REMARK_MISSED, op,
                           "does not pad by itself: a weight is not finite");
    return fold(context, op, pad, 2 * ((size_t)p.rank - 2), pads);
}

tssa_status *pass_fold_pads(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
