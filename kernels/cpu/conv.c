/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv (ai.onnx 1 to 22): any number of spatial axes, groups, dilations. With up to three spatial axes
 * float32 goes to the provider where there is one, and so do FLOAT16 and BFLOAT16, widened and rounded again;
 * the reference sums in double and rounds once.
 */
#include "kernels/cpu/conv.h"

#include "device/cpu/provider.h"
#include "kernels/cpu/convert.h"

extern const struct kernel cpu_kernel_Conv;

struct conv_state {
    struct conv_attrs attrs;
    const struct cpu_provider *provider;
};

static tssa_status *conv_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                 const void **result)
{
    struct conv_state *state = ARENA_NEW(setup->arena, struct conv_state);
    TRY_ALLOC(state);
    state->provider = cpu_provider_open();
    *result = state;
    return conv_decode(op, &state->attrs);
}

/* Of float32; false: the provider declines. */
static bool ask_provider(const struct kernel_args *args, const struct conv_job *job, void *y)
{
    const struct conv_state *state = args->state;
    const struct window *w = &job->window;
    struct conv conv = {.rank = w->rank,
                        .batch = job->batch,
                        .groups = job->groups,
                        .in_channels = job->in_channels,
                        .out_channels = job->out_channels,
                        .x = job->x->data,
                        .w = job->w->data,
                        .bias = job->bias ? job->bias->data : NULL,
                        .y = y};
    for (int i = 0; i < w->rank; i++) {
        conv.in[i] = w->in[i];
        conv.out[i] = w->out[i];
        conv.kernel[i] = w->kernel[i];
        conv.stride[i] = w->stride[i];
        conv.dilation[i] = w->dilation[i];
        conv.pad_begin[i] = w->pad_begin[i];
        conv.pad_end[i] = w->pad_end[i];
    }
    return state->provider->conv_f32(&conv, args->env->team ? args->env->team->threads : 1);
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

/* Halves, in float32. */
static tssa_status *conv_widened(struct kernel_args *args, const struct conv_job *job,
                                 struct tensor *y, bool *done)
{
    struct buffer *memory[4] = {NULL};
    struct tensor x, w, bias;
    struct conv_job wide = *job;
    tssa_status *status = widen(args, job->x, &x, &memory[0]);
    if (!status)
        status = widen(args, job->w, &w, &memory[1]);
    if (!status && job->bias)
        status = widen(args, job->bias, &bias, &memory[2]);
    if (!status)
        status = kernel_scratch(args, tensor_count(y) * sizeof(float), &memory[3]);
    if (!status) {
        wide.x = &x;
        wide.w = &w;
        wide.bias = job->bias ? &bias : NULL;
        *done = ask_provider(args, &wide, memory[3]->data);
        if (*done)
            convert_elements((int64_t)tensor_count(y), TSSA_FLOAT, memory[3]->data, 1, y->dtype,
                             y->data, 1, &convert_default);
    }
    for (size_t i = 0; i < 4; i++)
        buffer_release(memory[i]);
    return status;
}

static tssa_status *conv_provided(struct kernel_args *args, const struct conv_job *job,
                                  struct tensor *y, bool *done)
{
    const struct conv_state *state = args->state;
    tssa_dtype dtype = y->dtype;
    *done = false;
    if (!state->provider || job->window.rank > CONV_MAX_RANK || tensor_count(y) == 0)
        return NULL;
    if (dtype == TSSA_FLOAT)
        *done = ask_provider(args, job, y->data);
    else if (dtype == TSSA_FLOAT16 || dtype == TSSA_BFLOAT16)
        return conv_widened(args, job, y, done);
    return NULL;
}

static void round_row(const void *context, int64_t channel, const double *sums, int64_t count,
                      void *out)
{
    const struct tensor *y = context;
    (void)channel;
    convert_elements(count, TSSA_DOUBLE, sums, 1, y->dtype, out, 1, &convert_default);
}

static tssa_status *run_Conv(struct kernel_args *args)
{
    const struct conv_state *state = args->state;
    struct conv_job job = {0};
    struct tensor *y;
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &job.x));
    TRY(kernel_tensor(args, 1, &job.w));
    TRY(kernel_optional_tensor(args, 2, &job.bias));
    if (!dtype_in(T_FLOAT, job.x->dtype) || job.w->dtype != job.x->dtype ||
        (job.bias && job.bias->dtype != job.x->dtype))
        return ERROR(TSSA_RUNTIME, "the operands must be of one float type");
    TRY(conv_resolve(&state->attrs, &job, dims));
    TRY(kernel_output(args, 0, job.x->dtype, job.x->rank, dims, &y));
    if (!y)
        return NULL;
    bool done;
    TRY(conv_provided(args, &job, y, &done));
    if (done)
        return NULL;
    return conv_reference(args, &job, y, round_row, y);
}

const struct kernel cpu_kernel_Conv = {.prepare = conv_prepare, .run = run_Conv};
