/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/fuse_remake.h"

#include "ir/fuse.h"
#include "ir/infer.h"
#include "passes/lower/fuse_wrap.h"

/* Stands in the new block for a value that ops of the old one read. */
static struct ir_value *enter(struct fuse_wrap *w, const struct ir_op *old, struct ir_value *value)
{
    return fuse_wrap_enter(w, value->block == ir_fuse_body(old) ? ir_operand(old, value->index)
                                                                : value);
}

static tssa_status *enter_operands(struct fuse_wrap *w, const struct ir_op *old)
{
    struct ir_block *block = ir_fuse_body(old);
    for (struct ir_op *op = block->first; op; op = op->next)
        for (uint32_t i = 0; i < op->n_operands; i++) {
            struct ir_value *value = ir_operand(op, i);
            if (!value || fuse_maker(value, block))
                continue;
            value = enter(w, old, value);
            TRY_ALLOC(value);
            ir_op_set_operand(op, i, value);
        }
    return NULL;
}

static void move_ops(struct ir_block *old, struct ir_op *ret)
{
    for (uint32_t i = 0; i < ret->n_operands; i++)
        ir_op_set_operand(ret, i, ir_operand(ir_block_return(old), i));
    ir_move_ops(old, ret);
}

static void hand_on(struct ir_value *from, struct ir_value *to)
{
    to->type = from->type;
    to->known = from->known;
    to->wanted = from->wanted;
    to->declared = from->declared;
    to->name = from->name;
    from->declared = NULL;
    from->name = NULL;
    ir_value_replace(from, to);
}

/* What the block returns is a result, of which there may be more or less than before. */
static void hand_on_all(struct ir_op *old, struct ir_op *fuse)
{
    for (uint32_t i = 0; i < fuse->n_results; i++)
        if (i < old->n_results) {
            hand_on(&old->results[i], &fuse->results[i]);
        } else {
            const struct ir_value *made = ir_operand(ir_block_return(ir_fuse_body(fuse)), i);
            fuse->results[i].type = made->type;
            fuse->results[i].known = made->known;
        }
}

static tssa_status *remake_as(struct fuse_wrap *w, struct ir_op *old, struct ir_op **made)
{
    struct ir_block *block = ir_fuse_body(old);
    TRY(enter_operands(w, old));
    TRY(fuse_wrap_make(w, ir_block_return(block)->n_operands, old->name, old, made));
    move_ops(block, w->body->last);
    hand_on_all(old, *made);
    ir_release_blocks(old);
    ir_op_remove(old);
    (*made)->inferred_from = ir_infer_stamp(*made);
    return NULL;
}

tssa_status *fuse_remake(struct pass_context *pass, struct ir_op **fuse)
{
    struct fuse_wrap w;
    tssa_status *status = fuse_wrap_open(&w, pass->graph);
    if (!status)
        status = remake_as(&w, *fuse, fuse);
    fuse_wrap_close(&w);
    return status;
}

tssa_status *fuse_take_in(struct pass_context *pass, struct ir_op *op, struct ir_op **fuse)
{
    struct ir_block *body = ir_fuse_body(*fuse);
    for (uint32_t i = 0; i < (*fuse)->n_operands; i++)
        if (ir_operand(*fuse, i) == &op->results[0])
            ir_value_replace(body->params[i], &op->results[0]);
    ir_op_move_before(op, body->first);
    return fuse_remake(pass, fuse);
}

void fuse_leave_block(struct ir_op *op, const struct ir_op *fuse)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i);
        if (value && value->block)
            ir_op_set_operand(op, i, ir_operand(fuse, value->index));
    }
}

const char *fuse_refuses_whole(const struct pass_context *pass, const struct ir_op *fuse)
{
    const struct ir_fusion *fusion = pass->fusion;
    return fuse->n_operands > fusion->most_operands ? "it has more operands than kernels may have"
                                                    : fusion->refuses_whole(fusion->user, fuse);
}
