/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan step by step; see executor.h. */
#include "runtime/executor.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/caller_device.h"
#include "runtime/crossing.h"
#include "runtime/recorded.h"

uint64_t executor_now(void)
{
    return clock_monotonic();
}

/* ---- Run state ------------------------------------------------------------------------------- */

static void *array(const tssa_allocator *allocator, size_t count, size_t size)
{
    return allocator_calloc(allocator, count ? count : 1, size);
}

static bool run_allocate(struct run *run, const struct plan *plan, bool profile)
{
    const tssa_allocator *a = run->allocator;
    run->slots = array(a, plan->n_slots, sizeof *run->slots);
    run->inputs = array(a, plan->n_inputs, sizeof *run->inputs);
    run->outputs = array(a, plan->n_outputs, sizeof *run->outputs);
    run->places = array(a, plan->n_outputs, sizeof *run->places);
    run->scratch = array(a, plan->n_steps, sizeof *run->scratch);
    run->symbols = array(a, plan->n_symbols, sizeof *run->symbols);
    run->argument_inputs = array(a, plan->body->n_params, sizeof *run->argument_inputs);
    run->argument_outputs = array(a, plan->body->n_returns, sizeof *run->argument_outputs);
    run->argument_wanted = array(a, plan->body->n_returns, sizeof *run->argument_wanted);
    run->bound = array(a, plan->n_input_symbols, sizeof *run->bound);
    run->given = array(a, plan->body->n_returns, sizeof *run->given);
    run->inputs_there = array(a, plan->body->n_params, sizeof *run->inputs_there);
    run->outputs_there = array(a, plan->body->n_returns, sizeof *run->outputs_there);
    run->profile = profile ? array(a, plan->n_steps, sizeof *run->profile) : NULL;
    return run->argument_inputs && run->argument_outputs && run->argument_wanted && run->bound &&
           run->given && run->inputs_there && run->outputs_there && run->slots && run->inputs &&
           run->outputs && run->places && run->scratch && run->symbols && slab_init(run) &&
           (!profile || run->profile);
}

tssa_status *run_create(const struct plan *plan, const tssa_allocator *allocator,
                        const struct team *team, bool profile, struct run **out)
{
    struct run *run = allocator_calloc(allocator, 1, sizeof *run);
    TRY_ALLOC(run);
    run->plan = plan;
    run->allocator = allocator;
    pool_init(&run->pool, allocator);
    arena_init(&run->strings, &run->pool.cached);
    run->pool.poisons = plan->poisoned != NULL;
    run->env = (struct kernel_env){.pool = &run->pool, .strings = &run->strings, .team = team};
    tssa_status *status = plan->host->device->stream_open(plan->host, &run->streams[SPACE_HOST]);
    if (!status)
        status = crossing_open(run);
    if (!status && !run_allocate(run, plan, profile))
        status = status_out_of_memory();
    if (status) {
        run_free(run);
        return status;
    }
    for (uint32_t i = 0; i < plan->n_inputs; i++)
        run->inputs[i] = plan->inputs[i] == SLOT_NONE ? NULL : &run->slots[plan->inputs[i]];
    for (uint32_t i = 0; i < plan->n_outputs; i++)
        run->outputs[i] = plan->outputs[i] == SLOT_NONE ? NULL : &run->slots[plan->outputs[i]];
    for (uint32_t i = 0; i < plan->n_constants; i++) {
        struct value *slot = &run->slots[plan->constants[i].slot];
        slot->kind = TSSA_KIND_TENSOR;
        slot->tensor = *plan->constants[i].tensor;
        slot->tensor.owner = NULL; /* the plan outlives the run */
    }
    *out = run;
    return NULL;
}

/* After a failed run: whatever is still in a slot from `first` on, the constants (borrowed)
 * included or not. */
static void release_slots(struct run *run, uint32_t first)
{
    for (uint32_t i = first; run->slots && i < run->plan->n_slots; i++)
        if (run->slots[i].kind != TSSA_KIND_TENSOR || run->slots[i].tensor.owner)
            value_release(&run->slots[i]);
}

void run_free(struct run *run)
{
    if (!run)
        return;
    const tssa_allocator *a = run->allocator;
    release_slots(run, 0);
    arena_clear(&run->strings);
    pool_clear(&run->pool);
    allocator_free(a, run->slots);
    allocator_free(a, (void *)run->inputs);
    allocator_free(a, run->outputs);
    allocator_free(a, run->places);
    allocator_free(a, run->scratch);
    allocator_free(a, run->symbols);
    allocator_free(a, run->profile);
    allocator_free(a, (void *)run->argument_inputs);
    allocator_free(a, run->argument_outputs);
    allocator_free(a, run->argument_wanted);
    allocator_free(a, run->bound);
    allocator_free(a, run->given);
    allocator_free(a, run->inputs_there);
    allocator_free(a, run->outputs_there);
    recorded_free(run);
    slab_free(run);
    crossing_close(run);
    run->plan->host->device->stream_close(run->streams[SPACE_HOST]);
    allocator_free(a, run->wanted);
    allocator_free(a, run->needed);
    allocator_free(a, run);
}

size_t run_kept(const struct run *run)
{
    return slab_size(&run->slab) + pool_held(&run->pool) + pool_held(&run->device_pool);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

tssa_status *executor_run_kernel(struct run *run, const struct step *step)
{
    return executor_call_kernel(run, &run->env, step);
}

tssa_status *executor_run_and_bind(struct run *run, const struct step *step)
{
    TRY(step->compute(run, step));
    bindings_read(run, step->binds);
    return NULL;
}

static size_t note_pooled(struct pool *pool, struct slab_part *part, const struct step *step)
{
    const size_t most = pool->peak_bytes;
    if (most > part->layout.pooled[step->index])
        part->layout.pooled[step->index] = most;
    pool->peak_bytes = pool->used_bytes;
    return most;
}

/* What values need while the step runs, what its kernel needs on the way included. */
static void note_memory(struct run *run, const struct step *step)
{
    struct slab_part *parts = run->slab.parts;
    size_t live = slab_live(&run->slab, step->index);
    live += note_pooled(&run->pool, &parts[SPACE_HOST], step);
    if (run->plan->n_spaces > 1)
        live += note_pooled(&run->device_pool, &parts[SPACE_DEVICE], step);
    if (run->profile && live > run->memory.live)
        run->memory.live = live;
}

static void begin_range(const struct device_context *device, const struct step *step)
{
    char name[256];
    if (!device->has_ranges)
        return;
    ir_op_describe(step->op, name, sizeof name);
    device->device->range_begin(device, name);
}

static tssa_status *run_profiled(struct run *run, const struct step *step)
{
    const struct device_context *device = run->plan->device;
    struct step_profile *profile = &run->profile[step->index];
    begin_range(device, step);
    uint64_t start = executor_now();
    tssa_status *status = step->run(run, step);
    profile->started = start;
    profile->nanoseconds += executor_now() - start;
    profile->count++;
    if (device->has_ranges)
        device->device->range_end(device);
    return status;
}

static tssa_status *run_watched(struct run *run, const struct step *step)
{
    tssa_status *status = run->profile ? run_profiled(run, step) : step->run(run, step);
    note_memory(run, step);
    return status;
}

static inline tssa_status *run_step(struct run *run, const struct step *step)
{
    TRY(executor_check_stop(run));
    tssa_status *status = run->watched ? run_watched(run, step) : step->run(run, step);
    if (__builtin_expect(status != NULL, 0))
        return ir_op_blame(status, step->op);
    return NULL;
}

/* What the step was the last to use; it need not have run. */
static inline void release_after(struct run *run, const struct step *step)
{
    for (uint32_t i = 0; i < step->n_release; i++)
        value_release(&run->slots[step->release[i]]);
}

static inline tssa_status *run_steps(struct run *run, const struct block_plan *block)
{
    const struct step *end = block->steps + block->n_steps;
    for (const struct step *step = block->steps; step < end; step++) {
        TRY(run_step(run, step));
        release_after(run, step);
    }
    return NULL;
}

tssa_status *executor_run_steps(struct run *run, const struct block_plan *block)
{
    return run_steps(run, block);
}

tssa_status *executor_run_block(struct run *run, const struct block_plan *block)
{
    /* An endless loop may have no step in its body. */
    TRY(executor_check_stop(run));
    if (block->crossing)
        TRY(crossing_enter(run, block->crossing));
    if (block->crossing && block == run->plan->body)
        caller_device_set_mirrors(run);
    if (block->binds)
        bindings_read(run, block->binds);
    TRY(run_steps(run, block));
    return block->crossing ? crossing_leave(run, block->crossing) : NULL;
}

static tssa_status *run_needed(struct run *run)
{
    const struct block_plan *body = run->plan->body;
    TRY(executor_check_stop(run));
    if (body->crossing)
        caller_device_set_mirrors(run);
    for (uint32_t i = 0; i < body->n_steps; i++) {
        if (run->needed[i])
            TRY(run_step(run, &body->steps[i]));
        release_after(run, &body->steps[i]);
    }
    return body->crossing ? crossing_leave(run, body->crossing) : NULL;
}

void executor_bind(struct run *run, const struct block_plan *block, uint32_t param,
                   struct value *value)
{
    if (block->params[param] == SLOT_NONE)
        value_release(value);
    else
        value_move(&run->slots[block->params[param]], value);
}

void executor_take(struct run *run, const struct block_plan *block, uint32_t index,
                   struct value *value)
{
    const struct plan_return *from = &block->returns[index];
    if (from->move)
        value_move(value, &run->slots[from->slot]);
    else
        value_copy(value, &run->slots[from->slot]);
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static const char *name_of(const struct ir_value *value)
{
    return value->name ? value->name : "";
}

static tssa_status *bind_dim(struct run *run, const struct ir_value *param, int axis,
                             int64_t actual)
{
    const struct dim *dim = param->type->dims[axis];
    int64_t wanted;
    int symbol = plan_symbol(run->plan, dim);
    if (symbol >= 0 && !run->bound[symbol]) {
        run->bound[symbol] = true;
        run->symbols[symbol] = actual;
        return NULL;
    }
    if (symbol >= 0)
        wanted = run->symbols[symbol];
    else if (!dim_is_const(dim, &wanted))
        return NULL;
    if (wanted == actual)
        return NULL;
    if (symbol >= 0)
        return ERROR(TSSA_SHAPE_MISMATCH,
                     "input \"%s\": dim %d (%s) is %" PRId64 " but another input says %" PRId64,
                     name_of(param), axis, dim->name, actual, wanted);
    return ERROR(TSSA_SHAPE_MISMATCH,
                 "input \"%s\": dim %d is %" PRId64 " but the model declares %" PRId64,
                 name_of(param), axis, actual, wanted);
}

static tssa_status *check_tensor(struct run *run, const struct ir_value *param,
                                 const struct tensor *tensor)
{
    const struct ir_type *type = param->type;
    if (type->dtype != TSSA_UNDEFINED && type->dtype != tensor->dtype)
        return ERROR(TSSA_SHAPE_MISMATCH, "input \"%s\": the type is %s but the model declares %s",
                     name_of(param), tssa_dtype_name(tensor->dtype), tssa_dtype_name(type->dtype));
    if (type->rank < 0)
        return NULL;
    if (type->rank != tensor->rank)
        return ERROR(TSSA_SHAPE_MISMATCH, "input \"%s\": the rank is %d but the model declares %d",
                     name_of(param), tensor->rank, type->rank);
    for (int i = 0; i < type->rank; i++)
        TRY(bind_dim(run, param, i, tensor->dims[i]));
    return NULL;
}

static tssa_status *check_kind(const struct ir_value *param, const struct ir_type *type,
                               tssa_kind kind)
{
    static const tssa_kind kinds[] = {[TYPE_TENSOR] = TSSA_KIND_TENSOR,
                                      [TYPE_SEQUENCE] = TSSA_KIND_SEQUENCE,
                                      [TYPE_MAP] = TSSA_KIND_MAP};
    static const char *const names[] = {"nothing", "a tensor", "a sequence", "a map"};
    if (type->kind == TYPE_OPTIONAL && kind == TSSA_KIND_NONE)
        return NULL;
    while (type->kind == TYPE_OPTIONAL)
        type = type->element;
    if (type->kind == TYPE_UNKNOWN || type->kind == TYPE_OPAQUE || kinds[type->kind] == kind)
        return NULL;
    return ERROR(TSSA_SHAPE_MISMATCH, "input \"%s\" is %s where the model declares %s",
                 name_of(param), names[kind], names[kinds[type->kind]]);
}

/* What inference takes for granted of the elements of a sequence: element type, rank, and dims that
 * are numbers. */
static tssa_status *check_element(const struct ir_value *param, const struct ir_type *type,
                                  const struct value *value)
{
    int64_t wanted;
    bool good = type->kind != TYPE_TENSOR || value->kind == TSSA_KIND_TENSOR;
    if (type->kind == TYPE_TENSOR && good) {
        const struct tensor *tensor = &value->tensor;
        good = type->dtype == TSSA_UNDEFINED || type->dtype == tensor->dtype;
        good &= type->rank < 0 || type->rank == tensor->rank;
        for (int i = 0; good && i < type->rank; i++)
            good = !dim_is_const(type->dims[i], &wanted) || wanted == tensor->dims[i];
    }
    if (good)
        return NULL;
    char have[160];
    value_describe(value, have, sizeof have);
    return ERROR(TSSA_SHAPE_MISMATCH,
                 "input \"%s\": an element is %s, which the model does not declare", name_of(param),
                 have);
}

static tssa_status *check_sequence(const struct ir_value *param, const struct value *value)
{
    const struct ir_type *type = param->type;
    while (type->kind == TYPE_OPTIONAL)
        type = type->element;
    if (type->kind != TYPE_SEQUENCE)
        return NULL;
    for (size_t i = 0; i < sequence_length(value->sequence); i++)
        TRY(check_element(param, type->element, sequence_element(value->sequence, i)));
    return NULL;
}

static tssa_status *bind_input(struct run *run, uint32_t index, const struct value *input)
{
    const struct ir_value *param = run->plan->graph->body->params[index];
    const struct tensor *fallback = run->plan->defaults[index];
    struct value value = {.kind = TSSA_KIND_NONE};
    if (input) {
        value_copy(&value, input);
    } else if (fallback) {
        value = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = *fallback};
        value.tensor.owner = NULL; /* the plan outlives the run */
    } else if (param->type->kind != TYPE_OPTIONAL) {
        return ERROR(TSSA_INVALID_ARGUMENT, "input \"%s\" is missing", name_of(param));
    }
    tssa_status *status = check_kind(param, param->type, value.kind);
    if (!status && value.kind == TSSA_KIND_TENSOR && param->type->kind == TYPE_TENSOR)
        status = check_tensor(run, param, &value.tensor);
    else if (!status && value.kind == TSSA_KIND_TENSOR && param->type->kind == TYPE_OPTIONAL)
        status = check_element(param, param->type->element, &value);
    else if (!status && value.kind == TSSA_KIND_SEQUENCE)
        status = check_sequence(param, &value);
    if (status) {
        value_release(&value);
        return status;
    }
    if (value.kind == TSSA_KIND_TENSOR) {
        /* Borrowed, so that no output can share the caller's storage. */
        buffer_release(value.tensor.owner);
        value.tensor.owner = NULL;
        if (run->inputs_there[index])
            value.tensor.data = NULL;
    }
    executor_bind(run, run->plan->body, index, &value);
    return NULL;
}

static tssa_status *bind_inputs(struct run *run, const struct value *const *inputs)
{
    const struct plan *plan = run->plan;
    memset(run->bound, 0, plan->n_input_symbols * sizeof *run->bound);
    for (uint32_t i = 0; i < plan->body->n_params; i++)
        TRY(bind_input(run, i, inputs[i]));
    return NULL;
}

tssa_status *executor_begin_again(struct run *run, const struct value *const *inputs)
{
    release_slots(run, 0);
    TRY(bind_inputs(run, inputs));
    return caller_device_fetch(run);
}

/* ---- Outputs --------------------------------------------------------------------------------- */

static void offer_outputs(struct run *run, const struct value *outputs)
{
    const struct plan *plan = run->plan;
    for (uint32_t i = 0; i < plan->n_results; i++) {
        const struct value *out = &outputs[plan->results[i].result];
        struct kernel_place *place = &run->places[plan->results[i].output];
        bool given = out->kind == TSSA_KIND_TENSOR && !run->outputs_there[plan->results[i].result];
        place->data = given ? out->tensor.data : NULL;
        place->size = given ? tensor_bytes(&out->tensor) : 0;
    }
}

tssa_status *executor_check_output(const struct value *result, const struct tensor *out,
                                   uint32_t index)
{
    const struct tensor *tensor = &result->tensor;
    char have[160], want[160];
    if (result->kind != TSSA_KIND_TENSOR)
        return ERROR(TSSA_SHAPE_MISMATCH, "output %u is no tensor but memory for one was given",
                     (unsigned)index);
    if (tensor->dtype != out->dtype || tensor->dtype == TSSA_STRING ||
        !tensor_same_shape(tensor, out)) {
        tensor_describe(tensor, have, sizeof have);
        tensor_describe(out, want, sizeof want);
        return ERROR(TSSA_SHAPE_MISMATCH, "output %u is %s but memory for %s was given",
                     (unsigned)index, have, want);
    }
    return NULL;
}

static tssa_status *fill_output(const struct value *result, struct tensor *out, uint32_t index)
{
    const struct tensor *tensor = &result->tensor;
    TRY(executor_check_output(result, out, index));
    size_t bytes = tensor_bytes(tensor);
    if (tensor->data != out->data && bytes)
        memmove(out->data, tensor->data, bytes);
    return NULL;
}

/* What was made for more than its result has come to, elements that a mask keeps say. The caller
 * would hold all of it, and the next run get new memory from the system. */
#define MUCH_ROOM (1 << 20)
/* The same where the copy is small: glibc gives so much back to the system. */
#define SOME_ROOM (1 << 17)

static bool is_roomy(const struct buffer *buffer, const struct tensor *tensor)
{
    const size_t bytes = tensor_bytes(tensor), size = buffer->size;
    return (size >= MUCH_ROOM && size - size / 4 > bytes) ||
           (size >= SOME_ROOM && size / 8 > bytes);
}

/* A pool buffer that nobody else holds leaves the run as it is where it can; everything else is
 * copied. */
static tssa_status *detach_output(struct run *run, struct value *result, struct value *out)
{
    struct buffer *owner = result->kind == TSSA_KIND_TENSOR ? result->tensor.owner : NULL;
    if (owner && owner->pool && result->tensor.dtype != TSSA_STRING &&
        atomic_load_explicit(&owner->references, memory_order_acquire) == 1 &&
        !is_roomy(owner, &result->tensor) && buffer_leave_pool(owner)) {
        value_move(out, result);
        return NULL;
    }
    return value_detach(run->allocator, result, out);
}

static tssa_status *take_output(struct run *run, uint32_t index, bool given, bool wanted,
                                struct value *out)
{
    struct value result;
    tssa_status *status = NULL;
    executor_take(run, run->plan->body, index, &result);
    if (wanted && run->outputs_there[index])
        status = caller_device_take(run, index, &result);
    else if (wanted)
        status =
            given ? fill_output(&result, &out->tensor, index) : detach_output(run, &result, out);
    value_release(&result);
    return status;
}

static tssa_status *take_outputs(struct run *run, struct value *outputs, const bool *wanted)
{
    const struct block_plan *body = run->plan->body;
    tssa_status *status = NULL;
    uint32_t i;
    for (i = 0; !status && i < body->n_returns; i++) {
        run->given[i] = outputs[i].kind != TSSA_KIND_NONE;
        status = take_output(run, i, run->given[i], !wanted || wanted[i], &outputs[i]);
    }
    while (status && i-- > 0)
        if (!run->given[i])
            value_release(&outputs[i]);
    return status;
}

/* run->needed; a caller who wants the same as before, as most do, has it found once. */
static tssa_status *find_needed(struct run *run, const bool *wanted)
{
    const struct block_plan *body = run->plan->body;
    const size_t size = body->n_returns * sizeof *wanted;
    if (run->wanted && memcmp(run->wanted, wanted, size) == 0)
        return NULL;
    if (!run->needed)
        run->needed = allocator_calloc(run->allocator, body->n_steps + 1u, sizeof *run->needed);
    TRY_ALLOC(run->needed);
    allocator_free(run->allocator, run->wanted);
    run->wanted = NULL;
    TRY(plan_needed(run->plan, wanted, run->allocator, run->needed));
    run->wanted = allocator_alloc(run->allocator, size + 1);
    TRY_ALLOC(run->wanted);
    memcpy(run->wanted, wanted, size);
    return NULL;
}

tssa_status *run_execute_some(struct run *run, const struct value *const *inputs,
                              struct value *outputs, const bool *wanted)
{
    tssa_status *status = wanted ? find_needed(run, wanted) : NULL;
    if (!status)
        status = bind_inputs(run, inputs);
    if (!status)
        status = slab_prepare(run);
    if (!status)
        status = caller_device_follow(run);
    if (!status)
        status = caller_device_fetch(run);
    run->memory.live = 0;
    run->watched = run->profile || slab_watches(run);
    crossing_begin(run);
    recorded_begin(run);
    run->caller_outputs = outputs;
    if (!status) {
        slab_offer(run, outputs);
        offer_outputs(run, outputs);
        status = wanted ? run_needed(run) : recorded_run_body(run, inputs);
    }
    status = crossing_wait(run, status);
    if (!status)
        status = take_outputs(run, outputs, wanted);
    /* Mirrors have no last use of their own; and nothing of a replay has one. */
    if (status || run->plan->n_spaces > 1)
        release_slots(run, status || recorded_replayed(run) ? 0 : run->plan->n_values);
    arena_clear(&run->strings);
    run->memory.held = slab_size(&run->slab) + run->pool.peak_held + run->device_pool.peak_held;
    pool_trim(&run->pool);
    crossing_end(run);
    return status;
}

tssa_status *run_execute(struct run *run, const struct value *const *inputs, struct value *outputs)
{
    return run_execute_some(run, inputs, outputs, NULL);
}
