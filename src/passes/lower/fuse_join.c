/* SPDX-License-Identifier: Apache-2.0 */
/* Two parts as one; see fuse.h. */
#include <string.h>

#include "ir/fuse.h"
#include "passes/lower/fuse_parts.h"

/* Less is an error of rounding. */
#define LEAST_LOSS (1 + 1e-9)

bool fuse_is_repeated(const struct ir_op *op, uint32_t operand)
{
    for (uint32_t i = 0; i < operand; i++)
        if (ir_operand(op, i) == ir_operand(op, operand))
            return true;
    return false;
}

uint32_t fuse_maker_part(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    const struct ir_op *maker = fuse_maker(ir_operand(op, operand), op->parent);
    const uint32_t part = maker ? plan->ops[maker->id].part : FUSE_NO_PART;
    return fuse_is_open(plan, part) ? fuse_root(plan, part) : FUSE_NO_PART;
}

/* Is the operand what was kept of something larger? */
static bool is_kept(const struct ir_op *op, uint32_t operand)
{
    const struct ir_op *maker = fuse_maker(ir_operand(op, operand), op->parent);
    return maker && ir_fuse_keeps(maker);
}

bool fuse_moves(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    if (is_kept(op, operand))
        return true;
    if (operand == 1 && fuse_updates(plan, op))
        return false;
    if (!ir_fuse_moves(op, operand) || operand > 0)
        return ir_fuse_moves(op, operand);
    const uint32_t part = fuse_maker_part(plan, op, operand);
    const struct fuse_open *open = part == FUSE_NO_PART ? NULL : fuse_open_part(plan, part);
    return !open ||
           !(fuse_is_row_view(op, open) || (plan->fusion->row_parts && fuse_is_row_part(op, open)));
}

bool fuse_moves_inside(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    const uint32_t part = fuse_maker_part(plan, op, operand);
    return plan->fusion->moves_inside && ir_fuse_moves_elements(op, operand) &&
           part != FUSE_NO_PART && !fuse_open_part(plan, part)->row &&
           !fuse_open_part(plan, part)->column && !fuse_open_part(plan, part)->scan &&
           !fuse_open_part(plan, part)->keeps;
}

/* ---- Operands -------------------------------------------------------------------------------- */

void fuse_add_operand(struct fuse_open *part, const struct ir_value *value)
{
    uint32_t at = part->n_operands;
    while (at > 0 && part->operands[at - 1]->id > value->id)
        at--;
    if (at > 0 && part->operands[at - 1] == value)
        return;
    memmove(&part->operands[at + 1], &part->operands[at],
            (part->n_operands - at) * sizeof *part->operands);
    part->operands[at] = value;
    part->n_operands++;
}

/* Does one of the two parts compute the value? */
static bool is_of_parts(struct fuse_plan *plan, const struct ir_value *value, uint32_t own,
                        uint32_t other)
{
    const uint32_t part =
        value->op && value->op->id < plan->n_ops ? plan->ops[value->op->id].part : FUSE_NO_PART;
    return fuse_is_open(plan, part) &&
           (fuse_root(plan, part) == own || fuse_root(plan, part) == other);
}

bool fuse_join_operands(struct fuse_plan *plan, uint32_t own, uint32_t other,
                        struct fuse_open *joined)
{
    const struct fuse_open *a = fuse_open_part(plan, own), *b = fuse_open_part(plan, other);
    uint32_t i = 0, k = 0, n = 0;
    while (i < a->n_operands || k < b->n_operands) {
        const bool first =
            k == b->n_operands || (i < a->n_operands && a->operands[i]->id <= b->operands[k]->id);
        const struct ir_value *value = first ? a->operands[i] : b->operands[k];
        i += i < a->n_operands && a->operands[i] == value;
        k += k < b->n_operands && b->operands[k] == value;
        if (is_of_parts(plan, value, own, other))
            continue;
        if (n == plan->fusion->most_operands || n == FUSE_OPERANDS)
            return false;
        joined->operands[n++] = value;
    }
    joined->n_operands = n;
    return true;
}

/* ---- Joining --------------------------------------------------------------------------------- */

/* What an op and a part have to do with each other. */
struct edges {
    uint64_t uses; /* of what the part computes, by the op */
    double bytes;  /* that are no longer moved */
};

static void find_edge(struct fuse_plan *plan, const struct ir_op *op, uint32_t i, uint32_t part,
                      struct edges *edges)
{
    const struct ir_value *value = ir_operand(op, i);
    const bool inside = fuse_maker_part(plan, op, i) == part && !fuse_moves(plan, op, i);
    uint32_t uses = 0;
    if (inside)
        for (uint32_t k = 0; k < op->n_operands; k++)
            uses += ir_operand(op, k) == value && !fuse_moves(plan, op, k);
    const uint32_t reader = plan->readers[value->id];
    const bool shared = !inside && reader && fuse_is_open(plan, reader - 1) &&
                        fuse_root(plan, reader - 1) == part && !ir_op_is(op, IR_OP_access);
    if (fuse_is_repeated(op, i) || (!inside && !shared))
        return;
    edges->uses += uses;
    edges->bytes += cost_read_bytes(op, i, &plan->sizes);
    if (inside && plan->uses[value->id] == uses)
        edges->bytes += cost_bytes(value->type, &plan->sizes);
}

/* Once the part has joined: the uses of its values by the op are no more those of others. */
static void take_edges(struct fuse_plan *plan, const struct ir_op *op, uint32_t part)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (fuse_maker_part(plan, op, i) == part && !fuse_moves(plan, op, i))
            plan->uses[ir_operand(op, i)->id]--;
    }
}

bool fuse_leads_around(struct fuse_plan *plan, uint32_t from, uint32_t to, bool inside)
{
    const struct fuse_open *part = fuse_open_part(plan, to);
    const uint32_t one = inside ? from : FUSE_NO_PART, two = inside ? to : FUSE_NO_PART;
    const struct fuse_set direct = fuse_reached(plan, &part->direct, from, to),
                          moved = fuse_reached(plan, &part->moved, one, two),
                          behind = fuse_reached(plan, &part->behind, FUSE_NO_PART, FUSE_NO_PART);
    return fuse_has(plan, &direct, from) || fuse_has(plan, &moved, from) ||
           fuse_has(plan, &behind, from);
}

/* How often what part `b` computes is computed again in `a`. */
static double times_again(const struct fuse_plan *plan, const struct fuse_open *a,
                          const struct fuse_open *b, enum fuse_fit fit)
{
    const double times = cost_elements(a->like, &plan->sizes) /
                         (1 + cost_elements(b->like, &plan->sizes)); /* never by nothing */
    return fit != FUSE_INTO || times < 1 ? 1 : times;
}

bool fuse_is_slower(const struct fuse_plan *plan, const struct fuse_open *a,
                    const struct fuse_open *b, const struct fuse_open *joined)
{
    const struct cost_machine *machine = plan->fusion->machine;
    const double before = cost_seconds(machine, &a->apart) + cost_seconds(machine, &b->apart);
    return cost_seconds(machine, &joined->work) > before * LEAST_LOSS;
}

void fuse_add_sets(struct fuse_open *joined, const struct fuse_open *b)
{
    fuse_add_all(&joined->direct, &b->direct);
    fuse_add_all(&joined->moved, &b->moved);
    fuse_add_all(&joined->behind, &b->behind);
    fuse_add_all(&joined->before, &b->before);
}

/* Why the part of the op, `own`, does not take in part `other`; NULL: *joined is what both would
 * be. */
static const char *try_join(struct fuse_plan *plan, const struct ir_op *op, uint32_t own,
                            uint32_t other, struct fuse_open *joined)
{
    const struct fuse_open *a = fuse_open_part(plan, own), *b = fuse_open_part(plan, other);
    struct edges edges = {0};
    if (fuse_leads_around(plan, own, other, false) || fuse_leads_around(plan, other, own, false))
        return "something else is computed between the two";
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i))
            find_edge(plan, op, i, other, &edges);
    const enum fuse_fit fit = fuse_fit(plan->fusion, a, b);
    if ((a->keeps || b->keeps) && (a->row || b->row || a->column || b->column))
        return "elements are kept of what is no row or column";
    if (b->keeps && fit != FUSE_SAME)
        return "what is kept is not of all of its elements";
    if (fit == FUSE_APART && (a->scan || b->scan))
        return "running sums are with what has an element for each of theirs";
    if (fit == FUSE_APART)
        return a->row && b->row ? "the rows are not the same" : "the shapes are not the same";
    if (fit == FUSE_INTO && b->uses > edges.uses)
        return a->column ? "what is reduced is used by others, too"
                         : "what is broadcast there is used by others, too";
    if (b->column && !a->column && fit == FUSE_OVER && plan->parts.data[other].n_ops <= 1)
        return "what it reduces is not computed with it";
    *joined = *a;
    joined->keeps |= b->keeps;
    joined->pieces |= b->pieces;
    joined->scan |= b->scan;
    if (!fuse_join_operands(plan, own, other, joined))
        return "the kernel would have too many operands";
    if (b->row) {
        joined->row = b->row;
        joined->like = b->like;
    }
    if (b->column) {
        (void)fuse_join_keeps(a, b, &joined->column_keeps); /* which it fits */
        joined->column = b->column;
        joined->like = b->like;
    }
    joined->work.calls = 1;
    joined->work.bytes += b->work.bytes - edges.bytes;
    joined->work.operations += b->work.operations * times_again(plan, a, b, fit);
    if (fuse_is_slower(plan, a, b, joined))
        return "it would take longer";
    joined->apart = joined->work;
    joined->uses += b->uses - edges.uses;
    fuse_add_sets(joined, b);
    return NULL;
}

void fuse_join(struct fuse_plan *plan, uint32_t own, uint32_t other, const struct fuse_open *joined)
{
    const uint32_t n = (uint32_t)plan->parts.count - plan->oldest;
    *fuse_open_part(plan, own) = *joined;
    plan->parts.data[own].n_ops += plan->parts.data[other].n_ops;
    plan->parts.data[other].joined = own;
    for (uint32_t i = 0; i < n; i++) {
        struct fuse_set *before = &plan->open[i].before;
        if (plan->oldest + i == own ||
            (!fuse_has(plan, before, own) && !fuse_has(plan, before, other)))
            continue;
        fuse_add_all(before, &joined->before);
        fuse_add(plan, before, own);
    }
}

const char *fuse_join_part(struct fuse_plan *plan, const struct ir_op *op, uint32_t other)
{
    struct fuse_open joined;
    const uint32_t own = fuse_root(plan, plan->ops[op->id].part);
    const char *why = own == other ? NULL : try_join(plan, op, own, other, &joined);
    if (own == other || why)
        return why;
    take_edges(plan, op, other);
    fuse_join(plan, own, other, &joined);
    return NULL;
}
