/* SPDX-License-Identifier: Apache-2.0 */
/* TopK-24 of ai.onnx: the k largest or smallest along an axis. Equal elements: the lower index
 * first. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/reduction/arg_reduce.h"
#include "kernels/cpu/selection/rank.h"
#include "kernels/cpu/selection/topk_floats.h"
#include "kernels/cpu/selection/topk_rows.h"

struct topk {
    int64_t axis;
    bool largest;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct topk *topk = ARENA_NEW(setup->arena, struct topk);
    TRY_ALLOC(topk);
    topk->axis = ir_op_axis(op);
    topk->largest = ir_attr_int(op, "largest", 1) != 0;
    *state = topk;
    return NULL;
}

struct work {
    const struct topk *topk;
    struct lines lines;
    int64_t k;
    const struct tensor *in, *values, *indices; /* results: NULL where not wanted */
    const struct arg_loops *loops;
};

/* `sorted = 0` allows any order; the sorted one costs nothing more. */
static void run_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    struct ranked *heap = scratch;
    size_t size = dtype_info(w->in->dtype)->size;
    for (int64_t line = begin; line < end; line++) {
        int64_t outer = line / w->lines.inner, inner = line % w->lines.inner, n = w->lines.n;
        int64_t from = outer * n * w->lines.inner + inner;
        int64_t to = outer * w->k * w->lines.inner + inner;
        for (int64_t i = 0; i < n; i++) {
            const void *element = element_at(w->in, from + i * w->lines.inner);
            heap[i] = (struct ranked){rank_key(w->in->dtype, element, w->topk->largest), i};
        }
        rank_heapify(heap, n);
        for (int64_t i = 0; i < w->k; i++) {
            int64_t chosen = rank_pop(heap, &n).index, at = to + i * w->lines.inner;
            if (w->values)
                memcpy(element_at(w->values, at), element_at(w->in, from + chosen * w->lines.inner),
                       size);
            if (w->indices)
                memcpy(element_at(w->indices, at), &chosen, sizeof chosen);
        }
    }
}

static void run_floats(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const int64_t step = w->lines.inner;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = i / step * w->lines.n * step + i % step,
                to = i / step * w->k * step + i % step;
        const float *x = (const float *)w->in->data + from;
        const struct float_line line = {x, w->lines.n, step, w->topk->largest};
        const uint64_t *chosen = topk_floats(&line, w->k, scratch);
        float *values = w->values ? (float *)w->values->data + to : NULL;
        int64_t *indices = w->indices ? (int64_t *)w->indices->data + to : NULL;
        for (int64_t k = 0; k < w->k; k++) {
            int64_t index = (int64_t)(uint32_t)chosen[k];
            if (values)
                values[k * step] = x[index * step];
            if (indices)
                indices[k * step] = index;
        }
    }
}

/* ---- The first of each line ------------------------------------------------------------------ */

#define EXTREMES 16 /* lines whose extremes are found together */

/* What ArgMax and ArgMin look for it with, where the line is one piece. */
static const struct arg_loops *loops_of(const struct work *w)
{
    if (w->k != 1 || w->lines.inner != 1 || w->lines.n > INT32_MAX)
        return NULL;
    switch (w->in->dtype) {
    case TSSA_FLOAT:
        return &arg_loops_f32;
    case TSSA_DOUBLE:
        return &arg_loops_f64;
    case TSSA_INT32:
        return &arg_loops_i32;
    case TSSA_INT64:
        return &arg_loops_i64;
    case TSSA_UINT64:
        return &arg_loops_u64;
    default:
        return NULL;
    }
}

/* The first of the best, by their keys. */
static int64_t find_best(const struct work *w, const char *x)
{
    const size_t size = tssa_dtype_size(w->in->dtype);
    struct ranked best = {rank_key(w->in->dtype, x, w->topk->largest), 0};
    for (int64_t i = 1; i < w->lines.n; i++) {
        const uint64_t key = rank_key(w->in->dtype, x + (size_t)i * size, w->topk->largest);
        if (key < best.key)
            best = (struct ranked){key, i};
    }
    return best.index;
}

static bool is_nan(tssa_dtype dtype, const void *element)
{
    return dtype_is_float(dtype) && isnan(dtype_load_double(dtype, element));
}

/* A NaN is the extreme of ArgMin, but the largest here. */
static void run_extremes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const tssa_dtype dtype = w->in->dtype;
    const size_t size = tssa_dtype_size(dtype);
    const int64_t n = w->lines.n;
    _Alignas(64) char best[EXTREMES * sizeof(double)];
    const bool largest = w->topk->largest;
    (void)scratch;
    for (int64_t first = begin, count; first < end; first += count) {
        const char *x = element_at(w->in, first * n);
        count = end - first < EXTREMES ? end - first : EXTREMES;
        reduce_lines(largest ? REDUCTION_Max : REDUCTION_Min, dtype, best, x, n, count, n, NULL);
        for (int64_t i = 0; i < count; i++, x += (size_t)n * size) {
            const void *extreme = best + (size_t)i * size;
            const int64_t at = !largest && is_nan(dtype, extreme)
                                   ? find_best(w, x)
                                   : w->loops->find[0](x, n, extreme);
            if (w->values)
                memcpy(element_at(w->values, first + i), x + (size_t)at * size, size);
            if (w->indices)
                ((int64_t *)w->indices->data)[first + i] = at;
        }
    }
}

/* ---- The first few of lines side by side ----------------------------------------------------- */

static bool are_rows(const struct work *w)
{
    return w->k <= TOPK_ROWS_MOST && w->lines.inner >= TOPK_ROWS_LEAST && w->lines.n <= INT32_MAX;
}

/* The k-th of them all: x is its line's first element, `to` counts results. */
static void store_row(const struct work *w, const char *x, const int64_t *at, int64_t lines,
                      int64_t to)
{
    const size_t size = tssa_dtype_size(w->in->dtype);
    const int64_t step = w->lines.inner;
    if (w->indices)
        memcpy((int64_t *)w->indices->data + to, at, (size_t)lines * sizeof *at);
    if (!w->values)
        return;
    char *values = element_at(w->values, to);
    if (size == sizeof(uint32_t))
        for (int64_t i = 0; i < lines; i++)
            ((uint32_t *)(void *)values)[i] = ((const uint32_t *)(const void *)x)[at[i] * step + i];
    else
        for (int64_t i = 0; i < lines; i++)
            memcpy(values + (size_t)i * size, x + (size_t)(at[i] * step + i) * size, size);
}

static void run_rows(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const int64_t n = w->lines.n, step = w->lines.inner;
    int64_t at[TOPK_ROWS_MOST * TOPK_ROWS_LINES];
    (void)scratch;
    for (int64_t first = begin, lines; first < end; first += lines) {
        const int64_t outer = first / step, inner = first % step,
                      left = step - inner < end - first ? step - inner : end - first;
        lines = left < TOPK_ROWS_LINES ? left : TOPK_ROWS_LINES;
        const char *x = element_at(w->in, outer * n * step + inner);
        const struct topk_rows rows = {x, w->in->dtype, n, step, lines, w->topk->largest};
        topk_rows(&rows, w->k, at);
        for (int64_t k = 0; k < w->k; k++)
            store_row(w, x, at + k * TOPK_ROWS_LINES, lines, (outer * w->k + k) * step + inner);
    }
}

/* ---- The operator ---------------------------------------------------------------------------- */

static tssa_status *run(struct kernel_args *args)
{
    const struct topk *topk = args->state;
    const struct tensor *in;
    TRY(typed_tensor(args, 0, &in));
    int axis;
    TRY(kernel_axis(topk->axis, in->rank, &axis));
    int64_t k;
    TRY(kernel_scalar_int(args, 1, &k));
    if (k < 0 || k > in->dims[axis])
        return ERROR(TSSA_RUNTIME, "K is %" PRId64 ", but axis %d has %" PRId64 " elements", k,
                     axis, in->dims[axis]);
    int64_t dims[TSSA_MAX_RANK];
    for (int i = 0; i < in->rank; i++)
        dims[i] = i == axis ? k : in->dims[i];
    struct tensor *values, *indices;
    TRY(kernel_output(args, 0, in->dtype, in->rank, dims, &values));
    TRY(kernel_output(args, 1, TSSA_INT64, in->rank, dims, &indices));
    struct work work = {topk, lines_along(in, axis), k, in, values, indices, NULL};
    if (k == 0)
        return NULL;
    int64_t lines = work.lines.outer * work.lines.inner;
    size_t bytes;
    work.loops = loops_of(&work);
    if (work.loops)
        return parts_for(args, lines, work.lines.n, 0, run_extremes, &work);
    if (are_rows(&work))
        return parts_for(args, lines, work.lines.n * k, 0, run_rows, &work);
    if (in->dtype == TSSA_FLOAT && topk_floats_scratch(work.lines.n, k, &bytes))
        return parts_for(args, lines, work.lines.n * 2, bytes, run_floats, &work);
    return parts_for(args, lines, work.lines.n * 8, (size_t)work.lines.n * sizeof(struct ranked),
                     run_lines, &work);
}

extern const struct kernel cpu_kernel_topk;
const struct kernel cpu_kernel_topk = {.prepare = prepare, .run = run};
