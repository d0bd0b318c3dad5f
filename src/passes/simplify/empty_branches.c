/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nobody asks whether there is anything where nothing comes of nothing anyway:
 *
 *     If(n > 0) { TopK(x, min(n, 1000)) } else { x, [] }   ->   TopK(x, min(n, 1000))
 *
 * with x of n elements. What branches hold is no launch with what others hold; a device that has
 * one for several lists has one for all levels of a detector, then.
 *
 *   needs   types, known elements, a table of what kernels take, else nothing is done
 *   keeps   results' bits; ops that could fail for nothing stay behind their condition
 *   breaks  types: users of the results may be inferred more precisely (infer)
 */
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/total.h"
#include "passes/pass.h"

/* ---- Sizes where there is nothing ------------------------------------------------------------ */

static bool is_nothing(void *context, const struct dim *symbol, int64_t *value)
{
    *value = 0;
    return symbol == context;
}

/* The dim where the symbol is 0. */
static bool size_of_nothing(const struct dim *dim, const struct dim *symbol, int64_t *size)
{
    return dim && dim_eval(dim, is_nothing, (void *)symbol, size);
}

/* Do both have one shape then, of no elements? */
static bool are_empty(const struct ir_value *a, const struct ir_value *b, const struct dim *symbol)
{
    const struct ir_type *x = a->type, *y = b->type;
    bool empty = false;
    if (x->kind != TYPE_TENSOR || y->kind != TYPE_TENSOR || x->dtype != y->dtype || x->rank < 0 ||
        x->rank != y->rank)
        return false;
    for (int i = 0; i < x->rank; i++) {
        int64_t of_x, of_y;
        if (x->dims[i] == y->dims[i] && !size_of_nothing(x->dims[i], symbol, &of_x))
            continue;
        if (!size_of_nothing(x->dims[i], symbol, &of_x) ||
            !size_of_nothing(y->dims[i], symbol, &of_y) || of_x != of_y)
            return false;
        empty |= of_x == 0;
    }
    return empty;
}

/* ---- Branches -------------------------------------------------------------------------------- */

/* The number, if it is one that only a run can tell. */
static const struct dim *symbol_of(const struct ir_value *value)
{
    const struct ir_known *known = value ? value->known : NULL;
    const struct dim *dim = known && known->count == 1 ? known->elements[0] : NULL;
    return dim && dim->kind == DIM_SYMBOL && dim->low >= 0 ? dim : NULL;
}

static bool is_zero(const struct ir_value *value)
{
    const struct ir_known *known = value ? value->known : NULL;
    return known && known->count == 1 && dim_is(known->elements[0], 0);
}

/* The number that the branch that is taken has as more than 0; NULL: it asks something else. */
static const struct dim *asked_of(const struct ir_value *condition)
{
    const struct ir_op *op = condition ? condition->op : NULL;
    if (op && ir_op_is(op, IR_OP_Greater) && is_zero(ir_operand(op, 1)))
        return symbol_of(ir_operand(op, 0));
    if (op && ir_op_is(op, IR_OP_Less) && is_zero(ir_operand(op, 0)))
        return symbol_of(ir_operand(op, 1));
    return NULL;
}

/* Of nothing it finds nothing. */
static bool finds_nothing(const struct ir_op *op, const struct dim *symbol)
{
    int64_t size, wanted;
    if (!ir_op_is(op, IR_OP_TopK)) /* others may have no operand */
        return false;
    const struct ir_type *type = ir_operand(op, 0)->type;
    const struct ir_known *k = infer_known(op, 1);
    int64_t axis = ir_op_axis(op);
    if (type->kind != TYPE_TENSOR || type->rank < 1)
        return false;
    axis += axis < 0 ? type->rank : 0;
    return axis >= 0 && axis < type->rank && k && k->count == 1 &&
           size_of_nothing(type->dims[axis], symbol, &size) && size == 0 &&
           size_of_nothing(k->elements[0], symbol, &wanted) && wanted == 0;
}

/* Can nothing in the block fail where there is nothing? */
static bool is_harmless(const struct ir_block *block, const struct dim *symbol)
{
    for (const struct ir_op *op = block->first; op->next; op = op->next)
        if (op->opaque || !(ir_op_is_total(op) || finds_nothing(op, symbol)))
            return false;
    return true;
}

static bool may_always(const struct ir_op *op)
{
    const struct dim *symbol = asked_of(ir_operand(op, 0));
    const struct ir_block *there = ir_op_block(op, "then_branch");
    if (!symbol || !is_harmless(there, symbol))
        return false;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted &&
            !are_empty(ir_operand(ir_block_return(there), i),
                       ir_operand(ir_block_return(ir_op_block(op, "else_branch")), i), symbol))
            return false;
    return true;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    if (!ir_op_is(op, IR_OP_If) || op->opaque || !may_always(op))
        return NULL;
    struct ir_block *block = ir_op_block(op, "then_branch");
    const struct ir_op *ret = ir_block_return(block);
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op,
                    "computed in any case: nothing comes of nothing"));
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted)
            ir_value_replace(&op->results[i], ir_operand(ret, i));
    ir_move_ops(block, op);
    ir_release_blocks(op);
    ir_op_remove(op);
    pass->changed = true;
    return NULL;
}

tssa_status *pass_empty_branches(struct pass_context *pass)
{
    return pass->fusion && (pass->fusion->classes & IR_FUSES_LISTS)
               ? ir_block_walk(pass->graph->body, visit, pass)
               : NULL;
}
