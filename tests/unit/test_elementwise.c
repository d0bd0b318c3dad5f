/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators: truth and bounds, a naive indexer for broadcasting, what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

/* ---- Truth, tests, strings, bounds ----------------------------------------------------------- */

static void truth(void **state)
{
    (void)state;
    static const struct {
        enum ir_op_id id;
        uint8_t wanted[4]; /* of 00, 01, 10, 11 */
    } cases[] = {{IR_OP_And, {0, 0, 0, 1}},
                 {IR_OP_Or, {0, 1, 1, 1}},
                 {IR_OP_Xor, {0, 1, 1, 0}},
                 {IR_OP_Equal, {1, 0, 0, 1}}};
    const int64_t n = 4;
    for (size_t i = 0; i < 4; i++) {
        struct op_run run;
        op_open(&run, cases[i].id, 2, 1);
        /* Any byte but 0 is true, and what comes out is 0 or 1. */
        memcpy(op_input(&run, 0, TSSA_BOOL, 1, &n)->data, (uint8_t[]){0, 0, 2, 1}, 4);
        memcpy(op_input(&run, 1, TSSA_BOOL, 1, &n)->data, (uint8_t[]){0, 255, 0, 4}, 4);
        op_go(&run);
        assert_memory_equal(op_output(&run, 0, TSSA_BOOL, 1, &n)->data, cases[i].wanted, 4);
        op_close(&run);
    }
    struct op_run run;
    op_open(&run, IR_OP_Not, 1, 1);
    memcpy(op_input(&run, 0, TSSA_BOOL, 1, &n)->data, (uint8_t[]){0, 1, 7, 0}, 4);
    op_go(&run);
    assert_memory_equal(op_output(&run, 0, TSSA_BOOL, 1, &n)->data, ((uint8_t[]){1, 0, 0, 1}), 4);
    op_close(&run);
}

static void infinities_and_nans(void **state)
{
    (void)state;
    static const float x[] = {1, INFINITY, -INFINITY, NAN};
    const int64_t n = 4;
    for (int flags = 0; flags < 4; flags++) {
        struct op_run run;
        op_open(&run, IR_OP_IsInf, 1, 1);
        op_int(&run, "detect_negative", flags & 1);
        op_int(&run, "detect_positive", flags >> 1);
        memcpy(op_input(&run, 0, TSSA_FLOAT, 1, &n)->data, x, sizeof x);
        op_go(&run);
        uint8_t wanted[4] = {0, flags >> 1, flags & 1, 0};
        assert_memory_equal(op_output(&run, 0, TSSA_BOOL, 1, &n)->data, wanted, 4);
        op_close(&run);
    }
    /* Every code of every 8-bit format. */
    static const tssa_dtype types[] = {TSSA_FLOAT8E4M3FN, TSSA_FLOAT8E4M3FNUZ, TSSA_FLOAT8E5M2,
                                       TSSA_FLOAT8E5M2FNUZ};
    for (int t = 0; t < 4; t++)
        for (int test = 0; test < 2; test++) {
            struct op_run run;
            const int64_t codes = 256;
            op_open(&run, test ? IR_OP_IsInf : IR_OP_IsNaN, 1, 1);
            uint8_t *code = op_input(&run, 0, types[t], 1, &codes)->data;
            for (int i = 0; i < 256; i++)
                code[i] = (uint8_t)i;
            op_go(&run);
            const uint8_t *y = op_output(&run, 0, TSSA_BOOL, 1, &codes)->data;
            for (int i = 0; i < 256; i++) {
                float value = small_float_to_float(types[t], (uint8_t)i);
                assert_int_equal(y[i], test ? isinf(value) != 0 : isnan(value) != 0);
            }
            op_close(&run);
        }
}

static void equal_strings(void **state)
{
    (void)state;
    struct op_run run;
    const int64_t rows = 2, one_row = 1, n = 3;
    op_open(&run, IR_OP_Equal, 2, 1);
    tssa_string *x = op_input(&run, 0, TSSA_STRING, 2, (int64_t[]){rows, n})->data;
    tssa_string *y = op_input(&run, 1, TSSA_STRING, 2, (int64_t[]){one_row, n})->data;
    tssa_string words[] = {{"a", 1}, {NULL, 0}, {"x\0y", 3}, {"ab", 2}, {"", 0}, {"x\0z", 3}};
    memcpy(x, words, sizeof words);
    memcpy(y, words, 3 * sizeof *words);
    op_go(&run);
    static const int64_t wanted[] = {1, 1, 1, 0, 1, 0};
    op_expect_ints(&run, 0, 2, (int64_t[]){rows, n}, wanted);
    op_close(&run);
}

static void clip(void **state)
{
    (void)state;
    static const int64_t x[] = {-100, -1, 0, 1, 100}, n = 5;
    static const struct {
        int64_t low, high;
        bool has_low, has_high;
        int64_t wanted[5];
    } cases[] = {{-2, 2, true, true, {-2, -1, 0, 1, 2}},
                 {-2, 0, true, false, {-2, -1, 0, 1, 100}},
                 {0, 2, false, true, {-100, -1, 0, 1, 2}},
                 {5, 3, true, true, {3, 3, 3, 3, 3}},
                 {0, 0, false, false, {-100, -1, 0, 1, 100}}};
    static const tssa_dtype types[] = {TSSA_INT8, TSSA_INT64, TSSA_FLOAT, TSSA_FLOAT16};
    for (size_t t = 0; t < 4; t++)
        for (size_t i = 0; i < 5; i++) {
            struct op_run run;
            op_open(&run, IR_OP_Clip, 3, 1);
            struct tensor *in = op_input(&run, 0, types[t], 1, &n);
            size_t size = dtype_info(types[t])->size;
            for (int64_t k = 0; k < n; k++)
                dtype_store_int64(types[t], (char *)in->data + (size_t)k * size, x[k]);
            if (cases[i].has_low)
                dtype_store_int64(types[t], op_input(&run, 1, types[t], 0, NULL)->data,
                                  cases[i].low);
            if (cases[i].has_high)
                dtype_store_int64(types[t], op_input(&run, 2, types[t], 0, NULL)->data,
                                  cases[i].high);
            op_go(&run);
            const char *y = op_output(&run, 0, types[t], 1, &n)->data;
            for (int64_t k = 0; k < n; k++)
                assert_int_equal(dtype_load_int64(types[t], y + (size_t)k * size),
                                 cases[i].wanted[k]);
            op_close(&run);
        }
}

/* ---- Broadcasting ---------------------------------------------------------------------------- */

/* A random shape of the result, and for each operand a shape that broadcasts to it. */
static void random_shapes(struct random *random, int n, int *rank, int64_t *shape, int *ranks,
                          int64_t dims[][TSSA_MAX_RANK])
{
    static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 16, 33};
    *rank = (int)random_int(random, 0, 5);
    for (int i = 0; i < *rank; i++)
        shape[i] = extents[random_int(random, 0, 7)];
    if (*rank > 0 && random_int(random, 0, 20) == 0)
        shape[random_int(random, 0, *rank - 1)] = 0;
    for (int k = 0; k < n; k++) {
        ranks[k] = k == 0 ? *rank : (int)random_int(random, 0, *rank);
        for (int i = 0; i < ranks[k]; i++) {
            int64_t dim = shape[*rank - ranks[k] + i];
            dims[k][i] = random_int(random, 0, 2) == 0 ? 1 : dim;
        }
    }
    /* The result's dims are what the operands left of them. */
    for (int i = 0; i < *rank; i++) {
        int64_t dim = 1;
        for (int k = 0; k < n; k++) {
            int d = i - (*rank - ranks[k]);
            if (d >= 0 && dims[k][d] != 1)
                dim = dims[k][d];
        }
        shape[i] = dim;
    }
}

/* The operand's element that belongs to coordinates of the result. */
static int64_t operand_index(const struct tensor *operand, int rank, const int64_t *coordinates)
{
    int64_t index = 0;
    for (int i = 0; i < operand->rank; i++) {
        int64_t c = coordinates[rank - operand->rank + i];
        index = index * operand->dims[i] + (operand->dims[i] == 1 ? 0 : c);
    }
    return index;
}

static void broadcast_subtraction(void **state)
{
    (void)state;
    struct random random = {1};
    static const tssa_dtype types[] = {TSSA_INT64, TSSA_FLOAT, TSSA_FLOAT16, TSSA_UINT8};
    for (int round = 0; round < 3000; round++) {
        int rank, ranks[2];
        int64_t shape[TSSA_MAX_RANK], dims[2][TSSA_MAX_RANK];
        random_shapes(&random, 2, &rank, shape, ranks, dims);
        tssa_dtype dtype = types[round % 4];
        struct op_run run;
        op_open(&run, IR_OP_Sub, 2, 1);
        struct tensor *in[2];
        size_t size = dtype_info(dtype)->size;
        for (int k = 0; k < 2; k++) {
            in[k] = op_input(&run, (uint32_t)k, dtype, ranks[k], dims[k]);
            for (size_t i = 0; i < tensor_count(in[k]); i++)
                dtype_store_int64(dtype, (char *)in[k]->data + i * size,
                                  random_int(&random, 0, 100) + 100 * !k);
        }
        op_go(&run);
        const struct tensor *out = op_output(&run, 0, dtype, rank, shape);
        for (size_t i = 0; i < tensor_count(out); i++) {
            int64_t coordinates[TSSA_MAX_RANK];
            unflatten(rank, shape, (int64_t)i, coordinates);
            int64_t wanted = 0;
            for (int k = 0; k < 2; k++) {
                size_t at = (size_t)operand_index(in[k], rank, coordinates);
                int64_t value = dtype_load_int64(dtype, (char *)in[k]->data + at * size);
                wanted += k ? -value : value;
            }
            assert_int_equal(dtype_load_int64(dtype, (const char *)out->data + i * size), wanted);
        }
        op_close(&run);
    }
}

static void broadcast_where(void **state)
{
    (void)state;
    struct random random = {2};
    static const tssa_dtype types[] = {TSSA_INT4,   TSSA_FLOAT16,    TSSA_FLOAT, TSSA_INT64,
                                       TSSA_STRING, TSSA_COMPLEX128, TSSA_BOOL,  TSSA_COMPLEX64};
    for (int round = 0; round < 1500; round++) {
        int rank, ranks[3];
        int64_t shape[TSSA_MAX_RANK], dims[3][TSSA_MAX_RANK];
        random_shapes(&random, 3, &rank, shape, ranks, dims);
        tssa_dtype dtype = types[round % 8];
        struct op_run run;
        op_open(&run, IR_OP_Where, 3, 1);
        const struct tensor *in[3];
        for (int k = 0; k < 3; k++)
            in[k] = op_random(&run, (uint32_t)k, &random, k ? dtype : TSSA_BOOL, ranks[k], dims[k]);
        op_go(&run);
        const struct tensor *out = op_output(&run, 0, dtype, rank, shape);
        size_t size = dtype_info(dtype)->size;
        for (size_t i = 0; i < tensor_count(out); i++) {
            int64_t coordinates[TSSA_MAX_RANK];
            unflatten(rank, shape, (int64_t)i, coordinates);
            bool first = ((const bool *)in[0]->data)[operand_index(in[0], rank, coordinates)];
            const struct tensor *from = in[first ? 1 : 2];
            size_t at = (size_t)operand_index(from, rank, coordinates);
            assert_memory_equal((const char *)out->data + i * size,
                                (const char *)from->data + at * size, size);
        }
        op_close(&run);
    }
}

/* Sum and Mean of one to five operands; narrow floats are summed in float. */
static void broadcast_folds(void **state)
{
    (void)state;
    struct random random = {3};
    static const tssa_dtype types[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16};
    for (int round = 0; round < 1200; round++) {
        int rank, ranks[5], n = 1 + round % 5;
        int64_t shape[TSSA_MAX_RANK], dims[5][TSSA_MAX_RANK];
        random_shapes(&random, n, &rank, shape, ranks, dims);
        tssa_dtype dtype = types[round / 5 % 4];
        bool mean = round % 2;
        struct op_run run;
        op_open(&run, mean ? IR_OP_Mean : IR_OP_Sum, (uint32_t)n, 1);
        struct tensor *in[5];
        size_t size = dtype_info(dtype)->size;
        for (int k = 0; k < n; k++) {
            in[k] = op_input(&run, (uint32_t)k, dtype, ranks[k], dims[k]);
            for (size_t i = 0; i < tensor_count(in[k]); i++)
                dtype_store_double(dtype, (char *)in[k]->data + i * size,
                                   (double)random_int(&random, -1000, 1000) / 64);
        }
        op_go(&run);
        const struct tensor *out = op_output(&run, 0, dtype, rank, shape);
        for (size_t i = 0; i < tensor_count(out); i++) {
            int64_t coordinates[TSSA_MAX_RANK];
            unflatten(rank, shape, (int64_t)i, coordinates);
            double sum = 0; /* exact */
            for (int k = 0; k < n; k++) {
                size_t at = (size_t)operand_index(in[k], rank, coordinates);
                sum += dtype_load_double(dtype, (char *)in[k]->data + at * size);
            }
            double wanted = mean ? sum / n : sum, got;
            if (dtype != TSSA_DOUBLE)
                wanted = (float)wanted;
            uint64_t rounded = 0;
            dtype_store_double(dtype, &rounded, wanted);
            wanted = dtype_load_double(dtype, &rounded);
            got = dtype_load_double(dtype, (const char *)out->data + i * size);
            if (got != wanted)
                fail_msg("%d operands of %s: %.17g, not %.17g", n, dtype_info(dtype)->ir_name, got,
                         wanted);
        }
        op_close(&run);
    }
}

/* Large enough to be split between threads, with an inner dim that the parts cut through. */
static void large_tensors_in_parts(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {100003, 1, 1}, {317, 1, 331}, {30011, 2, 3}, {3, 20011, 2}};
    for (size_t s = 0; s < 4; s++)
        for (int pattern = 0; pattern < 8; pattern++) {
            int64_t dims[3];
            for (int i = 0; i < 3; i++)
                dims[i] = pattern >> i & 1 ? shapes[s][i] : 1;
            struct op_run run;
            op_open(&run, IR_OP_Add, 2, 1);
            struct tensor *x = op_input(&run, 0, TSSA_INT32, 3, shapes[s]);
            struct tensor *y = op_input(&run, 1, TSSA_INT32, 3, dims);
            for (size_t i = 0; i < tensor_count(x); i++)
                ((int32_t *)x->data)[i] = (int32_t)i * 3;
            for (size_t i = 0; i < tensor_count(y); i++)
                ((int32_t *)y->data)[i] = (int32_t)i * 7;
            op_go(&run);
            const int32_t *z = op_output(&run, 0, TSSA_INT32, 3, shapes[s])->data;
            for (size_t i = 0; i < tensor_count(x); i++) {
                int64_t coordinates[3];
                unflatten(3, shapes[s], (int64_t)i, coordinates);
                assert_int_equal(z[i],
                                 (int32_t)i * 3 + (int32_t)operand_index(y, 3, coordinates) * 7);
            }
            op_close(&run);
        }
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void refusals(void **state)
{
    (void)state;
    struct op_run run;
    const int64_t three = 3, four = 4;
    op_open(&run, IR_OP_Add, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 1, &three);
    op_fails(&run, "operand 1 is missing");
    op_input(&run, 1, TSSA_FLOAT, 1, &four);
    op_fails(&run, "f32[3] and f32[4] cannot be broadcast");
    op_input(&run, 1, TSSA_INT32, 1, &three);
    op_fails(&run, "operand 1 is i32 and operand 0 is f32");
    op_input(&run, 0, TSSA_STRING, 1, &three);
    op_fails(&run, "operand 0 cannot be str");
    run.inputs[0].kind = TSSA_KIND_NONE;
    op_fails(&run, "operand 0 is not a tensor");
    op_close(&run);

    op_open(&run, IR_OP_BitShift, 2, 1);
    op_fails(&run, "\"direction\" is missing");
    op_string(&run, "direction", "UP");
    op_fails(&run, "\"direction\" is \"UP\"");
    op_close(&run);

    op_open(&run, IR_OP_Where, 3, 1);
    op_input(&run, 0, TSSA_INT32, 1, &three);
    op_input(&run, 1, TSSA_FLOAT, 1, &three);
    op_input(&run, 2, TSSA_FLOAT, 1, &three);
    op_fails(&run, "the first must be bool");
    op_close(&run);

    op_open(&run, IR_OP_Sum, 3, 1);
    op_input(&run, 0, TSSA_FLOAT, 1, &three);
    op_input(&run, 1, TSSA_FLOAT, 1, &three);
    op_input(&run, 2, TSSA_DOUBLE, 1, &three);
    op_fails(&run, "operand 2 is f64");
    op_input(&run, 2, TSSA_FLOAT, 1, &four);
    op_fails(&run, "cannot be broadcast");
    op_close(&run);

    /* No operand is large, the result would be. */
    const int64_t tall[] = {INT64_C(1) << 31, 1, 1}, flat[] = {1, INT64_C(1) << 31, 1};
    static const float element = 0;
    op_open(&run, IR_OP_Add, 2, 1);
    for (uint32_t i = 0; i < 2; i++) {
        struct tensor *x = op_input(&run, i, TSSA_FLOAT, 3, (int64_t[]){1, 1, 1});
        memcpy(x->dims, i ? flat : tall, sizeof tall);
        x->data = (void *)&element;
    }
    op_fails(&run, "");
    op_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truth),
        cmocka_unit_test(infinities_and_nans),
        cmocka_unit_test(equal_strings),
        cmocka_unit_test(clip),
        cmocka_unit_test(broadcast_subtraction),
        cmocka_unit_test(broadcast_where),
        cmocka_unit_test(broadcast_folds),
        cmocka_unit_test(large_tensors_in_parts),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
