/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes that the steps of a rule meet, and steps that do nothing to them. */
#include <string.h>

#include "ir/infer.h"
#include "ir/rule_steps.h"

static void remove_dim(struct rule_shape *shape, int64_t axis)
{
    shape->rank--;
    memmove(shape->dims + axis, shape->dims + axis + 1,
            (size_t)(shape->rank - axis) * sizeof *shape->dims);
}

static void insert_dim(struct rule_shape *shape, int64_t axis, const struct dim *dim)
{
    memmove(shape->dims + axis + 1, shape->dims + axis,
            (size_t)(shape->rank - axis) * sizeof *shape->dims);
    shape->dims[axis] = dim;
    shape->rank++;
}

static const struct dim *param_dim(const struct rule_steps *steps, const struct rule_step *step,
                                   uint32_t i)
{
    return rule_is_constant(step, i) ? dim_const(&steps->graph->dims, rule_number(step, i)) : NULL;
}

static bool shape_permute(struct rule_steps *steps, const struct rule_step *step)
{
    struct rule_shape old = steps->now;
    if ((int)step->n_params != old.rank)
        return false;
    for (uint32_t i = 0; i < step->n_params; i++) {
        if (rule_number(step, i) >= old.rank)
            return false;
        steps->now.dims[i] = old.dims[rule_number(step, i)];
    }
    return true;
}

static bool shape_slice(struct rule_steps *steps, const struct rule_step *step)
{
    const struct dim **dim = &steps->now.dims[rule_number(step, 0)];
    if (!*dim || !rule_is_constant(step, 3)) {
        *dim = NULL;
        return true;
    }
    *dim = infer_slice_length(steps->graph, *dim, param_dim(steps, step, 1),
                              param_dim(steps, step, 2), rule_number(step, 3));
    return true;
}

static bool shape_span(struct rule_steps *steps, const struct rule_step *step)
{
    if (rule_number(step, 0) >= steps->now.rank)
        return false;
    steps->now.dims[rule_number(step, 0)] = param_dim(steps, step, 2);
    return true;
}

static bool shape_squeeze(struct rule_steps *steps, const struct rule_step *step)
{
    for (uint32_t i = step->n_params; i-- > 0;) {
        if (rule_number(step, i) >= steps->now.rank)
            return false;
        remove_dim(&steps->now, rule_number(step, i));
    }
    return true;
}

static bool shape_unsqueeze(struct rule_steps *steps, const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++) {
        if (rule_number(step, i) > steps->now.rank || steps->now.rank == TSSA_MAX_RANK)
            return false;
        insert_dim(&steps->now, rule_number(step, i), dim_const(&steps->graph->dims, 1));
    }
    return true;
}

static bool shape_reshape(struct rule_steps *steps, const struct rule_step *step)
{
    steps->now.rank = (int)step->n_params;
    for (uint32_t i = 0; i < step->n_params; i++) {
        const struct dim *dim = param_dim(steps, step, i);
        steps->now.dims[i] = dim && dim->low >= 0 ? dim : NULL;
    }
    return true;
}

static bool shape_expand(struct rule_steps *steps, const struct rule_step *step)
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

bool rule_shape_after(struct rule_steps *steps, const struct rule_step *step)
{
    struct rule_shape *now = &steps->now;
    if (now->rank < 0)
        return false;
    switch (step->kind) {
    case RULE_SELECT:
        if (rule_number(step, 0) >= now->rank)
            return false;
        remove_dim(now, rule_number(step, 0));
        return true;
    case RULE_SLICE:
        return rule_number(step, 0) < now->rank && shape_slice(steps, step);
    case RULE_SPAN:
        return shape_span(steps, step);
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

/* ---- Steps that do nothing ------------------------------------------------------------------- */

static bool is_ordered(const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (rule_number(step, i) != (int64_t)i)
            return false;
    return true;
}

static bool slices_all(const struct rule_step *step, const struct rule_shape *shape)
{
    if (!rule_all_constant(step) || rule_number(step, 1) != 0 || rule_number(step, 3) != 1)
        return false;
    int64_t axis = rule_number(step, 0);
    if (rule_number(step, 2) >= RULE_FAR)
        return true;
    /* An axis that is never longer: min(1000, N). */
    return axis < shape->rank && shape->dims[axis] &&
           rule_number(step, 2) >= shape->dims[axis]->high;
}

static bool has_shape(const struct rule_step *step, const struct rule_shape *shape)
{
    if (!rule_all_constant(step) || (int)step->n_params != shape->rank)
        return false;
    for (uint32_t i = 0; i < step->n_params; i++)
        if (!dim_is(shape->dims[i], rule_number(step, i)))
            return false;
    return true;
}

static bool all_ones(const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (!rule_is_constant(step, i) || rule_number(step, i) != 1)
            return false;
    return true;
}

bool rule_does_nothing(const struct rule_step *step, const struct rule_shape *shape)
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
