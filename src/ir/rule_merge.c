/* SPDX-License-Identifier: Apache-2.0 */
/* Two steps of a rule, one after the other, as one. */
#include "ir/rule_steps.h"

typedef enum rule_merge (*merge_fn)(struct rule_steps *steps, const struct rule_step *a,
                                    const struct rule_step *b, struct rule_step *out);

static enum rule_merge merge_permutes(struct rule_steps *steps, const struct rule_step *a,
                                      const struct rule_step *b, struct rule_step *out)
{
    if (a->n_params != b->n_params)
        return APART;
    struct rule_param *params = rule_new_params(steps, a->n_params);
    if (!params)
        return FAILED;
    for (uint32_t i = 0; i < a->n_params; i++) {
        if (rule_number(b, i) >= a->n_params)
            return APART;
        params[i] = a->params[rule_number(b, i)];
    }
    *out = (struct rule_step){RULE_PERMUTE, a->n_params, params};
    return MERGED;
}

/* An axis of a transposed tensor is another axis, when the others are in order without it. */
static enum rule_merge merge_permute_select(struct rule_steps *steps, const struct rule_step *a,
                                            const struct rule_step *b, struct rule_step *out)
{
    int64_t axis = rule_number(b, 0), before = -1;
    if (axis >= a->n_params)
        return APART;
    for (uint32_t i = 0; i < a->n_params; i++) {
        if (i == axis)
            continue;
        if (rule_number(a, i) < before)
            return APART;
        before = rule_number(a, i);
    }
    struct rule_param *params = rule_new_params(steps, 2);
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
    return rule_all_constant(step) && rule_number(step, 1) >= 0 && rule_number(step, 2) >= 0 &&
           rule_number(step, 3) > 0;
}

static enum rule_merge merge_slices(struct rule_steps *steps, const struct rule_step *a,
                                    const struct rule_step *b, struct rule_step *out)
{
    int64_t by;
    if (rule_number(a, 0) != rule_number(b, 0) || !is_forward(a) || !is_forward(b) ||
        __builtin_mul_overflow(rule_number(a, 3), rule_number(b, 3), &by))
        return APART;
    struct rule_param *params = rule_new_params(steps, 4);
    if (!params)
        return FAILED;
    int64_t end = scaled(rule_number(a, 1), rule_number(b, 2), rule_number(a, 3));
    params[0] = a->params[0];
    params[1] = rule_constant(scaled(rule_number(a, 1), rule_number(b, 1), rule_number(a, 3)));
    params[2] = rule_constant(end < rule_number(a, 2) ? end : rule_number(a, 2));
    params[3] = rule_constant(by);
    *out = (struct rule_step){RULE_SLICE, 4, params};
    return MERGED;
}

static enum rule_merge make_select(struct rule_steps *steps, int64_t axis, int64_t index,
                                   struct rule_step *out)
{
    struct rule_param *params = rule_new_params(steps, 2);
    if (!params)
        return FAILED;
    params[0] = rule_constant(axis);
    params[1] = rule_constant(index);
    *out = (struct rule_step){RULE_SELECT, 2, params};
    return MERGED;
}

/* In a run that does not fail the index is within the slice. */
static enum rule_merge merge_slice_select(struct rule_steps *steps, const struct rule_step *a,
                                          const struct rule_step *b, struct rule_step *out)
{
    if (rule_number(a, 0) != rule_number(b, 0) || !rule_is_constant(a, 1) ||
        !rule_is_constant(a, 3) || !rule_is_constant(b, 1) || rule_number(a, 1) < 0 ||
        rule_number(a, 3) < 1 || rule_number(b, 1) < 0)
        return APART;
    return make_select(steps, rule_number(a, 0),
                       scaled(rule_number(a, 1), rule_number(b, 1), rule_number(a, 3)), out);
}

/* x[i:i+1] without its axis. */
static enum rule_merge merge_slice_squeeze(struct rule_steps *steps, const struct rule_step *a,
                                           const struct rule_step *b, struct rule_step *out)
{
    if (b->n_params != 1 || rule_number(a, 0) != rule_number(b, 0) || !rule_all_constant(a) ||
        rule_number(a, 3) != 1)
        return APART;
    int64_t start = rule_number(a, 1), end = rule_number(a, 2);
    bool one =
        start == -1 ? end >= RULE_FAR : start > -RULE_FAR && start < RULE_FAR && end == start + 1;
    return one ? make_select(steps, rule_number(a, 0), start, out) : APART;
}

static bool same_axes(const struct rule_step *a, const struct rule_step *b)
{
    if (a->n_params != b->n_params)
        return false;
    for (uint32_t i = 0; i < a->n_params; i++)
        if (rule_number(a, i) != rule_number(b, i))
            return false;
    return true;
}

static enum rule_merge merge_inverse_axes(struct rule_steps *steps, const struct rule_step *a,
                                          const struct rule_step *b, struct rule_step *out)
{
    (void)steps;
    (void)out;
    return same_axes(a, b) ? CANCELLED : APART;
}

static enum rule_merge merge_unsqueeze_select(struct rule_steps *steps, const struct rule_step *a,
                                              const struct rule_step *b, struct rule_step *out)
{
    (void)steps;
    (void)out;
    bool only = rule_is_constant(b, 1) && (rule_number(b, 1) == 0 || rule_number(b, 1) == -1);
    return a->n_params == 1 && rule_number(a, 0) == rule_number(b, 0) && only ? CANCELLED : APART;
}

/* A reshape asks for the order of the elements alone. */
static enum rule_merge merge_into_reshape(struct rule_steps *steps, const struct rule_step *a,
                                          const struct rule_step *b, struct rule_step *out)
{
    (void)steps;
    (void)a;
    *out = *b;
    return MERGED;
}

/* So does a permutation of axes of size one past others. */
static enum rule_merge merge_permute_reshape(struct rule_steps *steps, const struct rule_step *a,
                                             const struct rule_step *b, struct rule_step *out)
{
    const struct rule_shape *shape = &steps->before[steps->n - 1];
    int64_t last = -1, size;
    if (shape->rank != (int)a->n_params)
        return APART;
    for (uint32_t i = 0; i < a->n_params; i++) {
        const int64_t axis = rule_number(a, i);
        if (axis >= shape->rank)
            return APART;
        if (shape->dims[axis] && dim_is_const(shape->dims[axis], &size) && size == 1)
            continue;
        if (axis < last)
            return APART;
        last = axis;
    }
    *out = *b;
    return MERGED;
}

static enum rule_merge merge_expands(struct rule_steps *steps, const struct rule_step *a,
                                     const struct rule_step *b, struct rule_step *out)
{
    if (!rule_all_constant(a) || !rule_all_constant(b) || a->n_params > b->n_params)
        return APART;
    struct rule_param *params = rule_new_params(steps, b->n_params);
    if (!params)
        return FAILED;
    uint32_t added = b->n_params - a->n_params;
    for (uint32_t i = 0; i < b->n_params; i++)
        params[i] = i >= added && rule_number(b, i) == 1 ? a->params[i - added] : b->params[i];
    *out = (struct rule_step){RULE_EXPAND, b->n_params, params};
    return MERGED;
}

static const merge_fn merges[RULE_KIND_COUNT][RULE_KIND_COUNT] = {
    [RULE_PERMUTE] = {[RULE_PERMUTE] = merge_permutes,
                      [RULE_SELECT] = merge_permute_select,
                      [RULE_RESHAPE] = merge_permute_reshape},
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

enum rule_merge rule_merge(struct rule_steps *steps, const struct rule_step *a,
                           const struct rule_step *b, struct rule_step *out)
{
    merge_fn merge = merges[a->kind][b->kind];
    return merge ? merge(steps, a, b, out) : APART;
}
