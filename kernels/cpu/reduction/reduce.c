/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduce* (ai.onnx 1 to 20). Floats accumulate in double, in one order for any number of threads (eight
 * running sums), and round once; integers accumulate exactly, modulo 2^64, where the reduction is exact on integers, and
 * otherwise (L2, LogSum, LogSumExp) in double, truncated. An empty set gives the reduction's identity.
 */
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "device/kernel.h"
#include "kernels/cpu/lib/convert.h"
#include "kernels/cpu/reduction/axes.h"
#include "kernels/cpu/reduction/reduce_rows.h"

/* One reduction over doubles: a fold of chunks, then a finish. */
struct reduction {
    double identity;
    double (*fold)(double accumulated, const double *x, int64_t n);
    double (*finish)(double accumulated, int64_t count); /* NULL: as it is */
    /* The same on integers (unsigned arithmetic wraps); NULL: through double. */
    uint64_t (*fold_int)(uint64_t accumulated, const int64_t *x, int64_t n);
    bool by_max; /* LogSumExp: the fold is of exp(x - max) */
};

#define FOLD(name, type, element, statement)                                                       \
    static type name(type a, const element *x, int64_t n)                                          \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            statement;                                                                             \
        return a;                                                                                  \
    }

/* The same in eight lanes, so that it vectorises; `join` adds a lane to the result. */
#define LANES 8
#define FOLD_LANES(name, type, element, identity, each, join)                                      \
    VECTOR_FUNCTION(type, name, (type a, const element *x, int64_t n), (a, x, n))                  \
    {                                                                                              \
        type lanes[LANES];                                                                         \
        int64_t i = 0;                                                                             \
        for (int k = 0; k < LANES; k++)                                                            \
            lanes[k] = identity;                                                                   \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++)                                                        \
                lanes[k] = each(lanes[k], x[i + k]);                                               \
        for (; i < n; i++)                                                                         \
            a = each(a, x[i]);                                                                     \
        for (int k = 0; k < LANES; k++)                                                            \
            a = join(a, lanes[k]);                                                                 \
        return a;                                                                                  \
    }

#define PLUS(a, x) ((a) + (x))
#define PLUS_MAGNITUDE(a, x) ((a) + fabs(x))
#define PLUS_SQUARE(a, x) ((a) + (x) * (x))
/* The larger, the smaller; for floats: a NaN, once met, stays. */
#define LARGER(a, x) ((x) > (a) || (x) != (x) ? (x) : (a))
#define SMALLER(a, x) ((x) < (a) || (x) != (x) ? (x) : (a))
#define LARGER_INT(a, x) ((x) > (a) ? (x) : (a))
#define SMALLER_INT(a, x) ((x) < (a) ? (x) : (a))

FOLD_LANES(fold_sum, double, double, 0, PLUS, PLUS)
FOLD(fold_product, double, double, a *= x[i])
FOLD_LANES(fold_l1, double, double, 0, PLUS_MAGNITUDE, PLUS)
FOLD_LANES(fold_squares, double, double, 0, PLUS_SQUARE, PLUS)
FOLD_LANES(fold_max, double, double, -INFINITY, LARGER, LARGER)
FOLD_LANES(fold_min, double, double, INFINITY, SMALLER, SMALLER)
FOLD(int_sum, uint64_t, int64_t, a += (uint64_t)x[i])
FOLD(int_product, uint64_t, int64_t, a *= (uint64_t)x[i])
FOLD(int_l1, uint64_t, int64_t, a += x[i] < 0 ? 0 - (uint64_t)x[i] : (uint64_t)x[i])
FOLD(int_squares, uint64_t, int64_t, a += (uint64_t)x[i] * (uint64_t)x[i])

static double finish_mean(double a, int64_t count)
{
    return a / (double)count;
}
static double finish_sqrt(double a, int64_t count)
{
    (void)count;
    return sqrt(a);
}
static double finish_log(double a, int64_t count)
{
    (void)count;
    return log(a);
}

/* ---- Where the elements are ----------------------------------------------------------------------- */

struct reduce {
    const struct reduction *reduction;
    const struct tensor *in;
    struct tensor *out;
    struct axis_nest kept, reduced;
    bool integers; /* exact arithmetic */
};

#define CHUNK 512

/* Walks the reduced elements of one output in order. The innermost reduced axis gives the runs. */
struct walk {
    const struct reduce *reduce;
    const char *base; /* the output's first element */
    int64_t done;
};

/* The next elements, at most CHUNK, converted to `as`; 0 at the end. */
static int64_t walk_next(struct walk *walk, tssa_dtype as, void *chunk)
{
    const struct axis_nest *nest = &walk->reduce->reduced;
    tssa_dtype dtype = walk->reduce->in->dtype;
    if (walk->done >= nest->count)
        return 0;
    int last = nest->rank - 1;
    int64_t run = last >= 0 ? nest->sizes[last] : 1, stride = last >= 0 ? nest->strides[last] : 1;
    int64_t left = run - walk->done % run, n = left < CHUNK ? left : CHUNK;
    size_t offset = (size_t)axis_nest_offset(nest, walk->done) * tssa_dtype_size(dtype);
    convert_elements(n, dtype, walk->base + offset, stride, as, chunk, 1, &convert_default);
    walk->done += n;
    return n;
}

static double fold_doubles(const struct reduce *r, const char *base, double accumulated,
                           double shift)
{
    double chunk[CHUNK];
    struct walk walk = {.reduce = r, .base = base};
    for (int64_t n; (n = walk_next(&walk, TSSA_DOUBLE, chunk)) > 0;) {
        for (int64_t k = 0; r->reduction->by_max && k < n; k++)
            chunk[k] = exp(chunk[k] - shift);
        accumulated = r->reduction->fold(accumulated, chunk, n);
    }
    return accumulated;
}

static uint64_t fold_integers(const struct reduce *r, const char *base, uint64_t accumulated)
{
    int64_t chunk[CHUNK];
    struct walk walk = {.reduce = r, .base = base};
    for (int64_t n; (n = walk_next(&walk, TSSA_INT64, chunk)) > 0;)
        accumulated = r->reduction->fold_int(accumulated, chunk, n);
    return accumulated;
}

/* log(sum(exp(x))) without overflow: shifted by the largest element. */
static double log_sum_exp(const struct reduce *r, const char *base)
{
    static const struct reduction max = {.identity = -INFINITY, .fold = fold_max};
    struct reduce largest = *r;
    largest.reduction = &max;
    double shift = fold_doubles(&largest, base, -INFINITY, 0);
    if (!isfinite(shift))
        return shift; /* empty, all -inf, an inf, or a NaN */
    return shift + log(fold_doubles(r, base, 0, shift));
}

static void reduce_float(const struct reduce *r, const char *base, void *out)
{
    double result;
    if (r->reduction->by_max) {
        result = log_sum_exp(r, base);
    } else {
        result = fold_doubles(r, base, r->reduction->identity, 0);
        if (r->reduction->finish)
            result = r->reduction->finish(result, r->reduced.count);
    }
    convert_elements(1, TSSA_DOUBLE, &result, 1, r->out->dtype, out, 1, &convert_default);
}

static void reduce_integer(const struct reduce *r, const char *base, void *out)
{
    uint64_t identity = (uint64_t)r->reduction->identity; /* 0 or 1 */
    uint64_t result = fold_integers(r, base, identity);
    if (r->reduction->finish == finish_mean && r->reduced.count) {
        bool negative = dtype_info(r->in->dtype)->cls == DTYPE_CLASS_SIGNED && (int64_t)result < 0;
        uint64_t magnitude = (negative ? 0 - result : result) / (uint64_t)r->reduced.count;
        result = negative ? 0 - magnitude : magnitude;
    }
    dtype_store_int64(r->out->dtype, out, (int64_t)result);
}

static void reduce_range(void *context, int64_t begin, int64_t end)
{
    const struct reduce *r = context;
    size_t in_width = tssa_dtype_size(r->in->dtype), out_width = tssa_dtype_size(r->out->dtype);
    for (int64_t i = begin; i < end; i++) {
        const char *base =
            (const char *)r->in->data + (size_t)axis_nest_offset(&r->kept, i) * in_width;
        char *out = (char *)r->out->data + (size_t)i * out_width;
        if (r->integers)
            reduce_integer(r, base, out);
        else
            reduce_float(r, base, out);
    }
}

/* ---- Max and Min: exact in every type ------------------------------------------------------------- */

/* Of int64 as which the elements were read; UINT64 compares as such. */
FOLD(int_max, uint64_t, int64_t, a = (uint64_t)LARGER_INT((int64_t)a, x[i]))
FOLD(int_min, uint64_t, int64_t, a = (uint64_t)SMALLER_INT((int64_t)a, x[i]))
FOLD(uint_max, uint64_t, int64_t, a = LARGER_INT(a, (uint64_t)x[i]))
FOLD(uint_min, uint64_t, int64_t, a = SMALLER_INT(a, (uint64_t)x[i]))

static void store_bound(tssa_dtype dtype, void *element, bool lowest)
{
    if (dtype_is_float(dtype)) {
        dtype_store_double(dtype, element, lowest ? -INFINITY : INFINITY);
        return;
    }
    unsigned bits = dtype_info(dtype)->file_bits;
    bool is_signed = dtype_info(dtype)->cls == DTYPE_CLASS_SIGNED;
    uint64_t highest = dtype == TSSA_BOOL ? 1
                       : is_signed        ? (UINT64_C(1) << (bits - 1)) - 1
                                          : UINT64_MAX >> (64 - bits);
    uint64_t low = is_signed ? ~highest : 0;
    dtype_store_int64(dtype, element, (int64_t)(lowest ? low : highest));
}

/* An empty set gives the bound of the type that everything is beyond. */
static void extremum_range(void *context, int64_t begin, int64_t end)
{
    const struct reduce *r = context;
    tssa_dtype dtype = r->in->dtype;
    size_t width = tssa_dtype_size(dtype);
    bool largest = r->reduction->identity < 0;
    for (int64_t i = begin; i < end; i++) {
        const char *base =
            (const char *)r->in->data + (size_t)axis_nest_offset(&r->kept, i) * width;
        char *out = (char *)r->out->data + (size_t)i * width;
        if (r->reduced.count == 0)
            store_bound(dtype, out, largest);
        else if (r->integers)
            dtype_store_int64(
                dtype, out,
                (int64_t)fold_integers(r, base, (uint64_t)dtype_load_int64(dtype, base)));
        else
            dtype_store_double(dtype, out, fold_doubles(r, base, r->reduction->identity, 0));
    }
}

/* ---- Max and Min of float32, which need no wider type --------------------------------------------- */

/* How the extreme of a line is found. */
struct float_extremum {
    float identity;
    float (*line)(float a, const float *x, int64_t n);
};

typedef float float_lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t int_lanes __attribute__((vector_size(LANES * sizeof(float))));

/* `extreme` is the macro of one element, `beyond` its comparison. */
#define FLOAT_EXTREMUM(name, bound, extreme, beyond)                                               \
    VECTOR_FUNCTION(float, name##_line, (float a, const float *x, int64_t n), (a, x, n))           \
    {                                                                                              \
        float_lanes lanes = (float_lanes){0} + (bound);                                            \
        for (; n >= LANES; n -= LANES, x += LANES) {                                               \
            float_lanes v;                                                                         \
            memcpy(&v, x, sizeof v);                                                               \
            int_lanes take = (v beyond lanes) | (v != v);                                          \
            lanes = (float_lanes)(((int_lanes)v & take) | ((int_lanes)lanes & ~take));             \
        }                                                                                          \
        for (; n > 0; n--, x++)                                                                    \
            a = extreme(a, *x);                                                                    \
        for (int k = 0; k < LANES; k++)                                                            \
            a = extreme(a, lanes[k]);                                                              \
        return a;                                                                                  \
    }

FLOAT_EXTREMUM(float_max, -INFINITY, LARGER, >)
FLOAT_EXTREMUM(float_min, INFINITY, SMALLER, <)

static const struct float_extremum float_extremes[] = {{INFINITY, float_min_line},
                                                       {-INFINITY, float_max_line}};

struct float_reduce {
    struct reduce r;
    const struct float_extremum *extremum;
};

/* Outputs whose elements lie in a line. */
static void float_lines(void *context, int64_t begin, int64_t end)
{
    const struct float_reduce *f = context;
    const float *in = f->r.in->data;
    float *out = f->r.out->data;
    for (int64_t i = begin; i < end; i++)
        out[i] = f->extremum->line(f->extremum->identity, in + axis_nest_offset(&f->r.kept, i),
                                   f->r.reduced.count);
}

/* Whether it was one of the shapes that are worth it. */
static bool run_extremum(const struct team *team, const struct reduce *r, bool largest)
{
    const struct axis_nest *kept = &r->kept, *reduced = &r->reduced;
    struct float_reduce f = {.r = *r, .extremum = &float_extremes[largest]};
    if (r->in->dtype == TSSA_FLOAT && reduced->rank == 1 && reduced->strides[0] == 1 &&
        reduced->count > 0 && kept->count > 0) {
        team_for(team, kept->count, reduce_grain(reduced->count), float_lines, &f);
        return true;
    }
    return reduce_rows(team, largest ? ROW_MAX : ROW_MIN, r->in, r->out, kept, reduced);
}

/* ---- The kernel ----------------------------------------------------------------------------------- */

struct reduce_attrs {
    bool keepdims, noop_with_empty_axes;
};

static tssa_status *reduce_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct reduce_attrs *attrs = ARENA_NEW(setup->arena, struct reduce_attrs);
    TRY_ALLOC(attrs);
    attrs->keepdims = ir_attr_int(op, "keepdims", 1) != 0;
    attrs->noop_with_empty_axes = ir_attr_int(op, "noop_with_empty_axes", 0) != 0;
    *state = attrs;
    return NULL;
}

static tssa_status *marked_axes(const struct kernel_args *args, int rank, bool *marked)
{
    const struct reduce_attrs *attrs = args->state;
    int64_t axes[TSSA_MAX_RANK];
    size_t count = 0;
    const struct tensor *given;
    TRY(kernel_optional_tensor(args, 1, &given));
    if (given)
        TRY(kernel_ints(args, 1, axes, TSSA_MAX_RANK, &count));
    for (int i = 0; i < rank; i++)
        marked[i] = count == 0 && !attrs->noop_with_empty_axes;
    for (size_t i = 0; i < count; i++) {
        int axis;
        TRY(kernel_axis(axes[i], rank, &axis));
        marked[axis] = true;
    }
    return NULL;
}

/* Reads the operands and makes the output. */
static tssa_status *reduce_open(struct kernel_args *args, struct reduce *r)
{
    const struct reduce_attrs *attrs = args->state;
    bool marked[TSSA_MAX_RANK];
    int64_t dims[TSSA_MAX_RANK];
    int rank = 0;
    TRY(kernel_tensor(args, 0, &r->in));
    if (!dtype_in(args->op->info->types, r->in->dtype))
        return ERROR(TSSA_RUNTIME, "elements of type %s cannot be reduced",
                     tssa_dtype_name(r->in->dtype));
    TRY(marked_axes(args, r->in->rank, marked));
    axis_nest_init(&r->kept, r->in, marked, false);
    axis_nest_init(&r->reduced, r->in, marked, true);
    for (int i = 0; i < r->in->rank; i++)
        if (!marked[i] || attrs->keepdims)
            dims[rank++] = marked[i] ? 1 : r->in->dims[i];
    return kernel_output(args, 0, r->in->dtype, rank, dims, &r->out);
}

static tssa_status *reduce_run(struct kernel_args *args, const struct reduction *reduction)
{
    struct reduce r = {.reduction = reduction};
    TRY(reduce_open(args, &r));
    if (!r.out)
        return NULL;
    r.integers = reduction->fold_int && !dtype_is_float(r.in->dtype);
    bool sum = reduction->fold_int == int_sum && !reduction->finish;
    if ((sum || reduction->fold_int == int_product) &&
        reduce_rows(args->env->team, sum ? ROW_SUM : ROW_PRODUCT, r.in, r.out, &r.kept, &r.reduced))
        return NULL;
    team_for(args->env->team, (int64_t)tensor_count(r.out), reduce_grain(r.reduced.count),
             reduce_range, &r);
    return NULL;
}

static tssa_status *extremum_run(struct kernel_args *args, bool largest)
{
    static const struct reduction reductions[2][2] = {
        {{INFINITY, fold_min, NULL, int_min, false}, {-INFINITY, fold_max, NULL, int_max, false}},
        {{INFINITY, fold_min, NULL, uint_min, false}, {-INFINITY, fold_max, NULL, uint_max, false}},
    };
    struct reduce r = {0};
    TRY(reduce_open(args, &r));
    if (!r.out)
        return NULL;
    r.reduction = &reductions[r.in->dtype == TSSA_UINT64][largest];
    r.integers = !dtype_is_float(r.in->dtype);
    if (!run_extremum(args->env->team, &r, largest))
        team_for(args->env->team, (int64_t)tensor_count(r.out), reduce_grain(r.reduced.count),
                 extremum_range, &r);
    return NULL;
}

#define REDUCE(name, ...)                                                                          \
    static tssa_status *run_##name(struct kernel_args *args)                                       \
    {                                                                                              \
        static const struct reduction reduction = {__VA_ARGS__};                                   \
        return reduce_run(args, &reduction);                                                       \
    }                                                                                              \
    const struct kernel cpu_kernel_##name = {.prepare = reduce_prepare, .run = run_##name};

REDUCE(ReduceSum, .fold = fold_sum, .fold_int = int_sum)
REDUCE(ReduceMean, .fold = fold_sum, .finish = finish_mean, .fold_int = int_sum)
REDUCE(ReduceProd, .identity = 1, .fold = fold_product, .fold_int = int_product)
REDUCE(ReduceL1, .fold = fold_l1, .fold_int = int_l1)
REDUCE(ReduceL2, .fold = fold_squares, .finish = finish_sqrt)
REDUCE(ReduceSumSquare, .fold = fold_squares, .fold_int = int_squares)
REDUCE(ReduceLogSum, .fold = fold_sum, .finish = finish_log)
REDUCE(ReduceLogSumExp, .fold = fold_sum, .by_max = true)

#define EXTREMUM(name, largest)                                                                    \
    static tssa_status *run_##name(struct kernel_args *args)                                       \
    {                                                                                              \
        return extremum_run(args, largest);                                                        \
    }                                                                                              \
    const struct kernel cpu_kernel_##name = {.prepare = reduce_prepare, .run = run_##name};

EXTREMUM(ReduceMax, true)
EXTREMUM(ReduceMin, false)

/* ---- ArgMax and ArgMin ---------------------------------------------------------------------------- */

struct arg_attrs {
    int64_t axis;
    bool keepdims, last;
};

static tssa_status *arg_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                const void **state)
{
    struct arg_attrs *attrs = ARENA_NEW(setup->arena, struct arg_attrs);
    TRY_ALLOC(attrs);
    attrs->axis = ir_attr_int(op, "axis", 0);
    attrs->keepdims = ir_attr_int(op, "keepdims", 1) != 0;
    attrs->last = ir_attr_int(op, "select_last_index", 0) != 0;
    *state = attrs;
    return NULL;
}

/* One row of elements, its extremum so far; a chunk is negated where the smallest is wanted. */
struct arg_row {
    double best;
    int64_t best_int, at;
};

/* NaN is beyond all. */
static void arg_doubles(struct arg_row *row, const double *x, int64_t first, int64_t n, bool last)
{
    for (int64_t i = 0; i < n; i++) {
        bool nan = x[i] != x[i], best_nan = row->best != row->best;
        if (x[i] > row->best || (nan && !best_nan) ||
            (last && (x[i] == row->best || (nan && best_nan)))) {
            row->best = x[i];
            row->at = first + i;
        }
    }
}

static void arg_ints(struct arg_row *row, const int64_t *x, int64_t first, int64_t n, bool last)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] > row->best_int || (last && x[i] == row->best_int)) {
            row->best_int = x[i];
            row->at = first + i;
        }
}

/* The index along the axis of the extremum of one row; ties go to the first, or the last. */
static int64_t arg_find(const struct tensor *in, const char *from, const struct axis_split *split,
                        bool largest, bool last)
{
    struct arg_row row = {-INFINITY, INT64_MIN, 0};
    size_t stride = (size_t)split->inner * tssa_dtype_size(in->dtype);
    double doubles[CHUNK];
    int64_t ints[CHUNK];
    bool is_float = dtype_is_float(in->dtype);
    /* The complement reverses the order of integers; the top bit that of signed and unsigned. */
    int64_t flip = (largest ? 0 : -1) ^ (in->dtype == TSSA_UINT64 ? INT64_MIN : 0);
    for (int64_t i = 0; i < split->size; i += CHUNK) {
        int64_t n = split->size - i < CHUNK ? split->size - i : CHUNK;
        convert_elements(n, in->dtype, from + (size_t)i * stride, split->inner,
                         is_float ? TSSA_DOUBLE : TSSA_INT64,
                         is_float ? (void *)doubles : (void *)ints, 1, &convert_default);
        for (int64_t k = 0; k < n && is_float && !largest; k++)
            doubles[k] = -doubles[k];
        for (int64_t k = 0; k < n && !is_float; k++)
            ints[k] ^= flip;
        if (is_float)
            arg_doubles(&row, doubles, i, n, last);
        else
            arg_ints(&row, ints, i, n, last);
    }
    return row.at;
}

static tssa_status *arg_run(struct kernel_args *args, bool largest)
{
    const struct arg_attrs *attrs = args->state;
    const struct tensor *in;
    struct tensor *out;
    int axis, rank = 0;
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &in));
    if (!dtype_in(args->op->info->types, in->dtype))
        return ERROR(TSSA_RUNTIME, "elements of type %s have no order", tssa_dtype_name(in->dtype));
    TRY(kernel_axis(attrs->axis, in->rank, &axis));
    for (int i = 0; i < in->rank; i++)
        if (i != axis || attrs->keepdims)
            dims[rank++] = i == axis ? 1 : in->dims[i];
    struct axis_split split = axis_split(in, axis);
    if (split.size == 0 && split.outer * split.inner > 0)
        return ERROR(TSSA_RUNTIME, "axis %d has no elements", axis);
    TRY(kernel_output(args, 0, TSSA_INT64, rank, dims, &out));
    size_t width = tssa_dtype_size(in->dtype);
    int64_t *result = out ? out->data : NULL;
    for (int64_t o = 0; result && o < split.outer; o++)
        for (int64_t i = 0; i < split.inner; i++) {
            const char *row =
                (const char *)in->data + (size_t)(o * split.size * split.inner + i) * width;
            *result++ = arg_find(in, row, &split, largest, attrs->last);
        }
    return NULL;
}

static tssa_status *run_ArgMax(struct kernel_args *args)
{
    return arg_run(args, true);
}
static tssa_status *run_ArgMin(struct kernel_args *args)
{
    return arg_run(args, false);
}
const struct kernel cpu_kernel_ArgMax = {.prepare = arg_prepare, .run = run_ArgMax};
const struct kernel cpu_kernel_ArgMin = {.prepare = arg_prepare, .run = run_ArgMin};
