/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of float16 and bfloat16 are kept in float32 from one convolution to the next, and still
 * rounded after each operator:
 *
 *     b = Conv(a, w), c = Relu(b), d = Conv(c, w) of f16
 *       ->   b' = Conv(Cast(a), w'), c' = Relu(b'), c = Cast(c', f16),
 *            d = Cast(Conv(Cast(c), w'), f16), with w' of f32
 *
 * A library convolves float32 only, in layouts of its own and with what is done to its sums; Conv
 * of these types converts all that it reads and writes. The Casts to the type and back are put into
 * the kernels around them, or are one of their own, in place (fuse). Taken are convolutions of
 * images, and what computes images of theirs: element-wise operators, windows, reductions, Concat;
 * and products with constants (Gemm), with which such networks end. Constants are widened once.
 * What only compares the result of a convolution (Relu, Clip, MaxPool) does so before that is
 * rounded, which is the same, and may be the library's then (append_to_convs). What chooses of
 * elements that are rounded (MaxPool, Concat) is not rounded again.
 *
 *   needs   types; only in sessions whose library computes convolve (pipeline.convolves)
 *   keeps   results' bits, but for what a library sums otherwise, and the sign of a zero that a
 *           convolution is rounded to
 *   breaks  Casts may be there twice (common_subexpressions), or lose their uses (dead_code)
 */
#include "ir/clone.h"
#include "ir/infer.h"
#include "passes/lower/convs.h"
#include "passes/lower/halves.h"

static bool is_half_image(const struct ir_value *value)
{
    return half_is(value) && value->type->rank == 4;
}

/* ---- Which ops ------------------------------------------------------------------------------- */

static bool is_half_conv(const struct ir_op *op)
{
    const struct ir_value *bias = ir_operand(op, CONVOLVE_BIAS);
    return ir_op_is(op, IR_OP_Conv) && is_half_image(ir_operand(op, CONVOLVE_X)) &&
           is_half_image(ir_operand(op, CONVOLVE_W)) && (!bias || half_is(bias));
}

static bool computes(const struct ir_op *op)
{
    switch (op->info->cls) {
    case IR_CLASS_ELEMENTWISE:
        return op->info->ew && !half_is_cast(op);
    case IR_CLASS_REDUCTION:
    case IR_CLASS_WINDOW:
        return true;
    default:
        return ir_op_is(op, IR_OP_Concat);
    }
}

/* A product with a constant, which is widened in each run else. */
static bool is_half_gemm(const struct ir_op *op)
{
    const struct ir_value *a = ir_operand(op, 0), *w = ir_operand(op, 1), *c = ir_operand(op, 2);
    return ir_op_is(op, IR_OP_Gemm) && half_is(a) && half_is(w) && ir_value_constant(w) &&
           (!c || half_is(c));
}

/* Of images that are kept in float32, constants aside, one image. */
static bool computes_wide(const struct ir_op *op)
{
    return !op->n_blocks && op->n_results > 0 && (op->info->flags & IR_PURE) &&
           !(op->info->flags & IR_RANDOM) && (op->info->types & DTYPE_BIT(TSSA_FLOAT)) &&
           computes(op) && is_half_image(&op->results[0]) && !ir_result_wanted(op, 1) &&
           halves_were_rounded(op);
}

/* ---- What is rounded ------------------------------------------------------------------------- */

/* Comparing commutes with rounding. */
static bool compares(const struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_Relu) || ir_op_is(op, IR_OP_MaxPool))
        return true;
    bool known = ir_op_is(op, IR_OP_Clip);
    for (uint32_t i = 1; known && i < op->n_operands; i++)
        known = !ir_operand(op, i) || ir_value_constant(ir_operand(op, i));
    return known;
}

/* Is it a convolution's result, a library's, or what one comparison made of it, not rounded yet? */
static bool is_of_sums(const struct ir_value *value)
{
    struct conv_shape shape;
    const struct ir_op *op = value->op;
    if (op && compares(op) && ir_operand(op, 0))
        op = ir_operand(op, 0)->op;
    return op && ir_op_is(op, IR_OP_Conv) && conv_shape_of(op, &shape);
}

/* What the value is rounded from, where that is of sums and nothing but the op reads it; else NULL.
 */
static struct ir_value *sums_for(const struct ir_op *op, const struct ir_value *value)
{
    struct ir_value *from = half_rounded_from(value);
    const bool alone = value->uses && !value->uses->next && from && from->uses && !from->uses->next;
    return alone && value->op->parent == op->parent && is_of_sums(from) ? from : NULL;
}

/* Is the op one that chooses, of elements that were all rounded? */
static bool chooses(const struct ir_op *op)
{
    if (!op || (!ir_op_is(op, IR_OP_MaxPool) && !ir_op_is(op, IR_OP_Concat)))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (!value || !half_is_cast(value->op) || !half_is(ir_operand(value->op, 0)))
            return false;
    }
    return true;
}

static tssa_status *find_wide(struct halves *h, const struct ir_op *op, struct ir_value *value,
                              struct ir_value **wide)
{
    *wide = compares(op) && !ir_value_constant(value) ? sums_for(op, value) : NULL;
    if (*wide)
        return NULL;
    *wide = half_rounded_from(value);
    return *wide && chooses((*wide)->op) ? NULL : half_widened(h, value, wide);
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

static tssa_status *take(void *context, struct ir_op *op)
{
    struct halves *h = context;
    if (!is_half_conv(op) && !is_half_gemm(op) && !computes_wide(op))
        return NULL;
    const tssa_dtype dtype = op->results[0].type->dtype;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i), *wide;
        if (!half_is(value))
            continue;
        TRY(find_wide(h, op, value, &wide));
        ir_op_set_operand(op, i, wide);
    }
    ir_forget_declared(op);
    TRY(ir_infer_op_lenient(op));
    h->pass->changed = true;
    return op->results[0].uses ? half_round(h->pass, op, 0, dtype) : NULL;
}

static tssa_status *find_half_conv(void *context, struct ir_op *op)
{
    *(bool *)context |= is_half_conv(op);
    return NULL;
}

tssa_status *pass_widen_convs(struct pass_context *pass)
{
    bool any = false;
    struct halves h;
    TRY(ir_block_walk(pass->graph->body, find_half_conv, &any));
    if (!any || !conv_is_computed(pass))
        return NULL;
    TRY(halves_open(pass, &h));
    tssa_status *status = ir_block_walk(pass->graph->body, take, &h);
    halves_close(&h);
    return status;
}
