/* SPDX-License-Identifier: Apache-2.0 */
#include "common/shadow_device.h"

#include <string.h>

/* What a handle is: its bytes are somewhere else, so that a handle that is taken for a pointer
 * shows. */
struct shadow_memory {
    unsigned char *bytes;
    size_t size;
};

static void *allocate(struct device_stream *stream, size_t size)
{
    const tssa_allocator *a = stream->context->allocator;
    struct shadow_memory *memory = allocator_alloc(a, sizeof *memory);
    if (!memory)
        return NULL;
    *memory = (struct shadow_memory){allocator_alloc_aligned(a, size, TENSOR_ALIGNMENT), size};
    if (!memory->bytes) {
        allocator_free(a, memory);
        return NULL;
    }
    memset(memory->bytes, 0xff, size);
    return memory;
}

static void release(struct device_stream *stream, void *handle, size_t size)
{
    struct shadow_memory *memory = handle;
    (void)size;
    if (memory)
        allocator_free(stream->context->allocator, memory->bytes);
    allocator_free(stream->context->allocator, memory);
}

/* NULL when that is outside. */
static unsigned char *bytes_at(struct device_place place, size_t size)
{
    const struct shadow_memory *memory = place.memory;
    const bool inside = place.offset <= memory->size && size <= memory->size - place.offset;
    return inside ? memory->bytes + place.offset : NULL;
}

static tssa_status *copy(struct device_stream *stream, enum device_copy kind,
                         struct device_place to, struct device_place from, size_t size)
{
    unsigned char *target =
        kind == DEVICE_COPY_OUT ? (unsigned char *)to.memory + to.offset : bytes_at(to, size);
    unsigned char *source =
        kind == DEVICE_COPY_IN ? (unsigned char *)from.memory + from.offset : bytes_at(from, size);
    (void)stream;
    if (size && (!target || !source))
        return ERROR(TSSA_RUNTIME, "a copy outside of the device's memory");
    if (size)
        memcpy(target, source, size);
    return NULL;
}

static tssa_status *fill(struct device_stream *stream, struct device_place to, unsigned char byte,
                         size_t size)
{
    (void)stream;
    if (size)
        memset(bytes_at(to, size), byte, size);
    return NULL;
}

static tssa_status *read_scalar(struct device_stream *stream, struct device_place from,
                                tssa_dtype dtype, int64_t *value)
{
    (void)stream;
    *value = dtype_load_int64(dtype, bytes_at(from, tssa_dtype_size(dtype)));
    return NULL;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

/* The CPU's, and its state. */
struct shadow_kernel {
    const struct kernel *kernel;
    const void *state;
    const tssa_allocator *allocator;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct shadow_kernel *shadow = ARENA_NEW(setup->arena, struct shadow_kernel);
    TRY_ALLOC(shadow);
    shadow->kernel = device_find(NULL)->find_kernel(op);
    shadow->allocator = setup->context->allocator;
    const struct kernel_setup host = {setup->arena, setup->context->host, setup->tally};
    *state = shadow;
    return kernel_prepare(shadow->kernel, op, &host, &shadow->state);
}

static void release_kernel(const void *state)
{
    const struct shadow_kernel *shadow = state;
    kernel_release(shadow->kernel, shadow->state);
}

#define MOST_VALUES 64

/* Arguments as the CPU's kernels want them. */
struct shadow_call {
    struct value inputs[MOST_VALUES], outputs[MOST_VALUES];
    const struct value *input_pointers[MOST_VALUES];
    struct value *output_pointers[MOST_VALUES];
};

static void *data_of(const struct kernel_args *args, uint32_t index)
{
    const struct tensor *tensor = &args->inputs[index]->tensor;
    if (args->on_host[index])
        return tensor->data;
    return bytes_at((struct device_place){tensor->data, tensor->offset}, tensor_bytes(tensor));
}

static void open_call(const struct kernel_args *args, struct shadow_call *call)
{
    for (uint32_t i = 0; i < args->n_inputs; i++) {
        call->input_pointers[i] = NULL;
        if (!args->inputs[i])
            continue;
        call->inputs[i] = *args->inputs[i];
        call->inputs[i].tensor.data = data_of(args, i);
        call->inputs[i].tensor.offset = 0;
        call->inputs[i].tensor.owner = NULL;
        call->input_pointers[i] = &call->inputs[i];
    }
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        call->outputs[i].kind = TSSA_KIND_NONE;
        call->output_pointers[i] = args->outputs[i] ? &call->outputs[i] : NULL;
    }
}

/* Into the memory that the run has for it; an update takes its operand's. */
static tssa_status *keep_output(struct kernel_args *args, struct shadow_call *call, uint32_t i)
{
    const struct tensor *from = &call->outputs[i].tensor;
    struct tensor *to;
    const bool update = i == 0 && (args->op->info->flags & IR_UPDATE) != 0;
    if (!update || !kernel_take(args, 0, 0, &to))
        TRY(kernel_output(args, i, from->dtype, from->rank, from->dims, &to));
    const struct device_place place = {to->data, to->offset};
    return copy(NULL, DEVICE_COPY_IN, place, (struct device_place){from->data, 0},
                tensor_bytes(from));
}

static tssa_status *compute(struct kernel_args *args, struct shadow_call *call,
                            struct kernel_env *env)
{
    const struct shadow_kernel *shadow = args->state;
    struct kernel_args host = {.env = env,
                               .state = shadow->state,
                               .op = args->op,
                               .n_inputs = args->n_inputs,
                               .n_outputs = args->n_outputs,
                               .inputs = call->input_pointers,
                               .outputs = call->output_pointers};
    TRY(shadow->kernel->run(&host));
    const struct tensor *first = &call->outputs[0].tensor;
    if (args->op->info->flags & IR_ALIAS) /* the CPU's kernel says what the view looks like */
        return kernel_share(args, 0, 0, first->rank, first->dims);
    for (uint32_t i = 0; i < args->n_outputs; i++)
        if (args->outputs[i])
            TRY(keep_output(args, call, i));
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    const struct shadow_kernel *shadow = args->state;
    struct shadow_call call;
    struct pool pool;
    struct arena strings;
    pool_init(&pool, shadow->allocator);
    arena_init(&strings, shadow->allocator);
    struct kernel_env env = {.pool = &pool, .strings = &strings, .team = args->env->team};
    open_call(args, &call);
    tssa_status *status = compute(args, &call, &env);
    for (uint32_t i = 0; i < args->n_outputs; i++)
        value_release(&call.outputs[i]);
    arena_clear(&strings);
    pool_clear(&pool);
    return status;
}

/* ---- The table ------------------------------------------------------------------------------- */

static bool suits(const struct ir_value *value)
{
    return !value || (value->type->kind == TYPE_TENSOR && value->type->dtype != TSSA_UNDEFINED &&
                      value->type->dtype != TSSA_STRING);
}

static const struct kernel *find_kernel(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run, .release = release_kernel};
    bool good = op->n_operands <= MOST_VALUES && op->n_results <= MOST_VALUES && !op->n_blocks &&
                op->info->cls != IR_CLASS_SEQUENCE && device_find(NULL)->find_kernel(op);
    for (uint32_t i = 0; good && i < op->n_operands; i++)
        good = suits(ir_operand(op, i));
    for (uint32_t i = 0; good && i < op->n_results; i++)
        good = !op->results[i].wanted || suits(&op->results[i]);
    return good ? &kernel : NULL;
}

static const struct kernel *find_some_kernels(const struct ir_op *op)
{
    return op->id % 3 == 1 ? NULL : find_kernel(op);
}

static void close(struct device_context *context)
{
    (void)context;
}

static struct device devices[2];

static void make_devices(void)
{
    devices[0] = *device_find(NULL); /* streams as the CPU's: nothing is ever under way */
    devices[0].name = "shadow";
    devices[0].is_host = false;
    devices[0].alignment = 128;
    devices[0].find_kernel = find_kernel;
    devices[0].library = NULL;
    devices[0].close = close;
    devices[0].allocate = allocate;
    devices[0].release = release;
    devices[0].copy = copy;
    devices[0].fill = fill;
    devices[0].read_scalar = read_scalar;
    devices[1] = devices[0];
    devices[1].find_kernel = find_some_kernels;
}

const struct device *shadow_device(bool lacks)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_devices);
    return &devices[lacks];
}
