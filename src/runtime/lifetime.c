/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/lifetime.h"

#include "ir/fuse.h"
#include "ir/memory.h"
#include "ir/total.h"
#include "runtime/control.h"
#include "runtime/pieces.h"

/* A loop's parameter that has more names is not followed. */
#define MOST_NAMES 32

/* The step of `block` that `op` is, or is nested in. */
static uint32_t step_in_block(const struct lifetimes *l, const struct ir_op *op,
                              const struct ir_block *block)
{
    while (op->parent != block)
        op = op->parent->owner;
    return l->step_of_op[op->id];
}

static bool is_inside(const struct ir_block *block, const struct ir_op *op)
{
    while (block->owner && block->owner != op)
        block = block->owner->parent;
    return block->owner == op;
}

static void extend(struct lifetime *life, uint32_t last)
{
    if (last > life->last)
        life->last = last;
}

/* ---- What a value is passed on as ------------------------------------------------------------ */

static void go_into_next_iteration(struct lifetime *own, const struct step *loop, uint32_t until)
{
    if (own->loop && own->loop != loop)
        own->escapes = true;
    own->loop = loop;
    if (until > own->carried_until)
        own->carried_until = until;
}

/* Until the outputs are handed over, when all steps have run. */
static void leave(struct lifetime *own, uint32_t exit)
{
    own->several |= own->leaves && own->exit != exit;
    own->leaves = true;
    own->exit = exit;
}

/* The value's memory, which was made in `home`, is that of another name as well. */
static void share(struct lifetime *own, const struct ir_block *home, const struct lifetime *other)
{
    extend(own, other->last);
    own->escapes |= other->escapes;
    own->taken |= other->taken;
    own->passed |= other->passed;
    own->several |= other->several;
    if (other->leaves)
        leave(own, other->exit);
    if (other->loop && is_inside(home, other->loop->op))
        go_into_next_iteration(own, other->loop, other->carried_until);
}

/* The same for the result of control flow. Memory that is to be changed in place is left to the
 * pool, where counting shows who owns it. */
static void pass_on(const struct lifetimes *l, struct lifetime *own, const struct ir_block *home,
                    const struct ir_value *result)
{
    const struct lifetime *other = &l->values[result->id];
    share(own, home, other);
    own->escapes |= other->taken;
    own->passed = true;
}

/* What its block returns is the result itself, or another handle to what it is. */
static void follow_fused_return(const struct lifetimes *l, struct lifetime *own,
                                const struct ir_block *home, const struct ir_use *use)
{
    const struct ir_op *fuse = use->user->parent->owner;
    const uint32_t index = (uint32_t)(use - use->user->operands);
    const struct ir_value *result = &fuse->results[index];
    if (!result->wanted)
        return;
    if (ir_fuse_returned(fuse, index) != use->value)
        pass_on(l, own, home, result);
    else
        share(own, home, &l->values[result->id]); /* nothing is there between the two */
}

/* An operand of `return`. */
static void follow_return(const struct lifetimes *l, struct lifetime *own,
                          const struct ir_block *home, const struct ir_use *use)
{
    const struct ir_block *block = use->user->parent;
    const struct ir_op *owner = block->owner;
    const uint32_t index = (uint32_t)(use - use->user->operands);
    struct control_passing passing;
    if (!owner) {
        leave(own, index);
        extend(own, l->plan->n_steps);
        return;
    }
    if (ir_op_is(owner, IR_OP_fuse)) {
        follow_fused_return(l, own, home, use);
        return;
    }
    const struct step *step = l->steps[l->step_of_op[owner->id]];
    extend(own, home == block ? step->index : step_in_block(l, owner, home));
    if (ir_op_is(owner, IR_OP_If)) {
        pass_on(l, own, home, &owner->results[index]);
        return;
    }
    if (!control_passes(step, &passing)) {
        own->escapes = true;
        return;
    }
    const uint32_t k = index - passing.returned;
    if (index < passing.returned || k >= passing.n_carried)
        return; /* a condition, which is read, or what is stacked: copied */
    const struct lifetime *param = &l->values[block->params[passing.operand + k]->id];
    pass_on(l, own, home, &owner->results[k]);
    own->escapes |= param->escapes;
    if (home == block)
        go_into_next_iteration(own, step, param->last);
}

/* An operand of control flow. */
static void follow_operand(const struct lifetimes *l, struct lifetime *own,
                           const struct ir_block *home, const struct ir_use *use)
{
    const struct ir_op *op = use->user;
    const uint32_t index = (uint32_t)(use - op->operands);
    const struct step *step = l->steps[l->step_of_op[op->id]];
    struct control_passing passing;
    if (ir_op_is(op, IR_OP_fuse)) {
        if (step->n_blocks)
            share(own, home, &l->values[step->blocks[0]->block->params[index]->id]);
        return;
    }
    if (ir_op_is(op, IR_OP_If))
        return; /* the condition */
    if (!control_passes(step, &passing)) {
        own->escapes = true;
        return;
    }
    if (index < passing.operand)
        return; /* a trip count, a condition */
    own->escapes |= l->values[step->blocks[0]->block->params[index]->id].escapes;
    if (index - passing.operand < passing.n_carried && !ir_loop_runs(op))
        pass_on(l, own, home, &op->results[index - passing.operand]);
}

static bool is_view(const struct ir_use *use)
{
    return use == &use->user->operands[0] && ir_result_memory(use->user, 0, 0) == IR_MEMORY_SHARED;
}

static bool is_taken(const struct lifetimes *l, const struct ir_use *use)
{
    const struct ir_op *user = use->user;
    const struct step *step = l->steps[l->step_of_op[user->id]];
    const uint32_t index = (uint32_t)(use - user->operands);
    if (!step || step->op != user || !step->kernel ||
        !l->plan->last_uses[step->first_input + index])
        return false;
    bool taken = index == 0 && ir_result_memory(user, 0, 0) == IR_MEMORY_UPDATED;
    for (uint32_t i = 0; step->kernel->updates && i < user->n_results; i++)
        taken |= step->kernel->updates(user, i) == index;
    return taken;
}

/* Results that are pieces of the value's memory, which is in use until step `last` without them;
 * and pieces of these, which did not know that. */
static void take_pieces(struct lifetimes *l, const struct ir_value *value,
                        const struct ir_block *home, uint32_t last)
{
    struct lifetime *own = &l->values[value->id];
    for (const struct ir_use *use = value->uses; use && !own->escapes; use = use->next) {
        const struct ir_op *user = use->user;
        const struct step *step = l->steps[l->step_of_op[user->id]];
        if (use != &user->operands[0] || !step || step->op != user || !pieces_may_be(step))
            continue;
        for (uint32_t k = 0; k < step->n_outputs; k++)
            if (pieces_lie_in(l, step, k, last)) {
                l->pieces[step->first_output + k] = true;
                take_pieces(l, &user->results[k], user->parent, last);
                share(own, home, &l->values[user->results[k].id]);
            }
    }
}

/* A value of the block `home`, which step `first` makes. */
static void find_lifetime(struct lifetimes *l, const struct ir_value *value,
                          const struct ir_block *home, uint32_t first)
{
    struct lifetime *own = &l->values[value->id];
    own->last = first;
    for (const struct ir_use *use = value->uses; use && !own->escapes; use = use->next) {
        const struct ir_op *user = use->user;
        if (ir_op_is(user, IR_OP_return)) {
            follow_return(l, own, home, use);
            continue;
        }
        /* A fuse op reads as late as its ops do. */
        if (user->parent != home || !plan_fused(l->plan, user))
            extend(own, step_in_block(l, user, home));
        if (user->info->cls == IR_CLASS_SEQUENCE)
            own->escapes = true;
        else if (user->info->cls == IR_CLASS_CONTROL)
            follow_operand(l, own, home, use);
        else if (is_view(use))
            share(own, home, &l->values[user->results[0].id]); /* looked at before what it views */
        own->taken |= is_taken(l, use);
    }
    take_pieces(l, value, home, own->last);
}

/* ---- Parameters of loops --------------------------------------------------------------------- */

/* The step of the body that the op is, or is nested in; of a fuse op that is run, the one in it. */
static uint32_t step_in_body(const struct lifetimes *l, const struct ir_op *op,
                             const struct ir_block *body)
{
    while (plan_home(l->plan, op) != body)
        op = op->parent->owner;
    return l->step_of_op[op->id];
}

/* What the body makes of a parameter: only reads are looked at, everything else lets it escape. */
static void follow_param(const struct lifetimes *l, struct lifetime *own, const struct step *loop,
                         const struct ir_value *name, int *names)
{
    const struct ir_block *body = loop->blocks[0]->block;
    struct control_passing passing;
    own->escapes |= ++*names > MOST_NAMES || !control_passes(loop, &passing);
    for (const struct ir_use *use = name->uses; use && !own->escapes; use = use->next) {
        const struct ir_op *user = use->user;
        const uint32_t index = (uint32_t)(use - user->operands);
        if (ir_op_is(user, IR_OP_return)) {
            own->escapes = user->parent != body || (index >= passing.returned &&
                                                    index - passing.returned < passing.n_carried);
            extend(own, loop->index);
            continue;
        }
        if (!plan_fused(l->plan, user))
            extend(own, step_in_body(l, user, body));
        if (user->info->cls == IR_CLASS_SEQUENCE || is_taken(l, use))
            own->escapes = true;
        else if (plan_fused(l->plan, user))
            follow_param(l, own, loop, plan_fused(l->plan, user)->params[index], names);
        else if (user->info->cls == IR_CLASS_CONTROL)
            own->escapes = !ir_op_is(user, IR_OP_If) && !ir_op_is(user, IR_OP_fuse) &&
                           !(ir_op_is(user, IR_OP_Loop) && index < 2);
        else if (is_view(use))
            follow_param(l, own, loop, &user->results[0], names);
    }
}

static void find_params(struct lifetimes *l, const struct step *loop)
{
    struct control_passing passing;
    if (!control_passes(loop, &passing))
        return;
    const struct ir_block *body = loop->blocks[0]->block;
    for (uint32_t i = passing.operand; i < body->n_params; i++) {
        int names = 0;
        follow_param(l, &l->values[body->params[i]->id], loop, body->params[i], &names);
    }
}

/* Those of a fuse op, once all is known of what its block holds. */
static void find_fused_params(struct lifetimes *l, const struct ir_block *body)
{
    for (uint32_t i = 0; i < body->n_params; i++)
        find_lifetime(l, body->params[i], body, 0);
}

/* The number of an iteration and its condition, once all is known of what the body holds. */
static void find_loop_scalars(struct lifetimes *l, const struct step *loop)
{
    struct control_passing passing;
    const struct ir_block *body = loop->blocks[0]->block;
    for (uint32_t i = 0; control_passes(loop, &passing) && i < passing.operand; i++)
        find_lifetime(l, body->params[i], body, 0);
}

/* ---- All ------------------------------------------------------------------------------------- */

static void index_steps(struct lifetimes *l, const struct block_plan *block)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        const struct step *step = &block->steps[i];
        l->step_of_op[step->op->id] = step->index;
        l->steps[step->index] = step;
        for (uint32_t b = 0; b < step->n_blocks; b++)
            index_steps(l, step->blocks[b]);
    }
}

/* In reverse: users before what they use, and what a block is in before the block. */
static void find_in_block(struct lifetimes *l, const struct block_plan *block)
{
    for (uint32_t i = block->n_steps; i-- > 0;) {
        const struct step *step = &block->steps[i];
        for (uint32_t k = 0; k < step->n_outputs; k++)
            if (step->op->results[k].wanted) {
                find_lifetime(l, &step->op->results[k], step->op->parent, step->index);
                l->pieces[step->first_output + k] =
                    pieces_may_be(step) && pieces_lie_outside(l, step, k);
            }
        if (step->n_blocks)
            find_params(l, step);
        for (uint32_t b = step->n_blocks; b-- > 0;)
            find_in_block(l, step->blocks[b]);
        if (step->n_blocks && ir_op_is(step->op, IR_OP_fuse))
            find_fused_params(l, step->blocks[0]->block);
        else if (step->n_blocks)
            find_loop_scalars(l, step);
    }
}

tssa_status *lifetimes_find(struct lifetimes *l, struct plan *plan, struct arena *scratch)
{
    *l = (struct lifetimes){.plan = plan};
    l->values = ARENA_ARRAY(scratch, struct lifetime, plan->n_values);
    l->step_of_op = ARENA_ARRAY(scratch, uint32_t, plan->graph->n_ops);
    l->steps = ARENA_ARRAY(scratch, const struct step *, plan->n_steps);
    l->pieces = ARENA_ARRAY(&plan->arena, bool, plan->n_outputs);
    if (!l->values || !l->step_of_op || !l->steps || !l->pieces)
        return status_out_of_memory();
    plan->pieces = l->pieces;
    index_steps(l, plan->body);
    find_in_block(l, plan->body);
    return NULL;
}

bool lifetime_is_piece(const struct lifetimes *l, const struct ir_value *value)
{
    const struct step *step = value->op ? l->steps[l->step_of_op[value->op->id]] : NULL;
    return step && step->op == value->op && l->pieces[step->first_output + value->index];
}

bool lifetime_is_view(const struct lifetimes *l, const struct ir_value *value)
{
    return ir_is_view(value) || lifetime_is_piece(l, value);
}

uint32_t lifetime_step_first(const struct step *step)
{
    while (step->n_blocks) {
        const struct block_plan *block = step->blocks[0];
        for (uint32_t b = 1; !block->n_steps && b < step->n_blocks; b++)
            block = step->blocks[b];
        if (!block->n_steps)
            break;
        step = &block->steps[0];
    }
    return step->index;
}

uint32_t lifetime_first(const struct lifetime *lifetime, const struct step *step)
{
    return lifetime->loop ? lifetime_step_first(lifetime->loop) : lifetime_step_first(step);
}

bool lifetime_takes_turns(const struct lifetime *lifetime, const struct step *step)
{
    return lifetime->loop && lifetime->carried_until >= lifetime_step_first(step);
}
