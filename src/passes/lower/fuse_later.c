/* SPDX-License-Identifier: Apache-2.0 */
/* What parts take in when all of their ops are known: what they need elsewhere, and what has
 * nothing to do with them. */
#include "ir/fuse.h"
#include "passes/lower/fuse_parts.h"

/* ---- Moving inside --------------------------------------------------------------------------- */

/* What part `own` reads, elsewhere or in place, of what part `other` computes. */
struct moved {
    uint64_t uses;
    double read, elements; /* bytes and elements, of all uses */
    double written, made;  /* bytes and elements, by the other one for it */
};

/* The elements that are needed of an operand: of what a gather reads, so much as it gives; all else
 * that is moved once, indices and rows that a mask keeps, too; of what is read in place, one for
 * each that is computed. */
static const struct ir_type *needed_of(struct fuse_plan *plan, const struct ir_op *op, uint32_t k)
{
    const bool reads = !fuse_moves(plan, op, k) || (k == 0 && !ir_op_is(op, IR_OP_Concat));
    const bool all = fuse_repeats_in_row(op) || fuse_updates(plan, op) || ir_fuse_keeps(op);
    return reads && !all ? op->results[0].type : ir_operand(op, k)->type;
}

/* Could the op compute the operand, which part `other` does, where it reads it? What is read in
 * place may be of another space than the part; where rows are computed, none but that of the rows.
 */
static bool is_moved(struct fuse_plan *plan, const struct ir_op *op, uint32_t k, uint32_t other,
                     bool rows)
{
    return fuse_maker_part(plan, op, k) == other &&
           (fuse_moves(plan, op, k) ? fuse_moves_inside(plan, op, k) : !rows);
}

static void find_moved(struct fuse_plan *plan, const struct ir_op *op, uint32_t other, bool rows,
                       struct moved *moved)
{
    for (uint32_t k = 0; k < op->n_operands; k++) {
        if (!is_moved(plan, op, k, other, rows))
            continue;
        moved->uses++;
        moved->read += cost_read_bytes(op, k, &plan->sizes);
        moved->elements += cost_elements(needed_of(plan, op, k), &plan->sizes);
    }
}

static struct moved moved_between(struct fuse_plan *plan, uint32_t own, uint32_t other)
{
    struct moved moved = {0};
    for (uint32_t i = plan->oldest; i < plan->parts.count; i++) {
        const struct ir_op *op = fuse_open_op(plan, i);
        const struct ir_value *result = &op->results[0];
        if (fuse_root(plan, i) == own)
            find_moved(plan, op, other, fuse_open_part(plan, own)->row != 0, &moved);
        if (fuse_root(plan, i) != other || !plan->uses[result->id])
            continue;
        moved.written += cost_bytes(result->type, &plan->sizes);
        moved.made += cost_elements(result->type, &plan->sizes);
    }
    return moved;
}

/*
 * Can part `own` compute what part `other` does, where it reads it? *joined is what both would be.
 * Where others need it, too, and kernels compute side by side, it is computed for them besides.
 */
static bool can_move(struct fuse_plan *plan, uint32_t own, uint32_t other, struct fuse_open *joined)
{
    const struct fuse_open *a = fuse_open_part(plan, own), *b = fuse_open_part(plan, other);
    if (own == other || b->row || b->column || b->scan || b->keeps || (a->scan && b->pieces) ||
        fuse_leads_around(plan, own, other, true) || fuse_leads_around(plan, other, own, true))
        return false;
    const struct moved moved = moved_between(plan, own, other);
    const bool alone = moved.uses == b->uses;
    *joined = *a;
    joined->pieces |= b->pieces;
    if (moved.uses == 0 || (!alone && !plan->fusion->side_by_side) ||
        !fuse_join_operands(plan, own, other, joined))
        return false;
    const double times = moved.elements / (1 + moved.made);
    joined->work.calls = 1;
    joined->work.bytes += (b->work.bytes - moved.written) * times - moved.read;
    joined->work.operations += b->work.operations * times;
    if (!alone) {
        joined->work.bytes += b->work.bytes;
        joined->work.operations += b->work.operations;
        joined->uses += b->uses - moved.uses;
    }
    joined->apart = joined->work;
    fuse_add_sets(joined, b);
    return !fuse_is_slower(plan, a, b, joined);
}

/* The uses of what part `other` computes by an op of part `own` are no more those of others. */
static void take_moved(struct fuse_plan *plan, const struct ir_op *op, uint32_t own, uint32_t other)
{
    const bool rows = fuse_open_part(plan, own)->row != 0;
    for (uint32_t k = 0; k < op->n_operands; k++)
        if (is_moved(plan, op, k, other, rows))
            plan->uses[ir_operand(op, k)->id]--;
}

static bool move_inside(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    struct fuse_open joined;
    const uint32_t other = fuse_maker_part(plan, op, operand);
    if (other == FUSE_NO_PART || !plan->fusion->moves_inside)
        return false;
    const uint32_t own = fuse_root(plan, plan->ops[op->id].part);
    if (!can_move(plan, own, other, &joined))
        return false;
    for (uint32_t i = plan->oldest; i < plan->parts.count; i++)
        if (fuse_root(plan, i) == own)
            take_moved(plan, fuse_open_op(plan, i), own, other);
    fuse_join(plan, own, other, &joined);
    return true;
}

/* What moves lets others move: those who read it are then all in one part. */
#define MOST_ROUNDS 4

void fuse_move_all_inside(struct fuse_plan *plan)
{
    bool moved = true;
    for (int round = 0; round < MOST_ROUNDS && moved; round++) {
        moved = false;
        for (uint32_t i = plan->oldest; i < plan->parts.count; i++)
            for (uint32_t k = 0; k < fuse_open_op(plan, i)->n_operands; k++)
                if (ir_operand(fuse_open_op(plan, i), k))
                    moved |= move_inside(plan, fuse_open_op(plan, i), k);
    }
}

/* ---- Side by side ---------------------------------------------------------------------------- */

/* Is each a launch by itself, does neither need the other, and is one kernel of both not slower?
 * *joined is what both would be. */
static bool stand_beside(struct fuse_plan *plan, uint32_t number_a, uint32_t number_b,
                         struct fuse_open *joined)
{
    const struct fuse_open *a = fuse_open_part(plan, number_a), *b = fuse_open_part(plan, number_b);
    if (a->apart.calls == 0 || b->apart.calls == 0 || fuse_has(plan, &a->before, number_b) ||
        fuse_has(plan, &b->before, number_a))
        return false;
    *joined = *a;
    joined->keeps |= b->keeps;
    if (!fuse_join_operands(plan, number_a, number_b, joined))
        return false;
    joined->work.bytes += b->work.bytes;
    joined->work.operations += b->work.operations;
    if (fuse_is_slower(plan, a, b, joined))
        return false;
    joined->apart = joined->work;
    joined->uses += b->uses;
    fuse_add_sets(joined, b);
    return true;
}

/* Each with the first one that stands beside it: of equal rows of kernels the first ones come
 * together, and so on. */
void fuse_join_beside(struct fuse_plan *plan)
{
    struct fuse_open joined;
    for (uint32_t b = plan->oldest; b < plan->parts.count; b++)
        for (uint32_t a = plan->oldest; a < b && fuse_root(plan, b) == b; a++)
            if (fuse_root(plan, a) == a && stand_beside(plan, a, b, &joined))
                fuse_join(plan, a, b, &joined);
}
