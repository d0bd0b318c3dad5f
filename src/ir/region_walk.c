/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a walk do to a region. */
#include "ir/region_walk.h"

#include <string.h>

const struct dim *walk_constant(const struct region_walk *walk, int64_t value)
{
    return dim_const(walk->table, value);
}

const struct dim *walk_param(const struct region_walk *walk, const struct rule_step *step,
                             uint32_t i)
{
    const struct rule_param *p = &step->params[i];
    return p->is_operand ? region_scalar(walk->space, walk->region->params[p->value])
                         : walk_constant(walk, p->value);
}

bool walk_give_up(struct region_walk *walk)
{
    walk->rank = -1;
    return false;
}

bool walk_has_axis(struct region_walk *walk, int64_t axis)
{
    return axis < walk->rank || walk_give_up(walk);
}

void walk_remove_axis(struct region_walk *walk, int64_t axis)
{
    walk->rank--;
    memmove(walk->axes + axis, walk->axes + axis + 1,
            (size_t)(walk->rank - axis) * sizeof *walk->axes);
}

void walk_insert_axis(struct region_walk *walk, int64_t axis, struct region_walk_axis new)
{
    memmove(walk->axes + axis + 1, walk->axes + axis,
            (size_t)(walk->rank - axis) * sizeof *walk->axes);
    walk->axes[axis] = new;
    walk->rank++;
}

struct region_walk_axis walk_broadcast_axis(struct region_walk *walk, const struct dim *dim)
{
    return (struct region_walk_axis){
        .dim = dim, .stride = walk_constant(walk, 0), .id = walk->n_ids++};
}

void walk_detach(struct region_walk *walk, int id, int result)
{
    for (int i = 0; i < walk->region->base_rank; i++) {
        struct region_axis *axis = &walk->region->axes[i];
        if (axis->result != id)
            continue;
        axis->result = result;
        if (result == -1)
            axis->count = walk_constant(walk, 1);
    }
}

bool walk_is_broadcast(const struct region_walk *walk, const struct region_walk_axis *axis)
{
    for (int i = 0; i < walk->region->base_rank; i++)
        if (walk->region->axes[i].result == axis->id)
            return false;
    return !axis->opaque;
}

void walk_repeated(struct region_walk *walk, const struct dim *count)
{
    struct region *region = walk->region;
    if (!count || count->high > 1)
        region->single =
            dim_at_least(count, 2) && region->single != REGION_UNKNOWN ? REGION_NO : REGION_UNKNOWN;
}

void walk_account(struct region_walk *walk, const struct region_walk_axis *axis)
{
    if (walk_is_broadcast(walk, axis))
        walk_repeated(walk, axis->dim);
}

void walk_make_opaque(struct region_walk *walk, struct region_walk_axis *axis)
{
    walk_account(walk, axis);
    walk_detach(walk, axis->id, WALK_LOST);
    axis->opaque = true;
    axis->id = walk->n_ids++;
    walk->region->mapped = false;
}

void walk_move_start(struct region_walk *walk, const struct region_walk_axis *axis,
                     const struct dim *by)
{
    struct region *region = walk->region;
    for (int i = 0; i < region->base_rank; i++) {
        struct region_axis *base = &region->axes[i];
        if (base->result == axis->id)
            base->start = dim_add(walk->table, base->start,
                                  dim_mul(walk->table, by, walk_constant(walk, base->step)));
    }
    region->offset = dim_add(walk->table, region->offset, dim_mul(walk->table, by, axis->stride));
}

void walk_narrowed(struct region_walk *walk, const struct region_walk_axis *axis)
{
    struct region *region = walk->region;
    if (!axis->opaque)
        return;
    region->exact = false;
    if (region->single == REGION_NO)
        region->single = REGION_UNKNOWN;
}

void walk_squeeze_axis(struct region_walk *walk, int64_t at)
{
    walk_detach(walk, walk->axes[at].id, -1);
    walk_remove_axis(walk, at);
}
