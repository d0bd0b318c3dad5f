/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/recording.h"

#include <string.h>

#include "runtime/control_recorded.h"
#include "runtime/crossing.h"

static const struct device *device_of(const struct run *run)
{
    return run->streams[SPACE_DEVICE]->context->device;
}

static const struct value *input_of(const struct run *run, uint32_t param)
{
    const uint32_t slot = run->plan->body->params[param];
    return slot == SLOT_NONE ? NULL : &run->slots[slot];
}

/* ---- What a state has ------------------------------------------------------------------------ */

static bool open_tables(const struct run *run, struct recorded *recorded)
{
    const struct plan *plan = run->plan;
    const tssa_allocator *a = run->allocator;
    const size_t n = bound_arguments(run) + 1u;
    recorded->inputs = allocator_calloc(a, plan->body->n_params + 1u, sizeof *recorded->inputs);
    recorded->seen = allocator_calloc(a, n, sizeof *recorded->seen);
    recorded->wanted = allocator_calloc(a, n, sizeof *recorded->wanted);
    recorded->symbols = allocator_calloc(a, plan->n_symbols + 1u, sizeof *recorded->symbols);
    bool good = recorded->inputs && recorded->seen && recorded->wanted && recorded->symbols;
    for (uint32_t i = 0; good && i < RECORDINGS; i++) {
        struct recording *recording = &recorded->recordings[i];
        recording->bound = allocator_calloc(a, n, sizeof *recording->bound);
        recording->returns =
            allocator_calloc(a, plan->body->n_returns + 1u, sizeof *recording->returns);
        good = recording->bound && recording->returns;
    }
    return good;
}

static void free_tables(const struct run *run, struct recorded *recorded)
{
    const tssa_allocator *a = run->allocator;
    for (uint32_t i = 0; i < RECORDINGS; i++) {
        allocator_free(a, recorded->recordings[i].bound);
        allocator_free(a, recorded->recordings[i].returns);
    }
    allocator_free(a, recorded->inputs);
    allocator_free(a, recorded->seen);
    allocator_free(a, recorded->wanted);
    allocator_free(a, recorded->symbols);
    allocator_free(a, recorded);
}

tssa_status *recording_open(struct run *run)
{
    struct recorded *recorded = allocator_calloc(run->allocator, 1, sizeof *recorded);
    TRY_ALLOC(recorded);
    if (!open_tables(run, recorded)) {
        free_tables(run, recorded);
        return status_out_of_memory();
    }
    run->recorded = recorded;
    return NULL;
}

void recording_close(struct run *run)
{
    if (!run->recorded)
        return;
    recording_drop_all(run);
    free_tables(run, run->recorded);
    run->recorded = NULL;
}

bool recording_any(const struct recorded *recorded)
{
    for (uint32_t i = 0; i < RECORDINGS; i++)
        if (recorded->recordings[i].made)
            return true;
    return false;
}

static bool has_shape(const struct run *run, uint32_t param)
{
    const struct value *value = input_of(run, param);
    const struct tensor *shape = &run->recorded->inputs[param].shape;
    return !value || (value->kind == TSSA_KIND_TENSOR && value->tensor.dtype == shape->dtype &&
                      tensor_same_shape(&value->tensor, shape));
}

static bool is_in_place(const struct run *run)
{
    const struct recorded *recorded = run->recorded;
    return recorded->layouts == run->slab.layouts && recorded->chunk == run->device_pool.chunk &&
           recorded->chunk_size == run->device_pool.size;
}

bool recording_fits(const struct run *run)
{
    bool same = is_in_place(run);
    for (uint32_t i = 0; same && i < run->plan->body->n_params; i++)
        same = has_shape(run, i);
    return same;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static bool is_copied(const struct run *run, const struct recording *recording, uint32_t param)
{
    return input_of(run, param) && crossing_mirrored(run->plan, run->plan->body->params[param]) &&
           !recording->bound[param].memory;
}

static tssa_status *keep_input(struct run *run, const struct recording *recording, uint32_t param)
{
    struct recorded_input *input = &run->recorded->inputs[param];
    const struct value *value = input_of(run, param);
    if (!value)
        return NULL;
    input->shape = value->tensor;
    input->shape.data = NULL;
    if (!is_copied(run, recording, param) || input->tensor.data)
        return NULL;
    input->size = tensor_bytes(&value->tensor);
    input->tensor = input->shape;
    input->tensor.data = device_of(run)->allocate(run->streams[SPACE_DEVICE], input->size);
    input->tensor.offset = 0;
    TRY_ALLOC(input->tensor.data);
    return NULL;
}

static tssa_status *copy_inputs(struct run *run, const struct recording *recording)
{
    for (uint32_t i = 0; i < run->plan->body->n_params; i++) {
        if (!is_copied(run, recording, i))
            continue;
        const struct recorded_input *input = &run->recorded->inputs[i];
        void *there = run->inputs_there[i];
        const struct device_place to = {input->tensor.data, 0},
                                  from = {there ? there : input_of(run, i)->tensor.data, 0};
        TRY(device_of(run)->copy(run->streams[SPACE_DEVICE],
                                 there ? DEVICE_COPY_WITHIN : DEVICE_COPY_IN, to, from,
                                 input->size));
    }
    return NULL;
}

/* The mirrors of the inputs are there, and nothing copies into them, or changes them. */
static void set_mirrors(struct run *run, const struct recording *recording)
{
    for (uint32_t i = 0; i < run->plan->body->n_params; i++) {
        const uint32_t slot = run->plan->body->params[i];
        if (slot == SLOT_NONE || !crossing_mirrored(run->plan, slot))
            continue;
        struct tensor *mirror = &run->slots[run->plan->n_values + slot].tensor;
        run->slots[run->plan->n_values + slot].kind = TSSA_KIND_TENSOR;
        *mirror = run->recorded->inputs[i].shape;
        mirror->data = recording->bound[i].memory ? recording->bound[i].memory
                                                  : run->recorded->inputs[i].tensor.data;
        mirror->offset = 0;
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
static tssa_status *keep_returns(struct run *run, struct recording *recording)
{
    for (uint32_t i = 0; i < run->plan->body->n_returns; i++) {
        const struct value *value = slot_of(run, i);
        struct value *kept = &recording->returns[i];
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

/* Not in the recording's own memory: who gets a result may write to it. */
void recording_set_returns(struct run *run, const struct recording *recording)
{
    for (uint32_t i = 0; i < run->plan->body->n_returns; i++) {
        struct value *value = slot_of(run, i);
        if (is_constant(run, i))
            continue;
        value_release(value);
        value_copy(value, &recording->returns[i]);
        if (value->kind == TSSA_KIND_TENSOR && value->tensor.owner) {
            buffer_release(value->tensor.owner);
            value->tensor.owner = NULL;
        }
    }
}

/* What a Loop has stacked whose end the device has found is as long as that says, when it is done.
 */
static tssa_status *read_counts(struct run *run)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    const struct ir_op *end = ir_block_return(run->plan->body->block);
    for (uint32_t i = 0; i < run->plan->body->n_returns; i++) {
        struct value *value = slot_of(run, i);
        if (is_constant(run, i) || value->kind != TSSA_KIND_TENSOR ||
            !control_is_stacked(run->plan, ir_operand(end, i)))
            continue;
        stream->counts.waits++;
        TRY(device_of(run)->read_scalar(stream, control_stacked_count(&value->tensor), TSSA_INT64,
                                        &value->tensor.dims[0]));
    }
    return NULL;
}

/* ---- Making one ------------------------------------------------------------------------------ */

static tssa_status *record_steps(struct run *run, struct recording *recording)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    TRY(crossing_enter(run, run->plan->body->crossing));
    set_mirrors(run, recording);
    TRY(device_of(run)->record_begin(stream));
    bound_begin(run, recording->bound);
    tssa_status *status = executor_run_steps(run, run->plan->body);
    bound_end(run, recording->bound);
    tssa_status *end = device_of(run)->record_end(stream, &recording->made);
    if (!status)
        return end;
    tssa_status_free(end);
    return status;
}

/* What the device counts is not told here: of that, what the layout is for. */
static void keep_symbols(const struct run *run)
{
    int64_t *symbols = run->recorded->symbols;
    for (uint32_t i = 0; i < run->plan->n_symbols; i++)
        symbols[i] = run->symbols[i] < 0 ? run->slab.symbols[i] : run->symbols[i];
}

static void keep_place(const struct run *run)
{
    struct recorded *recorded = run->recorded;
    recorded->layouts = run->slab.layouts;
    recorded->chunk = run->device_pool.chunk;
    recorded->chunk_size = run->device_pool.size;
}

static tssa_status *record(struct run *run, struct recording *recording)
{
    for (uint32_t i = 0; i < run->plan->body->n_params; i++)
        TRY(keep_input(run, recording, i));
    TRY(record_steps(run, recording));
    TRY(keep_returns(run, recording));
    keep_symbols(run);
    return NULL;
}

tssa_status *recording_make(struct run *run, struct recording *recording)
{
    struct recorded *recorded = run->recorded;
    const bool first = !recording_any(recorded);
    memcpy(recording->bound, recorded->wanted, bound_arguments(run) * sizeof *recording->bound);
    tssa_status *status = record(run, recording);
    /* What has memory of its own may be gone before the next run; and where the others work. */
    const bool settled = run->device_pool.apart_bytes == 0 && (first || is_in_place(run));
    if (status) {
        recording_drop(run, recording);
    } else if (!settled) {
        recording_drop_all(run);
        status = ERROR(TSSA_OUT_OF_MEMORY, "the pool is too small for what is recorded");
    } else {
        keep_place(run);
        recording->used = recorded->runs;
    }
    return status;
}

/* ---- Replays --------------------------------------------------------------------------------- */

/* What the run would have told, so that the layout is not taken for too large. */
static void tell_symbols(struct run *run)
{
    const struct plan *plan = run->plan;
    memcpy(run->symbols, run->recorded->symbols, plan->n_symbols * sizeof *run->symbols);
    for (uint32_t i = plan->n_input_symbols; i < plan->n_symbols; i++)
        if (run->slab.most[i] < run->symbols[i])
            run->slab.most[i] = run->symbols[i];
}

tssa_status *recording_replay(struct run *run, const struct recording *recording)
{
    tell_symbols(run);
    TRY(copy_inputs(run, recording));
    TRY(executor_check_stop(run));
    TRY(device_of(run)->replay(run->streams[SPACE_DEVICE], recording->made));
    return read_counts(run);
}

/* ---- Giving back ----------------------------------------------------------------------------- */

static bool is_wanted(const struct run *run, uint32_t param)
{
    const struct recording *recordings = run->recorded->recordings;
    for (uint32_t i = 0; i < RECORDINGS; i++)
        if (recordings[i].made && !recordings[i].bound[param].memory)
            return true;
    return false;
}

/* Memory that no recording wants an input copied to. */
static void free_inputs(struct run *run)
{
    for (uint32_t i = 0; i < run->plan->body->n_params; i++) {
        struct recorded_input *input = &run->recorded->inputs[i];
        if (!input->tensor.data || is_wanted(run, i))
            continue;
        device_of(run)->release(run->streams[SPACE_DEVICE], input->tensor.data, input->size);
        input->tensor.data = NULL;
    }
}

void recording_drop(struct run *run, struct recording *recording)
{
    device_of(run)->recording_free(run->streams[SPACE_DEVICE], recording->made);
    recording->made = NULL;
    for (uint32_t i = 0; i < run->plan->body->n_returns; i++)
        value_release(&recording->returns[i]);
    free_inputs(run);
}

void recording_drop_all(struct run *run)
{
    for (uint32_t i = 0; i < RECORDINGS; i++)
        recording_drop(run, &run->recorded->recordings[i]);
}
