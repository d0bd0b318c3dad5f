/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ReduceMax and ReduceMin, and sums and products of integers, against their definition, over any
 * axes of random shapes: rows of floats and integers and lines of floats have loops of their own.
 * The other reductions have the official cases.
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

/* What is reduced, of x[rows, columns] along axis 0; sums and products wrap. */
static int64_t expected_integer(enum ir_op_id id, const struct tensor *x, int64_t column)
{
    size_t width = dtype_info(x->dtype)->size;
    uint64_t result = 0;
    for (int64_t i = 0; i < x->dims[0]; i++) {
        const char *at = (const char *)x->data + (size_t)(i * x->dims[1] + column) * width;
        int64_t element = dtype_load_int64(x->dtype, at);
        if (i == 0 || (id == IR_OP_ReduceMax && element > (int64_t)result) ||
            (id == IR_OP_ReduceMin && element < (int64_t)result))
            result = (uint64_t)element;
        else if (id == IR_OP_ReduceSum)
            result += (uint64_t)element;
        else if (id == IR_OP_ReduceProd)
            result *= (uint64_t)element;
    }
    return x->dtype == TSSA_INT32 ? (int32_t)(uint32_t)result : (int64_t)result;
}

static void test_rows_of_integers(void **state)
{
    static const enum ir_op_id ids[] = {IR_OP_ReduceSum, IR_OP_ReduceProd, IR_OP_ReduceMax,
                                        IR_OP_ReduceMin};
    static const int64_t axis = 0;
    struct random random = {2};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        enum ir_op_id id = ids[round % 4];
        tssa_dtype dtype = random_int(&random, 0, 1) ? TSSA_INT32 : TSSA_INT64;
        int64_t dims[] = {random_int(&random, 1, 40),
                          random_int(&random, 1, round % 8 ? 40 : 3000)};
        op_open(&run, id, 2, 1);
        op_int(&run, "keepdims", 0);
        struct tensor *x = (struct tensor *)op_random(&run, 0, &random, dtype, 2, dims);
        for (int64_t i = 0; i < dims[0] * dims[1]; i++) /* of all sizes */
            dtype_store_int64(dtype, (char *)x->data + (size_t)i * dtype_info(dtype)->size,
                              random_int(&random, INT32_MIN, INT32_MAX) *
                                  (dtype == TSSA_INT64 ? random_int(&random, 0, INT32_MAX) : 1));
        op_input_ints(&run, 1, TSSA_INT64, 1, 1, &axis);
        op_go(&run);
        const struct tensor *y = op_output(&run, 0, dtype, 1, dims + 1);
        for (int64_t i = 0; i < dims[1]; i++)
            assert_int_equal(dtype_load_int64(dtype, (const char *)y->data +
                                                         (size_t)i * dtype_info(dtype)->size),
                             expected_integer(id, x, i));
        op_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_extremes),
                                       cmocka_unit_test(test_rows_of_integers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
