/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of If: what both branches return, or the one that is taken. */
#include "ir/infer.h"
#include "ir/infer_block.h"

/* ---- What the condition says ----------------------------------------------------------------- */

/* What the condition of an If says about a dim in one of its branches: the symbol is the value
 * there. */
struct pin {
    const struct dim *symbol, *value; /* NULL: nothing */
};

unsigned infer_signs(enum ir_op_id id)
{
    switch (id) {
    case IR_OP_Equal:
        return INFER_EQUAL;
    case IR_OP_Less:
        return INFER_LESS;
    case IR_OP_LessOrEqual:
        return INFER_LESS | INFER_EQUAL;
    case IR_OP_Greater:
        return INFER_GREATER;
    case IR_OP_GreaterOrEqual:
        return INFER_GREATER | INFER_EQUAL;
    default:
        return INFER_ANY;
    }
}

/* c*symbol + k == 0 says what the symbol is; *pin stays empty for anything else. */
static tssa_status *pin_zero(struct dim_table *dims, const struct dim *zero, struct pin *pin)
{
    int64_t value = 0;
    const struct dim *symbol = zero;
    if (zero->kind == DIM_SUM && zero->n_terms == 1) {
        int64_t c = zero->coefficients[0];
        if (c == 0 || c == -1 ? zero->value == INT64_MIN : zero->value % c != 0)
            return NULL;
        value = c == -1 ? zero->value : -(zero->value / c);
        symbol = zero->terms[0];
    }
    if (symbol->kind != DIM_SYMBOL)
        return NULL;
    pin->value = dim_const(dims, value);
    TRY_ALLOC(pin->value);
    pin->symbol = symbol;
    return NULL;
}

/* "n > 0 is false" means n == 0 for a size. */
static tssa_status *pin_of(struct ir_graph *graph, const struct ir_value *condition, bool holds,
                           struct pin *pin)
{
    const struct ir_op *op = condition ? condition->op : NULL;
    while (op && (ir_op_is(op, IR_OP_Not) || (op->info->flags & IR_ALIAS))) {
        holds = ir_op_is(op, IR_OP_Not) ? !holds : holds;
        condition = ir_operand(op, 0);
        op = condition ? condition->op : NULL;
    }
    unsigned signs = op ? infer_signs(op->info->id) : INFER_ANY;
    const struct ir_known *a = op ? infer_known(op, 0) : NULL, *b = op ? infer_known(op, 1) : NULL;
    if (signs == INFER_ANY || !a || !b || a->count != 1 || b->count != 1 || !a->elements[0] ||
        !b->elements[0])
        return NULL;
    const struct dim *difference = dim_sub(&graph->dims, a->elements[0], b->elements[0]);
    TRY_ALLOC(difference);
    signs = holds ? signs : INFER_ANY & ~signs;
    if (difference->low >= 0)
        signs &= ~(unsigned)INFER_LESS;
    if (difference->high <= 0)
        signs &= ~(unsigned)INFER_GREATER;
    return signs == INFER_EQUAL ? pin_zero(&graph->dims, difference, pin) : NULL;
}

/* A dim in a branch, with what the condition says there. */
static const struct dim *pinned(struct ir_graph *graph, const struct dim *dim,
                                const struct pin *pin)
{
    return pin->symbol ? dim_substitute(&graph->dims, dim, pin->symbol, pin->value) : dim;
}

/* Two dims that were joined before, in this If. */
struct joined {
    const struct dim *a, *b, *dim;
};

struct join {
    uint32_t first_local; /* dims from here on may not leave the branches */
    struct pin then_pin, else_pin;
    struct joined *pairs; /* room for all that can be needed */
    size_t count;
};

/* The dim that both are, as far as their branches know; NULL: there is none that may leave them.
 * min(n, 10) and 0 are min(n, 10), when n is 0 in the other branch. */
static const struct dim *common_dim(struct ir_graph *graph, const struct join *join,
                                    const struct dim *a, const struct dim *b)
{
    bool a_leaves = !infer_is_local(a, join->first_local);
    bool b_leaves = !infer_is_local(b, join->first_local);
    if (a == b)
        return a_leaves ? a : NULL;
    if (a_leaves && join->else_pin.symbol &&
        pinned(graph, a, &join->else_pin) == pinned(graph, b, &join->else_pin))
        return a;
    if (b_leaves && join->then_pin.symbol &&
        pinned(graph, a, &join->then_pin) == pinned(graph, b, &join->then_pin))
        return b;
    return NULL;
}

/* A dim that is `a` in one branch and `b` in the other; pairs that occur again get the same symbol
 * again. */
static const struct dim *join_dim(struct ir_graph *graph, struct join *join, const struct dim *a,
                                  const struct dim *b)
{
    const struct dim *dim = common_dim(graph, join, a, b);
    if (dim)
        return dim;
    for (size_t i = 0; i < join->count; i++)
        if (join->pairs[i].a == a && join->pairs[i].b == b)
            return join->pairs[i].dim;
    const struct dim *x = pinned(graph, a, &join->then_pin), *y = pinned(graph, b, &join->else_pin);
    if (!x || !y)
        return NULL;
    dim = dim_fresh_between(&graph->dims, "d", x->low < y->low ? x->low : y->low,
                            x->high > y->high ? x->high : y->high);
    join->pairs[join->count++] = (struct joined){a, b, dim};
    return dim;
}

static const struct ir_type *join_branches(struct ir_graph *graph, struct join *join,
                                           const struct ir_type *a, const struct ir_type *b)
{
    if (a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR || a->rank != b->rank || a->rank <= 0) {
        a = type_join(&graph->types, a, b);
        return a ? infer_outside(graph, a, join->first_local) : NULL;
    }
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        if (!(dims[i] = join_dim(graph, join, a->dims[i], b->dims[i])))
            return NULL;
    tssa_dtype dtype = a->dtype == b->dtype ? a->dtype : TSSA_UNDEFINED;
    return type_tensor(&graph->types, dtype, a->rank, dims);
}

/* The branch that every run takes; NULL: it depends. */
static const struct ir_block *taken_branch(const struct ir_op *op, const struct ir_block *yes,
                                           const struct ir_block *no)
{
    const struct ir_value *condition = ir_operand(op, 0);
    return infer_is_truth(condition, true) ? yes : infer_is_truth(condition, false) ? no : NULL;
}

/* What the branch that is taken returns is known outside of it as well, but for what it made
 * itself. */
static tssa_status *set_taken_known(struct ir_op *op, uint32_t index, const struct ir_block *taken,
                                    uint32_t first_local)
{
    const struct ir_known *known = infer_known(ir_block_return(taken), index);
    const struct dim *elements[IR_KNOWN_MAX];
    if (!known)
        return NULL;
    for (size_t i = 0; i < known->count; i++) {
        const struct dim *dim = known->elements[i];
        elements[i] = dim && !infer_is_local(dim, first_local) ? dim : NULL;
    }
    return infer_set_known(op, index, known->count, elements);
}

/* A branch that is never taken says nothing: squeeze(dim) is written as an If whose branches have
 * different ranks. */
INFER_RULE(if)
{
    struct ir_block *then_block, *else_block;
    struct join join = {.first_local = graph->dims.n_dims};
    TRY(infer_find_block(op, "then_branch", 0, op->n_results, &then_block));
    TRY(infer_find_block(op, "else_branch", 0, op->n_results, &else_block));
    const struct ir_block *taken = taken_branch(op, then_block, else_block);
    TRY(ir_infer_block(then_block, taken == then_block));
    TRY(ir_infer_block(else_block, taken == else_block));
    TRY(pin_of(graph, ir_operand(op, 0), true, &join.then_pin));
    TRY(pin_of(graph, ir_operand(op, 0), false, &join.else_pin));
    join.pairs = ARENA_ARRAY(&graph->arena, struct joined, (size_t)op->n_results * TSSA_MAX_RANK);
    TRY_ALLOC(join.pairs);
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_type *type =
            join_branches(graph, &join, infer_returned(taken ? taken : then_block, i),
                          infer_returned(taken ? taken : else_block, i));
        TRY(infer_set(op, i, type));
        if (taken)
            TRY(set_taken_known(op, i, taken, join.first_local));
    }
    return NULL;
}
