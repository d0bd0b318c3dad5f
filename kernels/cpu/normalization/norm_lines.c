/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LRN-13, LpNormalization-22 and MeanVarianceNormalization-13 of ai.onnx, which have no operands but the
 * tensor itself. Computed in double.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"

/* ---- LRN, LpNormalization: lines along one axis ---------------------------------------------------- */

struct line_norm {
    int64_t axis, p;
    int64_t size;
    double alpha, beta, bias;
};

static tssa_status *prepare_lrn(const struct ir_op *op, const struct kernel_setup *setup,
                                const void **result)
{
    struct line_norm *state = ARENA_NEW(setup->arena, struct line_norm);
    TRY_ALLOC(state);
    *result = state;
    state->axis = 1;
    state->size = ir_attr_int(op, "size", 0);
    state->alpha = (double)ir_attr_float(op, "alpha", 1e-4f);
    state->beta = (double)ir_attr_float(op, "beta", 0.75f);
    state->bias = (double)ir_attr_float(op, "bias", 1.0f);
    if (state->size < 1)
        return ERROR(TSSA_MALFORMED, "size is %" PRId64, state->size);
    return NULL;
}

static tssa_status *prepare_lp(const struct ir_op *op, const struct kernel_setup *setup,
                               const void **result)
{
    struct line_norm *state = ARENA_NEW(setup->arena, struct line_norm);
    TRY_ALLOC(state);
    *result = state;
    state->axis = ir_attr_int(op, "axis", -1);
    state->p = ir_attr_int(op, "p", 2);
    if (state->p != 1 && state->p != 2)
        return ERROR(TSSA_MALFORMED, "p is %" PRId64 ", not 1 or 2", state->p);
    return NULL;
}

/* x to y, n elements each. */
typedef void (*line_fn)(const struct line_norm *state, const double *x, double *y, int64_t n);

static void lrn_line(const struct line_norm *state, const double *x, double *y, int64_t n)
{
    /* size - 1 neighbours; the odd one comes after. */
    int64_t before = (state->size - 1) / 2, after = state->size - 1 - before;
    for (int64_t i = 0; i < n; i++) {
        int64_t first = i > before ? i - before : 0, last = after < n - 1 - i ? i + after : n - 1;
        double squares = 0;
        for (int64_t k = first; k <= last; k++)
            squares += x[k] * x[k];
        y[i] = x[i] / pow(state->bias + state->alpha / (double)state->size * squares, state->beta);
    }
}

/* A line of zeros stays one. */
static void lp_line(const struct line_norm *state, const double *x, double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += state->p == 1 ? fabs(x[i]) : x[i] * x[i];
    double norm = state->p == 1 ? sum : sqrt(sum);
    for (int64_t i = 0; i < n; i++)
        y[i] = norm == 0 ? 0 : x[i] / norm;
}

struct work {
    const struct line_norm *state;
    const struct tensor *in, *out;
    struct lines lines;
    line_fn fn;
};

static void run_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    int64_t n = w->lines.n, inner = w->lines.inner;
    double *x = scratch, *y = x + n;
    for (int64_t line = begin; line < end; line++) {
        int64_t offset = line / inner * n * inner + line % inner;
        load_doubles(w->in, offset, inner, n, x);
        w->fn(w->state, x, y, n);
        store_doubles(w->out, offset, inner, n, y);
    }
}

static tssa_status *run_with(struct kernel_args *args, line_fn fn)
{
    struct work work = {.state = args->state, .fn = fn};
    const struct tensor *in;
    struct tensor *out;
    int axis;
    TRY(typed_tensor(args, 0, &in));
    TRY(kernel_axis(work.state->axis, in->rank, &axis));
    TRY(kernel_output(args, 0, in->dtype, in->rank, in->dims, &out));
    if (!out)
        return NULL;
    work.in = in;
    work.out = out;
    work.lines = lines_along(in, axis);
    size_t bytes;
    if (!size_mul((size_t)work.lines.n, 2 * sizeof(double), &bytes))
        return ERROR(TSSA_LIMIT, "a line of %" PRId64 " elements is too long", work.lines.n);
    return parts_for(args, work.lines.outer * work.lines.inner, work.lines.n * 8, bytes, run_lines,
                     &work);
}

static tssa_status *run_lrn(struct kernel_args *args)
{
    return run_with(args, lrn_line);
}

static tssa_status *run_lp(struct kernel_args *args)
{
    return run_with(args, lp_line);
}

/* ---- MeanVarianceNormalization: any set of axes ---------------------------------------------------- */

struct mvn {
    size_t n_axes;
    int64_t axes[TSSA_MAX_RANK];
};

static tssa_status *prepare_mvn(const struct ir_op *op, const struct kernel_setup *setup,
                                const void **result)
{
    static const int64_t usual[] = {0, 2, 3};
    struct mvn *state = ARENA_NEW(setup->arena, struct mvn);
    TRY_ALLOC(state);
    *result = state;
    const int64_t *axes = ir_attr_ints(op, "axes", &state->n_axes);
    if (!axes) {
        axes = usual;
        state->n_axes = 3;
    }
    if (state->n_axes > TSSA_MAX_RANK)
        return ERROR(TSSA_MALFORMED, "axes has %zu entries", state->n_axes);
    memcpy(state->axes, axes, state->n_axes * sizeof *axes);
    return NULL;
}

/* Which group an element belongs to: steps over the axes, 0 for the reduced ones. */
struct groups {
    const struct tensor *in;
    int64_t steps[TSSA_MAX_RANK], count;
};

/* Calls fn for every row of the tensor's last axis, with the group of its first element. */
typedef void (*row_fn)(void *context, int64_t offset, int64_t group, int64_t step, int64_t n);

static void for_each_row(const struct groups *g, row_fn fn, void *context)
{
    int rank = g->in->rank;
    int64_t at[TSSA_MAX_RANK] = {0}, row = rank ? g->in->dims[rank - 1] : 1;
    int64_t count = (int64_t)tensor_count(g->in), step = rank ? g->steps[rank - 1] : 0;
    for (int64_t offset = 0; offset < count; offset += row) {
        int64_t group = 0;
        for (int i = 0; i < rank - 1; i++)
            group += at[i] * g->steps[i];
        fn(context, offset, group, step, row);
        for (int i = rank - 2; i >= 0 && ++at[i] == g->in->dims[i]; i--)
            at[i] = 0;
    }
}

struct mvn_work {
    const struct tensor *out;
    double *x, *mean, *deviation; /* all elements; per group */
};

static void add_row(void *context, int64_t offset, int64_t group, int64_t step, int64_t n)
{
    const struct mvn_work *w = context;
    for (int64_t i = 0; i < n; i++)
        w->mean[group + i * step] += w->x[offset + i];
}

static void square_row(void *context, int64_t offset, int64_t group, int64_t step, int64_t n)
{
    const struct mvn_work *w = context;
    for (int64_t i = 0; i < n; i++) {
        double d = w->x[offset + i] -= w->mean[group + i * step];
        w->deviation[group + i * step] += d * d;
    }
}

static void divide_row(void *context, int64_t offset, int64_t group, int64_t step, int64_t n)
{
    const struct mvn_work *w = context;
    for (int64_t i = 0; i < n; i++)
        w->x[offset + i] /= w->deviation[group + i * step];
    store_doubles(w->out, offset, 1, n, w->x + offset);
}

static tssa_status *find_groups(const struct mvn *state, const struct tensor *in,
                                struct groups *groups)
{
    bool reduced[TSSA_MAX_RANK] = {false};
    *groups = (struct groups){.in = in, .count = 1};
    for (size_t i = 0; i < state->n_axes; i++) {
        int axis;
        TRY(kernel_axis(state->axes[i], in->rank, &axis));
        reduced[axis] = true;
    }
    for (int i = in->rank - 1; i >= 0; i--) {
        groups->steps[i] = reduced[i] ? 0 : groups->count;
        groups->count *= reduced[i] ? 1 : in->dims[i];
    }
    return NULL;
}

static tssa_status *run_mvn(struct kernel_args *args)
{
    const struct tensor *in;
    struct tensor *out;
    struct groups groups;
    struct buffer *all, *statistics;
    TRY(typed_tensor(args, 0, &in));
    TRY(find_groups(args->state, in, &groups));
    TRY(kernel_output(args, 0, in->dtype, in->rank, in->dims, &out));
    size_t count = tensor_count(in);
    if (!out || count == 0)
        return NULL;
    TRY(doubles_of(args, in, &all));
    size_t bytes = (size_t)groups.count * 2 * sizeof(double);
    tssa_status *status = kernel_scratch(args, bytes, &statistics);
    if (!status) {
        memset(statistics->data, 0, bytes);
        double *mean = statistics->data, *deviation = mean + groups.count;
        struct mvn_work work = {out, all->data, mean, deviation};
        size_t per_group = count / (size_t)groups.count;
        double n = (double)per_group;
        for_each_row(&groups, add_row, &work);
        for (int64_t i = 0; i < groups.count; i++)
            mean[i] /= n;
        for_each_row(&groups, square_row, &work);
        for (int64_t i = 0; i < groups.count; i++)
            deviation[i] = sqrt(deviation[i] / n) + 1e-9;
        for_each_row(&groups, divide_row, &work);
        buffer_release(statistics);
    }
    buffer_release(all);
    return status;
}

extern const struct kernel cpu_kernel_lrn, cpu_kernel_lp_normalization, cpu_kernel_mean_variance;
const struct kernel cpu_kernel_lrn = {.prepare = prepare_lrn, .run = run_lrn};
const struct kernel cpu_kernel_lp_normalization = {.prepare = prepare_lp, .run = run_lp};
const struct kernel cpu_kernel_mean_variance = {.prepare = prepare_mvn, .run = run_mvn};
