/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ReduceMax and ReduceMin against their definition, over any axes of random shapes: rows and lines of
 * floats have loops of their own. The other reductions have the official cases.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

#define ROUNDS 600

static const struct {
    tssa_dtype dtype;
    double lowest, highest;
} types[] = {{TSSA_FLOAT, -INFINITY, INFINITY},
             {TSSA_DOUBLE, -INFINITY, INFINITY},
             {TSSA_FLOAT16, -INFINITY, INFINITY},
             {TSSA_INT32, INT32_MIN, INT32_MAX},
             {TSSA_UINT8, 0, UINT8_MAX}};

static double element(const struct tensor *x, size_t i)
{
    return dtype_load_double(x->dtype, (const char *)x->data + i * dtype_info(x->dtype)->size);
}

/* Short and long rows, longer than what a loop takes at once; now and then none. */
static void some_dims(struct random *random, int rank, int64_t *dims)
{
    static const int64_t lengths[] = {0, 1, 2, 7, 16, 19, 33, 1100};
    int64_t most = 100000;
    for (int i = 0; i < rank; i++) {
        do
            dims[i] = lengths[random_int(random, random_int(random, 0, 30) ? 1 : 0, 7)];
        while (dims[i] > most);
        most /= dims[i] ? dims[i] : 1;
    }
}

/* A NaN is beyond all and stays. */
static double extreme(double a, double x, bool largest)
{
    if (isnan(a) || isnan(x))
        return NAN;
    return (largest ? x > a : x < a) ? x : a;
}

struct shape {
    int rank, kept;
    int64_t dims[TSSA_MAX_RANK], result[TSSA_MAX_RANK]; /* of the result without kept dims of 1 */
    bool reduced[TSSA_MAX_RANK];
};

/* The number of the output to which an element belongs. */
static size_t output_of(const struct shape *shape, size_t element)
{
    int64_t at[TSSA_MAX_RANK], to[TSSA_MAX_RANK];
    int n = 0;
    unflatten(shape->rank, shape->dims, (int64_t)element, at);
    for (int i = 0; i < shape->rank; i++)
        if (!shape->reduced[i])
            to[n++] = at[i];
    return (size_t)flat_index(n, shape->result, to);
}

static void expect_extremes(const struct tensor *x, const struct tensor *y,
                            const struct shape *shape, double bound, bool largest)
{
    size_t count = tensor_count(y);
    double *wanted = test_malloc((count + 1) * sizeof *wanted);
    for (size_t i = 0; i < count; i++)
        wanted[i] = bound;
    for (size_t i = 0; i < tensor_count(x); i++) {
        double *to = &wanted[output_of(shape, i)];
        *to = extreme(*to, element(x, i), largest);
    }
    for (size_t i = 0; i < count; i++)
        expect_close(element(y, i), wanted[i], 0, "extreme", i);
    test_free(wanted);
}

static void test_extremes(void **state)
{
    struct random random = {1};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        struct shape shape = {.rank = (int)random_int(&random, 0, 4)};
        size_t type = (size_t)random_int(&random, 0, 9);
        bool largest = random_int(&random, 0, 1), keep = random_int(&random, 0, 1);
        int64_t axes[TSSA_MAX_RANK], dims[TSSA_MAX_RANK];
        int n_axes = 0, rank = 0;
        type = type < 5 ? type : 0; /* half of them float32 */
        some_dims(&random, shape.rank, shape.dims);
        for (int i = 0; i < shape.rank; i++)
            if ((shape.reduced[i] = random_int(&random, 0, 1)))
                axes[n_axes++] = i;
            else
                shape.result[shape.kept++] = shape.dims[i];
        if (n_axes == 0) { /* all of them */
            memset(shape.reduced, true, sizeof shape.reduced);
            shape.kept = 0;
        }
        for (int i = 0; i < shape.rank; i++)
            if (keep || !shape.reduced[i])
                dims[rank++] = shape.reduced[i] ? 1 : shape.dims[i];
        op_open(&run, largest ? IR_OP_ReduceMax : IR_OP_ReduceMin, 2, 1);
        op_int(&run, "keepdims", keep);
        const struct tensor *x =
            op_random(&run, 0, &random, types[type].dtype, shape.rank, shape.dims);
        op_input_ints(&run, 1, TSSA_INT64, 1, n_axes, axes);
        op_go(&run);
        expect_extremes(x, op_output(&run, 0, types[type].dtype, rank, dims), &shape,
                        largest ? types[type].lowest : types[type].highest, largest);
        op_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_extremes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
