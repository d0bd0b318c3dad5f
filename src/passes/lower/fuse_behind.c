/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An element-wise op behind a loop, of what the last iteration has left, in the fuse op that
 * computes that: each iteration computes it, of what it leaves, and the loop carries it. A launch
 * is saved for some elements that are stored more often.
 *
 *     %h, %c = Loop(%n, _, %a, %b) { (...): ... %p, %q = fuse(...) return(%go, %p, %q) }
 *     %y = Add(%h, %c)
 */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "passes/analysis/loops.h"
#include "passes/lower/fuse_remake.h"

#define MOST_ELEMENTS 16384 /* that iterations store for the last one */
#define MOST_OPERANDS 8

struct behind {
    struct pass_context *pass;
    struct loop loop;
    struct ir_op *op, *fuse; /* behind the loop, and in its body */
    uint32_t initial;        /* of a carried value with the type of the op's result */
    uint32_t finals[MOST_OPERANDS];
};

/* ---- What it is ------------------------------------------------------------------------------ */

static bool is_small(const struct ir_type *type)
{
    int64_t n = 1, size;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &size) || __builtin_mul_overflow(n, size, &n))
            return false;
    return type->kind == TYPE_TENSOR && type->rank >= 0 && n <= MOST_ELEMENTS;
}

/* The fuse op of the body that makes what the value is in the end; NULL: none, or not each time. */
static struct ir_op *maker_of(const struct loop *loop, const struct ir_value *value)
{
    struct ir_op *maker;
    if (!value || value->op != loop->op || value->index >= loop->n_carried)
        return NULL;
    maker = fuse_maker(loop_next(loop, value->index), loop->body);
    return maker && ir_fuse_body(maker) && !ir_fuse_loop(maker) ? maker : NULL;
}

/* Are all operands what one fuse op makes, and of the result's type? */
static bool find_operands(struct behind *b)
{
    const struct ir_type *type = b->op->results[0].type;
    bool good = b->op->n_operands > 0 && b->op->n_operands <= MOST_OPERANDS;
    for (uint32_t i = 0; good && i < b->op->n_operands; i++) {
        const struct ir_value *value = ir_operand(b->op, i);
        struct ir_op *maker = maker_of(&b->loop, value);
        good = maker && (i == 0 || maker == b->fuse) && value->type == type;
        if (!good)
            break;
        b->fuse = maker;
        b->finals[i] = value->index;
        b->initial = value->index;
    }
    return good && is_small(type) && loop_initial(&b->loop, b->initial)->type == type;
}

/* What the graph returns alone: else it may be in a kernel with what reads it. */
static bool is_returned(const struct ir_value *value)
{
    return fuse_is_read_once(value) && ir_op_is(value->uses->user, IR_OP_return);
}

static bool is_behind(struct behind *b)
{
    const struct ir_op *op = b->op;
    int64_t trips;
    return !op->opaque && op->info->ew && op->n_results == 1 && is_returned(&op->results[0]) &&
           loop_trips(&b->loop, &trips) && trips > 0 && find_operands(b);
}

/* ---- In the fuse op -------------------------------------------------------------------------- */

/* Into the fuse op's block, whose last result it is, and which has no name for it yet. */
static tssa_status *enter(struct behind *b)
{
    struct ir_op *ret = ir_block_return(ir_fuse_body(b->fuse));
    for (uint32_t i = 0; i < b->op->n_operands; i++) {
        const struct ir_value *made = loop_next(&b->loop, b->finals[i]);
        ir_op_set_operand(b->op, i, ir_operand(ret, made->index));
    }
    ir_op_move_before(b->op, ret);
    if (!ir_op_add_operand(ret, &b->op->results[0]))
        return status_out_of_memory();
    return fuse_remake(b->pass, &b->fuse);
}

static tssa_status *leave(struct behind *b)
{
    struct ir_value *values[FUSE_OPERANDS];
    struct ir_op *ret = ir_block_return(ir_fuse_body(b->fuse));
    const uint32_t n = ret->n_operands - 1;
    for (uint32_t i = 0; i < n; i++)
        values[i] = ir_operand(ret, i);
    if (!ir_op_set_operands(ret, n, values))
        return status_out_of_memory();
    ir_op_move_before(b->op, b->loop.op->next);
    for (uint32_t i = 0; i < b->op->n_operands; i++)
        ir_op_set_operand(b->op, i, loop_final(&b->loop, b->finals[i]));
    return fuse_remake(b->pass, &b->fuse);
}

/* ---- In the loop ----------------------------------------------------------------------------- */

/* What the body returns, with one more value that is carried. */
static bool return_it(const struct behind *b, struct ir_value *value)
{
    struct ir_op *ret = b->loop.ret;
    const uint32_t at = b->loop.n_carried + 1;
    if (!ir_op_add_operand(ret, value))
        return false;
    for (uint32_t i = ret->n_operands - 1; i > at; i--)
        ir_op_set_operand(ret, i, ir_operand(ret, i - 1));
    ir_op_set_operand(ret, at, value);
    return true;
}

static bool add_result(const struct behind *b)
{
    uint32_t from[FUSE_OPERANDS];
    const uint32_t n = b->loop.op->n_results + 1, at = b->loop.n_carried;
    for (uint32_t i = 0; i < n; i++)
        from[i] = i == at ? IR_FRESH : i - (i > at);
    return ir_op_set_results(b->loop.op, n, from);
}

static tssa_status *carry(struct behind *b)
{
    struct ir_op *loop = b->loop.op;
    struct ir_value *initial = loop_initial(&b->loop, b->initial),
                    *param = ir_block_add_param(b->loop.body);
    if (!param || !return_it(b, &b->fuse->results[b->fuse->n_results - 1]) || !add_result(b) ||
        !ir_op_add_operand(loop, initial))
        return status_out_of_memory();
    param->type = initial->type;
    fuse_hand_out(&b->op->results[0], &loop->results[b->loop.n_carried]);
    b->pass->changed = true;
    TRY(ir_infer_op_lenient(loop));
    return pass_remark(b->pass, TSSA_REMARK_APPLIED, loop,
                       "its iterations compute the %s of what the last one leaves",
                       b->op->info->name);
}

static tssa_status *take(struct behind *b)
{
    TRY(enter(b));
    const char *why = fuse_refuses_whole(b->pass, b->fuse);
    if (!why)
        return carry(b);
    TRY(leave(b));
    return pass_remark(b->pass, TSSA_REMARK_MISSED, b->op,
                       "iterations do not compute it of what they leave: %s", why);
}

/* ---- All ------------------------------------------------------------------------------------- */

/* A kernel of one element-wise op is that op. */
static struct ir_op *unwrapped(struct ir_op *op)
{
    const struct ir_block *body = ir_fuse_body(op);
    if (!body || body->first->next != body->last || !body->first->info->ew)
        return op;
    struct ir_op *inner = body->first;
    ir_fuse_inline(op);
    return inner;
}

static bool reads(const struct ir_op *op, const struct ir_op *loop)
{
    const struct ir_value *first = op->n_operands ? ir_operand(op, 0) : NULL;
    return first && first->op == loop;
}

static tssa_status *of_loop(struct pass_context *pass, struct ir_op *loop)
{
    struct ir_op *next;
    for (struct ir_op *op = loop->next; op; op = next) {
        next = op->next;
        if (!reads(op, loop) || loop->n_results + 1 >= FUSE_OPERANDS)
            continue;
        struct behind b = {.pass = pass, .loop = loop_of(loop), .op = unwrapped(op)};
        if (is_behind(&b) && b.fuse->n_results + 1 < FUSE_OPERANDS)
            TRY(take(&b));
    }
    return NULL;
}

tssa_status *fuse_behind(struct pass_context *pass, struct ir_block *block)
{
    if (!pass->fusion->side_by_side || !pass->fusion->refuses_whole)
        return NULL;
    for (struct ir_op *op = block->first; op; op = op->next)
        if (ir_op_is(op, IR_OP_Loop) && !op->opaque)
            TRY(of_loop(pass, op));
    return NULL;
}
