/* SPDX-License-Identifier: Apache-2.0 */
/* What a loop carries, and whether its iterations depend on each other through it. */
#include "passes/analysis/regions.h"
#include "passes/loops/parallelize.h"

static bool refuse(struct parallel *s, const struct ir_value *value, const struct ir_op *at,
                   const char *reason)
{
    s->blamed = value;
    s->at = at;
    s->reason = reason;
    return false;
}

/* ---- What the loop carries ------------------------------------------------------------------- */

/* The same region, which moves with the counter. */
static bool moves(struct region_space *space, const struct batch *facts, const struct ir_op *a,
                  const struct ir_op *b)
{
    int64_t factor, offset;
    if (!regions_identical(space, a, b))
        return false;
    const struct rule *rule = rule_of(a);
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        if (step->kind == RULE_SELECT &&
            batch_affine(facts, rule_param_dim(a, &step->params[1]), &factor, &offset) &&
            factor != 0 && offset >= 0)
            return true; /* batch_region refuses what would become negative */
        if (step->kind == RULE_SELECT && batch_is_reversed(facts, a, &step->params[1]) &&
            region_never_fails_in_loops(a))
            return true;
        if (!rule_step_is_injective(step))
            return false;
    }
    return false;
}

/* Two accesses or assigns whose regions have nothing in common in any two different iterations. */
static tssa_status *disjoint_across(struct parallel *s, const struct batch *facts,
                                    const struct ir_op *a, const struct ir_op *b, bool *disjoint)
{
    struct regions {
        struct region a, b;
        struct ir_value *params_a[IR_VARIADIC], *params_b[IR_VARIADIC];
    } * regions;
    *disjoint = moves(&s->space, facts, a, b);
    if (*disjoint)
        return NULL;
    const struct dim *counter = region_scalar(&s->space, s->loop.body->params[0]);
    regions = ARENA_NEW(&s->pass->graph->arena, struct regions);
    TRY_ALLOC(counter);
    TRY_ALLOC(regions);
    TRY(region_of(&s->space, a, regions->params_a, &regions->a));
    TRY(region_of(&s->space, b, regions->params_b, &regions->b));
    *disjoint = region_disjoint_across(&s->space, &regions->a, &regions->b, counter, s->loop.body);
    return NULL;
}

/* All reads of the tensor as it was before the iteration are where only this iteration writes. */
static tssa_status *check_reads(struct parallel *s, const struct batch *facts, struct carried *c,
                                const struct ir_value *param, bool *ok)
{
    const struct ir_op *first = c->assigns[c->n_assigns - 1];
    for (const struct ir_use *u = param->uses; u && *ok; u = u->next) {
        if (u->user == first && u == &first->operands[0])
            continue;
        if (!ir_op_is(u->user, IR_OP_access) || u != &u->user->operands[0])
            *ok = refuse(s, param, u->user, "the whole of it is used in an iteration");
        for (uint32_t i = 0; *ok && i < c->n_assigns; i++) {
            TRY(disjoint_across(s, facts, c->assigns[i], u->user, ok));
            if (!*ok)
                refuse(s, param, u->user, "it may be read where another iteration has written");
        }
    }
    return NULL;
}

/* One more assign: it writes where no other iteration does. */
static tssa_status *check_assign(struct parallel *s, const struct batch *facts, struct carried *c,
                                 struct ir_op *op, bool *ok)
{
    c->assigns[c->n_assigns++] = op;
    for (uint32_t i = 0; *ok && i < c->n_assigns; i++)
        TRY(disjoint_across(s, facts, c->assigns[i], op, ok));
    return NULL;
}

static tssa_status *check_tensor(struct parallel *s, const struct batch *facts, uint32_t k,
                                 bool *ok)
{
    struct carried *c = &s->carried[k];
    struct ir_value *param = loop_param(&s->loop, k), *version = loop_next(&s->loop, k);
    const struct ir_op *next = s->loop.ret;
    c->kind = CARRIED_TENSOR;
    *ok = true;
    while (version != param) {
        struct ir_op *op = version->op;
        if (!op || !ir_op_is(op, IR_OP_assign) || op->parent != s->loop.body ||
            c->n_assigns == MAX_ASSIGNS)
            *ok = refuse(s, param, op, "each iteration computes it from the one before");
        else if (!version->uses || version->uses->next || version->uses->user != next)
            *ok = refuse(s, param, op, "it is used after it was written in an iteration");
        if (!*ok)
            return NULL;
        TRY(check_assign(s, facts, c, op, ok));
        if (!*ok) {
            refuse(s, param, op, "iterations may write the same elements");
            return NULL;
        }
        next = op;
        version = ir_operand(op, 0);
    }
    return check_reads(s, facts, c, param, ok);
}

/* To elements that are proven to be others in each iteration, or else to rows that data tells. */
static tssa_status *check_written(struct parallel *s, const struct batch *facts, uint32_t k,
                                  bool *ok)
{
    TRY(check_tensor(s, facts, k, ok));
    if (*ok)
        return NULL;
    const struct carried tensor = s->carried[k];
    *ok = parallel_check_scattered(s, k);
    if (*ok)
        s->reason = NULL;
    else
        s->carried[k] = tensor;
    return NULL;
}

static const struct reduction reductions[] = {
    {IR_OP_Add, IR_OP_ReduceSum, false}, {IR_OP_Mul, IR_OP_ReduceProd, false},
    {IR_OP_Max, IR_OP_ReduceMax, false}, {IR_OP_Min, IR_OP_ReduceMin, false},
    {IR_OP_And, IR_OP_ReduceMin, true},  {IR_OP_Or, IR_OP_ReduceMax, true},
};

const struct reduction *reduction_of(const struct ir_op *op)
{
    tssa_dtype dtype = op->results[0].type->dtype;
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (ir_op_is(op, reductions[i].id) &&
            (reductions[i].truth || dtype == TSSA_INT32 || dtype == TSSA_INT64))
            return &reductions[i];
    return NULL;
}

/* A running sum of floats is what CumSum makes of the first one and the terms: it adds one after
 * the other, too. Of two bytes it would round at the end only. */
static bool is_ordered(const struct ir_op *op)
{
    tssa_dtype dtype = op->results[0].type->dtype;
    return ir_op_is(op, IR_OP_Add) && (dtype == TSSA_FLOAT || dtype == TSSA_DOUBLE);
}

/* Does the next one come from this one and a term by such an operation? */
static bool read_combine(struct parallel *s, uint32_t k)
{
    struct carried *c = &s->carried[k];
    const struct ir_value *param = loop_param(&s->loop, k), *next = loop_next(&s->loop, k);
    struct ir_op *op = next->op;
    if (!op || op->parent != s->loop.body || op->n_operands != 2 ||
        op->results[0].type->kind != TYPE_TENSOR || (!reduction_of(op) && !is_ordered(op)) ||
        (ir_operand(op, 0) != param && ir_operand(op, 1) != param))
        return false;
    c->combine = op;
    c->term = ir_operand(op, ir_operand(op, 0) == param ? 1 : 0);
    return c->term != param && c->term->type == param->type && next->type == param->type &&
           param->type->rank >= 0 && loop_initial(&s->loop, k)->type == param->type;
}

/* Nothing else may use a result; sums can be had of the iterations before each one. */
static bool check_reduction(struct parallel *s, uint32_t k)
{
    struct carried *c = &s->carried[k];
    const struct ir_value *param = loop_param(&s->loop, k), *next = loop_next(&s->loop, k);
    if (!read_combine(s, k))
        return false;
    c->kind = CARRIED_REDUCED;
    c->ordered = is_ordered(c->combine);
    if (param->uses && !param->uses->next && !next->uses->next)
        return !c->ordered;
    c->kind = CARRIED_SUMMED;
    return ir_op_is(c->combine, IR_OP_Add) && param->type->rank < TSSA_MAX_RANK;
}

tssa_status *parallel_check_carried(struct parallel *s, const struct batch *facts, uint32_t k,
                                    bool *ok)
{
    struct ir_value *param = loop_param(&s->loop, k), *next = loop_next(&s->loop, k);
    struct carried *c = &s->carried[k];
    *c = (struct carried){.kind = CARRIED_SAME};
    *ok = true;
    if (!next || !loop_initial(&s->loop, k))
        *ok = refuse(s, param, NULL, "it is absent");
    else if (loop_unaliased(next) == param)
        *ok = true;
    else if (param->type->kind != TYPE_TENSOR || param->type->rank < 0 ||
             param->type != loop_initial(&s->loop, k)->type)
        *ok = refuse(s, param, next->op, "its shape may change");
    else if (!check_reduction(s, k))
        TRY(check_written(s, facts, k, ok));
    return NULL;
}
