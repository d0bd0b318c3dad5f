/* SPDX-License-Identifier: Apache-2.0 */
/* Which ops become one kernel; see fuse.h. */
#include "passes/lower/fuse_parts.h"

#include "ir/fuse.h"
#include "ir/row.h"

/* Less is an error of rounding. */
#define LEAST_LOSS (1 + 1e-9)

tssa_status *fuse_plan_init(struct fuse_plan *plan, struct pass_context *pass)
{
    const struct ir_graph *graph = pass->graph;
    plan->pass = pass;
    plan->fusion = pass->fusion;
    plan->sizes.size = 1024;
    vec_init(&plan->parts, graph->allocator);
    vec_init(&plan->captures, graph->allocator);
    ir_cloner_init(&plan->cloner, pass->graph);
    TRY(fuse_join_planes(plan));
    TRY(fuse_copy_reads(plan));
    plan->n_ops = graph->n_ops;
    plan->ops = allocator_calloc(graph->allocator, graph->n_ops + 1u, sizeof *plan->ops);
    plan->readers = allocator_calloc(graph->allocator, graph->n_values + 1u, sizeof *plan->readers);
    plan->uses = allocator_calloc(graph->allocator, graph->n_values + 1u, sizeof *plan->uses);
    TRY_ALLOC(plan->ops);
    TRY_ALLOC(plan->readers);
    TRY_ALLOC(plan->uses);
    for (uint32_t i = 0; i < graph->n_ops; i++)
        plan->ops[i].part = FUSE_NO_PART;
    return NULL;
}

void fuse_plan_free(struct fuse_plan *plan)
{
    const tssa_allocator *allocator = plan->pass->graph->allocator;
    vec_free(&plan->parts);
    vec_free(&plan->captures);
    ir_cloner_free(&plan->cloner);
    allocator_free(allocator, plan->ops);
    allocator_free(allocator, plan->readers);
    allocator_free(allocator, plan->uses);
}

/* ---- Parts of one op ------------------------------------------------------------------------- */

static bool is_repeated(const struct ir_op *op, uint32_t operand)
{
    for (uint32_t i = 0; i < operand; i++)
        if (ir_operand(op, i) == ir_operand(op, operand))
            return true;
    return false;
}

static uint32_t count_uses(const struct ir_value *value)
{
    uint32_t n = 0;
    for (const struct ir_use *use = value->uses; use; use = use->next)
        n++;
    return n;
}

uint32_t fuse_maker_part(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    const struct ir_op *maker = fuse_maker(ir_operand(op, operand), op->parent);
    const uint32_t part = maker ? plan->ops[maker->id].part : FUSE_NO_PART;
    return fuse_is_open(plan, part) ? fuse_root(plan, part) : FUSE_NO_PART;
}

bool fuse_moves(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    if (!ir_fuse_moves(op, operand) || operand > 0)
        return ir_fuse_moves(op, operand);
    const uint32_t part = fuse_maker_part(plan, op, operand);
    return part == FUSE_NO_PART || !fuse_is_row_view(op, fuse_open_part(plan, part));
}

bool fuse_moves_inside(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    const uint32_t part = fuse_maker_part(plan, op, operand);
    return plan->fusion->moves_inside && ir_fuse_moves_elements(op, operand) &&
           part != FUSE_NO_PART && !fuse_open_part(plan, part)->row &&
           !fuse_open_part(plan, part)->column;
}

/* What is behind an operand: the part that makes it, or what its maker depends on. */
static void add_operand(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand,
                        struct fuse_open *part)
{
    const struct ir_op *maker = fuse_maker(ir_operand(op, operand), op->parent);
    const struct fuse_op *from = maker ? &plan->ops[maker->id] : NULL;
    if (!from)
        return;
    if (fuse_is_open(plan, from->part))
        fuse_add(plan,
                 !fuse_moves(plan, op, operand)         ? &part->direct
                 : fuse_moves_inside(plan, op, operand) ? &part->moved
                                                        : &part->behind,
                 fuse_root(plan, from->part));
    else if (from->part == FUSE_NO_PART && from->window == plan->window)
        fuse_add_all(&part->behind, &from->past);
}

/* Does nobody else need what an assign writes into? */
static bool writes_in_place(const struct fuse_plan *plan, const struct ir_op *op)
{
    const struct ir_value *base = ir_operand(op, 0);
    return ir_op_is(op, IR_OP_assign) && plan->uses[base->id] == 1 &&
           (!plan->fusion->borrows || !base->block || base->block->owner);
}

static tssa_status *add_part(struct fuse_plan *plan, const struct ir_op *op)
{
    const uint32_t number = (uint32_t)plan->parts.count;
    const struct ir_fusion *fusion = plan->fusion;
    const struct fuse_part part = {.joined = number,
                                   .n_ops = 1,
                                   .is_alone = fusion->takes_alone &&
                                               fusion->takes_alone(fusion->user, op)};
    struct fuse_open *open = fuse_open_part(plan, number);
    *open = (struct fuse_open){.op = op,
                               .like = fuse_space(op),
                               .row = ir_row_axes(op),
                               .column = fuse_column(op),
                               .work = cost_kernel(op, &plan->sizes),
                               .apart = cost_step(op, writes_in_place(plan, op), &plan->sizes),
                               .uses = plan->uses[op->results[0].id]};
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (!value)
            continue;
        add_operand(plan, op, i, open);
        open->n_operands += !fuse_is_inner(op, i) && !is_repeated(op, i);
    }
    struct fuse_set both = open->behind;
    fuse_add_all(&both, &open->direct);
    fuse_add_all(&both, &open->moved);
    open->before = fuse_reached(plan, &both, FUSE_NO_PART, FUSE_NO_PART);
    plan->ops[op->id].part = number;
    return vec_push(&plan->parts, part) ? NULL : status_out_of_memory();
}

/* ---- Joining --------------------------------------------------------------------------------- */

/* What an op and a part have to do with each other. */
struct edges {
    uint64_t uses;     /* of what the part computes, by the op */
    uint32_t operands; /* that are no longer any, or no longer two */
    double bytes;      /* that are no longer moved */
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
    if (is_repeated(op, i) || (!inside && !shared))
        return;
    edges->uses += uses;
    edges->operands += !fuse_is_inner(op, i);
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
    const enum fuse_fit fit = fuse_fit(a, b);
    if (fit == FUSE_APART)
        return a->row && b->row ? "the rows are not the same" : "the shapes are not the same";
    if (fit == FUSE_INTO && b->uses > edges.uses)
        return a->column ? "what is reduced is used by others, too"
                         : "what is broadcast there is used by others, too";
    if (b->column && !a->column && plan->parts.data[other].n_ops == 1)
        return "what it reduces is not computed with it";
    if (a->n_operands + b->n_operands > plan->fusion->most_operands + edges.operands)
        return "the kernel would have too many operands";
    *joined = *a;
    if (b->row) {
        joined->row = b->row;
        joined->like = b->like;
    }
    if (b->column) {
        joined->column = b->column;
        joined->like = b->like;
    }
    joined->work.calls = 1;
    joined->work.bytes += b->work.bytes - edges.bytes;
    joined->work.operations += b->work.operations * times_again(plan, a, b, fit);
    if (fuse_is_slower(plan, a, b, joined))
        return "it would take longer";
    joined->apart = joined->work;
    joined->n_operands += b->n_operands - edges.operands;
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

static const char *join_part(struct fuse_plan *plan, const struct ir_op *op, uint32_t other)
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

static void join_maker(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    struct fuse_op *own = &plan->ops[op->id];
    const uint32_t part = fuse_maker_part(plan, op, operand);
    if (part == FUSE_NO_PART)
        return;
    const char *why = fuse_moves(plan, op, operand) ? "it needs what that computes elsewhere"
                                                    : join_part(plan, op, part);
    if (!why || own->why)
        return;
    own->why = why;
    own->other = ir_operand(op, operand)->op;
}

/* The last part that read the operand reads it once for both, if it takes the op in. One of
 * columns, which others seldom join, does not stand between those. */
static void join_reader(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    uint32_t *reader = &plan->readers[ir_operand(op, operand)->id];
    const char *why = NULL;
    if (*reader && fuse_is_open(plan, *reader - 1) && !fuse_is_inner(op, operand))
        why = join_part(plan, op, fuse_root(plan, *reader - 1));
    const uint32_t own = fuse_root(plan, plan->ops[op->id].part);
    if (!why || !fuse_open_part(plan, own)->column)
        *reader = plan->ops[op->id].part + 1;
}

/* ---- Windows --------------------------------------------------------------------------------- */

/* Nothing before takes anything any more. Only now do parts join that read the same: what computes
 * something for another goes first. */
static void close_parts(struct fuse_plan *plan)
{
    fuse_move_all_inside(plan);
    for (uint32_t i = plan->oldest; i < plan->parts.count; i++)
        for (uint32_t k = 0; k < fuse_open_op(plan, i)->n_operands; k++)
            if (ir_operand(fuse_open_op(plan, i), k) && ir_fuse_reads(fuse_open_op(plan, i), k))
                join_reader(plan, fuse_open_op(plan, i), k);
    fuse_move_all_inside(plan);
    if (plan->fusion->side_by_side)
        fuse_join_beside(plan);
    plan->oldest = (uint32_t)plan->parts.count;
    plan->window++;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

struct ir_op *fuse_captured(const struct fuse_plan *plan, const struct ir_op *op, uint32_t *at)
{
    *at = *at ? plan->captures.data[*at - 1].next : plan->ops[op->id].captures;
    return *at ? plan->captures.data[*at - 1].maker : NULL;
}

/* Notes with each op of the block in whose blocks a result is read that it is. Constants, which
 * depend on nothing, are many there, and come first in any order. */
static tssa_status *note_captures(struct fuse_plan *plan, struct ir_op *maker)
{
    const struct ir_block *block = maker->parent;
    if (ir_op_is(maker, IR_OP_Constant))
        return NULL;
    for (uint32_t i = 0; i < maker->n_results; i++)
        for (const struct ir_use *use = maker->results[i].uses; use; use = use->next) {
            const struct ir_op *user = use->user;
            while (user->parent != block)
                user = user->parent->owner;
            uint32_t *first = &plan->ops[user->id].captures;
            if (user == use->user)
                continue;
            if (!vec_push(&plan->captures, ((struct fuse_capture){maker, *first})))
                return status_out_of_memory();
            *first = (uint32_t)plan->captures.count;
        }
    return NULL;
}

static void add_maker(const struct fuse_plan *plan, const struct ir_op *maker,
                      struct fuse_set *past)
{
    const struct fuse_op *from = &plan->ops[maker->id];
    if (fuse_is_open(plan, from->part))
        fuse_add(plan, past, from->part);
    else if (from->part == FUSE_NO_PART && from->window == plan->window)
        fuse_add_all(past, &from->past);
}

/* What an op in no part depends on, in its blocks too. */
static void find_past(const struct fuse_plan *plan, const struct ir_op *op, struct fuse_set *past)
{
    const struct ir_op *maker;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if ((maker = fuse_maker(ir_operand(op, i), op->parent)))
            add_maker(plan, maker, past);
    for (uint32_t at = 0; (maker = fuse_captured(plan, op, &at));)
        add_maker(plan, maker, past);
}

static tssa_status *plan_op(struct fuse_plan *plan, const struct ir_op *op)
{
    struct fuse_op *own = &plan->ops[op->id];
    const bool candidate = fuse_is_candidate(plan, op);
    own->why = candidate ? fuse_refusal(plan, op) : NULL;
    if (!candidate || own->why) {
        if (!ir_op_is_pure(op)) /* nothing is moved across effects */
            close_parts(plan);
        own->window = plan->window;
        find_past(plan, op, &own->past);
        return NULL;
    }
    if (plan->parts.count - plan->oldest == FUSE_OPEN)
        close_parts(plan);
    TRY(add_part(plan, op));
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && ir_fuse_reads(op, i))
            join_maker(plan, op, i);
    return NULL;
}

tssa_status *fuse_plan_block(struct fuse_plan *plan, const struct ir_block *block)
{
    for (uint32_t i = 0; i < block->n_params; i++)
        plan->uses[block->params[i]->id] = count_uses(block->params[i]);
    for (struct ir_op *op = block->first; op && !ir_op_is(op, IR_OP_return); op = op->next) {
        for (uint32_t i = 0; i < op->n_results; i++)
            plan->uses[op->results[i].id] = count_uses(&op->results[i]);
        TRY(plan_op(plan, op));
        TRY(note_captures(plan, op));
    }
    close_parts(plan);
    return NULL;
}

uint32_t fuse_part_of(struct fuse_plan *plan, const struct ir_op *op)
{
    uint32_t part = op->id < plan->n_ops ? plan->ops[op->id].part : FUSE_NO_PART;
    if (part == FUSE_NO_PART)
        return part;
    part = fuse_root(plan, part);
    return plan->parts.data[part].n_ops > 1 || plan->parts.data[part].is_alone ? part
                                                                               : FUSE_NO_PART;
}
