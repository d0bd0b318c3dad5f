/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a rule that take, rearrange and repeat axes of a region. */
#include <string.h>

#include "ir/region_walk.h"

tssa_status *region_step_select(struct region_walk *walk, const struct rule_step *step)
{
    int64_t at = step->params[0].value, value;
    if (!walk_has_axis(walk, at))
        return NULL;
    struct region_walk_axis axis = walk->axes[at];
    const struct dim *index = walk_param(walk, step, 1);
    TRY_ALLOC(index);
    if (dim_is_const(index, &value) && value < 0)
        index = dim_add(walk->table, index, axis.dim);
    else if (index->low < 0) /* within -dim and dim, or the run fails */
        index = dim_mod(walk->table, index, axis.dim);
    walk_narrowed(walk, &axis);
    walk_move_start(walk, &axis, index);
    for (int i = 0; i < walk->region->base_rank; i++)
        if (walk->region->axes[i].result == axis.id)
            walk->region->axes[i].exact = true; /* the one coordinate is there */
    walk_detach(walk, axis.id, -1);
    walk_remove_axis(walk, at);
    return NULL;
}

/* ---- Steps that rearrange -------------------------------------------------------------------- */

tssa_status *region_step_permute(struct region_walk *walk, const struct rule_step *step)
{
    struct region_walk_axis axes[TSSA_MAX_RANK];
    if ((int)step->n_params != walk->rank) {
        walk_give_up(walk);
        return NULL;
    }
    for (uint32_t i = 0; i < step->n_params; i++) {
        if (!walk_has_axis(walk, step->params[i].value))
            return NULL;
        axes[i] = walk->axes[step->params[i].value];
    }
    memcpy(walk->axes, axes, step->n_params * sizeof *axes);
    return NULL;
}

tssa_status *region_step_squeeze(struct region_walk *walk, const struct rule_step *step)
{
    for (uint32_t i = step->n_params; i-- > 0;) {
        if (!walk_has_axis(walk, step->params[i].value))
            return NULL;
        walk_squeeze_axis(walk, step->params[i].value);
    }
    return NULL;
}

tssa_status *region_step_unsqueeze(struct region_walk *walk, const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++) {
        if (step->params[i].value > walk->rank || walk->rank == TSSA_MAX_RANK) {
            walk_give_up(walk);
            return NULL;
        }
        walk_insert_axis(walk, step->params[i].value,
                         walk_broadcast_axis(walk, walk_constant(walk, 1)));
    }
    return NULL;
}

static void expand_axis(struct region_walk *walk, struct region_walk_axis *axis,
                        const struct dim *to)
{
    if (to == axis->dim || dim_is(to, 1))
        return;
    int64_t from;
    if (dim_is_const(axis->dim, &from)) {
        if (from != 1)
            return;
        if (!dim_at_least(to, 1))
            walk->region->exact = false;
        walk_detach(walk, axis->id, -1);
        *axis = walk_broadcast_axis(walk, to);
        return;
    }
    /* It was 1, or it is what it is expanded to. */
    if (!dim_at_least(to, 1))
        walk->region->exact = false;
    walk->region->single = REGION_UNKNOWN;
    walk->region->strided = false;
    walk_make_opaque(walk, axis);
    axis->dim = dim_at_least(to, 2) ? to : dim_fresh(walk->table, "expand");
}

tssa_status *region_step_expand(struct region_walk *walk, const struct rule_step *step)
{
    while (walk->rank < (int)step->n_params)
        walk_insert_axis(walk, 0, walk_broadcast_axis(walk, walk_constant(walk, 1)));
    if (walk->rank > (int)step->n_params) {
        walk_give_up(walk);
        return NULL;
    }
    for (uint32_t i = 0; i < step->n_params; i++) {
        const struct dim *to = walk_param(walk, step, i);
        TRY_ALLOC(to);
        expand_axis(walk, &walk->axes[i], to);
    }
    return NULL;
}

tssa_status *region_step_tile(struct region_walk *walk, const struct rule_step *step)
{
    if ((int)step->n_params != walk->rank) {
        walk_give_up(walk);
        return NULL;
    }
    for (uint32_t i = 0; i < step->n_params; i++) {
        const struct dim *count = walk_param(walk, step, i);
        struct region_walk_axis *axis = &walk->axes[i];
        TRY_ALLOC(count);
        if (dim_is(count, 1))
            continue;
        if (dim_is(axis->dim, 1)) {
            expand_axis(walk, axis, count);
            continue;
        }
        if (!dim_at_least(count, 1))
            walk->region->exact = false;
        walk_make_opaque(walk, axis);
        walk_repeated(walk, count);
        walk->region->strided = false;
        axis->dim = dim_mul(walk->table, axis->dim, count);
    }
    return NULL;
}

tssa_status *region_step_diagonal(struct region_walk *walk, const struct rule_step *step)
{
    int64_t a = step->params[0].value, b = step->params[1].value, offset = step->params[2].value;
    struct region *region = walk->region;
    if (!walk_has_axis(walk, a) || !walk_has_axis(walk, b) || a == b || offset <= -WALK_FAR ||
        offset >= WALK_FAR) {
        walk_give_up(walk);
        return NULL;
    }
    struct region_walk_axis row = walk->axes[a], column = walk->axes[b],
                            both = {.id = walk->n_ids++};
    const struct dim *rows = row.dim, *columns = column.dim;
    if (offset >= 0)
        columns = dim_sub(walk->table, columns, walk_constant(walk, offset));
    else
        rows = dim_add(walk->table, rows, walk_constant(walk, offset));
    both.dim = dim_max(walk->table, walk_constant(walk, 0), dim_min(walk->table, rows, columns));
    both.stride = dim_add(walk->table, row.stride, column.stride);
    both.opaque = row.opaque || column.opaque;
    walk_move_start(walk, &row, walk_constant(walk, offset < 0 ? -offset : 0));
    walk_move_start(walk, &column, walk_constant(walk, offset > 0 ? offset : 0));
    for (int i = 0; i < region->base_rank; i++)
        if (region->axes[i].result == row.id || region->axes[i].result == column.id) {
            region->axes[i].result = both.id;
            region->axes[i].count = both.dim;
        }
    walk_narrowed(walk, &row);
    walk_narrowed(walk, &column);
    region->exact = false; /* not every combination */
    if (both.opaque)
        walk_detach(walk, both.id, WALK_LOST);
    walk_remove_axis(walk, a > b ? a : b);
    walk_remove_axis(walk, a > b ? b : a);
    walk_insert_axis(walk, walk->rank, both);
    return NULL;
}

/* ---- Index tensors --------------------------------------------------------------------------- */

/* Any of the coordinates, in any order. */
static void forget(struct region_walk *walk, const struct region_walk_axis *axis)
{
    struct region *region = walk->region;
    walk_account(walk, axis);
    for (int i = 0; i < region->base_rank; i++)
        if (region->axes[i].result == axis->id) {
            region->axes[i].exact = false;
            region->axes[i].result = WALK_LOST;
        }
    region->exact = region->mapped = region->strided = false;
}

static const struct ir_type *tensor_param(const struct region_walk *walk,
                                          const struct rule_step *step)
{
    const struct ir_value *value = walk->region->params[step->params[1].value];
    return value && value->type->kind == TYPE_TENSOR && value->type->rank >= 0 ? value->type : NULL;
}

tssa_status *region_step_gather(struct region_walk *walk, const struct rule_step *step)
{
    int64_t at = step->params[0].value;
    const struct ir_type *indices = tensor_param(walk, step);
    if (!walk_has_axis(walk, at))
        return NULL;
    if (!indices || walk->rank - 1 + indices->rank > TSSA_MAX_RANK) {
        walk_give_up(walk);
        return NULL;
    }
    forget(walk, &walk->axes[at]);
    walk->region->single = REGION_UNKNOWN;
    walk_remove_axis(walk, at);
    for (int i = 0; i < indices->rank; i++)
        walk_insert_axis(walk, at + i,
                         (struct region_walk_axis){.dim = indices->dims[i],
                                                   .stride = walk_constant(walk, 0),
                                                   .id = walk->n_ids++,
                                                   .opaque = true});
    return NULL;
}

tssa_status *region_step_mask(struct region_walk *walk, const struct rule_step *step)
{
    int64_t at = step->params[0].value;
    const struct ir_type *mask = tensor_param(walk, step);
    if (!mask || mask->rank < 1 || at + mask->rank > walk->rank) {
        walk_give_up(walk);
        return NULL;
    }
    for (int i = 0; i < mask->rank; i++) {
        forget(walk, &walk->axes[at]);
        walk_remove_axis(walk, at);
    }
    walk_insert_axis(walk, at,
                     (struct region_walk_axis){.dim = dim_fresh(walk->table, "mask"),
                                               .stride = walk_constant(walk, 0),
                                               .id = walk->n_ids++,
                                               .opaque = true});
    if (walk->region->single == REGION_NO) /* what was there twice may be gone */
        walk->region->single = REGION_UNKNOWN;
    return NULL;
}
