/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels are told to move, compute and take before they are run: counted by hand, as text,
 * and what must be so of any. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/gir_build.h"
#include "common/no_error.h"
#include "gir/estimate.h"

/* A fuse op and what it has become. */
struct fused {
    struct ir_graph *graph;
    const struct ir_op *op;
    struct gir_fused built;
    struct gir_extent extent; /* of the first part */
    struct gir_work work;
};

static const struct cost_sizes sizes = {.size = 1024};

static void open_fused(struct fused *f, const char *source, const struct gir_rates *rates)
{
    const char *why;
    f->graph = gir_parse_graph(source);
    f->op = ir_block_return(f->graph->body)->prev;
    no_error(gir_build_fuse(f->op, &allocator_default, &f->built, &why));
    if (why)
        fail_msg("%s: %s", source, why);
    const struct gir_kernel *kernel = f->built.kernel;
    if (kernel) {
        gir_extent_of_kernel(f->op, kernel, &f->built.space, &sizes, &f->extent);
    } else {
        kernel = f->built.parts->parts[0].kernel;
        gir_extent_of_part(f->op, &f->built.parts->parts[0], &sizes, &f->extent);
    }
    gir_count(kernel, &f->extent, rates, &f->work);
}

static void close_fused(struct fused *f)
{
    gir_fused_free(&f->built);
    ir_graph_free(f->graph);
}

/* ---- By hand --------------------------------------------------------------------------------- */

#define SCALED                                                                                     \
    FUSED_GRAPH("%x: f32[64, 1000], %s: f32[64, 1]", "%x, %s",                                     \
                "%p: f32[64, 1000], %q: f32[64, 1]) { %a = Mul(%p, %q) %b = Sigmoid(%a) "          \
                "return(%b)",                                                                      \
                "%y")
#define SOFTMAX                                                                                    \
    FUSED_GRAPH("%x: f32[1000, 81]", "%x", "%p: f32[1000, 81]) { %a = Softmax(%p) return(%a)", "%y")

static void elements(void **state)
{
    struct fused f;
    (void)state;
    open_fused(&f, SCALED, &gir_rates_v4);
    assert_int_equal(f.work.form, GIR_FORM_ELEMENTS);
    assert_float_equal(f.extent.rows, 64, 0);
    assert_float_equal(f.extent.length, 1000, 0);
    assert_float_equal(f.extent.calls, 1, 0);
    assert_int_equal(f.work.walks, 1);
    assert_float_equal(f.work.read, 4 * (64000 + 64), 0);
    assert_float_equal(f.work.written, 4 * 64000, 0);
    assert_float_equal(f.work.again, 0, 0);
    assert_float_equal(f.work.operations, 64000, 0);
    assert_float_equal(f.work.functions, 64000, 0);
    assert_float_equal(f.work.divisions, 0, 0);
    assert_float_equal(f.work.rows, 64, 0);
    /* one by one: a product is written, and read again */
    const struct gir_apart apart = gir_time_apart(f.op, &gir_rates_v4, &f.work, &sizes);
    assert_float_equal(apart.launches, 2, 0);
    assert_float_equal(apart.bytes, 4 * (64000 + 64 + 64000) + 4 * (64000 + 64000), 0);
    close_fused(&f);
}

/* The highest of a row; the exponentials, which are kept, and their sum; products. */
static void rows(void **state)
{
    const double n = 81000;
    struct fused f;
    (void)state;
    open_fused(&f, SOFTMAX, &gir_rates_v4);
    assert_int_equal(f.work.form, GIR_FORM_ROWS_ALONG);
    assert_int_equal(f.work.walks, 3);
    assert_float_equal(f.work.read, 4 * n, 0);
    assert_float_equal(f.work.written, 4 * n, 0);
    assert_float_equal(f.work.again, 3 * 4 * n, 0);
    assert_float_equal(f.work.operations, 4 * n, 0);
    assert_float_equal(f.work.functions, n, 0);
    assert_float_equal(f.work.divisions, 1000, 0);
    assert_float_equal(f.work.rows, 3000, 0);
    close_fused(&f);
}

/* Columns of a short last axis, which are unrolled. */
static void records(void **state)
{
    struct fused f;
    (void)state;
    open_fused(&f,
               FUSED_GRAPH("%x: f32[500, 2], %s: f32[500]", "%x, %s",
                           "%p: f32[500, 2], %q: f32[500]) { "
                           "%a = access(%p) {rule = [select(1, 0)]}: f32[500] "
                           "%b = access(%p) {rule = [select(1, 1)]}: f32[500] "
                           "%c = Add(%a, %b) %d = Sqrt(%c) return(%d)",
                           "%y"),
               &gir_rates_v4);
    assert_int_equal(f.work.form, GIR_FORM_ELEMENTS);
    assert_float_equal(f.extent.length, 500, 0);
    assert_float_equal(f.work.read, 4 * 1000, 0);
    assert_float_equal(f.work.written, 4 * 500, 0);
    assert_float_equal(f.work.operations, 500, 0);
    assert_float_equal(f.work.divisions, 500, 0);
    close_fused(&f);
}

/* A column of long rows: each element is a cache's line by itself. */
static void gathers(void **state)
{
    struct fused f;
    (void)state;
    open_fused(&f,
               FUSED_GRAPH("%x: f32[500, 85]", "%x",
                           "%p: f32[500, 85]) { %a = access(%p) {rule = [select(1, 4)]}: f32[500] "
                           "%b = Sigmoid(%a) return(%b)",
                           "%y"),
               &gir_rates_v4);
    assert_float_equal(f.work.gathers, 500, 0);
    assert_float_equal(f.work.read, 4 * 500, 0);
    assert_float_equal(f.extent.apart[0], 4 * 85, 0);
    close_fused(&f);
}

#define COLUMNS(reduction)                                                                         \
    FUSED_GRAPH("%x: f32[7, 64, 64]", "%x",                                                        \
                "%p: f32[7, 64, 64]) { %k = Constant() {value = i64[1] [1]} %n = Neg(%p) "         \
                "%u = Trilu(%n) %r = " reduction "(%u, %k) {keepdims = 0} return(%r)",             \
                "%y")

/* Of a triangle the first 32 columns are told by 33 rows, the others by all 64. */
static void columns(void **state)
{
    struct fused f;
    (void)state;
    open_fused(&f, COLUMNS("ReduceSum"), &gir_rates_v4);
    assert_int_equal(f.work.form, GIR_FORM_COLUMNS);
    assert_false(f.extent.is_triangle);
    assert_float_equal(f.extent.length, 64, 0);
    assert_float_equal(f.extent.rows, 64, 0);
    assert_float_equal(f.extent.calls, 7, 0);
    close_fused(&f);
    open_fused(&f, COLUMNS("ReduceMax"), &gir_rates_v4);
    assert_true(f.extent.is_triangle);
    assert_float_equal(f.extent.length, 32, 0);
    assert_float_equal(f.extent.rows, 48.5, 0);
    assert_float_equal(f.extent.calls, 14, 0);
    assert_float_equal(f.work.read, 4 * 7 * 64 * 64, 0);
    assert_float_equal(f.work.written, 4 * 7 * 64, 0);
    close_fused(&f);
}

/* ---- Forms ----------------------------------------------------------------------------------- */

static void expect_form(const char *op, int64_t rows_of, int64_t length,
                        const struct gir_rates *rates, enum gir_form form)
{
    char source[512];
    struct fused f;
    snprintf(source, sizeof source,
             "graph @g opset(\"\": 21) ir_version(10) (%%x: f32[%d, %d]) -> (%%y) { %%y = "
             "fuse(%%x) { body(%%p: f32[%d, %d]) { %%k = Constant() {value = i64[1] [-1]} "
             "%%r = %s return(%%r) } } return(%%y) }",
             (int)rows_of, (int)length, (int)rows_of, (int)length, op);
    open_fused(&f, source, rates);
    if (f.work.form != form)
        fail_msg("%s of rows of %d, %s", op, (int)length, rates->name);
    close_fused(&f);
}

static void forms(void **state)
{
    static const struct {
        const char *op;
        int64_t longest, masked; /* without masks, and with them */
    } of[] = {{"Softmax(%p)", 48, 48},
              {"ReduceSum(%p, %k)", 28, 16},
              {"ReduceMax(%p, %k)", 28, 16},
              {"ReduceLogSumExp(%p, %k)", 64, 64},
              {"ArgMax(%p) {axis = 1}", 48, 48}};
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        expect_form(of[i].op, 100, of[i].masked, &gir_rates_v4, GIR_FORM_ROWS_ACROSS);
        expect_form(of[i].op, 100, of[i].masked + 1, &gir_rates_v4, GIR_FORM_ROWS_ALONG);
        expect_form(of[i].op, 100, of[i].longest, &gir_rates_v3, GIR_FORM_ROWS_ACROSS);
        expect_form(of[i].op, 100, of[i].longest + 1, &gir_rates_v3, GIR_FORM_ROWS_ALONG);
        expect_form(of[i].op, 3, 4, &gir_rates_v4, GIR_FORM_ROWS_ALONG);
        expect_form(of[i].op, 4, 4, &gir_rates_v4, GIR_FORM_ROWS_ACROSS);
        expect_form(of[i].op, 11, 12, &gir_rates_v4, GIR_FORM_ROWS_ALONG);
        expect_form(of[i].op, 12, 12, &gir_rates_v4, GIR_FORM_ROWS_ACROSS);
    }
    /* a vector that is full; half as many rows as elements, where masks are made */
    expect_form("Softmax(%p)", 100, 32, &gir_rates_v4, GIR_FORM_ROWS_ALONG);
    expect_form("ReduceLogSumExp(%p, %k)", 100, 32, &gir_rates_v4, GIR_FORM_ROWS_ACROSS);
    expect_form("Softmax(%p)", 10, 20, &gir_rates_v3, GIR_FORM_ROWS_ACROSS);
    expect_form("Softmax(%p)", 10, 20, &gir_rates_v4, GIR_FORM_ROWS_ALONG);
}

/* Of short rows, which the code takes across: the estimate says so, too. */
static void forms_are_told_right(void **state)
{
    const struct gir_rates *const machines[] = {&gir_rates_v3, &gir_rates_v4};
    (void)state;
    for (int64_t n = 2; n <= 12; n++)
        for (int m = 0; m < 2; m++) {
            char source[512];
            struct gir_work along;
            struct fused f;
            snprintf(source, sizeof source,
                     "graph @g opset(\"\": 21) ir_version(10) (%%x: f32[2400, %d]) -> (%%y) { "
                     "%%y = fuse(%%x) { body(%%p: f32[2400, %d]) { %%r = Softmax(%%p) return(%%r) "
                     "} } return(%%y) }",
                     (int)n, (int)n);
            open_fused(&f, source, machines[m]);
            assert_int_equal(f.work.form, GIR_FORM_ROWS_ACROSS);
            gir_count_as(f.built.kernel, &f.extent, machines[m], GIR_FORM_ROWS_ALONG, &along);
            assert_true(gir_time(machines[m], &f.work).all < gir_time(machines[m], &along).all);
            close_fused(&f);
        }
}

/* ---- Of any kernel --------------------------------------------------------------------------- */

#define PROGRAMS 300
#define MOST_OPS 12

static uint32_t draw(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

/* A chain of element-wise ops of two operands, the last of which nobody but the end reads. */
static void write_program(uint32_t seed, int64_t n, char *source, size_t size)
{
    static const char *const ops[] = {"Add", "Mul", "Sub", "Div", "Max"}, *const shapes[] = {
                                                                              "%d, 40", "1, 40",
                                                                              "%d, 1"};
    char other[32], all[32];
    snprintf(other, sizeof other, shapes[draw(&seed, 3)], (int)n);
    snprintf(all, sizeof all, "%d, 40", (int)n);
    size_t used = (size_t)snprintf(source, size,
                                   "graph @g opset(\"\": 21) ir_version(10) (%%x: f32[%s], %%s: "
                                   "f32[%s]) -> (%%y) { %%y = fuse(%%x, %%s) { body(%%v0: f32[%s], "
                                   "%%v1: f32[%s]) { ",
                                   all, other, all, other);
    const uint32_t n_ops = 1 + draw(&seed, MOST_OPS);
    for (uint32_t i = 2; i < n_ops + 2; i++) {
        const uint32_t before = i == 2 ? 0 : i - 1;
        used +=
            (size_t)snprintf(source + used, size - used, "%%v%u = %s(%%v%u, %%v%u) ", (unsigned)i,
                             ops[draw(&seed, 5)], (unsigned)before, (unsigned)draw(&seed, i));
    }
    snprintf(source + used, size - used, "return(%%v%u) } } return(%%y) }", (unsigned)(n_ops + 1));
}

/* To fuse element-wise ops moves no more bytes, makes no more launches, and takes no longer; and
 * more of the same takes no less. */
static void fusing_takes_nothing(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < PROGRAMS; seed++) {
        char source[4096];
        double before = 0;
        for (int64_t n = 1; n <= 100000; n *= 10) {
            struct fused f;
            write_program(seed, n, source, sizeof source);
            open_fused(&f, source, &gir_rates_v4);
            const struct gir_apart apart = gir_time_apart(f.op, &gir_rates_v4, &f.work, &sizes);
            const struct gir_times times = gir_time(&gir_rates_v4, &f.work);
            const bool good = f.work.read + f.work.written <= apart.bytes && apart.launches >= 1 &&
                              times.all <= apart.all * 1.01 + f.extent.rows * gir_rates_v4.row &&
                              times.all >= before && times.all >= times.limit && !isnan(times.all);
            if (!good)
                fail_msg("%s: %g and %g bytes, %g and %g ns, %g before", source,
                         f.work.read + f.work.written, apart.bytes, times.all, apart.all, before);
            before = times.all;
            close_fused(&f);
        }
    }
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* A row times a matrix: as many operations as there are bytes, halved. */
static void products(void **state)
{
    struct ir_graph *graph =
        gir_parse_graph("graph @g opset(\"\": 21) ir_version(10) (%x: f32[1, 512], %w: f32[512, "
                        "256]) -> (%y) { %y = MatMul(%x, %w) return(%y) }");
    struct text text;
    (void)state;
    text_init(&text, &allocator_default);
    assert_true(gir_explain_product(graph->body->first, &gir_rates_v4, &sizes, &text));
    assert_string_equal(text_string(&text),
                        "product, the library's or tssa's own, in no kernel: 262 thousand "
                        "operations, 0.497 a byte: 527 kB; not below 5.41 us, bound by L2");
    text_free(&text);
    ir_graph_free(graph);
}

static const struct {
    const char *name, *source;
} texts[] = {
    {"scaled", SCALED},
    {"softmax", SOFTMAX},
    {"short softmax",
     FUSED_GRAPH("%x: f32[2400, 12]", "%x",
                 "%p: f32[2400, 12]) { %a = Softmax(%p) %b = Neg(%a) return(%b)", "%y")},
    {"positions", FUSED_GRAPH("%x: f32[N, 300]", "%x",
                              "%p: f32[N, 300]) { %a = ArgMax(%p) {axis = 1} return(%a)", "%y")},
    {"planes", FUSED_GRAPH("%x: f32[486, 20, 20]", "%x",
                           "%p: f32[486, 20, 20]) { %a = access(%p) {rule = [permute(1, 2, 0), "
                           "reshape(2400, 81)]}: f32[2400, 81] %b = Softmax(%a) return(%b)",
                           "%y")},
    {"triangle", COLUMNS("ReduceMax")},
    {"columns", COLUMNS("ReduceSum")},
    {"records", FUSED_GRAPH("%x: f32[N, 2], %s: f32[]", "%x, %s",
                            "%p: f32[N, 2], %q: f32[]) { %a = Mul(%p, %q) "
                            "%b = access(%a) {rule = [slice(1, 1, 2, 1)]}: f32[N, 1] "
                            "%c = assign(%a, %b) {rule = [slice(1, 0, 1, 1)]} return(%c)",
                            "%y")},
    {"written rows", FUSED_GRAPH("%x: f32[30, 400], %s: f32[5, 400]", "%x, %s",
                                 "%p: f32[30, 400], %q: f32[5, 400]) { %a = Sqrt(%p) %b = Neg(%q) "
                                 "%c = assign(%a, %b) {rule = [slice(0, 3, 8, 1)]} return(%c)",
                                 "%y")},
    {"iterations",
     LOOPED_GRAPH("%n: i64[], %h: f32[400], %x: f32[50, 400]", "%n, %h, %x",
                  "%m: i64[], %p: f32[400], %q: f32[50, 400]",
                  "%l, %s = Loop(%m, _, %p) { body(%i: i64[], %go: bool[], %c: f32[400])",
                  "%u = fuse(%c, %q, %i) { body(%v: f32[400], %w: f32[50, 400], %k: i64[]) {"
                  "%e = access(%w, %k) {rule = [select(0, $0)]} %f = Add(%v, %e) "
                  "return(%f) } } return(%go, %u, %u)",
                  "%l, %s", "%y, %z")},
    {"looked up",
     FUSED_GRAPH("%x: f32[9000, 4], %i: i64[300]", "%x, %i",
                 "%p: f32[9000, 4], %k: i64[300]) { %a = Neg(%p) "
                 "%b = access(%a, %k) {rule = [gather(0, $0)]}: f32[300, 4] return(%b)",
                 "%y")},
};

/* tests/golden/estimates.txt: by the rates that are built in, of no machine. */
static void golden(void **state)
{
    const struct gir_rates *const machines[] = {&gir_rates_v3, &gir_rates_v4};
    const char *const path = TSSA_SOURCE_DIR "/tests/golden/estimates.txt";
    char expected[16384] = "";
    struct text text;
    (void)state;
    text_init(&text, &allocator_default);
    text_puts(&text, "# What kernels are estimated to take (docs/kernels.md); TSSA_UPDATE_GOLDEN=1 "
                     "test_estimate writes it.\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int m = 0; m < 2; m++) {
            struct fused f;
            open_fused(&f, texts[i].source, machines[m]);
            text_printf(&text, "%s, %s: ", texts[i].name, machines[m]->name);
            assert_true(gir_explain(f.op, &f.built, machines[m], &sizes, &text));
            text_puts(&text, "\n");
            close_fused(&f);
        }
    FILE *file = fopen(path, getenv("TSSA_UPDATE_GOLDEN") ? "w+" : "r");
    assert_non_null(file);
    if (getenv("TSSA_UPDATE_GOLDEN"))
        fwrite(text.data, 1, text.size, file);
    rewind(file);
    expected[fread(expected, 1, sizeof expected - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text_string(&text), expected);
    text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements),
        cmocka_unit_test(rows),
        cmocka_unit_test(records),
        cmocka_unit_test(gathers),
        cmocka_unit_test(columns),
        cmocka_unit_test(forms),
        cmocka_unit_test(forms_are_told_right),
        cmocka_unit_test(fusing_takes_nothing),
        cmocka_unit_test(products),
        cmocka_unit_test(golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
