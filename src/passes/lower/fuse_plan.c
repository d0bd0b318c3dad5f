/* SPDX-License-Identifier: Apache-2.0 */
/* Which ops become one kernel; see fuse.h. */
#include "passes/lower/fuse.h"

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

/* ---- Sets of parts -------------------------------------------------------------------------------- */

static uint32_t root_of(struct fuse_plan *plan, uint32_t part)
{
    struct fuse_part *parts = plan->parts.data;
    while (parts[part].joined != part) {
        parts[part].joined = parts[parts[part].joined].joined;
        part = parts[part].joined;
    }
    return part;
}

static bool is_open(const struct fuse_plan *plan, uint32_t part)
{
    return part != FUSE_NO_PART && part >= plan->oldest;
}

static struct fuse_open *open_part(struct fuse_plan *plan, uint32_t part)
{
    return &plan->open[part - plan->oldest];
}

/* The op that the part was at first. */
static const struct ir_op *open_op(const struct fuse_plan *plan, uint32_t part)
{
    return plan->open[part - plan->oldest].op;
}

static void add(const struct fuse_plan *plan, struct fuse_set *set, uint32_t part)
{
    const uint32_t bit = part - plan->oldest;
    set->words[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static bool has(const struct fuse_plan *plan, const struct fuse_set *set, uint32_t part)
{
    const uint32_t bit = part - plan->oldest;
    return set->words[bit / 64] >> (bit % 64) & 1;
}

static void add_all(struct fuse_set *set, const struct fuse_set *more)
{
    for (size_t i = 0; i < sizeof set->words / sizeof *set->words; i++)
        set->words[i] |= more->words[i];
}

/* What the parts belong to, but for parts `one` and `two`, and what that depends on, as it is known by now. */
static struct fuse_set reached(struct fuse_plan *plan, const struct fuse_set *from, uint32_t one,
                               uint32_t two)
{
    struct fuse_set all = {{0}};
    for (uint32_t i = 0; i < FUSE_OPEN; i++) {
        if (!(from->words[i / 64] >> (i % 64) & 1))
            continue;
        const uint32_t root = root_of(plan, plan->oldest + i);
        if (root == one || root == two)
            continue;
        add(plan, &all, root);
        add_all(&all, &open_part(plan, root)->before);
    }
    return all;
}

/* ---- Parts of one op ------------------------------------------------------------------------------ */

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

/* The part that makes the operand. */
static uint32_t maker_part(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    const struct ir_op *maker = fuse_maker(ir_operand(op, operand), op->parent);
    const uint32_t part = maker ? plan->ops[maker->id].part : FUSE_NO_PART;
    return is_open(plan, part) ? root_of(plan, part) : FUSE_NO_PART;
}

/* Is the operand needed at other places than where the part that makes it computes it? */
static bool moves(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    if (!ir_fuse_moves(op, operand) || operand > 0)
        return ir_fuse_moves(op, operand);
    const uint32_t part = maker_part(plan, op, operand);
    return part == FUSE_NO_PART || !fuse_is_row_view(op, open_part(plan, part));
}

/* Could the part that makes the operand, which it moves, compute it where it is needed? */
static bool moves_inside(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    const uint32_t part = maker_part(plan, op, operand);
    return plan->fusion->moves_inside && ir_fuse_moves_elements(op, operand) &&
           part != FUSE_NO_PART && open_part(plan, part)->row == 0;
}

/* What is behind an operand: the part that makes it, or what its maker depends on. */
static void add_operand(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand,
                        struct fuse_open *part)
{
    const struct ir_op *maker = fuse_maker(ir_operand(op, operand), op->parent);
    const struct fuse_op *from = maker ? &plan->ops[maker->id] : NULL;
    if (!from)
        return;
    if (is_open(plan, from->part))
        add(plan,
            !moves(plan, op, operand)         ? &part->direct
            : moves_inside(plan, op, operand) ? &part->moved
                                              : &part->behind,
            root_of(plan, from->part));
    else if (from->part == FUSE_NO_PART && from->window == plan->window)
        add_all(&part->behind, &from->past);
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
    struct fuse_open *open = open_part(plan, number);
    *open = (struct fuse_open){.op = op,
                               .like = fuse_space(op),
                               .row = ir_row_axes(op),
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
    add_all(&both, &open->direct);
    add_all(&both, &open->moved);
    open->before = reached(plan, &both, FUSE_NO_PART, FUSE_NO_PART);
    plan->ops[op->id].part = number;
    return vec_push(&plan->parts, part) ? NULL : status_out_of_memory();
}

/* ---- Joining -------------------------------------------------------------------------------------- */

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
    const bool inside = maker_part(plan, op, i) == part && !moves(plan, op, i);
    uint32_t uses = 0;
    if (inside)
        for (uint32_t k = 0; k < op->n_operands; k++)
            uses += ir_operand(op, k) == value && !moves(plan, op, k);
    const uint32_t reader = plan->readers[value->id];
    const bool shared = !inside && reader && is_open(plan, reader - 1) &&
                        root_of(plan, reader - 1) == part && !ir_op_is(op, IR_OP_access);
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
        if (maker_part(plan, op, i) == part && !moves(plan, op, i))
            plan->uses[ir_operand(op, i)->id]--;
    }
}

/* Is there a way from `from` to `to` that leads through something else? What is moved is something else, unless it is
 * to be moved `inside`. */
static bool leads_around(struct fuse_plan *plan, uint32_t from, uint32_t to, bool inside)
{
    const struct fuse_open *part = open_part(plan, to);
    const uint32_t one = inside ? from : FUSE_NO_PART, two = inside ? to : FUSE_NO_PART;
    const struct fuse_set direct = reached(plan, &part->direct, from, to),
                          moved = reached(plan, &part->moved, one, two),
                          behind = reached(plan, &part->behind, FUSE_NO_PART, FUSE_NO_PART);
    return has(plan, &direct, from) || has(plan, &moved, from) || has(plan, &behind, from);
}

/* How often what part `b` computes is computed again in `a`. */
static double times_again(const struct fuse_plan *plan, const struct fuse_open *a,
                          const struct fuse_open *b, enum fuse_fit fit)
{
    const double times = cost_elements(a->like, &plan->sizes) /
                         (1 + cost_elements(b->like, &plan->sizes)); /* never by nothing */
    return fit != FUSE_INTO || times < 1 ? 1 : times;
}

/* Does it take longer than the two it is made of? */
static bool is_slower(const struct fuse_plan *plan, const struct fuse_open *a,
                      const struct fuse_open *b, const struct fuse_open *joined)
{
    const struct cost_machine *machine = plan->fusion->machine;
    const double before = cost_seconds(machine, &a->apart) + cost_seconds(machine, &b->apart);
    return cost_seconds(machine, &joined->work) > before * LEAST_LOSS;
}

/* What part `b` depends on, `joined` does. */
static void add_sets(struct fuse_open *joined, const struct fuse_open *b)
{
    add_all(&joined->direct, &b->direct);
    add_all(&joined->moved, &b->moved);
    add_all(&joined->behind, &b->behind);
    add_all(&joined->before, &b->before);
}

/* Why the part of the op, `own`, does not take in part `other`; NULL: *joined is what both would be. */
static const char *try_join(struct fuse_plan *plan, const struct ir_op *op, uint32_t own,
                            uint32_t other, struct fuse_open *joined)
{
    const struct fuse_open *a = open_part(plan, own), *b = open_part(plan, other);
    struct edges edges = {0};
    if (leads_around(plan, own, other, false) || leads_around(plan, other, own, false))
        return "something else is computed between the two";
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i))
            find_edge(plan, op, i, other, &edges);
    const enum fuse_fit fit = fuse_fit(a, b);
    if (fit == FUSE_APART)
        return a->row && b->row ? "the rows are not the same" : "the shapes are not the same";
    if (fit == FUSE_INTO && b->uses > edges.uses)
        return "what is broadcast there is used by others, too";
    if (a->n_operands + b->n_operands > plan->fusion->most_operands + edges.operands)
        return "the kernel would have too many operands";
    *joined = *a;
    if (b->row) {
        joined->row = b->row;
        joined->like = b->like;
    }
    joined->work.calls = 1;
    joined->work.bytes += b->work.bytes - edges.bytes;
    joined->work.operations += b->work.operations * times_again(plan, a, b, fit);
    if (is_slower(plan, a, b, joined))
        return "it would take longer";
    joined->apart = joined->work;
    joined->n_operands += b->n_operands - edges.operands;
    joined->uses += b->uses - edges.uses;
    add_sets(joined, b);
    return NULL;
}

/* Part `own` takes in `other`, and who depends on one of them depends on both. */
static void join(struct fuse_plan *plan, uint32_t own, uint32_t other,
                 const struct fuse_open *joined)
{
    const uint32_t n = (uint32_t)plan->parts.count - plan->oldest;
    *open_part(plan, own) = *joined;
    plan->parts.data[own].n_ops += plan->parts.data[other].n_ops;
    plan->parts.data[other].joined = own;
    for (uint32_t i = 0; i < n; i++) {
        struct fuse_set *before = &plan->open[i].before;
        if (plan->oldest + i == own || (!has(plan, before, own) && !has(plan, before, other)))
            continue;
        add_all(before, &joined->before);
        add(plan, before, own);
    }
}

static const char *join_part(struct fuse_plan *plan, const struct ir_op *op, uint32_t other)
{
    struct fuse_open joined;
    const uint32_t own = root_of(plan, plan->ops[op->id].part);
    const char *why = own == other ? NULL : try_join(plan, op, own, other, &joined);
    if (own == other || why)
        return why;
    take_edges(plan, op, other);
    join(plan, own, other, &joined);
    return NULL;
}

static void join_maker(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    struct fuse_op *own = &plan->ops[op->id];
    const uint32_t part = maker_part(plan, op, operand);
    if (part == FUSE_NO_PART)
        return;
    const char *why = moves(plan, op, operand) ? "it needs what that computes elsewhere"
                                               : join_part(plan, op, part);
    if (!why || own->why)
        return;
    own->why = why;
    own->other = ir_operand(op, operand)->op;
}

/* The last part that read the operand reads it once for both, if it takes the op in. */
static void join_reader(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    uint32_t *reader = &plan->readers[ir_operand(op, operand)->id];
    if (*reader && is_open(plan, *reader - 1) && !fuse_is_inner(op, operand))
        (void)join_part(plan, op, root_of(plan, *reader - 1));
    *reader = plan->ops[op->id].part + 1;
}

/* ---- Moving inside -------------------------------------------------------------------------------- */

/* What part `own` reads, elsewhere or in place, of what part `other` computes. */
struct moved {
    uint64_t uses;
    double read, elements; /* bytes and elements, of all uses */
    double written, made;  /* bytes and elements, by the other one for it */
};

/* The elements that are needed of an operand: of what a gather reads, so much as it gives; all else that is moved once,
 * indices too; of what is read in place, one for each that is computed. */
static const struct ir_type *needed_of(struct fuse_plan *plan, const struct ir_op *op, uint32_t k)
{
    const bool reads = !moves(plan, op, k) || (k == 0 && !ir_op_is(op, IR_OP_Concat));
    return reads && !fuse_repeats_in_row(op) ? op->results[0].type : ir_operand(op, k)->type;
}

/* What is read in place may be of another space than the part; where rows are computed, none but that of the rows. */
static void find_moved(struct fuse_plan *plan, const struct ir_op *op, uint32_t other, bool rows,
                       struct moved *moved)
{
    for (uint32_t k = 0; k < op->n_operands; k++) {
        if (maker_part(plan, op, k) != other ||
            (moves(plan, op, k) ? !moves_inside(plan, op, k) : rows))
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
        const struct ir_op *op = open_op(plan, i);
        const struct ir_value *result = &op->results[0];
        if (root_of(plan, i) == own)
            find_moved(plan, op, other, open_part(plan, own)->row != 0, &moved);
        if (root_of(plan, i) != other || !plan->uses[result->id])
            continue;
        moved.written += cost_bytes(result->type, &plan->sizes);
        moved.made += cost_elements(result->type, &plan->sizes);
    }
    return moved;
}

/* Can part `own` compute what part `other` does, where it reads it? *joined is what both would be. */
static bool can_move(struct fuse_plan *plan, uint32_t own, uint32_t other, struct fuse_open *joined)
{
    const struct fuse_open *a = open_part(plan, own), *b = open_part(plan, other);
    if (own == other || b->row || leads_around(plan, own, other, true) ||
        leads_around(plan, other, own, true))
        return false;
    const struct moved moved = moved_between(plan, own, other);
    if (moved.uses == 0 || moved.uses != b->uses ||
        a->n_operands + b->n_operands > plan->fusion->most_operands + moved.uses)
        return false;
    const double times = moved.elements / (1 + moved.made);
    *joined = *a;
    joined->work.calls = 1;
    joined->work.bytes += (b->work.bytes - moved.written) * times - moved.read;
    joined->work.operations += b->work.operations * times;
    joined->apart = joined->work;
    joined->n_operands += b->n_operands - (uint32_t)moved.uses;
    add_sets(joined, b);
    return !is_slower(plan, a, b, joined);
}

static bool move_inside(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand)
{
    struct fuse_open joined;
    const uint32_t other = maker_part(plan, op, operand);
    if (other == FUSE_NO_PART || !plan->fusion->moves_inside)
        return false;
    const uint32_t own = root_of(plan, plan->ops[op->id].part);
    if (!can_move(plan, own, other, &joined))
        return false;
    for (uint32_t i = plan->oldest; i < plan->parts.count; i++)
        if (root_of(plan, i) == other)
            plan->uses[open_op(plan, i)->results[0].id] = 0;
    join(plan, own, other, &joined);
    return true;
}

/* What moves lets others move: those who read it are then all in one part. */
#define MOST_ROUNDS 4

static void move_all_inside(struct fuse_plan *plan)
{
    bool moved = true;
    for (int round = 0; round < MOST_ROUNDS && moved; round++) {
        moved = false;
        for (uint32_t i = plan->oldest; i < plan->parts.count; i++)
            for (uint32_t k = 0; k < open_op(plan, i)->n_operands; k++)
                if (ir_operand(open_op(plan, i), k))
                    moved |= move_inside(plan, open_op(plan, i), k);
    }
}

/* ---- Side by side --------------------------------------------------------------------------------- */

/* Is each a launch by itself, does neither need the other, and is one kernel of both not slower? *joined is what both
 * would be. */
static bool stand_beside(const struct fuse_plan *plan, const struct fuse_open *a, uint32_t number_a,
                         const struct fuse_open *b, uint32_t number_b, struct fuse_open *joined)
{
    if (a->apart.calls == 0 || b->apart.calls == 0 || has(plan, &a->before, number_b) ||
        has(plan, &b->before, number_a) ||
        a->n_operands + b->n_operands > plan->fusion->most_operands)
        return false;
    *joined = *a;
    joined->work.bytes += b->work.bytes;
    joined->work.operations += b->work.operations;
    if (is_slower(plan, a, b, joined))
        return false;
    joined->apart = joined->work;
    joined->n_operands += b->n_operands;
    joined->uses += b->uses;
    add_sets(joined, b);
    return true;
}

/* Each with the first one that stands beside it: of equal rows of kernels the first ones come together, and so on. */
static void join_beside(struct fuse_plan *plan)
{
    struct fuse_open joined;
    for (uint32_t b = plan->oldest; b < plan->parts.count; b++)
        for (uint32_t a = plan->oldest; a < b && root_of(plan, b) == b; a++)
            if (root_of(plan, a) == a &&
                stand_beside(plan, open_part(plan, a), a, open_part(plan, b), b, &joined))
                join(plan, a, b, &joined);
}

/* ---- Windows -------------------------------------------------------------------------------------- */

/* Nothing before takes anything any more. Only now do parts join that read the same: what computes something for
 * another goes first. */
static void close_parts(struct fuse_plan *plan)
{
    move_all_inside(plan);
    for (uint32_t i = plan->oldest; i < plan->parts.count; i++)
        for (uint32_t k = 0; k < open_op(plan, i)->n_operands; k++)
            if (ir_operand(open_op(plan, i), k) && ir_fuse_reads(open_op(plan, i), k))
                join_reader(plan, open_op(plan, i), k);
    move_all_inside(plan);
    if (plan->fusion->side_by_side)
        join_beside(plan);
    plan->oldest = (uint32_t)plan->parts.count;
    plan->window++;
}

/* ---- Blocks --------------------------------------------------------------------------------------- */

struct ir_op *fuse_captured(const struct fuse_plan *plan, const struct ir_op *op, uint32_t *at)
{
    *at = *at ? plan->captures.data[*at - 1].next : plan->ops[op->id].captures;
    return *at ? plan->captures.data[*at - 1].maker : NULL;
}

/* Notes with each op of the block in whose blocks a result is read that it is. Constants, which depend on nothing, are
 * many there, and come first in any order. */
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
    if (is_open(plan, from->part))
        add(plan, past, from->part);
    else if (from->part == FUSE_NO_PART && from->window == plan->window)
        add_all(past, &from->past);
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
    part = root_of(plan, part);
    return plan->parts.data[part].n_ops > 1 || plan->parts.data[part].is_alone ? part
                                                                               : FUSE_NO_PART;
}
