/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead code elimination: pure ops whose results nobody uses go, with their blocks; optional results
 * that nobody uses become unwanted, so that they are not computed. Of fuse ops results go that
 * nobody uses, and with them what only they needed, inside and as operands; but what a kernel was
 * compiled of has its operands and its results: it stays as it is.
 *
 *   needs   nothing
 *   keeps   types, known elements, order; every op that is not pure
 *   breaks  nothing
 *
 * A dead op that would have failed (an index out of range, say) no longer fails the run.
 *
 * Users come after what they use, so one walk from the last op to the first sees every op when all
 * of its users are decided.
 */
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/rebuild.h"
#include "passes/pass.h"

/*
 * Only results beyond the required ones: a kernel may count on those. In the normalizations the
 * number of results is itself a switch (BatchNormalization before version 14: training or
 * inference).
 */
static void drop_results(struct pass_context *pass, struct ir_op *op)
{
    const struct ir_op_info *info = op->info;
    if (info->max_results == IR_VARIADIC || info->cls == IR_CLASS_NORMALIZATION)
        return;
    for (uint32_t i = info->min_results; i < op->n_results; i++)
        if (!op->results[i].uses && op->results[i].wanted) {
            op->results[i].wanted = false;
            pass->changed = true;
        }
}

/* ---- Fuse ops -------------------------------------------------------------------------------- */

static bool has_unused(uint32_t n, const bool *unused)
{
    for (uint32_t i = 0; i < n; i++)
        if (unused[i])
            return true;
    return false;
}

static tssa_status *drop_fused_results(struct pass_context *pass, struct ir_op *op)
{
    bool *unused = allocator_calloc(pass->graph->allocator, op->n_results + 1u, sizeof *unused);
    bool dropped = true;
    TRY_ALLOC(unused);
    for (uint32_t i = 0; i < op->n_results; i++)
        unused[i] = !op->results[i].uses;
    if (has_unused(op->n_results, unused)) {
        dropped = ir_control_drop_results(op, unused);
        pass->changed = true;
    }
    allocator_free(pass->graph->allocator, unused);
    return dropped ? NULL : status_out_of_memory();
}

/* Those whose parameters nobody reads, once what is dead in the block is gone. */
static tssa_status *drop_fused_operands(struct pass_context *pass, struct ir_op *op)
{
    bool *unused = allocator_calloc(pass->graph->allocator, op->n_operands + 1u, sizeof *unused);
    bool dropped = true;
    TRY_ALLOC(unused);
    for (uint32_t i = 0; i < op->n_operands; i++)
        unused[i] = !ir_fuse_body(op)->params[i]->uses;
    if (has_unused(op->n_operands, unused)) {
        dropped = ir_fuse_drop_operands(op, unused);
        pass->changed = true;
    }
    allocator_free(pass->graph->allocator, unused);
    return dropped ? NULL : status_out_of_memory();
}

/* ---- The pass -------------------------------------------------------------------------------- */

static tssa_status *sweep(struct pass_context *pass, struct ir_block *block)
{
    struct ir_op *previous;
    for (struct ir_op *op = block->last; op; op = previous) {
        previous = op->prev;
        if (!ir_op_is_used(op) && !ir_op_is(op, IR_OP_return) && ir_op_is_pure(op)) {
            ir_release_blocks(op);
            ir_op_remove(op);
            pass->changed = true;
            continue;
        }
        const bool fused = ir_fuse_body(op) != NULL;
        if (op->kernel)
            continue;
        if (fused)
            TRY(drop_fused_results(pass, op));
        else
            drop_results(pass, op);
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(sweep(pass, op->blocks[i]));
        if (fused)
            TRY(drop_fused_operands(pass, op));
    }
    return NULL;
}

tssa_status *pass_dead_code(struct pass_context *pass)
{
    return sweep(pass, pass->graph->body);
}
