/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv (ai.onnx 1 to 22): any number of spatial axes, groups, dilations. With up to three spatial
 * axes float32 goes to the library where there is one, and so do FLOAT16 and BFLOAT16, widened and
 * rounded again; everything else is the reference's.
 */
#include "kernels/cpu/contraction/conv_library.h"
#include "kernels/cpu/lib/axes.h"
#include "kernels/cpu/lib/lines.h"

extern const struct kernel cpu_kernel_Conv;

struct conv_state {
    struct conv_attrs attrs;
    struct library_cache *library;
};

static bool has_constant_weights(const struct ir_op *op)
{
    return op->n_operands > 1 && op->operands[1].value && ir_value_constant(op->operands[1].value);
}

static tssa_status *conv_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                 const void **result)
{
    struct conv_state *state = ARENA_NEW(setup->arena, struct conv_state);
    TRY_ALLOC(state);
    TRY(conv_decode(op, &state->attrs));
    state->library = ARENA_NEW(setup->arena, struct library_cache);
    TRY_ALLOC(state->library);
    library_cache_open(state->library, setup, has_constant_weights(op));
    if (has_constant_weights(op))
        library_cache_hold(state->library, ir_value_constant(op->operands[1].value));
    *result = state;
    return NULL;
}

static void conv_release(const void *state)
{
    library_cache_close(((const struct conv_state *)state)->library);
}

static tssa_status *widen(struct kernel_args *args, const struct tensor *from, struct tensor *to,
                          struct buffer **memory)
{
    size_t count, bytes;
    *to = *from;
    to->dtype = TSSA_FLOAT;
    TRY(tensor_layout(TSSA_FLOAT, from->rank, from->dims, &count, &bytes));
    TRY(kernel_scratch(args, bytes, memory));
    to->data = (*memory)->data;
    convert_elements((int64_t)count, from->dtype, from->data, 1, TSSA_FLOAT, to->data, 1,
                     &convert_default);
    return NULL;
}

/* Halves, in float32; the library widens the weights, once where they are constants. */
static tssa_status *conv_widened(struct kernel_args *args, const struct conv_job *job,
                                 struct tensor *y, bool *done)
{
    const struct conv_state *state = args->state;
    struct buffer *memory[3] = {NULL};
    struct tensor x, bias;
    struct conv_job wide = *job;
    tssa_status *status = widen(args, job->x, &x, &memory[0]);
    if (!status && job->bias)
        status = widen(args, job->bias, &bias, &memory[1]);
    if (!status)
        status = kernel_scratch(args, tensor_count(y) * sizeof(float), &memory[2]);
    if (!status) {
        wide.x = &x;
        wide.bias = job->bias ? &bias : NULL;
        status = conv_library(args, state->library, &wide, memory[2]->data, done);
    }
    if (!status && *done)
        convert_elements((int64_t)tensor_count(y), TSSA_FLOAT, memory[2]->data, 1, y->dtype,
                         y->data, 1, &convert_default);
    for (size_t i = 0; i < 3; i++)
        buffer_release(memory[i]);
    return status;
}

static tssa_status *conv_by_library(struct kernel_args *args, const struct conv_job *job,
                                    struct tensor *y, bool *done)
{
    const struct conv_state *state = args->state;
    *done = false;
    if (tensor_count(y) == 0)
        return NULL;
    if (y->dtype == TSSA_FLOAT)
        return conv_library(args, state->library, job, y->data, done);
    if (y->dtype == TSSA_FLOAT16 || y->dtype == TSSA_BFLOAT16)
        return conv_widened(args, job, y, done);
    return NULL;
}

static void round_row(const void *context, int64_t channel, const void *sums, int64_t count,
                      void *out)
{
    const struct tensor *y = context;
    (void)channel;
    convert_elements(count, computed_in(y->dtype), sums, 1, y->dtype, out, 1, &convert_default);
}

/* dims: of the result. */
static tssa_status *open_job(const struct kernel_args *args, struct conv_job *job, int64_t *dims)
{
    const struct conv_state *state = args->state;
    TRY(kernel_tensor(args, 0, &job->x));
    TRY(kernel_tensor(args, 1, &job->w));
    TRY(kernel_optional_tensor(args, 2, &job->bias));
    if (!dtype_in(T_FLOAT, job->x->dtype) || job->w->dtype != job->x->dtype ||
        (job->bias && job->bias->dtype != job->x->dtype))
        return ERROR(TSSA_RUNTIME, "the operands must be of one float type");
    return conv_resolve(&state->attrs, job, dims);
}

static tssa_status *run_Conv(struct kernel_args *args)
{
    const struct conv_state *state = args->state;
    struct conv_job job = {0};
    struct tensor *y;
    int64_t dims[TSSA_MAX_RANK];
    TRY(open_job(args, &job, dims));
    TRY(kernel_output(args, 0, job.x->dtype, job.x->rank, dims, &y));
    if (!y)
        return NULL;
    bool done;
    TRY(conv_by_library(args, &job, y, &done));
    if (done)
        return NULL;
    library_cache_need(state->library);
    return conv_reference(args, &job, NULL, y, round_row, y);
}

/* Of DOUBLE nothing is asked for; halves are what they are widened to. */
static tssa_status *conv_get_ready(struct kernel_args *args)
{
    const struct conv_state *state = args->state;
    struct conv_job job = {0};
    int64_t dims[TSSA_MAX_RANK];
    bool made;
    if (!kernel_has_shapes(args))
        return NULL;
    TRY(open_job(args, &job, dims));
    TRY(kernel_check_result(job.x->dtype, job.x->rank, dims));
    if (job.x->dtype == TSSA_DOUBLE || dims_product(dims, 0, job.x->rank) == 0)
        return NULL;
    return conv_library_get_ready(args, state->library, &job, &made);
}

const struct kernel cpu_kernel_Conv = {.prepare = conv_prepare,
                                       .run = run_Conv,
                                       .get_ready = conv_get_ready,
                                       .release = conv_release,
                                       .packs = 1};
