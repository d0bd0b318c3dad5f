/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear of one scale as steps; see ir/quantization.h. */
#include "ir/quantization.h"
#include "gir/scalars.h"

static uint32_t make(struct gir_maker *maker, enum scalar_id id, uint32_t a, uint32_t b)
{
    return gir_make_scalar(maker, id, TSSA_FLOAT, (uint32_t[]){a, b});
}

static uint32_t zero_of(struct gir_maker *maker, const struct ir_op *op, const uint32_t *operands)
{
    return ir_operand(op, 2) ? gir_make_as(maker, operands[2], TSSA_FLOAT)
                             : gir_make_number(maker, TSSA_FLOAT, 0);
}

/* The value if it compares so with the bound, which NaN does not; else the bound. */
static uint32_t hold(struct gir_maker *maker, enum scalar_id compares, uint32_t value,
                     uint32_t bound)
{
    const uint32_t is_within =
        gir_make_scalar(maker, compares, TSSA_BOOL, (uint32_t[]){value, bound});
    return gir_make_scalar(maker, SCALAR_SEL, TSSA_FLOAT, (uint32_t[]){is_within, value, bound});
}

static uint32_t quantize(struct gir_maker *maker, const struct ir_op *op, const uint32_t *operands)
{
    const tssa_dtype to = op->results[0].type->dtype;
    const uint32_t low = gir_make_as(maker, gir_make_bound(maker, to, true), TSSA_FLOAT),
                   high = gir_make_as(maker, gir_make_bound(maker, to, false), TSSA_FLOAT),
                   quotient = make(maker, SCALAR_DIV, operands[0], operands[1]);
    uint32_t value = gir_make_scalar(maker, SCALAR_ROUND, TSSA_FLOAT, &quotient);
    value = make(maker, SCALAR_ADD, value, zero_of(maker, op, operands));
    value = hold(maker, SCALAR_GT, value, low);
    return gir_make_as(maker, hold(maker, SCALAR_LT, value, high), to);
}

static bool is_scalar(const struct gir_maker *maker, uint32_t value, enum scalar_id id)
{
    const struct gir_code *code = &maker->codes[value];
    return code->op == GIR_SCALAR && code->scalar == id && code->type == TSSA_FLOAT;
}

/* Is it what `hold` makes of another value, which it then is? */
static bool is_held(struct gir_maker *maker, enum scalar_id compares, uint32_t bound,
                    uint32_t *value)
{
    if (!is_scalar(maker, *value, SCALAR_SEL))
        return false;
    const uint32_t within = maker->codes[*value].operands[1];
    if (hold(maker, compares, within, bound) != *value)
        return false;
    *value = within;
    return true;
}

/* Is it no fraction and not -0, as the sum of a rounded number and of one that was an integer? */
static bool is_whole(const struct gir_maker *maker, uint32_t value)
{
    if (!is_scalar(maker, value, SCALAR_ADD))
        return false;
    const struct gir_code *zero = &maker->codes[maker->codes[value].operands[1]];
    return is_scalar(maker, maker->codes[value].operands[0], SCALAR_ROUND) &&
           (zero->op == GIR_CONSTANT
                ? zero->bits == 0
                : zero->op == GIR_CONVERT && dtype_in(T_INT, maker->codes[zero->operands[0]].type));
}

/* What was quantized, as a float: that which became an integer is there still, and is the same. */
static uint32_t as_float(struct gir_maker *maker, uint32_t value)
{
    if (maker->why)
        return gir_make_as(maker, value, TSSA_FLOAT);
    const struct gir_code code = maker->codes[value];
    const tssa_dtype type = (tssa_dtype)code.type;
    if (code.op == GIR_CONVERT && dtype_in(T_INT, type)) {
        const uint32_t low = gir_make_as(maker, gir_make_bound(maker, type, true), TSSA_FLOAT),
                       high = gir_make_as(maker, gir_make_bound(maker, type, false), TSSA_FLOAT);
        uint32_t from = code.operands[0];
        if (!maker->why && is_held(maker, SCALAR_LT, high, &from) &&
            is_held(maker, SCALAR_GT, low, &from) && is_whole(maker, from))
            return code.operands[0];
    }
    return gir_make_as(maker, value, TSSA_FLOAT);
}

uint32_t gir_make_quantization(struct gir_maker *maker, const struct ir_op *op,
                               const uint32_t *operands)
{
    if (ir_op_is(op, IR_OP_QuantizeLinear))
        return quantize(maker, op, operands);
    const uint32_t x = as_float(maker, operands[0]);
    return make(maker, SCALAR_MUL, make(maker, SCALAR_SUB, x, zero_of(maker, op, operands)),
                operands[1]);
}
