/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are selected before they are computed, where no other row is used: what databases call
 * selection pushdown.
 *
 *     Compress(Sigmoid(x), mask)        ->   Sigmoid(Compress(x, mask))
 *     Gather(Concat(Exp(x), z), rows)   ->   Concat(Exp(Gather(x, rows)), Gather(z, rows))
 *
 * Detectors score all candidates and keep few. A selection that is the only reader goes up through
 * an element-wise op one of whose operands alone has the rows, in elements that are no larger;
 * others are broadcast along them. So it reads what it has read before, be it that all rows are
 * selected. Past a Slice of an inner axis it goes where that leaves most of a row, and through a
 * Squeeze, an Unsqueeze or a join along another axis where there is such an op above, and of a
 * join, where that is most of it.
 *
 *   needs   types
 *   keeps   results' bits; that a run fails: what could fail in a row that is not selected is not
 *           passed
 *   breaks  types behind it, where sizes have other names now (infer)
 */
#include "ir/clone.h"
#include "ir/infer.h"
#include "ir/total.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"
#include "passes/simplify/selections.h"

#define MOST_STEPS 8 /* joins and views between a selection and what is computed */

/*
 * What computes the value for one reader alone, and may as well compute fewer rows; NULL: nobody.
 */
static struct ir_op *maker_of(const struct pass_context *pass, const struct ir_value *value,
                              const struct ir_block *block)
{
    struct ir_op *op = value->op;
    return op && op->parent == block && !op->opaque && op->n_results == 1 && !value->uses->next &&
                   ir_op_is_total(op) && !pass_is_pinned(pass, op)
               ? op
               : NULL;
}

/* ---- What is saved -----------------------------------------------------------------------------
 */

static bool saves(const struct pass_context *pass, const struct ir_value *value,
                  const struct ir_block *block, int axis, int steps);

/* Is most of a join computed for it? */
static bool join_saves(const struct pass_context *pass, const struct ir_op *op,
                       const struct ir_block *block, int axis, int along, int steps)
{
    int64_t all = 0, saved = 0, size;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        if (infer_value_rank(operand) < 0 || !dim_is_const(operand->type->dims[along], &size))
            return false;
        all += size;
        saved += saves(pass, operand, block, axis, steps) ? size : 0;
    }
    return saved > all / 2;
}

/* Is there something to be computed for selected rows alone? */
static bool saves(const struct pass_context *pass, const struct ir_value *value,
                  const struct ir_block *block, int axis, int steps)
{
    const struct ir_op *op = maker_of(pass, value, block);
    const struct ir_value *viewed;
    int found;
    if (!op || steps == 0)
        return false;
    if (selection_rows_operand(op, axis, &found) || selection_sliced_operand(op, axis, &found))
        return true;
    if (selection_is_join(op, axis, &found))
        return join_saves(pass, op, block, axis, found, steps - 1);
    viewed = selection_viewed_operand(op, axis, &found);
    return viewed && saves(pass, viewed, block, found, steps - 1);
}

/* ---- Going up -------------------------------------------------------------------------------- */

/* The same rows of another value, before the selection. */
static tssa_status *select_of(struct ir_cloner *cloner, const struct selection *selection,
                              struct ir_value *value, int axis, struct ir_value **rows)
{
    const struct ir_attr along = {
        .name = intern_str(&cloner->graph->strings, "axis"), .kind = IR_ATTR_INT, .i = axis};
    struct ir_op *op;
    ir_cloner_reset(cloner);
    if (!along.name || !ir_cloner_map(cloner, ir_operand(selection->op, 0), value))
        return status_out_of_memory();
    op = ir_clone_op(cloner, selection->op);
    if (!op || !ir_op_set_attr(cloner->graph, op, &along))
        return status_out_of_memory();
    *rows = &op->results[0];
    return pass_insert(op, selection->op);
}

/* The op of selected rows, in the place of the selection of what it makes of all. */
static tssa_status *pass_by(struct pass_context *pass, struct ir_cloner *cloner,
                            const struct selection *selection, struct ir_op *op, uint32_t n,
                            struct ir_value *const *all, struct ir_value *const *rows,
                            struct ir_op **made)
{
    ir_cloner_reset(cloner);
    for (uint32_t i = 0; i < n; i++)
        if (!ir_cloner_map(cloner, all[i], rows[i]))
            return status_out_of_memory();
    *made = ir_clone_op(cloner, op);
    TRY_ALLOC(*made);
    TRY(pass_replace(pass, selection->op, *made));
    (*made)->name = op->name;
    ir_op_remove(op);
    return pass_remark(pass, TSSA_REMARK_APPLIED, *made,
                       "is computed for the rows that are selected afterwards, not for all");
}

/* A GatherND can select along the first axis alone: in its place stands a Gather by a list. */
static tssa_status *make_gather(struct pass_context *pass, struct selection *selection)
{
    struct ir_op *old = selection->op, *list = loop_make_op(old, IR_OP_Reshape, 2), *gather;
    struct ir_value *all;
    TRY_ALLOC(list);
    TRY(loop_make_int(list, 1, -1, &all));
    ir_op_set_operand(list, 0, ir_operand(old, 1));
    ir_op_set_operand(list, 1, all);
    TRY(ir_infer_op_lenient(list));
    gather = loop_make_op(old, IR_OP_Gather, 2);
    TRY_ALLOC(gather);
    ir_op_set_operand(gather, 0, ir_operand(old, 0));
    ir_op_set_operand(gather, 1, &list->results[0]);
    TRY(ir_infer_op_lenient(gather));
    loop_replace(&old->results[0], &gather->results[0]);
    ir_op_remove(old);
    selection->op = gather;
    pass->changed = true;
    return NULL;
}

/* One op up. *next is what stands in the place of the selection, which is right before it. */
static tssa_status *push(struct pass_context *pass, struct ir_cloner *cloner,
                         struct selection *selection, struct ir_op **next)
{
    const struct ir_block *block = selection->op->parent;
    struct ir_value *x = ir_operand(selection->op, 0), *all[SELECTION_MOST_JOINED],
                    *rows[SELECTION_MOST_JOINED];
    struct ir_op *op = maker_of(pass, x, block);
    uint32_t n = 1;
    int axis, along;
    if (!op || !saves(pass, x, block, selection->axis, MOST_STEPS))
        return NULL;
    if (ir_op_is(selection->op, IR_OP_GatherND))
        TRY(make_gather(pass, selection));
    all[0] = selection_rows_operand(op, selection->axis, &axis);
    if (!all[0])
        all[0] = selection_sliced_operand(op, selection->axis, &axis);
    if (!all[0])
        all[0] = selection_viewed_operand(op, selection->axis, &axis);
    if (!all[0] && selection_is_join(op, selection->axis, &along))
        for (n = 0, axis = selection->axis; n < op->n_operands; n++)
            all[n] = ir_operand(op, n);
    for (uint32_t i = 0; i < n; i++)
        TRY(select_of(cloner, selection, all[i], axis, &rows[i]));
    return pass_by(pass, cloner, selection, op, n, all, rows, next);
}

/* From the last op on: selections that have gone up are come to again. */
static tssa_status *push_in_block(struct pass_context *pass, struct ir_cloner *cloner,
                                  struct ir_block *block)
{
    for (struct ir_op *op = block->last; op; op = op->prev) {
        struct selection selection;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(push_in_block(pass, cloner, op->blocks[i]));
        if (selection_find(op, &selection))
            TRY(push(pass, cloner, &selection, &op));
    }
    return NULL;
}

tssa_status *pass_push_selections(struct pass_context *pass)
{
    struct ir_cloner cloner;
    ir_cloner_init(&cloner, pass->graph);
    tssa_status *status = push_in_block(pass, &cloner, pass->graph->body);
    ir_cloner_free(&cloner);
    return status;
}
