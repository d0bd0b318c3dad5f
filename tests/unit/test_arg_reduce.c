/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ArgMax and ArgMin against their definition, along any axis of random shapes, for any number of
 * threads. Elements are few different ones, NaN and zeros of both signs among them, so that there
 * are ties.
 */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/op_run.h"

#define ROUNDS 600

static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16, TSSA_INT32,
                                    TSSA_INT64, TSSA_UINT8, TSSA_UINT64, TSSA_INT8};
#define N_DTYPES (sizeof dtypes / sizeof *dtypes)

static void *place(const struct tensor *x, int64_t i)
{
    return (char *)x->data + (size_t)i * dtype_info(x->dtype)->size;
}

/* Numbers at either end of an integer's range, too. */
static void fill(struct random *random, struct tensor *x)
{
    int64_t range = random_int(random, 0, 1) ? 3 : 1000;
    bool nans = random_int(random, 0, 2) == 0;
    for (int64_t i = 0; i < (int64_t)tensor_count(x); i++) {
        int64_t value = random_int(random, -range, range);
        if (!dtype_is_float(x->dtype))
            dtype_store_int64(x->dtype, place(x, i),
                              random_int(random, 0, 1) ? value : value ^ INT64_MIN);
        else if (nans && random_int(random, 0, 100) == 0)
            dtype_store_double(x->dtype, place(x, i), NAN);
        else
            dtype_store_double(x->dtype, place(x, i),
                               random_int(random, 0, 1) ? (double)value : -(double)value);
    }
}

/* Whether element i is beyond element k, or a NaN where that is none. */
static bool beyond(const struct tensor *x, int64_t i, int64_t k, bool largest)
{
    if (dtype_is_float(x->dtype)) {
        double a = dtype_load_double(x->dtype, place(x, i));
        double b = dtype_load_double(x->dtype, place(x, k));
        return isnan(a) ? !isnan(b) : largest ? a > b : a < b;
    }
    int64_t flip = x->dtype == TSSA_UINT64 ? INT64_MIN : 0;
    int64_t a = dtype_load_int64(x->dtype, place(x, i)) ^ flip;
    int64_t b = dtype_load_int64(x->dtype, place(x, k)) ^ flip;
    return largest ? a > b : a < b;
}

static int64_t expected(const struct tensor *x, int64_t base, int64_t size, int64_t stride,
                        bool largest, bool last)
{
    int64_t at = 0;
    for (int64_t i = 1; i < size; i++) {
        int64_t here = base + i * stride, best = base + at * stride;
        if (last ? !beyond(x, best, here, largest) : beyond(x, here, best, largest))
            at = i;
    }
    return at;
}

/* The parts of a parallel loop one after the other, the last one first. */
static void backwards(int threads, int64_t count, team_body body, void *context)
{
    for (int64_t t = threads - 1; t >= 0; t--)
        body(context, count * t / threads, count * (t + 1) / threads);
}

static void test_indices(void **state)
{
    static const int64_t lengths[] = {1, 2, 3, 7, 16, 33, 80, 300, 2500};
    struct random random = {5};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int rank = (int)random_int(&random, 1, 3), axis = (int)random_int(&random, 0, rank - 1);
        int64_t dims[TSSA_MAX_RANK], results[TSSA_MAX_RANK], most = 60000, inner = 1;
        for (int i = 0; i < rank; i++) {
            do
                dims[i] = lengths[random_int(&random, 0, 8)];
            while (dims[i] > most);
            most /= dims[i];
            results[i] = i == axis ? 1 : dims[i];
            inner *= i > axis ? dims[i] : 1;
        }
        bool largest = random_int(&random, 0, 1), last = random_int(&random, 0, 1);
        int threads = (int)random_int(&random, 1, 3);
        static struct team team; /* of one run at a time */
        team = (struct team){.threads = threads, .parallel_for = threads > 1 ? backwards : NULL};
        struct op_run run;
        op_open(&run, largest ? IR_OP_ArgMax : IR_OP_ArgMin, 1, 1);
        op_int(&run, "axis", axis);
        op_int(&run, "select_last_index", last);
        run.env.team = &team;
        struct tensor *x =
            op_input(&run, 0, dtypes[random_int(&random, 0, N_DTYPES - 1)], rank, dims);
        fill(&random, x);
        op_go(&run);
        const int64_t *y = op_output(&run, 0, TSSA_INT64, rank, results)->data;
        for (int64_t i = 0; i < (int64_t)tensor_count(x) / dims[axis]; i++)
            assert_int_equal(y[i], expected(x, i / inner * dims[axis] * inner + i % inner,
                                            dims[axis], inner, largest, last));
        op_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_indices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
