/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxPool-22, AveragePool-22 and LpPool-22 of ai.onnx: planes of spatial elements, one per batch and
 * channel. Each tap of the kernel is applied to all the windows that it lies inside the input for, so
 * padding is never looked at. A NaN in a window is its maximum.
 */
#include <math.h>
#include <string.h>

#include "ir/scalar/f64_pow.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/window.h"
#include "kernels/cpu/window/pool.h"
#include "kernels/cpu/window/pool_rows.h"
#include "kernels/cpu/window/pool_taps.h"

struct pool_state {
    struct window_attrs attrs;
    double p;
    bool include_pad, column_major;
};

tssa_status *pool_power(const struct ir_op *op, double *p)
{
    *p = (double)ir_attr_int(op, "p", 2);
    if (!(*p > 0))
        return ERROR(TSSA_MALFORMED, "p is %g", *p);
    return NULL;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct pool_state *state = ARENA_NEW(setup->arena, struct pool_state);
    TRY_ALLOC(state);
    TRY(window_decode(op, &state->attrs));
    state->p = 2;
    if (ir_op_is(op, IR_OP_LpPool))
        TRY(pool_power(op, &state->p));
    state->include_pad = ir_attr_int(op, "count_include_pad", 0) != 0;
    state->column_major = ir_attr_int(op, "storage_order", 0) != 0;
    *result = state;
    return NULL;
}

/* ---- Taps ----------------------------------------------------------------------------------------- */

/* One plane being pooled. */
struct plane {
    const double *in;
    double *out;
    int64_t *index; /* of the maximum, in the plane; may be NULL */
};

/* Applies one tap to n neighbouring windows: in[i * step] to out[i]. */
typedef void (*tap_fn)(const struct plane *plane, int64_t in, int64_t step, int64_t out, int64_t n);

static void max_tap(const struct plane *plane, int64_t in, int64_t step, int64_t out, int64_t n)
{
    const double *x = plane->in + in;
    double *y = plane->out + out;
    for (int64_t i = 0; i < n; i++) {
        double v = x[i * step];
        y[i] = v > y[i] || v != v ? v : y[i];
    }
}

static void argmax_tap(const struct plane *plane, int64_t in, int64_t step, int64_t out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double v = plane->in[in + i * step], *y = &plane->out[out + i];
        int64_t *index = &plane->index[out + i];
        if (v > *y || (isnan(v) && !isnan(*y)) || *index < 0) {
            *y = v;
            *index = in + i * step;
        }
    }
}

static void sum_tap(const struct plane *plane, int64_t in, int64_t step, int64_t out, int64_t n)
{
    const double *x = plane->in + in;
    double *y = plane->out + out;
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i * step];
}

/* One tap over the whole plane; begin and end are the ranges of windows that have it inside. */
static void apply_tap(const struct window *w, const int64_t *offset, const int64_t *begin,
                      const int64_t *end, tap_fn fn, const struct plane *plane)
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

/* All taps, in the kernel's row-major order. */
static void apply_taps(const struct window *w, tap_fn fn, const struct plane *plane)
{
    int64_t tap[WINDOW_MAX_RANK] = {0}, offset[WINDOW_MAX_RANK];
    int64_t begin[WINDOW_MAX_RANK] = {0}, end[WINDOW_MAX_RANK] = {0};
    for (int64_t t = 0; t < w->kernel_count; t++) {
        bool inside = true;
        for (int i = 0; i < w->rank; i++) {
            offset[i] = tap[i] * w->dilation[i] - w->pad_begin[i];
            window_valid_range(offset[i], w->stride[i], w->in[i], w->out[i], &begin[i], &end[i]);
            inside &= begin[i] < end[i];
        }
        if (inside)
            apply_tap(w, offset, begin, end, fn, plane);
        for (int i = w->rank - 1; i >= 0 && ++tap[i] == w->kernel[i]; i--)
            tap[i] = 0;
    }
}

/* ---- Planes --------------------------------------------------------------------------------------- */

struct work {
    const struct pool_state *state;
    const struct window *window;
    const struct tensor *in;
    struct tensor *out;
    int64_t *indices; /* MaxPool's second result; NULL where not wanted */
    double lowest;    /* what an empty window has as its maximum */
    double *counts;   /* AveragePool: elements per window */
    float *divisors;  /* the same in float32, infinity for none: the sum over it is 0 */
    /* How float32 is computed; both NULL: as all types are. */
    const struct pool_taps *taps;
    const struct pool_rows *rows;
};

static void max_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const struct window *window = w->window;
    for (int64_t p = begin; p < end; p++) {
        double *in = scratch, *out = in + window->in_count;
        int64_t *index = w->indices ? w->indices + p * window->out_count : NULL;
        struct plane plane = {in, out, index};
        load_doubles(w->in, p * window->in_count, 1, window->in_count, in);
        for (int64_t i = 0; i < window->out_count; i++)
            out[i] = w->lowest;
        for (int64_t i = 0; index && i < window->out_count; i++)
            index[i] = -1;
        apply_taps(window, index ? argmax_tap : max_tap, &plane);
        if (w->out)
            store_doubles(w->out, p * window->out_count, 1, window->out_count, out);
        for (int64_t i = 0; index && i < window->out_count; i++) {
            if (index[i] >= 0 && w->state->column_major) {
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

static void average_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const struct window *window = w->window;
    for (int64_t p = begin; p < end; p++) {
        double *in = scratch, *out = in + window->in_count;
        struct plane plane = {in, out, NULL};
        load_doubles(w->in, p * window->in_count, 1, window->in_count, in);
        memset(out, 0, (size_t)window->out_count * sizeof *out);
        apply_taps(window, sum_tap, &plane);
        for (int64_t i = 0; i < window->out_count; i++)
            out[i] = w->counts[i] > 0 ? out[i] / w->counts[i] : 0;
        store_doubles(w->out, p * window->out_count, 1, window->out_count, out);
    }
}

/* Float32 needs no copies in double. */
static void max_rows(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    pool_rows_max(w->rows, (const float *)w->in->data + begin * w->window->in_count,
                  (float *)w->out->data + begin * w->window->out_count, end - begin, scratch);
}

static void average_rows(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    pool_rows_average(w->rows, w->counts, (const float *)w->in->data + begin * w->window->in_count,
                      (float *)w->out->data + begin * w->window->out_count, end - begin, scratch);
}

static void max_taps(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    pool_taps_max(w->taps, (const float *)w->in->data + begin * w->window->in_count,
                  (float *)w->out->data + begin * w->window->out_count, end - begin, scratch);
}

static void average_taps(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    pool_taps_average(w->taps, w->divisors,
                      (const float *)w->in->data + begin * w->window->in_count,
                      (float *)w->out->data + begin * w->window->out_count, end - begin, scratch);
}

void pool_raise(double *x, int64_t n, double p)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = p == 2 ? x[i] * x[i] : p == 1 ? fabs(x[i]) : f64_pow(fabs(x[i]), p);
}

double pool_root(double sum, double p)
{
    return p == 2 ? sqrt(sum) : p == 1 ? sum : f64_pow(sum, 1 / p);
}

static void lp_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const struct window *window = w->window;
    for (int64_t p = begin; p < end; p++) {
        double *in = scratch, *out = in + window->in_count;
        struct plane plane = {in, out, NULL};
        load_doubles(w->in, p * window->in_count, 1, window->in_count, in);
        pool_raise(in, window->in_count, w->state->p);
        memset(out, 0, (size_t)window->out_count * sizeof *out);
        apply_taps(window, sum_tap, &plane);
        for (int64_t i = 0; i < window->out_count; i++)
            out[i] = pool_root(out[i], w->state->p);
        store_doubles(w->out, p * window->out_count, 1, window->out_count, out);
    }
}

/* ---- Counts --------------------------------------------------------------------------------------- */

/* How many taps of axis i lie in the input (include_pad: or in its padding) for window o. */
static int64_t taps_inside(const struct window *w, int i, int64_t o, bool include_pad)
{
    int64_t low = include_pad ? -w->pad_begin[i] : 0,
            high = w->in[i] + (include_pad ? w->pad_end[i] : 0);
    int64_t start = o * w->stride[i] - w->pad_begin[i], d = w->dilation[i];
    int64_t first = start >= low ? 0 : (low - start + d - 1) / d;
    int64_t last = start >= high ? 0 : (high - start + d - 1) / d;
    last = last < w->kernel[i] ? last : w->kernel[i];
    return last > first ? last - first : 0;
}

static void count_windows(const struct window *w, bool include_pad, double *counts)
{
    int64_t block = 1; /* windows per index of the axes before i */
    counts[0] = 1;
    for (int i = 0; i < w->rank; i++) {
        /* From the back, so that what is read is not yet overwritten. */
        for (int64_t b = block - 1; b >= 0; b--) {
            double before = counts[b];
            for (int64_t o = w->out[i] - 1; o >= 0; o--)
                counts[b * w->out[i] + o] = before * (double)taps_inside(w, i, o, include_pad);
        }
        block *= w->out[i];
    }
}

/* ---- Operators ------------------------------------------------------------------------------------ */

static tssa_status *run_planes(struct kernel_args *args, struct work *work, parts_body body)
{
    const struct window *w = work->window;
    size_t elements, bytes;
    if (!size_add((size_t)w->in_count, (size_t)w->out_count, &elements) ||
        !size_mul(elements, sizeof(double), &bytes))
        return ERROR(TSSA_LIMIT, "a plane of %zu elements is too large", (size_t)w->in_count);
    if (work->taps)
        bytes = work->taps->scratch;
    else if (work->rows)
        bytes = work->rows->scratch;
    int64_t planes = dims_product(work->in->dims, 0, 2), cost;
    if (!i64_mul(w->out_count, w->kernel_count, &cost))
        cost = INT64_MAX;
    return parts_for(args, planes, cost, bytes, body, work);
}

/* Resolves the windows and makes the results; *count is 0 when there is nothing to do. */
static tssa_status *begin(struct kernel_args *args, struct window *window, struct work *work)
{
    work->state = args->state;
    work->window = window;
    TRY(typed_tensor(args, 0, &work->in));
    const struct tensor *in = work->in;
    if (in->rank < 3)
        return operand_error(0, in, "a tensor of batches, channels and spatial axes");
    TRY(window_resolve(&work->state->attrs, in->rank - 2, in->dims + 2, NULL, window));
    int64_t dims[TSSA_MAX_RANK] = {in->dims[0], in->dims[1]};
    memcpy(dims + 2, window->out, (size_t)window->rank * sizeof *dims);
    struct tensor *out, *indices;
    TRY(kernel_output(args, 0, in->dtype, in->rank, dims, &out));
    TRY(kernel_output(args, 1, TSSA_INT64, in->rank, dims, &indices));
    work->out = out;
    work->indices = indices ? indices->data : NULL;
    return NULL;
}

static tssa_status *run_max(struct kernel_args *args)
{
    struct window window;
    struct work work = {0};
    TRY(begin(args, &window, &work));
    if (window.out_count == 0 || (!work.out && !work.indices))
        return NULL;
    work.lowest = work.in->dtype == TSSA_UINT8  ? 0
                  : work.in->dtype == TSSA_INT8 ? INT8_MIN
                                                : -INFINITY;
    struct pool_taps taps;
    struct pool_rows rows;
    parts_body body = max_planes;
    bool narrow = work.in->dtype == TSSA_FLOAT && !work.indices;
    if (narrow && pool_taps_plan(&window, &taps)) {
        work.taps = &taps;
        body = max_taps;
    } else if (narrow && pool_rows_plan(&window, &rows)) {
        work.rows = &rows;
        body = max_rows;
    }
    return run_planes(args, &work, body);
}

static bool is_whole(const struct window *w)
{
    bool whole = true;
    for (int i = 0; i < w->rank; i++)
        whole &= w->out[i] == 1 && w->pad_begin[i] == 0 && w->pad_end[i] == 0 &&
                 w->dilation[i] == 1 && w->kernel[i] == w->in[i];
    return whole;
}

static tssa_status *run_average(struct kernel_args *args)
{
    struct window window;
    struct work work = {0};
    TRY(begin(args, &window, &work));
    if (window.out_count == 0 || !work.out)
        return NULL;
    if (is_whole(&window)) {
        pool_reduce(args, REDUCTION_Mean, work.in, work.out);
        return NULL;
    }
    size_t bytes;
    if (!size_mul((size_t)window.out_count, sizeof(double) + sizeof(float), &bytes))
        return ERROR(TSSA_LIMIT, "too many windows");
    struct buffer *counts;
    TRY(kernel_scratch(args, bytes, &counts));
    work.counts = counts->data;
    work.divisors = (float *)(void *)(work.counts + window.out_count);
    count_windows(&window, work.state->include_pad, work.counts);
    parts_body body = average_planes;
    struct pool_taps taps;
    struct pool_rows rows;
    if (work.in->dtype == TSSA_FLOAT && pool_taps_plan(&window, &taps)) {
        for (int64_t i = 0; i < window.out_count; i++)
            work.divisors[i] = work.counts[i] > 0 ? (float)work.counts[i] : INFINITY;
        work.taps = &taps;
        body = average_taps;
    } else if (work.in->dtype == TSSA_FLOAT && pool_rows_plan(&window, &rows)) {
        work.rows = &rows;
        body = average_rows;
    }
    tssa_status *status = run_planes(args, &work, body);
    buffer_release(counts);
    return status;
}

static tssa_status *run_lp(struct kernel_args *args)
{
    struct window window;
    struct work work = {0};
    TRY(begin(args, &window, &work));
    if (window.out_count == 0 || !work.out)
        return NULL;
    return run_planes(args, &work, lp_planes);
}

extern const struct kernel cpu_kernel_max_pool, cpu_kernel_average_pool, cpu_kernel_lp_pool;
const struct kernel cpu_kernel_max_pool = {.prepare = prepare, .run = run_max};
const struct kernel cpu_kernel_average_pool = {.prepare = prepare, .run = run_average};
const struct kernel cpu_kernel_lp_pool = {.prepare = prepare, .run = run_lp};
