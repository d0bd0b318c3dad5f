/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one `fuse` op of ops that may become one kernel (ir/fuse.h): element-wise ops, accesses and assigns over one
 * iteration space, or broadcast into it, that read each other's results or the same operands; and what is computed row
 * by row (ir/row.h: reductions of the last axes, softmax, normalizations) with what reads it of the same row, so that
 * softmax or a layer norm written out is one kernel, and the best class of a row as well. Where the ops go is in
 * fuse.h: nothing is put together around which something else is computed, so there are no cycles, and nothing moves
 * across an op with effects. What a kernel may hold and what its machine takes is lent (ir_fusion); what is won and
 * lost is told by ir/cost.h: bytes that are not moved and launches that are not made, and what is computed again for
 * every row it is broadcast to.
 *
 *   needs   types, known elements; a table of what kernels take, else nothing is done
 *   keeps   types, known elements; the order of ops with effects
 *   breaks  nothing
 *
 * Rules must still be there: an access lowered to a Slice moves its region once more. Fuse ops are a session's; `unfuse`
 * puts their ops back. A remark says why an op is in no part, or not in that of what it reads.
 */
#include "passes/lower/fuse.h"

#include "ir/fuse.h"

static tssa_status *say_why(struct fuse_plan *plan, const struct ir_op *op)
{
    const struct fuse_op *own = &plan->ops[op->id];
    char other[128];
    if (!own->why)
        return NULL;
    if (!own->other)
        return pass_remark(plan->pass, TSSA_REMARK_MISSED, op, "%s", own->why);
    if (fuse_part_of(plan, op) != FUSE_NO_PART &&
        fuse_part_of(plan, op) == fuse_part_of(plan, own->other))
        return NULL; /* by another way */
    ir_op_describe(own->other, other, sizeof other);
    return pass_remark(plan->pass, TSSA_REMARK_MISSED, op, "does not join %s: %s", other, own->why);
}

static tssa_status *fuse_block(struct fuse_plan *plan, struct ir_block *block)
{
    TRY(fuse_plan_block(plan, block));
    for (struct ir_op *op = block->first; op; op = op->next) {
        TRY(say_why(plan, op));
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_fuse_body(op); i++)
            TRY(fuse_block(plan, op->blocks[i]));
    }
    return fuse_make(plan, block);
}

tssa_status *pass_fuse(struct pass_context *pass)
{
    if (!pass->fusion)
        return NULL;
    struct fuse_plan *plan = allocator_calloc(pass->graph->allocator, 1, sizeof *plan);
    TRY_ALLOC(plan);
    tssa_status *status = fuse_plan_init(plan, pass);
    if (!status)
        status = fuse_block(plan, pass->graph->body);
    fuse_plan_free(plan);
    allocator_free(pass->graph->allocator, plan);
    return status;
}
