/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/products.h"

const struct tensor *product_constant(const struct ir_value *value, int rank)
{
    const struct tensor *tensor = value ? ir_value_constant(value) : NULL;
    bool fits = tensor && (tensor->dtype == TSSA_FLOAT || tensor->dtype == TSSA_DOUBLE ||
                           tensor->dtype == TSSA_FLOAT16);
    return fits && (rank < 0 || tensor->rank == rank) ? tensor : NULL;
}

static bool open_conv(struct ir_op *op, struct product *p)
{
    p->w = product_constant(ir_operand(op, 1), -1);
    p->groups = ir_attr_int(op, "group", 1);
    p->turned = ir_op_is(op, IR_OP_ConvTranspose);
    if (!p->w || p->w->rank < 3 || p->groups < 1 || p->w->dims[0] % p->groups != 0)
        return false;
    int64_t all = p->w->dims[0], of_group = p->w->dims[1];
    p->out = p->turned ? of_group * p->groups : all;
    p->in = p->turned ? all : of_group * p->groups;
    p->inner = 1;
    for (int i = 2; i < p->w->rank; i++)
        p->inner *= p->w->dims[i];
    p->step_in = p->turned ? p->inner * of_group : p->inner;
    p->step_out = p->turned ? p->inner : p->inner * of_group;
    p->rank = p->w->rank;
    p->in_axis = p->out_axis = 1;
    p->has_bias = true;
    return true;
}

static bool open_matrix(struct ir_op *op, struct product *p)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    bool turned = ir_op_is(op, IR_OP_Gemm) && ir_attr_int(op, "transB", 0) != 0;
    p->w = product_constant(ir_operand(op, 1), 2);
    p->has_bias = ir_op_is(op, IR_OP_Gemm);
    if (!p->w || type->kind != TYPE_TENSOR || type->rank < 2 ||
        (p->has_bias &&
         (ir_attr_int(op, "transA", 0) != 0 ||
          !(ir_attr_float(op, "alpha", 1) == 1 && ir_attr_float(op, "beta", 1) == 1))))
        return false;
    p->groups = p->inner = 1;
    p->in = p->w->dims[turned];
    p->out = p->w->dims[!turned];
    p->step_in = turned ? 1 : p->out;
    p->step_out = turned ? p->in : 1;
    p->rank = type->rank;
    p->in_axis = p->out_axis = type->rank - 1;
    return true;
}

bool product_open(struct ir_op *op, struct product *p)
{
    *p = (struct product){.op = op};
    if (!ir_operand(op, 0))
        return false;
    bool known = ir_op_is(op, IR_OP_Conv) || ir_op_is(op, IR_OP_ConvTranspose) ? open_conv(op, p)
                 : ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm)      ? open_matrix(op, p)
                                                                               : false;
    if (!known || p->in < 1 || p->out < 1 || p->inner < 1)
        return false;
    struct ir_value *bias = p->has_bias ? ir_operand(op, 2) : NULL;
    p->bias = product_constant(bias, 1);
    return !bias || (p->bias && p->bias->dtype == p->w->dtype && p->bias->dims[0] == p->out);
}

double product_number(const struct tensor *tensor, int64_t index)
{
    if (tensor->dtype == TSSA_FLOAT)
        return (double)((const float *)tensor->data)[index];
    return tensor->dtype == TSSA_DOUBLE
               ? ((const double *)tensor->data)[index]
               : (double)half_to_float(((const uint16_t *)tensor->data)[index]);
}
