/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that are selected of selected rows are taken from where the first selection took them:
 *
 *     GatherND(Gather(x, rows), places)   ->   Gather(x, GatherND(rows, places))
 *     Gather(Gather(x, rows), places)     ->   Gather(x, Gather(rows, places))
 *
 * Detectors take along what belongs to each candidate (coefficients of masks, scores), and then
 * keep few of them. Numbers of rows are chosen in place of the rows, which are never moved but
 * once. Nobody else reads what is selected first, and of that no more is selected than there is.
 *
 *   needs   types
 *   keeps   results' bits; that a run fails: the first numbers are known to be in range, as those
 *           are that TopK finds
 *   breaks  the first selection is dead (dead_code)
 */
#include "ir/clone.h"
#include "ir/infer.h"
#include "passes/pass.h"

/* Ops between a list of numbers and what finds them. */
#define MOST_STEPS 8

/* ---- Numbers in range ------------------------------------------------------------------------ */

/* Are all of them numbers of places along an axis of `size`, in every run? */
static bool are_below(const struct ir_value *numbers, const struct dim *size, int steps)
{
    const struct ir_op *op = numbers ? numbers->op : NULL;
    int axis;
    if (!op || op->opaque || steps == 0)
        return false;
    if (ir_op_is(op, IR_OP_TopK)) {
        const struct ir_value *x = ir_operand(op, 0);
        if (numbers->index != 1 || !infer_find_axis(ir_op_axis(op), infer_value_rank(x), &axis))
            return false;
        const struct dim *found = x->type->dims[axis];
        return found == size || found->high <= size->low;
    }
    if (ir_op_is(op, IR_OP_Gather) || ir_op_is(op, IR_OP_GatherND) ||
        ir_op_is(op, IR_OP_Transpose) ||
        ((op->info->flags & IR_ALIAS) && op->info->cls == IR_CLASS_MOVEMENT))
        return are_below(ir_operand(op, 0), size, steps - 1);
    return false;
}

/* ---- Selections ------------------------------------------------------------------------------ */

/* How many elements the first `n` axes have; NULL: memory ran out. */
static const struct dim *count_of(struct ir_graph *graph, const struct ir_type *type, int n)
{
    const struct dim *count = dim_const(&graph->dims, 1);
    for (int i = 0; i < n; i++)
        count = dim_mul(&graph->dims, count, type->dims[i]);
    return count;
}

/* No more in any run. */
static bool is_at_most(const struct dim *count, const struct dim *all)
{
    bool most = count == all || count->high <= all->low;
    for (uint32_t i = 0; count->kind == DIM_MIN && i < count->n_terms; i++)
        most |= count->terms[i] == all;
    return most;
}

/* Rows of which each is no smaller than its number, by numbers that are in range. */
static bool selects_rows(const struct ir_op *op)
{
    const struct ir_value *x = ir_operand(op, 0), *rows = ir_operand(op, 1);
    int64_t size, bytes;
    int axis;
    if (!ir_op_is(op, IR_OP_Gather) || op->opaque || infer_value_rank(rows) < 1 ||
        !infer_find_axis(ir_op_axis(op), infer_value_rank(x), &axis) || axis != 0 ||
        infer_value_rank(&op->results[0]) < 0)
        return false;
    bytes = (int64_t)dtype_info(x->type->dtype)->size;
    for (int i = 1; i < infer_value_rank(x); i++)
        if (!dim_is_const(x->type->dims[i], &size) || !i64_mul(bytes, size, &bytes))
            return false;
    return bytes >= (int64_t)dtype_info(rows->type->dtype)->size &&
           are_below(rows, x->type->dims[0], MOST_STEPS);
}

/* Does the use select, by numbers of rows alone, no more of what `rows` are the numbers of? */
static tssa_status *selects_fewer(const struct ir_use *use, const struct ir_value *rows,
                                  bool *fewer)
{
    const struct ir_op *op = use->user;
    struct ir_graph *graph = op->parent->graph;
    const struct ir_value *places = ir_operand(op, 1);
    int64_t depth = 1;
    int axis, lists = infer_value_rank(places);
    *fewer = false;
    if (use != &op->operands[0] || op->opaque || lists < 0)
        return NULL;
    if (ir_op_is(op, IR_OP_GatherND)) {
        if (ir_attr_int(op, "batch_dims", 0) != 0 || lists-- == 0 ||
            !dim_is_const(places->type->dims[lists], &depth) || depth < 1 ||
            depth > infer_value_rank(rows))
            return NULL;
    } else if (!ir_op_is(op, IR_OP_Gather) ||
               !infer_find_axis(ir_op_axis(op), infer_value_rank(ir_operand(op, 0)), &axis) ||
               axis != 0) {
        return NULL;
    }
    const struct dim *selected = count_of(graph, places->type, lists),
                     *all = count_of(graph, rows->type, (int)depth);
    if (!selected || !all)
        return status_out_of_memory();
    *fewer = is_at_most(selected, all);
    return NULL;
}

/* All that read the rows, which are beside it. */
static tssa_status *may_compose(const struct ir_op *op, bool *may)
{
    *may = selects_rows(op) && op->results[0].uses;
    if (!*may)
        return NULL;
    for (const struct ir_use *use = op->results[0].uses; use && *may; use = use->next) {
        if (use->user->parent != op->parent)
            *may = false;
        else
            TRY(selects_fewer(use, ir_operand(op, 1), may));
    }
    return NULL;
}

/* ---- Composing ------------------------------------------------------------------------------- */

/* A copy with another operand; before `before` if that is not NULL. */
static tssa_status *copy_of(struct ir_cloner *cloner, const struct ir_op *op, uint32_t index,
                            struct ir_value *operand, struct ir_op **copy)
{
    ir_cloner_reset(cloner);
    *copy = ir_clone_op(cloner, op);
    TRY_ALLOC(*copy);
    ir_op_set_operand(*copy, index, operand);
    return NULL;
}

static tssa_status *compose(struct pass_context *pass, struct ir_cloner *cloner,
                            const struct ir_op *first, struct ir_op *second)
{
    struct ir_op *numbers, *rows;
    TRY(copy_of(cloner, second, 0, ir_operand(first, 1), &numbers));
    TRY(pass_insert(numbers, second));
    TRY(copy_of(cloner, first, 1, &numbers->results[0], &rows));
    TRY(pass_replace(pass, second, rows));
    return pass_remark(pass, TSSA_REMARK_APPLIED, rows,
                       "takes the rows that are selected of those that it took");
}

static tssa_status *visit(struct pass_context *pass, struct ir_cloner *cloner,
                          struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        bool may;
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque; i++)
            TRY(visit(pass, cloner, op->blocks[i]));
        TRY(may_compose(op, &may));
        while (may && op->results[0].uses)
            TRY(compose(pass, cloner, op, op->results[0].uses->user));
    }
    return NULL;
}

tssa_status *pass_compose_selections(struct pass_context *pass)
{
    struct ir_cloner cloner;
    ir_cloner_init(&cloner, pass->graph);
    tssa_status *status = visit(pass, &cloner, pass->graph->body);
    ir_cloner_free(&cloner);
    return status;
}
