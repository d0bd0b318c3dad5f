/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an access reshapes that another one has permuted is one access, where kernels read such an
 * operand from where it lies (ir_fusion.refuses_planes) and all that read it compute elements or
 * rows of its shape: a kernel has then no copy to wait for. Before ops are numbered.
 */
#include "ir/fuse.h"
#include "ir/region.h"
#include "passes/lower/fuse.h"

/* The access that makes what the op reads, in the same block; NULL: there is none, or what it
 * copies others read, too. */
static struct ir_op *read_before(const struct ir_op *op)
{
    struct ir_op *maker = fuse_maker(ir_operand(op, 0), op->parent);
    if (!maker || !ir_op_is(maker, IR_OP_access) || maker->opaque)
        return NULL;
    return maker->results[0].uses->next && !cost_is_view(maker) ? NULL : maker;
}

static bool permutes(const struct ir_op *access)
{
    const struct rule *rule = rule_of(access);
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind == RULE_PERMUTE)
            return true;
    return false;
}

/* One access in the place of both, if it may be in a kernel; else NULL in *joined, and *why. */
static tssa_status *join(struct fuse_plan *plan, struct ir_op *first, struct ir_op *second,
                         struct ir_op **joined, const char **why)
{
    const struct ir_type *type = second->results[0].type;
    *why = NULL;
    TRY(rule_access_chain(plan->pass->graph, first, second, joined));
    if (!*joined)
        return NULL;
    TRY(pass_insert(*joined, second));
    ir_value_replace(&second->results[0], &(*joined)->results[0]);
    *why = plan->fusion->refuses_planes(plan->fusion->user, *joined);
    if (!*why) {
        (*joined)->results[0].type = type;
        return NULL;
    }
    ir_value_replace(&(*joined)->results[0], &second->results[0]);
    ir_op_remove(*joined);
    *joined = NULL;
    return NULL;
}

/* *last is then the access that stands for all. */
static tssa_status *join_reads(struct fuse_plan *plan, struct ir_op *op, struct ir_op **last)
{
    struct ir_op *first, *joined;
    const char *why;
    bool any = false;
    for (*last = op; (first = read_before(op)); *last = op = joined, any = true) {
        TRY(join(plan, first, op, &joined, &why));
        if (!joined)
            return why && !any && permutes(first)
                       ? pass_remark(plan->pass, TSSA_REMARK_MISSED, op,
                                     "what is permuted is not read from where it lies: %s", why)
                       : NULL;
        ir_op_remove(op);
        if (!first->results[0].uses)
            ir_op_remove(first);
        plan->pass->changed = true;
    }
    return NULL;
}

static tssa_status *join_in_block(struct fuse_plan *plan, struct ir_block *block)
{
    for (struct ir_op *op = ir_block_return(block); op; op = op->prev) {
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_op_is(op, IR_OP_fuse); i++)
            TRY(join_in_block(plan, op->blocks[i]));
        if (ir_op_is(op, IR_OP_access) && !op->opaque && fuse_is_read_in_place(&op->results[0]))
            TRY(join_reads(plan, op, &op));
    }
    return NULL;
}

tssa_status *fuse_join_planes(struct fuse_plan *plan)
{
    return plan->fusion->refuses_planes ? join_in_block(plan, plan->pass->graph->body) : NULL;
}
