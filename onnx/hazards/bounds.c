/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/hazards/bounds.h"

#include "base/alloc.h"
#include "ir/wrap.h"

/* Values that are looked at for one bound, and elements of a constant. */
#define MAX_VALUES 64
#define MAX_ELEMENTS (1 << 16)

/* An INT64 tensor of more elements takes more than 8 GiB. */
#define MAX_LENGTH (INT64_C(1) << 30)

static const struct range everything = {INT64_MIN, INT64_MAX};
static const struct range sizes = {0, DIM_SIZE_LIMIT};

struct search {
    uint32_t n_seen;
};

static struct range bounds(struct search *search, const struct ir_value *value);

static struct range type_bounds(tssa_dtype dtype)
{
    struct range range = everything;
    return wrap_limits(dtype, &range.low, &range.high) ? range : everything;
}

static struct range join(struct range a, struct range b)
{
    return (struct range){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

static bool is_bounded(struct range range)
{
    return range.low != INT64_MIN && range.high != INT64_MAX;
}

/* ---- What is known of elements --------------------------------------------------------------- */

static struct range constant_bounds(const struct tensor *tensor)
{
    size_t count = tensor_count(tensor), width = dtype_info(tensor->dtype)->size;
    bool integer = dtype_is_integer(tensor->dtype) || tensor->dtype == TSSA_BOOL;
    struct range range = {0, 0};
    if (count > MAX_ELEMENTS || width == 0 || !integer || tensor->dtype == TSSA_UINT64)
        return type_bounds(tensor->dtype);
    for (size_t i = 0; i < count; i++) {
        int64_t number = dtype_load_int64(tensor->dtype, (const char *)tensor->data + i * width);
        range = i ? join(range, (struct range){number, number}) : (struct range){number, number};
    }
    return range;
}

static struct range known_bounds(const struct ir_known *known)
{
    struct range range = {0, 0};
    for (size_t i = 0; i < known->count; i++) {
        if (!known->elements[i])
            return everything;
        struct range element = range_of(known->elements[i], RANGE_ON_MACHINES);
        range = i ? join(range, element) : element;
    }
    return range;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static struct range operand_bounds(struct search *search, const struct ir_op *op, uint32_t index)
{
    const struct ir_value *value = ir_operand(op, index);
    return value ? bounds(search, value) : everything;
}

/* Any of the operands from `first` on. */
static struct range one_of(struct search *search, const struct ir_op *op, uint32_t first)
{
    struct range range = operand_bounds(search, op, first);
    for (uint32_t i = first + 1; i < op->n_operands; i++)
        range = join(range, operand_bounds(search, op, i));
    return range;
}

static struct range product(struct range a, struct range b)
{
    int64_t ends[4];
    if (!i64_mul(a.low, b.low, &ends[0]) || !i64_mul(a.low, b.high, &ends[1]) ||
        !i64_mul(a.high, b.low, &ends[2]) || !i64_mul(a.high, b.high, &ends[3]))
        return everything;
    struct range range = {ends[0], ends[0]};
    for (int i = 1; i < 4; i++)
        range = join(range, (struct range){ends[i], ends[i]});
    return range;
}

/* The rest has the sign of the divisor, or with fmod that of what is divided. */
static struct range rest(const struct ir_op *op, struct range divisor)
{
    if (!is_bounded(divisor) || divisor.low < 1)
        return everything;
    return (struct range){ir_attr_int(op, "fmod", 0) ? 1 - divisor.high : 0, divisor.high - 1};
}

static struct range chosen(struct range a, struct range b, bool larger)
{
    if (larger)
        return (struct range){a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
    return (struct range){a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

static struct range extreme(struct search *search, const struct ir_op *op)
{
    struct range range = operand_bounds(search, op, 0);
    for (uint32_t i = 1; i < op->n_operands; i++)
        range = chosen(range, operand_bounds(search, op, i), ir_op_is(op, IR_OP_Max));
    return range;
}

static struct range clipped(struct search *search, const struct ir_op *op)
{
    struct range range = operand_bounds(search, op, 0);
    if (ir_operand(op, 1))
        range = chosen(range, operand_bounds(search, op, 1), true);
    if (ir_operand(op, 2))
        range = chosen(range, operand_bounds(search, op, 2), false);
    return range;
}

/* Upwards by one. */
static struct range counted(struct search *search, const struct ir_op *op)
{
    struct range start = operand_bounds(search, op, 0), delta = operand_bounds(search, op, 2);
    if (delta.low != 1 || delta.high != 1)
        return everything;
    return range_add(start, (struct range){0, MAX_LENGTH});
}

static struct range arithmetic_bounds(struct search *search, const struct ir_op *op)
{
    struct range a = operand_bounds(search, op, 0);
    switch (op->info->id) {
    case IR_OP_Add:
        return range_add(a, operand_bounds(search, op, 1));
    case IR_OP_Sub:
        return range_add(a, range_scale(operand_bounds(search, op, 1), -1));
    case IR_OP_Mul:
        return product(a, operand_bounds(search, op, 1));
    case IR_OP_Mod:
        return rest(op, operand_bounds(search, op, 1));
    case IR_OP_Neg:
        return range_scale(a, -1);
    case IR_OP_Cast: {
        tssa_dtype from = ir_operand(op, 0)->type->dtype;
        return dtype_is_integer(from) || from == TSSA_BOOL ? a : everything;
    }
    default:
        return everything;
    }
}

/* What may wrap around may be anything. */
static struct range unless_it_wraps(struct range range)
{
    return is_bounded(range) ? range : everything;
}

static struct range op_bounds(struct search *search, const struct ir_op *op)
{
    if (op->info->flags & IR_MOVES)
        return operand_bounds(search, op, 0);
    switch (op->info->id) {
    case IR_OP_Where:
        return one_of(search, op, 1);
    case IR_OP_Concat:
        return one_of(search, op, 0);
    case IR_OP_Shape:
    case IR_OP_ArgMax:
    case IR_OP_ArgMin:
    case IR_OP_NonZero:
        return sizes;
    case IR_OP_Range:
        return unless_it_wraps(counted(search, op));
    case IR_OP_Max:
    case IR_OP_Min:
        return extreme(search, op);
    case IR_OP_Clip:
        return clipped(search, op);
    default:
        return unless_it_wraps(arithmetic_bounds(search, op));
    }
}

static struct range made_bounds(struct search *search, const struct ir_value *value)
{
    const struct tensor *constant = ir_value_constant(value);
    const struct ir_op *owner = value->block ? value->block->owner : NULL;
    if (constant)
        return constant_bounds(constant);
    if (owner && ir_op_is(owner, IR_OP_Loop) && value->index == 0)
        return sizes; /* the iteration number */
    struct range range = value->known ? known_bounds(value->known) : everything;
    if (!is_bounded(range) && value->op)
        range = op_bounds(search, value->op);
    return range;
}

static struct range bounds(struct search *search, const struct ir_value *value)
{
    if (value->type->kind != TYPE_TENSOR)
        return everything;
    struct range all = type_bounds(value->type->dtype);
    if (++search->n_seen > MAX_VALUES)
        return all;
    struct range range = made_bounds(search, value);
    return range.low >= all.low && range.high <= all.high ? range : all;
}

struct range hazard_bounds(const struct ir_value *value)
{
    struct search search = {0};
    return bounds(&search, value);
}
