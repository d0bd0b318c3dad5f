/* SPDX-License-Identifier: Apache-2.0 */
/* See crossing.h. */
#include "runtime/crossing.h"

#include <string.h>

#include "runtime/caller_device.h"
#include "runtime/recorded.h"

/* ---- A run's part of the device -------------------------------------------------------------- */

static void *allocate(void *user, size_t size)
{
    struct device_stream *stream = user;
    return stream->context->device->allocate(stream, size);
}

static void release(void *user, void *memory, size_t size)
{
    struct device_stream *stream = user;
    stream->context->device->release(stream, memory, size);
}

static bool find_dim(const struct kernel_sizes *sizes, const struct dim *dim, int64_t *value)
{
    const struct run *run = (const struct run *)((const char *)sizes - offsetof(struct run, sizes));
    return plan_dim(run->plan, run->symbols, run->plan->n_symbols, dim, value);
}

tssa_status *crossing_open(struct run *run)
{
    struct device_context *context = run->plan->device;
    if (run->plan->n_spaces == 1)
        return NULL;
    TRY(context->device->stream_open(context, &run->streams[SPACE_DEVICE]));
    const struct buffer_space space = {run->streams[SPACE_DEVICE], allocate, release};
    pool_init_in(&run->device_pool, run->allocator, &space);
    run->sizes.dim = find_dim;
    run->device_env = run->env;
    run->device_env.pool = &run->device_pool;
    run->device_env.stream = run->streams[SPACE_DEVICE];
    run->device_env.sizes = &run->sizes;
    return NULL;
}

void crossing_close(struct run *run)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    if (!stream)
        return;
    pool_clear(&run->device_pool);
    stream->context->device->stream_close(stream);
}

static void forget_symbols(struct run *run)
{
    for (uint32_t i = run->plan->n_input_symbols; i < run->plan->n_symbols; i++)
        run->symbols[i] = -1;
}

void crossing_begin(struct run *run)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    if (run->plan->n_spaces == 1)
        return;
    stream->stop = run->stop;
    stream->cancel = run->cancel;
    forget_symbols(run);
}

/* Not where the caller's stream waits instead. After a failure as well: what the device has to say
 * of this run is not the next one's. */
tssa_status *crossing_wait(struct run *run, tssa_status *status)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    if (!status && caller_device_leads(run))
        return NULL;
    tssa_status *late = stream ? stream->context->device->stream_wait(stream) : NULL;
    if (!status)
        return late;
    tssa_status_free(late);
    return status;
}

void crossing_end(struct run *run)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    if (!stream)
        return;
    stream->stop = stream->cancel = NULL;
    run->counts = stream->counts;
    stream->counts = (struct device_counts){0};
    if (!recorded_keeps_pool(run))
        pool_trim(&run->device_pool);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static struct device_place place_of(const struct tensor *tensor)
{
    return (struct device_place){tensor->data, tensor->offset};
}

/* One integer or bool is read by itself: control flow waits for it. */
static tssa_status *copy_out(struct device_stream *stream, const struct tensor *from, void *to)
{
    const struct device *device = stream->context->device;
    const struct device_place there = place_of(from), here = {to, 0};
    const bool is_whole = dtype_is_integer(from->dtype) || from->dtype == TSSA_BOOL;
    if (!is_whole || tensor_count(from) != 1)
        return device->copy(stream, DEVICE_COPY_OUT, here, there, tensor_bytes(from));
    int64_t scalar;
    TRY(device->read_scalar(stream, there, from->dtype, &scalar));
    dtype_store_int64(from->dtype, to, scalar);
    return NULL;
}

static tssa_status *copy_tensor(struct run *run, enum space space, const struct tensor *from,
                                const struct buffer *to)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    if (space == SPACE_HOST)
        return copy_out(stream, from, to->data);
    const struct device_place here = {from->data, 0}, there = {to->data, to->offset};
    return stream->context->device->copy(stream, DEVICE_COPY_IN, there, here, tensor_bytes(from));
}

/* Is it there, and not copied already? */
static bool is_due(const struct run *run, const struct plan_copy *copy)
{
    return run->slots[copy->from].kind == TSSA_KIND_TENSOR &&
           run->slots[copy->to].kind == TSSA_KIND_NONE;
}

static tssa_status *copy_value(struct run *run, const struct plan_copy *copy)
{
    struct value *from = &run->slots[copy->from], *to = &run->slots[copy->to];
    if (!is_due(run, copy))
        return NULL;
    struct pool *pool = copy->space == SPACE_HOST ? &run->pool : &run->device_pool;
    struct buffer *buffer = pool_alloc(pool, tensor_bytes(&from->tensor));
    TRY_ALLOC(buffer);
    *to = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = from->tensor};
    to->tensor.data = buffer->data;
    to->tensor.offset = buffer->offset;
    to->tensor.owner = buffer;
    return copy_tensor(run, copy->space, &from->tensor, buffer);
}

/* Of a run that is recorded the host reads nothing: conditions are the device's then
 * (control_recorded.h). */
static tssa_status *copy_all(struct run *run, const struct plan_copies *copies)
{
    const bool records = run->streams[SPACE_DEVICE]->records;
    for (uint32_t i = 0; i < copies->count; i++) {
        if (records && copies->items[i].space == SPACE_HOST)
            continue;
        if (copies->items[i].space == SPACE_HOST && is_due(run, &copies->items[i]))
            run->streams[SPACE_DEVICE]->counts.waits++;
        TRY(copy_value(run, &copies->items[i]));
        if (copies->items[i].release)
            value_release(&run->slots[copies->items[i].from]);
    }
    return NULL;
}

tssa_status *crossing_enter(struct run *run, const struct plan_crossing *crossing)
{
    for (uint32_t i = 0; i < crossing->n_mirrors; i++)
        value_release(&run->slots[crossing->mirrors[i]]);
    return copy_all(run, &crossing->entered);
}

/* What the graph returns may be wanted where it is. */
static tssa_status *return_all(struct run *run, const struct plan_copies *copies)
{
    for (uint32_t i = 0; i < copies->count; i++) {
        const struct plan_copy *copy = &copies->items[i];
        bool wanted;
        TRY(caller_device_return(run, &run->slots[copy->from], copy->to, &wanted));
        if (wanted)
            TRY(copy_value(run, copy));
        if (copy->release)
            value_release(&run->slots[copy->from]);
    }
    return NULL;
}

tssa_status *crossing_leave(struct run *run, const struct plan_crossing *crossing)
{
    if (crossing == run->plan->body->crossing)
        return return_all(run, &crossing->returned);
    return copy_all(run, &crossing->returned);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

tssa_status *crossing_run_kernel(struct run *run, const struct step *step)
{
    struct kernel_args args = executor_args(run, &run->device_env, step);
    if (step->on_host_recorded && run->streams[SPACE_DEVICE]->records)
        args.on_host = step->on_host_recorded;
    return step->kernel->run(&args);
}

tssa_status *crossing_run_step(struct run *run, const struct step *step)
{
    TRY(copy_all(run, &step->before));
    /* What it tells is not known before, though it was in the iteration before. */
    for (uint32_t i = 0; step->binds && i < step->binds->count; i++)
        run->symbols[step->binds->items[i].symbol] = -1;
    TRY(step->compute(run, step));
    TRY(copy_all(run, &step->after));
    if (step->binds)
        bindings_read(run, step->binds);
    return NULL;
}
