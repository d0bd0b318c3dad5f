/* SPDX-License-Identifier: Apache-2.0 */
/* Making ops, and putting them in the place of others. */
#include "ir/infer.h"
#include "passes/pass.h"

tssa_status *pass_insert(struct ir_op *op, struct ir_op *before)
{
    TRY_ALLOC(op);
    op->name = before->name;
    ir_op_insert_before(op, before);
    return ir_infer_op_lenient(op);
}

tssa_status *pass_replace(struct pass_context *pass, struct ir_op *op, struct ir_op *by)
{
    TRY(pass_insert(by, op));
    by->results[0].name = op->results[0].name;
    op->results[0].name = NULL;
    ir_value_replace(&op->results[0], &by->results[0]);
    ir_op_remove(op);
    pass->changed = true;
    return NULL;
}
