/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of rules: composed, simplified, inverted. */
#include <string.h>

#include "ir/infer.h"
#include "ir/region.h"

/* A bound of a slice as far as that means the end, or the front going backwards. */
#define FAR INT32_MAX

/* The shape that a step meets; dims are NULL where they are not known. */
struct shape {
    int rank; /* -1: unknown */
    const struct dim *dims[TSSA_MAX_RANK];
};

/* Steps that grow at the end and are merged there. */
struct steps {
    struct ir_graph *graph;
    size_t n, capacity;
    struct rule_step *steps;
    struct shape *before; /* the shape that each of them meets */
    struct shape now;     /* after the last one */
};

static bool is_constant(const struct rule_step *step, uint32_t i)
{
    return !step->params[i].is_operand;
}

static bool all_constant(const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (step->params[i].is_operand)
            return false;
    return true;
}

static int64_t number(const struct rule_step *step, uint32_t i)
{
    return step->params[i].value;
}

/* ---- Shapes --------------------------------------------------------------------------------------- */

static void remove_dim(struct shape *shape, int64_t axis)
{
    shape->rank--;
    memmove(shape->dims + axis, shape->dims + axis + 1,
            (size_t)(shape->rank - axis) * sizeof *shape->dims);
}

static void insert_dim(struct shape *shape, int64_t axis, const struct dim *dim)
{
    memmove(shape->dims + axis + 1, shape->dims + axis,
            (size_t)(shape->rank - axis) * sizeof *shape->dims);
    shape->dims[axis] = dim;
    shape->rank++;
}

static const struct dim *param_dim(const struct steps *steps, const struct rule_step *step,
                                   uint32_t i)
{
    return is_constant(step, i) ? dim_const(&steps->graph->dims, number(step, i)) : NULL;
}

static bool shape_permute(struct steps *steps, const struct rule_step *step)
{
    struct shape old = steps->now;
    if ((int)step->n_params != old.rank)
        return false;
    for (uint32_t i = 0; i < step->n_params; i++) {
        if (number(step, i) >= old.rank)
            return false;
        steps->now.dims[i] = old.dims[number(step, i)];
    }
    return true;
}

static bool shape_slice(struct steps *steps, const struct rule_step *step)
{
    const struct dim **dim = &steps->now.dims[number(step, 0)];
    if (!*dim || !is_constant(step, 3)) {
        *dim = NULL;
        return true;
    }
    *dim = infer_slice_length(steps->graph, *dim, param_dim(steps, step, 1),
                              param_dim(steps, step, 2), number(step, 3));
    return true;
}

static bool shape_squeeze(struct steps *steps, const struct rule_step *step)
{
    for (uint32_t i = step->n_params; i-- > 0;) {
        if (number(step, i) >= steps->now.rank)
            return false;
        remove_dim(&steps->now, number(step, i));
    }
    return true;
}

static bool shape_unsqueeze(struct steps *steps, const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++) {
        if (number(step, i) > steps->now.rank || steps->now.rank == TSSA_MAX_RANK)
            return false;
        insert_dim(&steps->now, number(step, i), dim_const(&steps->graph->dims, 1));
    }
    return true;
}

static bool shape_reshape(struct steps *steps, const struct rule_step *step)
{
    steps->now.rank = (int)step->n_params;
    for (uint32_t i = 0; i < step->n_params; i++) {
        const struct dim *dim = param_dim(steps, step, i);
        steps->now.dims[i] = dim && dim->low >= 0 ? dim : NULL;
    }
    return true;
}

static bool shape_expand(struct steps *steps, const struct rule_step *step)
{
    int64_t value;
    while (steps->now.rank < (int)step->n_params)
        insert_dim(&steps->now, 0, dim_const(&steps->graph->dims, 1));
    if (steps->now.rank > (int)step->n_params)
        return false;
    for (uint32_t i = 0; i < step->n_params; i++) {
        const struct dim *to = param_dim(steps, step, i), **dim = &steps->now.dims[i];
        if (dim_is(to, 1) || (dim_is_const(*dim, &value) && value != 1))
            continue;
        *dim = dim_is(*dim, 1) || (to && to->low >= 2) ? to : NULL;
    }
    return true;
}

static bool step_shape(struct steps *steps, const struct rule_step *step)
{
    struct shape *now = &steps->now;
    if (now->rank < 0)
        return false;
    switch (step->kind) {
    case RULE_SELECT:
        if (number(step, 0) >= now->rank)
            return false;
        remove_dim(now, number(step, 0));
        return true;
    case RULE_SLICE:
        return number(step, 0) < now->rank && shape_slice(steps, step);
    case RULE_PERMUTE:
        return shape_permute(steps, step);
    case RULE_SQUEEZE:
        return shape_squeeze(steps, step);
    case RULE_UNSQUEEZE:
        return shape_unsqueeze(steps, step);
    case RULE_RESHAPE:
        return shape_reshape(steps, step);
    case RULE_EXPAND:
        return shape_expand(steps, step);
    default:
        return false;
    }
}

/* ---- Steps that do nothing ------------------------------------------------------------------------ */

static bool is_ordered(const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (number(step, i) != (int64_t)i)
            return false;
    return true;
}

static bool slices_all(const struct rule_step *step, const struct shape *shape)
{
    if (!all_constant(step) || number(step, 1) != 0 || number(step, 3) != 1)
        return false;
    int64_t axis = number(step, 0);
    if (number(step, 2) >= FAR)
        return true;
    /* An axis that is never longer: min(1000, N). */
    return axis < shape->rank && shape->dims[axis] && number(step, 2) >= shape->dims[axis]->high;
}

static bool has_shape(const struct rule_step *step, const struct shape *shape)
{
    if (!all_constant(step) || (int)step->n_params != shape->rank)
        return false;
    for (uint32_t i = 0; i < step->n_params; i++)
        if (!dim_is(shape->dims[i], number(step, i)))
            return false;
    return true;
}

static bool all_ones(const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (!is_constant(step, i) || number(step, i) != 1)
            return false;
    return true;
}

static bool does_nothing(const struct rule_step *step, const struct shape *shape)
{
    switch (step->kind) {
    case RULE_PERMUTE:
        return is_ordered(step);
    case RULE_SLICE:
        return slices_all(step, shape);
    case RULE_RESHAPE:
        return has_shape(step, shape);
    case RULE_EXPAND:
        return has_shape(step, shape) || ((int)step->n_params == shape->rank && all_ones(step));
    case RULE_TILE:
        return all_ones(step);
    default:
        return false;
    }
}

/* ---- Merging -------------------------------------------------------------------------------------- */

/*
 * One step, or none, for two: MERGED puts it into *out. A rule keeps params it did not write, so new ones
 * are allocated; FAILED: memory ran out.
 */
enum merge { APART, MERGED, CANCELLED, FAILED };

typedef enum merge (*merge_fn)(struct steps *steps, const struct rule_step *a,
                               const struct rule_step *b, struct rule_step *out);

static struct rule_param *new_params(struct steps *steps, uint32_t n)
{
    return ARENA_ARRAY(&steps->graph->arena, struct rule_param, n + 1);
}

static enum merge merge_permutes(struct steps *steps, const struct rule_step *a,
                                 const struct rule_step *b, struct rule_step *out)
{
    if (a->n_params != b->n_params)
        return APART;
    struct rule_param *params = new_params(steps, a->n_params);
    if (!params)
        return FAILED;
    for (uint32_t i = 0; i < a->n_params; i++) {
        if (number(b, i) >= a->n_params)
            return APART;
        params[i] = a->params[number(b, i)];
    }
    *out = (struct rule_step){RULE_PERMUTE, a->n_params, params};
    return MERGED;
}

/* An axis of a transposed tensor is another axis, when the others are in order without it. */
static enum merge merge_permute_select(struct steps *steps, const struct rule_step *a,
                                       const struct rule_step *b, struct rule_step *out)
{
    int64_t axis = number(b, 0), before = -1;
    if (axis >= a->n_params)
        return APART;
    for (uint32_t i = 0; i < a->n_params; i++) {
        if (i == axis)
            continue;
        if (number(a, i) < before)
            return APART;
        before = number(a, i);
    }
    struct rule_param *params = new_params(steps, 2);
    if (!params)
        return FAILED;
    params[0] = a->params[axis];
    params[1] = b->params[1];
    *out = (struct rule_step){RULE_SELECT, 2, params};
    return MERGED;
}

/* start + by * step, saturated. */
static int64_t scaled(int64_t start, int64_t by, int64_t step)
{
    int64_t result;
    if (__builtin_mul_overflow(by, step, &result) || __builtin_add_overflow(result, start, &result))
        return INT64_MAX;
    return result;
}

static bool is_forward(const struct rule_step *step)
{
    return all_constant(step) && number(step, 1) >= 0 && number(step, 2) >= 0 &&
           number(step, 3) > 0;
}

static enum merge merge_slices(struct steps *steps, const struct rule_step *a,
                               const struct rule_step *b, struct rule_step *out)
{
    int64_t by;
    if (number(a, 0) != number(b, 0) || !is_forward(a) || !is_forward(b) ||
        __builtin_mul_overflow(number(a, 3), number(b, 3), &by))
        return APART;
    struct rule_param *params = new_params(steps, 4);
    if (!params)
        return FAILED;
    int64_t end = scaled(number(a, 1), number(b, 2), number(a, 3));
    params[0] = a->params[0];
    params[1] = rule_constant(scaled(number(a, 1), number(b, 1), number(a, 3)));
    params[2] = rule_constant(end < number(a, 2) ? end : number(a, 2));
    params[3] = rule_constant(by);
    *out = (struct rule_step){RULE_SLICE, 4, params};
    return MERGED;
}

static enum merge make_select(struct steps *steps, int64_t axis, int64_t index,
                              struct rule_step *out)
{
    struct rule_param *params = new_params(steps, 2);
    if (!params)
        return FAILED;
    params[0] = rule_constant(axis);
    params[1] = rule_constant(index);
    *out = (struct rule_step){RULE_SELECT, 2, params};
    return MERGED;
}

/* In a run that does not fail the index is within the slice. */
static enum merge merge_slice_select(struct steps *steps, const struct rule_step *a,
                                     const struct rule_step *b, struct rule_step *out)
{
    if (number(a, 0) != number(b, 0) || !is_constant(a, 1) || !is_constant(a, 3) ||
        !is_constant(b, 1) || number(a, 1) < 0 || number(a, 3) < 1 || number(b, 1) < 0)
        return APART;
    return make_select(steps, number(a, 0), scaled(number(a, 1), number(b, 1), number(a, 3)), out);
}

/* x[i:i+1] without its axis. */
static enum merge merge_slice_squeeze(struct steps *steps, const struct rule_step *a,
                                      const struct rule_step *b, struct rule_step *out)
{
    if (b->n_params != 1 || number(a, 0) != number(b, 0) || !all_constant(a) || number(a, 3) != 1)
        return APART;
    int64_t start = number(a, 1), end = number(a, 2);
    bool one = start == -1 ? end >= FAR : start > -FAR && start < FAR && end == start + 1;
    return one ? make_select(steps, number(a, 0), start, out) : APART;
}

static bool same_axes(const struct rule_step *a, const struct rule_step *b)
{
    if (a->n_params != b->n_params)
        return false;
    for (uint32_t i = 0; i < a->n_params; i++)
        if (number(a, i) != number(b, i))
            return false;
    return true;
}

static enum merge merge_inverse_axes(struct steps *steps, const struct rule_step *a,
                                     const struct rule_step *b, struct rule_step *out)
{
    (void)steps;
    (void)out;
    return same_axes(a, b) ? CANCELLED : APART;
}

static enum merge merge_unsqueeze_select(struct steps *steps, const struct rule_step *a,
                                         const struct rule_step *b, struct rule_step *out)
{
    (void)steps;
    (void)out;
    bool only = is_constant(b, 1) && (number(b, 1) == 0 || number(b, 1) == -1);
    return a->n_params == 1 && number(a, 0) == number(b, 0) && only ? CANCELLED : APART;
}

/* A reshape asks for the order of the elements alone. */
static enum merge merge_into_reshape(struct steps *steps, const struct rule_step *a,
                                     const struct rule_step *b, struct rule_step *out)
{
    (void)steps;
    (void)a;
    *out = *b;
    return MERGED;
}

static enum merge merge_expands(struct steps *steps, const struct rule_step *a,
                                const struct rule_step *b, struct rule_step *out)
{
    if (!all_constant(a) || !all_constant(b) || a->n_params > b->n_params)
        return APART;
    struct rule_param *params = new_params(steps, b->n_params);
    if (!params)
        return FAILED;
    uint32_t added = b->n_params - a->n_params;
    for (uint32_t i = 0; i < b->n_params; i++)
        params[i] = i >= added && number(b, i) == 1 ? a->params[i - added] : b->params[i];
    *out = (struct rule_step){RULE_EXPAND, b->n_params, params};
    return MERGED;
}

static const merge_fn merges[RULE_KIND_COUNT][RULE_KIND_COUNT] = {
    [RULE_PERMUTE] = {[RULE_PERMUTE] = merge_permutes, [RULE_SELECT] = merge_permute_select},
    [RULE_SLICE] = {[RULE_SLICE] = merge_slices,
                    [RULE_SELECT] = merge_slice_select,
                    [RULE_SQUEEZE] = merge_slice_squeeze},
    [RULE_UNSQUEEZE] = {[RULE_SQUEEZE] = merge_inverse_axes,
                        [RULE_SELECT] = merge_unsqueeze_select,
                        [RULE_RESHAPE] = merge_into_reshape},
    [RULE_SQUEEZE] = {[RULE_UNSQUEEZE] = merge_inverse_axes, [RULE_RESHAPE] = merge_into_reshape},
    [RULE_RESHAPE] = {[RULE_RESHAPE] = merge_into_reshape},
    [RULE_EXPAND] = {[RULE_EXPAND] = merge_expands},
};

/* ---- Building ------------------------------------------------------------------------------------- */

static void pop(struct steps *steps)
{
    steps->now = steps->before[--steps->n];
}

static void append(struct steps *steps, const struct rule_step *step)
{
    steps->before[steps->n] = steps->now;
    steps->steps[steps->n++] = *step;
    if (!step_shape(steps, step))
        steps->now.rank = -1;
}

/* Slices of other axes do not matter to a slice: a slice of the same axis behind them is moved last. */
static void bring_slice(struct steps *steps, const struct rule_step *step)
{
    size_t i = steps->n;
    while (i > 0 && steps->steps[i - 1].kind == RULE_SLICE &&
           number(&steps->steps[i - 1], 0) != number(step, 0))
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

static tssa_status *push(struct steps *steps, struct rule_step step)
{
    for (;;) {
        struct rule_step merged;
        if (does_nothing(&step, &steps->now))
            return NULL;
        if (step.kind == RULE_SLICE)
            bring_slice(steps, &step);
        const struct rule_step *last = steps->n ? &steps->steps[steps->n - 1] : NULL;
        merge_fn merge = last ? merges[last->kind][step.kind] : NULL;
        enum merge how = merge ? merge(steps, last, &step, &merged) : APART;
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

static void set_base(struct steps *steps, const struct ir_type *base)
{
    steps->now.rank = -1;
    if (!base || base->kind != TYPE_TENSOR || base->rank < 0)
        return;
    steps->now.rank = base->rank;
    for (int i = 0; i < base->rank; i++)
        steps->now.dims[i] = base->dims[i];
}

static tssa_status *steps_init(struct steps *steps, struct ir_graph *graph,
                               const struct ir_type *base, size_t capacity)
{
    *steps = (struct steps){.graph = graph, .capacity = capacity};
    steps->steps = allocator_calloc(graph->allocator, capacity + 1, sizeof *steps->steps);
    steps->before = allocator_calloc(graph->allocator, capacity + 1, sizeof *steps->before);
    TRY_ALLOC(steps->steps);
    TRY_ALLOC(steps->before);
    set_base(steps, base);
    return NULL;
}

static void steps_free(struct steps *steps)
{
    allocator_free(steps->graph->allocator, steps->steps);
    allocator_free(steps->graph->allocator, steps->before);
}

static tssa_status *push_rule(struct steps *steps, const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->n_steps; i++)
        TRY(push(steps, rule->steps[i]));
    return NULL;
}

static tssa_status *finish(struct steps *steps, const struct rule **out)
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

static tssa_status *compose(struct steps *steps, const struct rule *first,
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
    struct steps steps;
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

/* ---- Ops ------------------------------------------------------------------------------------------ */

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

/* ---- Inverses ------------------------------------------------------------------------------------- */

static bool reverses_all(const struct rule_step *step, const struct shape *shape)
{
    int64_t axis = number(step, 0), dim = 0;
    if (!all_constant(step) || number(step, 3) != -1 || axis >= shape->rank)
        return false;
    int64_t start = number(step, 1), end = number(step, 2);
    bool known = dim_is_const(shape->dims[axis], &dim);
    bool from_last = start == -1 || start >= FAR || (known && start >= dim - 1);
    return from_last && (end <= -FAR || (known && end < -dim));
}

/* The dims before a reshape as a reshape's; one of them may be known to the run alone. */
static bool reshape_back(const struct shape *shape, struct rule_param *params)
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
        int64_t axis = number(step, i);
        if (axis >= step->n_params || seen[axis])
            return false;
        seen[axis] = true;
        params[axis] = rule_constant(i);
    }
    return true;
}

/* false: it has no inverse that is known here. */
static bool invert_step(const struct rule_step *step, const struct shape *before,
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
        return number(step, 0) < before->rank && dim_is(before->dims[number(step, 0)], 1);
    default:
        return false;
    }
}

static tssa_status *invert(struct steps *steps, const struct rule *rule, const struct rule **out)
{
    struct rule_step inverse[RULE_MAX_STEPS];
    size_t n = 0;
    TRY(push_rule(steps, rule));
    if (steps->n > RULE_MAX_STEPS)
        return NULL;
    for (size_t i = steps->n; i-- > 0;) {
        struct rule_param *params = new_params(steps, TSSA_MAX_RANK);
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
    struct steps steps;
    *out = NULL;
    tssa_status *status = steps_init(&steps, graph, base, rule->n_steps);
    if (!status)
        status = invert(&steps, rule, out);
    steps_free(&steps);
    return status;
}
