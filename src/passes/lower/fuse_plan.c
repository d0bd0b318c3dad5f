/* SPDX-License-Identifier: Apache-2.0 */
/* Which ops become one kernel; see fuse.h. */
#include "passes/lower/fuse_parts.h"

#include "ir/fuse.h"
#include "ir/row.h"

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
    TRY(fuse_merge_axes(plan));
    TRY(fuse_keep_numbers(plan));
    TRY(fuse_keep_later(plan));
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

static uint32_t count_uses(const struct ir_value *value)
{
    uint32_t n = 0;
    for (const struct ir_use *use = value->uses; use; use = use->next)
        n++;
    return n;
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

/* What the op takes in a kernel. A Range is a number of a row, or one that vectors begin with. */
static struct cost_work work_of(const struct fuse_plan *plan, const struct ir_op *op)
{
    struct cost_work work =
        fuse_updates(plan, op) ? cost_step(op, true, &plan->sizes) : cost_kernel(op, &plan->sizes);
    if (ir_op_is(op, IR_OP_Range))
        work.operations = 0;
    return work;
}

static tssa_status *add_part(struct fuse_plan *plan, const struct ir_op *op)
{
    const uint32_t number = (uint32_t)plan->parts.count;
    const struct ir_fusion *fusion = plan->fusion;
    const bool is_view = fuse_is_view(plan, op);
    const struct fuse_part part = {.joined = number,
                                   .n_ops = is_view ? 0 : 1,
                                   .is_alone = !is_view && fusion->takes_alone &&
                                               fusion->takes_alone(fusion->user, op)};
    struct fuse_open *open = fuse_open_part(plan, number);
    *open = (struct fuse_open){.op = op,
                               .like = fuse_space(plan, op),
                               .row = ir_row_axes(op),
                               .scan = fuse_scan(op),
                               .keeps = ir_fuse_keeps(op),
                               .pieces = ir_op_is(op, IR_OP_assign) || ir_op_is(op, IR_OP_Concat),
                               .work = work_of(plan, op),
                               .apart = cost_step(op, writes_in_place(plan, op), &plan->sizes),
                               .uses = plan->uses[op->results[0].id]};
    fuse_find_column(op, open);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (!value)
            continue;
        add_operand(plan, op, i, open);
        if (!fuse_is_inner(op, i))
            fuse_add_operand(open, value);
    }
    struct fuse_set both = open->behind;
    fuse_add_all(&both, &open->direct);
    fuse_add_all(&both, &open->moved);
    open->before = fuse_reached(plan, &both, FUSE_NO_PART, FUSE_NO_PART);
    plan->ops[op->id].part = number;
    return vec_push(&plan->parts, part) ? NULL : status_out_of_memory();
}

/* ---- Joining --------------------------------------------------------------------------------- */

static void join_maker(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    struct fuse_op *own = &plan->ops[op->id];
    const uint32_t part = fuse_maker_part(plan, op, operand);
    if (part == FUSE_NO_PART)
        return;
    const char *why = fuse_moves(plan, op, operand) ? "it needs what that computes elsewhere"
                                                    : fuse_join_part(plan, op, part);
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
        why = fuse_join_part(plan, op, fuse_root(plan, *reader - 1));
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
