/* SPDX-License-Identifier: Apache-2.0 */
/* Rules as data: making, comparing, printing, and what their params stand for. */
#include "ir/rule.h"

#include <inttypes.h>
#include <string.h>

#define NEVER UINT32_MAX

static const struct rule_kind_info kinds[RULE_KIND_COUNT] = {
#define RULE(id, text, min, max, dynamic)                                                          \
    [RULE_##id] = {.name = #text, .min_params = min, .max_params = max, .first_dynamic = dynamic},
#include "ir/rule.def"
#undef RULE
};

const struct rule_kind_info *rule_kind_info(enum rule_kind kind)
{
    return &kinds[kind];
}

bool rule_kind_find(const char *name, size_t size, enum rule_kind *kind)
{
    for (int i = 0; i < RULE_KIND_COUNT; i++)
        if (strlen(kinds[i].name) == size && memcmp(kinds[i].name, name, size) == 0) {
            *kind = (enum rule_kind)i;
            return true;
        }
    return false;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static bool copy_step(struct ir_graph *graph, const struct rule_step *from, struct rule_step *to)
{
    *to = (struct rule_step){.kind = from->kind, .n_params = from->n_params};
    if (from->n_params == 0)
        return true;
    to->params = arena_copy(&graph->arena, from->params, from->n_params * sizeof *from->params);
    return to->params != NULL;
}

const struct rule *rule_create(struct ir_graph *graph, size_t n_steps,
                               const struct rule_step *steps)
{
    struct rule *rule = ARENA_NEW(&graph->arena, struct rule);
    struct rule_step *copy = arena_alloc_array(&graph->arena, n_steps + 1, sizeof *copy);
    if (!rule || !copy)
        return NULL;
    *rule = (struct rule){.n_steps = (uint32_t)n_steps, .steps = copy};
    for (size_t i = 0; i < n_steps; i++) {
        if (!copy_step(graph, &steps[i], &copy[i]))
            return NULL;
        for (uint32_t p = 0; p < steps[i].n_params; p++)
            if (steps[i].params[p].is_operand && steps[i].params[p].value >= rule->n_operands)
                rule->n_operands = (uint32_t)steps[i].params[p].value + 1;
    }
    return rule;
}

static bool step_equal(const struct rule_step *a, const struct rule_step *b)
{
    if (a->kind != b->kind || a->n_params != b->n_params)
        return false;
    for (uint32_t i = 0; i < a->n_params; i++)
        if (a->params[i].is_operand != b->params[i].is_operand ||
            a->params[i].value != b->params[i].value)
            return false;
    return true;
}

bool rule_equal(const struct rule *a, const struct rule *b)
{
    if (a->n_steps != b->n_steps)
        return false;
    for (uint32_t i = 0; i < a->n_steps; i++)
        if (!step_equal(&a->steps[i], &b->steps[i]))
            return false;
    return true;
}

static struct ir_op *create(struct ir_graph *graph, enum ir_op_id id, struct ir_value *base,
                            struct ir_value *source, const struct rule *rule, uint32_t n_params,
                            struct ir_value *const *params)
{
    uint32_t first = source ? 2 : 1;
    struct ir_op *op = ir_op_create(graph, ir_op_info(id), first + n_params, 1);
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, "rule"), .kind = IR_ATTR_RULE, .rule = rule};
    if (!op || !rule || !attr.name || !ir_op_set_attr(graph, op, &attr))
        return NULL;
    ir_op_set_operand(op, 0, base);
    if (source)
        ir_op_set_operand(op, 1, source);
    for (uint32_t i = 0; i < n_params; i++)
        ir_op_set_operand(op, first + i, params[i]);
    return op;
}

struct ir_op *rule_access_create(struct ir_graph *graph, struct ir_value *base,
                                 const struct rule *rule, uint32_t n_params,
                                 struct ir_value *const *params)
{
    return create(graph, IR_OP_access, base, NULL, rule, n_params, params);
}

struct ir_op *rule_assign_create(struct ir_graph *graph, struct ir_value *base,
                                 struct ir_value *source, const struct rule *rule,
                                 uint32_t n_params, struct ir_value *const *params)
{
    return create(graph, IR_OP_assign, base, source, rule, n_params, params);
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void print_step(const struct rule_step *step, struct text *text)
{
    text_printf(text, "%s(", kinds[step->kind].name);
    for (uint32_t i = 0; i < step->n_params; i++)
        text_printf(text, "%s%s%" PRId64, i ? ", " : "", step->params[i].is_operand ? "$" : "",
                    step->params[i].value);
    text_putc(text, ')');
}

void rule_print(const struct rule *rule, struct text *text)
{
    text_puts(text, rule->n_steps ? "[" : "steps[");
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        text_puts(text, i ? ", " : "");
        print_step(&rule->steps[i], text);
    }
    text_putc(text, ']');
}

/* ---- Checking -------------------------------------------------------------------------------- */

/* Is param i of this kind an axis? */
static bool is_axis(enum rule_kind kind, uint32_t i)
{
    switch (kind) {
    case RULE_SELECT:
    case RULE_SLICE:
    case RULE_SPAN:
    case RULE_GATHER:
    case RULE_MASK:
        return i == 0;
    case RULE_DIAGONAL:
        return i < 2;
    case RULE_PERMUTE:
    case RULE_SQUEEZE:
    case RULE_UNSQUEEZE:
        return true;
    default:
        return false;
    }
}

static const char *step_problem(const struct rule_step *step)
{
    const struct rule_kind_info *info = &kinds[step->kind];
    if (step->n_params < info->min_params || step->n_params > info->max_params)
        return "a step has the wrong number of params";
    for (uint32_t i = 0; i < step->n_params; i++) {
        const struct rule_param *param = &step->params[i];
        if (param->is_operand && i < info->first_dynamic)
            return "a param of a step must be a constant";
        if (param->is_operand && (param->value < 0 || param->value >= IR_VARIADIC))
            return "a param of a step is no operand";
        if (is_axis(step->kind, i) && (param->value < 0 || param->value >= TSSA_MAX_RANK))
            return "an axis of a step is out of range";
    }
    bool whole = step->kind == RULE_GATHER || step->kind == RULE_MASK;
    if (whole && !step->params[1].is_operand)
        return "the indices of a gather and the mask of a mask are operands";
    bool ascending = step->kind == RULE_SQUEEZE || step->kind == RULE_UNSQUEEZE;
    for (uint32_t i = 1; ascending && i < step->n_params; i++)
        if (step->params[i].value <= step->params[i - 1].value)
            return "the axes of a step are not in ascending order";
    if (step->kind == RULE_SLICE && !step->params[3].is_operand && step->params[3].value == 0)
        return "the step of a slice is 0";
    for (uint32_t i = 1; step->kind == RULE_SPAN && i < step->n_params; i++)
        if (!step->params[i].is_operand && step->params[i].value < 0)
            return "the start or the count of a span is negative";
    return NULL;
}

const char *rule_problem(const struct rule *rule)
{
    if (rule->n_steps > RULE_MAX_STEPS)
        return "a rule has too many steps";
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const char *problem = step_problem(&rule->steps[i]);
        if (problem)
            return problem;
    }
    return NULL;
}

/* ---- Reading --------------------------------------------------------------------------------- */

const struct rule *rule_of(const struct ir_op *op)
{
    const struct ir_attr *attr = ir_attr(op, "rule");
    return attr && attr->kind == IR_ATTR_RULE ? attr->rule : NULL;
}

bool rule_keeps_order(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind != RULE_RESHAPE && rule->steps[i].kind != RULE_SQUEEZE &&
            rule->steps[i].kind != RULE_UNSQUEEZE)
            return false;
    return true;
}

bool rule_is_strided(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->n_steps; i++)
        switch (rule->steps[i].kind) {
        case RULE_SELECT:
        case RULE_SLICE:
        case RULE_SPAN:
        case RULE_PERMUTE:
        case RULE_SQUEEZE:
        case RULE_UNSQUEEZE:
            break;
        default:
            return false;
        }
    return true;
}

uint32_t rule_first_operand(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_assign) ? 2 : 1;
}

struct ir_value *rule_param_value(const struct ir_op *op, const struct rule_param *param)
{
    return param->is_operand ? ir_operand(op, rule_first_operand(op) + (uint32_t)param->value)
                             : NULL;
}

const struct dim *rule_param_dim(const struct ir_op *op, const struct rule_param *param)
{
    if (!param->is_operand)
        return dim_const(&op->parent->graph->dims, param->value);
    const struct ir_value *value = rule_param_value(op, param);
    return value && value->known && value->known->count == 1 ? value->known->elements[0] : NULL;
}
