/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that have rows as steps; see rows.h. The compositions are those of kernels/cpu/normalization,
 * operation by operation, for the same bits.
 */
#include "gir/rows.h"

#include "ir/row.h"

static uint32_t refuse(struct gir_maker *maker, const char *why)
{
    if (!maker->why)
        maker->why = why;
    return 0;
}

/* An operation of one type: its operands' and its own. */
struct composer {
    struct gir_maker *maker;
    tssa_dtype type;
};

static uint32_t of_two(const struct composer *c, enum scalar_id id, uint32_t a, uint32_t b)
{
    return gir_make_scalar(c->maker, id, c->type, (uint32_t[]){a, b});
}

static uint32_t of_one(const struct composer *c, enum scalar_id id, uint32_t a)
{
    return gir_make_scalar(c->maker, id, c->type, &a);
}

static uint32_t reduce(struct composer *c, enum reduction_row row, uint32_t value, uint32_t shift)
{
    return gir_make_reduction(c->maker, row, value, shift, &c->type);
}

/* Of FLOAT a softmax is multiplied by the sum's reciprocal, of DOUBLE it is divided by the sum. */
static uint32_t make_softmax(struct composer *c, uint32_t x, bool is_log)
{
    const uint32_t most = reduce(c, REDUCTION_Max, x, GIR_NONE),
                   shifted = of_two(c, SCALAR_SUB, x, most), e = of_one(c, SCALAR_EXP, shifted),
                   sum = reduce(c, REDUCTION_Sum, e, GIR_NONE);
    if (is_log)
        return of_two(c, SCALAR_SUB, shifted, of_one(c, SCALAR_LOG, sum));
    if (c->type == TSSA_DOUBLE)
        return of_two(c, SCALAR_DIV, e, sum);
    const uint32_t one = gir_make_number(c->maker, c->type, 1);
    return of_two(c, SCALAR_MUL, e, of_two(c, SCALAR_DIV, one, sum));
}

static uint32_t make_layer(struct composer *c, const struct ir_op *op, uint32_t x,
                           const uint32_t *operands)
{
    const bool rms = ir_op_is(op, IR_OP_RMSNormalization);
    const double epsilon = (double)ir_attr_float(op, "epsilon", 1e-5f);
    uint32_t value = x, variance;
    if (rms) {
        variance = reduce(c, REDUCTION_MeanSquare, x, GIR_NONE);
    } else {
        const uint32_t mean = reduce(c, REDUCTION_Mean, x, GIR_NONE);
        variance = reduce(c, REDUCTION_Variance, x, mean);
        value = of_two(c, SCALAR_SUB, x, mean);
    }
    variance = of_two(c, SCALAR_ADD, variance, gir_make_number(c->maker, c->type, epsilon));
    const uint32_t one = gir_make_number(c->maker, c->type, 1),
                   inverse = of_two(c, SCALAR_DIV, one, of_one(c, SCALAR_SQRT, variance));
    value = of_two(c, SCALAR_MUL, value, inverse);
    value = of_two(c, SCALAR_MUL, value, gir_make_as(c->maker, operands[1], c->type));
    if (!rms && op->n_operands > 2 && operands[2] != GIR_NONE)
        value = of_two(c, SCALAR_ADD, value, gir_make_as(c->maker, operands[2], c->type));
    return value;
}

static bool is_arg(const struct ir_op *op)
{
    return (ir_op_is(op, IR_OP_ArgMax) || ir_op_is(op, IR_OP_ArgMin)) && ir_row_axes(op) == 1;
}

/* Where the extreme is: the first or the last position of an element that is equal to it. NaN is
 * beyond all: where there is one, so is the extreme, which none is equal to, and else none is. */
static uint32_t make_arg(struct composer *c, const struct ir_op *op, uint32_t value)
{
    struct gir_maker *maker = c->maker;
    const struct ir_type *type = ir_operand(op, 0)->type;
    const bool last = ir_attr_int(op, "select_last_index", 0) != 0;
    const struct dim *length = type->dims[type->rank - 1];
    if (!dim_at_least(length, 1))
        return refuse(maker, "there may be no element to choose");
    const bool is_least = ir_op_is(op, IR_OP_ArgMin);
    const uint32_t x = gir_make_as(maker, value, c->type);
    const uint32_t most = reduce(c, is_least ? REDUCTION_Min : REDUCTION_Max, value, GIR_NONE);
    uint32_t equal = gir_make_scalar(maker, SCALAR_EQ, TSSA_BOOL, (uint32_t[]){x, most});
    if (dtype_is_float(c->type)) {
        const uint32_t no_number = gir_make_scalar(maker, SCALAR_ISNAN, TSSA_BOOL, &x);
        equal = gir_make_scalar(maker, SCALAR_OR, TSSA_BOOL, (uint32_t[]){equal, no_number});
    }
    const bool narrow = length->high <= INT32_MAX;
    const tssa_dtype as = narrow ? TSSA_INT32 : TSSA_INT64;
    const uint32_t at = gir_make(maker, (struct gir_code){.op = GIR_POSITION, .type = (uint8_t)as});
    const uint32_t none = gir_make_number(maker, as, last ? -1 : narrow ? INT32_MAX : 0x1p62);
    const uint32_t found = gir_make_scalar(maker, SCALAR_SEL, as, (uint32_t[]){equal, at, none});
    return maker->why ? 0
                      : gir_make(maker, (struct gir_code){.op = GIR_REDUCE,
                                                          .scalar = last ? SCALAR_MAX : SCALAR_MIN,
                                                          .type = (uint8_t)as,
                                                          .operands = {found},
                                                          .bits = maker->codes[none].bits});
}

uint32_t gir_make_row_op(struct gir_maker *maker, const struct ir_op *op, const uint32_t *operands)
{
    const tssa_dtype dtype = ir_operand(op, 0)->type->dtype, result = op->results[0].type->dtype;
    struct composer c = {maker, reduction_type(REDUCTION_Max, dtype)};
    uint32_t value;
    if (maker->why)
        return 0;
    if (!dtype_in(T_FLOAT | T_INT, dtype) || !dtype_in(T_FLOAT | T_INT, result))
        return refuse(maker, "kernels have no such elements");
    if (op->info->reduction)
        return gir_make_as(maker, reduce(&c, op->info->reduction->row, operands[0], GIR_NONE),
                           result);
    if (is_arg(op))
        return gir_make_as(maker, make_arg(&c, op, operands[0]), result);
    const uint32_t x = gir_make_as(maker, operands[0], c.type);
    switch (op->info->id) {
    case IR_OP_Softmax:
    case IR_OP_LogSoftmax:
        value = make_softmax(&c, x, ir_op_is(op, IR_OP_LogSoftmax));
        break;
    case IR_OP_LayerNormalization:
    case IR_OP_RMSNormalization:
        value = make_layer(&c, op, x, operands);
        break;
    default:
        return refuse(maker, "kernels do not compute it");
    }
    return gir_make_as(maker, value, result);
}
