/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters and gathers with index tensors, as assigns and accesses of the region that their places
 * are. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/infer.h"
#include "passes/recover/recover_places.h"

/* ---- Sources and results --------------------------------------------------------------------- */

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
    if (!op || !ir_op_keeps_order(op) || draft->n_steps != 1 ||
        draft->steps[0].kind != RULE_SQUEEZE || !recover_is_ranked(ir_operand(op, 0)))
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

/* ---- Writes ---------------------------------------------------------------------------------- */

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
    if (!places_draft(pass->graph, places, &draft))
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
    *done = places_draft_fixed(pass->graph, places, &draft);
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
    TRY(places_read_tuples(pass, op, (int)depth, &places, &proven, &n_proven));
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
    int64_t axis = ir_op_axis(op);
    if (rank < 1 || axis < -rank || axis >= rank || indices->rank != rank || updates->rank != rank)
        return NULL;
    if (!same_dims(updates->dims, indices->dims, rank))
        return missed(pass, op, "the shape of the updates is not known to fit");
    axis += axis < 0 ? rank : 0;
    TRY(places_read_elements(pass, op, (int)axis, &places, &proven));
    return proven ? write_places(pass, op, &places) : missed(pass, op, places.why);
}

/* ---- Reads ----------------------------------------------------------------------------------- */

/* The op is an access by these steps; by none, it is what it reads from. */
static tssa_status *read_draft(struct pass_context *pass, struct ir_op *op,
                               struct rule_draft *draft)
{
    struct ir_value *base = ir_operand(op, 0);
    if (draft->n_steps > 0)
        return recover_access(pass, op, 0, base, draft);
    if (base->type == op->results[0].type)
        recover_replace(pass, op, base);
    return NULL;
}

static tssa_status *read_places(struct pass_context *pass, struct ir_op *op, struct places *places)
{
    struct rule_draft draft = {0};
    if (!places_draft(pass->graph, places, &draft))
        return NULL;
    draft_from_region(places, op->results[0].type->rank - places->space.rank, &draft);
    return draft.full ? NULL : read_draft(pass, op, &draft);
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
    TRY(places_read_tuples(pass, op, (int)depth, &places, &proven, &n_proven));
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
    int64_t axis = ir_op_axis(op);
    if (rank < 1 || axis < -rank || axis >= rank)
        return NULL;
    places.data = base->type;
    TRY(places_read_elements(pass, op, (int)(axis + (axis < 0 ? rank : 0)), &places, &proven));
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
    int64_t axis = ir_op_axis(op);
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
        !places_draft_moving(pass->graph, &places, (int)axis, 0, axis, &draft) || draft.full)
        return NULL;
    return read_draft(pass, op, &draft);
}
