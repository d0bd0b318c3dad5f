/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of an access for each op that reads it, before parts are found: what two kernels read of
 * the same they read each for itself then, and neither waits for the other. Of what costs nothing
 * by itself: views, which move nothing, and regions of what comes from outside of all kernels, of
 * which a kernel reads the same elements as of a copy of them; and of Ranges, whose elements are
 * told by where they are. Copies that come into no kernel are merged again by
 * common_subexpressions.
 */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "passes/lower/fuse.h"

/*
 * An access of more readers is computed once: copies are ops, and a part has only so many of these.
 */
#define MOST_COPIES 16

struct copying {
    struct fuse_plan *plan;
    struct ir_cloner cloner;
};

static bool may_join(const struct fuse_plan *plan, const struct ir_op *op)
{
    return fuse_is_candidate(plan, op) && !fuse_refusal(plan, op);
}

static bool is_read(const struct fuse_plan *plan, const struct ir_op *op)
{
    return (ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_Range)) && !ir_fuse_keeps(op) &&
           may_join(plan, op);
}

/* Is all that the op reads made outside of kernels, by itself or by reads of such? Chains of reads
 * are short. */
static bool is_from_outside(const struct fuse_plan *plan, const struct ir_op *op, int depth)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        const struct ir_op *maker = value ? fuse_maker(value, op->parent) : NULL;
        if (!maker || !may_join(plan, maker))
            continue;
        if (depth == 0 || !is_read(plan, maker) || !is_from_outside(plan, maker, depth - 1))
            return false;
    }
    return true;
}

static bool is_worth_copies(const struct fuse_plan *plan, const struct ir_op *op)
{
    if (!is_read(plan, op))
        return false;
    const bool view = fuse_is_view(plan, op);
    uint32_t n = 0;
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next, n++)
        if (n == MOST_COPIES ||
            (!view && (use->user->parent != op->parent || !may_join(plan, use->user))))
            return false;
    return n > 1 && (view || is_from_outside(plan, op, 4));
}

/* The op reads a copy. *copied is false where that would be of another size: one that only a run
 * tells. */
static tssa_status *copy_for(struct copying *copying, struct ir_op *op, struct ir_op *user,
                             bool *copied)
{
    ir_cloner_reset(&copying->cloner);
    struct ir_op *copy = ir_clone_op(&copying->cloner, op);
    TRY_ALLOC(copy);
    ir_op_insert_before(copy, op->next);
    TRY(ir_infer_op_lenient(copy));
    *copied = copy->results[0].type == op->results[0].type;
    if (!*copied) {
        ir_op_remove(copy);
        return NULL;
    }
    copy->inferred_from = ir_infer_stamp(copy);
    for (uint32_t i = 0; i < user->n_operands; i++)
        if (ir_operand(user, i) == &op->results[0])
            ir_op_set_operand(user, i, &copy->results[0]);
    copying->plan->pass->changed = true;
    return NULL;
}

/* Another op of the block that reads it than `first`. */
static struct ir_op *other_reader(const struct fuse_plan *plan, const struct ir_op *op,
                                  const struct ir_op *first)
{
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next)
        if (use->user != first && use->user->parent == op->parent && may_join(plan, use->user))
            return use->user;
    return NULL;
}

static tssa_status *copy_read(struct copying *copying, struct ir_op *op)
{
    const struct ir_op *first = op->results[0].uses->user;
    struct ir_op *user;
    bool copied = true;
    while (copied && (user = other_reader(copying->plan, op, first)))
        TRY(copy_for(copying, op, user, &copied));
    return NULL;
}

/* From the end: reads that are copied are readers of others. */
static tssa_status *copy_in_block(struct copying *copying, struct ir_block *block)
{
    struct ir_op *previous;
    for (struct ir_op *op = ir_block_return(block); op; op = previous) {
        previous = op->prev;
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_op_is(op, IR_OP_fuse); i++)
            TRY(copy_in_block(copying, op->blocks[i]));
        if (is_worth_copies(copying->plan, op))
            TRY(copy_read(copying, op));
    }
    return NULL;
}

tssa_status *fuse_copy_reads(struct fuse_plan *plan)
{
    struct copying copying = {.plan = plan};
    if (!plan->fusion->moves_inside || !(plan->fusion->classes & IR_FUSES_RULES))
        return NULL;
    ir_cloner_init(&copying.cloner, plan->pass->graph);
    tssa_status *status = copy_in_block(&copying, plan->pass->graph->body);
    ir_cloner_free(&copying.cloner);
    return status;
}
