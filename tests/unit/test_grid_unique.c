/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unique of devices that launch grids (kernels/grids/unique.h), on random operands, as
 * test_grid_texts.c has the other texts: elements and slices, of all types, in either order of
 * groups, with any of the results.
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
#include "common/no_error.h"
#include "common/op_run.h"
#include "device/grids/unique.h"
#include "ir/infer.h"
#include "ir/parser.h"

#define ROUNDS GRIDS_ROUNDS(60)
#define FLAT 9 /* no axis */
#define ALL "%y, %f, %g, %n"

static const tssa_dtype types[] = {TSSA_FLOAT,     TSSA_DOUBLE,     TSSA_FLOAT16, TSSA_BFLOAT16,
                                   TSSA_INT8,      TSSA_INT16,      TSSA_INT32,   TSSA_INT64,
                                   TSSA_UINT8,     TSSA_UINT16,     TSSA_UINT32,  TSSA_UINT64,
                                   TSSA_COMPLEX64, TSSA_COMPLEX128, TSSA_BOOL};
#define TYPES (sizeof types / sizeof *types)

/* `results` are those of the op, `outputs` those that are wanted. */
static void open_unique(struct grids_run *run, const char *device, tssa_dtype dtype, int axis,
                        int sorted, const char *results, const char *outputs)
{
    char program[400], with_axis[20] = "";
    if (axis != FLAT)
        snprintf(with_axis, sizeof with_axis, "axis = %d, ", axis);
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 18) ir_version(8) (%%x: @@@[A, B, C]) -> (%s) {\n"
             "  %s = Unique@11(%%x) {%ssorted = %d}\n"
             "  return(%s)\n"
             "}\n",
             outputs, results, with_axis, sorted, outputs);
    grids_run_open_typed(run, device, program, dtype_info(dtype)->ir_name);
}

static double any_of(struct random *random, const double *values, int n)
{
    return values[random_int(random, 0, n - 1)];
}

/* Few values, of floats NaN of both signs and zeros of both signs among them, so that many items
 * are equal; `part` is a part of an element, which of a complex one there are two of. */
static void fill_with_few(struct operands *o, struct tensor *x, tssa_dtype part)
{
    static const double values[] = {0, 1, 2, 3, 100, -0.0, -1, INFINITY, -INFINITY, NAN, -NAN, -2};
    const size_t size = tssa_dtype_size(part);
    const int n = (int)random_int(&o->random, 1, dtype_is_float(part) ? 12 : 5);
    for (size_t i = 0; i < tensor_bytes(x) / size; i++)
        dtype_store_double(part, (char *)x->data + i * size, any_of(&o->random, values, n));
}

/* Or any bits. */
static void add_items(struct operands *o, tssa_dtype dtype, const int64_t *dims)
{
    const tssa_dtype part = dtype == TSSA_COMPLEX64    ? TSSA_FLOAT
                            : dtype == TSSA_COMPLEX128 ? TSSA_DOUBLE
                                                       : dtype;
    struct tensor *x =
        operands_add_bits(o, dtype, 3, dims, random_chance(&o->random, 50) ? 100 : 3);
    if (dtype != TSSA_BOOL && random_chance(&o->random, 60))
        fill_with_few(o, x, part);
}

/* At times of more than a run, at times of more than are merged at once. */
static int64_t many_items(struct operands *o)
{
    return random_chance(&o->random, 15) ? random_int(&o->random, 200, 1500) : operands_size(o);
}

static void unique(const char *device, size_t t, int axis, int sorted)
{
    struct grids_run run;
    struct operands o;
    open_unique(&run, device, types[t], axis, sorted, ALL, ALL);
    operands_open(&o, 141 + t);
    for (int i = 0; i < ROUNDS / 10; i++) {
        int64_t dims[] = {random_int(&o.random, 1, 3), random_int(&o.random, 0, 4),
                          random_int(&o.random, 1, 3)};
        dims[axis == FLAT ? 0 : axis < 0 ? axis + 3 : axis] = many_items(&o);
        add_items(&o, types[t], dims);
        grids_run_same(&run, o.given);
        assert_true(run.counts.waits <= 1);
        operands_clear(&o);
    }
    grids_run_close(&run);
}

static void test_unique(void **state)
{
    for (size_t t = 0; t < TYPES; t++)
        for (int sorted = 0; sorted < 2; sorted++) {
            unique(*state, t, FLAT, sorted);
            unique(*state, t, (int)(t % 3) - sorted, sorted);
        }
}

/* Runs that are merged once and more, more elements than are numbered before they are counted, and
 * more than are counted at once. */
static void test_long_lists(void **state)
{
    static const int64_t lengths[] = {256, 257, 1024, 1025, 4097, 20000, 40000, 70000};
    const size_t n = sizeof lengths / sizeof *lengths - (GRIDS_ROUNDS(60) < 60 ? 3 : 0);
    struct operands o;
    operands_open(&o, 171);
    for (int sorted = 0; sorted < 2; sorted++) {
        struct grids_run run;
        open_unique(&run, *state, TSSA_INT16, FLAT, sorted, ALL, ALL);
        for (size_t i = 0; i < n; i++) {
            operands_add_bits(&o, TSSA_INT16, 3, (const int64_t[]){1, lengths[i], 1},
                              i & 1 ? 100 : 3);
            grids_run_same(&run, o.given);
            operands_clear(&o);
        }
        grids_run_close(&run);
    }
}

/* Sorting, where groups begin, their numbers, what is told of them, and what is moved. */
static void test_launches(void **state)
{
    struct grids_run run;
    struct operands o;
    open_unique(&run, *state, TSSA_FLOAT, FLAT, 0, ALL, ALL);
    operands_open(&o, 173);
    add_items(&o, TSSA_FLOAT, (const int64_t[]){256, 1, 1});
    grids_run_same(&run, o.given);
    grids_expect_launches(&run, *state, 5);
    operands_clear(&o);
    add_items(&o, TSSA_FLOAT, (const int64_t[]){256, 256, 1});
    grids_run_same(&run, o.given);
    grids_expect_launches(&run, *state, 10);
    operands_clear(&o);
    grids_run_close(&run);
}

/* What nobody wants is not written. */
static void test_some_results(void **state)
{
    static const struct {
        const char *results, *outputs;
    } some[] = {{"%y, _, _, _", "%y"},
                {"_, %f, _, _", "%f"},
                {"_, _, %g, _", "%g"},
                {"%y, _, %g, _", "%y, %g"},
                {"_, _, _, %n", "%n"}};
    for (size_t r = 0; r < sizeof some / sizeof *some; r++)
        for (int sorted = 0; sorted < 2; sorted++) {
            struct grids_run run;
            struct operands o;
            open_unique(&run, *state, TSSA_FLOAT, 1, sorted, some[r].results, some[r].outputs);
            operands_open(&o, 175);
            for (int i = 0; i < ROUNDS / 20; i++) {
                add_items(&o, TSSA_FLOAT, (const int64_t[]){2, many_items(&o), 1});
                grids_run_same(&run, o.given);
                operands_clear(&o);
            }
            grids_run_close(&run);
        }
}

/* Slices without elements are all equal. */
static void test_nothing(void **state)
{
    static const int64_t counts[] = {0, 1, 3000};
    for (int sorted = 0; sorted < 2; sorted++)
        for (int k = 0; k < 2; k++) {
            struct grids_run run;
            struct operands o;
            open_unique(&run, *state, TSSA_COMPLEX64, k ? FLAT : 1, sorted, ALL, ALL);
            operands_open(&o, 177);
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                add_items(&o, TSSA_COMPLEX64, (const int64_t[]){0, counts[i], 2});
                grids_run_same(&run, o.given);
                operands_clear(&o);
            }
            grids_run_close(&run);
        }
}

/* Elements that have no order, or are no numbers, are the host's. */
static void test_other_types(void **state)
{
    static const char *const names[] = {"str", "f8e8m0", "f32"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct ir_graph *graph;
        char text[200];
        snprintf(text, sizeof text,
                 "graph @g opset(\"\": 24) ir_version(11) (%%x: %s[A]) -> (%%y) {\n"
                 "  %%y = Unique@11(%%x)\n"
                 "  return(%%y)\n"
                 "}\n",
                 names[i]);
        no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
        no_error(ir_infer_graph(graph));
        assert_true((grids_unique_find(graph->body->first) != NULL) == (i == 2));
        ir_graph_free(graph);
    }
}

/* ---------------------------------------------------------------------------------------------- */

#define OF_DEVICE(test) cmocka_unit_test_prestate(test, (void *)device)

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {OF_DEVICE(test_unique), OF_DEVICE(test_long_lists),
                                       OF_DEVICE(test_launches), OF_DEVICE(test_some_results),
                                       OF_DEVICE(test_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_types)};
    return cmocka_run_group_tests(tests, NULL, NULL) + grids_run_on_each(run_on);
}
