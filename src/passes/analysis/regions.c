/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/regions.h"

#include <string.h>

#include "ir/infer.h"
#include "passes/analysis/loops.h"

bool rule_step_is_injective(const struct rule_step *step)
{
    switch (step->kind) {
    case RULE_SELECT:
    case RULE_SLICE:
    case RULE_SPAN:
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

/* The shape after the first n steps of the op's rule; false where it is not known. */
static bool prefix_shape(const struct ir_op *op, uint32_t n, int *rank, const struct dim **dims)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    const struct rule prefix = {.n_steps = n, .steps = rule_of(op)->steps};
    /* Only the op's graph is written to. */
    tssa_status *status =
        rule_prefix_shape((struct ir_op *)op, &prefix, type->rank, type->dims, rank, dims);
    tssa_status_free(status);
    return !status && *rank >= 0;
}

/* ---- Two rules ------------------------------------------------------------------------------- */

static void params_of(const struct ir_op *op, struct ir_value **params)
{
    for (uint32_t i = 0; i < rule_of(op)->n_operands; i++)
        params[i] = ir_operand(op, rule_first_operand(op) + i);
}

/* How many steps both rules begin with. */
static uint32_t common_steps(struct region_space *space, const struct ir_op *a,
                             const struct ir_op *b)
{
    struct ir_value *params_a[IR_VARIADIC], *params_b[IR_VARIADIC];
    params_of(a, params_a);
    params_of(b, params_b);
    return region_common_steps(space, rule_of(a), params_a, rule_of(b), params_b);
}

static bool is_injective(const struct rule *rule, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!rule_step_is_injective(&rule->steps[i]))
            return false;
    return true;
}

/* The elements that a select or slice with a positive step can mean: start, start + step, ... below
 * end. */
struct range {
    int64_t start, end, step;
};

/* Only constants can be moved. */
static bool read_range(const struct rule_step *step, struct range *range)
{
    for (uint32_t i = 1; i < step->n_params; i++)
        if (step->params[i].is_operand)
            return false;
    if (step->kind != RULE_SELECT && step->kind != RULE_SLICE)
        return false;
    *range = (struct range){step->params[1].value, step->params[1].value + 1, 1};
    if (step->kind == RULE_SLICE) {
        range->end = step->params[2].value;
        range->step = step->params[3].value;
    }
    return range->start >= 0 && range->end >= 0 && range->step > 0;
}

/* Is what the second step takes within what the first takes, a slice without gaps? */
static bool is_inside(const struct rule_step *outer, const struct rule_step *inner)
{
    struct range a, b;
    return outer->kind == RULE_SLICE && outer->params[0].value == inner->params[0].value &&
           read_range(outer, &a) && read_range(inner, &b) && a.step == 1 && a.start <= b.start &&
           b.end <= a.end;
}

/* The region of what the steps from `first` on take, in a base of this type. */
static tssa_status *rest_region(struct region_space *space, const struct ir_type *base,
                                const struct ir_op *op, uint32_t first, struct rule *rest,
                                struct ir_value **params, struct region *region)
{
    const struct rule *rule = rule_of(op);
    *rest = (struct rule){.n_steps = rule->n_steps - first,
                          .steps = rule->steps + first,
                          .n_operands = rule->n_operands};
    params_of(op, params);
    return region_make(space, base, rest, params, region);
}

/* What the regions say, after the steps that both begin with. */
static tssa_status *relate_rest(struct region_space *space, const struct ir_op *outer,
                                const struct ir_op *inner, uint32_t common,
                                enum region_relation *relation)
{
    const struct ir_type *base = ir_operand(outer, 0)->type;
    const struct dim *dims[TSSA_MAX_RANK];
    struct ir_value *params_a[IR_VARIADIC], *params_b[IR_VARIADIC];
    struct rule rest_a, rest_b;
    struct region a, b;
    int rank;
    *relation = RELATION_UNKNOWN;
    if (base != ir_operand(inner, 0)->type || base->kind != TYPE_TENSOR || base->rank < 0)
        return NULL;
    if (!prefix_shape(outer, common, &rank, dims))
        return NULL;
    base = type_tensor(&space->graph->types, base->dtype, rank, dims);
    TRY_ALLOC(base);
    TRY(rest_region(space, base, outer, common, &rest_a, params_a, &a));
    TRY(rest_region(space, base, inner, common, &rest_b, params_b, &b));
    if (region_disjoint(space, &a, &b) == REGION_YES)
        *relation = RELATION_DISJOINT;
    else if (a.single == REGION_YES && region_equal(space, &a, &b) == REGION_YES)
        *relation = RELATION_EQUAL;
    return NULL;
}

tssa_status *regions_relate(struct region_space *space, const struct ir_op *outer,
                            const struct ir_op *inner, enum region_relation *relation)
{
    const struct rule *a = rule_of(outer), *b = rule_of(inner);
    uint32_t common = common_steps(space, outer, inner);
    if (!is_injective(a, common))
        return relate_rest(space, outer, inner, 0, relation);
    if (common == a->n_steps) {
        *relation = common == b->n_steps ? RELATION_EQUAL : RELATION_INSIDE;
        return NULL;
    }
    TRY(relate_rest(space, outer, inner, common, relation));
    if (*relation == RELATION_UNKNOWN && common > 0)
        TRY(relate_rest(space, outer, inner, 0, relation));
    if (*relation == RELATION_UNKNOWN && common + 1 == a->n_steps && common < b->n_steps &&
        is_inside(&a->steps[common], &b->steps[common]))
        *relation = RELATION_INSIDE;
    return NULL;
}

bool regions_identical(struct region_space *space, const struct ir_op *a, const struct ir_op *b)
{
    return rule_of(a)->n_steps == rule_of(b)->n_steps &&
           common_steps(space, a, b) == rule_of(a)->n_steps;
}

const struct rule *rule_inside(struct region_space *space, const struct ir_op *outer,
                               const struct ir_op *inner)
{
    const struct rule *a = rule_of(outer), *b = rule_of(inner);
    struct rule_step steps[RULE_MAX_STEPS];
    struct rule_param params[4];
    uint32_t common = common_steps(space, outer, inner), n = b->n_steps - common;
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
    return rule_create(space->graph, n, steps);
}

/* ---- Rules that cannot fail ------------------------------------------------------------------ */

/* A select whose index a loop around the op counts, and that is there in all of its iterations; and
 * of what is read, elements more than once. */
static bool step_never_fails_in_loops(const struct ir_op *op, const struct rule_step *step,
                                      int rank, const struct dim *const *dims)
{
    const struct dim *index =
        step->kind == RULE_SELECT ? rule_param_dim(op, &step->params[1]) : NULL;
    if (index && loop_counts_within(op, index, dims[step->params[0].value]))
        return true;
    return ir_op_is(op, IR_OP_access) && (step->kind == RULE_EXPAND || step->kind == RULE_TILE) &&
           rule_step_is_total(step, rank, dims, NULL);
}

/* Regions that may hold an element more than once, or that data tells, are left alone. */
static bool step_never_fails(const struct ir_op *op, const struct rule_step *step, int rank,
                             const struct dim *const *dims)
{
    if (step->kind == RULE_EXPAND || step->kind == RULE_TILE || step->kind == RULE_GATHER)
        return false;
    const struct ir_value *index =
        step->kind == RULE_SELECT ? rule_param_value(op, &step->params[1]) : NULL;
    return rule_step_is_total(step, rank, dims, index);
}

static bool never_fails(const struct ir_op *op, bool in_loops)
{
    const struct rule *rule = rule_of(op);
    const struct ir_type *type = ir_operand(op, 0)->type;
    const struct dim *dims[TSSA_MAX_RANK], *after[TSSA_MAX_RANK];
    int rank;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (!prefix_shape(op, i + 1, &rank, after) || !prefix_shape(op, i, &rank, dims) ||
            !(step_never_fails(op, &rule->steps[i], rank, dims) ||
              (in_loops && step_never_fails_in_loops(op, &rule->steps[i], rank, dims))))
            return false;
    return true;
}

bool region_never_fails(const struct ir_op *op)
{
    return never_fails(op, false);
}

bool region_never_fails_in_loops(const struct ir_op *op)
{
    return never_fails(op, true);
}

bool rule_is_constant(const struct rule *rule)
{
    return rule->n_operands == 0;
}
