/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel IR of fuse ops with accesses, assigns, Concats, columns and lookups: which part of what an
 * argument is, as text, and why some become nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/gir_build.h"
#include "ir/rule.h"

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
    for (uint32_t i = 0; i < part->n_copies; i++)
        text_printf(text, "%u is of %u along %d, told by %u\n", (unsigned)part->copies[i].result,
                    (unsigned)part->copies[i].operand, part->copies[i].axis,
                    (unsigned)part->copies[i].told_by);
}

static void expect_parts(const char *source, const char *expected)
{
    struct ir_graph *graph = gir_parse_graph(source);
    const char *why;
    struct text text;
    struct gir_parts *parts = gir_build_parts(graph, &why);
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
    expect_parts(FUSED_GRAPH("%x: f32[N, 3], %s: f32[N]", "%x, %s",
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
    /* What the graph is given nobody writes into; a span is read and written where it is. */
    expect_parts(FUSED_GRAPH("%x: f32[R, C], %t: f32[3, C], %k: i64[]", "%x, %t, %k",
                             "%p: f32[R, C], %q: f32[3, C], %m: i64[]) { %c = Neg(%q) "
                             "%a = assign(%p, %c, %m) {rule = [span(0, $0, 3)]} return(%a)",
                             "%y"),
                 "args 0: f32 moves, 1: f32 result\n"
                 "%0 = load 0 : f32\n"
                 "store 1 %0\n"
                 "0 is 0 along 3 \n"
                 "1 is 0 along 3 \n"
                 "args 0: f32 moves, 1: f32 result\n"
                 "%0 = load 0 : f32\n"
                 "%1 = NEG %0 : f32\n"
                 "store 1 %1\n"
                 "0 is 1 along 3 \n"
                 "1 is 0 along 3 [span(0, $2, 3)]\n");
    /* The same, where an axis of one element goes once all is written. */
    expect_parts(FUSED_GRAPH("%x: f32[1, N, 2], %s: f32[N]", "%x, %s",
                             "%p: f32[1, N, 2], %q: f32[N]) { %n = Neg(%p) "
                             "%d = assign(%n, %q) {rule = [select(2, 1)]} "
                             "%a = access(%d) {rule = [squeeze(0)]} return(%a)",
                             "%y"),
                 "args 0: f32 moves by 2, 1: f32 moves, 2: f32 result by 2\n"
                 "%0 = load 0.0 : f32\n"
                 "%1 = NEG %0 : f32\n"
                 "%2 = load 1 : f32\n"
                 "store 2.0 %1\n"
                 "store 2.1 %2\n"
                 "0 is 0 along 1 [squeeze(0)]\n"
                 "1 is 1 along 1 \n"
                 "2 is 0 along 1 \n");
    /* What is broadcast to columns that are written is the same in each of them. */
    expect_parts(FUSED_GRAPH("%x: f32[N, 2], %s: f32[]", "%x, %s",
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
    expect_parts(
        FUSED_GRAPH("%x: f32[M, N], %s: f32[N, 50]", "%x, %s",
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
    /*
     * Rows are written over what was computed for all of them; the slice of one row is broadcast.
     */
    expect_parts(
        FUSED_GRAPH("%x: f32[R, C], %s: f32[R, C], %i: i64[]", "%x, %s, %i",
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

static void concats(void **state)
{
    (void)state;
    /* Two columns of longer rows, which are no vector. */
    expect_parts(
        FUSED_GRAPH("%x: f32[N, 85], %s: f32[N, 2]", "%x, %s",
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
    expect_parts(FUSED_GRAPH("%x: f32[N, 2], %s: f32[N, 2]", "%x, %s",
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
    expect_parts(FUSED_GRAPH("%x: f32[30, C], %s: f32[5, C]", "%x, %s",
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
    expect_parts(FUSED_GRAPH("%x: f32[N, 30], %s: f32[N, 2]", "%x, %s",
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
        FUSED_GRAPH("%x: f32[30, C], %s: f32[5, C]", "%x, %s",
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
    expect_parts(
        FUSED_GRAPH("%x: f32[C, 40, 2], %t: f32[C, 40]", "%x, %t",
                    "%p: f32[C, 40, 2], %q: f32[C, 40]) { %k = Constant() {value = i64[1] [1]} "
                    "%o = Constant() {value = i64[] 1} "
                    "%a = access(%p) {rule = [select(2, 0), unsqueeze(2)]} "
                    "%b = access(%p) {rule = [select(2, 1), unsqueeze(1)]} %d = Sub(%a, %b) "
                    "%u = Trilu(%d, %o) %m = ReduceMax(%u, %k) {keepdims = 0} "
                    "%l = Less(%m, %q) return(%l)",
                    "%y"),
        "columns, args 0: f32 by 2, 1: f32 moves by 2 per column, 2: i32 position, "
        "3: i32 moves position per column, 4: f32 moves per column, 5: bool result per column\n"
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
    /* How many rows there are; the axis stays; what only a run tells is int64, and not so far that
     * sums overflow. */
    expect_parts(FUSED_GRAPH("%x: f32[N, 40], %k: i64[]", "%x, %k",
                             "%p: f32[N, 40], %q: i64[]) { %k0 = Constant() {value = i64[1] [0]} "
                             "%u = Trilu(%p, %q) {upper = 0} %m = ReduceMean(%u, %k0) return(%m)",
                             "%y"),
                 "columns, args 0: f32 moves, 1: i64 per column, 2: i64 position, "
                 "3: i64 moves position per column, 4: f32 result per column\n"
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
    /* Elements of columns, which are walked once more, and which row it is. */
    expect_parts(FUSED_GRAPH("%x: f32[N, 40]", "%x",
                             "%p: f32[N, 40]) { %k = Constant() {value = i64[1] [0]} %e = Exp(%p) "
                             "%a = ReduceMax(%e, %k) %s = Sub(%e, %a) return(%s, %a)",
                             "%y, %z"),
                 "columns, args 0: f32 moves, 1: f32 result, 2: f32 result per column\n"
                 "%0 = load 0 : f32\n"
                 "%1 = EXP %0 : f32\n"
                 "%2 = reduce MAX from -inf %1 : f32\n"
                 "%3 = SUB %1 %2 : f32\n"
                 "store 1 %3\n"
                 "store 2 %2\n"
                 "0 is 0 along 3 \n"
                 "1 is 0 along 3 \n"
                 "2 is 1 along 2 \n");
    expect_parts(FUSED_GRAPH("%x: i32[9, 40]", "%x",
                             "%p: i32[9, 40]) { %a = ArgMin(%p) {axis = 0, select_last_index = 1} "
                             "return(%a)",
                             "%y"),
                 "columns, args 0: i32 moves, 1: i64 result per column\n"
                 "%0 = load 0 : i32\n"
                 "%1 = reduce MIN from 2147483647 %0 : i32\n"
                 "%2 = EQ %0 %1 : bool\n"
                 "%3 = row : i32\n"
                 "%4 = -1 : i32\n"
                 "%5 = SEL %2 %3 %4 : i32\n"
                 "%6 = reduce MAX from -1 %5 : i32\n"
                 "%7 = convert %6 : i64\n"
                 "store 1 %7\n"
                 "0 is 0 along 3 \n"
                 "1 is 0 along 2 \n");
}

static void lookups(void **state)
{
    (void)state;
    /* Rows by their numbers: those of a few columns are looked up column by column, for many
     * numbers at once. */
    expect_parts(
        FUSED_GRAPH("%x: f32[R, 2], %i: i32[N]", "%x, %i",
                    "%p: f32[R, 2], %n: i32[N]) { %g = access(%p, %n) {rule = [gather(0, $0)]} "
                    "%a = Neg(%g) return(%a)",
                    "%y"),
        "args 0: i32 moves, 1: f32 looked up checked, 2: f32 looked up checked, 3: f32 result by "
        "2\n"
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
    expect_parts(
        FUSED_GRAPH("%x: f32[R, C], %i: i64[N]", "%x, %i",
                    "%p: f32[R, C], %n: i64[N]) { %g = access(%p, %n) {rule = [gather(0, $0)]} "
                    "%a = Neg(%g) return(%a)",
                    "%y"),
        "args 0: i64, 1: f32 moves looked up checked, 2: f32 result\n"
        "%0 = load 0 : i64\n"
        "%1 = lookup 1 %0 : f32\n"
        "%2 = NEG %1 : f32\n"
        "store 2 %2\n"
        "0 is 1 along 1 [unsqueeze(1)]\n"
        "1 is 0 along 2 \n"
        "2 is 0 along 3 \n");
    /* Numbers that lie in an operand, of what is computed there. */
    expect_parts(FUSED_GRAPH("%x: f32[R], %i: i64[N, 3]", "%x, %i",
                             "%p: f32[R], %n: i64[N, 3]) { %s = Sqrt(%p) "
                             "%c = access(%n) {rule = [select(1, 2)]} "
                             "%g = access(%s, %c) {rule = [gather(0, $0)]} %a = Neg(%g) return(%a)",
                             "%y"),
                 "args 0: i64 moves by 3, 1: f32 looked up checked, 2: f32 result\n"
                 "%0 = load 0.2 : i64\n"
                 "%1 = lookup 1 %0 : f32\n"
                 "%2 = SQRT %1 : f32\n"
                 "%3 = NEG %2 : f32\n"
                 "store 2 %3\n"
                 "0 is 1 along 1 \n"
                 "1 is 0 along 0 \n"
                 "2 is 0 along 1 \n");
    /* Numbers that it computes. */
    expect_parts(FUSED_GRAPH("%x: f32[R, 2], %i: i64[N]", "%x, %i",
                             "%p: f32[R, 2], %n: i64[N]) { %k = Neg(%n) "
                             "%g = access(%p, %k) {rule = [gather(0, $0)]} %a = Neg(%g) return(%a)",
                             "%y"),
                 "args 0: i64 moves, 1: f32 looked up checked, 2: f32 looked up checked, "
                 "3: f32 result by 2\n"
                 "%0 = load 0 : i64\n"
                 "%1 = NEG %0 : i64\n"
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
    /* Not all are looked up: those that are there are looked at before. */
    expect_parts(FUSED_GRAPH("%x: f32[6], %i: i64[N]", "%x, %i",
                             "%p: f32[6], %n: i64[N]) { %g = access(%p, %n) {rule = [gather(0, "
                             "$0)]} %m = IsNaN(%g) %k = Compress(%g, %m) {axis = 0} return(%k)",
                             "%y"),
                 "args 0: i64 moves, 1: f32 looked up, 2: f32 result kept\n"
                 "%0 = load 0 : i64\n"
                 "%1 = lookup 1 %0 : f32\n"
                 "%2 = ISNAN %1 : bool\n"
                 "keep 2 %1 where %2\n"
                 "0 is 1 along 1 \n"
                 "1 is 0 along 0 \n"
                 "2 is 0 along 1 \n");
}

static void keeps(void **state)
{
    (void)state;
    /* Rows that are computed are records, an assign among what computes them; those that are there
     * already are copied, by the mask, or by numbers that are wanted. */
    expect_parts(FUSED_GRAPH("%x: f32[N, 2], %s: f32[N], %r: f32[1, N, 9]", "%x, %s, %r",
                             "%p: f32[N, 2], %t: f32[N], %q: f32[1, N, 9]) { %m = IsNaN(%t) "
                             "%e = Neg(%p) %a = assign(%e, %t) {rule = [select(1, 0)]} "
                             "%k = Compress(%a, %m) {axis = 0} %b = Compress(%q, %m) {axis = 1} "
                             "return(%k, %b)",
                             "%y, %z"),
                 "args 0: f32 moves, 1: f32 moves by 2, 2: f32 result kept by 2, 3: bool result\n"
                 "%0 = load 0 : f32\n"
                 "%1 = load 1.1 : f32\n"
                 "%2 = NEG %1 : f32\n"
                 "%3 = ISNAN %0 : bool\n"
                 "keep 2.0 %0 where %3\n"
                 "keep 2.1 %2 where %3\n"
                 "%6 = convert %3 : u8\n"
                 "store 3 %6\n"
                 "0 is 1 along 1 \n"
                 "1 is 0 along 1 \n"
                 "2 is 0 along 1 \n"
                 "3 is 4294967294 along 1 \n"
                 "1 is of 2 along 1, told by 3\n");
    expect_parts(FUSED_GRAPH("%s: f32[N], %r: i8[N, 4]", "%s, %r",
                             "%t: f32[N], %q: i8[N, 4]) { %m = IsNaN(%t) %n = NonZero(%m) "
                             "%b = access(%q, %m) {rule = [mask(0, $0)]} return(%b, %n)",
                             "%y, %z"),
                 "args 0: f32 moves, 1: i64 result kept\n"
                 "%0 = load 0 : f32\n"
                 "%1 = ISNAN %0 : bool\n"
                 "%2 = position : i64\n"
                 "keep 1 %2 where %1\n"
                 "0 is 0 along 1 \n"
                 "1 is 1 along 1 [select(0, 0)]\n"
                 "0 is of 1 along 0, told by 1\n");
    expect_parts(
        FUSED_GRAPH("%x: f32[N, 6], %s: f32[]", "%x, %s",
                    "%p: f32[N, 6], %t: f32[]) { %c = access(%p) {rule = [select(1, 4)]} "
                    "%m = Greater(%c, %t) %e = Exp(%c) %k = access(%e, %m) {rule = [mask(0, $0)]} "
                    "%b = Compress(%m, %m) {axis = 0} %n = NonZero(%m) return(%k, %b, %n, %m)",
                    "%y, %z, %v, %w"),
        "args 0: f32 moves by 6, 1: f32, 2: f32 result kept, 3: bool result kept, "
        "4: i64 result kept, 5: bool result\n"
        "%0 = load 0.4 : f32\n"
        "%1 = EXP %0 : f32\n"
        "%2 = load 1 : f32\n"
        "%3 = GT %0 %2 : bool\n"
        "%4 = position : i64\n"
        "keep 2 %1 where %3\n"
        "%6 = convert %3 : u8\n"
        "keep 3 %6 where %3\n"
        "keep 4 %4 where %3\n"
        "store 5 %6\n"
        "0 is 0 along 1 \n"
        "1 is 1 along 0 \n"
        "2 is 0 along 1 \n"
        "3 is 1 along 1 \n"
        "4 is 2 along 1 [select(0, 0)]\n"
        "5 is 3 along 1 \n");
}

static void running_sums(void **state)
{
    (void)state;
    expect_parts(FUSED_GRAPH("%x: f32[B, N, 6], %s: f32[6]", "%x, %s",
                             "%p: f32[B, N, 6], %q: f32[6]) { %k = Constant() {value = i64[] 1} "
                             "%e = Exp(%p) %c = CumSum(%e, %k) %d = CumSum(%p, %k) {exclusive = 1} "
                             "%m = Mul(%c, %q) return(%m, %d)",
                             "%y, %z"),
                 "columns, args 0: f32 moves, 1: f32 moves per column, 2: f32 result, "
                 "3: f32 result\n"
                 "%0 = load 0 : f32\n"
                 "%1 = EXP %0 : f32\n"
                 "%2 = -0 : f32\n"
                 "%3 = state %2 : f32\n"
                 "%4 = ADD %3 %1 : f32\n"
                 "next %3 %4\n"
                 "%6 = load 1 : f32\n"
                 "%7 = MUL %4 %6 : f32\n"
                 "%8 = 0 : f32\n"
                 "%9 = state %8 : f32\n"
                 "%10 = ADD %9 %0 : f32\n"
                 "next %9 %10\n"
                 "store 2 %7\n"
                 "store 3 %9\n"
                 "0 is 0 along 7 \n"
                 "1 is 1 along 4 \n"
                 "2 is 0 along 7 \n"
                 "3 is 1 along 7 \n");
    /* From the last one back, of halves, which are summed up in f32. */
    expect_parts(FUSED_GRAPH("%x: f16[N, C]", "%x",
                             "%p: f16[N, C]) { %k = Constant() {value = i64[] 0} "
                             "%c = CumSum(%p, %k) {reverse = 1} %n = Neg(%c) return(%n)",
                             "%y"),
                 "columns, args 0: f16 moves, 1: f16 result\n"
                 "%0 = load 0 : f16\n"
                 "%1 = convert %0 : f32\n"
                 "%2 = -0 : f32\n"
                 "%3 = state %2 : f32\n"
                 "%4 = ADD %3 %1 : f32\n"
                 "next %3 %4\n"
                 "%6 = convert %4 : f16\n"
                 "%7 = convert %6 : f32\n"
                 "%8 = NEG %7 : f32\n"
                 "%9 = convert %8 : f16\n"
                 "store 1 %9\n"
                 "0 is 0 along 3 [slice(0, -1, -9223372036854775808, -1)]\n"
                 "1 is 0 along 3 [slice(0, -1, -9223372036854775808, -1)]\n");
}

/* The position of a Range is an argument that is no memory. */
static void ranges(void **state)
{
    (void)state;
    expect_parts("graph @g opset(\"\": 21) ir_version(10) (%x: f32[N, C]) -> (%y) {\n"
                 "  %s = Shape(%x)\n  %z = Constant() {value = i64[] 0}\n"
                 "  %n = Gather(%s, %z)\n"
                 "  %y = fuse(%n, %x) { body(%k: i64[], %p: f32[N, C]) { "
                 "%f = Constant() {value = i64[] 0} %o = Constant() {value = i64[] 1} "
                 "%r = Range(%f, %k, %o) %c = Cast(%r) {to = 1} "
                 "%u = access(%c) {rule = [unsqueeze(1)]} %m = Mul(%p, %u) return(%m) } }\n"
                 "  return(%y)\n}\n",
                 "args 0: f32 moves, 1: i64 position, 2: f32 result\n"
                 "%0 = load 0 : f32\n"
                 "%1 = load 1 : i64\n"
                 "%2 = 0 : i64\n"
                 "%3 = 1 : i64\n"
                 "%4 = MUL %1 %3 : i64\n"
                 "%5 = ADD %2 %4 : i64\n"
                 "%6 = convert %5 : f32\n"
                 "%7 = MUL %0 %6 : f32\n"
                 "store 2 %7\n"
                 "0 is 1 along 3 \n"
                 "1 is 4294967295 along 1 \n"
                 "2 is 0 along 3 \n");
}

static void no_maps(void **state)
{
    (void)state;
    static const char *const programs[] = {
        /* A read of what may have been written; writes beside each other; nothing computed. */
        FUSED_GRAPH("%x: f32[R, C], %s: f32[C]", "%x, %s",
                    "%p: f32[R, C], %q: f32[C]) { %n = Neg(%p) "
                    "%b = assign(%n, %q) {rule = [select(0, 1)]} "
                    "%r = access(%b) {rule = [select(0, 0)]} %a = Add(%b, %r) return(%a)",
                    "%y"),
        FUSED_GRAPH("%x: f32[R, C], %s: f32[C]", "%x, %s",
                    "%p: f32[R, C], %q: f32[C]) { %m = assign(%p, %q) {rule = [select(0, 1)]} "
                    "%b = assign(%p, %q) {rule = [select(0, 0)]} %a = Add(%b, %m) return(%a)",
                    "%y"),
        FUSED_GRAPH("%x: f32[R, C]", "%x",
                    "%p: f32[R, C]) { %a = access(%p) {rule = [permute(1, 0)]} return(%a)", "%y"),
        /* What is written could be written in place. */
        "graph @g opset(\"\": 21) ir_version(10) (%x: f32[R, C], %s: f32[C]) -> (%y) {\n"
        "  %z = Exp(%x)\n  %y = fuse(%z, %s) { body(%p: f32[R, C], %q: f32[C]) { %n = Neg(%q) "
        "%b = assign(%p, %n) {rule = [select(0, 1)]} return(%b) } }\n  return(%y)\n}\n",
        FUSED_GRAPH(
            "%x: f32[R, C]", "%x",
            "%p: f32[R, C]) { %r = access(%p) {rule = [reshape(-1)]} %a = Neg(%r) return(%a)",
            "%y"),
        /* Numbers of rows that it computes, where rows may be empty, or not all are computed; a
         * part of what they look up. */
        FUSED_GRAPH("%x: f32[R, C], %i: i64[N]", "%x, %i",
                    "%p: f32[R, C], %n: i64[N]) { %k = Neg(%n) "
                    "%g = access(%p, %k) {rule = [gather(0, $0)]} %a = Neg(%g) return(%a)",
                    "%y"),
        FUSED_GRAPH("%x: f32[R], %i: i64[N]", "%x, %i",
                    "%p: f32[R], %n: i64[N]) { %k = Neg(%n) "
                    "%g = access(%p, %k) {rule = [gather(0, $0)]} %m = IsNaN(%g) "
                    "%a = Compress(%g, %m) {axis = 0} return(%a)",
                    "%y"),
        FUSED_GRAPH(
            "%x: f32[R], %i: i64[N], %s: f32[2]", "%x, %i, %s",
            "%p: f32[R], %n: i64[N], %q: f32[2]) { %g = access(%p, %n) {rule = [gather(0, $0)]} "
            "%h = access(%g) {rule = [slice(0, 0, 2, 1)]} %a = Mul(%h, %q) return(%a)",
            "%y"),
        /* Pieces of sizes that a run tells; pieces that meet where nothing is cut; short rows of
         * more than a few. */
        FUSED_GRAPH("%x: f32[R, C]", "%x",
                    "%p: f32[R, C]) { %a = Concat(%p, %p) {axis = 0} %b = Neg(%a) return(%b)",
                    "%y"),
        FUSED_GRAPH("%x: f32[9, C]", "%x",
                    "%p: f32[9, C]) { %a = Concat(%p, %p) {axis = 0} "
                    "%t = access(%a) {rule = [permute(1, 0)]} %b = Neg(%t) return(%b)",
                    "%y"),
        FUSED_GRAPH("%x: f32[R, 9]", "%x",
                    "%p: f32[R, 9]) { %a = Concat(%p, %p) {axis = 1} %b = Neg(%a) return(%b)",
                    "%y"),
        /* Columns of pieces along an axis that their results have elsewhere. */
        FUSED_GRAPH("%x: f32[3, 4, 2]", "%x",
                    "%p: f32[3, 4, 2]) { %k = Constant() {value = i64[1] [1]} "
                    "%c = Concat(%p, %p) {axis = 2} %a = ReduceMax(%c, %k) {keepdims = 0} "
                    "return(%a)",
                    "%y"),
        FUSED_GRAPH("%x: f32[3, 4]", "%x",
                    "%p: f32[3, 4]) { %k = Constant() {value = i64[1] [0]} "
                    "%c = Concat(%p, %p) {axis = 1} %a = ReduceMax(%c, %k) {keepdims = 0} "
                    "return(%a)",
                    "%y"),
        /* Nobody knows which of the two is broadcast. */
        FUSED_GRAPH("%x: f32[R, 4], %s: f32[S, 1]", "%x, %s",
                    "%p: f32[R, 4], %q: f32[S, 1]) { %t = access(%p) {rule = [slice(1, 0, 4, 1)]} "
                    "%a = Mul(%t, %q) return(%a)",
                    "%y"),
        /* Columns of other axes; what is computed in each element is a result; a view of what they
         * come to; a triangle of a slice. */
        FUSED_GRAPH(
            "%x: f32[N, 4, 5]", "%x",
            "%p: f32[N, 4, 5]) { %k = Constant() {value = i64[1] [0]} "
            "%l = Constant() {value = i64[1] [1]} %a = ReduceMax(%p, %k) %b = ReduceMax(%p, %l) "
            "return(%a, %b)",
            "%y, %z"),
        FUSED_GRAPH("%x: f32[N, 4]", "%x",
                    "%p: f32[N, 4]) { %u = Trilu(%p) %s = access(%u) {rule = [slice(0, -3, 9, 1)]} "
                    "%a = Neg(%s) return(%a)",
                    "%y"),
        FUSED_GRAPH("%x: f32[N, 4]", "%x",
                    "%p: f32[N, 4]) { %k = Constant() {value = i64[1] [0]} %m = ReduceMax(%p, %k) "
                    "%f = access(%m) {rule = [squeeze(0)]} %a = Neg(%f) return(%a)",
                    "%y"),
        /* Something is computed of what was kept; a mask is shorter; rows are computed that are
         * long, or kept behind another axis; all are copied. */
        FUSED_GRAPH("%x: f32[N]", "%x",
                    "%p: f32[N]) { %m = IsNaN(%p) %k = Compress(%p, %m) {axis = 0} "
                    "%a = Neg(%k) return(%a)",
                    "%y"),
        FUSED_GRAPH("%x: f32[N], %s: bool[M]", "%x, %s",
                    "%p: f32[N], %m: bool[M]) { %a = Neg(%p) %k = Compress(%a, %m) {axis = 0} "
                    "return(%k)",
                    "%y"),
        FUSED_GRAPH("%x: f32[N, 9], %s: bool[N]", "%x, %s",
                    "%p: f32[N, 9], %m: bool[N]) { %a = Neg(%p) %k = Compress(%a, %m) {axis = 0} "
                    "return(%k)",
                    "%y"),
        FUSED_GRAPH("%x: f32[1, N, 3], %s: bool[N]", "%x, %s",
                    "%p: f32[1, N, 3], %m: bool[N]) { %a = Neg(%p) %k = Compress(%a, %m) "
                    "{axis = 1} return(%k)",
                    "%y"),
        FUSED_GRAPH("%x: f32[N, 3], %s: f32[N]", "%x, %s",
                    "%p: f32[N, 3], %t: f32[N]) { %m = IsNaN(%t) %k = Compress(%p, %m) {axis = 0} "
                    "return(%k)",
                    "%y"),
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const char *why;
        struct ir_graph *graph = gir_parse_graph(programs[i]);
        assert_null(gir_build_parts(graph, &why));
        assert_non_null(why);
        ir_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps),    cmocka_unit_test(concats), cmocka_unit_test(columns),
        cmocka_unit_test(lookups), cmocka_unit_test(keeps),   cmocka_unit_test(running_sums),
        cmocka_unit_test(ranges),  cmocka_unit_test(no_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
