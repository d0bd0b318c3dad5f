/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvTranspose (ai.onnx 1 to 22): what a convolution's gradient is. Its geometry is that of the
 * convolution which leads from the output back to the input. The weights times the input are a
 * matrix product: for each output channel and position of the kernel, a sum over input channels
 * (lib/gemm.h). These are added up as Col2Im adds up columns: an element is their sum over the
 * kernel's positions in row-major order, as of an axis that is not the innermost one
 * (ir/reduction.def), and then the bias. DOUBLE is computed in double, narrower types in float32.
 */
#include <string.h>

#include "base/clock.h"
#include "base/isa.h"
#include "device/conv_transpose.h"
#include "kernels/cpu/contraction/conv.h"
#include "kernels/cpu/contraction/conv_transpose_rows.h"
#include "kernels/cpu/lib/add_back.h"
#include "kernels/cpu/lib/axes.h"
#include "kernels/cpu/lib/gemm.h"
#include "kernels/cpu/lib/lines.h"

struct transpose_state {
    struct library_cache *library; /* constant: of conv_transpose_rows */
    struct conv_transpose_attrs attrs;
    const float *apart; /* constant weights, rows `pitch` elements apart; NULL: as they are */
    int64_t pitch;
};

/* ---- Weights --------------------------------------------------------------------------------- */

/* Weights that the library would copy in each run (LIBRARY_ALIASED). Constants of up to so many
 * bytes are copied once: 256 channels of 2 x 2, 14 x 14 pixels take two threads a tenth less. */
#define APART_BYTES ((size_t)4 << 20)

static tssa_status *set_apart(const struct ir_op *op, const struct kernel_setup *setup,
                              struct transpose_state *state)
{
    const struct tensor *w = ir_value_constant(ir_operand(op, 1));
    if (state->library->constant || isa_level() != ISA_V3 || !w || w->dtype != TSSA_FLOAT ||
        w->rank < 3 || tensor_bytes(w) > APART_BYTES || tensor_count(w) == 0)
        return NULL;
    const uint64_t start = clock_monotonic();
    const int64_t rows = w->dims[0], row = (int64_t)tensor_count(w) / rows;
    if (row % LIBRARY_ALIASED)
        return NULL;
    state->pitch = row + LIBRARY_FURTHER;
    const size_t bytes = (size_t)(rows * state->pitch) * sizeof(float);
    float *apart = arena_alloc_aligned(setup->arena, bytes, TENSOR_ALIGNMENT);
    TRY_ALLOC(apart);
    for (int64_t i = 0; i < rows; i++)
        memcpy(apart + i * state->pitch, (const float *)w->data + i * row,
               (size_t)row * sizeof *apart);
    state->apart = apart;
    kernel_tally_packed(setup, bytes, start);
    return NULL;
}

/* ---- Preparing ------------------------------------------------------------------------------- */

static tssa_status *conv_transpose_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                           const void **result)
{
    struct transpose_state *state = ARENA_NEW(setup->arena, struct transpose_state);
    TRY_ALLOC(state);
    state->apart = NULL;
    TRY(conv_transpose_decode(op, &state->attrs));
    const struct tensor *w = ir_value_constant(ir_operand(op, 1));
    state->library = ARENA_NEW(setup->arena, struct library_cache);
    TRY_ALLOC(state->library);
    library_cache_open(state->library, setup, conv_transpose_rows_packs(w, state->attrs.groups));
    *result = state;
    if (w)
        library_cache_hold_own(state->library, w);
    return set_apart(op, setup, state);
}

static void conv_transpose_release(const void *state)
{
    library_cache_close(((const struct transpose_state *)state)->library);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

struct job {
    struct window window;
    int64_t groups, in_channels, out_channels; /* of all groups together */
    struct library_cache *library;
    tssa_dtype dtype; /* that is computed in */
    size_t width;
    const char *x, *w;         /* as such */
    int64_t pitch;             /* elements from an input channel's weights to the next one's */
    const struct tensor *bias; /* may be NULL */
    struct tensor *y;
};

/* What a product has made for some channels of an item and a group. */
struct columns {
    const struct job *job;
    const char *data; /* per channel and position of the kernel a plane of the input's size */
    int64_t item, channel;
};

static bool is_apart(const struct job *job)
{
    return job->dtype == TSSA_FLOAT && job->y->dtype == TSSA_FLOAT &&
           (!job->bias || job->bias->dtype == TSSA_FLOAT) && add_back_is_apart(&job->window);
}

/* As add_planes, where each element has one term. */
static void put_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct columns *columns = context;
    const struct job *job = columns->job;
    const struct window *w = &job->window;
    const int64_t first = columns->item * job->out_channels;
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t channel = columns->channel + i;
        add_back_apart(w, (const float *)(const void *)columns->data + i * w->in_count,
                       job->bias ? ((const float *)job->bias->data)[channel] : 0,
                       (float *)job->y->data + (first + channel) * w->in_count);
    }
}

/* Indices are output channels from the columns' first one on. */
static void add_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct columns *columns = context;
    const struct job *job = columns->job;
    const struct window *w = &job->window;
    const size_t plane = (size_t)w->out_count * job->width;
    for (int64_t i = begin; i < end; i++) {
        const int64_t channel = columns->channel + i;
        void *sums =
            add_back(w, job->dtype, columns->data + (size_t)(i * w->kernel_count) * plane, scratch);
        if (job->bias)
            conv_add_bias(job->bias, channel, job->dtype, sums, w->in_count);
        store_elements(job->y, (columns->item * job->out_channels + channel) * w->in_count, 1,
                       w->in_count, job->dtype, sums);
    }
}

/* Columns are made of so many bytes, or of so many rows where these are more. */
#define COLUMN_BYTES (1 << 20)
#define COLUMN_ROWS 64

/* Channels whose columns are made together. */
static int64_t channels_together(const struct job *job)
{
    const int64_t taps = job->window.kernel_count, group = job->out_channels / job->groups;
    const int64_t few = (COLUMN_ROWS + taps - 1) / taps;
    int64_t bytes = (int64_t)job->width, fit = 1;
    if (i64_mul(bytes, taps, &bytes) && i64_mul(bytes, job->window.out_count, &bytes))
        fit = COLUMN_BYTES / (bytes > 0 ? bytes : 1);
    fit = fit > few ? fit : few;
    return fit < group ? fit : group;
}

/* What makes the columns of `n` channels of one group, without the places of its operands. */
static struct gemm product_of(const struct job *job, int64_t n)
{
    const int64_t taps = job->window.kernel_count, size = job->window.out_count;
    return (struct gemm){.m = n * taps,
                         .n = size,
                         .k = job->in_channels / job->groups,
                         .a_row = 1,
                         .a_column = job->pitch,
                         .b_row = size,
                         .b_column = 1};
}

/* The columns' `n` channels, which are of one group: weights, turned, times the input. */
static tssa_status *multiply(struct kernel_args *args, const struct columns *columns, int64_t n,
                             void *to)
{
    const struct job *job = columns->job;
    const int64_t taps = job->window.kernel_count, size = job->window.out_count;
    const int64_t in_group = job->in_channels / job->groups;
    const int64_t out_group = job->out_channels / job->groups;
    const int64_t first = columns->channel / out_group * in_group; /* input channel */
    const int64_t x = (columns->item * job->in_channels + first) * size;
    const int64_t w = first * job->pitch + columns->channel % out_group * taps;
    struct gemm gemm = product_of(job, n);
    gemm.a = job->w + (size_t)w * job->width;
    gemm.b = job->x + (size_t)x * job->width;
    gemm.c = to;
    return gemm_compute(args, job->library, job->dtype, &gemm);
}

/* Bytes of the columns, and of the sums of a plane. */
static tssa_status *sizes(const struct job *job, size_t *columns, size_t *sums)
{
    const struct window *w = &job->window;
    if (!add_back_bytes(w, job->dtype, sums) ||
        !size_mul((size_t)channels_together(job), (size_t)w->kernel_count * job->width, columns) ||
        !size_mul(*columns, (size_t)w->out_count, columns))
        return ERROR(TSSA_RUNTIME, "a plane of the result is larger than memory can be");
    return NULL;
}

static tssa_status *sum(struct kernel_args *args, const struct job *job, int64_t batch)
{
    const int64_t together = channels_together(job), group = job->out_channels / job->groups;
    struct columns columns = {.job = job};
    struct buffer *buffer;
    size_t bytes, plane;
    int64_t cost;
    TRY(sizes(job, &bytes, &plane));
    TRY(kernel_scratch(args, bytes, &buffer));
    columns.data = buffer->data;
    if (!i64_mul(job->window.out_count, job->window.kernel_count, &cost))
        cost = INT64_MAX;
    tssa_status *status = NULL;
    for (int64_t i = 0; i < batch * job->out_channels && !status;) {
        columns.item = i / job->out_channels;
        columns.channel = i % job->out_channels;
        const int64_t left = group - columns.channel % group;
        const int64_t n = left < together ? left : together;
        status = multiply(args, &columns, n, buffer->data);
        if (!status)
            status =
                parts_for(args, n, cost, plane, is_apart(job) ? put_planes : add_planes, &columns);
        i += n;
    }
    buffer_release(buffer);
    return status;
}

/* As operands and the job, which has not been told of them yet, say. */
static struct conv_transpose_rows rows_of(const struct job *job,
                                          const struct tensor *const operands[3])
{
    return (struct conv_transpose_rows){.window = &job->window,
                                        .batch = operands[0]->dims[0],
                                        .in_channels = job->in_channels,
                                        .out_channels = job->out_channels,
                                        .w = operands[1],
                                        .bias = operands[2],
                                        .x = operands[0]->data,
                                        .y = job->y ? job->y->data : NULL};
}

static tssa_status *compute(struct kernel_args *args, struct job *job, int64_t batch,
                            const struct tensor *const operands[3])
{
    const struct transpose_state *state = args->state;
    struct buffer *wide[2] = {NULL};
    const void *elements[2] = {NULL};
    tssa_status *status = NULL;
    job->bias = operands[2];
    for (int i = 0; i < (state->apart ? 1 : 2) && !status; i++)
        status = elements_as(args, operands[i], job->dtype, &elements[i], &wide[i]);
    job->x = elements[0];
    job->w = state->apart ? (const char *)state->apart : elements[1];
    if (!status)
        status = sum(args, job, batch);
    for (int i = 0; i < 2; i++)
        buffer_release(wide[i]);
    return status;
}

/* dims: of the result. */
static tssa_status *open_job(const struct kernel_args *args, struct job *job,
                             const struct tensor **operands, int64_t *dims)
{
    const struct transpose_state *state = args->state;
    struct conv_job geometry = {0};
    TRY(typed_tensor(args, 0, &operands[0]));
    TRY(typed_tensor(args, 1, &operands[1]));
    geometry.x = operands[0];
    geometry.w = operands[1];
    TRY(conv_transpose_resolve(&state->attrs, &geometry, dims));
    TRY(typed_vector(args, 2, geometry.out_channels, true, &operands[2]));
    *job = (struct job){.window = geometry.window,
                        .groups = geometry.groups,
                        .in_channels = geometry.in_channels,
                        .out_channels = geometry.out_channels,
                        .library = state->library,
                        .dtype = computed_in(operands[0]->dtype)};
    job->width = tssa_dtype_size(job->dtype);
    job->pitch =
        state->apart ? state->pitch : job->out_channels / job->groups * job->window.kernel_count;
    return NULL;
}

static tssa_status *sum_rows(struct kernel_args *args, struct job *job,
                             const struct tensor *const operands[3], bool *done)
{
    const struct conv_transpose_rows rows = rows_of(job, operands);
    *done = false;
    if (job->library->constant)
        TRY(conv_transpose_rows(args, job->library, &rows, done));
    if (!*done)
        library_cache_need(job->library);
    return NULL;
}

static tssa_status *run_ConvTranspose(struct kernel_args *args)
{
    const struct tensor *operands[3];
    struct job job;
    int64_t dims[TSSA_MAX_RANK];
    TRY(open_job(args, &job, operands, dims));
    TRY(kernel_output(args, 0, operands[0]->dtype, operands[0]->rank, dims, &job.y));
    if (!job.y || tensor_count(job.y) == 0)
        return NULL;
    bool done;
    TRY(sum_rows(args, &job, operands, &done));
    return done ? NULL : compute(args, &job, dims[0], operands);
}

/* The products that `sum` is made of: of so many channels, and what of a group is left. */
static tssa_status *conv_transpose_get_ready(struct kernel_args *args)
{
    const struct tensor *operands[3];
    struct job job;
    int64_t dims[TSSA_MAX_RANK];
    size_t bytes, plane;
    if (!kernel_knows_shapes(args))
        return NULL;
    TRY(open_job(args, &job, operands, dims));
    TRY(kernel_check_result(operands[0]->dtype, operands[0]->rank, dims));
    if (dims_product(dims, 0, operands[0]->rank) == 0)
        return NULL;
    bool made = false;
    const struct conv_transpose_rows rows = rows_of(&job, operands);
    if (job.library->constant)
        TRY(conv_transpose_rows_get_ready(args, job.library, &rows, &made));
    if (made)
        return NULL;
    TRY(sizes(&job, &bytes, &plane));
    const int64_t together = channels_together(&job), group = job.out_channels / job.groups;
    const struct gemm most = product_of(&job, together), rest = product_of(&job, group % together);
    TRY(gemm_get_ready(args, job.library, job.dtype, &most));
    return gemm_get_ready(args, job.library, job.dtype, &rest);
}

const struct kernel cpu_kernel_ConvTranspose = {.prepare = conv_transpose_prepare,
                                                .run = run_ConvTranspose,
                                                .get_ready = conv_transpose_get_ready,
                                                .release = conv_transpose_release,
                                                .packs = 1};
