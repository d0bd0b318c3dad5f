/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of regions. */
#include "ir/region_walk.h"
#include "ir/slice.h"

/*
 * A slice of one axis: where it begins, how many it takes at most, and whether it takes them all.
 */
struct cut {
    const struct dim *start, *count; /* start NULL: not known */
    int64_t step;
    bool exact;
};

/* A bound of a forward slice counted from the front; it may be beyond the end. NULL: not known. */
static const struct dim *front(struct region_walk *walk, const struct dim *bound,
                               const struct dim *dim)
{
    int64_t value;
    if (bound->low >= 0)
        return bound;
    if (!dim_is_const(bound, &value))
        return NULL;
    if (value <= -WALK_FAR)
        return walk_constant(walk, 0);
    const struct dim *from_end = dim_add(walk->table, dim, bound);
    return dim_at_least(from_end, 0) ? from_end
                                     : dim_max(walk->table, from_end, walk_constant(walk, 0));
}

static bool proven_le(struct region_walk *walk, const struct dim *a, const struct dim *b)
{
    return dim_at_least(dim_sub(walk->table, b, a), 0);
}

static void cut_forward(struct region_walk *walk, const struct dim *dim, const struct dim *start,
                        const struct dim *end, struct cut *cut)
{
    start = front(walk, start, dim);
    end = front(walk, end, dim);
    if (!start || !end)
        return;
    if (end->low >= WALK_FAR || proven_le(walk, dim, end))
        end = dim;
    /* Constants are clamped, which keeps them small; others when they must be for exactness. */
    if (start->low >= WALK_FAR)
        start = dim;
    int64_t ignored;
    if (dim_is_const(dim, &ignored)) {
        if (dim_is_const(start, &ignored))
            start = dim_min(walk->table, start, dim);
        if (dim_is_const(end, &ignored))
            end = dim_min(walk->table, end, dim);
    }
    const struct dim *length = dim_sub(walk->table, end, start);
    cut->start = start;
    cut->exact = length && proven_le(walk, end, dim);
    if (!dim_at_least(length, 0))
        length = dim_max(walk->table, length, walk_constant(walk, 0));
    cut->count =
        cut->step == 1 ? length : dim_ceildiv(walk->table, length, walk_constant(walk, cut->step));
}

static void cut_backward(struct region_walk *walk, const struct dim *dim, const struct dim *start,
                         const struct dim *end, struct cut *cut)
{
    int64_t d = 0, s = 0, e = 0;
    const struct dim *last = dim_sub(walk->table, dim, walk_constant(walk, 1));
    bool start_known = dim_is_const(start, &s), end_known = dim_is_const(end, &e);
    if (start_known && end_known && dim_is_const(dim, &d) && d < WALK_FAR) {
        cut->count = walk_constant(walk, slice_cut(d, &s, e, cut->step));
        cut->start = walk_constant(walk, s);
        cut->exact = true;
    } else if (start_known && (s == -1 || s >= WALK_FAR) && end_known && e <= -WALK_FAR) {
        cut->start = last;
        cut->count = dim_ceildiv(walk->table, dim, walk_constant(walk, -cut->step));
        cut->exact = true;
    }
}

static tssa_status *cut_axis(struct region_walk *walk, const struct rule_step *step,
                             const struct dim *dim, struct cut *cut)
{
    const struct dim *start = walk_param(walk, step, 1), *end = walk_param(walk, step, 2),
                     *by = walk_param(walk, step, 3);
    TRY_ALLOC(start);
    TRY_ALLOC(end);
    TRY_ALLOC(by);
    *cut = (struct cut){0};
    if (!dim_is_const(by, &cut->step) || cut->step == 0 || cut->step <= -WALK_FAR ||
        cut->step >= WALK_FAR)
        return NULL;
    if (cut->step > 0)
        cut_forward(walk, dim, start, end, cut);
    else
        cut_backward(walk, dim, start, end, cut);
    return NULL;
}

/* The length of a slice in every run: that of the cut when it is exact, else clamped at the end. */
static const struct dim *cut_length(struct region_walk *walk, const struct dim *dim,
                                    const struct cut *cut)
{
    if (cut->exact)
        return cut->count;
    const struct dim *left =
        dim_max(walk->table, dim_sub(walk->table, dim, cut->start), walk_constant(walk, 0));
    if (cut->step != 1)
        left = dim_ceildiv(walk->table, left, walk_constant(walk, cut->step));
    return dim_min(walk->table, cut->count, left);
}

static void slice_unknown(struct region_walk *walk, struct region_walk_axis *axis)
{
    struct region *region = walk->region;
    for (int i = 0; i < region->base_rank; i++)
        if (region->axes[i].result == axis->id)
            region->axes[i].exact = false;
    walk_make_opaque(walk, axis);
    walk_narrowed(walk, axis);
    region->strided = false;
    axis->dim = dim_fresh(walk->table, "slice");
}

/* The axis keeps what the cut takes. */
static void narrow(struct region_walk *walk, struct region_walk_axis *axis, const struct cut *cut)
{
    struct region *region = walk->region;
    int64_t factor;
    if (dim_is(cut->start, 0) && cut->step == 1 && cut->count == axis->dim)
        return;
    walk_narrowed(walk, axis);
    if (walk_is_broadcast(walk, axis) && !(cut->exact && dim_at_least(cut->count, 1)))
        region->exact = false; /* it may hold nothing */
    walk_move_start(walk, axis, cut->start);
    const struct dim *length = cut_length(walk, axis->dim, cut);
    for (int i = 0; i < region->base_rank; i++) {
        struct region_axis *base = &region->axes[i];
        if (base->result != axis->id)
            continue;
        if (__builtin_mul_overflow(base->step, cut->step, &factor)) {
            slice_unknown(walk, axis);
            return;
        }
        base->step = factor;
        base->exact = base->exact && cut->exact;
        base->count = cut->count;
    }
    axis->dim = length;
    axis->stride = dim_mul(walk->table, axis->stride, walk_constant(walk, cut->step));
}

tssa_status *region_step_slice(struct region_walk *walk, const struct rule_step *step)
{
    int64_t at = step->params[0].value;
    struct cut cut;
    if (!walk_has_axis(walk, at))
        return NULL;
    TRY(cut_axis(walk, step, walk->axes[at].dim, &cut));
    if (cut.start)
        narrow(walk, &walk->axes[at], &cut);
    else
        slice_unknown(walk, &walk->axes[at]);
    return NULL;
}

/* All that it asks for is there, or the run fails. */
tssa_status *region_step_span(struct region_walk *walk, const struct rule_step *step)
{
    int64_t at = step->params[0].value;
    struct cut cut = {.step = 1, .exact = true};
    if (!walk_has_axis(walk, at))
        return NULL;
    cut.start = walk_param(walk, step, 1);
    cut.count = walk_param(walk, step, 2);
    TRY_ALLOC(cut.start);
    TRY_ALLOC(cut.count);
    if (!dim_at_least(cut.count, 0))
        cut.count = dim_max(walk->table, cut.count, walk_constant(walk, 0));
    narrow(walk, &walk->axes[at], &cut);
    return NULL;
}
