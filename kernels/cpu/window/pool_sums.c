/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AveragePool-22 and LpPool-22 of ai.onnx: sums of windows, as of pool_sums.h. Windows that are the
 * whole input are reductions. DOUBLE is computed in double, narrower types in float32.
 */
#include <inttypes.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/window/pool.h"
#include "kernels/cpu/window/pool_divisors.h"
#include "kernels/cpu/window/pool_last.h"
#include "kernels/cpu/window/pool_planes.h"
#include "kernels/cpu/window/pool_sums.h"
#include "kernels/cpu/window/pool_taps.h"

struct work {
    struct pool_job job;
    const struct pool_sum_loops *loops;
    bool has_taps; /* float32 is computed by way of them; else as all types are */
    struct pool_taps taps;
    bool has_planes; /* many small ones, of float32 and read as they lie, are turned */
    struct pool_planes planes;
    const struct pool_divisors *divisors; /* AveragePool: of each window's sum */
    double p;                             /* LpPool; 0: AveragePool */
    bool copies;                          /* planes are not read and written as they lie */
};

/* ---- Planes ---------------------------------------------------------------------------------- */

/* The last ones with some of those before them, again. */
static void run_turned(const struct work *w, void *scratch, int64_t begin, int64_t end)
{
    const struct window *window = &w->job.window;
    const float *in = w->job.in->data;
    float *out = w->job.out->data;
    for (int64_t p = begin; p < end; p += POOL_PLANES) {
        const int64_t first = end - p >= POOL_PLANES ? p : end - POOL_PLANES;
        pool_planes_sum(&w->planes, in + first * window->in_count, w->divisors,
                        out + first * window->out_count, scratch);
    }
}

static void divide(const struct work *w, char *y)
{
    const struct pool_sum_loops *loops = w->loops;
    const int64_t columns = w->job.window.out[w->job.window.rank - 1],
                  rows = w->job.window.out_count / columns;
    for (int64_t r = 0; r < rows; r++, y += (size_t)columns * loops->width)
        loops->divide(y,
                      (const char *)w->divisors->lines + (size_t)w->divisors->row[r] * loops->width,
                      columns);
}

/* Scratch: the sums' own, then a plane and its results, where these are copied. */
static void run_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const struct pool_sum_loops *loops = w->loops;
    const struct window *window = &w->job.window;
    const int64_t in_count = window->in_count, out_count = window->out_count;
    char *x = (char *)scratch + (w->has_taps ? w->taps.scratch : (size_t)out_count * loops->width);
    char *y = x + (size_t)in_count * loops->width;
    if (w->has_taps)
        pool_taps_begin(&w->taps, 0, scratch);
    if (w->has_planes && end - begin >= POOL_PLANES) {
        run_turned(w, scratch, begin, end);
        return;
    }
    for (int64_t p = begin; p < end; p++) {
        if (w->copies) {
            load_elements(w->job.in, p * in_count, 1, in_count, loops->dtype, x);
        } else {
            x = element_at(w->job.in, p * in_count);
            y = element_at(w->job.out, p * out_count);
        }
        if (w->p != 0)
            loops->raise(x, in_count, w->p);
        if (w->has_taps)
            pool_taps_sum(&w->taps, (const float *)(void *)x, w->divisors, (float *)(void *)y,
                          scratch);
        else
            loops->sums(window, x, y, scratch);
        if (w->p != 0)
            loops->root(y, out_count, w->p);
        else if (!w->has_taps)
            divide(w, y);
        if (w->copies)
            store_elements(w->job.out, p * out_count, 1, out_count, loops->dtype, y);
    }
}

static tssa_status *run_windows(struct kernel_args *args, struct work *work)
{
    const struct window *w = &work->job.window;
    size_t elements = 0, bytes;
    work->has_taps = work->loops->dtype == TSSA_FLOAT && pool_taps_plan(w, &work->taps);
    work->has_planes = work->has_taps && !work->copies && pool_planes_plan(w, &work->planes);
    if ((work->copies && !size_add((size_t)w->in_count, (size_t)w->out_count, &elements)) ||
        !size_add(elements, (size_t)w->out_count, &elements) ||
        !size_mul(elements, work->loops->width, &bytes) ||
        !size_add(bytes, work->has_taps ? work->taps.scratch : 0, &bytes) ||
        !size_add(bytes, work->has_planes ? work->planes.scratch : 0, &bytes))
        return ERROR(TSSA_LIMIT, "a plane of %" PRId64 " elements is too large", w->in_count);
    return parts_for(args, work->job.planes, work->job.cost, bytes, run_planes, work);
}

/* ---- Operators ------------------------------------------------------------------------------- */

static bool is_whole(const struct window *w)
{
    bool whole = true;
    for (int i = 0; i < w->rank; i++)
        whole &= w->out[i] == 1 && w->pad_begin[i] == 0 && w->pad_end[i] == 0 &&
                 w->dilation[i] == 1 && w->kernel[i] == w->in[i];
    return whole;
}

static tssa_status *begin(struct kernel_args *args, struct work *work, bool *done)
{
    TRY(pool_begin(args, &work->job));
    *done = work->job.window.out_count == 0 || !work->job.out;
    const bool is_double = work->job.in->dtype == TSSA_DOUBLE;
    work->loops = is_double ? &pool_sum_loops_f64 : &pool_sum_loops_f32;
    work->copies = work->job.in->dtype != work->loops->dtype;
    return NULL;
}

static tssa_status *run_average(struct kernel_args *args)
{
    struct work work = {0};
    const struct window *window = &work.job.window;
    struct pool_divisors divisors;
    bool done;
    if (((const struct pool_state *)args->state)->channels_last)
        return pool_average_last(args);
    TRY(begin(args, &work, &done));
    if (done)
        return NULL;
    if (is_whole(window)) {
        pool_reduce(args, REDUCTION_Mean, work.job.in, work.job.out);
        return NULL;
    }
    TRY(pool_divisors_make(args, work.loops, window, work.job.state->include_pad, &divisors));
    work.divisors = &divisors;
    tssa_status *status = run_windows(args, &work);
    pool_divisors_release(&divisors);
    return status;
}

static tssa_status *run_lp(struct kernel_args *args)
{
    struct work work = {0};
    bool done;
    TRY(begin(args, &work, &done));
    if (done)
        return NULL;
    work.p = work.job.state->p;
    work.copies = true;
    if (is_whole(&work.job.window) && (work.p == 1 || work.p == 2)) {
        pool_reduce(args, work.p == 1 ? REDUCTION_L1 : REDUCTION_L2, work.job.in, work.job.out);
        return NULL;
    }
    return run_windows(args, &work);
}

extern const struct kernel cpu_kernel_average_pool, cpu_kernel_lp_pool;
const struct kernel cpu_kernel_average_pool = {.prepare = pool_prepare, .run = run_average};
const struct kernel cpu_kernel_lp_pool = {.prepare = pool_prepare, .run = run_lp};
