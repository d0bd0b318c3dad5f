/* SPDX-License-Identifier: Apache-2.0 */
/* Reshapes of regions. */
#include "ir/region_walk.h"

/* Axes [from, to) of the old and the new shape, whose elements are the same, row-major. */
struct group {
    int from, to;            /* of the walk's */
    const struct dim **dims; /* the new ones */
    int n_dims;
};

/* The stride of the innermost axis of more than one element, when the others follow from it; else
 * NULL. */
static const struct dim *contiguous_stride(struct region_walk *walk, int from, int to)
{
    const struct dim *stride = NULL, *expected = NULL;
    for (int i = to; i-- > from;) {
        const struct region_walk_axis *axis = &walk->axes[i];
        if (dim_is(axis->dim, 1))
            continue;
        if (stride && axis->stride != expected)
            return NULL;
        stride = stride ? stride : axis->stride;
        expected = dim_mul(walk->table, axis->stride, axis->dim);
    }
    return stride ? stride : walk_constant(walk, 1);
}

/* Replaces a group of axes by opaque ones; strides survive where the old ones are contiguous. */
static void regroup(struct region_walk *walk, const struct group *group)
{
    struct region_walk_axis axes[TSSA_MAX_RANK];
    const struct dim *stride = contiguous_stride(walk, group->from, group->to);
    if (!stride) {
        walk->region->strided = false;
        stride = walk_constant(walk, 0);
    }
    for (int i = group->n_dims; i-- > 0;) {
        axes[i] = (struct region_walk_axis){
            .dim = group->dims[i], .stride = stride, .id = walk->n_ids++, .opaque = true};
        stride = dim_mul(walk->table, stride, group->dims[i]);
    }
    for (int i = group->to; i-- > group->from;) {
        walk_account(walk, &walk->axes[i]);
        walk_detach(walk, walk->axes[i].id, WALK_LOST);
        walk_remove_axis(walk, i);
    }
    for (int i = 0; i < group->n_dims; i++)
        walk_insert_axis(walk, group->from + i, axes[i]);
    walk->region->mapped = false;
}

/*
 * Goes over the equal dims at the front of [*from, to) and of dims, and over ones: how many dims.
 */
static int match_front(struct region_walk *walk, int *from, int *to, const struct dim **dims, int n)
{
    int i = 0;
    while (i < n || *from < *to) {
        if (*from < *to && i < n && walk->axes[*from].dim == dims[i]) {
            ++*from;
            i++;
        } else if (*from < *to && dim_is(walk->axes[*from].dim, 1)) {
            walk_squeeze_axis(walk, *from);
            --*to;
        } else if (i < n && dim_is(dims[i], 1)) {
            walk_insert_axis(walk, *from, walk_broadcast_axis(walk, dims[i]));
            ++*from;
            ++*to;
            i++;
        } else {
            break;
        }
    }
    return i;
}

static int match_back(struct region_walk *walk, int from, int *to, const struct dim **dims, int n)
{
    int i = 0;
    while (i < n && from < *to && walk->axes[*to - 1].dim == dims[n - 1 - i]) {
        --*to;
        i++;
    }
    return i;
}

static tssa_status *target(struct region_walk *walk, const struct rule_step *step,
                           const struct dim **dims)
{
    const struct dim *all = walk_constant(walk, 1), *given = walk_constant(walk, 1);
    int rest = -1;
    for (int i = 0; i < walk->rank; i++)
        all = dim_mul(walk->table, all, walk->axes[i].dim);
    for (uint32_t i = 0; i < step->n_params; i++) {
        dims[i] = walk_param(walk, step, i);
        TRY_ALLOC(dims[i]);
        if (dim_is(dims[i], -1))
            rest = (int)i;
        else if (dims[i]->low < 0) /* a -1 that only the run knows */
            dims[i] = dim_fresh(walk->table, "reshape");
        if (rest != (int)i)
            given = dim_mul(walk->table, given, dims[i]);
    }
    if (rest >= 0)
        dims[rest] =
            dim_is(given, 0) ? walk_constant(walk, 0) : dim_floordiv(walk->table, all, given);
    return NULL;
}

tssa_status *region_step_reshape(struct region_walk *walk, const struct rule_step *step)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int from = 0, to = walk->rank, n = (int)step->n_params;
    TRY(target(walk, step, dims));
    /* An empty region keeps no shape that its dims would have to agree with. */
    int front_dims = match_front(walk, &from, &to, dims, n);
    int back_dims = match_back(walk, from, &to, dims + front_dims, n - front_dims);
    const struct group group = {
        .from = from, .to = to, .dims = dims + front_dims, .n_dims = n - front_dims - back_dims};
    if (group.from < group.to || group.n_dims > 0)
        regroup(walk, &group);
    return NULL;
}
