/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/convs.h"

#include "base/alloc.h"

/* What is guessed of a size that only a run tells; of the first axis: 1. */
#define GUESS 32

static bool is_float(const struct ir_value *value, int rank)
{
    const struct ir_type *type = value ? value->type : NULL;
    return type && type->kind == TYPE_TENSOR && type->dtype == TSSA_FLOAT && type->rank == rank;
}

bool conv_is_image(const struct ir_value *value)
{
    return is_float(value, 4);
}

static int64_t size_of(const struct ir_type *type, int axis)
{
    int64_t size;
    return dim_is_const(type->dims[axis], &size) ? size : axis == 0 ? 1 : GUESS;
}

int64_t conv_elements(const struct ir_type *type)
{
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        if (!i64_mul(count, size_of(type, i), &count))
            return INT64_MAX / 2;
    return count;
}

static bool find_channels(const struct ir_op *op, struct conv_shape *shape)
{
    const struct ir_value *w = ir_operand(op, CONVOLVE_W);
    int64_t dims[4];
    for (int i = 0; i < 4; i++)
        if (!dim_is_const(w->type->dims[i], &dims[i]) || dims[i] < 1)
            return false;
    shape->groups = ir_attr_int(op, "group", 1);
    shape->out_channels = dims[0];
    shape->kernel = dims[2] * dims[3];
    return shape->groups > 0 && dims[0] % shape->groups == 0 &&
           i64_mul(dims[1], shape->groups, &shape->in_channels);
}

bool conv_shape_of(const struct ir_op *op, struct conv_shape *shape)
{
    const struct ir_value *bias = ir_operand(op, CONVOLVE_BIAS);
    if ((!ir_op_is(op, IR_OP_Conv) && !ir_op_is(op, IR_OP_convolve)) || op->n_results != 1 ||
        !conv_is_image(ir_operand(op, 0)) || !conv_is_image(ir_operand(op, CONVOLVE_W)) ||
        (bias && !is_float(bias, 1)) || !conv_is_image(&op->results[0]) ||
        !find_channels(op, shape))
        return false;
    const int64_t elements = conv_elements(op->results[0].type);
    int64_t work;
    shape->pixels = elements / shape->out_channels;
    shape->in_pixels = conv_elements(ir_operand(op, 0)->type) / shape->in_channels;
    return !i64_mul(elements, shape->in_channels / shape->groups * shape->kernel, &work) ||
           work >= CONV_MIN_WORK;
}

bool conv_is_depthwise(const struct conv_shape *shape)
{
    return shape->groups > 1 && shape->groups == shape->in_channels &&
           shape->groups == shape->out_channels;
}

bool conv_is_product(const struct conv_shape *shape)
{
    return shape->kernel == 1 && shape->pixels == shape->in_pixels &&
           shape->pixels >= CONV_MANY_PIXELS && !conv_is_depthwise(shape);
}

bool conv_is_one_number(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    return type->kind == TYPE_TENSOR &&
           (type->rank == 0 || (type->rank == 1 && dim_is(type->dims[0], 1)));
}

bool conv_same_dims(const struct ir_type *a, const struct ir_type *b)
{
    bool same = a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

struct ir_op *conv_create(struct ir_graph *graph, const struct ir_op *from)
{
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_convolve), CONVOLVE_OPERANDS, 1);
    if (!op || !ir_op_copy_attrs(graph, op, from))
        return NULL;
    for (uint32_t i = 0; i < CONVOLVE_OPERANDS; i++)
        ir_op_set_operand(op, i, ir_operand(from, i));
    return op;
}

bool conv_set_int(struct ir_graph *graph, struct ir_op *op, const char *name, int64_t value)
{
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, name), .kind = IR_ATTR_INT, .i = value};
    return attr.name && ir_op_set_attr(graph, op, &attr);
}

bool conv_is_computed(const struct pass_context *pass)
{
    return pass_is_for_session(pass) && pass->convolves && pass->convolves();
}
