/* SPDX-License-Identifier: Apache-2.0 */
/* Inference through fuse: everything that is known of the operands is known in the block, and the
 * other way. */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/infer_block.h"

/* The block runs once whenever the op does, so that a dim which it makes is one number outside as
 * well. */
INFER_RULE(fuse)
{
    struct ir_block *body;
    TRY(infer_find_block(op, IR_FUSE_BODY, op->n_operands, op->n_results, &body));
    for (uint32_t i = 0; i < op->n_operands; i++) {
        body->params[i]->type = infer_operand_type(graph, op, i);
        body->params[i]->known = infer_known(op, i);
    }
    TRY(ir_infer_block(body, true));
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_known *known = infer_known(ir_block_return(body), i);
        TRY(infer_set(op, i, infer_returned(body, i)));
        if (known)
            TRY(infer_set_known(op, i, known->count, known->elements));
    }
    return NULL;
}
