/* SPDX-License-Identifier: Apache-2.0 */
/* Fuse ops of loops: where an iteration is one kernel, and each element of what is carried depends
 * on no other one, or, of one with stages, each group on no other one, all iterations are one
 * (ir_fuse_loop). Who has kernels says where that is so. */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "passes/lower/fuse.h"
#include "passes/lower/fuse_wrap.h"

/* Is it made in the loop's body? */
static bool is_inside(const struct ir_op *loop, const struct ir_value *value)
{
    return (value->op ? value->op->parent : value->block) == loop->blocks[0];
}

static tssa_status *enter_operands(struct fuse_wrap *w, const struct ir_op *loop, struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i);
        if (!value || is_inside(loop, value))
            continue;
        value = fuse_wrap_enter(w, value);
        TRY_ALLOC(value);
        ir_op_set_operand(op, i, value);
    }
    return NULL;
}

static uint32_t count_used(const struct ir_op *loop)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < loop->n_results; i++)
        n += loop->results[i].wanted && loop->results[i].uses;
    return n;
}

/* The fuse op stands before the loop, and takes it in. */
static tssa_status *wrap(struct fuse_wrap *w, struct ir_op *loop, struct ir_op **fuse)
{
    TRY(enter_operands(w, loop, loop));
    for (struct ir_op *op = loop->blocks[0]->first; op; op = op->next)
        TRY(enter_operands(w, loop, op));
    TRY(fuse_wrap_make(w, count_used(loop), loop->name, loop, fuse));
    struct ir_op *ret = w->body->last;
    ir_op_move_before(loop, ret);
    for (uint32_t i = 0, k = 0; i < loop->n_results; i++) {
        if (!loop->results[i].wanted || !loop->results[i].uses)
            continue;
        fuse_hand_out(&loop->results[i], &(*fuse)->results[k]);
        ir_op_set_operand(ret, k++, &loop->results[i]);
    }
    (*fuse)->inferred_from = ir_infer_stamp(*fuse);
    return NULL;
}

/* Not the loop: it is as it was. */
static tssa_status *unwrap(struct pass_context *pass, struct ir_op *fuse, const struct ir_op *loop,
                           const char *why)
{
    ir_fuse_inline(fuse);
    return pass_remark(pass, TSSA_REMARK_MISSED, loop,
                       "each iteration is a kernel, and not all of them one: %s", why);
}

static tssa_status *fuse_loop(struct pass_context *pass, struct ir_op *loop)
{
    const struct ir_fusion *fusion = pass->fusion;
    struct fuse_wrap w;
    struct ir_op *fuse = NULL;
    tssa_status *status = fuse_wrap_open(&w, pass->graph);
    if (!status)
        status = wrap(&w, loop, &fuse);
    fuse_wrap_close(&w);
    TRY(status);
    const char *why = fusion->refuses_whole(fusion->user, fuse);
    if (why)
        return unwrap(pass, fuse, loop, why);
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, fuse, "one kernel of all iterations");
}

static bool is_loop(const struct ir_op *op)
{
    return (ir_op_is(op, IR_OP_Loop) || ir_op_is(op, IR_OP_Scan)) && !op->opaque &&
           ir_fuse_iteration(op) && count_used(op);
}

tssa_status *fuse_loops(struct pass_context *pass, struct ir_block *block)
{
    struct ir_op *next;
    if (!(pass->fusion->classes & IR_FUSES_LOOPS) || !pass->fusion->refuses_whole)
        return NULL;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_fuse_body(op); i++)
            TRY(fuse_loops(pass, op->blocks[i]));
        if (is_loop(op))
            TRY(fuse_loop(pass, op));
    }
    return NULL;
}
