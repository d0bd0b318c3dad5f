/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permutations go behind the writes into what they make:
 *
 *     assign(x[permute], s, [rule])   ->   assign(x, s, [permute, rule])[permute]
 *
 * A front end that writes columns by moving them to the front and back leaves a permutation before
 * and one after a row of writes; behind all of them the two meet, and are gone.
 *
 *   needs   accesses and assigns (recover)
 *   keeps   results' bits
 *   breaks  accesses of accesses are there to be joined (forward_assigns)
 */
#include <string.h>

#include "ir/rule.h"
#include "passes/pass.h"

/* A permutation that only this assign reads. */
static struct ir_op *permuted_base(const struct ir_op *assign)
{
    struct ir_value *base = ir_operand(assign, 0);
    struct ir_op *access = base->op;
    if (!access || !ir_op_is(access, IR_OP_access) || base->uses->next)
        return NULL;
    const struct rule *rule = rule_of(access);
    return rule->n_steps == 1 && rule->steps[0].kind == RULE_PERMUTE ? access : NULL;
}

/* The axes that a permutation's axes come from. */
struct axes {
    uint32_t count;
    struct rule_param from[TSSA_MAX_RANK];
};

static void drop_axis(struct axes *axes, int64_t at)
{
    int64_t gone = axes->from[at].value;
    axes->count--;
    for (uint32_t i = (uint32_t)at; i < axes->count; i++)
        axes->from[i] = axes->from[i + 1];
    for (uint32_t i = 0; i < axes->count; i++)
        axes->from[i].value -= axes->from[i].value > gone;
}

static bool are_ordered(const struct axes *axes)
{
    for (uint32_t i = 0; i < axes->count; i++)
        if (axes->from[i].value != i)
            return false;
    return true;
}

/* [permute, rule], where selections and slices come before what is left of the permutation. NULL
 * when there are too many steps, or memory runs out (*failed). */
static const struct rule *permuted_rule(struct ir_graph *graph, const struct rule *permute,
                                        const struct rule *rule, bool *failed)
{
    struct rule_step steps[RULE_MAX_STEPS];
    struct rule_param params[RULE_MAX_STEPS][4];
    struct axes axes = {.count = permute->steps[0].n_params};
    uint32_t at = 0;
    *failed = false;
    if (rule->n_steps + 1 > RULE_MAX_STEPS)
        return NULL;
    memcpy(axes.from, permute->steps[0].params, axes.count * sizeof *axes.from);
    for (; at < rule->n_steps; at++) {
        const struct rule_step *step = &rule->steps[at];
        if (step->kind != RULE_SELECT && step->kind != RULE_SLICE)
            break;
        memcpy(params[at], step->params, step->n_params * sizeof *step->params);
        params[at][0] = axes.from[step->params[0].value];
        steps[at] = (struct rule_step){step->kind, step->n_params, params[at]};
        if (step->kind == RULE_SELECT)
            drop_axis(&axes, step->params[0].value);
    }
    uint32_t n = at;
    if (!are_ordered(&axes))
        steps[n++] = (struct rule_step){RULE_PERMUTE, axes.count, axes.from};
    for (; at < rule->n_steps; at++)
        steps[n++] = rule->steps[at];
    const struct rule *made = rule_create(graph, n, steps);
    *failed = !made;
    return made;
}

static tssa_status *sink(struct pass_context *pass, struct ir_op *assign, struct ir_op *permute)
{
    struct ir_value *x = ir_operand(permute, 0), *params[IR_VARIADIC];
    bool failed;
    const struct rule *rule =
        permuted_rule(pass->graph, rule_of(permute), rule_of(assign), &failed);
    if (!rule)
        return failed ? status_out_of_memory() : NULL;
    for (uint32_t i = 0; i < rule->n_operands; i++)
        params[i] = ir_operand(assign, 2 + i);
    struct ir_op *written =
        rule_assign_create(pass->graph, x, ir_operand(assign, 1), rule, rule->n_operands, params);
    TRY(pass_insert(written, assign));
    struct ir_op *after =
        rule_access_create(pass->graph, &written->results[0], rule_of(permute), 0, NULL);
    TRY(pass_replace(pass, assign, after));
    ir_op_remove(permute);
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct ir_op *permute = ir_op_is(op, IR_OP_assign) ? permuted_base(op) : NULL;
    return permute ? sink(context, op, permute) : NULL;
}

tssa_status *pass_sink_permutes(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
