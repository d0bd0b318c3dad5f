/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nobody asks whether there is anything where nothing comes of nothing anyway:
 *
 *     If(n > 0) { TopK(x, min(n, 1000)) } else { x, [] }   ->   TopK(x, min(n, 1000))
 *
 * with x of n elements, which may be those of several lists. What branches hold is no launch with
 * what others hold; a device that has one for several lists has one for all levels of a detector,
 * then.
 *
 *   needs   types, known elements, a table of what kernels take, else nothing is done
 *   keeps   results' bits; ops that could fail for nothing stay behind their condition
 *   breaks  types: users of the results may be inferred more precisely (infer)
 */
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "ir/total.h"
#include "passes/pass.h"

/* ---- Sizes where there is nothing ------------------------------------------------------------ */

#define MOST_SYMBOLS 32

/* What is 0 then. */
struct nothing {
    uint32_t n;
    const struct dim *symbols[MOST_SYMBOLS];
};

static bool is_nothing(void *context, const struct dim *symbol, int64_t *value)
{
    const struct nothing *nothing = context;
    uint32_t i = 0;
    *value = 0;
    while (i < nothing->n && nothing->symbols[i] != symbol)
        i++;
    return i < nothing->n;
}

/* The dim where there is nothing. */
static bool size_of_nothing(const struct dim *dim, const struct nothing *nothing, int64_t *size)
{
    return dim && dim_eval(dim, is_nothing, (void *)nothing, size);
}

static bool is_of_nothing(const struct dim *dim, const struct nothing *nothing)
{
    int64_t size;
    return size_of_nothing(dim, nothing, &size) && size == 0;
}

static bool add_symbol(struct nothing *nothing, const struct dim *symbol)
{
    int64_t value;
    if (is_nothing(nothing, symbol, &value))
        return true;
    if (nothing->n == MOST_SYMBOLS)
        return false;
    nothing->symbols[nothing->n++] = symbol;
    return true;
}

/* All that must be 0 where the dim is; false: nobody knows. */
static bool add_zeros(struct nothing *nothing, const struct dim *dim)
{
    const struct dim *only = NULL;
    if (dim->kind == DIM_SYMBOL)
        return dim->low >= 0 && add_symbol(nothing, dim);
    if (dim->kind != DIM_SUM && dim->kind != DIM_MIN)
        return false;
    for (uint32_t i = 0; i < dim->n_terms; i++) {
        const struct dim *term = dim->terms[i];
        if (dim->kind == DIM_SUM) {
            if (dim->value != 0 || dim->coefficients[i] <= 0 || term->low < 0 ||
                !add_zeros(nothing, term))
                return false;
        } else if (term->low < 1) {
            if (only)
                return false;
            only = term;
        }
    }
    return dim->kind == DIM_SUM || (only && add_zeros(nothing, only));
}

/* Do both have one shape then, of no elements? */
static bool are_empty(const struct ir_value *a, const struct ir_value *b,
                      const struct nothing *nothing)
{
    const struct ir_type *x = a->type, *y = b->type;
    bool empty = false;
    if (x->kind != TYPE_TENSOR || y->kind != TYPE_TENSOR || x->dtype != y->dtype || x->rank < 0 ||
        x->rank != y->rank)
        return false;
    for (int i = 0; i < x->rank; i++) {
        int64_t of_x, of_y;
        if (x->dims[i] == y->dims[i] && !size_of_nothing(x->dims[i], nothing, &of_x))
            continue;
        if (!size_of_nothing(x->dims[i], nothing, &of_x) ||
            !size_of_nothing(y->dims[i], nothing, &of_y) || of_x != of_y)
            return false;
        empty |= of_x == 0;
    }
    return empty;
}

/* ---- Branches -------------------------------------------------------------------------------- */

/* The number, if inference has a name for it. */
static const struct dim *number_of(const struct ir_value *value)
{
    const struct ir_known *known = value ? value->known : NULL;
    return known && known->count == 1 ? known->elements[0] : NULL;
}

static bool is_zero(const struct ir_value *value)
{
    const struct ir_known *known = value ? value->known : NULL;
    return known && known->count == 1 && dim_is(known->elements[0], 0);
}

/* What an If asks of a number: whether there is anything. */
struct question {
    struct nothing nothing;
    struct ir_block *there, *not_there;
};

static bool find_question(const struct ir_op *op, struct question *q)
{
    const struct ir_op *asks = ir_operand(op, 0)->op;
    const struct ir_value *a = asks ? ir_operand(asks, 0) : NULL,
                          *b = asks ? ir_operand(asks, 1) : NULL;
    const bool is_equal = asks && ir_op_is(asks, IR_OP_Equal);
    const struct dim *number = NULL;
    q->nothing.n = 0;
    q->there = ir_op_block(op, is_equal ? "else_branch" : "then_branch");
    q->not_there = ir_op_block(op, is_equal ? "then_branch" : "else_branch");
    if (asks && (is_equal || ir_op_is(asks, IR_OP_Greater)) && is_zero(b))
        number = number_of(a);
    else if (asks && (is_equal || ir_op_is(asks, IR_OP_Less)) && is_zero(a))
        number = number_of(b);
    return number && add_zeros(&q->nothing, number);
}

/* Of nothing a TopK finds nothing. */
static bool sorts_nothing(const struct ir_op *op, const struct nothing *nothing)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    const struct ir_known *k = infer_known(op, 1);
    int axis;
    return type->kind == TYPE_TENSOR && type->rank > 0 &&
           infer_find_axis(ir_op_axis(op), type->rank, &axis) && k && k->count == 1 &&
           is_of_nothing(type->dims[axis], nothing) && is_of_nothing(k->elements[0], nothing);
}

/* Nor does a NonMaxSuppression keep any box; then its size is one that is 0. */
static bool keeps_nothing(const struct ir_op *op, struct nothing *nothing)
{
    const struct ir_type *boxes = ir_operand(op, 0)->type, *scores = ir_operand(op, 1)->type;
    if (boxes->kind != TYPE_TENSOR || boxes->rank != 3 || scores->kind != TYPE_TENSOR ||
        scores->rank != 3 || !dim_is(boxes->dims[2], 4) || boxes->dims[0] != scores->dims[0] ||
        boxes->dims[1] != scores->dims[2] || !is_of_nothing(boxes->dims[1], nothing))
        return false;
    for (uint32_t i = 2; i < op->n_operands; i++)
        if (ir_operand(op, i) && !type_has_one_element(ir_operand(op, i)->type))
            return false;
    const struct ir_type *kept = op->results[0].type;
    return kept->kind == TYPE_TENSOR && kept->rank == 2 && kept->dims[0]->kind == DIM_SYMBOL &&
           add_symbol(nothing, kept->dims[0]);
}

static bool has_nothing(const struct ir_value *value, const struct nothing *nothing)
{
    const struct ir_type *type = value ? value->type : NULL;
    for (int i = 0; type && type->kind == TYPE_TENSOR && i < type->rank; i++)
        if (is_of_nothing(type->dims[i], nothing))
            return true;
    return false;
}

/* Nor is anything read by no indices out of range. */
static bool reads_nothing(const struct ir_op *op, const struct nothing *nothing)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    int axis;
    return type->kind == TYPE_TENSOR && type->rank > 0 &&
           infer_find_axis(ir_op_axis(op), type->rank, &axis) &&
           has_nothing(ir_operand(op, 1), nothing);
}

/* To one axis, whatever there is of it, beside axes of one element. */
static bool reshapes_any(const struct rule_step *step)
{
    uint32_t rests = 0, ones = 0;
    for (uint32_t i = 0; i < step->n_params; i++) {
        rests += !step->params[i].is_operand && step->params[i].value == -1;
        ones += !step->params[i].is_operand && step->params[i].value == 1;
    }
    return step->kind == RULE_RESHAPE && rests == 1 && rests + ones == step->n_params;
}

/* Of one step, which cannot fail, or looks nothing up. */
static bool is_harmless_access(const struct ir_op *op, const struct nothing *nothing)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    const struct rule *rule = rule_of(op);
    if (type->kind != TYPE_TENSOR || type->rank < 0 || rule->n_steps != 1)
        return false;
    const struct rule_step *step = rule->steps;
    const struct ir_value *value =
        step->n_params > 1 ? rule_param_value(op, &step->params[1]) : NULL;
    return rule_step_is_total(step, type->rank, type->dims, value) || reshapes_any(step) ||
           (step->kind == RULE_GATHER && has_nothing(value, nothing));
}

static bool finds_nothing(const struct ir_op *op, struct nothing *nothing)
{
    if (ir_op_is(op, IR_OP_TopK))
        return sorts_nothing(op, nothing);
    if (ir_op_is(op, IR_OP_NonMaxSuppression))
        return keeps_nothing(op, nothing);
    if (ir_op_is(op, IR_OP_access))
        return is_harmless_access(op, nothing);
    return ir_op_is(op, IR_OP_Gather) && reads_nothing(op, nothing);
}

/* Can nothing in the block fail where there is nothing? */
static bool is_harmless(const struct ir_block *block, struct nothing *nothing)
{
    for (const struct ir_op *op = block->first; op->next; op = op->next)
        if (op->opaque || !(ir_op_is_total(op) || finds_nothing(op, nothing)))
            return false;
    return true;
}

static bool may_always(const struct ir_op *op, struct question *q)
{
    if (!find_question(op, q) || !is_harmless(q->there, &q->nothing))
        return false;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted &&
            !are_empty(ir_operand(ir_block_return(q->there), i),
                       ir_operand(ir_block_return(q->not_there), i), &q->nothing))
            return false;
    return true;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct question q;
    if (!ir_op_is(op, IR_OP_If) || op->opaque || !may_always(op, &q))
        return NULL;
    const struct ir_op *ret = ir_block_return(q.there);
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op,
                    "computed in any case: nothing comes of nothing"));
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted)
            ir_value_replace(&op->results[i], ir_operand(ret, i));
    ir_move_ops(q.there, op);
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
