/* SPDX-License-Identifier: Apache-2.0 */
/* Which loops differ in addresses alone from iteration to iteration; see repeat.h. */
#include "ir/memory.h"
#include "runtime/control.h"
#include "runtime/repeat.h"

/* More are not looked at: each is looked for among all. */
#define MOST_STEPS 64

struct finding {
    struct plan *plan;
    const struct step *loop;
    const struct block_plan *body;
    const struct dim *counter;
    struct repeat_call *calls;
    struct repeat_number *numbers;
    struct repeat *repeat;
    const char *why; /* it is none; NULL: nothing speaks against it so far */
};

static bool refuse(struct finding *f, const char *why)
{
    f->why = why;
    return false;
}

/* ---- Symbols --------------------------------------------------------------------------------- */

static bool binds(const struct plan_bindings *bindings, uint32_t symbol)
{
    for (uint32_t i = 0; bindings && i < bindings->count; i++)
        if (bindings->items[i].symbol == symbol)
            return true;
    return false;
}

/* Does an iteration tell what the symbol is? One that nothing tells is no better. */
static bool is_of_body(const struct finding *f, const struct dim *symbol)
{
    const int number = plan_symbol(f->plan, symbol);
    if (number < 0 || binds(f->body->binds, (uint32_t)number))
        return true;
    for (uint32_t i = 0; i < f->body->n_steps; i++)
        if (binds(f->body->steps[i].binds, (uint32_t)number))
            return true;
    return false;
}

static bool look_up(void *context, const struct dim *symbol, int64_t *value)
{
    *value = 1; /* which does not matter */
    return !is_of_body(context, symbol);
}

static bool is_invariant(struct finding *f, const struct dim *dim)
{
    int64_t value;
    return dim_eval(dim, look_up, f, &value);
}

static bool is_affine(struct finding *f, const struct dim *dim)
{
    if (dim == f->counter || is_invariant(f, dim))
        return true;
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (dim->kind != DIM_SUM ||
            (dim->terms[i] != f->counter && !is_invariant(f, dim->terms[i])))
            return false;
    return dim->kind == DIM_SUM;
}

/* A tensor whose shape is the same in all iterations? */
static bool keeps_shape(struct finding *f, const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    if (type->kind != TYPE_TENSOR || type->rank < 0 || type->dtype == TSSA_STRING)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!is_invariant(f, type->dims[i]))
            return false;
    return true;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static const struct dim *number_of(struct finding *f, const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    const struct ir_known *known = value->known;
    const bool fits = type->kind == TYPE_TENSOR && (type->rank == 0 || type->rank == 1) &&
                      (type->dtype == TSSA_INT64 || type->dtype == TSSA_INT32) && known &&
                      known->count == 1 && known->elements && known->elements[0];
    return fits && is_affine(f, known->elements[0]) ? known->elements[0] : NULL;
}

static void add_number(struct finding *f, const struct ir_value *value)
{
    f->numbers[f->repeat->n_numbers++] = (struct repeat_number){
        plan_value(f->plan, value)->id, number_of(f, value), value->type->dtype, value->type->rank};
}

static bool is_number_step(struct finding *f, const struct ir_op *op)
{
    return op->n_results == 1 && (op->info->flags & IR_PURE) && number_of(f, &op->results[0]);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static bool is_inside(const struct finding *f, const struct ir_value *value)
{
    const struct ir_block *home = value->op ? value->op->parent : value->block;
    return home == f->body->block && !ir_value_constant(value);
}

static bool is_update(const struct ir_op *op)
{
    return ir_result_memory(op, 0, 0) == IR_MEMORY_UPDATED;
}

static const struct step *step_of(const struct finding *f, const struct ir_op *op)
{
    for (uint32_t i = 0; i < f->body->n_steps; i++)
        if (f->body->steps[i].op == op)
            return &f->body->steps[i];
    return NULL;
}

static bool is_name(const struct finding *f, const struct ir_value *value)
{
    const struct step *step = value->op && is_inside(f, value) ? step_of(f, value->op) : NULL;
    return step && step->kernel && step->kernel->names;
}

/* What the value is a name of, or of a part of. */
static const struct ir_value *named(const struct finding *f, const struct ir_value *value)
{
    while (is_name(f, value))
        value = ir_operand(value->op, 0);
    return value;
}

/* The parameter that the value is, perhaps updated; NULL: none. */
static const struct ir_value *updated(const struct finding *f, const struct ir_value *value)
{
    while (value->op && is_inside(f, value) && is_update(value->op))
        value = ir_operand(value->op, 0);
    return value->block == f->body->block ? value : NULL;
}

/* Is the parameter passed on as it is, or updated in place? */
static bool stays(const struct finding *f, const struct ir_value *param)
{
    return param->index >= 2 &&
           updated(f, ir_operand(ir_block_return(f->body->block), param->index - 1)) == param;
}

/*
 * What the plan takes for a copy is a name here: what it names must not be written over before it
 * is used. That is so of what comes from outside, and of what is updated when nobody reads it any
 * more (is_read_before); of all else the plan must think of it as a name, too.
 */
static bool may_name(const struct finding *f, const struct step *step)
{
    const struct ir_value *base = named(f, ir_operand(step->op, 0));
    return ir_is_view(&step->op->results[0]) || f->plan->pieces[step->first_output] ||
           !is_inside(f, base) || (updated(f, base) && stays(f, updated(f, base)));
}

/* Is what `value` names updated by a step that does not come behind the use at `at`? */
static bool is_stale(const struct finding *f, const struct ir_value *value, const struct step *at)
{
    const struct ir_value *base = named(f, value);
    for (const struct ir_use *use = is_inside(f, base) ? base->uses : NULL; use; use = use->next) {
        const bool updates = use == &use->user->operands[0] && is_update(use->user) &&
                             use->user->parent == f->body->block;
        if (updates && (!at || step_of(f, use->user) < at))
            return true;
        if (updates && step_of(f, use->user) == at && value != base)
            return true;
    }
    return false;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static bool check_operands(struct finding *f, const struct step *step)
{
    for (uint32_t k = 0; k < step->n_inputs; k++) {
        const struct ir_value *value = ir_operand(step->op, k);
        if (!value)
            continue;
        if (!keeps_shape(f, value))
            return refuse(f, "the size of a value may be another one in each iteration");
        if (is_stale(f, value, step))
            return refuse(f, "what an iteration has updated is read as it was before");
        /* the source of an update lies elsewhere */
        if (k && is_update(step->op) && updated(f, named(f, value)) &&
            updated(f, named(f, value)) == updated(f, ir_operand(step->op, 0)))
            return refuse(f, "a value is updated with a part of itself");
    }
    return true;
}

static bool check_call(struct finding *f, const struct step *step)
{
    if (!step->kernel || !step->kernel->set_up)
        return refuse(f, "a step of its body is no kernel that can be set up");
    if (!check_operands(f, step))
        return false;
    for (uint32_t i = 0; i < step->n_outputs; i++)
        if (!step->op->results[i].wanted)
            return refuse(f, "a step of its body has a result that nobody wants");
        else if (!keeps_shape(f, &step->op->results[i]))
            return refuse(f, "the size of a value may be another one in each iteration");
    if (step->kernel->is_piece && step->kernel->names && !step->kernel->is_piece(step->op, 0))
        return refuse(f, "a part of a value does not lie in one stretch of it");
    if (step->kernel->names && !may_name(f, step))
        return refuse(f, "a part of a value is needed after the value");
    if (is_update(step->op) &&
        (!updated(f, &step->op->results[0]) || !f->plan->last_uses[step->first_input]))
        return refuse(f, "what is updated is not carried, or needed later");
    return true;
}

static tssa_status *add_call(struct finding *f, const struct step *step)
{
    bool *known = ARENA_ARRAY(&f->plan->arena, bool, step->n_inputs);
    const size_t size = repeat_aligned(step->kernel->call_size);
    TRY_ALLOC(known);
    for (uint32_t k = 0; k < step->n_inputs; k++) {
        const struct ir_value *value = ir_operand(step->op, k);
        known[k] = value && (!is_inside(f, value) || number_of(f, value));
    }
    f->calls[f->repeat->n_calls++] = (struct repeat_call){
        step, known, !step->kernel->names && !is_update(step->op), f->repeat->n_results};
    f->repeat->n_results += step->n_outputs;
    f->repeat->call_bytes += size;
    f->repeat->most_bytes = size > f->repeat->most_bytes ? size : f->repeat->most_bytes;
    return NULL;
}

/* ---- What is returned ------------------------------------------------------------------------ */

/* Computed anew, for this carried value alone. */
static bool is_new(const struct finding *f, uint32_t k)
{
    const struct ir_op *ret = ir_block_return(f->body->block);
    const struct ir_value *value = ir_operand(ret, k + 1);
    for (uint32_t i = 0; i + 2 < f->loop->n_inputs; i++)
        if (i != k && ir_operand(ret, i + 1) == value)
            return false;
    return value->op && is_inside(f, value) && !is_name(f, value) && !is_update(value->op);
}

static bool check_returns(struct finding *f)
{
    const struct ir_op *ret = ir_block_return(f->body->block);
    const struct ir_value *condition = ir_operand(ret, 0);
    if (is_inside(f, condition) && condition != f->body->block->params[1])
        return refuse(f, "an iteration computes whether there is a next one");
    for (uint32_t i = 1; i < ret->n_operands; i++) {
        const uint32_t k = i - 1;
        const struct ir_value *value = ir_operand(ret, i);
        if (!keeps_shape(f, value))
            return refuse(f, "the size of a value may be another one in each iteration");
        if (is_stale(f, value, NULL))
            return refuse(f, "what an iteration has updated is returned as it was before");
        if (control_stacks(f->loop, k))
            continue;
        if (stays(f, f->body->block->params[k + 2]))
            continue;
        f->repeat->period = 2;
        if (!is_new(f, k) || number_of(f, value))
            return refuse(f, "what is carried is neither updated in place nor computed anew");
    }
    return true;
}

/* ---- Loops ----------------------------------------------------------------------------------- */

static tssa_status *find_calls(struct finding *f)
{
    for (uint32_t i = 0; i < f->body->n_steps && !f->why; i++) {
        const struct step *step = &f->body->steps[i];
        if (is_number_step(f, step->op))
            add_number(f, &step->op->results[0]);
        else if (check_call(f, step))
            TRY(add_call(f, step));
    }
    return NULL;
}

static tssa_status *find_repeat(struct finding *f, struct step *step)
{
    struct arena *arena = &f->plan->arena;
    const uint32_t n = f->body->n_steps;
    if (n > MOST_STEPS) {
        step->why = "it has too many steps";
        return NULL;
    }
    f->repeat = ARENA_NEW(arena, struct repeat);
    f->calls = ARENA_ARRAY(arena, struct repeat_call, n);
    f->numbers = ARENA_ARRAY(arena, struct repeat_number, n + 1u);
    if (!f->repeat || !f->calls || !f->numbers)
        return status_out_of_memory();
    f->repeat->period = step->n_turns ? 2 : 1;
    const struct ir_value *counter = f->body->block->params[0];
    if (counter->uses && number_of(f, counter))
        add_number(f, counter);
    TRY(find_calls(f));
    if (!f->why && f->repeat->n_calls == 0)
        f->why = "nothing is computed in it";
    if (f->why || !check_returns(f)) {
        step->why = f->why;
        return NULL;
    }
    f->repeat->counter = f->counter;
    f->repeat->calls = f->calls;
    f->repeat->numbers = f->numbers;
    step->repeat = f->repeat;
    return NULL;
}

static tssa_status *visit(struct plan *plan, const struct block_plan *block)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        struct step *step = (struct step *)&block->steps[i]; /* of a plan that is being made */
        for (uint32_t k = 0; k < step->n_blocks; k++)
            TRY(visit(plan, step->blocks[k]));
        if (!ir_op_is(step->op, IR_OP_Loop) || !step->n_blocks)
            continue;
        struct finding f = {.plan = plan, .loop = step, .body = step->blocks[0]};
        const struct ir_value *counter = f.body->block->params[0];
        if (counter->known && counter->known->count == 1)
            f.counter = counter->known->elements[0];
        TRY(find_repeat(&f, step));
    }
    return NULL;
}

tssa_status *repeat_plan(struct plan *plan)
{
    return plan->n_spaces > 1 ? NULL : visit(plan, plan->body);
}
