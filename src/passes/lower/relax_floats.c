/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of float16 and bfloat16 are computed in float32, and rounded where they end:
 *
 *     Clip(Conv(x, w)) of f16   ->   Cast(Clip(Conv(Cast(x), w')), f16), with w' of f32
 *
 * What computes floats (element-wise operators, products, windows, reductions, normalizations,
 * recurrent ones) is in a chain, and so is what moves the elements of one, and a Cast in it. A
 * chain ends where something else reads it: an output of the graph, another type, a branch's or an
 * iteration's result, an operator that tssa does not have. Constants are widened once. Each
 * operator of these types is computed in float32 anyway, and rounded once: here is no rounding in
 * between, and nobody converts. An operator alone has the same bits.
 *
 * By itself, and for sessions that are asked for it (tssa_session_options.precision); no level runs
 * it.
 *
 *   needs   types
 *   keeps   results but for the roundings, and infinities where a number in between is beyond the
 *           type
 *   breaks  Casts may be there twice (common_subexpressions), or lose their uses (dead_code)
 */
#include "ir/clone.h"
#include "ir/infer.h"
#include "passes/lower/halves.h"

/* ---- Which ops ------------------------------------------------------------------------------- */

static bool computes(const struct ir_op *op)
{
    switch (op->info->cls) {
    case IR_CLASS_ELEMENTWISE:
        return !half_is_cast(op) && !ir_op_is(op, IR_OP_CastLike) && !ir_op_is(op, IR_OP_BitCast);
    case IR_CLASS_REDUCTION:
    case IR_CLASS_CONTRACTION:
    case IR_CLASS_WINDOW:
    case IR_CLASS_NORMALIZATION:
    case IR_CLASS_RECURRENT:
        return true;
    default:
        return false;
    }
}

/* What moves elements is in a chain where all that it moves is, constants aside. */
static bool moves_chain(const struct ir_op *op)
{
    return (op->info->cls == IR_CLASS_MOVEMENT || op->info->cls == IR_CLASS_GATHER) &&
           halves_were_rounded(op);
}

/* Are all results that anybody reads of the first one's type? A chain ends in one. */
static bool has_one_type(const struct ir_op *op)
{
    const struct ir_type *first = op->results[0].type;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses && (op->results[i].type->kind != TYPE_TENSOR ||
                                    op->results[i].type->dtype != first->dtype))
            return false;
    return true;
}

static bool is_in_chain(const struct ir_op *op)
{
    if (op->n_blocks || !(op->info->flags & IR_PURE) || (op->info->flags & IR_RANDOM) ||
        !(op->info->types & DTYPE_BIT(TSSA_FLOAT)) || op->n_results == 0 ||
        (!computes(op) && !moves_chain(op)))
        return false;
    bool any = false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        any |= half_is(ir_operand(op, i));
    return any && half_is(&op->results[0]) && has_one_type(op);
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

/* In float32: what is in a chain before it is rounded, else a Cast. */
static tssa_status *find_wide(struct halves *h, struct ir_value *value, struct ir_value **wide)
{
    *wide = half_rounded_from(value);
    return *wide ? NULL : half_widened(h, value, wide);
}

static tssa_status *take(struct halves *h, struct ir_op *op)
{
    const tssa_dtype dtype = op->results[0].type->dtype;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i), *wide;
        if (!half_is(value))
            continue;
        TRY(find_wide(h, value, &wide));
        ir_op_set_operand(op, i, wide);
    }
    ir_forget_declared(op);
    TRY(ir_infer_op_lenient(op));
    for (uint32_t k = op->n_results; k-- > 0;)
        if (op->results[k].uses)
            TRY(half_round(h->pass, op, k, dtype));
    h->pass->changed = true;
    return NULL;
}

/* A Cast to float32 of what a chain has rounded is what it had before. */
static void pass_over(const struct halves *h, struct ir_op *cast)
{
    const struct ir_value *value = ir_operand(cast, 0);
    struct ir_value *wide = value ? half_rounded_from(value) : NULL;
    if (!wide || cast->results[0].type != wide->type)
        return;
    if (!wide->name)
        wide->name = cast->results[0].name;
    ir_value_replace(&cast->results[0], wide);
    ir_op_remove(cast);
    h->pass->changed = true;
}

static tssa_status *visit_block(struct halves *h, struct ir_block *block)
{
    for (struct ir_op *op = block->first, *next; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(visit_block(h, op->blocks[i]));
        if (half_is_cast(op))
            pass_over(h, op);
        else if (is_in_chain(op))
            TRY(take(h, op));
    }
    return NULL;
}

tssa_status *pass_relax_floats(struct pass_context *pass)
{
    struct halves h;
    TRY(halves_open(pass, &h));
    tssa_status *status = visit_block(&h, pass->graph->body);
    halves_close(&h);
    return status;
}
