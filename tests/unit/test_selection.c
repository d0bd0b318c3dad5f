/* SPDX-License-Identifier: Apache-2.0 */
/* Compress, NonZero and Unique. */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "common/xmalloc.h"

#define ROUNDS 300

/* ---- Compress -------------------------------------------------------------------------------- */

struct compress {
    const struct tensor *x;
    int axis; /* -1: flat */
    const int64_t *chosen;
};

static int64_t compress_source(const void *context, const int64_t *at)
{
    const struct compress *c = context;
    int64_t from[TSSA_MAX_RANK];
    if (c->axis < 0)
        return c->chosen[at[0]];
    memcpy(from, at, (size_t)c->x->rank * sizeof *from);
    from[c->axis] = c->chosen[at[c->axis]];
    return flat_index(c->x->rank, c->x->dims, from);
}

static void test_compress(void **state)
{
    static const tssa_dtype types[] = {TSSA_UINT8, TSSA_FLOAT, TSSA_STRING};
    struct random random = {1};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 4);
        int axis = (int)random_int(&random, -1, rank - 1);
        int64_t dims[4] = {0}, result[4], chosen[1024], limit = 1, n = 0;
        for (int i = 0; i < rank; i++) {
            result[i] = dims[i] = random_int(&random, round % 20 == 0 ? 0 : 1, 5);
            limit *= dims[i];
        }
        limit = axis < 0 ? limit : dims[axis];
        op_open(&run, IR_OP_Compress, 2, 1);
        if (axis >= 0)
            op_int(&run, "axis", round % 2 ? axis : axis - rank);
        const struct tensor *x = op_random(&run, 0, &random, types[round % 3], rank, dims);
        /* Shorter than the axis: the rest is dropped. Longer: only with nothing true there. */
        int64_t length = random_int(&random, 0, limit + 1);
        bool *condition = op_input(&run, 1, TSSA_BOOL, 1, &length)->data;
        for (int64_t i = 0; i < length; i++) {
            condition[i] = i < limit && random_int(&random, 0, 1);
            if (condition[i])
                chosen[n++] = i;
        }
        result[axis < 0 ? 0 : axis] = n;
        op_go(&run);
        op_expect_moved(&run, 0, x, axis < 0 ? 1 : rank, result, compress_source,
                        &(struct compress){x, axis, chosen}, NULL);
        op_close(&run);
    }
}

/* Of many chunks of the mask, and of axes in front of it. */
static void test_compress_of_long_masks(void **state)
{
    static const tssa_dtype types[] = {TSSA_UINT8, TSSA_FLOAT16, TSSA_FLOAT, TSSA_DOUBLE};
    struct random random = {4};
    (void)state;
    for (int round = 0; round < 12; round++) {
        const int64_t dims[] = {round % 3 ? 1 : 3, random_int(&random, 1, 70000),
                                round % 2 ? 1 : 4};
        struct op_run run;
        int64_t *chosen = xcalloc((size_t)dims[1], sizeof *chosen), n = 0;
        op_open(&run, IR_OP_Compress, 2, 1);
        op_int(&run, "axis", 1);
        const struct tensor *x = op_random(&run, 0, &random, types[round % 4], 3, dims);
        bool *condition = op_input(&run, 1, TSSA_BOOL, 1, &dims[1])->data;
        for (int64_t i = 0; i < dims[1]; i++) {
            condition[i] = random_int(&random, 0, 9) < round;
            if (condition[i])
                chosen[n++] = i;
        }
        op_go(&run);
        op_expect_moved(&run, 0, x, 3, (int64_t[]){dims[0], n, dims[2]}, compress_source,
                        &(struct compress){x, 1, chosen}, NULL);
        op_close(&run);
        free(chosen);
    }
}

/* Rows of all lengths at which chunks are of other sizes. */
static void test_compress_of_long_rows(void **state)
{
    static const int64_t lengths[] = {0, 31, 4080, 4088, 4089, 4090, 4096, 4097, 70000};
    struct random random = {5};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int64_t dims[] = {70, lengths[i]};
        struct op_run run;
        int64_t chosen[70], n = 0;
        op_open(&run, IR_OP_Compress, 2, 1);
        op_int(&run, "axis", 0);
        const struct tensor *x = op_random(&run, 0, &random, TSSA_UINT8, 2, dims);
        bool *condition = op_input(&run, 1, TSSA_BOOL, 1, dims)->data;
        for (int64_t k = 0; k < dims[0]; k++) {
            condition[k] = random_int(&random, 0, 1);
            if (condition[k])
                chosen[n++] = k;
        }
        op_go(&run);
        op_expect_moved(&run, 0, x, 2, (int64_t[]){n, dims[1]}, compress_source,
                        &(struct compress){x, 0, chosen}, NULL);
        op_close(&run);
    }
}

static void test_compress_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Compress, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 1, (int64_t[]){1});
    bool *condition = op_input(&run, 1, TSSA_BOOL, 1, (int64_t[]){2})->data;
    condition[0] = false;
    condition[1] = true;
    op_fails(&run, "condition is true for number 1 of 1");
    op_input(&run, 1, TSSA_BOOL, 2, (int64_t[]){1, 1});
    op_fails(&run, "list of bool");
    op_input(&run, 1, TSSA_UINT8, 1, (int64_t[]){1});
    op_fails(&run, "list of bool");
    op_close(&run);
}

/* ---- NonZero --------------------------------------------------------------------------------- */

static void test_non_zero(void **state)
{
    static const tssa_dtype types[] = {TSSA_BOOL,  TSSA_INT8,   TSSA_FLOAT16, TSSA_FLOAT,
                                       TSSA_INT64, TSSA_DOUBLE, TSSA_UINT32,  TSSA_BFLOAT16};
    struct random random = {2};
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 0, 4);
        tssa_dtype dtype = types[round % 8];
        size_t size = dtype_info(dtype)->size;
        /* many chunks, and lines of less and more than a word of marks */
        int64_t dims[4], found = 0, most = rank == 3 && round % 4 == 3 ? 60 : 6;
        bool sparse = round % 3 == 0;
        for (int i = 0; i < rank; i++)
            dims[i] = random_int(&random, round % 20 == 0 ? 0 : 1, most);
        if (rank > 0 && rank < 4 && round % 5 == 0)
            dims[rank - 1] = random_int(&random, 1, 3000);
        op_open(&run, IR_OP_NonZero, 1, 1);
        struct tensor *x = op_input(&run, 0, dtype, rank, dims);
        for (size_t i = 0; i < tensor_count(x); i++) {
            int64_t value = sparse && random_int(&random, 0, 30) ? 0 : random_int(&random, -1, 1);
            dtype_store_double(dtype, (char *)x->data + i * size, (double)value);
            found += dtype_load_double(dtype, (char *)x->data + i * size) != 0;
        }
        op_go(&run);
        const int64_t *y = op_output(&run, 0, TSSA_INT64, 2, (int64_t[]){rank, found})->data;
        int64_t n = 0;
        for (size_t i = 0; i < tensor_count(x); i++) {
            int64_t at[4];
            if (dtype_load_double(dtype, (char *)x->data + i * size) == 0)
                continue;
            unflatten(rank, dims, (int64_t)i, at);
            for (int d = 0; d < rank; d++)
                assert_int_equal(y[d * found + n], at[d]);
            n++;
        }
        op_close(&run);
    }
}

/* More than the counts of a few blocks hold, and none left out. */
static void test_all_are_non_zero(void **state)
{
    const int64_t count = 70001;
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_NonZero, 1, 1);
    struct tensor *x = op_input(&run, 0, TSSA_UINT8, 1, &count);
    memset(x->data, 3, (size_t)count);
    op_go(&run);
    const int64_t *y = op_output(&run, 0, TSSA_INT64, 2, (int64_t[]){1, count})->data;
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(y[i], i);
    op_close(&run);
}

/* Of all bits, only the sign of a float may be set in a zero. */
static void test_non_zero_of_every_bit(void **state)
{
    (void)state;
    for (int t = 1; t < TSSA_DTYPE_COUNT; t++) {
        const struct dtype_info *info = dtype_info((tssa_dtype)t);
        bool small_float = info->cls == DTYPE_CLASS_FLOAT && info->size == 1;
        if (small_float || info->cls == DTYPE_CLASS_STRING || info->file_bits < 8)
            continue;
        unsigned half = info->cls == DTYPE_CLASS_COMPLEX ? info->size * 4u : info->size * 8u;
        for (unsigned bit = 0; bit < info->size * 8u; bit++) {
            struct op_run run;
            bool sign = bit % half == half - 1 &&
                        (info->cls == DTYPE_CLASS_FLOAT || info->cls == DTYPE_CLASS_COMPLEX);
            op_open(&run, IR_OP_NonZero, 1, 1);
            unsigned char *x = op_input(&run, 0, (tssa_dtype)t, 1, (int64_t[]){1})->data;
            memset(x, 0, info->size);
            x[bit / 8] = (unsigned char)(1u << bit % 8);
            op_go(&run);
            op_output(&run, 0, TSSA_INT64, 2, (int64_t[]){1, !sign});
            op_close(&run);
        }
    }
}

static void test_non_zero_of_odd_values(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_NonZero, 1, 1);
    float *x = op_input(&run, 0, TSSA_FLOAT, 1, (int64_t[]){4})->data;
    x[0] = -0.0f, x[1] = NAN, x[2] = 1e-45f, x[3] = 0;
    op_go(&run);
    op_expect_ints(&run, 0, 2, (int64_t[]){1, 2}, (int64_t[]){1, 2});
    double *z = op_input(&run, 0, TSSA_COMPLEX128, 1, (int64_t[]){3})->data;
    memcpy(z, (double[]){0, -0.0, 0, 1, -1, 0}, 6 * sizeof *z);
    op_go(&run);
    op_expect_ints(&run, 0, 2, (int64_t[]){1, 2}, (int64_t[]){1, 2});
    tssa_string *s = op_input(&run, 0, TSSA_STRING, 1, (int64_t[]){2})->data;
    s[0] = (tssa_string){"", 0};
    s[1] = (tssa_string){"\0", 1};
    op_go(&run);
    op_expect_ints(&run, 0, 2, (int64_t[]){1, 1}, (int64_t[]){1});
    op_input(&run, 0, TSSA_FLOAT8E8M0, 1, (int64_t[]){2});
    op_fails(&run, "f8e8m0 has no zero test");
    op_close(&run);
}

/* ---- Unique ---------------------------------------------------------------------------------- */

/* Item `i` of x, as `width` numbers. */
static void load_item(const struct tensor *x, int axis, int64_t i, int64_t width, double *numbers)
{
    size_t size = dtype_info(x->dtype)->size;
    int64_t n = 0;
    for (int64_t e = 0; e < (int64_t)tensor_count(x); e++) {
        int64_t at[4];
        unflatten(x->rank, x->dims, e, at);
        if (axis < 0 ? e == i : at[axis] == i)
            numbers[n++] = dtype_load_double(x->dtype, (const char *)x->data + (size_t)e * size);
    }
    assert_int_equal(n, width);
}

/* NaN equals NaN and comes last. */
static int compare_numbers(const double *a, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (isnan(a[i]) || isnan(b[i])) {
            if (isnan(a[i]) && isnan(b[i]))
                continue;
            return isnan(a[i]) ? 1 : -1;
        }
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

/* By definition: the groups in the asked order, and all outputs consistent with x. */
static void check_unique(struct op_run *run, const struct tensor *x, int axis, bool sorted,
                         const double *items, int64_t count, int64_t width)
{
    const int64_t *indices = run->outputs[1].tensor.data, *inverse = run->outputs[2].tensor.data;
    const int64_t *counts = run->outputs[3].tensor.data;
    int64_t groups = run->outputs[1].tensor.dims[0];
    op_output(run, 2, TSSA_INT64, 1, &count);
    op_output(run, 3, TSSA_INT64, 1, &groups);
    for (int64_t g = 0; g < groups; g++) {
        int64_t members = 0;
        for (int64_t i = 0; i < count; i++) {
            bool equal = compare_numbers(items + i * width, items + indices[g] * width, width) == 0;
            assert_true(equal == (inverse[i] == g));
            assert_true(!equal || i >= indices[g]);
            members += equal;
        }
        assert_int_equal(members, counts[g]);
        if (g > 0 && sorted)
            assert_true(compare_numbers(items + indices[g - 1] * width, items + indices[g] * width,
                                        width) < 0);
        if (g > 0 && !sorted)
            assert_true(indices[g - 1] < indices[g]);
    }
    for (int64_t i = 0; i < count; i++)
        assert_in_range(inverse[i], 0, groups - 1);
    /* The values themselves. */
    int64_t dims[4];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis < 0 ? 0 : axis] = groups;
    op_expect_moved(run, 0, x, axis < 0 ? 1 : x->rank, dims, compress_source,
                    &(struct compress){x, axis, indices}, NULL);
}

static void test_unique(void **state)
{
    static const tssa_dtype types[] = {TSSA_FLOAT, TSSA_INT64, TSSA_UINT8, TSSA_FLOAT16,
                                       TSSA_DOUBLE};
    struct random random = {3};
    double items[4096];
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct op_run run;
        int rank = (int)random_int(&random, 1, 3), axis = (int)random_int(&random, -1, rank - 1);
        tssa_dtype dtype = types[round % 5];
        bool sorted = random_int(&random, 0, 1);
        size_t size = dtype_info(dtype)->size;
        int64_t dims[4] = {0}, total = 1;
        for (int i = 0; i < rank; i++)
            total *= dims[i] = random_int(&random, 1, i == axis ? 20 : 4);
        op_open(&run, IR_OP_Unique, 1, 4);
        op_int(&run, "sorted", sorted);
        if (axis >= 0)
            op_int(&run, "axis", round % 2 ? axis : axis - rank);
        struct tensor *x = op_input(&run, 0, dtype, rank, dims);
        for (int64_t i = 0; i < total; i++) {
            double value = (double)random_int(&random, 0, 2);
            bool nan = dtype_is_float(dtype) && random_int(&random, 0, 9) == 0;
            dtype_store_double(dtype, (char *)x->data + (size_t)i * size, nan ? NAN : value);
        }
        op_go(&run);
        int64_t count = axis < 0 ? total : dims[axis], width = total / count;
        for (int64_t i = 0; i < count; i++)
            load_item(x, axis, i, width, items + i * width);
        check_unique(&run, x, axis, sorted, items, count, width);
        op_close(&run);
    }
}

/* Which are sorted by digits: all alike, of few values and of many, NaN and zeros of both signs. */
static void test_unique_of_many(void **state)
{
    static const tssa_dtype types[] = {TSSA_FLOAT,  TSSA_INT64,  TSSA_INT8,  TSSA_FLOAT16,
                                       TSSA_DOUBLE, TSSA_UINT64, TSSA_INT32, TSSA_BFLOAT16};
    struct random random = {5};
    static double items[4 * 1500];
    (void)state;
    for (int round = 0; round < 96; round++) {
        struct op_run run;
        const tssa_dtype dtype = types[round % 8];
        const size_t size = dtype_info(dtype)->size;
        const int64_t n = random_int(&random, 200, 1500), width = round % 3 ? 1 : 4,
                      dims[3] = {1, n, width};
        const int axis = width > 1 || round / 8 % 2 ? 1 : -1;
        const bool sorted = random_int(&random, 0, 1);
        const int64_t high = round / 16 == 0   ? 0
                             : round / 16 == 1 ? 3
                             : round / 16 == 2 ? 120
                                               : 500;
        const int64_t low = dtype == TSSA_UINT64 ? 0 : -high;
        op_open(&run, IR_OP_Unique, 1, 4);
        op_int(&run, "sorted", sorted);
        if (axis >= 0)
            op_int(&run, "axis", axis);
        struct tensor *x = op_input(&run, 0, dtype, 3, dims);
        for (int64_t i = 0; i < n * width; i++) {
            double value = (double)random_int(&random, low, high);
            const int64_t special = random_int(&random, 0, 20);
            if (dtype_is_float(dtype) && high && special < 2)
                value = special ? (double)NAN : -0.0;
            else if (size == 8 && round % 3)
                value *= 0x1p50;
            dtype_store_double(dtype, (char *)x->data + (size_t)i * size, value);
        }
        op_go(&run);
        for (int64_t i = 0; i < n; i++)
            load_item(x, axis, i, width, items + i * width);
        check_unique(&run, x, axis, sorted, items, n, width);
        op_close(&run);
    }
}

static void test_unique_of_strings_and_nothing(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Unique, 1, 4);
    run.op->results[1].wanted = run.op->results[3].wanted = false;
    tssa_string *x = op_input(&run, 0, TSSA_STRING, 1, (int64_t[]){4})->data;
    memcpy(x, (tssa_string[]){{"b", 1}, {"ab", 2}, {"a", 1}, {"ab", 2}}, 4 * sizeof *x);
    op_go(&run);
    const tssa_string *y = op_output(&run, 0, TSSA_STRING, 1, (int64_t[]){3})->data;
    assert_true(y[0].size == 1 && y[1].size == 2 && y[2].data[0] == 'b');
    op_expect_ints(&run, 2, 1, (int64_t[]){4}, (int64_t[]){2, 1, 0, 1});
    op_input(&run, 0, TSSA_UINT64, 2, (int64_t[]){0, 3});
    op_go(&run);
    op_output(&run, 0, TSSA_UINT64, 1, (int64_t[]){0});
    /* Three slices without elements are one. */
    op_int(&run, "axis", 1);
    op_go(&run);
    op_output(&run, 0, TSSA_UINT64, 2, (int64_t[]){0, 1});
    op_expect_ints(&run, 2, 1, (int64_t[]){3}, (int64_t[]){0, 0, 0});
    uint64_t *big = op_input(&run, 0, TSSA_UINT64, 2, (int64_t[]){1, 2})->data;
    big[0] = UINT64_MAX, big[1] = UINT64_MAX - 1;
    op_go(&run);
    op_expect_ints(&run, 2, 1, (int64_t[]){2}, (int64_t[]){1, 0});
    op_int(&run, "axis", 2);
    op_fails(&run, "outside a tensor of rank 2");
    op_input(&run, 0, TSSA_FLOAT8E8M0, 2, (int64_t[]){1, 2});
    op_int(&run, "axis", 0);
    op_fails(&run, "f8e8m0 has no order");
    op_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compress),
        cmocka_unit_test(test_compress_of_long_masks),
        cmocka_unit_test(test_compress_of_long_rows),
        cmocka_unit_test(test_compress_refuses),
        cmocka_unit_test(test_non_zero),
        cmocka_unit_test(test_all_are_non_zero),
        cmocka_unit_test(test_non_zero_of_every_bit),
        cmocka_unit_test(test_non_zero_of_odd_values),
        cmocka_unit_test(test_unique),
        cmocka_unit_test(test_unique_of_many),
        cmocka_unit_test(test_unique_of_strings_and_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
