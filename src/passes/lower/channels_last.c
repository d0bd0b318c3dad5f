/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images whose channels are the last axis, from one convolution of bytes to the next:
 *
 *     b = QLinearConv(a), c = Relu(b), d = QLinearConv(c)
 *       ->   a' = permute(a), b' = QLinearConv(a'), c' = Relu(b'), d' = QLinearConv(c'),
 *            d = permute(d')
 *
 * Libraries compute convolutions of bytes so, and nothing of four bytes is moved for it. What is
 * element-wise, also with a number for each channel, a DynamicQuantizeLinear, and a MaxPool of
 * bytes go on with what they are given; others read the images turned back. ConvInteger is turned
 * as well.
 *
 *   needs   multiply_bytes; only in sessions
 *   keeps   results' bits
 *   breaks  permutations that nobody reads are left (dead_code)
 */
#include "passes/lower/turned.h"

/* ---- Ops ------------------------------------------------------------------------------------- */

static bool is_image(const struct ir_value *value)
{
    const struct ir_type *type = value ? value->type : NULL;
    return type && type->kind == TYPE_TENSOR && type->rank >= 3 && type->rank <= 5;
}

static bool is_conv(const struct ir_op *op)
{
    return (ir_op_is(op, IR_OP_QLinearConv) || ir_op_is(op, IR_OP_ConvInteger)) &&
           is_image(ir_operand(op, 0)) && is_image(&op->results[0]) &&
           !ir_attr_int(op, IR_CHANNELS_LAST, 0);
}

static bool is_one_number(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    return type->kind == TYPE_TENSOR &&
           (type->rank == 0 || (type->rank == 1 && dim_is(type->dims[0], 1)));
}

/* A constant of one number for each channel of the images. */
static bool is_of_channels(const struct ir_value *value, const struct ir_type *images)
{
    const struct tensor *constant = ir_value_constant(value);
    bool fits = constant && constant->rank == images->rank && images->rank >= 3;
    for (int i = 0; fits && i < constant->rank; i++)
        fits = i == 1 ? dim_is(images->dims[i], constant->dims[i]) : constant->dims[i] == 1;
    return fits;
}

/* Of images that are turned back, all of one shape, and of numbers; each element by itself. */
static bool goes_on(const struct ir_op *op)
{
    const bool converts = ir_op_is(op, IR_OP_QuantizeLinear) ||
                          ir_op_is(op, IR_OP_DequantizeLinear) || ir_op_is(op, IR_OP_Cast);
    uint32_t images = 0;
    if ((!op->info->ew && !converts) || op->n_results != 1)
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (!value || is_one_number(value) || is_of_channels(value, op->results[0].type))
            continue;
        if (!turned_from(value) || !type_same_dims(value->type, op->results[0].type))
            return false;
        images++;
    }
    return images > 0;
}

/* Of bytes, without indices, which would be others. */
static bool is_pool(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_MaxPool) && !ir_result_wanted(op, 1) &&
           dtype_in(T_I8U8, op->results[0].type->dtype) && turned_from(ir_operand(op, 0));
}

/* Its scale and zero point are those of all elements, in whatever order. */
static bool is_quantizer(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_DynamicQuantizeLinear) && turned_from(ir_operand(op, 0));
}

/* The op on turned images, whose result is turned back in its place. `says`: by an attribute. */
static tssa_status *replace(struct pass_context *pass, struct ir_op *op, bool says)
{
    struct ir_graph *graph = pass->graph;
    const struct ir_attr last = {
        .name = intern_str(&graph->strings, IR_CHANNELS_LAST), .kind = IR_ATTR_INT, .i = 1};
    struct ir_op *turned = ir_op_create(graph, op->info, op->n_operands, op->n_results);
    TRY_ALLOC(turned);
    turned->version = op->version;
    if (!ir_op_copy_attrs(graph, turned, op) ||
        (says && (!last.name || !ir_op_set_attr(graph, turned, &last))))
        return status_out_of_memory();
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i);
        if (value && (says ? i == 0 : !is_one_number(value)))
            TRY(turned_value(graph, value, op, &value));
        ir_op_set_operand(turned, i, value);
    }
    TRY(pass_insert(turned, op));
    for (uint32_t i = 1; i < op->n_results; i++) {
        turned->results[i].name = op->results[i].name;
        op->results[i].name = NULL;
        ir_value_replace(&op->results[i], &turned->results[i]);
    }
    return pass_replace(pass, op, turned_access(graph, &turned->results[0], false));
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    const bool says = is_conv(op) || is_pool(op);
    return says || goes_on(op) || is_quantizer(op) ? replace(context, op, says) : NULL;
}

tssa_status *pass_channels_last(struct pass_context *pass)
{
    struct ir_block *body = pass->graph->body;
    if (!pass_is_for_session(pass) ||
        !(ir_block_has(body, IR_OP_QLinearConv) || ir_block_has(body, IR_OP_ConvInteger)))
        return NULL;
    return ir_block_walk(body, visit, pass);
}
