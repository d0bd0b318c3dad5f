/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/reuse.h"

#include "ir/memory.h"
#include "runtime/control.h"

struct finder {
    const struct lifetimes *lifetimes;
    const struct plan *plan;
    const struct ir_value **next;    /* per value id */
    const struct ir_value **parts;   /* per plan->inputs */
    const struct ir_value **updates; /* per value id */
    /* per value id: the If, plus 1, of which an earlier branch returns the same memory */
    uint32_t *joined;
    bool *is_part; /* per value id */
    bool joins;
};

static const struct lifetime *lifetime_of(const struct finder *f, const struct ir_value *value)
{
    return &f->lifetimes->values[value->id];
}

/* The step that makes the value; NULL: none does, it is a parameter or a constant. */
static const struct step *step_of(const struct finder *f, const struct ir_value *value)
{
    const struct step *step =
        value->op ? f->lifetimes->steps[f->lifetimes->step_of_op[value->op->id]] : NULL;
    return step && step->op == value->op ? step : NULL;
}

/* The value whose memory this one is a name of. */
static const struct ir_value *memory_of(const struct finder *f, const struct ir_value *value)
{
    while (value) {
        value = plan_value(f->plan, value);
        if (!lifetime_is_view(f->lifetimes, value))
            return value;
        value = ir_operand(value->op, 0);
    }
    return NULL;
}

/* Is it all of that memory, from its first byte on? */
static bool is_whole(const struct finder *f, const struct ir_value *value)
{
    for (value = plan_value(f->plan, value); lifetime_is_view(f->lifetimes, value);
         value = plan_value(f->plan, ir_operand(value->op, 0)))
        if (lifetime_is_piece(f->lifetimes, value))
            return false;
    return true;
}

/* ---- On an operand --------------------------------------------------------------------------- */

/* As many elements, as long. */
static bool fits(const struct ir_type *a, const struct ir_type *b)
{
    bool same = a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->rank >= 0 &&
                a->rank == b->rank && dtype_info(a->dtype)->size == dtype_info(b->dtype)->size;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

/* May the result lie where the operand lies, which nobody reads after the step? An op that updates
 * takes it, where that was planned. */
static bool may_lie_on(const struct finder *f, const struct step *step, uint32_t result,
                       uint32_t operand)
{
    const struct ir_op *op = step->op;
    if (step->kernel->may_lie_on)
        return step->kernel->may_lie_on(op, result, operand);
    if (step->kernel->updates)
        return step->kernel->updates(op, result) == operand &&
               f->plan->last_uses[step->first_input + operand];
    switch (ir_result_memory(op, result, operand)) {
    case IR_MEMORY_UPDATED:
        return f->plan->last_uses[step->first_input + operand];
    case IR_MEMORY_OVER:
        return !op->info->ew || op->results[result].type == ir_operand(op, operand)->type;
    default:
        return false;
    }
}

/* May the value be a name of that memory? What control flow passes on is what it was given, or not:
 * a loop without iterations returns what it begins with. */
static bool may_be_in(const struct finder *f, const struct ir_value *value,
                      const struct ir_value *memory)
{
    const struct ir_value *own = memory_of(f, value);
    return own == memory || (lifetime_of(f, memory)->passed && own && own->op &&
                             own->op->info->cls == IR_CLASS_CONTROL);
}

/* Does no other operand read the same memory, but element by element as this one is read? */
static bool reads_alike(const struct finder *f, const struct step *step, uint32_t result,
                        uint32_t operand, const struct ir_value *memory)
{
    const struct ir_op *op = step->op;
    const struct ir_type *type = ir_operand(op, operand)->type;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *other = i == operand ? NULL : ir_operand(op, i);
        if (other && may_be_in(f, other, memory) &&
            (other->type != type || !may_lie_on(f, step, result, i) || !is_whole(f, other)))
            return false;
    }
    return true;
}

/* The memory is in use from one step of a block to a later one of it, and then no more. */
static bool ends_at(const struct finder *f, const struct ir_value *memory, const struct step *step)
{
    const struct lifetime *life = lifetime_of(f, memory);
    const struct step *maker = step_of(f, memory);
    return maker && (maker->kernel || control_stacks(maker, memory->index)) &&
           plan_home(f->plan, memory->op) == plan_home(f->plan, step->op) && !life->escapes &&
           !life->loop && life->last == step->index;
}

/* The memory of the operand, if the result may lie there; else NULL. What rules most out is asked
 * first. */
static const struct ir_value *place_on(const struct finder *f, const struct step *step,
                                       uint32_t result, uint32_t operand)
{
    const struct ir_value *from = ir_operand(step->op, operand), *to = &step->op->results[result];
    if (!from || lifetime_of(f, from)->last != step->index ||
        !may_lie_on(f, step, result, operand) || !fits(from->type, to->type))
        return NULL;
    const struct ir_value *memory = memory_of(f, from);
    const bool lies = memory && !f->next[memory->id] && ends_at(f, memory, step) &&
                      is_whole(f, from) && plan_space(f->plan, from) == plan_space(f->plan, to) &&
                      plan_space(f->plan, memory) == plan_space(f->plan, to) &&
                      reads_alike(f, step, result, operand, memory);
    return lies ? memory : NULL;
}

static void find_operand(struct finder *f, const struct step *step, uint32_t result)
{
    const struct ir_op_info *info = step->op->info;
    const struct ir_value *value = &step->op->results[result];
    const bool any = info->ew || (info->flags & (IR_UPDATE | IR_OVER)) ||
                     step->kernel->may_lie_on || step->kernel->updates;
    if (!any || !value->wanted || lifetime_of(f, value)->loop)
        return;
    for (uint32_t i = 0; i < step->n_inputs; i++) {
        const struct ir_value *memory = place_on(f, step, result, i);
        if (memory) {
            f->next[memory->id] = value;
            return;
        }
    }
}

/* ---- In what is joined ----------------------------------------------------------------------- */

/* It is in use from the step that joins it on, and nobody else's. */
static bool is_own(const struct lifetime *life)
{
    return !life->escapes && !life->loop && !life->leaves;
}

static void find_parts(struct finder *f, const struct step *step)
{
    const struct ir_value *whole = &step->op->results[0];
    if (f->plan->n_spaces > 1 || !step->kernel->is_joined || !step->kernel->is_joined(step->op) ||
        !whole->wanted || !is_own(lifetime_of(f, whole)))
        return;
    for (uint32_t i = 0; i < step->n_inputs; i++) {
        const struct ir_value *from = ir_operand(step->op, i);
        const struct ir_value *memory = from ? memory_of(f, from) : NULL;
        if (!memory || f->next[memory->id] || f->is_part[memory->id] || !ends_at(f, memory, step) ||
            !is_whole(f, from))
            continue;
        f->is_part[memory->id] = true;
        f->parts[step->first_input + i] = memory;
        f->joins = true;
    }
}

/* ---- In the other branch --------------------------------------------------------------------- */

/* What the branch returns as a result of its If: of an If in it, what the later branch returns.
 * NULL: no memory that is made there. */
static const struct ir_value *returned(const struct finder *f, const struct step *step,
                                       uint32_t branch, uint32_t result)
{
    const struct ir_block *block = step->blocks[branch]->block;
    const struct ir_value *value = memory_of(f, ir_operand(ir_block_return(block), result));
    if (!value || !step_of(f, value) || plan_home(f->plan, value->op) != block)
        return NULL;
    return ir_op_is(value->op, IR_OP_If) ? returned(f, step_of(f, value), 1, value->index) : value;
}

/* In a loop, what goes on into the next iteration is not read any more when either branch begins,
 * or has two places. */
static bool may_join(const struct finder *f, const struct step *step, const struct ir_value *first,
                     const struct ir_value *second)
{
    const struct lifetime *a = lifetime_of(f, first), *b = lifetime_of(f, second);
    const uint32_t begin = lifetime_step_first(step);
    const bool turns =
        lifetime_takes_turns(a, step_of(f, first)) && lifetime_takes_turns(b, step_of(f, second));
    return first->type == second->type &&
           plan_space(f->plan, first) == plan_space(f->plan, second) && a->loop == b->loop &&
           a->leaves == b->leaves && a->exit == b->exit &&
           (!a->loop || turns || (a->carried_until < begin && b->carried_until < begin));
}

static void find_sibling(struct finder *f, const struct step *step, uint32_t result)
{
    const struct ir_value *first = returned(f, step, 0, result),
                          *second = returned(f, step, 1, result);
    if (!step->op->results[result].wanted || !first || !second || f->next[first->id] ||
        f->joined[second->id] == step->index + 1 || !may_join(f, step, first, second))
        return;
    f->next[first->id] = second;
    f->joined[second->id] = step->index + 1;
}

/* ---- Where a loop begins --------------------------------------------------------------------- */

static bool is_given_to(const struct finder *f, const struct ir_value *name,
                        const struct step *step, uint32_t operand);

static bool views_are_given_to(const struct finder *f, const struct ir_op *op,
                               const struct step *step, uint32_t operand)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (lifetime_is_view(f->lifetimes, &op->results[i]) &&
            !is_given_to(f, &op->results[i], step, operand))
            return false;
    return true;
}

/* Is the memory read before the step begins, and then as this operand of it, and by nobody else? */
static bool is_given_to(const struct finder *f, const struct ir_value *name,
                        const struct step *step, uint32_t operand)
{
    const uint32_t begin = lifetime_step_first(step);
    for (const struct ir_use *use = name->uses; use; use = use->next) {
        const struct ir_op *user = use->user;
        const struct ir_block *fused = plan_fused(f->plan, user);
        if (use == &step->op->operands[operand] ||
            (fused && is_given_to(f, fused->params[use - user->operands], step, operand)))
            continue;
        if (fused || ir_op_is(user, IR_OP_return) || user->info->cls == IR_CLASS_CONTROL ||
            user->info->cls == IR_CLASS_SEQUENCE ||
            f->lifetimes->steps[f->lifetimes->step_of_op[user->id]]->index >= begin ||
            (use == &user->operands[0] && !views_are_given_to(f, user, step, operand)))
            return false;
    }
    return true;
}

/* What a loop is given and what it carries on in its place: the first is not read any more when the
 * second is made. */
static void find_initial(struct finder *f, const struct step *loop, uint32_t operand,
                         uint32_t returned)
{
    const struct ir_block *body = loop->blocks[0]->block;
    const struct ir_value *first = memory_of(f, ir_operand(loop->op, operand)),
                          *second = memory_of(f, ir_operand(ir_block_return(body), returned));
    const struct step *makers[2] = {first ? step_of(f, first) : NULL,
                                    second ? step_of(f, second) : NULL};
    if (!makers[0] || !makers[0]->kernel || !makers[1] || !makers[1]->kernel ||
        plan_home(f->plan, first->op) != plan_home(f->plan, loop->op) ||
        plan_home(f->plan, second->op) != body || f->next[first->id] ||
        f->joined[second->id] == loop->index + 1 || first->type != second->type ||
        plan_space(f->plan, first) != plan_space(f->plan, second) || lifetime_of(f, first)->loop ||
        lifetime_of(f, second)->loop != loop ||
        lifetime_takes_turns(lifetime_of(f, second), makers[1]) ||
        !is_given_to(f, first, loop, operand))
        return;
    f->next[first->id] = second;
    f->joined[second->id] = loop->index + 1;
}

/* ---- In each iteration ----------------------------------------------------------------------- */

/* Is it that value, if be it as a parameter of a fuse op? */
static bool is_name_of(const struct finder *f, const struct ir_value *name,
                       const struct ir_value *value)
{
    return name && plan_value(f->plan, name) == value;
}

/* What a body is given and what it returns in its place are one memory from the second iteration
 * on, where an op updates the one to the other and is the last that reads the one. */
static void find_update(struct finder *f, const struct step *loop, uint32_t param,
                        uint32_t returned)
{
    const struct ir_block *body = loop->blocks[0]->block;
    const struct ir_value *from = body->params[param],
                          *to = plan_value(f->plan, ir_operand(ir_block_return(body), returned));
    const struct step *step = step_of(f, to);
    if (!step || !step->kernel || plan_home(f->plan, to->op) != body ||
        !fits(from->type, to->type) || plan_space(f->plan, from) != plan_space(f->plan, to))
        return;
    for (uint32_t i = 0; i < step->n_inputs; i++)
        if (is_name_of(f, ir_operand(step->op, i), from) && may_lie_on(f, step, to->index, i) &&
            reads_alike(f, step, to->index, i, from) && is_given_to(f, from, step, i))
            f->updates[from->id] = to;
}

static void find_around_blocks(struct finder *f, const struct step *step)
{
    struct control_passing passing;
    for (uint32_t k = 0; ir_op_is(step->op, IR_OP_If) && k < step->n_outputs; k++)
        find_sibling(f, step, k);
    if (!control_passes(step, &passing))
        return;
    for (uint32_t k = 0; k < passing.n_carried; k++) {
        find_initial(f, step, passing.operand + k, passing.returned + k);
        if (ir_op_is(step->op, IR_OP_Loop))
            find_update(f, step, passing.operand + k, passing.returned + k);
    }
}

/* ---- All ------------------------------------------------------------------------------------- */

tssa_status *reuse_find(const struct lifetimes *lifetimes, struct arena *scratch,
                        struct reuse *reuse)
{
    const struct plan *plan = lifetimes->plan;
    struct finder f = {.lifetimes = lifetimes, .plan = plan};
    f.next = ARENA_ARRAY(scratch, const struct ir_value *, plan->n_values);
    f.joined = ARENA_ARRAY(scratch, uint32_t, plan->n_values);
    f.parts = ARENA_ARRAY(scratch, const struct ir_value *, plan->n_inputs);
    f.is_part = ARENA_ARRAY(scratch, bool, plan->n_values);
    f.updates = ARENA_ARRAY(scratch, const struct ir_value *, plan->n_values);
    if (!f.next || !f.joined || !f.parts || !f.is_part || !f.updates)
        return status_out_of_memory();
    for (uint32_t i = plan->n_steps; i-- > 0;) {
        const struct step *step = lifetimes->steps[i];
        for (uint32_t k = 0; step->kernel && k < step->n_outputs; k++)
            find_operand(&f, step, k);
        if (step->kernel)
            find_parts(&f, step);
        if (!step->kernel)
            find_around_blocks(&f, step);
    }
    *reuse = (struct reuse){f.next, f.parts, f.joins, f.updates};
    return NULL;
}
