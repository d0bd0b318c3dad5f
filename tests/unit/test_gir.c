/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel IR: what fuse ops become, as text, why some become nothing, and that of any bytes it is told what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/random_columns.h"
#include "common/random_region.h"
#include "common/random_rows.h"
#include "gir/build.h"
#include "gir/maps.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/rule.h"
#include "ir/verifier.h"

#define GRAPH(params, operands, body, results)                                                     \
    "graph @g opset(\"\": 21) ir_version(10) (" params ") -> (" results ") {\n  " results          \
    " = fuse(" operands ") { body(" body " } }\n  return(" results ")\n}\n"

static struct ir_graph *parse(const char *text)
{
    struct ir_graph *graph;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    no_error(ir_verify(graph));
    return graph;
}

/* NULL: *why says so. Planes of the space go with the graph. */
static struct gir_kernel *build_in(struct ir_graph *graph, struct gir_space *space,
                                   const char **why)
{
    struct gir_kernel *kernel;
    no_error(gir_build(graph->body->first, &allocator_default, &kernel, space, why));
    if (kernel)
        no_error(gir_check(kernel, kernel->size));
    return kernel;
}

static struct gir_kernel *build(const char *text, struct gir_space *space, const char **why)
{
    struct ir_graph *graph = parse(text);
    struct gir_kernel *kernel = build_in(graph, space, why);
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
    /* What moves, what may lie on what; the same is computed once. Short rows with something that they share are whole. */
    expect_text(GRAPH("%x: f32[N, 4], %s: f32[N, 1]", "%x, %s",
                      "%p: f32[N, 4], %q: f32[N, 1]) { %m = Mul(%p, %q) %a = Sigmoid(%m) "
                      "%b = Sigmoid(%m) %c = Add(%a, %b) return(%c)",
                      "%y"),
                "whole rows, args 0: f32 moves, 1: f32, 2: f32 result on 0\n"
                "%0 = load 0 : f32\n"
                "%1 = load 1 : f32\n"
                "%2 = MUL %0 %1 : f32\n"
                "%3 = 0 : f32\n"
                "%4 = LT %2 %3 : bool\n"
                "%5 = ABS %2 : f32\n"
                "%6 = NEG %5 : f32\n"
                "%7 = EXP %6 : f32\n"
                "%8 = 1 : f32\n"
                "%9 = SEL %4 %7 %8 : f32\n"
                "%10 = ADD %8 %7 : f32\n"
                "%11 = DIV %9 %10 : f32\n"
                "%12 = ADD %11 %11 : f32\n"
                "store 2 %12\n");
    /* Truth values and bytes; rounding after each op; two results; what no result needs is gone. */
    expect_text(GRAPH("%x: f16[N], %b: bool[N]", "%x, %b",
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
    expect_text(GRAPH("%x: f64[2, N]", "%x",
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
    expect_text(GRAPH("%x: f16[N, C]", "%x",
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
    /* A composition; what reads the rows without their axis; integers begin with the bounds of their own type. */
    expect_text(GRAPH("%x: f32[N, C], %t: f32[N]", "%x, %t",
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
    expect_text(GRAPH("%x: i8[N, C]", "%x",
                      "%p: i8[N, C]) { %k = Constant() {value = i64[1] [1]} %m = ReduceMax(%p, %k) "
                      "return(%m)",
                      "%y"),
                "whole rows, args 0: i8 moves, 1: i8 result per row\n"
                "%0 = load 0 : i8\n"
                "%1 = convert %0 : i64\n"
                "%2 = reduce MAX from -128 %1 : i64\n"
                "%3 = convert %2 : i8\n"
                "store 1 %3\n");
}

/* ---- Planes --------------------------------------------------------------------------------------- */

static void planes(void **state)
{
    static const char source[] =
        GRAPH("%x: f32[2, 12, 5, 4], %s: f32[80, 3]", "%x, %s",
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
    struct ir_graph *graph = parse(source);
    struct gir_kernel *kernel = build_in(graph, &space, &why);
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
        GRAPH("%x: f32[N, 6, 4]", "%x",
              "%p: f32[N, 6, 4]) { %t = access(%p) {rule = [permute(0, 2, 1)]} %a = Softmax(%t) "
              "return(%a)",
              "%y"),
        GRAPH("%x: f32[129, 4]", "%x",
              "%p: f32[129, 4]) { %t = access(%p) {rule = [permute(1, 0)]} %a = Softmax(%t) "
              "return(%a)",
              "%y"),
        /* Rows that are pieces of several axes. */
        GRAPH("%x: f32[6, 4]", "%x",
              "%p: f32[6, 4]) { %t = access(%p) {rule = [permute(1, 0), reshape(2, 12)]} "
              "%a = Softmax(%t) return(%a)",
              "%y"),
        GRAPH("%x: f32[6, 4], %s: f32[4, 6]", "%x, %s",
              "%p: f32[6, 4], %q: f32[4, 6]) { %t = access(%p) {rule = [permute(1, 0), "
              "reshape(12, 2)]} %u = access(%q) {rule = [permute(1, 0), reshape(12, 2)]} "
              "%a = Softmax(%t) %b = Mul(%a, %u) return(%b)",
              "%y"),
        /* No rows are computed of it. */
        GRAPH("%x: f32[6, 4]", "%x",
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

/* ---- Accesses and assigns ------------------------------------------------------------------------- */

static struct gir_parts *build_parts(struct ir_graph *graph, const char **why)
{
    struct gir_parts *parts;
    no_error(gir_build_maps(graph->body->first, &allocator_default, &parts, why));
    for (uint32_t i = 0; parts && i < parts->n; i++)
        no_error(gir_check(parts->parts[i].kernel, parts->parts[i].kernel->size));
    return parts;
}

/* Of each part its kernel, and which part of what its arguments are. */
static void print_part(const struct gir_part *part, struct text *text)
{
    assert_true(gir_print(part->kernel, text));
    for (uint32_t k = 0; k < part->kernel->n_args; k++) {
        text_printf(text, "%u is %u along %x ", (unsigned)k, (unsigned)part->maps[k].index,
                    (unsigned)part->maps[k].axes);
        if (part->maps[k].rule)
            rule_print(part->maps[k].rule, text);
        text_puts(text, "\n");
    }
}

static void expect_parts(const char *source, const char *expected)
{
    struct ir_graph *graph = parse(source);
    const char *why;
    struct text text;
    struct gir_parts *parts = build_parts(graph, &why);
    if (!parts)
        fail_msg("%s", why);
    text_init(&text, &allocator_default);
    for (uint32_t i = 0; i < parts->n; i++)
        print_part(&parts->parts[i], &text);
    assert_string_equal(text_string(&text), expected);
    text_free(&text);
    gir_parts_free(parts);
    ir_graph_free(graph);
}

static void maps(void **state)
{
    (void)state;
    /* Columns are fields of records; each has its own source. */
    expect_parts(GRAPH("%x: f32[N, 3], %s: f32[N]", "%x, %s",
                       "%p: f32[N, 3], %q: f32[N]) { %c = access(%p) {rule = [select(1, 2)]} "
                       "%d = assign(%p, %c) {rule = [select(1, 0)]} "
                       "%e = assign(%d, %q) {rule = [select(1, -1)]} %a = Neg(%e) return(%a)",
                       "%y"),
                 "args 0: f32 moves by 3, 1: f32 moves, 2: f32 result by 3\n"
                 "%0 = load 0.2 : f32\n"
                 "%1 = NEG %0 : f32\n"
                 "%2 = load 0.1 : f32\n"
                 "%3 = NEG %2 : f32\n"
                 "%4 = load 1 : f32\n"
                 "%5 = NEG %4 : f32\n"
                 "store 2.0 %1\n"
                 "store 2.1 %3\n"
                 "store 2.2 %5\n"
                 "0 is 0 along 1 \n"
                 "1 is 1 along 1 \n"
                 "2 is 0 along 1 \n");
    /* What is broadcast to columns that are written is the same in each of them. */
    expect_parts(GRAPH("%x: f32[N, 2], %s: f32[]", "%x, %s",
                       "%p: f32[N, 2], %q: f32[]) { %b = Neg(%p) "
                       "%a = assign(%b, %q) {rule = [slice(1, 1, 2, 1)]} return(%a)",
                       "%y"),
                 "args 0: f32 moves by 2, 1: f32, 2: f32 result by 2\n"
                 "%0 = load 0.0 : f32\n"
                 "%1 = NEG %0 : f32\n"
                 "%2 = load 1 : f32\n"
                 "store 2.0 %1\n"
                 "store 2.1 %2\n"
                 "0 is 0 along 1 \n"
                 "1 is 1 along 0 [unsqueeze(0, 1), select(1, 0)]\n"
                 "2 is 0 along 1 \n");
    /* What is transposed, or a column of many, is strided; one element per row stays. */
    expect_parts(GRAPH("%x: f32[M, N], %s: f32[N, 50]", "%x, %s",
                       "%p: f32[M, N], %q: f32[N, 50]) { %t = access(%p) {rule = [permute(1, 0)]} "
                       "%c = access(%q) {rule = [select(1, 7), unsqueeze(1)]} %a = Add(%t, %c) "
                       "return(%a)",
                       "%y"),
                 "args 0: f32 strided, 1: f32, 2: f32 result\n"
                 "%0 = load 0 : f32\n"
                 "%1 = load 1 : f32\n"
                 "%2 = ADD %0 %1 : f32\n"
                 "store 2 %2\n"
                 "0 is 0 along 3 [permute(1, 0)]\n"
                 "1 is 1 along 1 [select(1, 7), unsqueeze(1)]\n"
                 "2 is 0 along 3 \n");
    /* Rows are written over what was computed for all of them; the slice of one row is broadcast. */
    expect_parts(GRAPH("%x: f32[R, C], %s: f32[R, C], %i: i64[]", "%x, %s, %i",
                       "%p: f32[R, C], %q: f32[R, C], %n: i64[]) { "
                       "%f = access(%q) {rule = [slice(0, 0, 1, 1)]} "
                       "%r = access(%q, %n) {rule = [select(0, $0)]} "
                       "%b = assign(%p, %r) {rule = [select(0, 1)]} %a = Add(%b, %f) return(%a)",
                       "%y"),
                 "args 0: f32 moves, 1: f32 moves, 2: f32 result\n"
                 "%0 = load 0 : f32\n"
                 "%1 = load 1 : f32\n"
                 "%2 = ADD %0 %1 : f32\n"
                 "store 2 %2\n"
                 "0 is 0 along 3 \n"
                 "1 is 1 along 2 [slice(0, 0, 1, 1)]\n"
                 "2 is 0 along 3 \n"
                 "args 0: f32 moves, 1: f32 moves, 2: f32 result\n"
                 "%0 = load 0 : f32\n"
                 "%1 = load 1 : f32\n"
                 "%2 = ADD %0 %1 : f32\n"
                 "store 2 %2\n"
                 "0 is 1 along 1 [select(0, $2)]\n"
                 "1 is 1 along 1 [select(0, 0)]\n"
                 "2 is 0 along 1 [select(0, 1)]\n");
}

static void pieces(void **state)
{
    (void)state;
    /* Two columns of longer rows, which are no vector. */
    expect_parts(GRAPH("%x: f32[N, 85], %s: f32[N, 2]", "%x, %s",
                       "%p: f32[N, 85], %q: f32[N, 2]) { "
                       "%c = access(%p) {rule = [slice(1, 2, 4, 1)]} %a = Mul(%c, %q) return(%a)",
                       "%y"),
                 "args 0: f32 strided, 1: f32 moves by 2, 2: f32 strided, 3: f32 result by 2\n"
                 "%0 = load 0 : f32\n"
                 "%1 = load 1.0 : f32\n"
                 "%2 = MUL %0 %1 : f32\n"
                 "%3 = load 2 : f32\n"
                 "%4 = load 1.1 : f32\n"
                 "%5 = MUL %3 %4 : f32\n"
                 "store 3.0 %2\n"
                 "store 3.1 %5\n"
                 "0 is 0 along 1 [select(1, 2)]\n"
                 "1 is 1 along 1 \n"
                 "2 is 0 along 1 [select(1, 3)]\n"
                 "3 is 0 along 1 \n");
    /* Columns of a Concat, each of its own source. */
    expect_parts(GRAPH("%x: f32[N, 2], %s: f32[N, 2]", "%x, %s",
                       "%p: f32[N, 2], %q: f32[N, 2]) { %l = Sub(%p, %q) %h = Add(%p, %q) "
                       "%a = Concat(%l, %h) {axis = -1} return(%a)",
                       "%y"),
                 "args 0: f32 moves by 2, 1: f32 moves by 2, 2: f32 result by 4\n"
                 "%0 = load 0.0 : f32\n"
                 "%1 = load 1.0 : f32\n"
                 "%2 = SUB %0 %1 : f32\n"
                 "%3 = load 0.1 : f32\n"
                 "%4 = load 1.1 : f32\n"
                 "%5 = SUB %3 %4 : f32\n"
                 "%6 = ADD %0 %1 : f32\n"
                 "%7 = ADD %3 %4 : f32\n"
                 "store 2.0 %2\n"
                 "store 2.1 %5\n"
                 "store 2.2 %6\n"
                 "store 2.3 %7\n"
                 "0 is 0 along 1 \n"
                 "1 is 1 along 1 \n"
                 "2 is 0 along 1 \n");
    /* A part for each piece, of what computes it, and of what reads it. */
    expect_parts(GRAPH("%x: f32[30, C], %s: f32[5, C]", "%x, %s",
                       "%p: f32[30, C], %q: f32[5, C]) { %l = Sqrt(%p) "
                       "%a = Concat(%l, %q) {axis = 0} %b = Neg(%a) return(%a, %b)",
                       "%y, %z"),
                 "args 0: f32 moves, 1: f32 result, 2: f32 result\n"
                 "%0 = load 0 : f32\n"
                 "%1 = SQRT %0 : f32\n"
                 "%2 = NEG %1 : f32\n"
                 "store 1 %1\n"
                 "store 2 %2\n"
                 "0 is 0 along 3 \n"
                 "1 is 0 along 3 [slice(0, 0, 30, 1)]\n"
                 "2 is 1 along 3 [slice(0, 0, 30, 1)]\n"
                 "args 0: f32 moves, 1: f32 result, 2: f32 result\n"
                 "%0 = load 0 : f32\n"
                 "%1 = NEG %0 : f32\n"
                 "store 1 %0\n"
                 "store 2 %1\n"
                 "0 is 1 along 3 \n"
                 "1 is 0 along 3 [slice(0, 30, 35, 1)]\n"
                 "2 is 1 along 3 [slice(0, 30, 35, 1)]\n");
    /* The second piece is two columns, its rows are no vectors. */
    expect_parts(GRAPH("%x: f32[N, 30], %s: f32[N, 2]", "%x, %s",
                       "%p: f32[N, 30], %q: f32[N, 2]) { %l = Sqrt(%p) "
                       "%a = Concat(%l, %q) {axis = 1} return(%a)",
                       "%y"),
                 "args 0: f32 moves, 1: f32 result\n"
                 "%0 = load 0 : f32\n"
                 "%1 = SQRT %0 : f32\n"
                 "store 1 %1\n"
                 "0 is 0 along 3 \n"
                 "1 is 0 along 3 [slice(1, 0, 30, 1)]\n"
                 "args 0: f32 moves by 2, 1: f32 strided result, 2: f32 strided result\n"
                 "%0 = load 0.0 : f32\n"
                 "%1 = load 0.1 : f32\n"
                 "store 1 %0\n"
                 "store 2 %1\n"
                 "0 is 1 along 1 \n"
                 "1 is 0 along 1 [select(1, 30)]\n"
                 "2 is 0 along 1 [select(1, 31)]\n");
    /* A Concat of Concats, of which a slice is wanted. */
    expect_parts(
        GRAPH("%x: f32[30, C], %s: f32[5, C]", "%x, %s",
              "%p: f32[30, C], %q: f32[5, C]) { %c = Concat(%p, %q) {axis = 0} "
              "%d = Concat(%q, %c) {axis = 0} %e = access(%d) {rule = [slice(0, 3, 25, 1)]} "
              "%a = Neg(%e) return(%a)",
              "%y"),
        "args 0: f32 moves, 1: f32 result\n"
        "%0 = load 0 : f32\n"
        "%1 = NEG %0 : f32\n"
        "store 1 %1\n"
        "0 is 1 along 3 [slice(0, 3, 5, 1)]\n"
        "1 is 0 along 3 [slice(0, 0, 2, 1)]\n"
        "args 0: f32 moves, 1: f32 result\n"
        "%0 = load 0 : f32\n"
        "%1 = NEG %0 : f32\n"
        "store 1 %1\n"
        "0 is 0 along 3 [slice(0, 0, 20, 1)]\n"
        "1 is 0 along 3 [slice(0, 2, 22, 1)]\n");
}

static void columns(void **state)
{
    (void)state;
    /* Pairs of boxes: what does not move from row to row is said, and positions are arguments. */
    expect_parts(GRAPH("%x: f32[C, 40, 2], %t: f32[C, 40]", "%x, %t",
                       "%p: f32[C, 40, 2], %q: f32[C, 40]) { %k = Constant() {value = i64[1] [1]} "
                       "%o = Constant() {value = i64[] 1} "
                       "%a = access(%p) {rule = [select(2, 0), unsqueeze(2)]} "
                       "%b = access(%p) {rule = [select(2, 1), unsqueeze(1)]} %d = Sub(%a, %b) "
                       "%u = Trilu(%d, %o) %m = ReduceMax(%u, %k) {keepdims = 0} "
                       "%l = Less(%m, %q) return(%l)",
                       "%y"),
                 "columns, args 0: f32 by 2, 1: f32 moves by 2 per column, 2: i32, "
                 "3: i32 moves per column, 4: f32 moves per column, 5: bool result per column\n"
                 "%0 = load 0.0 : f32\n"
                 "%1 = load 1.1 : f32\n"
                 "%2 = SUB %0 %1 : f32\n"
                 "%3 = 1 : i32\n"
                 "%4 = load 2 : i32\n"
                 "%5 = load 3 : i32\n"
                 "%6 = ADD %4 %3 : i32\n"
                 "%7 = GE %5 %6 : bool\n"
                 "%8 = 0 : f32\n"
                 "%9 = SEL %7 %2 %8 : f32\n"
                 "%10 = reduce MAX from -inf %9 : f32\n"
                 "%11 = load 4 : f32\n"
                 "%12 = LT %10 %11 : bool\n"
                 "%13 = convert %12 : u8\n"
                 "store 5 %13\n"
                 "0 is 0 along 3 [unsqueeze(2)]\n"
                 "1 is 0 along 5 [unsqueeze(1)]\n"
                 "2 is 4294967295 along 2 \n"
                 "3 is 4294967295 along 4 \n"
                 "4 is 1 along 5 [unsqueeze(1)]\n"
                 "5 is 0 along 5 [unsqueeze(1)]\n");
    /* How many rows there are; the axis stays; what only a run tells is int64, and not so far that sums overflow. */
    expect_parts(GRAPH("%x: f32[N, 40], %k: i64[]", "%x, %k",
                       "%p: f32[N, 40], %q: i64[]) { %k0 = Constant() {value = i64[1] [0]} "
                       "%u = Trilu(%p, %q) {upper = 0} %m = ReduceMean(%u, %k0) return(%m)",
                       "%y"),
                 "columns, args 0: f32 moves, 1: i64 per column, 2: i64, 3: i64 moves per column, "
                 "4: f32 result per column\n"
                 "%0 = load 0 : f32\n"
                 "%1 = load 1 : i64\n"
                 "%2 = -4611686018427387904 : i64\n"
                 "%3 = MAX %1 %2 : i64\n"
                 "%4 = 4611686018427387904 : i64\n"
                 "%5 = MIN %3 %4 : i64\n"
                 "%6 = load 2 : i64\n"
                 "%7 = load 3 : i64\n"
                 "%8 = ADD %6 %5 : i64\n"
                 "%9 = LE %7 %8 : bool\n"
                 "%10 = 0 : f32\n"
                 "%11 = SEL %9 %0 %10 : f32\n"
                 "%12 = reduce ADD from 0 %11 : f32\n"
                 "%13 = length : f32\n"
                 "%14 = DIV %12 %13 : f32\n"
                 "store 4 %14\n"
                 "0 is 0 along 3 \n"
                 "1 is 1 along 0 \n"
                 "2 is 4294967295 along 1 \n"
                 "3 is 4294967295 along 2 \n"
                 "4 is 0 along 2 \n");
}

static void lookups(void **state)
{
    (void)state;
    /* Rows by their numbers: those of a few columns are looked up column by column, for many numbers at once. */
    expect_parts(GRAPH("%x: f32[R, 2], %i: i32[N]", "%x, %i",
                       "%p: f32[R, 2], %n: i32[N]) { %g = access(%p, %n) {rule = [gather(0, $0)]} "
                       "%a = Neg(%g) return(%a)",
                       "%y"),
                 "args 0: i32 moves, 1: f32 looked up, 2: f32 looked up, 3: f32 result by 2\n"
                 "%0 = load 0 : i32\n"
                 "%1 = convert %0 : i64\n"
                 "%2 = lookup 1 %1 : f32\n"
                 "%3 = NEG %2 : f32\n"
                 "%4 = lookup 2 %1 : f32\n"
                 "%5 = NEG %4 : f32\n"
                 "store 3.0 %3\n"
                 "store 3.1 %5\n"
                 "0 is 1 along 1 \n"
                 "1 is 0 along 0 [select(1, 0)]\n"
                 "2 is 0 along 0 [select(1, 1)]\n"
                 "3 is 0 along 1 \n");
    expect_parts(GRAPH("%x: f32[R, C], %i: i64[N]", "%x, %i",
                       "%p: f32[R, C], %n: i64[N]) { %g = access(%p, %n) {rule = [gather(0, $0)]} "
                       "%a = Neg(%g) return(%a)",
                       "%y"),
                 "args 0: i64, 1: f32 moves looked up, 2: f32 result\n"
                 "%0 = load 0 : i64\n"
                 "%1 = lookup 1 %0 : f32\n"
                 "%2 = NEG %1 : f32\n"
                 "store 2 %2\n"
                 "0 is 1 along 1 [unsqueeze(1)]\n"
                 "1 is 0 along 2 \n"
                 "2 is 0 along 3 \n");
    /* Numbers that lie in an operand, of what is computed there. */
    expect_parts(GRAPH("%x: f32[R], %i: i64[N, 3]", "%x, %i",
                       "%p: f32[R], %n: i64[N, 3]) { %s = Sqrt(%p) "
                       "%c = access(%n) {rule = [select(1, 2)]} "
                       "%g = access(%s, %c) {rule = [gather(0, $0)]} %a = Neg(%g) return(%a)",
                       "%y"),
                 "args 0: i64 moves by 3, 1: f32 looked up, 2: f32 result\n"
                 "%0 = load 0.2 : i64\n"
                 "%1 = lookup 1 %0 : f32\n"
                 "%2 = SQRT %1 : f32\n"
                 "%3 = NEG %2 : f32\n"
                 "store 2 %3\n"
                 "0 is 1 along 1 \n"
                 "1 is 0 along 0 \n"
                 "2 is 0 along 1 \n");
}

static void no_maps(void **state)
{
    (void)state;
    static const char *const programs[] = {
        /* A read of what may have been written; writes beside each other; nothing computed. */
        GRAPH("%x: f32[R, C], %s: f32[C]", "%x, %s",
              "%p: f32[R, C], %q: f32[C]) { %n = Neg(%p) "
              "%b = assign(%n, %q) {rule = [select(0, 1)]} "
              "%r = access(%b) {rule = [select(0, 0)]} %a = Add(%b, %r) return(%a)",
              "%y"),
        GRAPH("%x: f32[R, C], %s: f32[C]", "%x, %s",
              "%p: f32[R, C], %q: f32[C]) { %m = assign(%p, %q) {rule = [select(0, 1)]} "
              "%b = assign(%p, %q) {rule = [select(0, 0)]} %a = Add(%b, %m) return(%a)",
              "%y"),
        GRAPH("%x: f32[R, C]", "%x",
              "%p: f32[R, C]) { %a = access(%p) {rule = [permute(1, 0)]} return(%a)", "%y"),
        /* What is written could be written in place. */
        GRAPH("%x: f32[R, C], %s: f32[C]", "%x, %s",
              "%p: f32[R, C], %q: f32[C]) { %n = Neg(%q) "
              "%b = assign(%p, %n) {rule = [select(0, 1)]} return(%b)",
              "%y"),
        GRAPH("%x: f32[R, C]", "%x",
              "%p: f32[R, C]) { %r = access(%p) {rule = [reshape(-1)]} %a = Neg(%r) return(%a)",
              "%y"),
        /* Numbers of rows that it computes, or a part of what they look up. */
        GRAPH("%x: f32[R], %i: i64[N]", "%x, %i",
              "%p: f32[R], %n: i64[N]) { %k = Neg(%n) "
              "%g = access(%p, %k) {rule = [gather(0, $0)]} %a = Neg(%g) return(%a)",
              "%y"),
        GRAPH("%x: f32[R], %i: i64[N], %s: f32[2]", "%x, %i, %s",
              "%p: f32[R], %n: i64[N], %q: f32[2]) { %g = access(%p, %n) {rule = [gather(0, $0)]} "
              "%h = access(%g) {rule = [slice(0, 0, 2, 1)]} %a = Mul(%h, %q) return(%a)",
              "%y"),
        /* Pieces of sizes that a run tells; pieces that meet where nothing is cut; short rows of more than a few. */
        GRAPH("%x: f32[R, C]", "%x",
              "%p: f32[R, C]) { %a = Concat(%p, %p) {axis = 0} %b = Neg(%a) return(%b)", "%y"),
        GRAPH("%x: f32[9, C]", "%x",
              "%p: f32[9, C]) { %a = Concat(%p, %p) {axis = 0} "
              "%t = access(%a) {rule = [permute(1, 0)]} %b = Neg(%t) return(%b)",
              "%y"),
        GRAPH("%x: f32[R, 9]", "%x",
              "%p: f32[R, 9]) { %a = Concat(%p, %p) {axis = 1} %b = Neg(%a) return(%b)", "%y"),
        /* Nobody knows which of the two is broadcast. */
        GRAPH("%x: f32[R, 4], %s: f32[S, 1]", "%x, %s",
              "%p: f32[R, 4], %q: f32[S, 1]) { %t = access(%p) {rule = [slice(1, 0, 4, 1)]} "
              "%a = Mul(%t, %q) return(%a)",
              "%y"),
        /* Columns of other axes; what is computed in each element is a result; a view of what they come to; a triangle of
           a slice. */
        GRAPH("%x: f32[N, 4, 5]", "%x",
              "%p: f32[N, 4, 5]) { %k = Constant() {value = i64[1] [0]} "
              "%l = Constant() {value = i64[1] [1]} %a = ReduceMax(%p, %k) %b = ReduceMax(%p, %l) "
              "return(%a, %b)",
              "%y, %z"),
        GRAPH("%x: f32[N, 4]", "%x",
              "%p: f32[N, 4]) { %k = Constant() {value = i64[1] [0]} %e = Exp(%p) "
              "%a = ReduceMax(%e, %k) return(%e, %a)",
              "%y, %z"),
        GRAPH("%x: f32[N, 4]", "%x",
              "%p: f32[N, 4]) { %k = Constant() {value = i64[1] [0]} %e = Exp(%p) "
              "%a = ReduceMax(%e, %k) %s = Sub(%e, %a) return(%s)",
              "%y"),
        GRAPH("%x: f32[N, 4]", "%x",
              "%p: f32[N, 4]) { %u = Trilu(%p) %s = access(%u) {rule = [slice(0, 1, 9, 1)]} "
              "%a = Neg(%s) return(%a)",
              "%y"),
        GRAPH("%x: f32[N, 4]", "%x",
              "%p: f32[N, 4]) { %k = Constant() {value = i64[1] [0]} %m = ReduceMax(%p, %k) "
              "%f = access(%m) {rule = [squeeze(0)]} %a = Neg(%f) return(%a)",
              "%y"),
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const char *why;
        struct ir_graph *graph = parse(programs[i]);
        assert_null(build_parts(graph, &why));
        assert_non_null(why);
        ir_graph_free(graph);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const char *const programs[] = {
        GRAPH("%x: f32[N], %s: f32[M]", "%x, %s",
              "%p: f32[N], %q: f32[M]) { %a = Add(%p, %q) return(%a)", "%y"),
        GRAPH("%x: f32[N, 4]", "%x", "%p: f32[N, 4]) { %a = Softmax(%p) {axis = 0} return(%a)",
              "%y"),
        GRAPH("%x: f32[N, 4]", "%x",
              "%p: f32[N, 4]) { %k = Constant() {value = i64[1] [0]} %a = ReduceMax(%p, %k) "
              "return(%a)",
              "%y"),
        /* Rows that differ; operands that are there with the row and without. */
        GRAPH("%x: f32[N, 4], %s: f32[N, 5]", "%x, %s",
              "%p: f32[N, 4], %q: f32[N, 5]) { %a = Softmax(%p) %b = Softmax(%q) return(%a, %b)",
              "%y, %z"),
        GRAPH("%x: f32[N, N], %s: f32[N]", "%x, %s",
              "%p: f32[N, N], %q: f32[N]) { %k = Constant() {value = i64[1] [1]} "
              "%m = ReduceMax(%p, %k) {keepdims = 0} %a = Add(%m, %q) %b = Add(%p, %q) "
              "return(%a, %b)",
              "%y, %z"),
        GRAPH("%x: i32[N]", "%x", "%p: i32[N]) { %a = Pow(%p, %p) return(%a)", "%y"),
        GRAPH("%x: i32[N]", "%x", "%p: i32[N]) { %a = Shrink(%p) return(%a)", "%y"),
        GRAPH("%x: f32[4]", "%x",
              "%p: f32[4]) { %k = Constant() {value = f32[4] [1, 2, 3, 4]} %a = Add(%p, %k) "
              "return(%a)",
              "%y"),
        GRAPH("%x: f32[N], %s: f32[M, N]", "%x, %s",
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
        build(GRAPH("%x: f32[A, 1, C], %s: f32[B, 1]", "%s, %x",
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
    size_t accepted = 0, with_maps = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct random random = {seed};
        struct gir_space space;
        const char *why;
        char *text = seed % 2 ? random_region(seed) : random_rows(seed),
             *map_text = seed % 3 ? random_map_region(seed) : random_columns(seed);
        struct gir_kernel *kernel = build(text, &space, &why);
        struct ir_graph *graph = parse(map_text);
        struct gir_parts *parts =
            gir_has_maps(graph->body->first) ? build_parts(graph, &why) : NULL;
        accepted += kernel ? change_bytes(kernel, &random) : 0;
        for (uint32_t i = 0; parts && i < parts->n; i++)
            with_maps += change_bytes(parts->parts[i].kernel, &random);
        allocator_free(&allocator_default, kernel);
        gir_parts_free(parts);
        ir_graph_free(graph);
        free(text);
        free(map_text);
    }
    assert_true(accepted > 100 && with_maps > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),   cmocka_unit_test(texts_of_rows),
        cmocka_unit_test(planes),  cmocka_unit_test(refused_planes),
        cmocka_unit_test(maps),    cmocka_unit_test(pieces),
        cmocka_unit_test(columns), cmocka_unit_test(lookups),
        cmocka_unit_test(no_maps), cmocka_unit_test(refusals),
        cmocka_unit_test(spaces),  cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
