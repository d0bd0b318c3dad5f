/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax-13, LogSoftmax-13 and Hardmax-13 of ai.onnx, and their older forms, which flatten the
 * tensor to two dims at the axis. DOUBLE is computed in double, narrower types in float32,
 * operation by operation as ir/composition.def has it.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "ir/row.h"
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/f32_log.h"
#include "ir/scalar/f64_exp.h"
#include "ir/scalar/f64_log.h"
#include "kernels/cpu/lib/farthest.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/normalization/softmax.h"
#include "kernels/cpu/reduction/arg_reduce.h"

struct softmax {
    int64_t axis;
    bool flatten;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct softmax *softmax = ARENA_NEW(setup->arena, struct softmax);
    TRY_ALLOC(softmax);
    softmax->flatten = ir_row_flattens(op);
    softmax->axis = ir_op_axis(op);
    *state = softmax;
    return NULL;
}

#define BLOCK 4096 /* elements */
#define LINES SOFTMAX_LINES

int64_t softmax_lines(int64_t n)
{
    int64_t lines = n < BLOCK ? BLOCK / n : 1;
    return lines < LINES ? lines : LINES;
}

/* ---- float32: neighbouring lines, as many as stay in the first-level cache ------------------- */

#define LONG_LINE 256

#define INLINE static inline __attribute__((always_inline))

struct block {
    const float *x;
    float *y, *exps; /* exps: for LogSoftmax, as much memory; for Softmax y itself */
    int64_t lines, n;
};

/*
 * exp(x - shift). What is near 0 takes fewer operations, for the same bits; a NaN is not near.
 * Whether all of it is is asked on the way, and else computed once more; in place it is asked
 * before.
 */
INLINE void exps_of_line(const float *x, float *y, int64_t n, float shift)
{
    uint32_t farthest = 0;
    if (x != y || farthest_of(x, n, shift) <= F32_EXP_NEAR) {
        for (int64_t i = 0; i < n; i++) {
            float a = x[i] - shift;
            farthest = farther(farthest, a);
            y[i] = f32_exp_near(a);
        }
        if (farthest <= F32_EXP_NEAR)
            return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = f32_exp(x[i] - shift);
}

/* Of short lines, x - most in a pass of its own, and the rest of all lines as one. */
VECTOR_PROCEDURE(exps_of, (const struct block *b, const float *most), (b, most))
{
    int64_t n = b->n;
    if (n >= LONG_LINE) {
        for (int64_t line = 0; line < b->lines; line++)
            exps_of_line(b->x + line * n, b->exps + line * n, n, most[line]);
        return;
    }
    for (int64_t line = 0; line < b->lines; line++)
        for (int64_t i = 0; i < n; i++)
            b->exps[line * n + i] = b->x[line * n + i] - most[line];
    exps_of_line(b->exps, b->exps, b->lines * n, 0);
}

VECTOR_PROCEDURE(scale_lines, (const struct block *b, const float *sums), (b, sums))
{
    for (int64_t line = 0; line < b->lines; line++) {
        float *y = b->y + line * b->n, factor = 1 / sums[line];
        for (int64_t i = 0; i < b->n; i++)
            y[i] *= factor;
    }
}

VECTOR_PROCEDURE(shift_lines, (const struct block *b, const float *most, const float *sums),
                 (b, most, sums))
{
    for (int64_t line = 0; line < b->lines; line++) {
        const float *x = b->x + line * b->n, shift = most[line], log_sum = f32_log(sums[line]);
        float *y = b->y + line * b->n;
        for (int64_t i = 0; i < b->n; i++)
            y[i] = x[i] - shift - log_sum;
    }
}

static void largest_and_sum(const struct block *b, float *most, float *sums)
{
    reduce_lines(REDUCTION_Max, TSSA_FLOAT, most, b->x, b->n, b->lines, b->n, NULL);
    exps_of(b, most);
    reduce_lines(REDUCTION_Sum, TSSA_FLOAT, sums, b->exps, b->n, b->lines, b->n, NULL);
}

static void softmax_block(const struct block *block)
{
    float most[LINES], sums[LINES];
    largest_and_sum(block, most, sums);
    scale_lines(block, sums);
}

static void log_softmax_block(const struct block *block)
{
    float most[LINES], sums[LINES];
    largest_and_sum(block, most, sums);
    shift_lines(block, most, sums);
}

/* ---- float32: neighbouring columns ----------------------------------------------------------- */

#define COLUMN_BLOCK 8192 /* elements */
#define LEAST_COLUMNS 16
#define LEAST_NEIGHBOURS 8 /* fewer columns side by side are copied beside others first */

/* Element i of column k is at x[i * x_stride + k], and so on. */
struct columns {
    const float *x;
    float *y, *exps; /* exps: row by row, without gaps; not x */
    int64_t x_stride, y_stride, columns, n;
};

int64_t softmax_columns(int64_t n)
{
    const int64_t columns = COLUMN_BLOCK / n / LEAST_COLUMNS * LEAST_COLUMNS;
    return columns < LEAST_COLUMNS     ? LEAST_COLUMNS
           : columns < SOFTMAX_COLUMNS ? columns
                                       : SOFTMAX_COLUMNS;
}

/* As exps_of_line, with a shift for each element. */
INLINE void exps_of_row(const float *restrict x, float *restrict y, int64_t n, const float *most)
{
    uint32_t farthest = 0;
    for (int64_t k = 0; k < n; k++) {
        const float a = x[k] - most[k];
        farthest = farther(farthest, a);
        y[k] = f32_exp_near(a);
    }
    for (int64_t k = 0; farthest > F32_EXP_NEAR && k < n; k++)
        y[k] = f32_exp(x[k] - most[k]);
}

VECTOR_PROCEDURE(exps_of_columns, (const struct columns *c, const float *most), (c, most))
{
    for (int64_t i = 0; i < c->n; i++)
        exps_of_row(c->x + i * c->x_stride, c->exps + i * c->columns, c->columns, most);
}

VECTOR_PROCEDURE(scale_columns, (const struct columns *c, const float *sums), (c, sums))
{
    float factors[SOFTMAX_COLUMNS];
    for (int64_t k = 0; k < c->columns; k++)
        factors[k] = 1 / sums[k];
    for (int64_t i = 0; i < c->n; i++) {
        const float *exps = c->exps + i * c->columns;
        float *y = c->y + i * c->y_stride;
        for (int64_t k = 0; k < c->columns; k++)
            y[k] = exps[k] * factors[k];
    }
}

VECTOR_PROCEDURE(shift_columns, (const struct columns *c, const float *most, const float *sums),
                 (c, most, sums))
{
    float logs[SOFTMAX_COLUMNS];
    for (int64_t k = 0; k < c->columns; k++)
        logs[k] = f32_log(sums[k]);
    for (int64_t i = 0; i < c->n; i++) {
        const float *x = c->x + i * c->x_stride;
        float *y = c->y + i * c->y_stride;
        for (int64_t k = 0; k < c->columns; k++)
            y[k] = x[k] - most[k] - logs[k];
    }
}

static void largest_and_sum_of_columns(const struct columns *c, float *most, float *sums)
{
    reduce_columns(REDUCTION_Max, TSSA_FLOAT, most, c->x, c->x_stride, c->columns, c->n, NULL);
    exps_of_columns(c, most);
    reduce_columns(REDUCTION_Sum, TSSA_FLOAT, sums, c->exps, c->columns, c->columns, c->n, NULL);
}

static void softmax_of_floats(const struct columns *c)
{
    float most[SOFTMAX_COLUMNS], sums[SOFTMAX_COLUMNS];
    largest_and_sum_of_columns(c, most, sums);
    scale_columns(c, sums);
}

static void log_softmax_of_floats(const struct columns *c)
{
    float most[SOFTMAX_COLUMNS], sums[SOFTMAX_COLUMNS];
    largest_and_sum_of_columns(c, most, sums);
    shift_columns(c, most, sums);
}

/* ---- double: in place on one line of n > 0 elements, with as much memory for exps ------------ */

/* What a line, or a column, is reduced to. */
static double reduce_line(enum reduction_row row, const double *x, int64_t n, bool is_column)
{
    double result;
    if (is_column)
        reduce_columns(row, TSSA_DOUBLE, &result, x, 1, 1, n, NULL);
    else
        reduce_lines(row, TSSA_DOUBLE, &result, x, n, 1, n, NULL);
    return result;
}

static double largest_and_exps(const double *x, double *exps, int64_t n, bool is_column,
                               double *sum)
{
    const double most = reduce_line(REDUCTION_Max, x, n, is_column);
    for (int64_t i = 0; i < n; i++)
        exps[i] = f64_exp(x[i] - most);
    *sum = reduce_line(REDUCTION_Sum, exps, n, is_column);
    return most;
}

static void softmax_line(double *x, double *exps, int64_t n, bool is_column)
{
    double sum;
    largest_and_exps(x, exps, n, is_column, &sum);
    for (int64_t i = 0; i < n; i++)
        x[i] = exps[i] / sum;
}

static void log_softmax_line(double *x, double *exps, int64_t n, bool is_column)
{
    double sum, most = largest_and_exps(x, exps, n, is_column, &sum), log_sum = f64_log(sum);
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] - most - log_sum;
}

/* The first of the largest elements; the first NaN, as numpy's argmax. */
static void hardmax_line(double *x, double *exps, int64_t n, bool is_column)
{
    (void)exps;
    (void)is_column;
    int64_t best = 0;
    for (int64_t i = 1; i < n && !isnan(x[best]); i++)
        if (x[i] > x[best] || isnan(x[i]))
            best = i;
    for (int64_t i = 0; i < n; i++)
        x[i] = i == best;
}

/* The same of float32, as ArgMax finds it. */
static void hardmax_block(const struct block *b)
{
    float most[LINES];
    reduce_lines(REDUCTION_Max, TSSA_FLOAT, most, b->x, b->n, b->lines, b->n, NULL);
    for (int64_t line = 0; line < b->lines; line++) {
        const int64_t at = arg_loops_f32.find[0](b->x + line * b->n, b->n, &most[line]);
        float *y = b->y + line * b->n;
        memset(y, 0, (size_t)b->n * sizeof *y);
        y[at] = 1;
    }
}

VECTOR_PROCEDURE(mark_rows, (const struct columns *c, const int32_t *restrict at), (c, at))
{
    for (int64_t i = 0; i < c->n; i++) {
        float *restrict y = c->y + i * c->y_stride;
        for (int64_t k = 0; k < c->columns; k++)
            y[k] = at[k] == (int32_t)i ? 1.0f : 0.0f;
    }
}

static void hardmax_of_columns(const struct columns *c)
{
    float most[SOFTMAX_COLUMNS];
    int32_t at[SOFTMAX_COLUMNS];
    arg_loops_f32.rows[1][0](most, at, c->x, c->x_stride, c->n, c->columns);
    mark_rows(c, at);
}

/* ---- Lines of other kernels ------------------------------------------------------------------ */

void softmax_of_lines(tssa_dtype dtype, void *x, void *exps, int64_t lines, int64_t stride,
                      const int64_t *lengths)
{
    if (dtype != TSSA_DOUBLE)
        softmax_of_float_lines(x, exps, lines, stride, lengths);
    for (int64_t i = 0; dtype == TSSA_DOUBLE && i < lines; i++)
        if (lengths[i] > 0)
            softmax_line((double *)x + i * stride, exps, lengths[i], false);
}

void log_softmax_of_lines(tssa_dtype dtype, void *x, void *exps, int64_t lines, int64_t n)
{
    if (dtype != TSSA_DOUBLE)
        log_softmax_block(&(struct block){x, x, exps, lines, n});
    for (int64_t i = 0; dtype == TSSA_DOUBLE && i < lines; i++)
        log_softmax_line((double *)x + i * n, exps, n, false);
}

/* One by one, in memory for twice a column. */
static void log_softmax_of_doubles(double *x, double *memory, int64_t columns, int64_t n)
{
    for (int64_t k = 0; k < columns; k++) {
        for (int64_t i = 0; i < n; i++)
            memory[i] = x[i * columns + k];
        log_softmax_line(memory, memory + n, n, true);
        for (int64_t i = 0; i < n; i++)
            x[i * columns + k] = memory[i];
    }
}

void log_softmax_of_columns(tssa_dtype dtype, void *x, void *exps, int64_t columns, int64_t n)
{
    if (dtype == TSSA_DOUBLE)
        log_softmax_of_doubles(x, exps, columns, n);
    else
        log_softmax_of_floats(&(struct columns){x, x, exps, columns, columns, columns, n});
}

/* ---- Running --------------------------------------------------------------------------------- */

struct method {
    void (*line)(double *x, double *exps, int64_t n, bool is_column);
    void (*block)(const struct block *block);
    void (*columns)(const struct columns *columns);
    bool in_place; /* the block's exps are its y */
    int64_t most;  /* elements of a line; others are computed in double */
};

struct work {
    struct lines lines;
    const struct tensor *in, *out;
    const struct method *method;
};

static int64_t offset_of(const struct lines *lines, int64_t line)
{
    return line / lines->inner * lines->n * lines->inner + line % lines->inner;
}

static void run_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    int64_t n = w->lines.n, inner = w->lines.inner;
    for (int64_t line = begin; line < end; line++) {
        int64_t offset = offset_of(&w->lines, line);
        load_doubles(w->in, offset, inner, n, scratch);
        w->method->line(scratch, (double *)scratch + n, n, inner > 1);
        store_doubles(w->out, offset, inner, n, scratch);
    }
}

/* Whether blocks are used where they lie. */
static bool lies_in_floats(const struct work *w)
{
    return w->in->dtype == TSSA_FLOAT && w->lines.inner == 1;
}

/* ---- Columns --------------------------------------------------------------------------------- */

/* Of `count` columns from `first` on those that lie side by side. */
static int64_t neighbours(const struct lines *lines, int64_t first, int64_t count)
{
    const int64_t most = lines->inner - first % lines->inner;
    return count < most ? count : most;
}

/* Columns that lie side by side, n rows of them, to rows `stride` apart, or back. */
static void move_floats(const float *from, int64_t from_stride, float *to, int64_t to_stride,
                        int64_t columns, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < columns; k++)
            to[i * to_stride + k] = from[i * from_stride + k];
}

static void load_columns(const struct work *w, int64_t first, int64_t count, float *own)
{
    const int64_t n = w->lines.n, inner = w->lines.inner;
    for (int64_t k = 0, some; k < count; k += some) {
        const int64_t offset = offset_of(&w->lines, first + k);
        some = neighbours(&w->lines, first + k, count - k);
        if (w->in->dtype == TSSA_FLOAT)
            move_floats((const float *)w->in->data + offset, inner, own + k, count, some, n);
        for (int64_t i = 0; w->in->dtype != TSSA_FLOAT && i < n; i++)
            convert_elements(some, w->in->dtype, element_at(w->in, offset + i * inner), 1,
                             TSSA_FLOAT, own + i * count + k, 1, &convert_default);
    }
}

static void store_columns(const struct work *w, int64_t first, int64_t count, const float *own)
{
    const int64_t n = w->lines.n, inner = w->lines.inner;
    for (int64_t k = 0, some; k < count; k += some) {
        const int64_t offset = offset_of(&w->lines, first + k);
        some = neighbours(&w->lines, first + k, count - k);
        if (w->out->dtype == TSSA_FLOAT)
            move_floats(own + k, count, (float *)w->out->data + offset, inner, some, n);
        for (int64_t i = 0; w->out->dtype != TSSA_FLOAT && i < n; i++)
            convert_elements(some, TSSA_FLOAT, own + i * count + k, 1, w->out->dtype,
                             element_at(w->out, offset + i * inner), 1, &convert_default);
    }
}

/* Columns are computed where they lie, but for a few that end before the next ones begin. */
static void run_columns(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const int64_t n = w->lines.n, inner = w->lines.inner, most = softmax_columns(n);
    const bool there = w->in->dtype == TSSA_FLOAT && inner >= LEAST_NEIGHBOURS;
    float *exps = scratch, *own = exps + most * n;
    for (int64_t first = begin, count; first < end; first += count) {
        count = end - first < most ? end - first : most;
        if (there)
            count = neighbours(&w->lines, first, count);
        struct columns c = {own, own, exps, count, count, count, n};
        if (there) {
            const int64_t offset = offset_of(&w->lines, first);
            c.x = (const float *)w->in->data + offset;
            c.y = (float *)w->out->data + offset;
            c.x_stride = c.y_stride = inner;
        } else {
            load_columns(w, first, count, own);
        }
        w->method->columns(&c);
        if (!there)
            store_columns(w, first, count, own);
    }
}

/* ---- Blocks of lines ------------------------------------------------------------------------- */

static void run_blocks(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    int64_t n = w->lines.n, inner = w->lines.inner, most = softmax_lines(n);
    bool there = lies_in_floats(w);
    float *own = scratch, *exps = there ? own : own + most * n;
    for (int64_t first = begin, count; first < end; first += count) {
        count = end - first < most ? end - first : most;
        struct block block = {own, own, exps, count, n};
        if (there) {
            block.x = (const float *)w->in->data + first * n;
            block.y = (float *)w->out->data + first * n;
        }
        if (w->method->in_place)
            block.exps = block.y;
        for (int64_t i = 0; !there && i < count; i++)
            convert_elements(n, w->in->dtype, element_at(w->in, offset_of(&w->lines, first + i)),
                             inner, TSSA_FLOAT, own + i * n, 1, &convert_default);
        w->method->block(&block);
        for (int64_t i = 0; !there && i < count; i++)
            convert_elements(n, TSSA_FLOAT, own + i * n, 1, w->out->dtype,
                             element_at(w->out, offset_of(&w->lines, first + i)), inner,
                             &convert_default);
    }
}

static tssa_status *find_lines(const struct softmax *softmax, const struct tensor *in,
                               struct lines *lines)
{
    int axis;
    if (!softmax->flatten) {
        TRY(kernel_axis(softmax->axis, in->rank, &axis));
        *lines = lines_along(in, axis);
        return NULL;
    }
    if (softmax->axis == in->rank)
        axis = in->rank;
    else
        TRY(kernel_axis(softmax->axis, in->rank, &axis));
    *lines =
        (struct lines){dims_product(in->dims, 0, axis), dims_product(in->dims, axis, in->rank), 1};
    return NULL;
}

/* What computes some lines, and the scratch memory that it wants for each element of one. */
static parts_body find_body(const struct work *w, size_t *each)
{
    const int64_t n = w->lines.n;
    if (n > w->method->most || w->in->dtype == TSSA_DOUBLE) {
        *each = 2 * sizeof(double);
        return run_lines;
    }
    const bool columns = w->lines.inner > 1;
    *each = (size_t)(columns ? softmax_columns(n) : softmax_lines(n)) * 2 * sizeof(float);
    return columns ? run_columns : run_blocks;
}

static tssa_status *run_with(struct kernel_args *args, const struct method *method)
{
    struct work work = {.method = method};
    TRY(typed_tensor(args, 0, &work.in));
    TRY(find_lines(args->state, work.in, &work.lines));
    struct tensor *out;
    TRY(kernel_output(args, 0, work.in->dtype, work.in->rank, work.in->dims, &out));
    work.out = out;
    int64_t n = work.lines.n, lines = work.lines.outer * work.lines.inner;
    if (!out || n == 0)
        return NULL;
    size_t bytes, each;
    const parts_body body = find_body(&work, &each);
    if (!size_mul((size_t)n, each, &bytes))
        return ERROR(TSSA_LIMIT, "a line of %" PRId64 " elements is too long", n);
    return parts_for(args, lines, body == run_lines ? n * 8 : n * 2, bytes, body, &work);
}

#define KERNEL(name, ...)                                                                          \
    static tssa_status *run_##name(struct kernel_args *args)                                       \
    {                                                                                              \
        static const struct method method = {__VA_ARGS__};                                         \
        return run_with(args, &method);                                                            \
    }                                                                                              \
    extern const struct kernel cpu_kernel_##name;                                                  \
    const struct kernel cpu_kernel_##name = {.prepare = prepare, .run = run_##name};

KERNEL(softmax, softmax_line, softmax_block, softmax_of_floats, true, INT64_MAX)
KERNEL(log_softmax, log_softmax_line, log_softmax_block, log_softmax_of_floats, false, INT64_MAX)
KERNEL(hardmax, hardmax_line, hardmax_block, hardmax_of_columns, true, INT32_MAX)
