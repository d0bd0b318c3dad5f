/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is dequantized, moved and quantized again is moved as bytes:
 *
 *     Reshape(DequantizeLinear(x))          ->  DequantizeLinear(Reshape(x))
 *     MaxPool(DequantizeLinear(x))          ->  DequantizeLinear(MaxPool(x)), of a positive scale
 *     QuantizeLinear(DequantizeLinear(x))   ->  x, of the same scale and zero point
 *
 * so that a DequantizeLinear stands before what computes, which is one kernel with it, and
 * Transposes move a fourth of the bytes. A quantizer of PyTorch's exporter or ONNX Runtime's puts
 * both around each Reshape, Transpose and Slice.
 *
 * The second needs a scale between 2^-100 and 2^100: then x - zero, of 17 bits at most, times the
 * scale neither overflows nor underflows, and what is divided again is off by less than 2^-6, and
 * rounded back. A DequantizeLinear that others read as well stays for them; the movement goes
 * before one of its own where that is quantized again at once.
 *
 *   needs   movements as ops or accesses; before multiply_bytes, which finds its operands then
 *   keeps   all results' bits
 *   breaks  DequantizeLinears may lose their uses (dead_code)
 *
 * Only in sessions: other runtimes look for these ops where the model has them (pinned.c).
 */
#include <string.h>

#include "ir/clone.h"
#include "ir/quantization.h"
#include "ir/rule.h"
#include "passes/pass.h"

#define LEAST_SCALE 0x1p-100f
#define MOST_SCALE 0x1p100f

struct sinking {
    struct pass_context *pass;
    struct ir_cloner cloner;
};

/* ---- Scales ---------------------------------------------------------------------------------- */

static const struct tensor *constant_of(const struct ir_op *op, uint32_t operand)
{
    const struct ir_value *value = ir_operand(op, operand);
    return value ? ir_value_constant(value) : NULL;
}

static bool scale_of(const struct ir_op *op, float *scale)
{
    const struct tensor *tensor = constant_of(op, 1);
    if (!tensor || tensor_count(tensor) != 1 || tensor->dtype != TSSA_FLOAT)
        return false;
    memcpy(scale, tensor->data, sizeof *scale);
    return true;
}

/* The zero point, 0 where there is none. */
static bool zero_of(const struct ir_op *op, int64_t *zero)
{
    const struct tensor *tensor = constant_of(op, 2);
    *zero = 0;
    if (!ir_operand(op, 2))
        return true;
    if (!tensor || tensor_count(tensor) != 1)
        return false;
    *zero = dtype_load_int64(tensor->dtype, tensor->data);
    return true;
}

/* Does the first give back what the second has dequantized? */
static bool undoes(const struct ir_op *quantize, const struct ir_op *dequantize)
{
    float scale, other;
    int64_t zero, other_zero;
    if (!ir_op_is(quantize, IR_OP_QuantizeLinear) || !ir_quantizes_elements(quantize) ||
        quantize->results[0].type->dtype != ir_operand(dequantize, 0)->type->dtype ||
        !scale_of(quantize, &scale) || !scale_of(dequantize, &other) || !zero_of(quantize, &zero) ||
        !zero_of(dequantize, &other_zero))
        return false;
    const float size = scale < 0 ? -scale : scale;
    return scale == other && zero == other_zero && size >= LEAST_SCALE && size <= MOST_SCALE;
}

/* The op that the value is dequantized by, of what is computed; NULL: it is not. */
static struct ir_op *dequantizer_of(const struct ir_value *value)
{
    struct ir_op *op = value ? value->op : NULL;
    if (!op || !ir_op_is(op, IR_OP_DequantizeLinear) || !ir_quantizes_elements(op) ||
        constant_of(op, 0))
        return NULL;
    return op;
}

/* ---- Movements ------------------------------------------------------------------------------- */

static bool moves(const struct ir_op *op)
{
    return !op->opaque && op->n_results == 1 && op->n_blocks == 0 &&
           (ir_op_is(op, IR_OP_access) || ir_op_keeps_order(op) || op->info->rule);
}

/*
 * Is each element of the result the largest of some of them, and of at least one? Then it is that
 * of the bytes, if larger bytes are larger numbers. No pad is as large as the kernel, so that all
 * windows reach into the image.
 */
static bool takes_largest(const struct ir_op *op, const struct ir_op *dequantize)
{
    size_t n_kernel, n;
    float scale;
    const int64_t *kernel = ir_attr_ints(op, "kernel_shape", &n_kernel);
    if (!ir_op_is(op, IR_OP_MaxPool) || op->opaque || ir_result_wanted(op, 1) || !kernel ||
        n_kernel == 0 || ir_attr_int(op, "ceil_mode", 0) ||
        !dtype_in(T_I8U8, ir_operand(dequantize, 0)->type->dtype) ||
        !scale_of(dequantize, &scale) || !(scale > 0))
        return false;
    const int64_t *dilations = ir_attr_ints(op, "dilations", &n);
    for (size_t i = 0; dilations && i < n; i++)
        if (dilations[i] != 1)
            return false;
    const int64_t *pads = ir_attr_ints(op, "pads", &n);
    for (size_t i = 0; pads && i < n; i++)
        if (pads[i] >= kernel[i % n_kernel])
            return false;
    return !pads || n == 2 * n_kernel;
}

/* May there be more elements behind it? */
static bool repeats(const struct ir_op *op)
{
    static const uint32_t kinds = 1u << RULE_EXPAND | 1u << RULE_TILE | 1u << RULE_GATHER;
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    bool found = false;
    for (uint32_t i = 0; rule && i < rule->n_steps; i++)
        found |= kinds >> rule->steps[i].kind & 1;
    return found || ir_op_is(op, IR_OP_Expand) || ir_op_is(op, IR_OP_Tile) ||
           ir_op_is(op, IR_OP_Gather);
}

/* Is what the op moves only read by what undoes the dequantizer? */
static bool is_undone(const struct ir_op *op, const struct ir_op *dequantize)
{
    const struct ir_use *use = op->results[0].uses;
    while (use && undoes(use->user, dequantize))
        use = use->next;
    return op->results[0].uses && !use;
}

static bool is_alone(const struct ir_value *value)
{
    return value->uses && !value->uses->next;
}

static bool may_sink(const struct ir_op *op, const struct ir_op *dequantize)
{
    return (moves(op) || takes_largest(op, dequantize)) &&
           (is_undone(op, dequantize) || (is_alone(&dequantize->results[0]) && !repeats(op)));
}

static tssa_status *sink(struct sinking *s, struct ir_op *op, const struct ir_op *dequantize)
{
    struct ir_op *moved, *behind;
    ir_cloner_reset(&s->cloner);
    if (!ir_cloner_map(&s->cloner, ir_operand(op, 0), ir_operand(dequantize, 0)))
        return status_out_of_memory();
    TRY_ALLOC(moved = ir_clone_op(&s->cloner, op));
    if (ir_op_is(op, IR_OP_MaxPool))
        moved->version = ir_op_bind(op->info, IR_NEWEST_OPSET); /* older ones take no bytes */
    ir_forget_declared(moved);
    TRY(pass_insert(moved, op));
    ir_cloner_reset(&s->cloner);
    if (!ir_cloner_map(&s->cloner, ir_operand(dequantize, 0), &moved->results[0]))
        return status_out_of_memory();
    TRY_ALLOC(behind = ir_clone_op(&s->cloner, dequantize));
    ir_forget_declared(behind);
    return pass_replace(s->pass, op, behind);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct sinking *s = context;
    const struct ir_op *dequantize = op->n_operands ? dequantizer_of(ir_operand(op, 0)) : NULL;
    if (!dequantize)
        return NULL;
    if (may_sink(op, dequantize))
        return sink(s, op, dequantize);
    if (!undoes(op, dequantize))
        return NULL;
    ir_value_replace(&op->results[0], ir_operand(dequantize, 0));
    s->pass->changed = true;
    return NULL;
}

tssa_status *pass_sink_dequantizes(struct pass_context *pass)
{
    struct sinking s = {.pass = pass};
    if (!pass_is_for_session(pass))
        return NULL;
    ir_cloner_init(&s.cloner, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &s);
    ir_cloner_free(&s.cloner);
    return status;
}
