/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/regions.h"

#include <string.h>

#include "ir/infer.h"

/* A param of one op's rule. */
struct place {
    const struct ir_op *op;
    const struct rule_step *step;
};

static const struct dim *number(struct place at, uint32_t i)
{
    return rule_param_dim(at.op, &at.step->params[i]);
}

static bool same_param(struct place a, struct place b, uint32_t i)
{
    const struct rule_param *p = &a.step->params[i], *q = &b.step->params[i];
    const struct ir_value *v = rule_param_value(a.op, p), *w = rule_param_value(b.op, q);
    if (v && v == w)
        return true;
    if (!p->is_operand && !q->is_operand)
        return p->value == q->value;
    /* Index tensors and masks are compared as values only: a known element is not all of them. */
    if (a.step->kind == RULE_GATHER || a.step->kind == RULE_MASK)
        return false;
    const struct dim *x = number(a, i), *y = number(b, i);
    return x && x == y;
}

static bool same_step(struct place a, struct place b)
{
    if (a.step->kind != b.step->kind || a.step->n_params != b.step->n_params)
        return false;
    for (uint32_t i = 0; i < a.step->n_params; i++)
        if (!same_param(a, b, i))
            return false;
    return true;
}

bool rule_step_is_injective(const struct rule_step *step)
{
    switch (step->kind) {
    case RULE_SELECT:
    case RULE_SLICE:
    case RULE_PERMUTE:
    case RULE_RESHAPE:
    case RULE_SQUEEZE:
    case RULE_UNSQUEEZE:
    case RULE_DIAGONAL:
    case RULE_MASK:
        return true;
    default:
        return false;
    }
}

/* ---- Ranges on one axis --------------------------------------------------------------------------- */

/* The elements that a select or slice with a positive step can mean: start, start + step, ... below end. */
struct range {
    const struct dim *start, *end; /* not negative */
    int64_t step;
};

static bool read_range(struct place at, struct range *range)
{
    struct dim_table *table = &at.op->parent->graph->dims;
    if (at.step->kind != RULE_SELECT && at.step->kind != RULE_SLICE)
        return false;
    range->start = number(at, 1);
    range->step = 1;
    if (!range->start || range->start->low < 0)
        return false;
    if (at.step->kind == RULE_SELECT) {
        range->end = dim_add(table, range->start, dim_const(table, 1));
        return range->end != NULL;
    }
    range->end = number(at, 2);
    return range->end && range->end->low >= 0 && dim_is_const(number(at, 3), &range->step) &&
           range->step > 0;
}

/* a <= b in every run. */
static bool at_most(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    const struct dim *difference = dim_sub(table, b, a);
    return difference && difference->low >= 0;
}

static bool disjoint_ranges(struct dim_table *table, const struct range *a, const struct range *b)
{
    int64_t distance;
    if (at_most(table, a->end, b->start) || at_most(table, b->end, a->start))
        return true;
    /* Every second column, from the first and from the second. */
    return a->step == b->step && dim_is_const(dim_sub(table, a->start, b->start), &distance) &&
           distance % a->step != 0;
}

/* The second range lies in the first, which has no gaps. */
static bool is_inside(struct dim_table *table, const struct range *outer, const struct range *inner)
{
    return outer->step == 1 && at_most(table, outer->start, inner->start) &&
           at_most(table, inner->end, outer->end);
}

/* Only constants can be moved. */
static bool can_move(struct place outer, struct place inner)
{
    return !outer.step->params[1].is_operand && !inner.step->params[1].is_operand &&
           (inner.step->kind == RULE_SELECT || !inner.step->params[2].is_operand);
}

/* ---- Two rules ------------------------------------------------------------------------------------ */

/* How many steps both rules begin with. */
static uint32_t common_steps(const struct ir_op *a, const struct ir_op *b)
{
    const struct rule *x = rule_of(a), *y = rule_of(b);
    uint32_t i = 0;
    while (i < x->n_steps && i < y->n_steps &&
           same_step((struct place){a, &x->steps[i]}, (struct place){b, &y->steps[i]}))
        i++;
    return i;
}

static enum region_relation relate_steps(struct place outer, struct place inner, bool last)
{
    struct dim_table *table = &outer.op->parent->graph->dims;
    struct range a, b;
    if (outer.step->params[0].value != inner.step->params[0].value || !read_range(outer, &a) ||
        !read_range(inner, &b))
        return RELATION_UNKNOWN;
    if (disjoint_ranges(table, &a, &b))
        return RELATION_DISJOINT;
    if (last && outer.step->kind == RULE_SLICE && is_inside(table, &a, &b) &&
        can_move(outer, inner))
        return RELATION_INSIDE;
    return RELATION_UNKNOWN;
}

enum region_relation regions_relate(const struct ir_op *outer, const struct ir_op *inner)
{
    const struct rule *a = rule_of(outer), *b = rule_of(inner);
    uint32_t common = common_steps(outer, inner);
    for (uint32_t i = 0; i < common; i++)
        if (!rule_step_is_injective(&a->steps[i]))
            return RELATION_UNKNOWN;
    if (common == a->n_steps)
        return common == b->n_steps ? RELATION_EQUAL : RELATION_INSIDE;
    if (common == b->n_steps || a->steps[common].n_params == 0 || b->steps[common].n_params == 0)
        return RELATION_UNKNOWN;
    return relate_steps((struct place){outer, &a->steps[common]},
                        (struct place){inner, &b->steps[common]}, common + 1 == a->n_steps);
}

bool regions_identical(const struct ir_op *a, const struct ir_op *b)
{
    return rule_of(a)->n_steps == rule_of(b)->n_steps && common_steps(a, b) == rule_of(a)->n_steps;
}

const struct rule *rule_inside(struct ir_graph *graph, const struct ir_op *outer,
                               const struct ir_op *inner)
{
    const struct rule *a = rule_of(outer), *b = rule_of(inner);
    struct rule_step steps[RULE_MAX_STEPS];
    struct rule_param params[4];
    uint32_t common = common_steps(outer, inner), n = b->n_steps - common;
    if (n)
        memcpy(steps, b->steps + common, n * sizeof *steps);
    if (n && common < a->n_steps) { /* a slice of constant start, then something in it */
        int64_t start = a->steps[common].params[1].value;
        memcpy(params, steps[0].params, steps[0].n_params * sizeof *params);
        params[1].value -= start;
        if (steps[0].kind == RULE_SLICE)
            params[2].value -= start;
        steps[0].params = params;
    }
    return rule_create(graph, n, steps);
}

/* ---- Rules that cannot fail ----------------------------------------------------------------------- */

/* What a step could find wrong at run time, given the shape before it. */
static bool step_never_fails(const struct ir_op *op, const struct rule_step *step,
                             const struct dim *const *dims)
{
    int64_t dim;
    const struct dim *index;
    switch (step->kind) {
    case RULE_SELECT:
        index = rule_param_dim(op, &step->params[1]);
        return index && dim_is_const(dims[step->params[0].value], &dim) && index->low >= -dim &&
               index->high < dim;
    case RULE_SQUEEZE:
        for (uint32_t i = 0; i < step->n_params; i++)
            if (!dim_is_const(dims[step->params[i].value], &dim) || dim != 1)
                return false;
        return true;
    case RULE_SLICE:
        return !step->params[3].is_operand;
    case RULE_PERMUTE:
    case RULE_UNSQUEEZE:
    case RULE_DIAGONAL:
        return true;
    default:
        return false;
    }
}

/* The shape after the first n steps of the op's rule; false where they have none or it is not known. */
static bool prefix_shape(const struct ir_op *op, uint32_t n, const struct dim **dims)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    const struct rule prefix = {.n_steps = n, .steps = rule_of(op)->steps};
    int rank;
    /* Only the op's graph is written to. */
    tssa_status *status =
        rule_prefix_shape((struct ir_op *)op, &prefix, type->rank, type->dims, &rank, dims);
    tssa_status_free(status);
    return !status && rank >= 0;
}

bool region_never_fails(const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    const struct ir_type *type = ir_operand(op, 0)->type;
    const struct dim *dims[TSSA_MAX_RANK], *after[TSSA_MAX_RANK];
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (!prefix_shape(op, i, dims) || !prefix_shape(op, i + 1, after) ||
            !step_never_fails(op, &rule->steps[i], dims))
            return false;
    return true;
}

bool rule_is_constant(const struct rule *rule)
{
    return rule->n_operands == 0;
}
