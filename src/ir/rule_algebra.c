/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of rules: composed, simplified, inverted. */
#include "ir/rule_steps.h"

/* ---- Building -------------------------------------------------------------------------------- */

static void pop(struct rule_steps *steps)
{
    steps->now = steps->before[--steps->n];
}

static void append(struct rule_steps *steps, const struct rule_step *step)
{
    steps->before[steps->n] = steps->now;
    steps->steps[steps->n++] = *step;
    if (!rule_shape_after(steps, step))
        steps->now.rank = -1;
}

/* Slices of other axes do not matter to a slice: a slice of the same axis behind them is moved
 * last. */
static void bring_slice(struct rule_steps *steps, const struct rule_step *step)
{
    size_t i = steps->n;
    while (i > 0 && steps->steps[i - 1].kind == RULE_SLICE &&
           rule_number(&steps->steps[i - 1], 0) != rule_number(step, 0))
        i--;
    if (i == 0 || i == steps->n || steps->steps[i - 1].kind != RULE_SLICE)
        return;
    struct rule_step moved = steps->steps[i - 1];
    size_t n = steps->n;
    steps->now = steps->before[i - 1];
    steps->n = i - 1;
    for (size_t k = i; k < n; k++) {
        struct rule_step next = steps->steps[k];
        append(steps, &next);
    }
    append(steps, &moved);
}

/* A slice takes the same where all that a span asks for is there in any case, and slices are merged
 * with each other. */
static bool slice_span(struct rule_steps *steps, struct rule_step *step)
{
    if (step->kind != RULE_SPAN || !rule_all_constant(step))
        return true;
    const struct rule_shape *now = &steps->now;
    int64_t axis = rule_number(step, 0), end;
    if (axis >= now->rank || !now->dims[axis] ||
        __builtin_add_overflow(rule_number(step, 1), rule_number(step, 2), &end) ||
        end > now->dims[axis]->low)
        return true;
    struct rule_param *params = rule_new_params(steps, 4);
    if (!params)
        return false;
    params[0] = step->params[0];
    params[1] = step->params[1];
    params[2] = rule_constant(end);
    params[3] = rule_constant(1);
    *step = (struct rule_step){RULE_SLICE, 4, params};
    return true;
}

static tssa_status *push(struct rule_steps *steps, struct rule_step step)
{
    if (!slice_span(steps, &step))
        return status_out_of_memory();
    for (;;) {
        struct rule_step merged;
        if (rule_does_nothing(&step, &steps->now))
            return NULL;
        if (step.kind == RULE_SLICE)
            bring_slice(steps, &step);
        const struct rule_step *last = steps->n ? &steps->steps[steps->n - 1] : NULL;
        enum rule_merge how = last ? rule_merge(steps, last, &step, &merged) : APART;
        if (how == FAILED)
            return status_out_of_memory();
        if (how == APART)
            break;
        pop(steps);
        if (how == CANCELLED)
            return NULL;
        step = merged;
    }
    append(steps, &step);
    return NULL;
}

static void set_base(struct rule_steps *steps, const struct ir_type *base)
{
    steps->now.rank = -1;
    if (!base || base->kind != TYPE_TENSOR || base->rank < 0)
        return;
    steps->now.rank = base->rank;
    for (int i = 0; i < base->rank; i++)
        steps->now.dims[i] = base->dims[i];
}

static tssa_status *steps_init(struct rule_steps *steps, struct ir_graph *graph,
                               const struct ir_type *base, size_t capacity)
{
    *steps = (struct rule_steps){.graph = graph, .capacity = capacity};
    steps->steps = allocator_calloc(graph->allocator, capacity + 1, sizeof *steps->steps);
    steps->before = allocator_calloc(graph->allocator, capacity + 1, sizeof *steps->before);
    TRY_ALLOC(steps->steps);
    TRY_ALLOC(steps->before);
    set_base(steps, base);
    return NULL;
}

static void steps_free(struct rule_steps *steps)
{
    allocator_free(steps->graph->allocator, steps->steps);
    allocator_free(steps->graph->allocator, steps->before);
}

static tssa_status *push_rule(struct rule_steps *steps, const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->n_steps; i++)
        TRY(push(steps, rule->steps[i]));
    return NULL;
}

static tssa_status *finish(struct rule_steps *steps, const struct rule **out)
{
    *out = NULL;
    if (steps->n > RULE_MAX_STEPS)
        return NULL;
    *out = rule_create(steps->graph, steps->n, steps->steps);
    TRY_ALLOC(*out);
    return NULL;
}

/* The rule with its operands counted from `first` on. */
static tssa_status *renumber(struct ir_graph *graph, const struct rule *rule, uint32_t first,
                             const struct rule **out)
{
    struct rule_step steps[RULE_MAX_STEPS];
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        struct rule_param *params =
            ARENA_ARRAY(&graph->arena, struct rule_param, (size_t)step->n_params + 1);
        TRY_ALLOC(params);
        for (uint32_t p = 0; p < step->n_params; p++) {
            params[p] = step->params[p];
            params[p].value += params[p].is_operand ? first : 0;
        }
        steps[i] = (struct rule_step){step->kind, step->n_params, params};
    }
    *out = rule_create(graph, rule->n_steps, steps);
    TRY_ALLOC(*out);
    return NULL;
}

static tssa_status *compose(struct rule_steps *steps, const struct rule *first,
                            const struct rule *second, uint32_t n_first, const struct rule **out)
{
    const struct rule *shifted = second;
    if (n_first && second->n_operands)
        TRY(renumber(steps->graph, second, n_first, &shifted));
    TRY(push_rule(steps, first));
    TRY(push_rule(steps, shifted));
    return finish(steps, out);
}

tssa_status *rule_compose(struct ir_graph *graph, const struct ir_type *base,
                          const struct rule *first, const struct rule *second, uint32_t n_first,
                          const struct rule **out)
{
    struct rule_steps steps;
    tssa_status *status = steps_init(&steps, graph, base, (size_t)first->n_steps + second->n_steps);
    if (!status)
        status = compose(&steps, first, second, n_first, out);
    steps_free(&steps);
    return status;
}

tssa_status *rule_simplify(struct ir_graph *graph, const struct ir_type *base,
                           const struct rule *rule, const struct rule **out)
{
    static const struct rule whole;
    return rule_compose(graph, base, &whole, rule, 0, out);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

/* Only the operands that the rule uses, each value once; `rule` is numbered anew. */
static tssa_status *compact(struct ir_graph *graph, const struct rule *rule,
                            struct ir_value *const *from, const struct rule **out,
                            struct ir_value **params, uint32_t *n)
{
    struct rule_step steps[RULE_MAX_STEPS];
    *n = 0;
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        struct rule_param *copy =
            ARENA_ARRAY(&graph->arena, struct rule_param, (size_t)step->n_params + 1);
        TRY_ALLOC(copy);
        for (uint32_t p = 0; p < step->n_params; p++) {
            uint32_t at = 0;
            copy[p] = step->params[p];
            if (!copy[p].is_operand)
                continue;
            while (at < *n && params[at] != from[copy[p].value])
                at++;
            params[at] = from[copy[p].value];
            *n += at == *n;
            copy[p].value = at;
        }
        steps[i] = (struct rule_step){step->kind, step->n_params, copy};
    }
    *out = rule_create(graph, rule->n_steps, steps);
    TRY_ALLOC(*out);
    return NULL;
}

tssa_status *rule_access_chain(struct ir_graph *graph, const struct ir_op *first,
                               const struct ir_op *second, struct ir_op **out)
{
    const struct rule *a = rule_of(first), *b = rule_of(second), *rule;
    struct ir_value *all[2 * IR_VARIADIC], *params[2 * IR_VARIADIC];
    uint32_t n;
    *out = NULL;
    TRY(rule_compose(graph, ir_operand(first, 0)->type, a, b, a->n_operands, &rule));
    if (!rule)
        return NULL;
    for (uint32_t i = 0; i < a->n_operands; i++)
        all[i] = ir_operand(first, rule_first_operand(first) + i);
    for (uint32_t i = 0; i < b->n_operands; i++)
        all[a->n_operands + i] = ir_operand(second, rule_first_operand(second) + i);
    TRY(compact(graph, rule, all, &rule, params, &n));
    if (n >= IR_VARIADIC - 1)
        return NULL;
    *out = rule_access_create(graph, ir_operand(first, 0), rule, n, params);
    TRY_ALLOC(*out);
    return NULL;
}

/* ---- Inverses -------------------------------------------------------------------------------- */

static bool reverses_all(const struct rule_step *step, const struct rule_shape *shape)
{
    int64_t axis = rule_number(step, 0), dim = 0;
    if (!rule_all_constant(step) || rule_number(step, 3) != -1 || axis >= shape->rank)
        return false;
    int64_t start = rule_number(step, 1), end = rule_number(step, 2);
    bool known = dim_is_const(shape->dims[axis], &dim);
    bool from_last = start == -1 || start >= RULE_FAR || (known && start >= dim - 1);
    return from_last && (end <= -RULE_FAR || (known && end < -dim));
}

/* The dims before a reshape as a reshape's; one of them may be known to the run alone. */
static bool reshape_back(const struct rule_shape *shape, struct rule_param *params)
{
    bool open = false, zero = false;
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = -1;
        if (!dim_is_const(shape->dims[i], &dim)) {
            if (open)
                return false;
            open = true;
        }
        zero |= dim == 0;
        params[i] = rule_constant(dim);
    }
    return shape->rank >= 0 && !(open && zero);
}

static bool permute_back(const struct rule_step *step, struct rule_param *params)
{
    bool seen[TSSA_MAX_RANK] = {false};
    for (uint32_t i = 0; i < step->n_params; i++) {
        int64_t axis = rule_number(step, i);
        if (axis >= step->n_params || seen[axis])
            return false;
        seen[axis] = true;
        params[axis] = rule_constant(i);
    }
    return true;
}

/* false: it has no inverse that is known here. */
static bool invert_step(const struct rule_step *step, const struct rule_shape *before,
                        struct rule_param *params, struct rule_step *out)
{
    *out = (struct rule_step){step->kind, step->n_params, params};
    switch (step->kind) {
    case RULE_PERMUTE:
        return permute_back(step, params);
    case RULE_RESHAPE:
        out->n_params = (uint32_t)(before->rank > 0 ? before->rank : 0);
        return reshape_back(before, params);
    case RULE_SQUEEZE:
    case RULE_UNSQUEEZE:
        out->kind = step->kind == RULE_SQUEEZE ? RULE_UNSQUEEZE : RULE_SQUEEZE;
        out->params = step->params;
        return true;
    case RULE_SLICE:
        out->params = step->params;
        return reverses_all(step, before);
    case RULE_SELECT: /* of an axis of one element */
        *out = (struct rule_step){RULE_UNSQUEEZE, 1, step->params};
        return rule_number(step, 0) < before->rank && dim_is(before->dims[rule_number(step, 0)], 1);
    default:
        return false;
    }
}

static tssa_status *invert(struct rule_steps *steps, const struct rule *rule,
                           const struct rule **out)
{
    struct rule_step inverse[RULE_MAX_STEPS];
    size_t n = 0;
    TRY(push_rule(steps, rule));
    if (steps->n > RULE_MAX_STEPS)
        return NULL;
    for (size_t i = steps->n; i-- > 0;) {
        struct rule_param *params = rule_new_params(steps, TSSA_MAX_RANK);
        TRY_ALLOC(params);
        if (!invert_step(&steps->steps[i], &steps->before[i], params, &inverse[n++]))
            return NULL;
    }
    *out = rule_create(steps->graph, n, inverse);
    TRY_ALLOC(*out);
    return NULL;
}

tssa_status *rule_invert(struct ir_graph *graph, const struct ir_type *base,
                         const struct rule *rule, const struct rule **out)
{
    struct rule_steps steps;
    *out = NULL;
    tssa_status *status = steps_init(&steps, graph, base, rule->n_steps);
    if (!status)
        status = invert(&steps, rule, out);
    steps_free(&steps);
    return status;
}
