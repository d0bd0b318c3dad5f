/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one `fuse` op of ops that may become one kernel (ir/fuse.h): element-wise ops, accesses,
 * assigns, concats and gathers over one iteration space, or broadcast into it, that read each
 * other's results or the same operands; and what is computed row by row (ir/row.h: reductions of
 * the last axes, softmax, normalizations) with what reads it of the same row, so that softmax or a
 * layer norm written out is one kernel, and the best class of a row as well; and reductions of
 * another axis with what alone they read, so that no table of pairs is stored of which the highest
 * are wanted; and sums that run along such an axis with what is computed for them and of them; and
 * what is kept of lists or rows where a mask is true, or where that is, with what
 * computes the mask, the lists and rows of a few columns, which are then never stored; what is read
 * by the numbers that NonZero finds of a mask is kept by it (fuse_numbers.c), and what a few
 * operations compute of lists that are kept is computed of all elements before (fuse_keeps.c). And
 * where kernels can, what accesses, concats and gathers alone read, or assigns alone write, is
 * computed where that is, again if others need it, too; and what has nothing to do with each other
 * is one launch. An access or a Range that several kernels could make for themselves is copied for
 * each first (fuse_copy.c), and what an access reshapes that another one has permuted is one
 * access, which rows are read by from where it lies (fuse_planes.c). Neighbouring axes that are
 * reduced are one axis, with what is computed for that and of that (fuse_axes.c). Then small
 * products of matrices are computed in the kernel that alone reads them, where there are such
 * kernels (fuse_products.c), and fuse ops and products that read each other's results are one where
 * there is a kernel, in stages, of that (fuse_stages.c). So is an element-wise op before a loop
 * whose iterations read other elements of it each (fuse_invariants.c), and one behind it of what
 * its last iteration leaves (fuse_behind.c). Last, a loop of which an iteration has become one
 * kernel is one kernel of all of them, with or without stages (fuse_loops.c). Where the ops go is
 * in fuse.h: nothing is put together around which something else is computed, so there are no
 * cycles, and nothing moves across an op with effects. What a kernel may hold and what its machine
 * takes is lent (ir_fusion); what is won and lost is told by ir/cost.h: bytes that are not moved
 * and launches that are not made, and what is computed again for every row it is broadcast to.
 *
 *   needs   types, known elements; a table of what kernels take, else nothing is done
 *   keeps   types, known elements; the order of ops with effects
 *   breaks  nothing
 *
 * Rules must still be there: an access lowered to a Slice moves its region once more. Fuse ops are
 * a session's; `unfuse` puts their ops back. A remark says of each op why it is in no kernel with
 * others, or not in that of what it reads.
 */
#include "passes/lower/fuse.h"

#include "ir/fuse.h"

/* Of these nobody asks why they are in no kernel. */
static bool is_frame(const struct ir_op *op)
{
    return op->info->cls == IR_CLASS_INTERNAL || op->info->cls == IR_CLASS_CONTROL || op->opaque ||
           ir_op_is(op, IR_OP_Constant) || ir_fuse_body(op);
}

/* An op that did not join what the op computes; NULL: none. */
static const struct ir_op *apart_reader(const struct fuse_plan *plan, const struct ir_op *op)
{
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next)
        if (use->user->id < plan->n_ops && plan->ops[use->user->id].other == op)
            return use->user;
    return NULL;
}

static tssa_status *say_alone(const struct fuse_plan *plan, const struct ir_op *op)
{
    const struct ir_op *reader = apart_reader(plan, op);
    char other[128];
    if (!reader)
        return pass_remark(plan->pass, TSSA_REMARK_MISSED, op,
                           "nothing that may be in a kernel with it reads it or is read by it");
    ir_op_describe(reader, other, sizeof other);
    return pass_remark(plan->pass, TSSA_REMARK_MISSED, op, "%s does not join it: %s", other,
                       plan->ops[reader->id].why);
}

/* Why it is in no larger part. */
static tssa_status *say_why(struct fuse_plan *plan, const struct ir_op *op)
{
    const struct fuse_op *own = &plan->ops[op->id];
    const uint32_t part = fuse_part_of(plan, op);
    const char *why = own->why;
    char other[128];
    if (is_frame(op) || fuse_takes_product(plan, op) ||
        (part == FUSE_NO_PART && fuse_is_view(plan, op)))
        return NULL;
    if (own->other && part != FUSE_NO_PART && part == fuse_part_of(plan, own->other))
        return NULL; /* by another way */
    if (own->other) {
        ir_op_describe(own->other, other, sizeof other);
        return pass_remark(plan->pass, TSSA_REMARK_MISSED, op, "does not join %s: %s", other, why);
    }
    if (!why && !fuse_is_candidate(plan, op))
        why = fuse_outside(op);
    if (!why && part == FUSE_NO_PART)
        return say_alone(plan, op);
    return why ? pass_remark(plan->pass, TSSA_REMARK_MISSED, op, "%s", why) : NULL;
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
    if (!status)
        status = fuse_products(plan, pass->graph->body);
    if (!status)
        status = fuse_stages(pass, pass->graph->body);
    if (!status)
        status = fuse_invariants(pass, pass->graph->body);
    if (!status)
        status = fuse_behind(pass, pass->graph->body);
    if (!status)
        status = fuse_loops(pass, pass->graph->body);
    fuse_plan_free(plan);
    allocator_free(pass->graph->allocator, plan);
    return status;
}
