/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention gives the same bits however its queries are shared among threads and blocks of rows,
 * and those of its order, written out here, where sums have three levels.
 */
/* ctest-isa: v3 base */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/op_numbers.h"
#include "ir/scalar/exact.h"

enum { BATCH = 2, HEADS = 4, GROUPS = 2, QUERIES = 37, TOTAL = 61, KEY = 40, VALUE = 25 };

/* Heads side by side, or all of a position. */
static void add_heads(struct op_run *t, struct random *random, tssa_dtype dtype, bool packed,
                      int64_t heads, int64_t length, int64_t size)
{
    if (packed)
        op_add_numbers(t, random, dtype, 3, (const int64_t[]){BATCH, length, heads * size});
    else
        op_add_numbers(t, random, dtype, 4, (const int64_t[]){BATCH, heads, length, size});
}

static void attend(struct op_run *t, tssa_dtype dtype, bool packed, bool causal)
{
    struct random random = {7};
    op_begin(t, IR_OP_Attention, 0);
    op_int(t, "is_causal", causal);
    op_int(t, "q_num_heads", packed ? HEADS : 0);
    op_int(t, "kv_num_heads", packed ? GROUPS : 0);
    add_heads(t, &random, dtype, packed, HEADS, QUERIES, KEY);
    add_heads(t, &random, dtype, packed, GROUPS, TOTAL, KEY);
    add_heads(t, &random, dtype, packed, GROUPS, TOTAL, VALUE);
    if (!causal)
        op_add_numbers(t, &random, dtype, 2, (const int64_t[]){QUERIES, TOTAL});
}

static void expect_same(const struct tensor *got, const struct tensor *wanted)
{
    assert_int_equal(tensor_count(got), tensor_count(wanted));
    for (int64_t i = 0; i < (int64_t)tensor_count(wanted); i++)
        op_expect_number(got, i, op_number(wanted, i));
}

static void test_threads(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT16, TSSA_BFLOAT16, TSSA_DOUBLE};
    (void)state;
    for (int round = 0; round < 16; round++) {
        const tssa_dtype dtype = dtypes[round % 4];
        const bool packed = round / 4 % 2, causal = round / 8 % 2;
        struct op_run alone, shared;
        attend(&alone, dtype, packed, causal);
        op_go(&alone);
        for (int threads = 2; threads <= 5; threads++) {
            struct team team;
            attend(&shared, dtype, packed, causal);
            op_threads(&shared, &team, threads);
            op_go(&shared);
            expect_same(&shared.outputs[0].tensor, &alone.outputs[0].tensor);
            op_close(&shared);
        }
        op_close(&alone);
    }
}

/* ---- Three levels ---------------------------------------------------------------------------- */

enum { LONG = 64 * 64 + 64 * 5 + 19, FEW = 3, SIZE = 7, NARROW = 19 };

static double fused(tssa_dtype dtype, double a, double b, double c)
{
    return dtype == TSSA_DOUBLE ? f64_fma(a, b, c) : (double)f32_fma((float)a, (float)b, (float)c);
}

/* Column i of values, weighed, of LONG positions. */
static double weighed(tssa_dtype dtype, const struct tensor *weights, int64_t query,
                      const struct tensor *values, int64_t i)
{
    double all = 0;
    for (int64_t chunk = 0; chunk < LONG; chunk += (int64_t)64 * 64) {
        double sum = 0;
        for (int64_t group = chunk; group < LONG && group < chunk + 64 * 64; group += 64) {
            double rest = 0;
            for (int64_t p = group; p < LONG && p < group + 64; p++)
                rest = fused(dtype, op_number(weights, query * LONG + p),
                             op_number(values, p * NARROW + i), rest);
            sum = op_rounded(dtype, sum + rest);
        }
        all = op_rounded(dtype, all + sum);
    }
    return all;
}

static void test_long(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_DOUBLE};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct random random = {9};
        struct op_run t;
        op_begin(&t, IR_OP_Attention, 0);
        op_int(&t, "qk_matmul_output_mode", 3); /* the weights */
        op_add_numbers(&t, &random, dtypes[i], 4, (const int64_t[]){1, 1, FEW, SIZE});
        op_add_numbers(&t, &random, dtypes[i], 4, (const int64_t[]){1, 1, LONG, SIZE});
        const struct tensor *values =
            op_add_numbers(&t, &random, dtypes[i], 4, (const int64_t[]){1, 1, LONG, NARROW});
        op_outputs(&t, 4);
        op_go(&t);
        for (int64_t k = 0; k < (int64_t)FEW * NARROW; k++)
            op_expect_number(
                &t.outputs[0].tensor, k,
                weighed(dtypes[i], &t.outputs[3].tensor, k / NARROW, values, k % NARROW));
        op_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
