/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/zero_sign.h"

#include <math.h>

#include "ir/ops.h"

/* Values that are looked at for one answer, and elements of a constant. */
#define MAX_VALUES 128
#define MAX_ELEMENTS (1 << 20)

enum zero_rule {
    UNKNOWN,
    NEVER,  /* what it computes is no -0.0, whatever it is given */
    FIRST,  /* every element is one of the first operand's: so of other types */
    ANY,    /* every element is one of an operand's; these may be all operands */
    ONE_OF, /* a sum: -0.0 when both terms are */
    MINUEND /* a difference: -0.0 when it is -0.0 - 0.0 */
};

static const uint8_t rules[IR_OP_COUNT] = {
    [IR_OP_Exp] = NEVER,
    [IR_OP_Sigmoid] = NEVER,
    [IR_OP_Softmax] = NEVER,
    [IR_OP_Abs] = NEVER,
    [IR_OP_ReduceL1] = NEVER,
    [IR_OP_ReduceL2] = NEVER,
    [IR_OP_ReduceSumSquare] = NEVER,
    [IR_OP_Identity] = FIRST,
    [IR_OP_Reshape] = FIRST,
    [IR_OP_Flatten] = FIRST,
    [IR_OP_Transpose] = FIRST,
    [IR_OP_Squeeze] = FIRST,
    [IR_OP_Unsqueeze] = FIRST,
    [IR_OP_Expand] = FIRST,
    [IR_OP_Tile] = FIRST,
    [IR_OP_Slice] = FIRST,
    [IR_OP_Split] = FIRST,
    [IR_OP_Gather] = FIRST,
    [IR_OP_GatherND] = FIRST,
    [IR_OP_GatherElements] = FIRST,
    [IR_OP_Compress] = FIRST,
    [IR_OP_access] = FIRST,
    [IR_OP_assign] = ANY,
    [IR_OP_Concat] = ANY,
    [IR_OP_Where] = ANY,
    [IR_OP_Max] = ANY,
    [IR_OP_Min] = ANY,
    [IR_OP_Clip] = ANY,
    [IR_OP_Add] = ONE_OF,
    [IR_OP_Sub] = MINUEND,
};

struct search {
    uint32_t n_seen;
};

static bool never(struct search *search, const struct ir_value *value);

bool is_minus_zero(tssa_dtype dtype, const void *element)
{
    double number = dtype_load_double(dtype, element);
    return number == 0 && signbit(number);
}

static bool constant_never(const struct tensor *tensor)
{
    size_t count = tensor_count(tensor), width = dtype_info(tensor->dtype)->size;
    if (count > MAX_ELEMENTS)
        return false;
    for (size_t i = 0; i < count; i++)
        if (is_minus_zero(tensor->dtype, (const char *)tensor->data + i * width))
            return false;
    return true;
}

/* Zeros, or what an attribute says. */
static bool filled_never(const struct ir_op *op)
{
    const struct tensor *value = ir_attr_tensor(op, "value");
    return !value || constant_never(value);
}

static bool all_never(struct search *search, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !never(search, ir_operand(op, i)))
            return false;
    return true;
}

/* What surrounds is 0.0, or the third operand. */
static bool pad_never(struct search *search, const struct ir_op *op)
{
    return never(search, ir_operand(op, 0)) &&
           (!ir_operand(op, 2) || never(search, ir_operand(op, 2)));
}

static bool op_never(struct search *search, const struct ir_op *op)
{
    const struct ir_value *first = ir_operand(op, 0), *second = ir_operand(op, 1);
    if (ir_op_is(op, IR_OP_Cast)) /* of integers */
        return !dtype_is_float(first->type->dtype) && never(search, first);
    if (ir_op_is(op, IR_OP_ConstantOfShape))
        return filled_never(op);
    if (ir_op_is(op, IR_OP_Pad))
        return pad_never(search, op);
    switch (rules[op->info->id]) {
    case NEVER:
        return true;
    case FIRST:
        return first && never(search, first);
    case ANY:
        return all_never(search, op);
    case ONE_OF:
        return never(search, first) || never(search, second);
    case MINUEND:
        return never(search, first);
    default:
        return false;
    }
}

static bool never(struct search *search, const struct ir_value *value)
{
    const struct tensor *constant = ir_value_constant(value);
    const struct ir_type *type = value->type;
    if (type->kind != TYPE_TENSOR || type->dtype == TSSA_UNDEFINED || ++search->n_seen > MAX_VALUES)
        return false;
    if (dtype_is_integer(type->dtype) || type->dtype == TSSA_BOOL)
        return true;
    if (!dtype_is_float(type->dtype))
        return false;
    if (constant)
        return constant_never(constant);
    return value->op && op_never(search, value->op);
}

bool never_minus_zero(const struct ir_value *value)
{
    struct search search = {0};
    return never(&search, value);
}
