/* SPDX-License-Identifier: Apache-2.0 */
#include "gir/view.h"

#include <string.h>

#include "ir/region.h"

static bool is_expand(const struct rule *rule)
{
    return rule->n_steps == 1 && rule->steps[0].kind == RULE_EXPAND;
}

/* Is it made of steps that views follow, of which one may look rows up? */
static bool is_followed(const struct rule *rule)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule one = {.n_steps = 1, .steps = &rule->steps[i]};
        const bool gathers = rule->steps[i].kind == RULE_GATHER;
        n += gathers;
        if (!gathers && !rule_is_strided(&one))
            return false;
    }
    return n <= 1;
}

/* Does it look rows up by a list of numbers? */
static bool looks_up(const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    if (!ir_op_is(op, IR_OP_access) || !is_followed(rule))
        return false;
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        if (rule->steps[i].kind != RULE_GATHER)
            continue;
        const struct ir_type *type = rule_param_value(op, &rule->steps[i].params[1])->type;
        return type->kind == TYPE_TENSOR && type->rank == 1 &&
               (type->dtype == TSSA_INT64 || type->dtype == TSSA_INT32);
    }
    return false;
}

const char *gir_view_refuses(const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    if (!rule)
        return "it has no rule";
    if (looks_up(op))
        return NULL;
    if (rule_is_strided(rule) || (ir_op_is(op, IR_OP_access) && is_expand(rule)))
        return NULL;
    return "what it moves does not lie in steps";
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* Steps being put together; their params are copied when the rule is made. */
struct draft {
    struct rule_step steps[RULE_MAX_STEPS];
    struct rule_param params[4 * RULE_MAX_STEPS + TSSA_MAX_RANK * RULE_MAX_STEPS];
    uint32_t n_steps, n_params;
};

/* Room for the params of one more step; NULL: there are too many. */
static struct rule_param *add_step(struct draft *draft, enum rule_kind kind, uint32_t n)
{
    if (draft->n_steps == RULE_MAX_STEPS ||
        draft->n_params + n > sizeof draft->params / sizeof *draft->params)
        return NULL;
    struct rule_param *params = &draft->params[draft->n_params];
    draft->n_params += n;
    draft->steps[draft->n_steps++] = (struct rule_step){kind, n, params};
    return params;
}

static struct rule_param *add_copy(struct draft *draft, const struct rule_step *step)
{
    struct rule_param *params = add_step(draft, step->kind, step->n_params);
    for (uint32_t i = 0; params && i < step->n_params; i++)
        params[i] = step->params[i];
    return params;
}

static tssa_status *make(struct ir_graph *graph, const struct draft *draft,
                         const struct rule **rule)
{
    *rule = NULL;
    if (draft->n_steps == 0)
        return NULL;
    *rule = rule_create(graph, draft->n_steps, draft->steps);
    TRY_ALLOC(*rule);
    return NULL;
}

/* A param as a number or an operand of the fuse op. */
static bool translate(const struct ir_op *op, struct rule_param *param)
{
    const struct ir_value *value = rule_param_value(op, param);
    const struct dim *dim = rule_param_dim(op, param);
    int64_t number;
    if (!value)
        return !param->is_operand;
    const struct tensor *tensor = ir_value_constant(value);
    if (dim && dim_is_const(dim, &number))
        *param = rule_constant(number);
    else if (tensor && tensor_count(tensor) == 1 && dtype_is_integer(tensor->dtype))
        *param = rule_constant(dtype_load_int64(tensor->dtype, tensor->data));
    else if (value->block)
        *param = rule_operand(value->index);
    else
        return false;
    return true;
}

tssa_status *gir_view_rule(const struct ir_op *op, const struct rule **rule)
{
    const struct rule *own = rule_of(op);
    struct draft draft;
    draft.n_steps = draft.n_params = 0;
    *rule = NULL;
    for (uint32_t i = 0; i < own->n_steps; i++) {
        struct rule_param *params = add_copy(&draft, &own->steps[i]);
        if (!params)
            return NULL;
        /* The numbers of rows may be computed in the block. */
        const bool gathers = own->steps[i].kind == RULE_GATHER;
        if (gathers)
            params[1] = rule_operand(rule_param_value(op, &params[1])->id);
        for (uint32_t k = 0; k < own->steps[i].n_params && !gathers; k++)
            if (!translate(op, &params[k]))
                return NULL;
    }
    *rule = rule_create(op->parent->graph, draft.n_steps, draft.steps);
    TRY_ALLOC(*rule);
    return NULL;
}

/* Does a slice leave just element *at of an axis, in every run? */
static bool is_single(const struct rule_step *step, const struct ir_type *type, int64_t *at)
{
    int64_t size;
    for (uint32_t i = 0; i < step->n_params; i++)
        if (step->params[i].is_operand)
            return false;
    if (!dim_is_const(type->dims[step->params[0].value], &size))
        return false;
    const int64_t start = step->params[1].value, end = step->params[2].value,
                  by = step->params[3].value;
    *at = start < 0 ? start + size : start;
    const int64_t last = end < -size ? 0 : end < 0 ? end + size : end < size ? end : size;
    return by > 0 && *at >= 0 && *at < last && last - *at <= by;
}

/* Slices of one element as choices of it, which other steps join with: the first steps, as far as
 * they slice. */
static tssa_status *choose(struct ir_graph *graph, const struct ir_type *type,
                           const struct rule **rule)
{
    struct draft draft;
    bool slices = true, good = true;
    draft.n_steps = draft.n_params = 0;
    for (uint32_t i = 0; i < (*rule)->n_steps && good; i++) {
        const struct rule_step *step = &(*rule)->steps[i];
        int64_t at;
        slices &= step->kind == RULE_SLICE;
        if (!slices || !is_single(step, type, &at)) {
            good = add_copy(&draft, step);
            continue;
        }
        struct rule_param *select = add_step(&draft, RULE_SELECT, 2),
                          *back = add_step(&draft, RULE_UNSQUEEZE, 1);
        good = select && back;
        if (good) {
            select[0] = back[0] = step->params[0];
            select[1] = rule_constant(at);
        }
    }
    if (!good)
        return NULL;
    *rule = rule_create(graph, draft.n_steps, draft.steps);
    TRY_ALLOC(*rule);
    return NULL;
}

tssa_status *gir_view_through(const struct ir_op *access, int rank, struct gir_view *view,
                              bool *good)
{
    struct ir_graph *graph = access->parent->graph;
    const struct ir_type *type = ir_operand(access, 0)->type, *result = access->results[0].type;
    const struct rule *first, *both;
    *good = false;
    if (is_expand(rule_of(access)))
        return gir_view_of_operand(graph, result->rank, result->dims, type, rank, view, good);
    TRY(gir_view_rule(access, &first));
    if (!first)
        return NULL;
    TRY(choose(graph, type, &first));
    if (view->rule)
        TRY(rule_compose(graph, type, first, view->rule, 0, &both));
    else
        TRY(rule_simplify(graph, type, first, &both));
    if (!both && view->rule)
        return NULL;
    view->rule = both ? both : first;
    if (rule_of(access)->n_operands)
        view->chosen = view->n_choices++ ? NULL : access;
    if (!is_followed(view->rule))
        return NULL;
    if (view->rule->n_steps == 0)
        view->rule = NULL;
    *good = true;
    return NULL;
}

/* ---- Lookups --------------------------------------------------------------------------------- */

/* Where an axis is behind the step; -1: the step takes part of it. */
static int64_t behind(const struct rule_step *step, int rank, int64_t axis)
{
    const int64_t own = step->n_params ? step->params[0].value : 0;
    int64_t gone = 0;
    switch (step->kind) {
    case RULE_SELECT:
        return own == axis ? -1 : axis - (own < axis);
    case RULE_SLICE:
    case RULE_SPAN:
        return own == axis ? -1 : axis;
    case RULE_PERMUTE:
        for (int i = 0; i < rank; i++)
            if (step->params[i].value == axis)
                return i;
        return -1;
    case RULE_SQUEEZE:
        for (uint32_t i = 0; i < step->n_params; i++) {
            if (step->params[i].value == axis)
                return -1;
            gone += step->params[i].value < axis;
        }
        return axis - gone;
    case RULE_UNSQUEEZE:
        for (uint32_t i = 0; i < step->n_params; i++)
            axis += step->params[i].value <= axis;
        return axis;
    default:
        return -1;
    }
}

tssa_status *gir_view_lookup(struct ir_graph *graph, const struct rule *rule,
                             struct gir_lookup *lookup, bool *good)
{
    struct draft draft;
    bool found = false;
    draft.n_steps = draft.n_params = 0;
    *good = true;
    *lookup = (struct gir_lookup){.axis = -1, .rest = rule};
    for (uint32_t i = 0; rule && i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        if (step->kind == RULE_GATHER) {
            lookup->axis = step->params[0].value;
            lookup->indices = (uint32_t)step->params[1].value;
            found = true;
            continue;
        }
        if (lookup->axis >= 0)
            lookup->axis = behind(step, (int)step->n_params, lookup->axis);
        *good = (lookup->axis >= 0 || !found) && add_copy(&draft, step);
        if (!*good)
            return NULL;
    }
    return found ? make(graph, &draft, &lookup->rest) : NULL;
}

/* ---- Broadcasts ------------------------------------------------------------------------------ */

/* Axes, and which of them have one element where others have more. */
struct axes {
    int n;
    bool one[TSSA_MAX_RANK];
};

static void remove_axis(struct axes *axes, int64_t axis)
{
    memmove(axes->one + axis, axes->one + axis + 1,
            (size_t)(axes->n - axis - 1) * sizeof *axes->one);
    axes->n--;
}

static bool insert_axis(struct axes *axes, int64_t axis)
{
    if (axes->n == TSSA_MAX_RANK)
        return false;
    memmove(axes->one + axis + 1, axes->one + axis, (size_t)(axes->n - axis) * sizeof *axes->one);
    axes->one[axis] = false;
    axes->n++;
    return true;
}

/* The step as it is done to the operand. False: there are too many. */
static bool follow(struct draft *draft, const struct rule_step *step, struct axes *axes)
{
    const int64_t axis = step->n_params ? step->params[0].value : 0;
    const struct axes old = *axes;
    struct rule_param *params;
    switch (step->kind) {
    case RULE_SELECT:
        remove_axis(axes, axis);
        if (!old.one[axis])
            return add_copy(draft, step) != NULL;
        params = add_step(draft, RULE_SELECT, 2);
        if (!params)
            return false;
        params[0] = rule_constant(axis);
        params[1] = rule_constant(0);
        return true;
    case RULE_SLICE:
    case RULE_SPAN:
    case RULE_GATHER:
        return old.one[axis] || add_copy(draft, step) != NULL;
    case RULE_PERMUTE:
        for (int i = 0; i < axes->n; i++)
            axes->one[i] = old.one[step->params[i].value];
        return add_copy(draft, step) != NULL;
    case RULE_SQUEEZE:
        for (uint32_t i = step->n_params; i-- > 0;)
            remove_axis(axes, step->params[i].value);
        return add_copy(draft, step) != NULL;
    case RULE_UNSQUEEZE:
        for (uint32_t i = 0; i < step->n_params; i++)
            if (!insert_axis(axes, step->params[i].value))
                return false;
        return add_copy(draft, step) != NULL;
    default:
        return false;
    }
}

/* Which axes of the dims the operand has not, or has as one element. False: it is not known. */
static bool find_ones(int n_dims, const struct dim *const *dims, const struct ir_type *operand,
                      struct axes *axes)
{
    const int missing = n_dims - operand->rank;
    *axes = (struct axes){.n = n_dims};
    if (operand->kind != TYPE_TENSOR || operand->rank < 0 || missing < 0)
        return false;
    for (int i = 0; i < n_dims; i++) {
        const struct dim *own = i < missing ? NULL : operand->dims[i - missing];
        axes->one[i] = !own || own != dims[i];
        if (own && !dim_broadcasts(own, dims[i]))
            return false;
    }
    return true;
}

/* All axes are there at first. */
static bool follow_all(struct draft *draft, int missing, const struct rule *rule, struct axes *axes)
{
    draft->n_steps = draft->n_params = 0;
    if (missing) {
        struct rule_param *params = add_step(draft, RULE_UNSQUEEZE, (uint32_t)missing);
        for (int i = 0; params && i < missing; i++)
            params[i] = rule_constant(i);
    }
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (!follow(draft, &rule->steps[i], axes))
            return false;
    return true;
}

tssa_status *gir_view_of_operand(struct ir_graph *graph, int n_dims, const struct dim *const *dims,
                                 const struct ir_type *operand, int rank, struct gir_view *view,
                                 bool *good)
{
    struct axes axes;
    struct draft draft;
    bool any = false;
    *good = find_ones(n_dims, dims, operand, &axes);
    for (int i = 0; i < axes.n; i++)
        any |= axes.one[i];
    if (!*good || !any)
        return NULL;
    if (view->rule) {
        const struct rule *rule, *simple;
        *good = follow_all(&draft, n_dims - operand->rank, view->rule, &axes);
        if (!*good)
            return NULL;
        TRY(make(graph, &draft, &rule));
        if (rule) {
            TRY(rule_simplify(graph, operand, rule, &simple));
            rule = simple && rule_is_strided(simple) ? simple : rule;
        }
        view->rule = rule && rule->n_steps ? rule : NULL;
    }
    for (int i = 0; i < axes.n; i++)
        if (axes.one[i] && rank - axes.n + i >= 0)
            view->ones |= 1u << (rank - axes.n + i);
    return NULL;
}

bool gir_view_equal(const struct gir_view *a, const struct gir_view *b)
{
    return a->ones == b->ones &&
           (a->rule == b->rule || (a->rule && b->rule && rule_equal(a->rule, b->rule)));
}

/* ---- Layouts --------------------------------------------------------------------------------- */

static void remove_from(struct gir_layout *layout, int64_t axis)
{
    for (int i = (int)axis; i + 1 < layout->rank; i++) {
        layout->one[i] = layout->one[i + 1];
        layout->apart[i] = layout->apart[i + 1];
    }
    layout->rank--;
}

static void insert_one(struct gir_layout *layout, int64_t axis)
{
    for (int i = layout->rank; i > (int)axis; i--) {
        layout->one[i] = layout->one[i - 1];
        layout->apart[i] = layout->apart[i - 1];
    }
    layout->one[axis] = true;
    layout->apart[axis] = 0;
    layout->rank++;
}

static void lay_slice(struct gir_layout *layout, const struct rule_step *step)
{
    const struct rule_param *by = &step->params[3];
    int64_t *apart = &layout->apart[step->params[0].value];
    if (by->is_operand || by->value < -INT32_MAX || by->value > INT32_MAX ||
        __builtin_mul_overflow(*apart, by->value, apart))
        *apart = 0;
}

static void lay_step(struct gir_layout *layout, const struct rule_step *step)
{
    const struct gir_layout old = *layout;
    switch (step->kind) {
    case RULE_SELECT:
        remove_from(layout, step->params[0].value);
        break;
    case RULE_SLICE:
        lay_slice(layout, step);
        break;
    case RULE_SPAN:
        break;
    case RULE_PERMUTE:
        for (int i = 0; i < layout->rank; i++) {
            layout->one[i] = old.one[step->params[i].value];
            layout->apart[i] = old.apart[step->params[i].value];
        }
        break;
    case RULE_SQUEEZE:
        for (uint32_t i = step->n_params; i-- > 0;)
            remove_from(layout, step->params[i].value);
        break;
    default: /* RULE_UNSQUEEZE: views have no others */
        for (uint32_t i = 0; i < step->n_params && layout->rank < TSSA_MAX_RANK; i++)
            insert_one(layout, step->params[i].value);
    }
}

struct gir_layout gir_view_layout(const struct ir_type *type, const struct rule *rule)
{
    struct gir_layout layout = {.rank = type->rank};
    int64_t apart = 1;
    for (int i = type->rank; i-- > 0;) {
        int64_t size;
        layout.one[i] = dim_is(type->dims[i], 1);
        layout.apart[i] = apart;
        if (!dim_is_const(type->dims[i], &size) || size < 1 ||
            __builtin_mul_overflow(apart, size, &apart))
            apart = 0;
    }
    for (uint32_t i = 0; rule && i < rule->n_steps; i++)
        lay_step(&layout, &rule->steps[i]);
    return layout;
}
