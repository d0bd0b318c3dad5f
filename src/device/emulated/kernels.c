/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulated device: memory of its own, which handles and offsets reach and nobody's pointers,
 * and the host's kernels, so that what is computed on it, through copies, is the host's to the bit.
 * It takes and fuses what `null` does, and counts the same things (count.h), of the data that
 * it has.
 *
 * Of a loop that `null` has one launch for, a run does the iterations (emulated_can).
 *
 * A step computes in the host's memory, and copies what it came to into the device's.
 */
#include <string.h>

#include "device/count.h"
#include "device/devices.h"
#include "device/emulated/memory.h"
#include "device/emulated/program.h"
#include "device/library_op.h"
#include "device/memory.h"
#include "ir/fuse.h"
#include "ir/memory.h"
#include "ir/update.h"

struct state {
    struct emulated_program program;
    bool asks_library;
    struct library_op library;
    const uint32_t *updates; /* of a fuse op (count.h) */
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct state *made = ARENA_NEW(setup->arena, struct state);
    const struct kernel_setup host = {.arena = setup->arena,
                                      .context = setup->context->host,
                                      .tally = setup->tally,
                                      .graph = setup->graph};
    TRY_ALLOC(made);
    made->asks_library = library_asks(&null_device, op);
    if (made->asks_library)
        TRY(library_op_decode(op, &made->library));
    TRY(count_find_updates(op, setup->arena, &made->updates));
    TRY(emulated_program_make(op, &host, &made->program));
    *state = made;
    return NULL;
}

static void release(const void *state)
{
    emulated_program_free(&((const struct state *)state)->program);
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* The operands as the host's kernels want them, which own nothing. */
static tssa_status *lend_inputs(const struct kernel_args *args, struct value *values)
{
    for (uint32_t i = 0; i < args->n_inputs; i++) {
        if (!args->inputs[i])
            continue;
        struct tensor *tensor = &values[i].tensor;
        values[i] = *args->inputs[i];
        tensor->owner = NULL;
        if (args->on_host[i])
            continue;
        const struct device_place place = {tensor->data, tensor->offset};
        tensor->data = emulated_bytes(place, tensor_bytes(tensor));
        tensor->offset = 0;
        if (!tensor->data)
            return ERROR(TSSA_RUNTIME, "operand %u is not all in the device's memory", (unsigned)i);
    }
    return NULL;
}

/* Into the memory that the run has for it, or that of operand `operand`, if that can be taken. */
static tssa_status *keep(struct kernel_args *args, uint32_t index, const struct tensor *from,
                         uint32_t operand, bool *taken)
{
    struct tensor *to;
    *taken = operand != UINT32_MAX && kernel_take(args, index, operand, &to);
    if (!*taken)
        TRY(kernel_output(args, index, from->dtype, from->rank, from->dims, &to));
    const size_t size = tensor_bytes(from);
    unsigned char *bytes = emulated_bytes((struct device_place){to->data, to->offset}, size);
    if (!bytes)
        return ERROR(TSSA_RUNTIME, "result %u is not all in the device's memory", (unsigned)index);
    memcpy(bytes, from->data, size);
    return NULL;
}

/* ---- Counting -------------------------------------------------------------------------------- */

/* What this step tells is told when it is done. */
static bool known_dim(const struct kernel_args *args, const struct dim *dim, int64_t *value)
{
    return args->env->sizes->dim(args->env->sizes, dim, value);
}

static tssa_status *count(const struct kernel_args *args)
{
    const struct state *state = args->state;
    struct device_counts *counts = &args->env->stream->counts;
    struct library_problem problem;
    bool one = false;
    count_bytes(args, state->updates, known_dim);
    TRY(count_wait(args));
    if (state->asks_library)
        TRY(library_op_problem(&state->library, args, &problem, &one));
    counts->library_calls += one;
    counts->launches += !one;
    return NULL;
}

/* ---- Running --------------------------------------------------------------------------------- */

static tssa_status *keep_all(struct kernel_args *args, const struct value *values)
{
    const struct emulated_program *program = &((const struct state *)args->state)->program;
    const enum ir_memory memory = ir_result_memory(args->op, 0, 0);
    const struct tensor *first = &values[program->outputs[0]].tensor;
    if (ir_op_is_name(args->op)) /* the host's kernel says what the view looks like */
        return kernel_share(args, 0, 0, first->rank, first->dims);
    const uint32_t *fused = ((const struct state *)args->state)->updates;
    bool updates = false;
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        const uint32_t operand = fused                                   ? fused[i] - 1
                                 : i == 0 && memory == IR_MEMORY_UPDATED ? 0
                                                                         : UINT32_MAX;
        bool taken = false;
        if (args->outputs[i])
            TRY(keep(args, i, &values[program->outputs[i]].tensor, operand, &taken));
        if (fused && args->outputs[i] && operand != UINT32_MAX && !taken &&
            !ir_fuse_writes_all(args->op, i))
            count_copy_first(args, i);
        updates |= taken;
    }
    if (memory != IR_MEMORY_UPDATED)
        return count(args);
    count_update(args, updates || !args->outputs[0]);
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    const struct emulated_program *program = &((const struct state *)args->state)->program;
    struct pool pool;
    struct arena strings;
    struct value *values = allocator_calloc(program->allocator, program->n_values, sizeof *values);
    TRY_ALLOC(values);
    pool_init(&pool, program->allocator);
    arena_init(&strings, program->allocator);
    struct kernel_env env = {.pool = &pool, .strings = &strings, .team = args->env->team};
    tssa_status *status = lend_inputs(args, values);
    if (!status)
        status = emulated_program_run(program, &env, values);
    if (!status)
        status = keep_all(args, values);
    for (uint32_t i = 0; i < program->n_values; i++)
        value_release(&values[i]);
    allocator_free(program->allocator, values);
    arena_clear(&strings);
    pool_clear(&pool);
    return status;
}

/* ---- The device ------------------------------------------------------------------------------ */

static const struct kernel *find_kernel(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run, .release = release},
                               fused = {.prepare = prepare,
                                        .run = run,
                                        .release = release,
                                        .updates = count_updated};
    if (!null_device.find_kernel(op) || !emulated_can(op))
        return NULL;
    return ir_fuse_body(op) ? &fused : &kernel;
}

static const struct ir_fusion *lend(struct device_context *context)
{
    return null_device.fusion(context);
}

static void close(struct device_context *context)
{
    (void)context;
}

const struct device emulated_device = {
    .name = "emulated",
    .counts = true,
    .grids = true,
    .alignment = 256,
    .find_kernel = find_kernel,
    .close = close,
    .fusion = lend,
    DEVICE_READY_STREAMS,
    DEVICE_MEMORY(emulated),
};
