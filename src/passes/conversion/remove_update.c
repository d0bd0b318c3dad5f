/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorSSA conversion, step 4: the updates go, which have told what they are for.
 *
 *   needs   rename before it
 *   keeps   everything else
 *   breaks  types: what is known of values that were written to is to be inferred
 */
#include "passes/pass.h"

static tssa_status *visit(void *context, struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_update))
        return NULL;
    ir_op_remove(op);
    ((struct pass_context *)context)->changed = true;
    return NULL;
}

tssa_status *pass_remove_update(struct pass_context *pass)
{
    if (!pass->graph->has_mutation)
        return NULL;
    TRY(ir_block_walk(pass->graph->body, visit, pass));
    pass->graph->has_mutation = ir_block_is_imperative(pass->graph->body);
    return NULL;
}
