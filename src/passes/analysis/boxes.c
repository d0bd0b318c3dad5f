/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/boxes.h"

#include "ir/infer.h"
#include "passes/analysis/rows_used.h"

const struct ir_op *boxes_kept_by(const struct ir_value *value)
{
    const struct ir_op *op = value->op;
    int64_t column;
    if (!op || !ir_op_is(op, IR_OP_Gather) || ir_op_axis(op) != 1 ||
        infer_value_rank(ir_operand(op, 1)) != 0 || !ir_operand(op, 0)->op ||
        !ir_op_is(ir_operand(op, 0)->op, IR_OP_NonMaxSuppression) ||
        !rows_known_at(ir_operand(op, 1), 0, &column) || (column != 2 && column != -1))
        return NULL;
    return ir_operand(op, 0)->op;
}

const struct ir_value *boxes_kept(const struct ir_op *nms)
{
    const struct ir_use *use = nms->results[0].uses;
    const struct ir_value *kept = use && use->user->n_results ? &use->user->results[0] : NULL;
    return kept && !use->next && boxes_kept_by(kept) == nms ? kept : NULL;
}

const struct ir_value *boxes_scores(const struct ir_op *nms)
{
    const struct ir_value *scores = ir_operand(nms, 1);
    if (infer_value_rank(scores) != 3 || !dim_is(scores->type->dims[0], 1) ||
        !dim_is(scores->type->dims[1], 1))
        return NULL;
    while (infer_value_rank(scores) > 1 && scores->op && (scores->op->info->flags & IR_ALIAS) &&
           scores->op->info->cls == IR_CLASS_MOVEMENT)
        scores = ir_operand(scores->op, 0);
    return infer_value_rank(scores) == 1 ? scores : NULL;
}
