/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes in order is not sorted again:
 *
 *     n = NonMaxSuppression(.., scores, ..)       n = NonMaxSuppression(.., scores, ..)
 *     boxes = n[:, 2]                             boxes = n[:, 2]
 *     s = scores[boxes]                      ->   s = scores[boxes]
 *     t, order = TopK(s, size of s)               t = s
 *     y = boxes[order]                            y = boxes
 *
 * Boxes of one batch and class are kept from the highest score down, equal ones by their numbers,
 * and TopK puts equal elements in the order of theirs: nothing changes its place. The standard does
 * not say in which order boxes are returned, so that files keep the sort. Of `order` nothing may
 * be asked but elements of what has as many.
 *
 *   needs   types, known elements
 *   keeps   results' bits
 *   breaks  sizes and selections may be dead (dead_code)
 */
#include "ir/infer.h"
#include "passes/analysis/boxes.h"
#include "passes/pass.h"

/* Are they gathered from a list of scores by the numbers of the boxes that are kept for these? */
static bool are_kept_scores(const struct ir_value *scores)
{
    const struct ir_op *op = scores->op;
    if (!op || !ir_op_is(op, IR_OP_Gather) || infer_value_rank(scores) != 1 ||
        infer_value_rank(ir_operand(op, 0)) != 1)
        return false;
    const struct ir_op *nms = boxes_kept_by(ir_operand(op, 1));
    return nms && boxes_scores(nms) == ir_operand(op, 0);
}

/* Are all of a list put into order, from the highest one down? */
static bool sorts_all(const struct ir_op *op)
{
    const struct ir_value *list = ir_operand(op, 0), *most = ir_operand(op, 1);
    return most && infer_value_rank(list) == 1 && most->known && most->known->count == 1 &&
           most->known->elements[0] == list->type->dims[0] && ir_attr_int(op, "largest", 1) &&
           ir_attr_int(op, "sorted", 1);
}

/* Does it gather, by these numbers, from what has as many rows? */
static bool gathers_all(const struct ir_use *use, const struct ir_value *numbers)
{
    const struct ir_op *op = use->user;
    const struct ir_value *from = ir_operand(op, 0);
    int axis;
    return ir_op_is(op, IR_OP_Gather) && use == &op->operands[1] &&
           infer_find_axis(ir_op_axis(op), infer_value_rank(from), &axis) && axis == 0 &&
           from->type->dims[0] == numbers->type->dims[0];
}

static void drop_order(struct ir_value *order)
{
    const struct ir_use *next;
    for (const struct ir_use *use = order->uses; use; use = next) {
        next = use->next;
        ir_value_replace(&use->user->results[0], ir_operand(use->user, 0));
    }
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    if (!ir_op_is(op, IR_OP_TopK) || op->opaque || !sorts_all(op) ||
        !are_kept_scores(ir_operand(op, 0)))
        return NULL;
    struct ir_value *order = ir_result(op, 1);
    for (const struct ir_use *use = order ? order->uses : NULL; use; use = use->next)
        if (!gathers_all(use, order))
            return NULL;
    if (!op->results[0].uses && !(order && order->uses))
        return NULL;
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "what it sorts is in order"));
    if (order)
        drop_order(order);
    ir_value_replace(&op->results[0], ir_operand(op, 0));
    pass->changed = true;
    return NULL;
}

tssa_status *pass_known_order(struct pass_context *pass)
{
    return pass_is_for_session(pass) ? ir_block_walk(pass->graph->body, visit, pass) : NULL;
}
