/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel IR: what fuse ops become, as text, why some become nothing, and that of any bytes it is
 * told what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/gir_build.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/random_columns.h"
#include "common/random_fuse.h"
#include "common/random_keeps.h"
#include "common/random_loops.h"
#include "common/random_rows.h"
#include "common/random_scans.h"
#include "gir/form.h"
#include "ir/fuse.h"

static struct gir_kernel *build(const char *text, struct gir_space *space, const char **why)
{
    struct ir_graph *graph = gir_parse_graph(text);
    struct gir_kernel *kernel = gir_build_kernel(graph, space, why);
    ir_graph_free(graph);
    return kernel;
}

static void expect_text(const char *source, const char *expected)
{
    struct gir_space space;
    const char *why;
    struct text text;
    struct gir_kernel *kernel = build(source, &space, &why);
    if (!kernel)
        fail_msg("%s", why);
    text_init(&text, &allocator_default);
    assert_true(gir_print(kernel, &text));
    assert_string_equal(text_string(&text), expected);
    text_free(&text);
    allocator_free(&allocator_default, kernel);
}

static void texts(void **state)
{
    (void)state;
    /* What moves, what may lie on what; the same is computed once. Short rows with something that
     * they share are whole. */
    expect_text(FUSED_GRAPH("%x: f32[N, 4], %s: f32[N, 1]", "%x, %s",
                            "%p: f32[N, 4], %q: f32[N, 1]) { %m = Mul(%p, %q) %a = Sigmoid(%m) "
                            "%b = Sigmoid(%m) %c = Add(%a, %b) return(%c)",
                            "%y"),
                "whole rows, args 0: f32 moves, 1: f32, 2: f32 result on 0\n"
                "%0 = load 0 : f32\n"
                "%1 = load 1 : f32\n"
                "%2 = MUL %0 %1 : f32\n"
                "%3 = SIGMOID %2 : f32\n"
                "%4 = ADD %3 %3 : f32\n"
                "store 2 %4\n");
    /* Truth values and bytes; rounding after each op; two results; what no result needs is gone. */
    expect_text(
        FUSED_GRAPH("%x: f16[N], %b: bool[N]", "%x, %b",
                    "%p: f16[N], %c: bool[N]) { %z = Exp(%p) %t = IsNaN(%p) %n = And(%t, %c) "
                    "%m = Add(%p, %p) %r = Relu(%m) return(%n, %r)",
                    "%y, %w"),
        "args 0: f16 moves, 1: bool moves, 2: bool result on 1, 3: f16 result on 0\n"
        "%0 = load 0 : f16\n"
        "%1 = load 1 : u8\n"
        "%2 = convert %0 : f32\n"
        "%3 = ISNAN %2 : bool\n"
        "%4 = convert %1 : bool\n"
        "%5 = AND %3 %4 : bool\n"
        "%6 = ADD %2 %2 : f32\n"
        "%7 = convert %6 : f16\n"
        "%8 = convert %7 : f32\n"
        "%9 = 0 : f32\n"
        "%10 = MAX %8 %9 : f32\n"
        "%11 = convert %10 : f16\n"
        "%12 = convert %5 : u8\n"
        "store 2 %12\n"
        "store 3 %11\n");
    /* A power that is a product, integers, a fold. */
    expect_text(FUSED_GRAPH("%x: f64[2, N]", "%x",
                            "%p: f64[2, N]) { %k = Constant() {value = i64[] 2} %q = Pow(%p, %k) "
                            "%i = Cast(%q) {to = 6} %m = Max(%i, %i, %i) return(%m)",
                            "%y"),
                "args 0: f64 moves, 1: i32 result\n"
                "%0 = load 0 : f64\n"
                "%1 = MUL %0 %0 : f64\n"
                "%2 = convert %1 : i32\n"
                "%3 = MAX %2 %2 : i32\n"
                "%4 = MAX %3 %2 : i32\n"
                "store 1 %4\n");
}

static void texts_of_rows(void **state)
{
    (void)state;
    /* What a reduction comes to is one for the row, and may be a result. */
    expect_text(FUSED_GRAPH("%x: f16[N, C]", "%x",
                            "%p: f16[N, C]) { %k = Constant() {value = i64[1] [-1]} "
                            "%m = ReduceMean(%p, %k) %d = Sub(%p, %m) return(%m, %d)",
                            "%y, %z"),
                "whole rows, args 0: f16 moves, 1: f16 result per row, 2: f16 result on 0\n"
                "%0 = load 0 : f16\n"
                "%1 = convert %0 : f32\n"
                "%2 = reduce ADD from 0 %1 : f32\n"
                "%3 = length : f32\n"
                "%4 = DIV %2 %3 : f32\n"
                "%5 = convert %4 : f16\n"
                "%6 = convert %5 : f32\n"
                "%7 = SUB %1 %6 : f32\n"
                "%8 = convert %7 : f16\n"
                "store 1 %5\n"
                "store 2 %8\n");
    /* A composition; what reads the rows without their axis; integers begin with the bounds of
     * their own type. */
    expect_text(FUSED_GRAPH("%x: f32[N, C], %t: f32[N]", "%x, %t",
                            "%p: f32[N, C], %q: f32[N]) { %k = Constant() {value = i64[1] [1]} "
                            "%s = Softmax(%p) %m = ReduceMax(%s, %k) {keepdims = 0} "
                            "%g = Greater(%m, %q) return(%g)",
                            "%y"),
                "whole rows, args 0: f32 moves, 1: f32, 2: bool result per row\n"
                "%0 = load 0 : f32\n"
                "%1 = load 1 : f32\n"
                "%2 = reduce MAX from -inf %0 : f32\n"
                "%3 = SUB %0 %2 : f32\n"
                "%4 = EXP %3 : f32\n"
                "%5 = reduce ADD from 0 %4 : f32\n"
                "%6 = 1 : f32\n"
                "%7 = DIV %6 %5 : f32\n"
                "%8 = MUL %4 %7 : f32\n"
                "%9 = reduce MAX from -inf %8 : f32\n"
                "%10 = GT %9 %1 : bool\n"
                "%11 = convert %10 : u8\n"
                "store 2 %11\n");
    expect_text(
        FUSED_GRAPH("%x: i8[N, C]", "%x",
                    "%p: i8[N, C]) { %k = Constant() {value = i64[1] [1]} %m = ReduceMax(%p, %k) "
                    "return(%m)",
                    "%y"),
        "whole rows, args 0: i8 moves, 1: i8 result per row\n"
        "%0 = load 0 : i8\n"
        "%1 = convert %0 : i64\n"
        "%2 = reduce MAX from -128 %1 : i64\n"
        "%3 = convert %2 : i8\n"
        "store 1 %3\n");
    /* The best class of a row and its number: the same extreme. */
    expect_text(FUSED_GRAPH("%x: f32[N, 80]", "%x",
                            "%p: f32[N, 80]) { %k = Constant() {value = i64[1] [1]} "
                            "%m = ReduceMax(%p, %k) {keepdims = 0} "
                            "%a = ArgMax(%p) {axis = 1, keepdims = 0} return(%m, %a)",
                            "%y, %z"),
                "whole rows, args 0: f32 moves, 1: f32 result per row, 2: i64 result per row\n"
                "%0 = load 0 : f32\n"
                "%1 = reduce MAX from -inf %0 : f32\n"
                "%2 = EQ %0 %1 : bool\n"
                "%3 = ISNAN %0 : bool\n"
                "%4 = OR %2 %3 : bool\n"
                "%5 = position : i32\n"
                "%6 = 2147483647 : i32\n"
                "%7 = SEL %4 %5 %6 : i32\n"
                "%8 = reduce MIN from 2147483647 %7 : i32\n"
                "%9 = convert %8 : i64\n"
                "store 1 %1\n"
                "store 2 %9\n");
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

#define TWO_SCALES "%x: f32[N], %s: f32[], %z: u8[], %t: f32[]"
#define TWICE(zero)                                                                                \
    "%q = QuantizeLinear(%p, %a, %b) %d = DequantizeLinear(%q, %a, %b) "                           \
    "%r = Relu(%d) %e = QuantizeLinear(%r, %c, " zero ") return(%e)"

static void texts_of_bytes(void **state)
{
    (void)state;
    /* What is quantized and dequantized has never been a byte. Its zero point is another argument
     * for another scale. */
    expect_text(FUSED_GRAPH(TWO_SCALES, "%x, %s, %z, %t",
                            "%p: f32[N], %a: f32[], %b: u8[], %c: f32[]) { " TWICE("%b"), "%y"),
                "args 0: f32 moves, 1: f32, 2: f32, 3: u8, 4: u8, 5: u8 result\n"
                "%0 = load 0 : f32\n"
                "%1 = load 1 : f32\n"
                "%2 = load 2 : f32\n"
                "%3 = load 3 : u8\n"
                "%4 = 0 : u8\n"
                "%5 = convert %4 : f32\n"
                "%6 = 255 : u8\n"
                "%7 = convert %6 : f32\n"
                "%8 = DIV %0 %1 : f32\n"
                "%9 = ROUND %8 : f32\n"
                "%10 = convert %3 : f32\n"
                "%11 = ADD %9 %10 : f32\n"
                "%12 = GT %11 %5 : bool\n"
                "%13 = SEL %12 %11 %5 : f32\n"
                "%14 = LT %13 %7 : bool\n"
                "%15 = SEL %14 %13 %7 : f32\n"
                "%16 = SUB %15 %10 : f32\n"
                "%17 = MUL %16 %1 : f32\n"
                "%18 = 0 : f32\n"
                "%19 = MAX %17 %18 : f32\n"
                "%20 = load 4 : u8\n"
                "%21 = DIV %19 %2 : f32\n"
                "%22 = ROUND %21 : f32\n"
                "%23 = convert %20 : f32\n"
                "%24 = ADD %22 %23 : f32\n"
                "%25 = GT %24 %5 : bool\n"
                "%26 = SEL %25 %24 %5 : f32\n"
                "%27 = LT %26 %7 : bool\n"
                "%28 = SEL %27 %26 %7 : f32\n"
                "%29 = convert %28 : u8\n"
                "store 5 %29\n");
    /* What was a byte before is converted. */
    expect_text(FUSED_GRAPH("%x: i8[N], %s: f32[]", "%x, %s",
                            "%p: i8[N], %a: f32[]) { %d = DequantizeLinear(%p, %a) "
                            "%q = QuantizeLinear(%d, %a) {output_dtype = 3} return(%q)",
                            "%y"),
                "args 0: i8 moves, 1: f32, 2: i8 result on 0\n"
                "%0 = load 0 : i8\n"
                "%1 = load 1 : f32\n"
                "%2 = convert %0 : f32\n"
                "%3 = 0 : f32\n"
                "%4 = SUB %2 %3 : f32\n"
                "%5 = MUL %4 %1 : f32\n"
                "%6 = -128 : i8\n"
                "%7 = convert %6 : f32\n"
                "%8 = 127 : i8\n"
                "%9 = convert %8 : f32\n"
                "%10 = DIV %5 %1 : f32\n"
                "%11 = ROUND %10 : f32\n"
                "%12 = ADD %11 %3 : f32\n"
                "%13 = GT %12 %7 : bool\n"
                "%14 = SEL %13 %12 %7 : f32\n"
                "%15 = LT %14 %9 : bool\n"
                "%16 = SEL %15 %14 %9 : f32\n"
                "%17 = convert %16 : i8\n"
                "store 2 %17\n");
}

/* Kernels of layers whose zero points are the same number by chance, and of others. */
static void zero_points_by_chance(void **state)
{
    (void)state;
    struct gir_space one_space, two_space;
    const char *why;
    struct gir_kernel *one =
        build(FUSED_GRAPH(TWO_SCALES, "%x, %s, %z, %t",
                          "%p: f32[N], %a: f32[], %b: u8[], %c: f32[]) { " TWICE("%b"), "%y"),
              &one_space, &why);
    struct gir_kernel *two = build(
        FUSED_GRAPH(TWO_SCALES ", %w: u8[]", "%x, %s, %z, %t, %w",
                    "%p: f32[N], %a: f32[], %b: u8[], %c: f32[], %f: u8[]) { " TWICE("%f"), "%y"),
        &two_space, &why);
    assert_non_null(one);
    assert_non_null(two);
    assert_int_equal(one->size, two->size);
    assert_memory_equal(one, two, one->size);
    assert_int_equal(one_space.places[4].index, 2);
    assert_int_equal(two_space.places[4].index, 4);
    allocator_free(&allocator_default, one);
    allocator_free(&allocator_default, two);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

#define CENTERED(type, op)                                                                         \
    FUSED_GRAPH("%x: " type ", %s: f32[]", "%x, %s",                                               \
                "%p: " type ", %a: f32[]) { %k = Constant() {value = i64[1] [1]} " op              \
                " %m = ReduceMean(%v, %k) %d = Sub(%v, %m) return(%d)",                            \
                "%y")

/* What several walks of a row need is kept where it is more than a few operations; and rows that
 * are long in every run have one form. */
static void expect_row(const char *text, size_t kept, uint32_t form)
{
    struct gir_space space;
    const char *why;
    struct gir_kernel *kernel = build(text, &space, &why);
    assert_non_null(kernel);
    assert_int_equal(gir_kept_bytes(kernel), kept);
    assert_int_equal(kernel->form, form);
    allocator_free(&allocator_default, kernel);
}

static void rows(void **state)
{
    (void)state;
    expect_row(CENTERED("f32[N, C]", "%v = Mul(%p, %a)"), 0, 0);
    expect_row(CENTERED("f32[N, C]", "%u = Div(%p, %a) %w = Div(%u, %p) %v = Add(%w, %p)"), 4, 0);
    expect_row(CENTERED("f32[N, 64]", "%v = Mul(%p, %a)"), 0, 0);
    expect_row(CENTERED("f32[N, 65]", "%v = Mul(%p, %a)"), 0, GIR_FORM_ROWS_ALONG);
}

/* ---- Planes ---------------------------------------------------------------------------------- */

static void texts_of_compositions(void **state)
{
    (void)state;
    /* What there is of each channel is one for the row. */
    expect_text(FUSED_GRAPH("%x: f32[N, C, H, W], %s: f32[C], %b: f32[C]", "%x, %s, %b",
                            "%p: f32[N, C, H, W], %q: f32[C], %r: f32[C]) { "
                            "%a = InstanceNormalization(%p, %q, %r) %c = Relu(%a) return(%c)",
                            "%y"),
                "whole rows, args 0: f32 moves, 1: f32, 2: f32, 3: f32 result on 0\n"
                "%0 = load 0 : f32\n"
                "%1 = load 1 : f32\n"
                "%2 = load 2 : f32\n"
                "%3 = 0 : f32\n"
                "%4 = reduce ADD from 0 %0 : f32\n"
                "%5 = length : f32\n"
                "%6 = DIV %4 %5 : f32\n"
                "%7 = SUB %0 %6 : f32\n"
                "%8 = MUL %7 %7 : f32\n"
                "%9 = reduce ADD from 0 %8 : f32\n"
                "%10 = DIV %9 %5 : f32\n"
                "%11 = 9.9999997473787516e-06 : f32\n"
                "%12 = ADD %10 %11 : f32\n"
                "%13 = SQRT %12 : f32\n"
                "%14 = 1 : f32\n"
                "%15 = DIV %14 %13 : f32\n"
                "%16 = MUL %15 %1 : f32\n"
                "%17 = MUL %7 %16 : f32\n"
                "%18 = ADD %17 %2 : f32\n"
                "%19 = MAX %18 %3 : f32\n"
                "store 3 %19\n");
    /* An attribute chooses the branch; axes are from either end. */
    expect_text(FUSED_GRAPH("%x: f16[N, C]", "%x",
                            "%p: f16[N, C]) { %a = LpNormalization(%p) {p = 1} return(%a)", "%y"),
                "whole rows, args 0: f16 moves, 1: f16 result on 0\n"
                "%0 = load 0 : f16\n"
                "%1 = convert %0 : f32\n"
                "%2 = ABS %1 : f32\n"
                "%3 = 0 : f32\n"
                "%4 = reduce ADD from 0 %2 : f32\n"
                "%5 = EQ %4 %3 : bool\n"
                "%6 = DIV %1 %4 : f32\n"
                "%7 = SEL %5 %3 %6 : f32\n"
                "%8 = convert %7 : f16\n"
                "store 1 %8\n");
    expect_text(FUSED_GRAPH("%x: f64[N, H, W]", "%x",
                            "%p: f64[N, H, W]) { "
                            "%a = MeanVarianceNormalization(%p) {axes = [-1, 1]} return(%a)",
                            "%y"),
                "whole rows, args 0: f64 moves, 1: f64 result on 0\n"
                "%0 = load 0 : f64\n"
                "%1 = reduce ADD from 0 %0 : f64\n"
                "%2 = length : f64\n"
                "%3 = DIV %1 %2 : f64\n"
                "%4 = SUB %0 %3 : f64\n"
                "%5 = MUL %4 %4 : f64\n"
                "%6 = reduce ADD from 0 %5 : f64\n"
                "%7 = DIV %6 %2 : f64\n"
                "%8 = SQRT %7 : f64\n"
                "%9 = 1.0000000000000001e-09 : f64\n"
                "%10 = ADD %8 %9 : f64\n"
                "%11 = DIV %4 %10 : f64\n"
                "store 1 %11\n");
}

static void planes(void **state)
{
    static const char source[] =
        FUSED_GRAPH("%x: f32[2, 12, 5, 4], %s: f32[80, 3]", "%x, %s",
                    "%p: f32[2, 12, 5, 4], %q: f32[80, 3]) { "
                    "%t = access(%p) {rule = [select(0, 1), permute(1, 2, 0), reshape(-1, 3)]} "
                    "%a = Softmax(%t) %b = Mul(%a, %q) return(%b)",
                    "%y");
    int64_t sizes[TSSA_MAX_RANK], steps[TSSA_MAX_RANK][GIR_MAX_ARGS];
    struct gir_space space;
    const char *why;
    int n;
    (void)state;
    expect_text(source, "whole rows, args 0: f32 moves, 1: f32 strided, 2: f32 result on 0\n"
                        "%0 = load 0 : f32\n"
                        "%1 = load 1 : f32\n"
                        "%2 = reduce MAX from -inf %1 : f32\n"
                        "%3 = SUB %1 %2 : f32\n"
                        "%4 = EXP %3 : f32\n"
                        "%5 = reduce ADD from 0 %4 : f32\n"
                        "%6 = 1 : f32\n"
                        "%7 = DIV %6 %5 : f32\n"
                        "%8 = MUL %4 %7 : f32\n"
                        "%9 = MUL %8 %0 : f32\n"
                        "store 2 %9\n");
    /* A row; then the 20 cells, whose elements are side by side, before the 4 rows of each. */
    struct ir_graph *graph = gir_parse_graph(source);
    struct gir_kernel *kernel = gir_build_kernel(graph, &space, &why);
    assert_int_equal(space.places[1].planes->offset, 240);
    assert_int_equal(gir_rows_of_planes(space.places[1].planes), 20);
    assert_true(gir_walk_planes(kernel, &space, (int64_t[]){80, 3}, &n, sizes, steps));
    assert_int_equal(n, 3);
    static const int64_t expected[3][4] = {{3, 4, 80, 4}, {20, 48, 4, 48}, {4, 12, 240, 12}};
    for (int i = 0; i < n; i++) {
        assert_int_equal(sizes[i], expected[i][0]);
        for (int k = 0; k < 3; k++)
            assert_int_equal(steps[i][k], expected[i][1 + k]);
    }
    allocator_free(&allocator_default, kernel);
    ir_graph_free(graph);
}

/* What is no row of planes, or does not fit the rest. */
static void refused_planes(void **state)
{
    static const char *const programs[] = {
        FUSED_GRAPH(
            "%x: f32[N, 6, 4]", "%x",
            "%p: f32[N, 6, 4]) { %t = access(%p) {rule = [permute(0, 2, 1)]} %a = Softmax(%t) "
            "return(%a)",
            "%y"),
        FUSED_GRAPH("%x: f32[129, 4]", "%x",
                    "%p: f32[129, 4]) { %t = access(%p) {rule = [permute(1, 0)]} %a = Softmax(%t) "
                    "return(%a)",
                    "%y"),
        /* Rows that are pieces of several axes. */
        FUSED_GRAPH("%x: f32[6, 4]", "%x",
                    "%p: f32[6, 4]) { %t = access(%p) {rule = [permute(1, 0), reshape(2, 12)]} "
                    "%a = Softmax(%t) return(%a)",
                    "%y"),
        FUSED_GRAPH("%x: f32[6, 4], %s: f32[4, 6]", "%x, %s",
                    "%p: f32[6, 4], %q: f32[4, 6]) { %t = access(%p) {rule = [permute(1, 0), "
                    "reshape(12, 2)]} %u = access(%q) {rule = [permute(1, 0), reshape(12, 2)]} "
                    "%a = Softmax(%t) %b = Mul(%a, %u) return(%b)",
                    "%y"),
        /* No rows are computed of it. */
        FUSED_GRAPH("%x: f32[6, 4]", "%x",
                    "%p: f32[6, 4]) { %t = access(%p) {rule = [permute(1, 0), reshape(8, 3)]} "
                    "%a = Neg(%t) return(%a)",
                    "%y"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct gir_space space;
        const char *why;
        assert_null(build(programs[i], &space, &why));
        assert_non_null(why);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const char *const programs[] = {
        FUSED_GRAPH("%x: f32[N], %s: f32[M]", "%x, %s",
                    "%p: f32[N], %q: f32[M]) { %a = Add(%p, %q) return(%a)", "%y"),
        FUSED_GRAPH("%x: f32[N, 4]", "%x",
                    "%p: f32[N, 4]) { %a = Softmax(%p) {axis = 0} return(%a)", "%y"),
        FUSED_GRAPH("%x: f32[N, 4]", "%x",
                    "%p: f32[N, 4]) { %k = Constant() {value = i64[1] [0]} %a = ReduceMax(%p, %k) "
                    "return(%a)",
                    "%y"),
        /* Rows that differ; operands that are there with the row and without. */
        FUSED_GRAPH(
            "%x: f32[N, 4], %s: f32[N, 5]", "%x, %s",
            "%p: f32[N, 4], %q: f32[N, 5]) { %a = Softmax(%p) %b = Softmax(%q) return(%a, %b)",
            "%y, %z"),
        FUSED_GRAPH("%x: f32[N, N], %s: f32[N]", "%x, %s",
                    "%p: f32[N, N], %q: f32[N]) { %k = Constant() {value = i64[1] [1]} "
                    "%m = ReduceMax(%p, %k) {keepdims = 0} %a = Add(%m, %q) %b = Add(%p, %q) "
                    "return(%a, %b)",
                    "%y, %z"),
        /* There may be none of which one is the largest. */
        FUSED_GRAPH("%x: f32[4, N]", "%x", "%p: f32[4, N]) { %a = ArgMax(%p) {axis = 1} return(%a)",
                    "%y"),
        FUSED_GRAPH("%x: i32[N]", "%x", "%p: i32[N]) { %a = Pow(%p, %p) return(%a)", "%y"),
        FUSED_GRAPH("%x: i32[N]", "%x", "%p: i32[N]) { %a = Shrink(%p) return(%a)", "%y"),
        FUSED_GRAPH("%x: f32[4]", "%x",
                    "%p: f32[4]) { %k = Constant() {value = f32[4] [1, 2, 3, 4]} %a = Add(%p, %k) "
                    "return(%a)",
                    "%y"),
        FUSED_GRAPH("%x: f32[N], %s: f32[M, N]", "%x, %s",
                    "%p: f32[N], %q: f32[M, N]) { %b = Abs(%p) %a = Add(%p, %q) return(%a, %b)",
                    "%y, %z"),
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct gir_space space;
        const char *why;
        assert_null(build(programs[i], &space, &why));
        assert_non_null(why);
    }
}

/* Every axis of every argument, in the kernel's order of them. */
static void spaces(void **state)
{
    (void)state;
    struct gir_space space;
    const char *why;
    struct gir_kernel *kernel =
        build(FUSED_GRAPH("%x: f32[A, 1, C], %s: f32[B, 1]", "%s, %x",
                          "%q: f32[B, 1], %p: f32[A, 1, C]) { %a = Add(%p, %q) return(%a)", "%y"),
              &space, &why);
    assert_non_null(kernel);
    assert_int_equal(space.rank, 3);
    assert_int_equal(kernel->n_args, 3);
    assert_int_equal(space.places[0].axes, 2);
    assert_int_equal(space.places[0].rank, 2);
    assert_int_equal(space.places[1].axes, 5);
    assert_int_equal(space.places[2].axes, 7);
    assert_false(gir_args(kernel)[0].moves);
    assert_true(gir_args(kernel)[1].moves);
    assert_int_equal(gir_args(kernel)[2].may_lie_on, 0);
    allocator_free(&allocator_default, kernel);
}

/* How many of the kernel's bytes with some changed are accepted. */
static size_t change_bytes(const struct gir_kernel *kernel, struct random *random)
{
    size_t accepted = 0;
    for (int i = 0; i < 200; i++) {
        /* Memory of just these bytes, so that a read behind them is seen. */
        const size_t size = (size_t)random_int(random, i % 4 ? kernel->size : 0, kernel->size);
        unsigned char *bytes = malloc(size ? size : 1);
        assert_non_null(bytes);
        memcpy(bytes, kernel, size);
        for (int64_t k = random_int(random, 1, 3); k > 0 && size; k--)
            bytes[random_int(random, 0, (int64_t)size - 1)] =
                (unsigned char)random_int(random, 0, i % 2 ? 255 : 8);
        tssa_status *status = gir_check(bytes, size);
        struct text printed;
        text_init(&printed, &allocator_default);
        if (!status)
            assert_true(gir_print((const struct gir_kernel *)(void *)bytes, &printed));
        accepted += !status;
        text_free(&printed);
        tssa_status_free(status);
        free(bytes);
    }
    return accepted;
}

/* What is accepted has text; what is not is refused in words. */
static void any_bytes(void **state)
{
    (void)state;
    size_t accepted = 0, with_maps = 0, as_grids = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct random random = {seed};
        struct gir_space space;
        const char *why;
        char *text = seed % 2 ? random_fuse(seed) : random_rows(seed),
             *map_text = seed % 4 == 3   ? random_keeps(seed)
                         : seed % 4 == 2 ? random_maps(seed)
                         : seed % 8 == 1 ? random_loops(seed)
                         : seed % 8 == 5 ? random_scans(seed)
                                         : random_columns(seed);
        struct gir_kernel *kernel = build(text, &space, &why);
        struct ir_graph *graph = gir_parse_graph(map_text);
        struct gir_parts *parts =
            gir_has_maps(ir_block_return(graph->body)->prev) ? gir_build_parts(graph, &why) : NULL;
        struct gir_grid *grid = gir_build_whole_grid(graph, &why);
        accepted += kernel ? change_bytes(kernel, &random) : 0;
        for (uint32_t i = 0; parts && i < parts->n; i++)
            with_maps += change_bytes(parts->parts[i].kernel, &random);
        for (uint32_t i = 0; grid && i < grid->n; i++)
            as_grids += change_bytes(grid->parts[i].kernel, &random);
        gir_grid_free(grid);
        allocator_free(&allocator_default, kernel);
        gir_parts_free(parts);
        ir_graph_free(graph);
        free(text);
        free(map_text);
    }
    assert_true(accepted > 100 && with_maps > 100 && as_grids > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(texts_of_rows),
        cmocka_unit_test(texts_of_compositions),
        cmocka_unit_test(texts_of_bytes),
        cmocka_unit_test(zero_points_by_chance),
        cmocka_unit_test(rows),
        cmocka_unit_test(planes),
        cmocka_unit_test(refused_planes),
        cmocka_unit_test(refusals),
        cmocka_unit_test(spaces),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
