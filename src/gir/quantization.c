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

uint32_t gir_make_quantization(struct gir_maker *maker, const struct ir_op *op,
                               const uint32_t *operands)
{
    if (ir_op_is(op, IR_OP_QuantizeLinear))
        return quantize(maker, op, operands);
    const uint32_t x = gir_make_as(maker, operands[0], TSSA_FLOAT);
    return make(maker, SCALAR_MUL, make(maker, SCALAR_SUB, x, zero_of(maker, op, operands)),
                operands[1]);
}
