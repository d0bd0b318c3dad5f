/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of an upper triangle: which kernels are of such, how many rows tell, and that these tell
 * the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/gir_build.h"
#include "common/kernel_check.h"
#include "common/no_error.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "gir/triangle.h"
#include "runtime/compile.h"

/* ---- Which ----------------------------------------------------------------------------------- */

static void expect(const char *source, bool wanted, int64_t wanted_diagonal)
{
    struct ir_graph *graph = gir_parse_graph(source);
    const char *why;
    int64_t diagonal = 0;
    struct gir_parts *parts = gir_build_parts(graph, &why);
    if (!parts)
        fail_msg("%s", why);
    const struct gir_part *part = &parts->parts[0];
    assert_int_equal(gir_find_triangle(part->kernel, part->maps, &part->space, &diagonal), wanted);
    if (wanted)
        assert_int_equal(diagonal, wanted_diagonal);
    gir_parts_free(parts);
    ir_graph_free(graph);
}

#define COLUMNS(ops)                                                                               \
    FUSED_GRAPH("%x: f32[7, 40, 50], %t: f32[7, 1, 50]", "%x, %t",                                 \
                "%p: f32[7, 40, 50], %q: f32[7, 1, 50]) { %k = Constant() {value = i64[1] [1]} "   \
                "%three = Constant() {value = i64[] 3} "                                           \
                "%four = Constant() {value = i64[] -4} %n = Neg(%p) " ops " return(%r)",           \
                "%y")

static void kernels(void **state)
{
    (void)state;
    expect(COLUMNS("%u = Trilu(%n) %r = ReduceMax(%u, %k)"), true, 0);
    expect(COLUMNS("%u = Trilu(%n, %three) %m = ReduceMin(%u, %k) %r = Mul(%m, %q)"), true, 3);
    expect(COLUMNS("%u = Trilu(%n, %four) %l = ReduceMin(%u, %k) %h = ReduceMax(%u, %k) "
                   "%r = Sub(%h, %l)"),
           true, -4);
    /* Two diagonals; the lower half; a sum; what is made of the triangle; something else besides.
     */
    expect(COLUMNS("%u = Trilu(%n, %three) %v = Trilu(%n, %four) %l = ReduceMin(%u, %k) "
                   "%h = ReduceMax(%v, %k) %r = Sub(%h, %l)"),
           false, 0);
    expect(COLUMNS("%u = Trilu(%n) {upper = 0} %r = ReduceMax(%u, %k)"), false, 0);
    expect(COLUMNS("%u = Trilu(%n) %r = ReduceSum(%u, %k)"), false, 0);
    expect(COLUMNS("%u = Trilu(%n) %e = Add(%u, %q) %r = ReduceMax(%e, %k)"), false, 0);
    expect(COLUMNS("%u = Trilu(%n) %l = ReduceMax(%u, %k) %h = ReduceMax(%n, %k) %r = Sub(%l, %h)"),
           false, 0);
    expect(COLUMNS("%r = ReduceMax(%n, %k)"), false, 0);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Every column has come to its number, or to the last row. */
static void rows(void **state)
{
    (void)state;
    for (int64_t diagonal = -12; diagonal <= 12; diagonal++)
        for (int64_t n = 0; n <= 9; n++)
            for (int64_t end = 1; end <= 9; end++) {
                const int64_t enough = gir_triangle_rows(diagonal, end, n);
                int64_t least = 0;
                for (int64_t column = 0; column < end; column++) {
                    int64_t row = 0;
                    while (row < n && column >= row + diagonal)
                        row++;
                    row += row < n;
                    least = row > least ? row : least;
                }
                assert_int_equal(enough, least);
            }
}

/* ---- What comes out -------------------------------------------------------------------------- */

/* Few numbers, so that many are equal; zeros of both signs; a NaN here and there. */
static float number(uint64_t i)
{
    static const float numbers[] = {-0.0f, -0.0f, 0.0f, -1, -2, -0.0f, -3, NAN};
    const uint64_t hash = i * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    return numbers[hash % 8 == 7 && hash % 64 != 7 ? 0 : hash % 8];
}

/* Without a generator of code there is nothing to compare: false. */
static bool check(const char *kind, int64_t diagonal, int64_t n_rows, int64_t n_columns)
{
    char *text =
        xprintf("graph @g opset(\"\": 21) ir_version(10) (%%x: f32[3, H, %d]) -> (%%y) {\n"
                "  %%y = fuse(%%x) { body(%%p: f32[3, H, %d]) {\n"
                "    %%k = Constant() {value = i64[1] [1]}\n"
                "    %%d = Constant() {value = i64[] %d}\n    %%n = Neg(%%p)\n    %%m = Neg(%%n)\n"
                "    %%u = Trilu(%%m, %%d)\n    %%r = %s(%%u, %%k) {keepdims = 0}\n"
                "    return(%%r) } }\n  return(%%y)\n}\n",
                (int)n_columns, (int)n_columns, (int)diagonal, kind);
    struct kernel_program compiled = {0}, interpreted = {0};
    struct compile_report report = {0};
    struct ir_graph *graph = kernel_parse(text);
    const int64_t count = 3 * n_rows * n_columns;
    float *x = xcalloc((size_t)count + 1, sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = number((uint64_t)(i + diagonal));
    const struct value input = {
        .kind = TSSA_KIND_TENSOR,
        .tensor = {.dtype = TSSA_FLOAT, .rank = 3, .dims = {3, n_rows, n_columns}, .data = x}};
    const struct value *const given[] = {&input};
    no_error(compile_fused(graph, test_device(), -1, &report));
    if (!report.compiled)
        print_message("nothing is compiled here: %s\n", report.why);
    kernel_program_open(&compiled, graph, test_device());
    kernel_program_open(&interpreted, kernel_parse(text), test_device());
    no_error(run_execute(compiled.run, given, compiled.outputs));
    no_error(run_execute(interpreted.run, given, interpreted.outputs));
    kernel_compare(&compiled.outputs[0].tensor, &interpreted.outputs[0].tensor, text, 0);
    kernel_program_close(&compiled);
    kernel_program_close(&interpreted);
    free(x);
    free(text);
    return report.compiled;
}

static void results(void **state)
{
    static const int64_t sizes[] = {0, 1, 2, 31, 33, 64, 70, 130},
                         diagonals[] = {0, 1, -5, 40, -99};
    (void)state;
    if (!check("ReduceMax", 0, 1, 2))
        skip();
    for (size_t d = 0; d < sizeof diagonals / sizeof *diagonals; d++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t k = 2; k < sizeof sizes / sizeof *sizes; k++) {
                assert_true(check("ReduceMax", diagonals[d], sizes[i], sizes[k]));
                assert_true(check("ReduceMin", diagonals[d], sizes[i], sizes[k]));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels), cmocka_unit_test(rows),
                                       cmocka_unit_test(results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
