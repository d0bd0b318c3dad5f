/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/recorded.h"

#include <string.h>

#include "runtime/crossing.h"

#define TRIES 4 /* that may fail for want of a settled pool */

/* Where an input is copied to, before each replay. */
struct recorded_input {
    struct tensor tensor; /* of the device's memory; data NULL: the device does not read it */
    struct tensor shape;  /* of the input; no data */
    size_t size;
};

struct recorded {
    struct device_recording *recording; /* NULL: there is none */
    struct recorded_input *inputs;      /* per parameter of the body */
    struct value *returns; /* per return of the body: of the device's memory, or owned */
    int64_t *symbols;
    uint32_t layouts; /* that of the slab, and the pool's memory, it was made in */
    const void *chunk;
    size_t chunk_size;
    uint32_t tries;
    bool refused;  /* something in the run cannot be recorded */
    bool replayed; /* the latest run was a replay */
};

static const struct device *device_of(const struct run *run)
{
    return run->streams[SPACE_DEVICE]->context->device;
}

static const struct value *input_of(const struct run *run, uint32_t param)
{
    const uint32_t slot = run->plan->body->params[param];
    return slot == SLOT_NONE ? NULL : &run->slots[slot];
}

/* ---- What a recording is of ------------------------------------------------------------------ */

static void release_returns(const struct run *run, struct recorded *recorded)
{
    for (uint32_t i = 0; i < run->plan->body->n_returns; i++)
        value_release(&recorded->returns[i]);
}

static void drop(struct run *run)
{
    struct recorded *recorded = run->recorded;
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    if (!recorded)
        return;
    device_of(run)->recording_free(stream, recorded->recording);
    recorded->recording = NULL;
    release_returns(run, recorded);
    for (uint32_t i = 0; i < run->plan->body->n_params; i++) {
        struct recorded_input *input = &recorded->inputs[i];
        if (input->tensor.data)
            device_of(run)->release(stream, input->tensor.data, input->size);
        *input = (struct recorded_input){.size = 0};
    }
}

void recorded_free(struct run *run)
{
    struct recorded *recorded = run->recorded;
    if (!recorded)
        return;
    drop(run);
    allocator_free(run->allocator, recorded->inputs);
    allocator_free(run->allocator, recorded->returns);
    allocator_free(run->allocator, recorded->symbols);
    allocator_free(run->allocator, recorded);
    run->recorded = NULL;
}

static tssa_status *create(struct run *run)
{
    const struct plan *plan = run->plan;
    const tssa_allocator *a = run->allocator;
    struct recorded *recorded = run->recorded = allocator_calloc(a, 1, sizeof *recorded);
    TRY_ALLOC(recorded);
    recorded->inputs = allocator_calloc(a, plan->body->n_params + 1u, sizeof *recorded->inputs);
    recorded->returns = allocator_calloc(a, plan->body->n_returns + 1u, sizeof *recorded->returns);
    recorded->symbols = allocator_calloc(a, plan->n_symbols + 1u, sizeof *recorded->symbols);
    if (recorded->inputs && recorded->returns && recorded->symbols)
        return NULL;
    recorded->returns = NULL; /* none to be released */
    allocator_free(a, recorded->inputs);
    allocator_free(a, recorded->symbols);
    allocator_free(a, recorded);
    run->recorded = NULL;
    return status_out_of_memory();
}

static bool has_shape(const struct run *run, uint32_t param)
{
    const struct value *value = input_of(run, param);
    const struct tensor *shape = &run->recorded->inputs[param].shape;
    return !value || (value->kind == TSSA_KIND_TENSOR && value->tensor.dtype == shape->dtype &&
                      tensor_same_shape(&value->tensor, shape));
}

static bool fits(const struct run *run)
{
    const struct recorded *recorded = run->recorded;
    bool same = recorded && recorded->recording && recorded->layouts == run->slab.layouts &&
                recorded->chunk == run->device_pool.chunk &&
                recorded->chunk_size == run->device_pool.size;
    for (uint32_t i = 0; same && i < run->plan->body->n_params; i++)
        same = has_shape(run, i);
    return same;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static tssa_status *keep_input(struct run *run, uint32_t param)
{
    struct recorded_input *input = &run->recorded->inputs[param];
    const struct value *value = input_of(run, param);
    if (!value)
        return NULL;
    input->shape = value->tensor;
    input->shape.data = NULL;
    if (!crossing_mirrored(run->plan, run->plan->body->params[param]))
        return NULL;
    input->size = tensor_bytes(&value->tensor);
    input->tensor = input->shape;
    input->tensor.data = device_of(run)->allocate(run->streams[SPACE_DEVICE], input->size);
    input->tensor.offset = 0;
    TRY_ALLOC(input->tensor.data);
    return NULL;
}

static tssa_status *copy_inputs(struct run *run)
{
    for (uint32_t i = 0; i < run->plan->body->n_params; i++) {
        const struct recorded_input *input = &run->recorded->inputs[i];
        if (!input->tensor.data)
            continue;
        void *there = run->inputs_there[i];
        const struct device_place to = {input->tensor.data, 0},
                                  from = {there ? there : input_of(run, i)->tensor.data, 0};
        TRY(device_of(run)->copy(run->streams[SPACE_DEVICE],
                                 there ? DEVICE_COPY_WITHIN : DEVICE_COPY_IN, to, from,
                                 input->size));
    }
    return NULL;
}

/* The mirrors of the inputs are there, and nothing copies into them. */
static void set_mirrors(struct run *run)
{
    for (uint32_t i = 0; i < run->plan->body->n_params; i++) {
        const struct recorded_input *input = &run->recorded->inputs[i];
        const uint32_t slot = run->plan->body->params[i];
        if (input->tensor.data)
            run->slots[run->plan->n_values + slot] =
                (struct value){.kind = TSSA_KIND_TENSOR, .tensor = input->tensor};
    }
}

/* ---- Returns --------------------------------------------------------------------------------- */

static struct value *slot_of(const struct run *run, uint32_t index)
{
    return &run->slots[plan_home_slot(run->plan, run->plan->body->returns[index].slot)];
}

static bool is_constant(const struct run *run, uint32_t index)
{
    const struct ir_op *end = ir_block_return(run->plan->body->block);
    return ir_value_constant(plan_value(run->plan, ir_operand(end, index))) != NULL;
}

static bool lies_there(const struct run *run, uint32_t index)
{
    const struct ir_op *end = ir_block_return(run->plan->body->block);
    return plan_space(run->plan, ir_operand(end, index)) == SPACE_DEVICE;
}

/* Those of the device are what is there after each replay; those of the host are the same in each
 * run. */
static tssa_status *keep_returns(struct run *run)
{
    const struct block_plan *body = run->plan->body;
    for (uint32_t i = 0; i < body->n_returns; i++) {
        const struct value *value = slot_of(run, i);
        struct value *kept = &run->recorded->returns[i];
        if (is_constant(run, i))
            continue;
        if (!lies_there(run, i)) {
            TRY(value_detach(run->allocator, value, kept));
            sequence_freeze(kept);
        } else if (value->kind == TSSA_KIND_TENSOR) {
            *kept = *value;
            kept->tensor.owner = NULL;
        }
    }
    return NULL;
}

static void set_returns(struct run *run)
{
    const struct block_plan *body = run->plan->body;
    for (uint32_t i = 0; i < body->n_returns; i++)
        if (!is_constant(run, i)) {
            value_release(slot_of(run, i));
            value_copy(slot_of(run, i), &run->recorded->returns[i]);
        }
}

/* ---- Recording ------------------------------------------------------------------------------- */

static tssa_status *record_steps(struct run *run, struct device_recording **recording)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    TRY(crossing_enter(run, run->plan->body->crossing));
    set_mirrors(run);
    TRY(device_of(run)->record_begin(stream));
    tssa_status *status = executor_run_steps(run, run->plan->body);
    tssa_status *end = device_of(run)->record_end(stream, recording);
    if (!status)
        return end;
    tssa_status_free(end);
    device_of(run)->recording_free(stream, *recording);
    *recording = NULL;
    return status;
}

/* What the device counts is not told here: of that, what the layout is for. */
static void keep_symbols(const struct run *run)
{
    int64_t *symbols = run->recorded->symbols;
    for (uint32_t i = 0; i < run->plan->n_symbols; i++)
        symbols[i] = run->symbols[i] < 0 ? run->slab.symbols[i] : run->symbols[i];
}

static tssa_status *record(struct run *run)
{
    struct recorded *recorded = run->recorded;
    for (uint32_t i = 0; i < run->plan->body->n_params; i++)
        TRY(keep_input(run, i));
    TRY(record_steps(run, &recorded->recording));
    TRY(keep_returns(run));
    keep_symbols(run);
    recorded->layouts = run->slab.layouts;
    recorded->chunk = run->device_pool.chunk;
    recorded->chunk_size = run->device_pool.size;
    return NULL;
}

/*
 * Nothing of it has been done yet, so that whatever goes wrong can be done as if nobody had tried.
 */
static tssa_status *try_to_record(struct run *run, const struct value *const *inputs)
{
    tssa_status *status = run->recorded ? NULL : create(run);
    if (!status)
        status = record(run);
    /* What has memory of its own may be gone before the next run. */
    const bool settled = run->device_pool.apart_bytes == 0;
    if (!status && settled)
        return NULL;
    if (run->recorded) {
        run->recorded->refused = tssa_status_code(status) == TSSA_UNSUPPORTED;
        run->recorded->tries++;
    }
    drop(run);
    tssa_status_free(status);
    return executor_begin_again(run, inputs);
}

static bool may_record(const struct run *run)
{
    const struct recorded *recorded = run->recorded;
    for (uint32_t i = 0; i < run->plan->body->n_params; i++)
        if (input_of(run, i) && input_of(run, i)->kind != TSSA_KIND_TENSOR)
            return false;
    return run->slab.thorough && !run->watched && !run->plan->poisoned &&
           (!recorded || (!recorded->refused && recorded->tries < TRIES));
}

bool recorded_replayed(const struct run *run)
{
    return run->recorded && run->recorded->replayed;
}

/* What the run would have told, so that the layout is not taken for too large. */
static void tell_symbols(struct run *run)
{
    const struct plan *plan = run->plan;
    memcpy(run->symbols, run->recorded->symbols, plan->n_symbols * sizeof *run->symbols);
    for (uint32_t i = plan->n_input_symbols; i < plan->n_symbols; i++)
        if (run->slab.most[i] < run->symbols[i])
            run->slab.most[i] = run->symbols[i];
}

static tssa_status *replay(struct run *run)
{
    const struct recorded *recorded = run->recorded;
    tell_symbols(run);
    TRY(copy_inputs(run));
    TRY(executor_check_stop(run));
    return device_of(run)->replay(run->streams[SPACE_DEVICE], recorded->recording);
}

tssa_status *recorded_run_body(struct run *run, const struct value *const *inputs)
{
    if (run->recorded)
        run->recorded->replayed = false;
    if (run->plan->driven || run->profile)
        return executor_run_block(run, run->plan->body);
    bool replays = fits(run);
    if (replays) {
        set_returns(run);
        run->recorded->replayed = true;
    } else {
        drop(run);
        if (may_record(run))
            TRY(try_to_record(run, inputs));
        replays = run->recorded && run->recorded->recording;
    }
    if (!replays)
        return executor_run_block(run, run->plan->body);
    TRY(replay(run));
    return crossing_leave(run, run->plan->body->crossing);
}
