/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop (ai.onnx 1 to 25). Operands: trip count (optional), condition (optional), carried values.
 * Body: (iteration, condition, carried...) -> (condition, carried..., scan outputs...).
 */
#include <string.h>

#include "runtime/control.h"
#include "runtime/control_recorded.h"
#include "runtime/executor.h"
#include "runtime/repeat.h"
#include "runtime/stack.h"

struct loop {
    struct run *run;
    const struct step *step;
    const struct block_plan *body;
    uint32_t n_carried, n_stacked;
    struct scratch_use scratch;
    struct buffer *tables; /* the next two */
    struct value *carried; /* between iterations; owned */
    struct stack *stacks;
    int64_t scalars[2]; /* the number of the iteration and its condition, where they are lent */
    int64_t trips;      /* INT64_MAX: no limit */
};

bool control_loop_passes(const struct step *step, struct control_passing *passing)
{
    const uint32_t n_carried = step->n_inputs > 2 ? step->n_inputs - 2 : 0;
    *passing = (struct control_passing){.operand = 2, .returned = 1, .n_carried = n_carried};
    return true;
}

bool control_stacks(const struct step *step, uint32_t index)
{
    struct control_passing passing;
    return ir_op_is(step->op, IR_OP_Loop) && control_loop_passes(step, &passing) &&
           index >= passing.n_carried;
}

/* What the body updates is its own to update, where nobody else uses it any more. */
static void carry_in(struct loop *loop, uint32_t i)
{
    const struct plan *plan = loop->run->plan;
    uint32_t input = loop->step->first_input + i + 2, slot = plan->inputs[input];
    if (slot == SLOT_NONE)
        return;
    if (plan->last_uses[input])
        value_move(&loop->carried[i], &loop->run->slots[slot]);
    else
        value_copy(&loop->carried[i], &loop->run->slots[slot]);
}

static const struct kernel_env *env_of(const struct loop *loop, uint32_t result)
{
    const struct ir_value *value = &loop->step->op->results[result];
    const bool away = plan_space(loop->run->plan, value) != SPACE_HOST;
    return away ? &loop->run->device_env : &loop->run->env;
}

/* Both tables, zeroed. */
static tssa_status *make_tables(struct loop *loop)
{
    struct run *run = loop->run;
    const size_t carried = (loop->n_carried + 1u) * sizeof *loop->carried,
                 bytes = carried + loop->n_stacked * sizeof *loop->stacks;
    loop->tables =
        scratch_take(run->scratch + loop->step->index, &loop->scratch, &run->pool, bytes);
    TRY_ALLOC(loop->tables);
    memset(loop->tables->data, 0, bytes);
    loop->carried = loop->tables->data;
    loop->stacks = (struct stack *)((char *)loop->tables->data + carried);
    return NULL;
}

/* Where a device that computes nothing should tell when the loop ends. */
static void limit_trips(struct loop *loop)
{
    const struct plan *plan = loop->run->plan;
    const int64_t most = plan->device->device->endless_trips;
    const struct ir_value *condition = ir_operand(ir_block_return(loop->body->block), 0);
    if (most && loop->trips >= INT32_MAX && !plan->spaces.known[plan_value(plan, condition)->id])
        loop->trips = most;
}

static tssa_status *loop_open(struct loop *loop, bool *condition)
{
    struct run *run = loop->run;
    const struct step *step = loop->step;
    const struct value *const *inputs = run->inputs + step->first_input;
    loop->trips = INT64_MAX;
    *condition = true;
    if (step->n_inputs > 0 && inputs[0] && inputs[0]->kind != TSSA_KIND_NONE)
        TRY(control_read_int(inputs[0], "the trip count", &loop->trips));
    if (step->n_inputs > 1 && inputs[1] && inputs[1]->kind != TSSA_KIND_NONE)
        TRY(control_read_bool(inputs[1], "the condition", condition));
    limit_trips(loop);
    TRY(make_tables(loop));
    for (uint32_t i = 0; i < loop->n_stacked; i++) {
        const uint32_t result = loop->n_carried + i;
        stack_init(&loop->stacks[i], env_of(loop, result),
                   &run->places[step->first_output + result]);
    }
    for (uint32_t i = 0; i < loop->n_carried; i++)
        carry_in(loop, i);
    return NULL;
}

static void loop_close(struct loop *loop)
{
    for (uint32_t i = 0; loop->carried && i < loop->n_carried; i++)
        value_release(&loop->carried[i]);
    for (uint32_t i = 0; loop->stacks && i < loop->n_stacked; i++)
        stack_free(&loop->stacks[i]);
    buffer_release(loop->tables);
}

static tssa_status *bind_scalar(struct loop *loop, uint32_t param, tssa_dtype dtype, int64_t number)
{
    struct value value;
    if (loop->body->params[param] == SLOT_NONE)
        return NULL;
    if (loop->step->lends[param]) {
        int64_t *scalar = &loop->scalars[param];
        dtype_store_int64(dtype, scalar, number);
        value = (struct value){.kind = TSSA_KIND_TENSOR,
                               .tensor = {.dtype = dtype, .rank = 0, .data = scalar}};
    } else {
        TRY(control_scalar(loop->run, dtype, number, &value));
    }
    executor_bind(loop->run, loop->body, param, &value);
    return NULL;
}

static tssa_status *iterate(struct loop *loop, int64_t iteration, bool *condition)
{
    struct run *run = loop->run;
    struct value value;
    TRY(bind_scalar(loop, 0, TSSA_INT64, iteration));
    TRY(bind_scalar(loop, 1, TSSA_BOOL, *condition));
    for (uint32_t i = 0; i < loop->n_carried; i++)
        executor_bind(run, loop->body, i + 2, &loop->carried[i]);
    TRY(executor_run_block(run, loop->body));

    executor_take(run, loop->body, 0, &value);
    tssa_status *status = control_read_bool(&value, "the body's condition", condition);
    value_release(&value);
    TRY(status);
    for (uint32_t i = 0; i < loop->n_carried; i++)
        executor_take(run, loop->body, i + 1, &loop->carried[i]);
    for (uint32_t i = 0; i < loop->n_stacked; i++) {
        executor_take(run, loop->body, loop->n_carried + 1 + i, &value);
        status = stack_push(&loop->stacks[i], &value, loop->trips);
        value_release(&value);
        TRY(status);
    }
    slab_take_turns(run, loop->step);
    return NULL;
}

static tssa_status *set_results(struct loop *loop)
{
    const struct ir_op *returned = ir_block_return(loop->body->block);
    for (uint32_t i = 0; i < loop->n_carried; i++)
        control_set_result(loop->run, loop->step, i, &loop->carried[i]);
    for (uint32_t i = 0; i < loop->n_stacked; i++) {
        struct value value;
        struct tensor empty;
        control_empty_element(loop->run, returned, loop->n_carried + 1 + i, &empty);
        TRY(stack_finish(&loop->stacks[i], &empty, 0, false, &value));
        control_set_result(loop->run, loop->step, loop->n_carried + i, &value);
    }
    return NULL;
}

/* All iterations from here on, if they differ in addresses alone. */
static tssa_status *repeat(struct loop *loop, int64_t first, bool *made)
{
    const struct repeat_loop lent = {.step = loop->step,
                                     .carried = loop->carried,
                                     .n_carried = loop->n_carried,
                                     .stacks = loop->stacks,
                                     .n_stacked = loop->n_stacked,
                                     .scratch = &loop->scratch};
    return repeat_run(loop->run, &lent, first, loop->trips, made);
}

static tssa_status *loop_run(struct loop *loop)
{
    bool condition, made = false;
    TRY(loop_open(loop, &condition));
    for (int64_t i = 0; i < loop->trips && condition && !made; i++) {
        /* what the first one has left is the run's own, as far as it is updated */
        if (i == 1 && loop->step->repeat)
            TRY(repeat(loop, i, &made));
        if (!made)
            TRY(iterate(loop, i, &condition));
    }
    return set_results(loop);
}

tssa_status *control_run_loop(struct run *run, const struct step *step)
{
    struct loop loop = {.run = run, .step = step, .body = step->blocks[0]};
    struct control_passing passing;
    if (control_records(run, step))
        return control_record_loop(run, step);
    control_loop_passes(step, &passing);
    loop.n_carried = passing.n_carried;
    loop.n_stacked = step->n_outputs - loop.n_carried;
    tssa_status *status = loop_run(&loop);
    loop_close(&loop);
    return status;
}
