/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/recover/recover_places.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/infer.h"

/* ---- The region of places -------------------------------------------------------------------- */

/* Coordinates of size one move nothing. */
static int find_move(const struct places *places, int axis)
{
    int found = -1;
    for (int i = 0; i < places->space.rank; i++) {
        if (!places->at[axis].factors[i] || dim_is(places->space.extents[i], 1))
            continue;
        if (found >= 0)
            return -2;
        found = i;
    }
    return found;
}

/* Axis `axis` is in the same place for all positions. */
static bool draft_fixed(struct ir_graph *graph, struct places *places, int axis,
                        int64_t region_axis, struct rule_draft *draft)
{
    const struct element *at = &places->at[axis];
    const struct dim *dim = places->data->dims[axis];
    int64_t number, size;
    if (!at->scalar && dim_is_const(at->offset, &number)) {
        bool sized = dim_is_const(dim, &size);
        if (sized && (number < -size || number >= size)) {
            snprintf(places->why, sizeof places->why,
                     "index %" PRId64 " is outside axis %d, which has %" PRId64 " elements", number,
                     axis, size);
            return false;
        }
        draft_select(draft, region_axis, sized && number < 0 ? number + size : number);
        return true;
    }
    if (!at->witness) {
        snprintf(places->why, sizeof places->why, "no value of the graph is the index on axis %d",
                 axis);
        return false;
    }
    (void)graph;
    draft_step_value(draft, RULE_SELECT, region_axis, at->witness);
    return true;
}

/* The end of a slice of `count` elements; false when it is not a number. */
static bool slice_end(struct ir_graph *graph, int64_t start, const struct dim *count, int64_t step,
                      const struct dim *dim, int64_t *end)
{
    struct dim_table *dims = &graph->dims;
    int64_t n;
    if (dim_is_const(count, &n)) {
        *end = start + (n - 1) * step + (step > 0 ? 1 : -1);
        if (step < 0 && *end < 0)
            *end = INT64_MIN; /* past the first element */
        return true;
    }
    const struct dim *rest = dim_sub(dims, dim, dim_const(dims, start));
    *end = INT64_MAX;
    return step > 0 && dim_ceildiv(dims, rest, dim_const(dims, step)) == count;
}

/* Is `count`, which is not known, what a slice of a number of elements has there? */
static bool is_clamped_slice(struct ir_graph *graph, int64_t start, const struct dim *count,
                             const struct dim *dim)
{
    return count->kind != DIM_CONST && start >= 0 && start <= INT32_MAX &&
           count->high <= INT32_MAX &&
           infer_slice_length(graph, dim, dim_const(&graph->dims, start),
                              dim_const(&graph->dims, start + count->high), 1) == count;
}

/* Axis `axis` moves with one coordinate: a slice, or all of it. */
bool places_draft_moving(struct ir_graph *graph, struct places *places, int axis, int coordinate,
                         int64_t region_axis, struct rule_draft *draft)
{
    const struct element *at = &places->at[axis];
    const struct dim *dim = places->data->dims[axis], *count = places->space.extents[coordinate];
    struct element base = *at;
    int64_t start, step, end, size;
    for (int i = 0; i < places->space.rank; i++)
        if (i != coordinate)
            base.factors[i] = NULL;
    if (dim_is(count, 0)) { /* no bound needs to make sense */
        draft_slice(draft, region_axis, 0, 0, 1);
        return true;
    }
    if (!dim_is_const(at->factors[coordinate], &step) || step > INT32_MAX || step < INT32_MIN) {
        snprintf(places->why, sizeof places->why, "the step on axis %d is not a number", axis);
        return false;
    }
    if (at->scalar || !dim_is_const(at->offset, &start)) {
        snprintf(places->why, sizeof places->why, "where the range on axis %d begins is not known",
                 axis);
        return false;
    }
    if (step == 1 && is_clamped_slice(graph, start, count, dim)) {
        draft_slice(draft, region_axis, start, start + count->high, 1);
        return true;
    }
    if (start < 0 && dim_is_const(dim, &size)) {
        const struct dim *most = element_most(graph, &places->space, &base);
        if (most && most->high < 0) { /* all of it counts from the end */
            start += size;
            base.offset = dim_const(&graph->dims, start);
        }
    }
    if (!base.offset || !element_within(graph, &places->space, &base, dim)) {
        snprintf(places->why, sizeof places->why,
                 "the range on axis %d is not known to lie within the axis", axis);
        return false;
    }
    if (start == 0 && step == 1 && count == dim)
        return true;
    if (!slice_end(graph, start, count, step, dim, &end)) {
        snprintf(places->why, sizeof places->why, "how far the range on axis %d goes is not known",
                 axis);
        return false;
    }
    draft_slice(draft, region_axis, start, end, step);
    return true;
}

/* Is every coordinate what moves exactly one axis? Else places repeat. */
static bool is_one_to_one(struct places *places)
{
    bool moved[TSSA_MAX_RANK] = {false};
    for (int axis = 0; axis < places->n_axes; axis++) {
        int coordinate = places->moves[axis];
        if (coordinate == -2 || (coordinate >= 0 && moved[coordinate])) {
            snprintf(places->why, sizeof places->why,
                     "axis %d moves together with another axis, or along several of the indices'",
                     axis);
            return false;
        }
        if (coordinate >= 0)
            moved[coordinate] = true;
    }
    for (int i = 0; i < places->space.rank; i++)
        if (!moved[i] && !dim_is(places->space.extents[i], 1)) {
            snprintf(places->why, sizeof places->why, "places repeat along axis %d of the indices",
                     i);
            return false;
        }
    return true;
}

/* A select by an unknown index is an error when it is out of range, even if nothing is written
 * there. */
static bool is_never_empty(const struct places *places)
{
    for (int i = 0; i < places->space.rank; i++)
        if (places->space.extents[i]->low < 1)
            return false;
    return true;
}

static bool fixed_are_safe(struct ir_graph *graph, struct places *places)
{
    for (int axis = 0; axis < places->n_axes; axis++) {
        int64_t number;
        const struct element *at = &places->at[axis];
        if (places->moves[axis] >= 0 || is_never_empty(places))
            continue;
        if (!at->scalar && dim_is_const(at->offset, &number) && number < 0 &&
            places->data->dims[axis]->low >= -number)
            continue;
        if (element_within(graph, &places->space, at, places->data->dims[axis]))
            continue;
        snprintf(places->why, sizeof places->why,
                 "the index on axis %d may be out of range where there is nothing to move", axis);
        return false;
    }
    return true;
}

/*
 * May an axis that is fixed at a number be the coordinate's, which has size one or none? An axis of
 * size one may; else the range of one element there must be empty whenever the coordinate is.
 */
static bool takes_short(struct ir_graph *graph, const struct places *places, int axis,
                        const struct dim *extent)
{
    const struct element *at = &places->at[axis];
    const struct dim *dim = places->data->dims[axis];
    int64_t number;
    if (places->moves[axis] != -1 || at->scalar || !dim_is_const(at->offset, &number) ||
        number < 0 || number == INT64_MAX)
        return false;
    if (dim_is(extent, 1))
        return number == 0 && dim_is(dim, 1);
    return infer_slice_length(graph, dim, at->offset, dim_const(&graph->dims, number + 1), 1) ==
           extent;
}

/*
 * Coordinates of size one or none, which move nothing, get axes of their own where there are such.
 */
static bool place_short(struct ir_graph *graph, struct places *places)
{
    for (int i = 0; i < places->space.rank; i++) {
        const struct dim *extent = places->space.extents[i];
        bool taken = extent->high > 1;
        for (int axis = 0; axis < places->n_axes; axis++)
            taken |= places->moves[axis] == i;
        for (int axis = 0; axis < places->n_axes && !taken; axis++) {
            if (!takes_short(graph, places, axis, extent))
                continue;
            places->moves[axis] = i;
            places->at[axis].factors[i] = dim_const(&graph->dims, 1);
            if (!places->at[axis].factors[i])
                return false;
            taken = true;
        }
    }
    return true;
}

bool places_draft_fixed(struct ir_graph *graph, struct places *places, struct rule_draft *draft)
{
    for (int axis = 0; axis < places->n_axes; axis++) {
        places->moves[axis] = find_move(places, axis);
        if (places->moves[axis] != -1)
            return false;
    }
    if (!fixed_are_safe(graph, places))
        return false;
    for (int axis = 0; axis < places->n_axes; axis++)
        if (!draft_fixed(graph, places, axis, 0, draft))
            return false;
    return !draft->full;
}

bool places_draft(struct ir_graph *graph, struct places *places, struct rule_draft *draft)
{
    int64_t region_axis = 0;
    for (int axis = 0; axis < places->n_axes; axis++)
        places->moves[axis] = find_move(places, axis);
    if (!place_short(graph, places) || !is_one_to_one(places) || !fixed_are_safe(graph, places))
        return false;
    for (int axis = 0; axis < places->n_axes; axis++) {
        int coordinate = places->moves[axis];
        bool drafted = coordinate < 0 ? draft_fixed(graph, places, axis, region_axis, draft)
                                      : places_draft_moving(graph, places, axis, coordinate,
                                                            region_axis, draft);
        if (!drafted)
            return false;
        if (coordinate >= 0) {
            places->kept[places->n_kept++] = coordinate;
            region_axis++;
        }
    }
    return !draft->full;
}

/* ---- Reading index tensors ------------------------------------------------------------------- */

static tssa_status *read_component(struct pass_context *pass, struct places *places, int axis,
                                   const char *what, struct ir_value *indices,
                                   const struct element *at, bool *proven)
{
    struct element_doubt doubt;
    char name[256];
    TRY(element_read(pass->graph, &places->space, indices, at, &places->at[axis], proven, &doubt));
    if (!*proven)
        snprintf(places->why, sizeof places->why,
                 "%s is not an affine function of the position: it comes from %s", what,
                 recover_name(doubt.value, name, sizeof name));
    return NULL;
}

tssa_status *places_read_tuples(struct pass_context *pass, const struct ir_op *op, int depth,
                                struct places *places, bool *proven, int *n_proven)
{
    struct element at[TSSA_MAX_RANK];
    struct ir_value *indices = ir_operand(op, 1);
    int rank = indices->type->rank;
    char what[64];
    places->space.block = op->parent;
    places->space.rank = rank - 1;
    places->n_axes = depth;
    *proven = true;
    for (int i = 0; i < rank - 1; i++) {
        places->space.extents[i] = indices->type->dims[i];
        if (!element_coordinate(pass->graph, i, &at[i]))
            return status_out_of_memory();
    }
    *n_proven = 0;
    for (int k = 0; k < depth && *proven; k++) {
        if (!element_number(pass->graph, k, &at[rank - 1]))
            return status_out_of_memory();
        snprintf(what, sizeof what, "column %d of the indices", k);
        TRY(read_component(pass, places, k, what, indices, at, proven));
        *n_proven += *proven;
    }
    return NULL;
}

tssa_status *places_read_elements(struct pass_context *pass, const struct ir_op *op, int axis,
                                  struct places *places, bool *proven)
{
    struct element at[TSSA_MAX_RANK];
    struct ir_value *indices = ir_operand(op, 1);
    int rank = indices->type->rank;
    places->space.block = op->parent;
    places->space.rank = places->n_axes = rank;
    for (int i = 0; i < rank; i++) {
        places->space.extents[i] = indices->type->dims[i];
        if (!element_coordinate(pass->graph, i, &at[i]))
            return status_out_of_memory();
        places->at[i] = at[i];
    }
    return read_component(pass, places, axis, "the index", indices, at, proven);
}
