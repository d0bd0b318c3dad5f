/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done to the result of a convolution, and to nothing else of it, is done by the library
 * while it has the sums:
 *
 *     Relu(Conv(x, w, b))                 ->   convolve(x, w, b) {after = "relu"}
 *     c = Conv(x, w), Mul(c, Sigmoid(c))  ->   convolve(x, w) {after = "swish"}
 *     Add(convolve(x, w, b), r)           ->   convolve(x, w, b, r)    with channels last
 *
 * What there is stands in ir/after.def. With channels first nothing is added: the library would
 * reorder what is. And nothing is done to products of many pixels there, which it computes as such.
 *
 *   needs   lay_out_convs, dead_code; only in sessions whose library computes convolve
 *           (pipeline.convolves)
 *   keeps   results but for the last bits, and for what becomes of NaN
 *   breaks  nothing
 */
#include <math.h>
#include <string.h>

#include "passes/lower/convs.h"

struct found {
    struct ir_op *conv;
    struct ir_op *between; /* the Sigmoid of a swish; else NULL */
    struct ir_value *added;
    enum convolve_after after;
    float a, b;
};

/* ---- Finding --------------------------------------------------------------------------------- */

static uint32_t count_uses(const struct ir_value *value)
{
    uint32_t n = 0;
    for (const struct ir_use *use = value->uses; use; use = use->next)
        n++;
    return n;
}

/* The convolution that the value is, in the block, used `uses` times and with nothing done to it
 * yet. */
static struct ir_op *open_conv(const struct ir_value *value, const struct ir_op *user,
                               uint32_t uses)
{
    struct conv_shape shape;
    struct ir_op *op = value ? value->op : NULL;
    return op && op->parent == user->parent && count_uses(value) == uses &&
                   conv_shape_of(op, &shape) && !*ir_attr_str(op, CONVOLVE_AFTER, "") &&
                   (ir_attr_int(op, CONVOLVE_Y_LAST, 0) || !conv_is_product(&shape))
               ? op
               : NULL;
}

/* A constant number, or absent: the other one. */
static bool find_bound(const struct ir_op *clip, uint32_t operand, float absent, float *bound)
{
    const struct ir_value *value = ir_operand(clip, operand);
    const struct tensor *constant = value ? ir_value_constant(value) : NULL;
    *bound = absent;
    if (!value)
        return true;
    if (!constant || constant->dtype != TSSA_FLOAT || tensor_count(constant) != 1)
        return false;
    *bound = *(const float *)constant->data;
    return !isnan(*bound);
}

static bool find_clip(const struct ir_op *op, struct found *f)
{
    f->after = AFTER_clip;
    return find_bound(op, 1, -INFINITY, &f->a) && find_bound(op, 2, INFINITY, &f->b) &&
           f->a <= f->b;
}

/* Activations of one operand. */
static bool find_activation(const struct ir_op *op, struct found *f)
{
    static const struct {
        enum ir_op_id id;
        enum convolve_after after;
    } rows[] = {{IR_OP_Relu, AFTER_relu}, {IR_OP_HardSwish, AFTER_hard_swish}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (ir_op_is(op, rows[i].id)) {
            f->after = rows[i].after;
            return true;
        }
    if (ir_op_is(op, IR_OP_LeakyRelu)) {
        f->after = AFTER_leaky_relu;
        f->a = ir_attr_float(op, "alpha", 0.01F);
        return true;
    }
    f->after = AFTER_swish;
    if (ir_op_is(op, IR_OP_Swish) && ir_attr_float(op, "alpha", 1) == 1)
        return true;
    return ir_op_is(op, IR_OP_Clip) && find_clip(op, f);
}

/* c * Sigmoid(c), in either order. */
static bool find_swish(const struct ir_op *op, struct found *f)
{
    if (!ir_op_is(op, IR_OP_Mul))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        struct ir_value *c = ir_operand(op, i), *s = ir_operand(op, 1 - i);
        if (s && s->op && ir_op_is(s->op, IR_OP_Sigmoid) && ir_operand(s->op, 0) == c &&
            count_uses(s) == 1 && s->op->parent == op->parent) {
            f->conv = open_conv(c, op, 2);
            f->between = s->op;
            f->after = AFTER_swish;
            return f->conv != NULL;
        }
    }
    return false;
}

static bool find_sum(const struct ir_op *op, struct found *f)
{
    if (!ir_op_is(op, IR_OP_Add))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        struct ir_value *added = ir_operand(op, 1 - i);
        struct ir_op *conv = open_conv(ir_operand(op, i), op, 1);
        if (conv && ir_attr_int(conv, CONVOLVE_Y_LAST, 0) && !ir_operand(conv, CONVOLVE_ADDED) &&
            added && !ir_value_constant(added) && conv_is_image(added) &&
            conv_same_dims(added->type, conv->results[0].type)) {
            f->conv = conv;
            f->added = added;
            return true;
        }
    }
    return false;
}

static bool find(const struct ir_op *op, struct found *f)
{
    *f = (struct found){.after = AFTER_NOTHING};
    if (find_sum(op, f))
        return true;
    *f = (struct found){.after = AFTER_NOTHING};
    if (find_swish(op, f))
        return true;
    *f = (struct found){.after = AFTER_NOTHING};
    if (op->n_operands == 0 || !find_activation(op, f))
        return false;
    f->conv = open_conv(ir_operand(op, 0), op, 1);
    return f->conv != NULL;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static bool set_float(struct ir_graph *graph, struct ir_op *op, const char *name, float value)
{
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, name), .kind = IR_ATTR_FLOAT, .f = value};
    return attr.name && ir_op_set_attr(graph, op, &attr);
}

static bool set_after(struct ir_graph *graph, struct ir_op *op, const struct found *f)
{
    const char *name = convolve_after_name(f->after);
    const struct ir_attr attr = {.name = intern_str(&graph->strings, CONVOLVE_AFTER),
                                 .kind = IR_ATTR_STRING,
                                 .s = {intern_str(&graph->strings, name), strlen(name)}};
    return f->after == AFTER_NOTHING ||
           (attr.name && attr.s.data && ir_op_set_attr(graph, op, &attr) &&
            (f->a == 0 || set_float(graph, op, CONVOLVE_A, f->a)) &&
            (f->b == 0 || set_float(graph, op, CONVOLVE_B, f->b)));
}

static tssa_status *append(struct pass_context *pass, struct ir_op *op, const struct found *f)
{
    struct ir_op *made = conv_create(pass->graph, f->conv);
    TRY_ALLOC(made);
    if (!set_after(pass->graph, made, f))
        return status_out_of_memory();
    if (f->added)
        ir_op_set_operand(made, CONVOLVE_ADDED, f->added);
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, f->conv, "is computed together with its %s",
                    op->info->name));
    TRY(pass_replace(pass, op, made));
    made->name = f->conv->name;
    if (f->between)
        ir_op_remove(f->between);
    ir_op_remove(f->conv);
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct found f;
    return op->n_results == 1 && find(op, &f) ? append(context, op, &f) : NULL;
}

static tssa_status *find_any(void *context, struct ir_op *op)
{
    struct conv_shape shape;
    *(bool *)context |= conv_shape_of(op, &shape);
    return NULL;
}

tssa_status *pass_append_to_convs(struct pass_context *pass)
{
    bool any = false;
    if (!pass_is_for_session(pass))
        return NULL;
    TRY(ir_block_walk(pass->graph->body, find_any, &any));
    return any && conv_is_computed(pass) ? ir_block_walk(pass->graph->body, visit, pass) : NULL;
}
