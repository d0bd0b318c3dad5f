/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TopK of devices that launch grids (kernels/grids/topk.h), on random operands, as
 * test_grid_texts.c has the other texts: elements that are compared with all others, that are
 * chosen first, and that are sifted before.
 */
/* ctest-timeout: 600 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/grid_operands.h"
#include "common/grids_run.h"
#include "common/op_run.h"

#define ROUNDS GRIDS_ROUNDS(60)

/* ---- TopK ------------------------------------------------------------------------------------ */

static const tssa_dtype ranked_types[] = {TSSA_FLOAT,  TSSA_DOUBLE, TSSA_INT8,  TSSA_INT16,
                                          TSSA_INT32,  TSSA_INT64,  TSSA_UINT8, TSSA_UINT16,
                                          TSSA_UINT32, TSSA_UINT64};

/* Few bytes, so that many are equal, or any bits: NaN and zeros of both signs among them. */
static void add_ranked(struct operands *o, tssa_dtype dtype, const int64_t *dims)
{
    struct tensor *x = operands_add_bits(o, dtype, 3, dims, (int)random_int(&o->random, 0, 100));
    const size_t size = tssa_dtype_size(dtype);
    for (size_t i = 0; i < tensor_count(x) && dtype_is_float(dtype); i++)
        if (random_chance(&o->random, 5))
            dtype_store_double(dtype, (char *)x->data + i * size, i & 1 ? NAN : -NAN);
}

static void open_topk(struct grids_run *run, const char *device, size_t t, int axis, int largest)
{
    char program[400];
    snprintf(
        program, sizeof program,
        "graph @g opset(\"\": 18) ir_version(8) (%%x: @@@[A, B, C], %%k: i64[1]) -> (%%v, %%i) "
        "{\n"
        "  %%v, %%i = TopK@11(%%x, %%k) {axis = %d, largest = %d, sorted = 1}\n"
        "  return(%%v, %%i)\n"
        "}\n",
        axis, largest);
    grids_run_open_typed(run, device, program, dtype_info(ranked_types[t])->ir_name);
}

static void topk(const char *device, size_t t, int axis, int largest)
{
    struct grids_run run;
    struct operands o;
    open_topk(&run, device, t, axis, largest);
    operands_open(&o, 61 + t);
    for (int i = 0; i < ROUNDS / 6; i++) {
        int64_t dims[] = {random_int(&o.random, 1, 3), random_int(&o.random, 0, 4),
                          random_int(&o.random, 1, 3)};
        int64_t *n = &dims[axis < 0 ? axis + 3 : axis];
        *n = random_chance(&o.random, 30) ? random_int(&o.random, 200, 1500) : operands_size(&o);
        add_ranked(&o, ranked_types[t], dims);
        const int64_t k = random_int(&o.random, 0, *n + (random_chance(&o.random, 10) ? 2 : 0));
        operands_add_ints(&o, 1, &k);
        grids_run_same(&run, o.given);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

static void test_topk(void **state)
{
    for (size_t t = 0; t < sizeof ranked_types / sizeof *ranked_types; t++)
        for (int largest = 0; largest < 2; largest++)
            topk(*state, t, (int)(t % 3) - largest, largest);
}

/* What elements of long lines are. */
enum { ANY_BITS, FEW_BYTES, ONE_VALUE, NEIGHBOURS, UNCOMMON, LINE_KINDS };

/* Small numbers and zeros; of floats of both signs, infinities, and NaN. */
static void add_uncommon(struct operands *o, tssa_dtype dtype, struct tensor *x)
{
    static const double values[] = {0.0, 1.0, 2.0, -0.0, 0x1p-149, -1.0, INFINITY, -INFINITY, NAN};
    const int last = dtype_is_float(dtype) ? 8 : 2;
    for (size_t i = 0; i < tensor_count(x); i++)
        dtype_store_double(dtype, (char *)x->data + i * tssa_dtype_size(dtype),
                           values[random_int(&o->random, 0, last)]);
}

static void add_long(struct operands *o, tssa_dtype dtype, const int64_t *dims, int kind)
{
    const size_t size = tssa_dtype_size(dtype);
    struct tensor *x = operands_add_bits(o, dtype, 3, dims, kind == ANY_BITS ? 100 : 3);
    char *data = x->data;
    if (kind == ONE_VALUE)
        memset(data, 0x40, tensor_bytes(x));
    /* Keys that differ by 1, in no order. */
    for (size_t i = 0; i < tensor_count(x) && kind == NEIGHBOURS; i++) {
        const int64_t number = (int64_t)(i * 1009 % tensor_count(x));
        memset(data + i * size, 0x40, size);
        memcpy(data + i * size, &number, size < 2 ? size : 2);
    }
    if (kind == UNCOMMON)
        add_uncommon(o, dtype, x);
}

/* Of which the k first are chosen before they are sorted, and some of which k is too large for
 * that. */
static void test_topk_of_long_lines(void **state)
{
    static const int64_t sizes[] = {1025, 2048, 4097, 5000}, wanted[] = {1, 7, 200, 1024, 1025};
    struct operands o;
    operands_open(&o, 67);
    for (size_t t = 0; t < sizeof ranked_types / sizeof *ranked_types; t++)
        for (int largest = 0; largest < 2; largest++) {
            struct grids_run run;
            const int axis = (int)(t + (size_t)largest) % 2 + 1;
            open_topk(&run, *state, t, axis, largest);
            for (int kind = 0; kind < LINE_KINDS; kind++) {
                int64_t dims[] = {2, 2, 1};
                dims[axis] = sizes[random_int(&o.random, 0, 3)];
                dims[3 - axis] = random_int(&o.random, 1, 3);
                add_long(&o, ranked_types[t], dims, kind);
                operands_add_ints(&o, 1, &wanted[random_int(&o.random, 0, 4)]);
                grids_run_same(&run, o.given);
                operands_clear(&o);
            }
            grids_run_close(&run);
        }
}

static void open_sorted(struct grids_run *run, const char *device, size_t t)
{
    grids_run_open_typed(
        run, device,
        "graph @g opset(\"\": 18) ir_version(8) (%x: @@@[A], %y: @@@[B], %z: @@@[C], "
        "%k: i64[1], %l: i64[1], %m: i64[1]) -> (%a, %b, %c, %d) {\n"
        "  %a, %b, %c, %d = fuse(%x, %k, %y, %l, %z, %m) {\n"
        "    body(%p: @@@[A], %q: i64[1], %r: @@@[B], %s: i64[1], %t: @@@[C], %u: i64[1]) {\n"
        "      %e, %f = TopK@11(%p, %q) {axis = 0, largest = 1, sorted = 1}\n"
        "      %g, _ = TopK@11(%r, %s) {axis = 0, largest = 0, sorted = 1}\n"
        "      _, %h = TopK@11(%t, %u) {axis = -1, largest = 1, sorted = 1}\n"
        "      return(%e, %f, %g, %h)\n"
        "    }\n"
        "  }\n"
        "  return(%a, %b, %c, %d)\n"
        "}\n",
        dtype_info(ranked_types[t])->ir_name);
}

/* Several lists are one op and one launch, whether elements are compared or some chosen first. */
static void test_sorted_lists(void **state)
{
    for (size_t t = 0; t < sizeof ranked_types / sizeof *ranked_types; t++) {
        struct grids_run run;
        struct operands o;
        open_sorted(&run, *state, t);
        operands_open(&o, 68 + t);
        for (int i = 0; i < ROUNDS / 6; i++) {
            int64_t n[3];
            for (int k = 0; k < 3; k++) {
                n[k] = random_chance(&o.random, 50) ? random_int(&o.random, 900, 5000)
                                                    : operands_size(&o);
                operands_add_bits(&o, ranked_types[t], 1, &n[k],
                                  random_chance(&o.random, 50) ? 3 : 100);
            }
            for (int k = 0; k < 3; k++) {
                const int64_t most = n[k] + (random_chance(&o.random, 5) ? 2 : 0),
                              wanted = random_int(&o.random, 0, most);
                operands_add_ints(&o, 1, &wanted);
            }
            grids_run_same(&run, o.given);
            grids_expect_launches(&run, *state, 1);
            operands_clear(&o);
        }
        grids_run_close(&run);
    }
}

/* -inf, but for some, which are few values, or NaN, and lie anywhere or at the end. */
static void add_masked(struct operands *o, tssa_dtype dtype, int64_t n, int percent)
{
    struct tensor *x = operands_add(o, dtype, 1, &n);
    const int64_t from = random_chance(&o->random, 30) ? n - n / 8 : 0;
    for (int64_t i = 0; i < n; i++) {
        const bool there = i >= from && random_chance(&o->random, percent);
        const double value =
            random_chance(&o->random, 2) ? NAN : (double)random_int(&o->random, -200, 200) / 8;
        dtype_store_double(dtype, (char *)x->data + (size_t)i * tssa_dtype_size(dtype),
                           there ? value : -INFINITY);
    }
}

/* Of long lists that are -inf, but for some, these are found before they are sorted; -inf comes
 * behind them. */
static void test_sifted_lists(void **state)
{
    static const int shares[] = {0, 1, 10, 60, 100};
    for (size_t t = 0; t < 2; t++) {
        struct grids_run run;
        struct operands o;
        open_sorted(&run, *state, t);
        operands_open(&o, 69 + t);
        for (int i = 0; i < ROUNDS / 10; i++) {
            for (int k = 0; k < 3; k++)
                add_masked(&o, ranked_types[t], random_int(&o.random, 7000, 30000),
                           shares[random_int(&o.random, 0, 4)]);
            for (int k = 0; k < 3; k++) {
                const int64_t wanted = random_int(&o.random, 0, 1024);
                operands_add_ints(&o, 1, &wanted);
            }
            grids_run_same(&run, o.given);
            grids_expect_launches(&run, *state, 3);
            operands_clear(&o);
        }
        grids_run_close(&run);
    }
}

/* A list by itself is sifted, too, where its sizes say so, be it as long as it likes. */
static void test_long_list_alone(void **state)
{
    struct grids_run run;
    struct operands o;
    grids_run_open_typed(&run, *state,
                         "graph @g opset(\"\": 18) ir_version(8) (%x: @@@[100000]) -> (%v, %i) {\n"
                         "  %k = Constant() {value = i64[1] [1000]}\n"
                         "  %v, %i = TopK@11(%x, %k) {axis = 0, largest = 1, sorted = 1}\n"
                         "  return(%v, %i)\n"
                         "}\n",
                         "f32");
    operands_open(&o, 70);
    add_masked(&o, TSSA_FLOAT, 100000, 3);
    grids_run_same(&run, o.given);
    if (strcmp(*state, "cuda") == 0)
        assert_int_equal(run.counts.launches, 2);
    operands_clear(&o);
    grids_run_close(&run);
}

/* ---- ReduceMax and ReduceMin of all elements ------------------------------------------------- */

static void extreme(const char *device, size_t t)
{
    struct grids_run run;
    struct operands o;
    grids_run_open_typed(
        &run, device,
        "graph @g opset(\"\": 20) ir_version(9) (%x: @@@[A, B, C], %y: @@@[D]) -> (%a, %b, "
        "%c, %d) {\n"
        "  %a = ReduceMax@20(%x) {keepdims = 1}\n"
        "  %b = ReduceMin@20(%x) {keepdims = 0}\n"
        "  %c = ReduceMin@20(%y) {keepdims = 1}\n"
        "  %d = ReduceMax@20(%y) {keepdims = 0}\n"
        "  return(%a, %b, %c, %d)\n"
        "}\n",
        dtype_info(ranked_types[t])->ir_name);
    operands_open(&o, 121 + t);
    for (int i = 0; i < ROUNDS / 5; i++) {
        const bool many = random_chance(&o.random, 30);
        const int64_t dims[] = {many ? random_int(&o.random, 1, 200) : random_int(&o.random, 0, 3),
                                operands_size(&o), random_int(&o.random, 1, many ? 60 : 9)};
        if (random_chance(&o.random, 30)) { /* zeros of both signs */
            struct tensor *x = operands_add_bits(&o, ranked_types[t], 3, dims, 0);
            for (size_t k = 0; dtype_is_float(x->dtype) && k < tensor_count(x); k += 3)
                dtype_store_double(x->dtype, (char *)x->data + k * tssa_dtype_size(x->dtype), -0.0);
        } else {
            add_ranked(&o, ranked_types[t], dims);
        }
        const int64_t n = operands_length(&o);
        operands_add_bits(&o, ranked_types[t], 1, &n, 90);
        grids_run_same(&run, o.given);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

static void test_extreme(void **state)
{
    for (size_t t = 0; t < sizeof ranked_types / sizeof *ranked_types; t++)
        extreme(*state, t);
}

/* ---------------------------------------------------------------------------------------------- */

#define OF_DEVICE(test) cmocka_unit_test_prestate(test, (void *)device)

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {OF_DEVICE(test_topk),
                                       OF_DEVICE(test_topk_of_long_lines),
                                       OF_DEVICE(test_sorted_lists),
                                       OF_DEVICE(test_sifted_lists),
                                       OF_DEVICE(test_long_list_alone),
                                       OF_DEVICE(test_extreme)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return grids_run_on_each(run_on);
}
