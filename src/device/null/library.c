/* SPDX-License-Identifier: Apache-2.0 */
#include "device/null/library.h"

#include "device/library_cache.h"
#include "device/library_op.h"

struct null_primitive {
    struct library_primitive base;
    const tssa_allocator *allocator;
};

static bool run(const struct library_primitive *primitive, struct device_stream *stream,
                const struct library_call *call)
{
    (void)primitive;
    (void)call;
    stream->counts.library_calls++;
    return true;
}

static void release(struct library_primitive *primitive)
{
    allocator_free(((struct null_primitive *)primitive)->allocator, primitive);
}

static struct library_primitive *make(struct device_context *context,
                                      const struct library_problem *problem)
{
    static const struct primitive_table table = {.run = run, .release = release};
    struct null_primitive *made = allocator_alloc(context->allocator, sizeof *made);
    (void)problem;
    if (!made)
        return NULL;
    *made = (struct null_primitive){.base = {.table = &table, .name = "null"},
                                    .allocator = context->allocator};
    return &made->base;
}

const struct device_library null_library = {.types = T_FLOAT, .make = make};

/* ---- Kernels --------------------------------------------------------------------------------- */

struct state {
    struct library_op op;
    struct library_cache library;
};

tssa_status *null_library_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                  const void **state)
{
    struct state *made = ARENA_NEW(setup->arena, struct state);
    TRY_ALLOC(made);
    TRY(library_op_decode(op, &made->op));
    library_cache_open(&made->library, setup, false);
    *state = made;
    return NULL;
}

void null_library_release(const void *state)
{
    library_cache_close(&((struct state *)state)->library);
}

tssa_status *null_library_run(struct kernel_args *args, bool *done)
{
    struct state *state = (void *)args->state; /* what changes is behind the library's lock */
    struct library_problem problem;
    struct library_call call = {0};
    TRY(library_op_problem(&state->op, args, &problem, done));
    if (!*done)
        return NULL;
    for (uint32_t i = 0; i < args->n_inputs && i < LIBRARY_OPERANDS; i++)
        if (args->inputs[i])
            call.operands[i] =
                (struct device_place){args->inputs[i]->tensor.data, args->inputs[i]->tensor.offset};
    if (args->outputs[0])
        call.result =
            (struct device_place){args->outputs[0]->tensor.data, args->outputs[0]->tensor.offset};
    return library_compute(args, &state->library, &problem, NULL, &call, done);
}
