/* SPDX-License-Identifier: Apache-2.0 */
/* Making ops. */
#include "ir/infer.h"
#include "passes/pass.h"

tssa_status *pass_insert(struct ir_op *op, struct ir_op *before)
{
    TRY_ALLOC(op);
    op->name = before->name;
    ir_op_insert_before(op, before);
    return ir_infer_op_lenient(op);
}
