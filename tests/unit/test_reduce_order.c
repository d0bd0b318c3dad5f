/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of floats give the bits that the order of ir/reduction.def gives, which is computed
 * here from the definition, one element at a time: over any axes of random shapes, for any number
 * of threads.
 */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/f32_log.h"
#include "ir/scalar/f64_exp.h"
#include "ir/scalar/f64_log.h"

#define ROUNDS 500
#define LANES 32
#define RADIX 64
#define MOST 150000 /* elements of an operand */

/* ---- The order, by its definition ------------------------------------------------------------ */

struct sum {
    enum ir_op_id id;
    bool is_double;
    double shift; /* LogSumExp: the largest */
};

/* A value of the type: an operation of doubles, rounded again, is that of floats. */
static double rounded(const struct sum *s, double x)
{
    return s->is_double ? x : (double)(float)x;
}

static double combine(const struct sum *s, double a, double b)
{
    if (s->id == IR_OP_ReduceMax)
        return isnan(b) || b > a ? b : a;
    if (s->id == IR_OP_ReduceMin)
        return isnan(b) || b < a ? b : a;
    return rounded(s, s->id == IR_OP_ReduceProd ? a * b : a + b);
}

static double before(const struct sum *s, double x)
{
    switch (s->id) {
    case IR_OP_ReduceL1:
        return fabs(x);
    case IR_OP_ReduceL2:
    case IR_OP_ReduceSumSquare:
        return rounded(s, x * x);
    case IR_OP_ReduceLogSumExp:
        return s->is_double ? f64_exp(x - s->shift) : (double)f32_exp((float)(x - s->shift));
    default:
        return x;
    }
}

static double log_of(const struct sum *s, double x)
{
    return s->is_double ? f64_log(x) : (double)f32_log((float)x);
}

static double after(const struct sum *s, double a, double count)
{
    switch (s->id) {
    case IR_OP_ReduceMean:
        return rounded(s, a / rounded(s, count));
    case IR_OP_ReduceL2:
        return rounded(s, sqrt(a));
    case IR_OP_ReduceLogSum:
        return log_of(s, a);
    case IR_OP_ReduceLogSumExp:
        return isfinite(s->shift) ? rounded(s, s->shift + log_of(s, a)) : s->shift;
    default:
        return a;
    }
}

static double identity(const struct sum *s)
{
    return s->id == IR_OP_ReduceProd  ? 1
           : s->id == IR_OP_ReduceMax ? -(double)INFINITY
           : s->id == IR_OP_ReduceMin ? (double)INFINITY
                                      : 0;
}

/* One lane: n steps' elements, of which `absent` have none. Overwrites them. */
static double lane_of(const struct sum *s, double *x, const bool *absent, int64_t n)
{
    double rest = identity(s);
    for (bool first = true; n > 0; first = false) {
        int64_t groups = n / RADIX;
        double left = identity(s);
        for (int64_t i = 0; i < n; i++) {
            double *to = i < groups * RADIX ? &x[i / RADIX] : &left, e = x[i];
            if (i % RADIX == 0 && to != &left)
                *to = identity(s);
            if (!first || !absent[i])
                *to = combine(s, *to, e);
        }
        rest = combine(s, left, rest);
        n = groups;
    }
    return rest;
}

/* Element i of n is at lane lanes[i] of step steps[i]. */
static double reduced(const struct sum *s, const double *x, const int64_t *steps, const int *lanes,
                      int64_t n)
{
    double results[LANES];
    int64_t n_steps = n ? steps[n - 1] + 1 : 0;
    double *line = test_malloc((size_t)(n_steps + 1) * sizeof *line);
    bool *absent = test_malloc((size_t)(n_steps + 1) * sizeof *absent);
    for (int k = 0; k < LANES; k++) {
        memset(absent, true, (size_t)n_steps * sizeof *absent);
        for (int64_t i = 0; i < n; i++)
            if (lanes[i] == k) {
                line[steps[i]] = before(s, x[i]);
                absent[steps[i]] = false;
            }
        results[k] = lane_of(s, line, absent, n_steps);
    }
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            results[k] = combine(s, results[k], results[k + half]);
    test_free(line);
    test_free(absent);
    return after(s, results[0], (double)n);
}

/* ---- Against the kernels --------------------------------------------------------------------- */

struct shape {
    int rank;
    int64_t dims[TSSA_MAX_RANK];
    bool reduced[TSSA_MAX_RANK];
};

/* How many neighbours are reduced together; 0 where the innermost axis is kept. */
static int64_t run_of(const struct shape *shape)
{
    int64_t run = 0;
    for (int i = shape->rank - 1; i >= 0; i--) {
        if (shape->dims[i] == 1)
            continue;
        if (!shape->reduced[i])
            break;
        run = (run ? run : 1) * shape->dims[i];
    }
    return run;
}

static double element(const struct tensor *x, int64_t i)
{
    return dtype_load_double(x->dtype,
                             (const char *)x->data + (size_t)i * dtype_info(x->dtype)->size);
}

static void expect_reduced(enum ir_op_id id, const struct tensor *in, const struct tensor *out,
                           const struct shape *shape)
{
    int64_t total = (int64_t)tensor_count(in), results = (int64_t)tensor_count(out);
    int64_t n = total / (results ? results : 1), run = run_of(shape);
    struct sum sum = {.id = id, .is_double = in->dtype == TSSA_DOUBLE};
    double *x = test_malloc((size_t)(n + 1) * sizeof *x);
    int64_t *steps = test_malloc((size_t)(n + 1) * sizeof *steps), at[TSSA_MAX_RANK];
    int *lanes = test_malloc((size_t)(n + 1) * sizeof *lanes);
    for (int64_t r = 0; r<results; r += results> 64 ? results / 7 : 1) {
        int64_t found = 0, step = 0;
        for (int64_t i = 0; i < total; i++) {
            int64_t to = 0;
            unflatten(shape->rank, shape->dims, i, at);
            for (int d = 0; d < shape->rank; d++)
                to = shape->reduced[d] ? to : to * shape->dims[d] + at[d];
            if (to != r)
                continue;
            int64_t in_run = run ? found % run : 0;
            if (found > 0 && in_run % LANES == 0)
                step++;
            steps[found] = step;
            lanes[found] = (int)(in_run % LANES);
            x[found++] = element(in, i);
        }
        assert_int_equal(found, n);
        if (id == IR_OP_ReduceLogSumExp) {
            struct sum max = {.id = IR_OP_ReduceMax, .is_double = sum.is_double};
            sum.shift = reduced(&max, x, steps, lanes, n);
        }
        double wanted = reduced(&sum, x, steps, lanes, n), got = element(out, r);
        char narrow[8];
        dtype_store_double(out->dtype, narrow, wanted);
        wanted = dtype_load_double(out->dtype, narrow);
        if (!(isnan(wanted) && isnan(got)) &&
            (got != wanted || !signbit(got) != !signbit(wanted))) /* NOLINT: the same bits */
            fail_msg("%s over %lld elements, run %lld: %a, not %a", ir_op_info(id)->name,
                     (long long)n, (long long)run, got, wanted);
    }
    test_free(x);
    test_free(steps);
    test_free(lanes);
}

/* The parts of a parallel loop one after the other, the last one first. */
static void backwards(int threads, int64_t count, team_body body, void *context)
{
    for (int64_t t = threads - 1; t >= 0; t--)
        body(context, count * t / threads, count * (t + 1) / threads);
}

static void some_shape(struct random *random, struct shape *shape)
{
    static const int64_t lengths[] = {1, 2, 3, 7, 16, 31, 33, 65, 300, 2049, 5000, 140000};
    int64_t most = random_int(random, 0, 3) ? 4000 : MOST;
    *shape = (struct shape){.rank = (int)random_int(random, 1, 4)};
    for (int i = 0; i < shape->rank; i++) {
        do
            shape->dims[i] = lengths[random_int(random, 0, 11)];
        while (shape->dims[i] > most);
        most /= shape->dims[i];
        shape->reduced[i] = random_int(random, 0, 2) != 0;
    }
    shape->reduced[random_int(random, 0, shape->rank - 1)] = true;
}

static void put(struct tensor *x, int64_t i, double value)
{
    dtype_store_double(x->dtype, (char *)x->data + (size_t)i * dtype_info(x->dtype)->size, value);
}

/* Some have infinities of both signs, and some of these numbers that are none. */
static void fill(struct random *random, struct tensor *x)
{
    static const double odd[] = {INFINITY, -INFINITY, NAN, NAN};
    const int64_t count = (int64_t)tensor_count(x);
    for (int64_t i = 0; i < count; i++)
        put(x, i, (double)random_int(random, -1000000, 1500000) / 700000);
    const int64_t n_odd = random_int(random, 0, 3) ? 0 : random_int(random, 1, 4);
    for (int64_t i = 0; count && i < n_odd; i++)
        put(x, random_int(random, 0, count - 1), odd[i]);
}

/* Reduces a random tensor of the shape on a team. */
static void check_order(enum ir_op_id id, tssa_dtype dtype, const struct shape *shape, int threads,
                        struct random *random)
{
    static struct team team; /* of one run at a time */
    int64_t axes[TSSA_MAX_RANK], dims[TSSA_MAX_RANK];
    int n_axes = 0, rank = 0;
    for (int i = 0; i < shape->rank; i++)
        if (shape->reduced[i])
            axes[n_axes++] = i;
        else
            dims[rank++] = shape->dims[i];
    struct op_run run;
    op_open(&run, id, 2, 1);
    op_int(&run, "keepdims", 0);
    team = (struct team){.threads = threads, .parallel_for = threads > 1 ? backwards : NULL};
    run.env.team = &team;
    struct tensor *x = op_input(&run, 0, dtype, shape->rank, shape->dims);
    fill(random, x);
    op_input_ints(&run, 1, TSSA_INT64, 1, n_axes, axes);
    op_go(&run);
    expect_reduced(id, x, op_output(&run, 0, dtype, rank, dims), shape);
    op_close(&run);
}

static void test_order(void **state)
{
    static const enum ir_op_id ids[] = {
        IR_OP_ReduceSum,       IR_OP_ReduceMean,   IR_OP_ReduceProd, IR_OP_ReduceMax,
        IR_OP_ReduceMin,       IR_OP_ReduceL1,     IR_OP_ReduceL2,   IR_OP_ReduceSumSquare,
        IR_OP_ReduceLogSumExp, IR_OP_ReduceLogSum,
    };
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16,
                                        TSSA_BFLOAT16};
    struct random random = {11};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct shape shape;
        tssa_dtype dtype = dtypes[random_int(&random, 0, 4)];
        some_shape(&random, &shape);
        check_order(ids[round % 10], dtype, &shape, (int)random_int(&random, 1, 3), &random);
    }
}

/* Fewer results than threads: these share the steps of each, in the same order. */
static void test_few_results(void **state)
{
    static const struct shape shapes[] = {
        {1, {600000}, {true}},
        {2, {2, 300001}, {false, true}},
        {2, {70000, 3}, {true, false}},
        {3, {5000, 2, 35}, {true, false, true}},
        {3, {300, 3, 500}, {true, false, true}},
        {4, {3, 40, 2, 1000}, {true, true, false, true}},
    };
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16};
    struct random random = {5};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int threads = 1; threads <= 4; threads *= 2)
            for (int d = 0; d < 3; d++) {
                check_order(IR_OP_ReduceSum, dtypes[d], &shapes[i], threads, &random);
                check_order(IR_OP_ReduceLogSumExp, dtypes[d], &shapes[i], threads, &random);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_few_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
