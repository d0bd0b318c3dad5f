/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scatters and gathers with index tensors. Each axis of the data that is indexed has an element
 * function over the positions in the index tensor. Where every axis depends on one coordinate of the
 * position at most, and every coordinate moves one axis, the places are a region of selects and slices.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/infer.h"
#include "passes/recover.h"

/* Which elements of the data an op addresses. */
struct places {
    struct element_space space; /* the positions in the index tensor */
    int n_axes;                 /* leading axes of the data that are indexed */
    struct element at[TSSA_MAX_RANK];
    int moves[TSSA_MAX_RANK]; /* the coordinate that an axis moves with; -1: none; -2: several */
    const struct ir_type *data;
    /* The region's axes among the leading ones, in order: the coordinates that they are. */
    int n_kept, kept[TSSA_MAX_RANK];
    char why[384]; /* when they are no region: the fact that is missing */
};

/* ---- The region of places ------------------------------------------------------------------------- */

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
static bool draft_moving(struct ir_graph *graph, struct places *places, int axis, int coordinate,
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

/* A select by an unknown index is an error when it is out of range, even if nothing is written there. */
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
 * May an axis that is fixed at a number be the coordinate's, which has size one or none? An axis of size
 * one may; else the range of one element there must be empty whenever the coordinate is.
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

/* Coordinates of size one or none, which move nothing, get axes of their own where there are such. */
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

static bool draft_places(struct ir_graph *graph, struct places *places, struct rule_draft *draft)
{
    int64_t region_axis = 0;
    for (int axis = 0; axis < places->n_axes; axis++)
        places->moves[axis] = find_move(places, axis);
    if (!place_short(graph, places) || !is_one_to_one(places) || !fixed_are_safe(graph, places))
        return false;
    for (int axis = 0; axis < places->n_axes; axis++) {
        int coordinate = places->moves[axis];
        bool drafted = coordinate < 0
                           ? draft_fixed(graph, places, axis, region_axis, draft)
                           : draft_moving(graph, places, axis, coordinate, region_axis, draft);
        if (!drafted)
            return false;
        if (coordinate >= 0) {
            places->kept[places->n_kept++] = coordinate;
            region_axis++;
        }
    }
    return !draft->full;
}

/* ---- Reading index tensors ------------------------------------------------------------------------ */

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

/* The places that the last axis of an index tensor lists; *n_proven columns from the first one on. */
static tssa_status *read_tuples(struct pass_context *pass, const struct ir_op *op, int depth,
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

/* The places of ScatterElements and GatherElements: a position, but for one axis. */
static tssa_status *read_elements(struct pass_context *pass, const struct ir_op *op, int axis,
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

/* ---- Sources and results -------------------------------------------------------------------------- */

/* The steps from the positions (and the axes after them) to the region's axes. */
static void draft_to_region(const struct places *places, int trailing, struct rule_draft *draft)
{
    int rank = places->space.rank;
    int64_t dropped[TSSA_MAX_RANK], perm[TSSA_MAX_RANK], place[TSSA_MAX_RANK] = {0};
    bool kept[TSSA_MAX_RANK] = {false};
    uint32_t n_dropped = 0;
    int next = 0;
    for (int i = 0; i < places->n_kept; i++)
        kept[places->kept[i]] = true;
    for (int i = 0; i < rank; i++) {
        place[i] = next;
        if (kept[i])
            next++;
        else
            dropped[n_dropped++] = i;
    }
    if (n_dropped)
        draft_step(draft, RULE_SQUEEZE, n_dropped, dropped);
    for (int i = 0; i < places->n_kept; i++)
        perm[i] = place[places->kept[i]];
    for (int i = 0; i < trailing; i++)
        perm[places->n_kept + i] = places->n_kept + i;
    draft_permute(draft, places->n_kept + trailing, perm);
}

/* The other way round, for reads. */
static void draft_from_region(const struct places *places, int trailing, struct rule_draft *draft)
{
    int rank = places->space.rank, n = 0;
    int64_t added[TSSA_MAX_RANK], perm[TSSA_MAX_RANK];
    uint32_t n_added = 0;
    for (int i = 0; i < rank; i++) {
        int at = -1;
        for (int k = 0; k < places->n_kept; k++)
            at = places->kept[k] == i ? k : at;
        if (at < 0)
            added[n_added++] = i;
        else
            perm[n++] = at;
    }
    for (int i = 0; i < trailing; i++)
        perm[n + i] = n + i;
    draft_permute(draft, n + trailing, perm);
    if (n_added)
        draft_step(draft, RULE_UNSQUEEZE, n_added, added);
}

/* Is `inner` what `outer` is without its axes of size one? */
static bool same_long_axes(const struct ir_type *outer, const struct ir_type *inner,
                           const int64_t *dropped, uint32_t n_dropped)
{
    uint32_t d = 0;
    int at = 0;
    for (int i = 0; i < outer->rank; i++) {
        if (d < n_dropped && dropped[d] == i) {
            d++;
            continue;
        }
        if (at >= inner->rank || inner->dims[at++] != outer->dims[i])
            return false;
    }
    return at == inner->rank;
}

/* What an Unsqueeze or Reshape was given, when the draft is a squeeze that takes it back. */
static struct ir_value *before_unsqueeze(struct ir_value *value, const struct rule_draft *draft)
{
    const struct ir_op *op = value->op;
    int64_t dropped[TSSA_MAX_RANK];
    if (!op || (!ir_op_is(op, IR_OP_Unsqueeze) && !ir_op_is(op, IR_OP_Reshape)) ||
        draft->n_steps != 1 || draft->steps[0].kind != RULE_SQUEEZE ||
        !recover_is_ranked(ir_operand(op, 0)))
        return NULL;
    for (uint32_t i = 0; i < draft->steps[0].n_params; i++)
        dropped[i] = draft->steps[0].params[i].value;
    struct ir_value *inner = ir_operand(op, 0);
    return same_long_axes(value->type, inner->type, dropped, draft->steps[0].n_params) ? inner
                                                                                       : NULL;
}

static tssa_status *fit_source(struct pass_context *pass, struct ir_op *op,
                               const struct places *places, struct ir_value **source)
{
    struct rule_draft draft = {0};
    draft_to_region(places, (*source)->type->rank - places->space.rank, &draft);
    struct ir_value *inner = before_unsqueeze(*source, &draft);
    if (inner) {
        *source = inner;
        return NULL;
    }
    return recover_insert_access(pass, op, *source, &draft, source);
}

/* ---- Writes --------------------------------------------------------------------------------------- */

static tssa_status *missed(struct pass_context *pass, const struct ir_op *op, const char *why)
{
    return pass_remark(pass, TSSA_REMARK_MISSED, op, "stays a scatter: %s", why);
}

/* Are the ranks of data, indices and updates known, and is there no reduction? */
static tssa_status *is_plain_scatter(struct pass_context *pass, const struct ir_op *op, bool *plain)
{
    *plain = strcmp(ir_attr_str(op, "reduction", "none"), "none") == 0;
    for (uint32_t i = 0; i < 3 && *plain; i++) {
        const struct ir_value *value = ir_operand(op, i);
        *plain = recover_is_ranked(value);
        if (!*plain && value) {
            char name[256];
            return pass_remark(pass, TSSA_REMARK_MISSED, op,
                               "stays a scatter: the rank of %s is not known",
                               recover_name(value, name, sizeof name));
        }
    }
    return NULL;
}

static bool same_dims(const struct dim *const *a, const struct dim *const *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

/* A write of everything is what was written. */
static tssa_status *finish_write(struct pass_context *pass, struct ir_op *op,
                                 struct ir_value *source, const struct rule_draft *draft)
{
    if (draft->n_steps == 0 && source->type == op->results[0].type) {
        TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "writes every element"));
        recover_replace(pass, op, source);
        return NULL;
    }
    return recover_assign(pass, op, ir_operand(op, 0), source, draft);
}

static tssa_status *write_places(struct pass_context *pass, struct ir_op *op, struct places *places)
{
    struct rule_draft draft = {0};
    struct ir_value *source = ir_operand(op, 2);
    if (!draft_places(pass->graph, places, &draft))
        return missed(pass, op, places->why);
    TRY(fit_source(pass, op, places, &source));
    return finish_write(pass, op, source, &draft);
}

/* Rows by a list of indices: the last of equal ones is what stays, for both. */
static tssa_status *write_rows(struct pass_context *pass, struct ir_op *op, const char *why)
{
    struct rule_draft draft = {0}, squeeze = {0};
    struct ir_value *indices = ir_operand(op, 1);
    int last = indices->type->rank - 1;
    if (last < 1 || !dim_is(indices->type->dims[last], 1))
        return missed(pass, op, why);
    draft_step(&squeeze, RULE_SQUEEZE, 1, (const int64_t[]){last});
    struct ir_value *list = before_unsqueeze(indices, &squeeze);
    if (!list)
        TRY(recover_insert_access(pass, op, indices, &squeeze, &list));
    draft_step_value(&draft, RULE_GATHER, 0, list);
    return recover_assign(pass, op, ir_operand(op, 0), ir_operand(op, 2), &draft);
}

/* The places that NonZero lists, in a part that the columns before, which are proven, select. */
static tssa_status *write_listed(struct pass_context *pass, struct ir_op *op, int axis, int depth,
                                 struct places *places, bool *done)
{
    struct listed_write write;
    struct rule_draft draft = {0};
    *done = false;
    TRY(recover_read_listed(pass, op, &places->space, axis, depth, &write));
    if (!write.mask)
        return NULL;
    if (!write.value) {
        snprintf(places->why, sizeof places->why,
                 "what is written where a mask is true differs from place to place");
        return NULL;
    }
    places->n_axes = axis;
    for (int i = 0; i < axis; i++) {
        places->moves[i] = find_move(places, i);
        if (places->moves[i] != -1)
            return NULL;
    }
    if (!fixed_are_safe(pass->graph, places))
        return NULL;
    for (int i = 0; i < axis; i++)
        if (!draft_fixed(pass->graph, places, i, 0, &draft))
            return NULL;
    *done = !draft.full;
    return *done ? recover_write_listed(pass, op, &write, &draft) : NULL;
}

tssa_status *recover_scatter_nd(struct pass_context *pass, struct ir_op *op)
{
    struct places places = {0};
    int64_t depth;
    int n_proven;
    bool proven, plain, done;
    TRY(is_plain_scatter(pass, op, &plain));
    if (!plain)
        return NULL;
    struct ir_value *indices = ir_operand(op, 1);
    const struct ir_type *updates = ir_operand(op, 2)->type;
    places.data = ir_operand(op, 0)->type;
    int outer = indices->type->rank - 1;
    if (outer < 0 || !dim_is_const(indices->type->dims[outer], &depth) ||
        depth > places.data->rank || depth < 1 ||
        updates->rank != outer + places.data->rank - (int)depth)
        return NULL;
    if (!same_dims(updates->dims, indices->type->dims, outer) ||
        !same_dims(updates->dims + outer, places.data->dims + depth, updates->rank - outer))
        return missed(pass, op, "the shape of the updates is not known to fit");
    TRY(read_tuples(pass, op, (int)depth, &places, &proven, &n_proven));
    if (!proven) {
        TRY(write_listed(pass, op, n_proven, (int)depth, &places, &done));
        return done ? NULL : write_rows(pass, op, places.why);
    }
    return write_places(pass, op, &places);
}

tssa_status *recover_scatter_elements(struct pass_context *pass, struct ir_op *op)
{
    struct places places = {0};
    bool proven, plain;
    TRY(is_plain_scatter(pass, op, &plain));
    if (!plain)
        return NULL;
    const struct ir_type *indices = ir_operand(op, 1)->type, *updates = ir_operand(op, 2)->type;
    places.data = ir_operand(op, 0)->type;
    int rank = places.data->rank;
    int64_t axis = ir_attr_int(op, "axis", 0);
    if (rank < 1 || axis < -rank || axis >= rank || indices->rank != rank || updates->rank != rank)
        return NULL;
    if (!same_dims(updates->dims, indices->dims, rank))
        return missed(pass, op, "the shape of the updates is not known to fit");
    axis += axis < 0 ? rank : 0;
    TRY(read_elements(pass, op, (int)axis, &places, &proven));
    return proven ? write_places(pass, op, &places) : missed(pass, op, places.why);
}

/* ---- Reads ---------------------------------------------------------------------------------------- */

static tssa_status *read_places(struct pass_context *pass, struct ir_op *op, struct places *places)
{
    struct rule_draft draft = {0};
    struct ir_value *base = ir_operand(op, 0);
    if (!draft_places(pass->graph, places, &draft))
        return NULL;
    draft_from_region(places, op->results[0].type->rank - places->space.rank, &draft);
    if (draft.full)
        return NULL;
    if (draft.n_steps > 0)
        return recover_access(pass, op, 0, base, &draft);
    if (base->type == op->results[0].type)
        recover_replace(pass, op, base);
    return NULL;
}

/* Rows by a list of indices are a Gather. */
static tssa_status *read_rows(struct pass_context *pass, struct ir_op *op)
{
    struct rule_draft draft = {0}, squeeze = {0};
    struct ir_value *indices = ir_operand(op, 1);
    int last = indices->type->rank - 1;
    if (last < 1 || !dim_is(indices->type->dims[last], 1))
        return NULL;
    draft_step(&squeeze, RULE_SQUEEZE, 1, (const int64_t[]){last});
    struct ir_value *list = before_unsqueeze(indices, &squeeze);
    if (!list)
        return NULL;
    draft_step_value(&draft, RULE_GATHER, 0, list);
    return recover_access(pass, op, 0, ir_operand(op, 0), &draft);
}

tssa_status *recover_gather_nd(struct pass_context *pass, struct ir_op *op)
{
    struct places places = {0};
    struct ir_value *base = ir_operand(op, 0), *indices = ir_operand(op, 1);
    int64_t depth;
    int n_proven;
    bool proven;
    if (!recover_is_ranked(base) || !recover_is_ranked(indices) ||
        !recover_is_ranked(&op->results[0]) || ir_attr_int(op, "batch_dims", 0) != 0 ||
        indices->type->rank < 1 ||
        !dim_is_const(indices->type->dims[indices->type->rank - 1], &depth) || depth < 1 ||
        depth > base->type->rank)
        return NULL;
    places.data = base->type;
    TRY(read_tuples(pass, op, (int)depth, &places, &proven, &n_proven));
    return proven ? read_places(pass, op, &places) : read_rows(pass, op);
}

tssa_status *recover_gather_elements(struct pass_context *pass, struct ir_op *op)
{
    struct places places = {0};
    struct ir_value *base = ir_operand(op, 0), *indices = ir_operand(op, 1);
    bool proven;
    if (!recover_is_ranked(base) || !recover_is_ranked(indices) ||
        !recover_is_ranked(&op->results[0]) || base->type->rank != indices->type->rank)
        return NULL;
    int rank = base->type->rank;
    int64_t axis = ir_attr_int(op, "axis", 0);
    if (rank < 1 || axis < -rank || axis >= rank)
        return NULL;
    places.data = base->type;
    TRY(read_elements(pass, op, (int)(axis + (axis < 0 ? rank : 0)), &places, &proven));
    return proven ? read_places(pass, op, &places) : NULL;
}

/* Gather with a list that counts evenly is a slice. */
tssa_status *recover_gather(struct pass_context *pass, struct ir_op *op)
{
    struct places places = {0};
    struct rule_draft draft = {0};
    struct ir_value *base = ir_operand(op, 0), *indices = ir_operand(op, 1);
    struct element at;
    struct element_doubt doubt;
    bool proven;
    if (!recover_is_ranked(base) || !recover_is_ranked(indices) || indices->type->rank != 1 ||
        dim_is(indices->type->dims[0], 1) || !op->results[0].uses)
        return NULL;
    int rank = base->type->rank;
    int64_t axis = ir_attr_int(op, "axis", 0);
    if (rank < 1 || axis < -rank || axis >= rank)
        return NULL;
    axis += axis < 0 ? rank : 0;
    places.data = base->type;
    places.space =
        (struct element_space){.rank = 1, .extents = {indices->type->dims[0]}, .block = op->parent};
    if (!element_coordinate(pass->graph, 0, &at))
        return status_out_of_memory();
    TRY(element_read(pass->graph, &places.space, indices, &at, &places.at[axis], &proven, &doubt));
    if (!proven || !places.at[axis].factors[0] ||
        !draft_moving(pass->graph, &places, (int)axis, 0, axis, &draft) || draft.full)
        return NULL;
    if (draft.n_steps > 0)
        return recover_access(pass, op, 0, base, &draft);
    if (base->type == op->results[0].type)
        recover_replace(pass, op, base);
    return NULL;
}
