/* SPDX-License-Identifier: Apache-2.0 */
/* Of a part in which rows or columns are reduced: what is computed of them, and where that is; see
 * grid_maker.h. */
#include <string.h>

#include "gir/grid_maker.h"
#include "gir/rows.h"
#include "ir/fuse.h"
#include "ir/row.h"

bool grid_reduces(const struct ir_op *op)
{
    return !op->opaque && !op->info->ew && (ir_row_axes(op) > 0 || ir_column_axis(op) >= 0);
}

/* Is one element left of what is reduced? */
static bool folds(const struct ir_op *op)
{
    return ir_column_axis(op) >= 0 ? ir_column_folds(op) : ir_row_folds(op);
}

/* Is the axis of the space reduced? */
static bool is_reduced(const struct grid_maker *m, int axis)
{
    const struct gir_grid_part *part = m->part;
    return part->row ? axis >= part->rank - part->row : axis == part->column;
}

/* Where a row or column is that comes to a value of this rank, with axes of one element in the
 * place of those that are reduced, or without them. */
static bool folded(struct grid_maker *m, int rank, struct grid_place *place)
{
    place->rank = 0;
    for (int i = 0; i < m->space.rank; i++)
        if (!is_reduced(m, i))
            place->at[place->rank++] = m->space.at[i];
        else if (rank == m->space.rank)
            place->at[place->rank++] = grid_constant(m, 0);
    return place->rank == rank;
}

/* ---- Where what rows come to is -------------------------------------------------------------- */

static bool is_whole_space(const struct grid_maker *m, const struct ir_type *type)
{
    bool same = type->rank == m->part->rank;
    for (int i = 0; same && i < type->rank; i++)
        same = type->dims[i] == m->part->dims[i];
    return same;
}

/* Of an element-wise op: where its operand of rows is, unless it is broadcast to all of the space.
 */
static bool place_of_operand(struct grid_maker *m, const struct ir_op *op, struct grid_place *place,
                             uint32_t *is_there)
{
    const struct ir_type *type = op->results[0].type;
    if (is_whole_space(m, type)) {
        *place = m->space;
        *is_there = GIR_NONE;
        return true;
    }
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        bool same = operand && operand->op && operand->type->rank == type->rank &&
                    grid_find_place(m, operand, place, is_there);
        for (int k = 0; same && k < type->rank; k++)
            same = operand->type->dims[k] == type->dims[k];
        if (same)
            return true;
    }
    return false;
}

bool grid_find_place(struct grid_maker *m, const struct ir_value *value, struct grid_place *place,
                     uint32_t *is_there)
{
    const struct ir_op *op = value->op;
    if (!op || ir_op_is(op, IR_OP_Constant))
        return false;
    if (grid_reduces(op)) {
        *place = m->space;
        *is_there = GIR_NONE;
        return folds(op) ? folded(m, value->type->rank, place) : place->rank == value->type->rank;
    }
    if (ir_scan_axis(op) >= 0) {
        *place = m->space;
        *is_there = GIR_NONE;
        return true;
    }
    if (ir_op_is(op, IR_OP_access)) {
        uint32_t more;
        if (!grid_find_place(m, ir_operand(op, 0), place, is_there) ||
            !grid_into(m, op, place, &more))
            return false;
        *is_there = grid_both(m, *is_there, more);
        return true;
    }
    return op->info->ew || ir_op_is(op, IR_OP_Cast) ? place_of_operand(m, op, place, is_there)
                                                    : false;
}

/* ---- What they come to ----------------------------------------------------------------------- */

static bool is_same_place(const struct grid_place *a, const struct grid_place *b)
{
    return a->rank == b->rank && memcmp(a->at, b->at, (size_t)a->rank * sizeof *a->at) == 0;
}

/* Does the op reduce what the space has, and is the place that of the element of the space, or of
 * what its row or column comes to? */
static bool is_here(struct grid_maker *m, const struct ir_op *op, const struct grid_place *place)
{
    struct grid_place here = m->space;
    if (m->part->row ? ir_row_axes(op) != m->part->row : ir_column_axis(op) != m->part->column)
        return false;
    if (folds(op) && !folded(m, place->rank, &here))
        return false;
    return is_same_place(&here, place);
}

/* Operand i, for each row what it has for it. */
static uint32_t row_operand(struct grid_maker *m, const struct ir_op *op, uint32_t i)
{
    const struct ir_value *operand = ir_operand(op, i);
    struct grid_place at = m->space;
    if (operand->type->kind != TYPE_TENSOR || operand->type->rank < 0)
        return grid_refuse(m, "the shape of what it reads is not known");
    if (m->part->row && ir_row_is_each(op, i))
        at.rank -= m->part->row;
    if (!grid_broadcast(m, m->part->dims, operand->type->rank, operand->type->dims, &at))
        return 0;
    return grid_evaluate(m, operand, &at);
}

/* The highest or lowest of a part of each row: what is not in it counts for nothing. */
static uint32_t row_part(struct grid_maker *m, const struct ir_op *op)
{
    const struct ir_value *operand = ir_operand(op, 0);
    const bool lowest = ir_op_is(op, IR_OP_ReduceMin);
    struct grid_place place;
    uint32_t is_there, value;
    if (!lowest && !ir_op_is(op, IR_OP_ReduceMax))
        return grid_refuse(m, "its rows are not the same");
    if (!grid_find_place(m, operand, &place, &is_there))
        return grid_refuse(m, "where what its rows come to is stored is not known");
    const uint32_t active = m->active;
    m->active = grid_both(m, active, is_there);
    value = grid_element(m, grid_evaluate(m, operand, &place), operand->type->dtype);
    m->active = active;
    if (is_there != GIR_NONE)
        value = grid_choose(m, is_there, value,
                            gir_make_bound(&m->maker, operand->type->dtype, !lowest));
    return gir_make_row_op(&m->maker, op, &value);
}

uint32_t grid_reduce(struct grid_maker *m, const struct ir_op *op, const struct grid_place *place)
{
    uint32_t operands[GRID_MOST_OPERANDS];
    if (m->part->sums)
        return grid_row_of_terms(m, op, place);
    if ((!m->part->row && m->part->column < 0) || !is_here(m, op, place) ||
        op->n_operands > GRID_MOST_OPERANDS)
        return grid_refuse(m, "what is reduced is needed elsewhere than where it is");
    if (!is_whole_space(m, ir_operand(op, 0)->type))
        return row_part(m, op);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const bool reads =
            ir_operand(op, i) && ir_fuse_reads(op, i) && (i == 0 || !op->info->reduction);
        operands[i] = reads ? row_operand(m, op, i) : GIR_NONE;
    }
    if (m->maker.why)
        return 0;
    return gir_make_row_op(&m->maker, op, operands);
}

uint32_t grid_scan(struct grid_maker *m, const struct ir_op *op, const struct grid_place *place)
{
    const struct ir_value *x = ir_operand(op, 0);
    const int scan = ir_attr_int(op, "reverse", 0) ? -1 : 1;
    if (m->part->scan != scan || ir_scan_axis(op) != m->part->column ||
        !is_same_place(&m->space, place))
        return grid_refuse(m, "what is summed up is needed elsewhere than where it is");
    return gir_make_scan(&m->maker, op, grid_evaluate(m, x, place));
}
