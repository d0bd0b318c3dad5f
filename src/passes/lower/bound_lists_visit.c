/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of each op in bounded lists (bound_lists.c says why). */
#include <math.h>

#include "ir/infer.h"
#include "ir/row.h"
#include "passes/lower/bound_lists.h"

#define MOST_BOXES 16384
#define MOST_SIZES 8

/* ---- Element by element ---------------------------------------------------------------------- */

/* Counted from the last one, which broadcasting keeps. */
static int axis_from_end(const struct ir_value *value, int axis)
{
    return value->type->rank - axis;
}

/* Has it one element where the others have those of the set? */
static bool is_broadcast(const struct ir_value *value, int from_end)
{
    return bound_is_ranked(value) && (value->type->rank < from_end ||
                                      dim_is(value->type->dims[value->type->rank - from_end], 1));
}

static tssa_status *visit_elementwise(struct bounding *b, struct ir_op *op)
{
    struct bound_value made = {0};
    int from_end = 0;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct bound_value *x = bound_of(b, ir_operand(op, i));
        if (x->kind != BOUND_PADDED)
            continue;
        const int own = axis_from_end(ir_operand(op, i), x->axis);
        if (from_end && (own != from_end || x->set != made.set))
            return NULL;
        from_end = own;
        made.set = x->set;
    }
    if (!from_end || op->n_results != 1 || !bound_is_ranked(&op->results[0]))
        return NULL;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        const enum bound_kind kind = bound_of(b, value)->kind;
        if (kind != BOUND_PADDED && value &&
            (kind != BOUND_NOTHING || !is_broadcast(value, from_end)))
            return NULL;
    }
    made.axis = op->results[0].type->rank - from_end;
    TRY(bound_copy(b, op, NULL, NULL, &made.value));
    bound_note_padded(b, op, made);
    return NULL;
}

/* Of what is not kept there may be no number: text tells one, or does not. */
static bool is_sure_cast(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Cast) && bound_is_ranked(ir_operand(op, 0)) &&
           ir_operand(op, 0)->type->dtype != TSSA_STRING;
}

/* ---- Concat ---------------------------------------------------------------------------------- */

static bool has_parts(const struct bound_set *set, const uint32_t *parts, uint32_t n)
{
    bool same = set->n_parts == n;
    for (uint32_t i = 0; same && i < n; i++)
        same = set->parts[i] == parts[i];
    return same;
}

static tssa_status *find_joined(struct bounding *b, const struct ir_op *op, uint32_t *index)
{
    struct bound_set joined = {.dim = op->results[0].type->dims[ir_op_axis(op)]};
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const uint32_t set = bound_of(b, ir_operand(op, i))->set;
        joined.parts[joined.n_parts++] = set;
        joined.bound += bound_set_at(b, set)->bound;
        joined.roots |= bound_set_at(b, set)->roots;
    }
    for (*index = 0; *index < b->sets.count; ++*index)
        if (has_parts(bound_set_at(b, *index), joined.parts, joined.n_parts))
            return NULL;
    return bound_add_set(b, joined, index);
}

static tssa_status *visit_concat(struct bounding *b, struct ir_op *op)
{
    struct bound_value made = *bound_of(b, ir_operand(op, 0));
    int axis;
    bool joins = true, beside = true;
    if (!bound_is_ranked(&op->results[0]) ||
        !infer_find_axis(ir_op_axis(op), op->results[0].type->rank, &axis) || op->n_operands > 16)
        return NULL;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct bound_value *x = bound_of(b, ir_operand(op, i));
        if (x->kind != BOUND_PADDED)
            return NULL;
        joins &= x->axis == axis;
        beside &= x->axis == made.axis && x->axis != axis && x->set == made.set;
    }
    if ((!joins && !beside) || (joins && axis != ir_op_axis(op)))
        return NULL;
    struct bound_value joined = {.set = made.set, .axis = made.axis};
    if (joins)
        TRY(find_joined(b, op, &joined.set));
    TRY(bound_copy(b, op, NULL, NULL, &joined.value));
    bound_note_padded(b, op, joined);
    return NULL;
}

/* ---- Where it ends --------------------------------------------------------------------------- */

/* Where what is not kept has that value. */
static struct ir_value *fill(struct bounding *b, struct pass_maker *m, const struct bound_value *x,
                             float by)
{
    struct ir_value *valid = bound_valid(b, m, x->set), *rest = pass_make_float(m, by);
    int64_t axes[TSSA_MAX_RANK];
    uint32_t n = 0;
    for (int i = x->axis + 1; i < x->value->type->rank; i++, n++)
        axes[n] = n + 1;
    if (n)
        valid = pass_make_access(m, valid, RULE_UNSQUEEZE, n, axes, NULL);
    return pass_make_where(m, valid, x->value, rest);
}

static tssa_status *visit_highest(struct bounding *b, struct ir_op *op)
{
    struct pass_maker m = {.at = op, .graph = b->pass->graph};
    const struct bound_value *x = bound_of(b, ir_operand(op, 0));
    if (x->kind != BOUND_PADDED || ir_operand(op, 0)->type->dtype != TSSA_FLOAT ||
        ir_row_axes(op) != ir_operand(op, 0)->type->rank)
        return NULL;
    struct ir_value *value = fill(b, &m, x, -INFINITY);
    TRY(m.status);
    return bound_note_end(b, op, 0, value, x->set);
}

static tssa_status *visit_boxes(struct bounding *b, struct ir_op *op)
{
    struct pass_maker m = {.at = op, .graph = b->pass->graph};
    const struct bound_value *boxes = bound_of(b, ir_operand(op, 0)),
                             *scores = bound_of(b, ir_operand(op, 1));
    if (boxes->kind != BOUND_PADDED || scores->kind != BOUND_PADDED || boxes->set != scores->set ||
        boxes->axis != 1 || scores->axis != 2 || bound_set_at(b, boxes->set)->bound > MOST_BOXES ||
        ir_operand(op, 1)->type->dtype != TSSA_FLOAT)
        return NULL;
    for (uint32_t i = 2; i < op->n_operands; i++)
        if (bound_of(b, ir_operand(op, i))->kind != BOUND_NOTHING)
            return NULL;
    const uint32_t set = boxes->set;
    struct ir_value *value = fill(b, &m, scores, NAN);
    TRY(m.status);
    TRY(bound_note_end(b, op, 0, boxes->value, set));
    TRY(bound_note_end(b, op, 1, value, set));
    b->values[op->results[0].id] = (struct bound_value){.kind = BOUND_ROWS, .set = set};
    return NULL;
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

static void visit_shape(struct bounding *b, struct ir_op *op)
{
    const enum bound_kind kind = bound_of(b, ir_operand(op, 0))->kind;
    if (kind == BOUND_FOUND || kind == BOUND_ROWS || kind == BOUND_PLACES)
        b->roles[op->id] = BOUND_ENDS; /* as many as before */
    else if (kind != BOUND_NOTHING)
        bound_note(b, op, 0, (struct bound_value){.kind = BOUND_SIZE});
}

/* Few integers that are computed of sizes, and of nothing else that is bounded. */
static void visit_size(struct bounding *b, struct ir_op *op)
{
    const int64_t n = op->n_results == 1 ? bound_list_count(&op->results[0]) : -1;
    bool is_size = false, others = false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const enum bound_kind kind = bound_of(b, ir_operand(op, i))->kind;
        is_size |= kind == BOUND_SIZE;
        others |= kind != BOUND_SIZE && kind != BOUND_NOTHING;
    }
    if (is_size && !others && n >= 0 && n <= MOST_SIZES && !op->n_blocks)
        bound_note(b, op, 0, (struct bound_value){.kind = BOUND_SIZE});
}

/* ---------------------------------------------------------------------------------------------- */

static tssa_status *visit(struct bounding *b, struct ir_op *op)
{
    switch (op->info->id) {
    case IR_OP_NonZero:
        return bound_visit_non_zero(b, op);
    case IR_OP_GatherND:
        return bound_visit_gather_nd(b, op);
    case IR_OP_access:
        return bound_visit_access(b, op);
    case IR_OP_Concat:
        return visit_concat(b, op);
    case IR_OP_TopK:
        return bound_visit_topk(b, op);
    case IR_OP_ReduceMax:
        return visit_highest(b, op);
    case IR_OP_NonMaxSuppression:
        return visit_boxes(b, op);
    case IR_OP_Shape:
        visit_shape(b, op);
        return NULL;
    default:
        return op->info->ew || is_sure_cast(op) ? visit_elementwise(b, op) : NULL;
    }
}

tssa_status *bound_visit(struct bounding *b, struct ir_op *op)
{
    bool any = ir_op_is(op, IR_OP_NonZero);
    for (uint32_t i = 0; i < op->n_operands; i++)
        any |= bound_of(b, ir_operand(op, i))->kind != BOUND_NOTHING;
    if (!any || op->opaque || op->id >= b->n_ops || op->n_blocks || !ir_op_is_pure(op))
        return NULL;
    TRY(visit(b, op));
    if (b->roles[op->id] == BOUND_OTHER)
        visit_size(b, op);
    return NULL;
}
