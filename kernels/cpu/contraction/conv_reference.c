/* SPDX-License-Identifier: Apache-2.0 */
/* The reference convolution: rows of outputs along the last axis. */
#include "base/clones.h"
#include "kernels/cpu/contraction/conv.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce_levels.h"

/* ---- Operands -------------------------------------------------------------------------------- */

/* `tensor`, of integers minus zeros[i] for its i-th of `parts` equal parts. *out stays NULL where
 * elements can be read as they lie. */
static tssa_status *widen(struct kernel_args *args, const struct tensor *tensor, int64_t parts,
                          const double *zeros, struct buffer **out)
{
    tssa_dtype dtype = computed_in(tensor->dtype);
    if (tensor->dtype == dtype)
        return NULL;
    TRY(elements_of(args, tensor, dtype, out));
    if (!dtype_is_integer(tensor->dtype))
        return NULL;
    int64_t count = (int64_t)tensor_count(tensor), size = parts ? count / parts : 0;
    double *values = (*out)->data;
    for (int64_t i = 0; zeros && i < parts * size; i++)
        values[i] -= zeros[i / size];
    return NULL;
}

void conv_add_bias(const struct tensor *bias, int64_t channel, tssa_dtype dtype, void *sums,
                   int64_t count)
{
    const double value = dtype_load_double(bias->dtype, element_at(bias, channel));
    for (int64_t i = 0; i < count; i++)
        if (dtype == TSSA_FLOAT)
            ((float *)sums)[i] += (float)value;
        else
            ((double *)sums)[i] += value;
}

#define INLINE static inline __attribute__((always_inline))

/* ---- Rows ------------------------------------------------------------------------------------ */

struct conv_rows {
    const struct conv_job *job;
    tssa_dtype dtype; /* that is computed in */
    size_t width;
    const char *x, *w; /* as such */
    struct tensor *y;
    conv_finish finish;
    const void *context;
};

/* One kernel position's contribution to a row of outputs; `at` is where the row that it reads
 * starts in x. */
#define ADD_POSITION(name, T)                                                                      \
    INLINE void name(const struct conv_rows *rows, int64_t at, int64_t weight, int64_t column,     \
                     T *sums)                                                                      \
    {                                                                                              \
        const struct window *w = &rows->job->window;                                               \
        const int last = w->rank - 1;                                                              \
        const int64_t stride = w->stride[last];                                                    \
        const int64_t offset = column * w->dilation[last] - w->pad_begin[last];                    \
        int64_t begin, end;                                                                        \
        window_valid_range(offset, stride, w->in[last], w->out[last], &begin, &end);               \
        const T factor = ((const T *)(const void *)rows->w)[weight];                               \
        const T *restrict x = (const T *)(const void *)rows->x + at + offset;                      \
        T *restrict y = sums;                                                                      \
        if (stride == 1)                                                                           \
            for (int64_t o = begin; o < end; o++)                                                  \
                y[o] += factor * x[o];                                                             \
        else                                                                                       \
            for (int64_t o = begin; o < end; o++)                                                  \
                y[o] += factor * x[o * stride];                                                    \
    }

/* All channels of the group, all kernel positions, those in the padding included. */
#define COMPUTE_ROW(name, add_position)                                                            \
    VECTOR_PROCEDURE(name,                                                                         \
                     (const struct conv_rows *rows, int64_t n, int64_t channel, int64_t out_row,   \
                      struct reduce_levels *levels),                                               \
                     (rows, n, channel, out_row, levels))                                          \
    {                                                                                              \
        const struct conv_job *job = rows->job;                                                    \
        const struct window *w = &job->window;                                                     \
        const int64_t in_length = w->in[w->rank - 1], length = w->kernel[w->rank - 1];             \
        const int64_t per_group = job->in_channels / job->groups;                                  \
        const int64_t group = channel / (job->out_channels / job->groups);                         \
        int64_t weight = channel * per_group * w->kernel_count, steps = 0;                         \
        for (int64_t c = 0; c < per_group; c++) {                                                  \
            const int64_t plane = (n * job->in_channels + group * per_group + c) * w->in_count;    \
            for (int64_t k = 0; k < w->kernel_count / length; k++) {                               \
                const int64_t row = window_input_row(w, out_row, k);                               \
                for (int64_t x = 0; x < length; x++, weight++) {                                   \
                    if (row >= 0)                                                                  \
                        add_position(rows, plane + row * in_length, weight, x,                     \
                                     (void *)levels->memory);                                      \
                    if (++steps == REDUCTION_RADIX) {                                              \
                        reduce_levels_add(levels, steps);                                          \
                        steps = 0;                                                                 \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

ADD_POSITION(add_floats, float)
ADD_POSITION(add_doubles, double)
COMPUTE_ROW(compute_float_row, add_floats)
COMPUTE_ROW(compute_double_row, add_doubles)

/* Indices are (batch, channel) pairs; scratch is for the sums of a row. */
static void compute_channels(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct conv_rows *rows = context;
    const struct conv_job *job = rows->job;
    const struct window *w = &job->window;
    const int64_t length = w->out[w->rank - 1], out_rows = w->out_count / length;
    for (int64_t i = begin; i < end; i++) {
        const int64_t channel = i % job->out_channels;
        for (int64_t r = 0; r < out_rows; r++) {
            struct reduce_levels levels;
            reduce_levels_begin(&levels, reduce_loops_of(REDUCTION_Sum, rows->dtype), rows->width,
                                length, scratch);
            (rows->dtype == TSSA_FLOAT ? compute_float_row : compute_double_row)(
                rows, i / job->out_channels, channel, r, &levels);
            void *sums = reduce_levels_end(&levels);
            if (job->bias)
                conv_add_bias(job->bias, channel, rows->dtype, sums, length);
            rows->finish(rows->context, channel, sums, length,
                         element_at(rows->y, (i * out_rows + r) * length));
        }
    }
}

static tssa_status *run_rows(struct kernel_args *args, struct conv_rows *rows)
{
    const struct conv_job *job = rows->job;
    const struct window *w = &job->window;
    int64_t terms, cost;
    size_t bytes;
    if (!i64_mul(job->in_channels / job->groups, w->kernel_count, &terms) ||
        !i64_mul(terms, w->out_count, &cost))
        terms = cost = INT64_MAX;
    if (!size_mul((size_t)w->out[w->rank - 1], (size_t)reduce_levels_needed(terms) * rows->width,
                  &bytes))
        return ERROR(TSSA_LIMIT, "a row of the result is too long");
    return parts_for(args, job->batch * job->out_channels, cost, bytes, compute_channels, rows);
}

/* ---- One pixel ------------------------------------------------------------------------------- */

/*
 * Where images and kernels have one element, rows are too short for their loops: channels of the
 * result are computed side by side in their place, each of which sums as a row of one does.
 */
#define PIXEL_CHANNELS 8

static bool is_pixel(const struct conv_job *job)
{
    const struct window *w = &job->window;
    bool one = w->kernel_count == 1 && w->in_count == 1 && w->out_count == 1 && job->groups == 1;
    for (int i = 0; one && i < w->rank; i++)
        one = w->pad_begin[i] == 0;
    return one;
}

/* `channels` of the result, of the weights from w on. */
#define COMPUTE_PIXEL(name, T)                                                                     \
    INLINE void name##_steps(const T *restrict x, const T *restrict w, int64_t n,                  \
                             int64_t channels, int64_t steps, T *restrict sums)                    \
    {                                                                                              \
        for (int64_t c = 0; c < steps; c++)                                                        \
            for (int64_t k = 0; k < channels; k++)                                                 \
                sums[k] += w[k * n + c] * x[c];                                                    \
    }                                                                                              \
    VECTOR_PROCEDURE(name,                                                                         \
                     (const char *x, const char *w, int64_t n, struct reduce_levels *levels),      \
                     (x, w, n, levels))                                                            \
    {                                                                                              \
        const T *from = (const T *)(const void *)x, *weights = (const T *)(const void *)w;         \
        T *sums = (T *)(void *)levels->memory;                                                     \
        for (int64_t c = 0; c < n;) {                                                              \
            const int64_t steps = reduce_levels_room(levels, n - c);                               \
            if (levels->n == PIXEL_CHANNELS)                                                       \
                name##_steps(from + c, weights + c, n, PIXEL_CHANNELS, steps, sums);               \
            else                                                                                   \
                name##_steps(from + c, weights + c, n, levels->n, steps, sums);                    \
            reduce_levels_add(levels, steps);                                                      \
            c += steps;                                                                            \
        }                                                                                          \
    }

COMPUTE_PIXEL(compute_float_pixel, float)
COMPUTE_PIXEL(compute_double_pixel, double)

static void finish_pixel(const struct conv_rows *rows, int64_t at, int64_t channel, int64_t count,
                         char *sums)
{
    const struct conv_job *job = rows->job;
    for (int64_t k = 0; k < count; k++, sums += rows->width) {
        if (job->bias)
            conv_add_bias(job->bias, channel + k, rows->dtype, sums, 1);
        rows->finish(rows->context, channel + k, sums, 1, element_at(rows->y, at + k));
    }
}

/* Indices are (batch, block of channels) pairs; scratch is for the sums of a block. */
static void compute_pixels(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct conv_rows *rows = context;
    const int64_t in = rows->job->in_channels, out = rows->job->out_channels,
                  blocks = (out + PIXEL_CHANNELS - 1) / PIXEL_CHANNELS;
    for (int64_t i = begin; i < end; i++) {
        const int64_t batch = i / blocks, channel = i % blocks * PIXEL_CHANNELS,
                      left = out - channel, count = left < PIXEL_CHANNELS ? left : PIXEL_CHANNELS;
        struct reduce_levels levels;
        reduce_levels_begin(&levels, reduce_loops_of(REDUCTION_Sum, rows->dtype), rows->width,
                            count, scratch);
        (rows->dtype == TSSA_FLOAT ? compute_float_pixel : compute_double_pixel)(
            rows->x + (size_t)(batch * in) * rows->width,
            rows->w + (size_t)(channel * in) * rows->width, in, &levels);
        finish_pixel(rows, batch * out + channel, channel, count, reduce_levels_end(&levels));
    }
}

static tssa_status *run_pixels(struct kernel_args *args, struct conv_rows *rows)
{
    const struct conv_job *job = rows->job;
    const int64_t blocks = (job->out_channels + PIXEL_CHANNELS - 1) / PIXEL_CHANNELS;
    const size_t bytes =
        PIXEL_CHANNELS * (size_t)reduce_levels_needed(job->in_channels) * rows->width;
    return parts_for(args, job->batch * blocks, job->in_channels * PIXEL_CHANNELS, bytes,
                     compute_pixels, rows);
}

tssa_status *conv_reference(struct kernel_args *args, const struct conv_job *job,
                            const struct conv_zeros *zeros, struct tensor *y, conv_finish finish,
                            const void *context)
{
    struct buffer *x = NULL, *w = NULL;
    struct conv_rows rows = {.job = job,
                             .x = job->x->data,
                             .w = job->w->data,
                             .y = y,
                             .finish = finish,
                             .context = context};
    if (tensor_count(y) == 0)
        return NULL;
    rows.dtype = computed_in(job->x->dtype);
    rows.width = tssa_dtype_size(rows.dtype);
    tssa_status *status = widen(args, job->x, 1, zeros ? &zeros->x : NULL, &x);
    if (!status)
        status = widen(args, job->w, job->out_channels, zeros ? zeros->w : NULL, &w);
    if (!status) {
        rows.x = x ? x->data : rows.x;
        rows.w = w ? w->data : rows.w;
        status = is_pixel(job) ? run_pixels(args, &rows) : run_rows(args, &rows);
    }
    buffer_release(x);
    buffer_release(w);
    return status;
}
