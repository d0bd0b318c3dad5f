/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead code elimination: pure ops whose results nobody uses go, with their blocks; optional results that
 * nobody uses become unwanted, so that they are not computed.
 *
 *   needs   nothing
 *   keeps   types, known elements, order; every op that is not pure
 *   breaks  nothing
 *
 * A dead op that would have failed (an index out of range, say) no longer fails the run.
 *
 * Users come after what they use, so one walk from the last op to the first sees every op when all of
 * its users are decided.
 */
#include "ir/clone.h"
#include "passes/pass.h"

static bool has_uses(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses)
            return true;
    return false;
}

/*
 * Only results beyond the required ones: a kernel may count on those. In the normalizations the number
 * of results is itself a switch (BatchNormalization before version 14: training or inference).
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

static void sweep(struct pass_context *pass, struct ir_block *block)
{
    struct ir_op *previous;
    for (struct ir_op *op = block->last; op; op = previous) {
        previous = op->prev;
        if (!has_uses(op) && !ir_op_is(op, IR_OP_return) && ir_op_is_pure(op)) {
            ir_release_blocks(op);
            ir_op_remove(op);
            pass->changed = true;
            continue;
        }
        drop_results(pass, op);
        for (uint32_t i = 0; i < op->n_blocks; i++)
            sweep(pass, op->blocks[i]);
    }
}

tssa_status *pass_dead_code(struct pass_context *pass)
{
    sweep(pass, pass->graph->body);
    return NULL;
}
