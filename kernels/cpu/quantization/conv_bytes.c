/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/quantization/conv_bytes.h"

#include <string.h>

#include "ir/weights_turned.h"
#include "kernels/cpu/lib/axes.h"

tssa_status *conv_bytes_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                uint32_t w, struct conv_bytes_state *state)
{
    TRY(conv_decode(op, &state->attrs));
    state->channels_last = ir_attr_int(op, IR_CHANNELS_LAST, 0) != 0;
    state->turned = ir_attr_int(op, IR_WEIGHTS_TURNED, 0) != 0;
    library_cache_open(&state->library, setup, byte_sums_constant(op, w));
    return NULL;
}

void conv_bytes_release(const void *state)
{
    library_cache_close(&((struct conv_bytes_state *)(void *)state)->library);
}

static struct conv_bytes_state *state_of(const struct kernel_args *args)
{
    return (struct conv_bytes_state *)(void *)args->state;
}

struct library_cache *conv_bytes_library(const struct kernel_args *args)
{
    return &state_of(args)->library;
}

/* The job's x, of dims channels first. */
static void turn_first(struct conv_bytes *bytes)
{
    const int rank = bytes->job.x->rank;
    bytes->x = *bytes->job.x;
    bytes->job.x_last = bytes->job.y_last = true;
    bytes->job.x = &bytes->x;
    if (rank < 3)
        return;
    const int64_t channels = bytes->x.dims[rank - 1];
    memmove(bytes->x.dims + 2, bytes->x.dims + 1, (size_t)(rank - 2) * sizeof channels);
    bytes->x.dims[1] = channels;
}

/* The job's w, of the dims that it has when it is turned back. */
static tssa_status *turn_weights(const struct kernel_args *args, struct conv_bytes *bytes)
{
    struct tensor *w = &bytes->w;
    *w = *bytes->job.w;
    if (w->rank < 3 || state_of(args)->attrs.groups != 1 || dims_product(w->dims, 2, w->rank) != 1)
        return ERROR(TSSA_RUNTIME, "weights that are turned are no matrix");
    const int64_t in = w->dims[0];
    w->dims[0] = w->dims[1];
    w->dims[1] = in;
    bytes->job.w = w;
    return NULL;
}

static void dims_last(int rank, int64_t *dims)
{
    const int64_t channels = dims[1];
    memmove(dims + 1, dims + 2, (size_t)(rank - 2) * sizeof channels);
    dims[rank - 1] = channels;
}

tssa_status *conv_bytes_open(struct kernel_args *args, uint32_t w, uint32_t x_zero, uint32_t w_zero,
                             struct conv_bytes *bytes)
{
    struct conv_job *job = &bytes->job;
    TRY(kernel_tensor(args, 0, &job->x));
    TRY(kernel_tensor(args, w, &job->w));
    TRY(byte_sums_check(job->x, "the input"));
    TRY(byte_sums_check(job->w, "the weights"));
    if (state_of(args)->channels_last)
        turn_first(bytes);
    if (state_of(args)->turned)
        TRY(turn_weights(args, bytes));
    TRY(conv_resolve(&state_of(args)->attrs, job, bytes->dims));
    if (job->x_last)
        dims_last(bytes->x.rank, bytes->dims);
    TRY(requantize_scalar(args, x_zero, 0, &bytes->zeros.x));
    TRY(requantize_vector(args, w_zero, job->out_channels, 0, &bytes->w_zeros));
    bytes->zeros.w = bytes->w_zeros->data;
    return NULL;
}

void conv_bytes_close(struct conv_bytes *bytes)
{
    buffer_release(bytes->w_zeros);
}

/* ---- Before the first run -------------------------------------------------------------------- */

/* Weights are as many as there is memory for, so that zero points of each channel are. */
bool conv_bytes_is_known(const struct kernel_args *args, uint32_t w, uint32_t x_zero,
                         uint32_t w_zero)
{
    return kernel_has_shapes(args) && kernel_has_elements(args, w) &&
           kernel_has_elements(args, x_zero) && kernel_has_elements(args, w_zero);
}

tssa_status *conv_bytes_get_ready(struct kernel_args *args, const struct conv_bytes *bytes,
                                  tssa_dtype dtype, const struct library_quantizer *quantizer)
{
    struct conv_bytes_state *state = state_of(args);
    bool made = false;
    TRY(kernel_check_result(dtype, bytes->job.x->rank, bytes->dims));
    if (quantizer)
        TRY(byte_sums_get_ready(args, &state->library, &bytes->job, state->turned, &bytes->zeros,
                                quantizer, &made));
    return made ? NULL
                : byte_sums_get_ready(args, &state->library, &bytes->job, state->turned,
                                      &bytes->zeros, NULL, &made);
}

/* ---- The reference --------------------------------------------------------------------------- */

static void turn(int64_t batch, int64_t rows, int64_t columns, const uint8_t *from, uint8_t *to)
{
    for (int64_t b = 0; b < batch; b++, from += rows * columns, to += rows * columns)
        byte_sums_turn(rows, columns, from, to);
}

/* The same of sums. */
static void turn_sums(int64_t batch, int64_t rows, int64_t columns, const int32_t *from,
                      int32_t *to)
{
    for (int64_t b = 0; b < batch; b++, from += rows * columns, to += rows * columns)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++)
                to[column * rows + row] = from[row * columns + column];
}

static tssa_status *turned_reference(struct kernel_args *args, const struct conv_bytes *bytes,
                                     struct tensor *y, struct buffer *x_first,
                                     struct buffer *y_first, conv_finish finish,
                                     const void *context)
{
    struct conv_job job = bytes->job;
    struct tensor x = bytes->x, first = *y;
    const int64_t in = job.in_channels, out = job.out_channels, pixels = job.window.out_count;
    if (tensor_count(&x) > 0)
        turn(job.batch, (int64_t)tensor_count(&x) / job.batch / in, in, x.data, x_first->data);
    x.data = x_first->data;
    first.data = y_first->data;
    first.dims[1] = out;
    for (int i = 2; i < y->rank; i++)
        first.dims[i] = y->dims[i - 1];
    job.x = &x;
    TRY(conv_reference(args, &job, &bytes->zeros, &first, finish, context));
    if (y->dtype == TSSA_INT32)
        turn_sums(job.batch, out, pixels, first.data, y->data);
    else
        turn(job.batch, out, pixels, first.data, y->data);
    return NULL;
}

static tssa_status *reference(struct kernel_args *args, const struct conv_bytes *bytes,
                              struct tensor *y, conv_finish finish, const void *context)
{
    struct buffer *x_first = NULL, *y_first = NULL;
    if (!bytes->job.x_last)
        return conv_reference(args, &bytes->job, &bytes->zeros, y, finish, context);
    TRY(kernel_scratch(args, tensor_count(&bytes->x), &x_first));
    tssa_status *status = kernel_scratch(args, tensor_bytes(y), &y_first);
    if (!status)
        status = turned_reference(args, bytes, y, x_first, y_first, finish, context);
    buffer_release(x_first);
    buffer_release(y_first);
    return status;
}

/* Nobody has packed the weights: they are turned for this run. */
tssa_status *conv_bytes_reference(struct kernel_args *args, const struct conv_bytes *bytes,
                                  struct tensor *y, conv_finish finish, const void *context)
{
    struct buffer *weights = NULL;
    if (!state_of(args)->turned)
        return reference(args, bytes, y, finish, context);
    struct conv_bytes own = *bytes;
    TRY(kernel_scratch(args, tensor_count(&own.w), &weights));
    byte_sums_turn(own.w.dims[1], own.w.dims[0], own.w.data, weights->data);
    own.w.data = weights->data;
    own.job.w = &own.w;
    tssa_status *status = reference(args, &own, y, finish, context);
    buffer_release(weights);
    return status;
}
