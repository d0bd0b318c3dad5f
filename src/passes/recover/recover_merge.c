/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that are spelled with more ops than one: between two transpositions, as a concatenation,
 * as a write into a part that is then written back. */
#include <string.h>

#include "ir/infer.h"
#include "passes/recover/recover.h"

static bool has_one_use(const struct ir_value *value)
{
    return value->uses && !value->uses->next;
}

/* ---- Between two transpositions -------------------------------------------------------------- */

/* The permutation that made a value, and of what; false: it is no transposition. */
static bool read_permutation(const struct ir_value *value, int64_t *perm, struct ir_value **from)
{
    struct rule_draft draft = {0};
    const struct ir_op *op = value->op;
    if (!op || (!ir_op_is(op, IR_OP_Transpose) && !ir_op_is(op, IR_OP_access)))
        return false;
    if (ir_op_is(op, IR_OP_access))
        draft_rule(&draft, op);
    else if (!rule_of_movement(op, &draft))
        return false;
    if (draft.full || draft.n_steps != 1 || draft.steps[0].kind != RULE_PERMUTE)
        return false;
    for (uint32_t i = 0; i < draft.steps[0].n_params; i++)
        perm[i] = draft.steps[0].params[i].value;
    *from = ir_operand(op, 0);
    return true;
}

/*
 * The permuted axes that a region has so far: axis i of it is axis at[i] without the permutation.
 */
struct permuted {
    int rank;
    int64_t at[TSSA_MAX_RANK];
};

static void remove_axis(struct permuted *axes, int64_t axis)
{
    int64_t gone = axes->at[axis];
    axes->rank--;
    for (int i = 0; i < axes->rank; i++) {
        axes->at[i] = axes->at[i + (i >= axis)];
        axes->at[i] -= axes->at[i] > gone;
    }
}

/* Can a permutation before the step as well stand behind it? */
static bool keeps_axes(const struct ir_op *op, const struct rule_step *step)
{
    if (step->kind == RULE_SELECT || step->kind == RULE_SLICE)
        return true;
    const struct ir_value *list =
        step->kind == RULE_GATHER ? rule_param_value(op, &step->params[1]) : NULL;
    return list && recover_is_ranked(list) && list->type->rank == 1;
}

/* The rule of a write to a transposed tensor, for the tensor itself. */
static bool untranspose(const struct ir_op *assign, struct permuted *axes, struct rule_draft *draft)
{
    draft_rule(draft, assign);
    if (draft->full)
        return false;
    struct rule_param *params = draft->params;
    for (uint32_t i = 0; i < draft->n_steps; i++) {
        const struct rule_step *step = &draft->steps[i];
        int64_t axis = params[0].value;
        if (!keeps_axes(assign, &rule_of(assign)->steps[i]) || axis >= axes->rank)
            return false;
        params[0] = rule_constant(axes->at[axis]);
        if (step->kind == RULE_SELECT)
            remove_axis(axes, axis);
        params += step->n_params;
    }
    return true;
}

/* The source with its axes in the order of the region. */
static tssa_status *reorder_source(struct pass_context *pass, struct ir_op *op,
                                   const struct permuted *axes, struct ir_value **source)
{
    int64_t perm[TSSA_MAX_RANK], own[TSSA_MAX_RANK];
    struct rule_draft draft = {0};
    struct ir_value *from;
    for (int i = 0; i < axes->rank; i++)
        perm[axes->at[i]] = i;
    if (read_permutation(*source, own, &from)) {
        *source = from;
        for (int i = 0; i < axes->rank; i++)
            perm[i] = own[perm[i]];
    }
    draft_permute(&draft, axes->rank, perm);
    return recover_insert_access(pass, op, *source, &draft, source);
}

tssa_status *recover_transpose(struct pass_context *pass, struct ir_op *op)
{
    struct rule_draft draft = {0};
    struct permuted axes;
    int64_t back[TSSA_MAX_RANK];
    struct ir_value *written, *base;
    if (!recover_is_ranked(&op->results[0]) || !read_permutation(&op->results[0], back, &written) ||
        !written->op || !ir_op_is(written->op, IR_OP_assign) || !has_one_use(written) ||
        !read_permutation(ir_operand(written->op, 0), axes.at, &base))
        return NULL;
    axes.rank = op->results[0].type->rank;
    for (int i = 0; i < axes.rank; i++)
        if (axes.at[back[i]] != i)
            return NULL;
    struct ir_value *source = ir_operand(written->op, 1);
    if (!untranspose(written->op, &axes, &draft) || !recover_is_ranked(source))
        return NULL;
    if (source->type->rank != axes.rank &&
        axes.rank > 1) /* broadcast: axes may not change places */
        return NULL;
    if (axes.rank > 1)
        TRY(reorder_source(pass, op, &axes, &source));
    return recover_assign(pass, op, base, source, &draft);
}

/* ---- Concatenations -------------------------------------------------------------------------- */

/* One operand of a Concat: what a tensor has there, or something else. */
struct piece {
    struct ir_value *value, *of; /* of: the tensor that it is a part of; NULL: none */
    const struct dim *start, *length;
};

/* The first element of a slice of step 1 to the very end. */
static const struct dim *start_from_end(struct ir_graph *graph, const struct dim *dim,
                                        const struct dim *length)
{
    return dim_sub(&graph->dims, dim, length);
}

/*
 * Where a read of one slice of `axis` begins in the base; NULL: it is no such read, or not known.
 */
static const struct dim *slice_place(struct ir_graph *graph, const struct ir_op *op, int64_t axis,
                                     const struct dim *length)
{
    struct rule_draft draft = {0};
    if (ir_op_is(op, IR_OP_access))
        draft_rule(&draft, op);
    else if (!rule_of_movement(op, &draft))
        return NULL;
    const struct rule_param *params = draft.params;
    if (draft.full || draft.n_steps != 1 || draft.steps[0].kind != RULE_SLICE ||
        params[0].value != axis || params[3].is_operand || params[3].value != 1)
        return NULL;
    const struct dim *dim = ir_operand(op, 0)->type->dims[axis];
    int64_t size = 0;
    bool sized = dim_is_const(dim, &size);
    if (!params[2].is_operand && params[2].value >= (sized ? size : INT64_MAX))
        return start_from_end(graph, dim, length);
    if (params[1].is_operand)
        return NULL;
    int64_t start = params[1].value;
    if (start < 0 && sized)
        start = start < -size ? 0 : start + size;
    return start == 0 || (sized && start > 0 && start <= size) ? dim_const(&graph->dims, start)
                                                               : NULL;
}

static void read_piece(struct ir_graph *graph, const struct ir_op *concat, uint32_t index,
                       int64_t axis, struct piece *piece)
{
    struct ir_value *value = ir_operand(concat, index);
    const struct ir_op *op = value->op;
    *piece = (struct piece){.value = value, .length = value->type->dims[axis]};
    if (!op || (!ir_op_is(op, IR_OP_Slice) && !ir_op_is(op, IR_OP_access)) ||
        !recover_is_ranked(ir_operand(op, 0)) || ir_operand(op, 0)->type != concat->results[0].type)
        return;
    piece->start = slice_place(graph, op, axis, piece->length);
    if (piece->start)
        piece->of = ir_operand(op, 0);
}

#define MAX_PIECES 16

/* Where a piece that is written lies: a range of numbers, or from a number to the end. */
static bool draft_piece(int64_t axis, const struct dim *start, const struct piece *piece,
                        bool is_last, struct rule_draft *draft)
{
    int64_t from, size;
    if (!dim_is_const(start, &from))
        return false;
    if (dim_is_const(piece->length, &size)) {
        draft_slice(draft, axis, from, from + size, 1);
        return true;
    }
    if (is_last)
        draft_slice(draft, axis, from, INT64_MAX, 1);
    return is_last;
}

/* The tensor of which the pieces that are in place come; NULL when there is none. */
static struct ir_value *whole_of(struct ir_graph *graph, struct piece *pieces, uint32_t n,
                                 const struct dim **starts)
{
    struct ir_value *whole = NULL;
    const struct dim *place = dim_const(&graph->dims, 0);
    for (uint32_t i = 0; i < n && place; i++) {
        starts[i] = place;
        if (pieces[i].of && pieces[i].start == place && (!whole || whole == pieces[i].of))
            whole = pieces[i].of;
        else
            pieces[i].of = NULL;
        place = dim_add(&graph->dims, place, pieces[i].length);
    }
    return place ? whole : NULL;
}

/* Concat(x[:a], v, x[b:]) writes v to x, if all parts are in their places. */
tssa_status *recover_concat(struct pass_context *pass, struct ir_op *op)
{
    struct piece pieces[MAX_PIECES];
    const struct dim *starts[MAX_PIECES];
    const struct ir_type *type = op->results[0].type;
    struct rule_draft draft = {0};
    int written = -1;
    int64_t axis = ir_op_axis(op);
    if (!recover_is_ranked(&op->results[0]) || op->n_operands > MAX_PIECES || !op->results[0].uses)
        return NULL;
    axis += axis < 0 ? type->rank : 0;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (!recover_is_ranked(ir_operand(op, i)) || ir_operand(op, i)->type->rank != type->rank ||
            axis < 0 || axis >= type->rank)
            return NULL;
        read_piece(pass->graph, op, i, axis, &pieces[i]);
    }
    struct ir_value *whole = whole_of(pass->graph, pieces, op->n_operands, starts);
    if (!whole)
        return NULL;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (pieces[i].of || dim_is(pieces[i].length, 0))
            continue;
        if (written >= 0)
            return NULL; /* two values: that is no single write */
        written = (int)i;
    }
    if (written < 0) {
        TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op,
                        "puts the slices of a tensor together again"));
        recover_replace(pass, op, whole);
        return NULL;
    }
    if (!draft_piece(axis, starts[written], &pieces[written], written + 1 == (int)op->n_operands,
                     &draft))
        return NULL;
    return recover_assign(pass, op, whole, pieces[written].value, &draft);
}

/* ---- Writes into a part that is written back ------------------------------------------------- */

static bool is_injective(enum rule_kind kind)
{
    return kind != RULE_GATHER && kind != RULE_EXPAND && kind != RULE_TILE;
}

static bool same_rule(const struct ir_op *a, const struct ir_op *b)
{
    uint32_t first_a = rule_first_operand(a), first_b = rule_first_operand(b);
    if (!rule_equal(rule_of(a), rule_of(b)))
        return false;
    for (uint32_t i = 0; i < rule_of(a)->n_operands; i++)
        if (ir_operand(a, first_a + i) != ir_operand(b, first_b + i))
            return false;
    return true;
}

/* x[A] := (x[A] with [B] := v) is x[A, B] := v. */
tssa_status *recover_assign_chain(struct pass_context *pass, struct ir_op *op)
{
    struct rule_draft draft = {0};
    const struct ir_value *source = ir_operand(op, 1);
    const struct ir_op *part = source->op, *read;
    if (!part || !ir_op_is(part, IR_OP_assign))
        return NULL;
    read = ir_operand(part, 0)->op;
    if (!read || !ir_op_is(read, IR_OP_access) || ir_operand(read, 0) != ir_operand(op, 0) ||
        !same_rule(op, read))
        return NULL;
    for (uint32_t i = 0; i < rule_of(op)->n_steps; i++)
        if (!is_injective(rule_of(op)->steps[i].kind))
            return NULL;
    draft_rule(&draft, op);
    draft_rule(&draft, part);
    if (draft.full)
        return NULL;
    return recover_assign(pass, op, ir_operand(op, 0), ir_operand(part, 1), &draft);
}
