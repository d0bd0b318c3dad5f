/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of grids that are long: which form a kernel has for them, and, by way of forms that no
 * kernel may have, that it is checked; that each form has the CPU's bits, of lengths that are no
 * multiple of a stretch, too; and which elements surely are there (gir_code.inside). On `opencl`,
 * where there is one, and on `cuda`, on a fake driver.
 */
/* ctest-timeout: 600 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/gir_build.h"
#include "common/grid_operands.h"
#include "common/grids_run.h"
#include "common/no_error.h"
#include "gir/form.h"
#include "gir/grid.h"

/* Of %p, and %q, to %r. */
#define ONE(type, ops) FUSED_GRAPH("%x: " type, "%x", "%p: " type ") { " ops " return(%r)", "%y")
#define TWO(type, other, ops)                                                                      \
    FUSED_GRAPH("%x: " type ", %z: " other, "%x, %z",                                              \
                "%p: " type ", %q: " other ") { " ops " return(%r)", "%y")
#define SOFTMAX "%r = Softmax(%p) {axis = -1}"

static struct gir_grid *build(const char *text, struct ir_graph **graph)
{
    const char *why;
    *graph = gir_parse_graph(text);
    struct gir_grid *grid = gir_build_whole_grid(*graph, &why);
    assert_non_null(grid);
    return grid;
}

/* ---- Forms ----------------------------------------------------------------------------------- */

static void which_form(void **state)
{
    static const struct {
        const char *text;
        enum gir_form form;
    } all[] = {{ONE("f32[3, 2048]", SOFTMAX), GIR_FORM_ROW_OF_BLOCK},
               {ONE("f32[256, 5000]", SOFTMAX), GIR_FORM_ROW_OF_BLOCK},
               {ONE("f32[3, 2047]", SOFTMAX), 0},
               {ONE("f32[257, 2048]", SOFTMAX), GIR_FORM_ROWS_ALONG},
               {ONE("f32[N, 2048]", SOFTMAX), GIR_FORM_ROWS_ALONG},
               {ONE("f32[3, N]", SOFTMAX), 0},
               /* two stretches of 16 KiB, and three, for which a block has no room */
               {ONE("f64[3, 4000]", SOFTMAX), GIR_FORM_ROW_OF_BLOCK},
               {ONE("f64[3, 4000]", "%a = Constant() {value = i64[1] [-1]} "
                                    "%b = ReduceMax(%p, %a) {keepdims = 0} "
                                    "%c = ReduceMin(%p, %a) {keepdims = 0} "
                                    "%d = ReduceSum(%p, %a) {keepdims = 0} "
                                    "%e = Add(%b, %c) %r = Add(%e, %d)"),
                GIR_FORM_ROWS_ALONG}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct ir_graph *graph;
        struct gir_grid *grid = build(all[i].text, &graph);
        if (grid->parts[0].kernel->form != all[i].form)
            fail_msg("form %u: %s", grid->parts[0].kernel->form, all[i].text);
        gir_grid_free(grid);
        ir_graph_free(graph);
    }
}

/* What a block has room for is that of all parts of a launch. */
static void room_is_shared(void **state)
{
    static const struct {
        const char *rows;
        bool turned;
    } all[] = {{"f32[3, 2048]", true}, {"f64[3, 2048]", false}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[500];
        struct ir_graph *graph;
        snprintf(text, sizeof text,
                 FUSED_GRAPH("%%x: %s, %%z: f64[64, 64]", "%%x, %%z",
                             "%%p: %s, %%q: f64[64, 64]) { %%r = Softmax(%%p) {axis = -1} "
                             "%%t = access(%%q) {rule = [permute(1, 0)]} return(%%r, %%t)",
                             "%%y, %%u"),
                 all[i].rows, all[i].rows);
        struct gir_grid *grid = build(text, &graph);
        assert_int_equal(grid->n, 2);
        assert_int_equal(grid->parts[0].kernel->form, GIR_FORM_ROW_OF_BLOCK);
        assert_int_equal(grid->parts[1].turned_to != 0, all[i].turned);
        gir_grid_free(grid);
        ir_graph_free(graph);
    }
}

static void forms_are_checked(void **state)
{
    static const char wrong[] = "kernel: 2 arguments and 14 steps";
    struct ir_graph *graph;
    struct gir_grid *grid = build(ONE("f32[3, 2048]", SOFTMAX), &graph);
    struct gir_kernel *kernel = grid->parts[0].kernel;
    (void)state;
    no_error(gir_check(kernel, kernel->size));
    kernel->stage = 1;
    gir_expect_wrong(kernel, kernel->size, wrong);
    kernel->stage = 0;
    kernel->whole_rows = 0;
    gir_expect_wrong(kernel, kernel->size, wrong);
    kernel->whole_rows = 1;
    kernel->form = GIR_FORM_COUNT;
    gir_expect_wrong(kernel, kernel->size, wrong);
    gir_grid_free(grid);
    ir_graph_free(graph);
}

/* ---- What is inside -------------------------------------------------------------------------- */

/* Per lookup and store, I: it says so. */
static void what_is_inside(void **state)
{
    static const struct {
        const char *text, *inside;
    } all[] = {
        {ONE("f32[N, 4]", "%r = Exp(%p)"), "II"},
        {ONE("f32[M, N]", "%t = access(%p) {rule = [permute(1, 0)]} %r = Exp(%t)"), "II"},
        {ONE("f32[M, 6]", "%a = Exp(%p) %r = access(%a) {rule = [reshape(-1, 3)]}"), "II"},
        {TWO("f32[N, 4]", "f32[1, 4]", "%r = Add(%p, %q)"), "III"},
        /* of M a call is asked whether it is N, or 1 */
        {TWO("f32[N, 4]", "f32[M, 4]", "%r = Add(%p, %q)"), "III"},
        {ONE("f32[N, 300]", SOFTMAX), "II"},
        {ONE("f32[5, 300]", "%r = ReduceMax(%p) {keepdims = 0}"), "II"},
        /* some elements are those of the other operand */
        {TWO("f32[N, 4]", "f32[M, 4]", "%r = Concat(%p, %q) {axis = 0}"), "..I"},
        /* which one data tells */
        {TWO("f32[N, 4]", "i64[K]", "%r = Gather(%p, %q) {axis = 0}"), "I.I"},
        {ONE("f32[9, 4]", "%t = access(%p) {rule = [slice(0, 2, 9, 2)]} %r = Exp(%t)"), ".I"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct ir_graph *graph;
        struct gir_grid *grid = build(all[i].text, &graph);
        const struct gir_kernel *kernel = grid->parts[0].kernel;
        char found[16] = "";
        size_t n = 0;
        for (uint32_t k = 0; k < kernel->n_codes; k++) {
            const struct gir_code *code = &gir_codes(kernel)[k];
            if (code->op == GIR_LOOKUP || code->op == GIR_STORE_AT)
                found[n++] = code->inside ? 'I' : '.';
        }
        if (strcmp(found, all[i].inside) != 0)
            fail_msg("%s where %s is right: %s", found, all[i].inside, all[i].text);
        gir_grid_free(grid);
        ir_graph_free(graph);
    }
}

/* ---- Runs ------------------------------------------------------------------------------------ */

#define TO_R(type, dims, ops)                                                                      \
    "graph @g opset(\"\": 18) ir_version(8) (%x: " type dims ") -> (%y) {\n%y = fuse(%x) { "       \
    "body(%p: " type dims ") {\n" ops "\nreturn(%r)\n} }\nreturn(%y)\n}\n"

#define MEAN_AND_MORE                                                                              \
    "%a = Constant() {value = i64[1] [-1]}\n%m = ReduceMean(%p, %a) {keepdims = 1}\n"              \
    "%h = ReduceMax(%p, %a) {keepdims = 1}\n%d = Sub(%p, %m)\n%s = Div(%d, %h)\n"                  \
    "%v = ReduceSum(%s, %a) {keepdims = 1}\n%r = Mul(%s, %v)"
#define EXTREME "%r = ArgMax(%p) {axis = -1, keepdims = 0}"

static void run_rows(void **state)
{
    static const struct {
        const char *program;
        tssa_dtype dtype;
        int64_t rows, length;
    } all[] = {{TO_R("f32", "[3, 2048]", SOFTMAX), TSSA_FLOAT, 3, 2048},
               {TO_R("f32", "[3, 2049]", SOFTMAX), TSSA_FLOAT, 3, 2049},
               {TO_R("f32", "[1, 4000]", EXTREME), TSSA_FLOAT, 1, 4000},
               {TO_R("f32", "[2, 4097]", MEAN_AND_MORE), TSSA_FLOAT, 2, 4097},
               {TO_R("f64", "[2, 2300]", SOFTMAX), TSSA_DOUBLE, 2, 2300},
               {TO_R("f16", "[2, 6200]", SOFTMAX), TSSA_FLOAT16, 2, 6200},
               {TO_R("i32", "[3, 5000]", EXTREME), TSSA_INT32, 3, 5000},
               {TO_R("f32", "[N, 2048]", SOFTMAX), TSSA_FLOAT, 3, 2048},
               {TO_R("f32", "[N, 2600]", MEAN_AND_MORE), TSSA_FLOAT, 9, 2600},
               {TO_R("f32", "[N, 2600]", SOFTMAX), TSSA_FLOAT, 0, 2600},
               {TO_R("f32", "[N, 2559]", EXTREME), TSSA_FLOAT, 2, 2559}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct grids_run run;
        struct operands o;
        grids_run_open(&run, *state, all[i].program);
        operands_open(&o, i);
        operands_add_numbers(&o, all[i].dtype, 2, (int64_t[]){all[i].rows, all[i].length});
        grids_run_same(&run, o.given);
        grids_expect_launches(&run, *state, 1);
        operands_clear(&o);
        grids_run_close(&run);
    }
}

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(run_rows, (void *)device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_form), cmocka_unit_test(room_is_shared),
        cmocka_unit_test(forms_are_checked), cmocka_unit_test(what_is_inside)};
    return cmocka_run_group_tests(tests, NULL, NULL) + grids_run_on_each(run_on);
}
