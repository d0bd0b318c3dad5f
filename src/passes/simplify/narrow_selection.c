/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TopK and NonMaxSuppression choose no more elements than are used: exporters sort everything, or
 * keep all boxes, and then take the first.
 *
 *     TopK(x, 2402), both results cut to [:200]   ->   TopK(x, 200)
 *     boxes = NonMaxSuppression(.., scores, n)     boxes = NonMaxSuppression(.., scores, 100)
 *     order = TopK(scores[boxes[:, 2]])        ->  order = TopK(scores[boxes[:, 2]])
 *     y = f(boxes[order])[:100]                    y = f(boxes[order])
 *
 * The slices stay; `identity` removes those that take all there is now. What is made of each
 * element by itself may lie between the choice and the cut (analysis/rows_used.h). Of TopK only for
 * results in order, of which the first are the same whatever K is, and for a K that is no error.
 * Boxes are chosen from the highest score down, so that those with the 100 highest scores are the
 * first 100 of their class. The standard does not say in which order they are returned: in a file
 * it counts only that they are sorted by their scores afterwards, of one batch and class; in a
 * session, where that order is known, any cut does.
 *
 *   needs   types, known elements
 *   keeps   what it does not narrow; not which boxes have a NaN as score, which is anybody's choice
 *   breaks  the types of what is made of the choice are inferred anew; the old number may be dead
 */
#include "ir/infer.h"
#include "passes/analysis/boxes.h"
#include "passes/analysis/loops.h"
#include "passes/analysis/rows_used.h"
#include "passes/pass.h"

/* What is known of a list of one number. */
static const struct dim *only_element(const struct ir_value *list)
{
    return list && list->known && list->known->count == 1 ? list->known->elements[0] : NULL;
}

/* The operand that says how many becomes `used`, where that is less in any case; else the less of
 * both. */
static tssa_status *narrow(struct pass_context *pass, struct ir_op *op, uint32_t index,
                           bool is_less, int64_t used)
{
    struct ir_value *old = ir_operand(op, index), *number;
    struct ir_op *constant = ir_constant_ints(pass->graph, infer_value_rank(old), 1, &used);
    TRY_ALLOC(constant);
    TRY(pass_insert(constant, op));
    number = &constant->results[0];
    if (!is_less)
        TRY(loop_make_binary(op, IR_OP_Min, old, number, &number));
    ir_op_set_operand(op, index, number);
    pass->changed = true;
    TRY(ir_infer_op_lenient(op));
    return pass_remark(pass, TSSA_REMARK_APPLIED, op,
                       "chooses no more than %lld, as no more are used", (long long)used);
}

/* ---- TopK ------------------------------------------------------------------------------------ */

/*
 * Along which axis elements come in order, all of them or fewer; -1: in none, or K may be an error.
 */
static int sorted_axis(const struct ir_op *op)
{
    const struct ir_value *x = ir_operand(op, 0);
    const struct dim *k = only_element(ir_operand(op, 1));
    int axis;
    if (!ir_op_is(op, IR_OP_TopK) || !ir_attr_int(op, "sorted", 1) || !k ||
        !infer_find_axis(ir_op_axis(op), infer_value_rank(x), &axis))
        return -1;
    const struct dim *all = x->type->dims[axis];
    bool fits = k == all || (k->low >= 0 && k->high <= all->low);
    for (uint32_t i = 0; i < k->n_terms && k->kind == DIM_MIN && k->low >= 0; i++)
        fits |= k->terms[i] == all;
    return fits ? axis : -1;
}

/* How many of them are used. */
static bool sorted_used(const struct ir_op *op, int64_t *used)
{
    const struct ir_value *results[2];
    uint32_t n = 0;
    int axis = sorted_axis(op);
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses)
            results[n++] = &op->results[i];
    return axis >= 0 && n > 0 && rows_used(results, n, axis, used);
}

static tssa_status *narrow_topk(struct pass_context *pass, struct ir_op *op)
{
    int64_t used;
    if (!sorted_used(op, &used) || only_element(ir_operand(op, 1))->high <= used)
        return NULL;
    return narrow(pass, op, 1, only_element(ir_operand(op, 1))->low >= used, used);
}

/* ---- NonMaxSuppression ----------------------------------------------------------------------- */

/* What sorts the elements, if nothing else but their number is asked for, for it; else NULL. */
static const struct ir_op *only_sort(const struct ir_value *elements)
{
    const struct ir_op *sort = NULL;
    for (const struct ir_use *use = elements->uses; use; use = use->next) {
        const struct ir_op *op = use->user;
        if (!ir_op_is(op, IR_OP_TopK) || (sort && sort != op))
            continue;
        sort = op;
    }
    for (const struct ir_use *use = elements->uses; use && sort; use = use->next) {
        const struct ir_op *op = use->user;
        bool counts = (op->info->flags & IR_SHAPE) && op->n_results == 1;
        for (const struct ir_use *of = counts ? op->results[0].uses : NULL; of; of = of->next)
            counts &= of == &sort->operands[1];
        if (use != &sort->operands[0] && !counts)
            return NULL;
    }
    return sort;
}

/* Are the boxes used in the order of their scores alone? How many of them are, then. */
static bool sorted_boxes_used(const struct ir_op *op, int64_t *used)
{
    const struct ir_value *boxes = boxes_kept(op), *scores = boxes_scores(op);
    const struct ir_op *sort = NULL;
    for (const struct ir_use *use = boxes && scores ? boxes->uses : NULL; use; use = use->next)
        if (use == &use->user->operands[1] && ir_op_is(use->user, IR_OP_Gather) &&
            ir_operand(use->user, 0) == scores)
            sort = only_sort(&use->user->results[0]);
    if (!sort || !ir_attr_int(sort, "largest", 1) || !sorted_used(sort, used))
        return false;
    for (const struct ir_use *use = boxes->uses; use; use = use->next) {
        const struct ir_op *gather = use->user;
        if (!ir_op_is(gather, IR_OP_Gather))
            return false;
        bool sorted = use == &gather->operands[1] && gather->results[0].uses &&
                      ir_operand(gather, 0) == scores && ir_operand(sort, 0) == &gather->results[0];
        bool taken = use == &gather->operands[0] && sort->n_results == 2 &&
                     ir_operand(gather, 1) == &sort->results[1];
        if (!sorted && !taken)
            return false;
    }
    return true;
}

static tssa_status *narrow_boxes(struct pass_context *pass, struct ir_op *op)
{
    const struct ir_value *results[] = {&op->results[0]}, *scores = ir_operand(op, 1);
    const struct dim *limit = only_element(ir_operand(op, 2));
    int64_t used;
    if (!limit || infer_value_rank(scores) != 3 ||
        (!sorted_boxes_used(op, &used) &&
         !(pass_is_for_session(pass) && rows_used(results, 1, 0, &used))) ||
        limit->high <= used)
        return NULL;
    return narrow(pass, op, 2, limit->low >= used || limit == scores->type->dims[2], used);
}

/* ---- All ------------------------------------------------------------------------------------- */

static tssa_status *visit_boxes(void *context, struct ir_op *op)
{
    return ir_op_is(op, IR_OP_NonMaxSuppression) ? narrow_boxes(context, op) : NULL;
}

static tssa_status *visit_topk(void *context, struct ir_op *op)
{
    return ir_op_is(op, IR_OP_TopK) ? narrow_topk(context, op) : NULL;
}

/* What sorts fewer boxes then may have no more to sort than it takes: its types tell, the next
 * time. */
tssa_status *pass_narrow_selection(struct pass_context *pass)
{
    TRY(ir_block_walk(pass->graph->body, visit_boxes, pass));
    return pass->changed ? NULL : ir_block_walk(pass->graph->body, visit_topk, pass);
}
