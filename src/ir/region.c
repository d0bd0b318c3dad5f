/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: the walk over a rule's steps that makes them. */
#include "ir/region.h"

#include <string.h>

#include "ir/region_walk.h"

/* ---- On the way ------------------------------------------------------------------------------ */

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

static const step_fn steps[RULE_KIND_COUNT] = {
#define RULE(id, text, ...) [RULE_##id] = region_step_##text,
#include "ir/rule.def"
#undef RULE
};

/* ---- Making ---------------------------------------------------------------------------------- */

static tssa_status *begin(struct region_walk *walk, const struct ir_type *base)
{
    struct region *region = walk->region;
    const struct dim *stride = walk_constant(walk, 1);
    region->base_rank = walk->rank = walk->n_ids = base->rank;
    region->offset = walk_constant(walk, 0);
    for (int i = base->rank; i-- > 0;) {
        region->base[i] = base->dims[i];
        region->axes[i] = (struct region_axis){.exact = true,
                                               .start = walk_constant(walk, 0),
                                               .count = base->dims[i],
                                               .step = 1,
                                               .result = i};
        walk->axes[i] = (struct region_walk_axis){.dim = base->dims[i], .stride = stride, .id = i};
        stride = dim_mul(walk->table, stride, base->dims[i]);
        TRY_ALLOC(region->axes[i].start);
    }
    region->exact = region->mapped = region->strided = true;
    region->single = REGION_YES;
    return NULL;
}

/* Duplicates are only there where anything is. */
static void settle_single(const struct region_walk *walk)
{
    struct region *region = walk->region;
    for (int i = 0; i < region->rank; i++)
        if (region->single == REGION_NO && region->dims[i]->low < 1)
            region->single = REGION_UNKNOWN;
}

static tssa_status *finish(struct region_walk *walk)
{
    struct region *region = walk->region;
    int result[TSSA_MAX_RANK];
    region->rank = walk->rank;
    for (int r = 0; r < walk->rank; r++)
        walk_account(walk, &walk->axes[r]);
    for (int i = 0; i < region->base_rank; i++) {
        region->exact = region->exact && region->axes[i].exact;
        result[i] = -1;
        for (int r = 0; r < walk->rank; r++)
            if (walk->axes[r].id == region->axes[i].result)
                result[i] = r;
        TRY_ALLOC(region->axes[i].start);
        TRY_ALLOC(region->axes[i].count);
    }
    for (int i = 0; i < region->base_rank; i++)
        region->axes[i].result = result[i];
    for (int r = 0; r < walk->rank; r++) {
        region->dims[r] = walk->axes[r].dim;
        region->strides[r] = walk->axes[r].stride;
        TRY_ALLOC(region->dims[r]);
        TRY_ALLOC(region->strides[r]);
    }
    TRY_ALLOC(region->offset);
    settle_single(walk);
    return NULL;
}

tssa_status *region_make(struct region_space *space, const struct ir_type *base,
                         const struct rule *rule, struct ir_value *const *params,
                         struct region *region)
{
    *region = (struct region){.rule = rule, .params = params, .base_rank = -1, .rank = -1};
    struct region_walk walk = {.space = space, .table = &space->graph->dims, .region = region};
    if (base->kind != TYPE_TENSOR || base->rank < 0)
        return NULL;
    TRY(begin(&walk, base));
    for (uint32_t i = 0; i < rule->n_steps && walk.rank >= 0; i++)
        TRY(steps[rule->steps[i].kind](&walk, &rule->steps[i]));
    if (walk.rank < 0 || walk.rank > TSSA_MAX_RANK) {
        *region = (struct region){.rule = rule, .params = params, .base_rank = -1, .rank = -1};
        return NULL;
    }
    return finish(&walk);
}

tssa_status *region_of(struct region_space *space, const struct ir_op *op, struct ir_value **params,
                       struct region *region)
{
    const struct rule *rule = rule_of(op);
    uint32_t first = rule_first_operand(op);
    for (uint32_t i = 0; i < rule->n_operands; i++)
        params[i] = ir_operand(op, first + i);
    return region_make(space, ir_operand(op, 0)->type, rule, params, region);
}
