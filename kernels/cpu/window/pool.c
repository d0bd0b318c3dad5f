/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxPool-22 of ai.onnx, and what it shares with AveragePool and LpPool (pool_sums.c): planes of
 * spatial elements, one per batch and channel. Each tap of the kernel is applied to all the windows
 * that it lies inside the input for, so padding is never looked at. A NaN in a window is its
 * maximum.
 */
#include <math.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/window/pool_last.h"
#include "kernels/cpu/window/pool_planes.h"
#include "kernels/cpu/window/pool_rows.h"
#include "kernels/cpu/window/pool_taps.h"

tssa_status *pool_power(const struct ir_op *op, double *p)
{
    *p = (double)ir_attr_int(op, "p", 2);
    if (!(*p > 0))
        return ERROR(TSSA_MALFORMED, "p is %g", *p);
    return NULL;
}

tssa_status *pool_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                          const void **result)
{
    struct pool_state *state = ARENA_NEW(setup->arena, struct pool_state);
    TRY_ALLOC(state);
    TRY(window_decode(op, &state->attrs));
    state->p = 2;
    if (ir_op_is(op, IR_OP_LpPool))
        TRY(pool_power(op, &state->p));
    state->include_pad = ir_attr_int(op, "count_include_pad", 0) != 0;
    state->channels_last = ir_attr_int(op, IR_CHANNELS_LAST, 0) != 0;
    state->column_major = ir_attr_int(op, "storage_order", 0) != 0;
    *result = state;
    return NULL;
}

/* ---- Taps ------------------------------------------------------------------------------------ */

/* One plane being pooled. */
struct plane {
    const double *in;
    double *out;
    int64_t *index; /* of the maximum, in the plane; may be NULL */
};

static void max_tap(const void *context, int64_t in, int64_t step, int64_t out, int64_t n)
{
    const struct plane *plane = context;
    const double *x = plane->in + in;
    double *y = plane->out + out;
    for (int64_t i = 0; i < n; i++) {
        double v = x[i * step];
        y[i] = v > y[i] || v != v ? v : y[i];
    }
}

static void argmax_tap(const void *context, int64_t in, int64_t step, int64_t out, int64_t n)
{
    const struct plane *plane = context;
    for (int64_t i = 0; i < n; i++) {
        double v = plane->in[in + i * step], *y = &plane->out[out + i];
        int64_t *index = &plane->index[out + i];
        if (v > *y || (isnan(v) && !isnan(*y)) || *index < 0) {
            *y = v;
            *index = in + i * step;
        }
    }
}

/* One tap over the whole plane; begin and end are the ranges of windows that have it inside. */
static void apply_tap(const struct window *w, const int64_t *offset, const int64_t *begin,
                      const int64_t *end, pool_tap fn, const void *plane)
{
    int last = w->rank - 1;
    int64_t at[WINDOW_MAX_RANK];
    memcpy(at, begin, sizeof at);
    for (;;) {
        int64_t in = 0, out = 0;
        for (int i = 0; i <= last; i++) {
            in = in * w->in[i] + at[i] * w->stride[i] + offset[i];
            out = out * w->out[i] + at[i];
        }
        fn(plane, in, w->stride[last], out, end[last] - begin[last]);
        int i = last - 1;
        while (i >= 0 && ++at[i] == end[i]) {
            at[i] = begin[i];
            i--;
        }
        if (i < 0)
            return;
    }
}

void pool_apply_taps(const struct window *w, pool_tap fn, pool_row_end row_end, const void *context)
{
    int64_t tap[WINDOW_MAX_RANK] = {0}, offset[WINDOW_MAX_RANK];
    int64_t begin[WINDOW_MAX_RANK] = {0}, end[WINDOW_MAX_RANK] = {0};
    const int last = w->rank - 1;
    bool any = false; /* of the row */
    for (int64_t t = 0; t < w->kernel_count; t++) {
        bool inside = true;
        for (int i = 0; i < w->rank; i++) {
            offset[i] = tap[i] * w->dilation[i] - w->pad_begin[i];
            window_valid_range(offset[i], w->stride[i], w->in[i], w->out[i], &begin[i], &end[i]);
            inside &= begin[i] < end[i];
        }
        if (inside)
            apply_tap(w, offset, begin, end, fn, context);
        any |= inside;
        if (any && row_end && tap[last] == w->kernel[last] - 1) {
            row_end(context);
            any = false;
        }
        for (int i = last; i >= 0 && ++tap[i] == w->kernel[i]; i--)
            tap[i] = 0;
    }
}

/* ---- Planes ---------------------------------------------------------------------------------- */

struct work {
    struct pool_job job;
    int64_t *indices; /* the second result; NULL where not wanted */
    double lowest;    /* what an empty window has as its maximum */
    /* How float32 is computed; both NULL: as all types are. */
    const struct pool_taps *taps;
    const struct pool_rows *rows;
    const struct pool_planes *few; /* with `taps`: of small planes; else NULL */
};

static void max_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const struct window *window = &w->job.window;
    for (int64_t p = begin; p < end; p++) {
        double *in = scratch, *out = in + window->in_count;
        int64_t *index = w->indices ? w->indices + p * window->out_count : NULL;
        struct plane plane = {in, out, index};
        load_doubles(w->job.in, p * window->in_count, 1, window->in_count, in);
        for (int64_t i = 0; i < window->out_count; i++)
            out[i] = w->lowest;
        for (int64_t i = 0; index && i < window->out_count; i++)
            index[i] = -1;
        pool_apply_taps(window, index ? argmax_tap : max_tap, NULL, &plane);
        if (w->job.out)
            store_doubles(w->job.out, p * window->out_count, 1, window->out_count, out);
        for (int64_t i = 0; index && i < window->out_count; i++) {
            if (index[i] >= 0 && w->job.state->column_major) {
                int64_t rest = index[i], column = 0, coordinate[WINDOW_MAX_RANK];
                for (int a = window->rank - 1; a >= 0; rest /= window->in[a], a--)
                    coordinate[a] = rest % window->in[a];
                for (int a = window->rank - 1; a >= 0; a--)
                    column = column * window->in[a] + coordinate[a];
                index[i] = column;
            }
            if (index[i] >= 0)
                index[i] += p * window->in_count;
        }
    }
}

/* Float32 needs no copies in double. */
static void max_rows(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    pool_rows_max(w->rows, (const float *)w->job.in->data + begin * w->job.window.in_count,
                  (float *)w->job.out->data + begin * w->job.window.out_count, end - begin,
                  scratch);
}

static void max_taps(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const struct window *window = &w->job.window;
    const float *in = (const float *)w->job.in->data;
    float *out = (float *)w->job.out->data;
    for (int64_t p = begin, n; p < end; p += n) {
        const int64_t left = end - p;
        n = w->few && left > POOL_PLANES ? POOL_PLANES : left;
        /* The last ones with some of those before them, again. */
        const int64_t first =
            w->few && n < POOL_PLANES && end - begin >= POOL_PLANES ? end - POOL_PLANES : p;
        const bool fills = w->few && end - first >= POOL_PLANES;
        if (!fills || !pool_planes_max(w->few, in + first * window->in_count,
                                       out + first * window->out_count, scratch))
            pool_taps_max(w->taps, in + p * window->in_count, out + p * window->out_count, n,
                          scratch);
    }
}

/* ---- Operators ------------------------------------------------------------------------------- */

tssa_status *pool_begin(struct kernel_args *args, struct pool_job *job)
{
    job->state = args->state;
    TRY(typed_tensor(args, 0, &job->in));
    const struct tensor *in = job->in;
    if (in->rank < 3)
        return operand_error(0, in, "a tensor of batches, channels and spatial axes");
    TRY(window_resolve(&job->state->attrs, in->rank - 2, in->dims + 2, NULL, &job->window));
    const struct window *w = &job->window;
    job->dims[0] = in->dims[0];
    job->dims[1] = in->dims[1];
    memcpy(job->dims + 2, w->out, (size_t)w->rank * sizeof *w->out);
    job->planes = dims_product(in->dims, 0, 2);
    if (!i64_mul(w->out_count, w->kernel_count, &job->cost))
        job->cost = INT64_MAX;
    struct tensor *out;
    TRY(kernel_output(args, 0, in->dtype, in->rank, job->dims, &out));
    job->out = out;
    return NULL;
}

static tssa_status *run_planes(struct kernel_args *args, struct work *work, parts_body body)
{
    const struct window *w = &work->job.window;
    size_t elements, bytes;
    if (!size_add((size_t)w->in_count, (size_t)w->out_count, &elements) ||
        !size_mul(elements, sizeof(double), &bytes))
        return ERROR(TSSA_LIMIT, "a plane of %zu elements is too large", (size_t)w->in_count);
    if (work->taps)
        bytes = work->few && work->few->scratch > work->taps->scratch ? work->few->scratch
                                                                      : work->taps->scratch;
    else if (work->rows)
        bytes = work->rows->scratch;
    return parts_for(args, work->job.planes, work->job.cost, bytes, body, work);
}

static tssa_status *run_max(struct kernel_args *args)
{
    struct work work = {0};
    struct pool_job *job = &work.job;
    struct tensor *indices;
    if (((const struct pool_state *)args->state)->channels_last)
        return pool_max_last(args);
    TRY(pool_begin(args, job));
    TRY(kernel_output(args, 1, TSSA_INT64, job->in->rank, job->dims, &indices));
    work.indices = indices ? indices->data : NULL;
    if (job->window.out_count == 0 || (!job->out && !work.indices))
        return NULL;
    work.lowest = job->in->dtype == TSSA_UINT8  ? 0
                  : job->in->dtype == TSSA_INT8 ? INT8_MIN
                                                : -INFINITY;
    struct pool_taps taps;
    struct pool_rows rows;
    struct pool_planes few;
    parts_body body = max_planes;
    bool narrow = job->in->dtype == TSSA_FLOAT && !work.indices;
    if (narrow && pool_taps_plan(&job->window, &taps)) {
        work.taps = &taps;
        work.few = pool_planes_plan(&job->window, &few) ? &few : NULL;
        body = max_taps;
    } else if (narrow && pool_rows_plan(&job->window, &rows)) {
        work.rows = &rows;
        body = max_rows;
    }
    return run_planes(args, &work, body);
}

extern const struct kernel cpu_kernel_max_pool;
const struct kernel cpu_kernel_max_pool = {.prepare = pool_prepare, .run = run_max};
