/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduce* (ai.onnx 1 to 20). Floats accumulate in double, in one order for any number of threads, and
 * round once; integers accumulate exactly, modulo 2^64, where the reduction is exact on integers, and
 * otherwise (L2, LogSum, LogSumExp) in double, truncated. An empty set gives the reduction's identity.
 */
#include <math.h>
#include <string.h>

#include "device/kernel.h"
#include "kernels/cpu/axes.h"
#include "kernels/cpu/convert.h"

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

FOLD(fold_sum, double, double, a += x[i])
FOLD(fold_product, double, double, a *= x[i])
FOLD(fold_l1, double, double, a += fabs(x[i]))
FOLD(fold_squares, double, double, a += x[i] * x[i])
FOLD(fold_max, double, double, a = x[i] > a || isnan(x[i]) ? x[i] : a)
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

/* Compares elements without rounding: integers as integers, floats as doubles with NaN beyond all. */
static bool beyond(tssa_dtype dtype, const void *a, const void *b, bool largest)
{
    if (dtype_is_float(dtype)) {
        double x = dtype_load_double(dtype, a), y = dtype_load_double(dtype, b);
        if (isnan(x) || isnan(y))
            return isnan(x) && !isnan(y);
        return largest ? x > y : x < y;
    }
    int64_t x = dtype_load_int64(dtype, a), y = dtype_load_int64(dtype, b);
    if (dtype == TSSA_UINT64)
        return largest ? (uint64_t)x > (uint64_t)y : (uint64_t)x < (uint64_t)y;
    return largest ? x > y : x < y;
}

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

struct extremum {
    struct reduce base;
    bool largest;
};

static void extremum_range(void *context, int64_t begin, int64_t end)
{
    const struct extremum *e = context;
    const struct reduce *r = &e->base;
    tssa_dtype dtype = r->in->dtype;
    size_t width = tssa_dtype_size(dtype);
    for (int64_t i = begin; i < end; i++) {
        const char *base =
            (const char *)r->in->data + (size_t)axis_nest_offset(&r->kept, i) * width;
        char *out = (char *)r->out->data + (size_t)i * width;
        if (r->reduced.count == 0) {
            store_bound(dtype, out, e->largest);
            continue;
        }
        const char *best = base;
        for (int64_t k = 1; k < r->reduced.count; k++) {
            const char *element = base + (size_t)axis_nest_offset(&r->reduced, k) * width;
            if (beyond(dtype, element, best, e->largest))
                best = element;
        }
        memcpy(out, best, width);
    }
}

/* ---- The kernel ----------------------------------------------------------------------------------- */

struct reduce_attrs {
    bool keepdims, noop_with_empty_axes;
};

static tssa_status *reduce_prepare(const struct ir_op *op, struct arena *arena, const void **state)
{
    struct reduce_attrs *attrs = ARENA_NEW(arena, struct reduce_attrs);
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

static int64_t outputs_per_part(const struct reduce *r)
{
    int64_t grain = 32768 / (r->reduced.count > 0 ? r->reduced.count : 1);
    return grain > 0 ? grain : 1;
}

static tssa_status *reduce_run(struct kernel_args *args, const struct reduction *reduction)
{
    struct reduce r = {.reduction = reduction};
    TRY(reduce_open(args, &r));
    if (!r.out)
        return NULL;
    r.integers = reduction->fold_int && !dtype_is_float(r.in->dtype);
    team_for(args->env->team, (int64_t)tensor_count(r.out), outputs_per_part(&r), reduce_range, &r);
    return NULL;
}

static tssa_status *extremum_run(struct kernel_args *args, bool largest)
{
    struct extremum e = {.largest = largest};
    TRY(reduce_open(args, &e.base));
    if (e.base.out)
        team_for(args->env->team, (int64_t)tensor_count(e.base.out), outputs_per_part(&e.base),
                 extremum_range, &e);
    return NULL;
}

#define REDUCE(name, ...)                                                                          \
    static tssa_status *run_##name(struct kernel_args *args)                                       \
    {                                                                                              \
        static const struct reduction reduction = {__VA_ARGS__};                                   \
        return reduce_run(args, &reduction);                                                       \
    }                                                                                              \
    const struct cpu_kernel cpu_kernel_##name = {reduce_prepare, run_##name};

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
    const struct cpu_kernel cpu_kernel_##name = {reduce_prepare, run_##name};

EXTREMUM(ReduceMax, true)
EXTREMUM(ReduceMin, false)

/* ---- ArgMax and ArgMin ---------------------------------------------------------------------------- */

struct arg_attrs {
    int64_t axis;
    bool keepdims, last;
};

static tssa_status *arg_prepare(const struct ir_op *op, struct arena *arena, const void **state)
{
    struct arg_attrs *attrs = ARENA_NEW(arena, struct arg_attrs);
    TRY_ALLOC(attrs);
    attrs->axis = ir_attr_int(op, "axis", 0);
    attrs->keepdims = ir_attr_int(op, "keepdims", 1) != 0;
    attrs->last = ir_attr_int(op, "select_last_index", 0) != 0;
    *state = attrs;
    return NULL;
}

/* The index along the axis of the extremum of one row; ties go to the first, or the last. */
static int64_t arg_row(const struct tensor *in, const char *row, const struct axis_split *split,
                       bool largest, bool last)
{
    size_t stride = (size_t)split->inner * tssa_dtype_size(in->dtype);
    int64_t best = 0;
    for (int64_t k = 1; k < split->size; k++) {
        const char *element = row + (size_t)k * stride, *so_far = row + (size_t)best * stride;
        bool better = beyond(in->dtype, element, so_far, largest);
        if (better || (last && !beyond(in->dtype, so_far, element, largest)))
            best = k;
    }
    return best;
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
            *result++ = arg_row(in, row, &split, largest, attrs->last);
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
const struct cpu_kernel cpu_kernel_ArgMax = {arg_prepare, run_ArgMax};
const struct cpu_kernel cpu_kernel_ArgMin = {arg_prepare, run_ArgMin};
