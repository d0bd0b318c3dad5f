/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that are kernels: what the kernel is, which loops are none and why, which bytes are none,
 * and sessions, which give the interpreter's bits and errors with and without. Random ones are in
 * test_kernels.c.
 */
/* ctest-isa: v3 v2 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/gir_build.h"
#include "common/no_error.h"
#include "common/session_pair.h"
#include "common/xmalloc.h"
#include "ir/fuse.h"
#include "tssa.h"

/* ---- Kernel IR ------------------------------------------------------------------------------- */

/* h * a + x[i], which is stacked, and i as a number. */
static const char usual[] = LOOPED_GRAPH(
    "%n: i64[], %h: f32[N], %x: f32[T, N], %a: f32[N]", "%n, %h, %x, %a",
    "%m: i64[], %p: f32[N], %q: f32[T, N], %r: f32[N]",
    "%l, %s = Loop(%m, _, %p) { body(%i: i64[], %go: bool[], %c: f32[N])",
    "%u = fuse(%c, %r, %q, %i) { body(%v: f32[N], %w: f32[N], %y0: f32[T, N], %k: i64[]) {\n"
    "%e = access(%y0, %k) {rule = [select(0, $0)]} %f = Mul(%v, %w) %g = Add(%f, %e) "
    "%t = Cast(%k) {to = 1} %z0 = Sub(%g, %t) return(%z0) } }\nreturn(%go, %u, %u)",
    "%l, %s", "%y, %z");

static void texts(void **state)
{
    static const char expected[] =
        "columns, args 0: f32 moves per column, 1: f32 moves per column, 2: f32 moves, "
        "3: f32 result per column, 4: f32 result\n"
        "%0 = load 0 : f32\n"
        "%1 = state %0 : f32\n"
        "%2 = load 1 : f32\n"
        "%3 = MUL %1 %2 : f32\n"
        "%4 = load 2 : f32\n"
        "%5 = ADD %3 %4 : f32\n"
        "%6 = row : i64\n"
        "%7 = convert %6 : f32\n"
        "%8 = SUB %5 %7 : f32\n"
        "next %1 %8\n"
        "%10 = last %1 : f32\n"
        "store 3 %10\n"
        "store 4 %8\n";
    (void)state;
    const char *why;
    struct text text;
    struct ir_graph *graph = gir_parse_graph(usual);
    struct gir_parts *parts = gir_build_parts(graph, &why);
    assert_null(why);
    assert_int_equal(parts->n, 1);
    assert_int_equal(parts->parts[0].space.column, 0);
    assert_int_equal(parts->parts[0].space.trips, 1);
    text_init(&text, &allocator_default);
    assert_true(gir_print(parts->parts[0].kernel, &text));
    assert_string_equal(text_string(&text), expected);
    text_free(&text);
    gir_parts_free(parts);
    ir_graph_free(graph);
}

#define BODY "body(%i: i64[], %go: bool[], %c: f32[N])"
#define ONE_LOOP(loop, inner)                                                                      \
    LOOPED_GRAPH("%n: i64[], %h: f32[N], %x: f32[T, N], %b: bool[]", "%n, %h, %x, %b",             \
                 "%m: i64[], %p: f32[N], %q: f32[T, N], %t: bool[]", loop, inner, "%l", "%y")

/* Loops that neither kernels of columns nor grids are made of. */
#define ENTERED                                                                                    \
    ONE_LOOP("%l = Loop(%m, %t, %p) { " BODY,                                                      \
             "%u = fuse(%c) { body(%v: f32[N]) { %e = Exp(%v) %f = Neg(%e) return(%f) } }\n"       \
             "return(%go, %u)")
#define REDUCES                                                                                    \
    ONE_LOOP("%l = Loop(%m, _, %p) { " BODY,                                                       \
             "%u = fuse(%c) { body(%v: f32[N]) { %k = Constant() {value = i64[1] [0]} "            \
             "%e = ReduceMax(%v, %k) %f = Mul(%v, %e) return(%f) } }\nreturn(%go, %u)")
#define REVERSES                                                                                   \
    ONE_LOOP("%l = Loop(%m, _, %p) { " BODY,                                                       \
             "%u = fuse(%c) { body(%v: f32[N]) { "                                                 \
             "%e = access(%v) {rule = [slice(0, -1, -9223372036854775807, -1)]} %f = Neg(%e) "     \
             "%g = Add(%f, %v) return(%g) } }\nreturn(%go, %u)")
#define BY_NUMBER                                                                                  \
    ONE_LOOP("%l = Loop(%m, _, %p) { " BODY,                                                       \
             "%u = fuse(%c, %i) { body(%v: f32[N], %k: i64[]) { "                                  \
             "%e = access(%v, %k) {rule = [select(0, $0)]} %f = Add(%v, %e) return(%f) } }\n"      \
             "return(%go, %u)")

static void refusals(void **state)
{
    static const struct {
        const char *text, *why;
    } loops[] = {
        /* Conditions, before and in it. */
        {ENTERED, "a condition ends the loop"},
        {ONE_LOOP("%l = Loop(_, _, %p) { " BODY,
                  "%u = fuse(%c) { body(%v: f32[N]) { %e = Exp(%v) %f = Neg(%e) return(%f) } }\n"
                  "return(%t, %u)"),
         "a condition ends the loop"},
        /* Elements that depend on others. */
        {REDUCES, "an iteration does not only compute elements"},
        {REVERSES, "it reads other elements of what it carries"},
        /* By a number that is not the iteration's, and of what it carries. */
        {ONE_LOOP("%l = Loop(%m, _, %p) { " BODY,
                  "%u = fuse(%c, %q, %m) { body(%v: f32[N], %w: f32[T, N], %k: i64[]) { "
                  "%e = access(%w, %k) {rule = [select(0, $0)]} %f = Add(%v, %e) return(%f) } }\n"
                  "return(%go, %u)"),
         "what it moves does not lie in steps"},
        {BY_NUMBER, "it reads by number what the loop makes"},
        /* What it carries is absent at first. */
        {ONE_LOOP("%l = Loop(%m, _, _) { " BODY,
                  "%u = fuse(%c) { body(%v: f32[N]) { %e = Exp(%v) return(%e) } }\n"
                  "return(%go, %u)"),
         "the shapes of what it computes are not the same"},
        /* Of another axis. */
        {ONE_LOOP("%l = Scan(%p, %q) {num_scan_inputs = 1, scan_input_axes = [1]} { "
                  "body(%c: f32[N], %d: f32[T])",
                  "%u = fuse(%c, %d) { body(%v: f32[N], %w: f32[T]) { %e = Exp(%v) return(%e) "
                  "} }\nreturn(%u)"),
         "it does not scan first axes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        const char *why;
        struct ir_graph *graph = gir_parse_graph(loops[i].text);
        assert_null(gir_build_parts(graph, &why));
        assert_string_equal(why, loops[i].why);
        ir_graph_free(graph);
    }
}

/* The same for devices with a thread for each element, which read elements anywhere. */
static void refusals_of_grids(void **state)
{
    static const struct {
        const char *text, *why;
    } loops[] = {
        {ENTERED, "a condition ends the loop"},
        {ONE_LOOP("%l = Loop(_, _, %p) { " BODY,
                  "%u = fuse(%c) { body(%v: f32[N]) { %e = Exp(%v) %f = Neg(%e) return(%f) } }\n"
                  "return(%go, %u)"),
         "a condition ends the loop"},
        {REDUCES, "an iteration does not only compute elements"},
        /* From the end on, and of those from the end again, and so on. */
        {REVERSES, "it reads other elements of what it carries"},
        /* Another one in each iteration. */
        {BY_NUMBER, "it reads other elements of what it carries"},
        {ONE_LOOP("%l = Loop(%m, _, %p) { " BODY,
                  "%u = fuse(%c, %i) { body(%v: f32[N], %k: i64[]) { "
                  "%e = Constant() {value = f32[] 1} "
                  "%f = assign(%v, %e, %k) {rule = [select(0, $0)]} %g = Neg(%f) return(%g) } }\n"
                  "return(%go, %u)"),
         "iterations write other elements each"},
        {ONE_LOOP("%l = Loop(%m, _, _) { " BODY,
                  "%u = fuse(%c) { body(%v: f32[N]) { %e = Exp(%v) %f = Neg(%e) return(%f) } }\n"
                  "return(%go, %u)"),
         "the shape of what it computes is not known"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        const char *why;
        struct ir_graph *graph = gir_parse_graph(loops[i].text);
        assert_null(gir_build_whole_grid(graph, &why));
        assert_string_equal(why, loops[i].why);
        ir_graph_free(graph);
    }
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

struct small {
    struct gir_kernel kernel;
    struct gir_arg args[3];
    struct gir_code codes[7];
};

/* h = h + x, of which the last is a result, and each h another. */
static const struct small good = {
    .kernel = {.magic = GIR_MAGIC, .size = sizeof good, .n_args = 3, .n_codes = 7, .columns = 1},
    .args = {{.dtype = TSSA_FLOAT, .moves = GIR_SIDE_BY_SIDE, .fields = 1},
             {.dtype = TSSA_FLOAT,
              .is_result = 1,
              .moves = GIR_SIDE_BY_SIDE,
              .fields = 1,
              .per_column = 1},
             {.dtype = TSSA_FLOAT, .is_result = 1, .moves = GIR_SIDE_BY_SIDE, .fields = 1}},
    .codes = {{.op = GIR_CONSTANT, .type = TSSA_FLOAT},
              {.op = GIR_STATE, .type = TSSA_FLOAT},
              {.op = GIR_LOAD, .type = TSSA_FLOAT},
              {.op = GIR_NEXT, .type = TSSA_FLOAT, .operands = {1, 2}},
              {.op = GIR_LAST, .type = TSSA_FLOAT, .operands = {1}},
              {.op = GIR_STORE, .type = TSSA_FLOAT, .operands = {4}, .bits = 1},
              {.op = GIR_STORE, .type = TSSA_FLOAT, .operands = {1}, .bits = 2}}};

static void wrong_bytes(void **state)
{
    (void)state;
    struct small bad;
    no_error(gir_check(&good, sizeof good));
    bad = good;
    bad.codes[1].operands[0] = 0, bad.codes[1].bits = 1;
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 1: it is no state");
    bad = good;
    bad.codes[0] = (struct gir_code){.op = GIR_LOAD, .type = TSSA_FLOAT};
    gir_expect_wrong(&bad, sizeof bad,
                     "kernel, step 1: it is no state"); /* it begins as one of each row */
    bad = good;
    bad.codes[3].operands[0] = 0;
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 3: it is of no state");
    bad = good;
    bad.codes[4] = bad.codes[3];
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 4: it is no next value of a state");
    bad = good;
    bad.codes[3] = (struct gir_code){.op = GIR_LAST, .type = TSSA_FLOAT, .operands = {1}};
    gir_expect_wrong(&bad, sizeof bad, "kernel: a state is the same in all iterations");
    bad = good;
    bad.codes[6].operands[0] = 4;
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 6: an iteration knows the last one");
    bad = good;
    bad.codes[3] = (struct gir_code){
        .op = GIR_REDUCE, .scalar = SCALAR_ADD, .type = TSSA_FLOAT, .operands = {2}};
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 3: there are iterations, and reductions");
    bad = good;
    bad.codes[5].operands[0] = 1;
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 5: what is reduced has more than one of it");
    bad = good;
    bad.codes[5].operands[0] = 3;
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 5: an operand is none");
    bad = good;
    bad.kernel.columns = 0;
    bad.args[1].per_column = 0;
    gir_expect_wrong(&bad, sizeof bad, "kernel, step 1: it is no state");
}

/* ---- Sessions -------------------------------------------------------------------------------- */

#define MAX_VALUES 4

static void count_loops(void *user, const tssa_step_profile *step)
{
    *(int *)user += strcmp(step->op, "Loop") == 0 || strcmp(step->op, "Scan") == 0;
}

/* Once it has run: there is no loop around the kernel. */
static void close_pair(struct session_pair *p)
{
    int n = 0;
    no_error(tssa_session_profile_steps(p->kernels, count_loops, &n));
    assert_true(n == 0 || p->info.kernels == 0);
    session_pair_close(p);
}

static tssa_value *make_floats(const struct session_pair *p, int rank, const int64_t *dims)
{
    tssa_value *value;
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    no_error(tssa_tensor_create(p->context, TSSA_FLOAT, rank, dims, &value));
    for (int64_t i = 0; i < n; i++)
        ((float *)tssa_tensor_data(value))[i] = (float)((i * 37 + rank) % 101) / 64 - 0.7f;
    return value;
}

static void compare(tssa_value *a, tssa_value *b)
{
    assert_int_equal(tssa_tensor_rank(a), tssa_tensor_rank(b));
    size_t n = 1;
    for (int i = 0; i < tssa_tensor_rank(a); i++) {
        assert_int_equal(tssa_tensor_dims(a)[i], tssa_tensor_dims(b)[i]);
        n *= (size_t)tssa_tensor_dims(a)[i];
    }
    if (n)
        assert_memory_equal(tssa_tensor_data(a), tssa_tensor_data(b), n * sizeof(float));
}

/* Both give the same outputs, or the same kind of error; the message of the one by kernels, to be
 * freed, or NULL. */
static char *run_pair(const struct session_pair *p, size_t n, tssa_value *const *inputs,
                      size_t n_outputs)
{
    tssa_value *made[MAX_VALUES] = {NULL}, *wanted[MAX_VALUES] = {NULL};
    tssa_status *status = tssa_session_run(p->kernels, n, inputs, n_outputs, made),
                *other = tssa_session_run(p->plain, n, inputs, n_outputs, wanted);
    assert_int_equal(!status, !other);
    char *message = status ? xprintf("%s", tssa_status_message(status)) : NULL;
    for (size_t i = 0; i < n_outputs && !status; i++)
        compare(made[i], wanted[i]);
    for (size_t i = 0; i < n_outputs; i++) {
        tssa_value_free(made[i]);
        tssa_value_free(wanted[i]);
    }
    tssa_status_free(status);
    tssa_status_free(other);
    return message;
}

#define MODEL(inputs, outputs, ops)                                                                \
    "graph @g opset(\"\": 21) ir_version(10) (" inputs ") -> (" outputs ") {\n" ops                \
    "return(" outputs ")\n}\n"

static const char filter[] = MODEL(
    "%x: f32[T, N], %a: f32[N], %h: f32[N], %n: i64[]", "%last, %all",
    "%last, %all = Loop(%n, _, %h) { body(%i: i64[], %go: bool[], %c: f32[N]) {\n"
    "%xi = Gather(%x, %i) %p = Mul(%c, %a) %q = Add(%p, %xi) %t = Tanh(%q) return(%go, %t, %q) } "
    "}\n");

/* Sizes with groups of vectors, single ones, and less, with one thread and two. */
static void loops(void **state)
{
    static const int64_t sizes[] = {1, 7, 16, 32, 33, 64, 96, 256, 300, 1000};
    static const int64_t trips[] = {0, 1, 2, 50};
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct session_pair p;
        session_pair_open(&p, filter, threads);
        if (!p.info.kernels) {
            close_pair(&p);
            skip();
        }
        assert_int_equal(p.info.kernels, 1);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t k = 0; k < sizeof trips / sizeof *trips; k++) {
                tssa_value *inputs[4] = {
                    make_floats(&p, 2, (const int64_t[]){trips[k] + k % 2, sizes[i]}),
                    make_floats(&p, 1, &sizes[i]), make_floats(&p, 1, &sizes[i])};
                no_error(tssa_tensor_create(p.context, TSSA_INT64, 0, NULL, &inputs[3]));
                *(int64_t *)tssa_tensor_data(inputs[3]) = trips[k];
                for (int again = 0; again < 2; again++)
                    assert_null(run_pair(&p, 4, inputs, 2));
                for (int v = 0; v < 4; v++)
                    tssa_value_free(inputs[v]);
            }
        close_pair(&p);
    }
}

/* One iteration more than there are rows: the error is the interpreter's, of the operator. */
static void reads_too_far(void **state)
{
    (void)state;
    struct session_pair p;
    const int64_t n = 40;
    session_pair_open(&p, filter, 1);
    tssa_value *inputs[4] = {make_floats(&p, 2, (const int64_t[]){5, n}), make_floats(&p, 1, &n),
                             make_floats(&p, 1, &n)};
    no_error(tssa_tensor_create(p.context, TSSA_INT64, 0, NULL, &inputs[3]));
    *(int64_t *)tssa_tensor_data(inputs[3]) = 6;
    char *message = run_pair(&p, 4, inputs, 2);
    assert_non_null(message);
    assert_non_null(strstr(message, "index 5 is outside a dim of 5"));
    free(message);
    for (int v = 0; v < 4; v++)
        tssa_value_free(inputs[v]);
    close_pair(&p);
}

/* A Scan from the last to the first, of planes of [2, N], in which what is carried changes places.
 */
static void scans(void **state)
{
    (void)state;
    struct session_pair p;
    session_pair_open(
        &p,
        MODEL("%x: f32[T, 2, N], %h: f32[2, N], %g: f32[2, N], %s: f32[2, 1]", "%a, %b, %all",
              "%a, %b, %all = Scan(%h, %g, %x) {num_scan_inputs = 1, "
              "scan_input_directions = [1], scan_output_directions = [1]} {\n"
              "body(%c: f32[2, N], %d: f32[2, N], %e: f32[2, N]) {\n"
              "%p = Mul(%d, %s) %q = Sub(%e, %p) %r = Add(%q, %c) return(%r, %c, %q) } }\n"),
        1);
    if (!p.info.kernels) {
        close_pair(&p);
        skip();
    }
    for (int64_t n = 1; n < 200; n = n * 3 + 1) {
        const int64_t plane[] = {2, n}, planes[] = {9, 2, n}, one[] = {2, 1};
        tssa_value *inputs[] = {make_floats(&p, 3, planes), make_floats(&p, 2, plane),
                                make_floats(&p, 2, plane), make_floats(&p, 2, one)};
        assert_null(run_pair(&p, 4, inputs, 3));
        for (int v = 0; v < 4; v++)
            tssa_value_free(inputs[v]);
    }
    close_pair(&p);
}

/* Rows by other numbers than the iteration's own: so many behind it, and from the last one back. */
static void rows_by_numbers(void **state)
{
    static const char text[] =
        MODEL("%x: f32[T, N], %h: f32[N]", "%a, %b",
              "%one = Constant() {value = i64[] 1} %s = Shape(%x) {end = 1} %t = Squeeze(%s)\n"
              "%n = Sub(%t, %one)\n"
              "%a, %b = Loop(%n, _, %h) { body(%i: i64[], %go: bool[], %c: f32[N]) {\n"
              "%j = Add(%i, %one) %k = Sub(%n, %i) %p = Gather(%x, %j) %q = Gather(%x, %k)\n"
              "%r = Mul(%c, %p) %u = Add(%r, %q) %v = Tanh(%u) return(%go, %v, %u) } }\n");
    (void)state;
    struct session_pair p;
    session_pair_open(&p, text, 1);
    if (!p.info.kernels) {
        close_pair(&p);
        skip();
    }
    assert_int_equal(p.info.kernels, 1);
    for (int64_t n = 1; n < 200; n = n * 3 + 1) {
        const int64_t rows[] = {n % 7 + 1, n};
        tssa_value *inputs[] = {make_floats(&p, 2, rows), make_floats(&p, 1, &n)};
        assert_null(run_pair(&p, 2, inputs, 2));
        for (int v = 0; v < 2; v++)
            tssa_value_free(inputs[v]);
    }
    close_pair(&p);
}

/* ---- Devices with a thread for each element -------------------------------------------------- */

#define ROWS 9
#define TRIPS 5
#define COLUMNS 40

static void make_filter_inputs(const struct session_pair *p, tssa_value **inputs)
{
    const int64_t rows[] = {ROWS, COLUMNS}, n = COLUMNS;
    inputs[0] = make_floats(p, 2, rows);
    inputs[1] = make_floats(p, 1, &n);
    inputs[2] = make_floats(p, 1, &n);
    no_error(tssa_tensor_create(p->context, TSSA_INT64, 0, NULL, &inputs[3]));
    *(int64_t *)tssa_tensor_data(inputs[3]) = TRIPS;
}

/* One launch, which reads as many rows as there are iterations, and writes as many. */
static void one_launch(void **state)
{
    const tssa_session_options options = {.struct_size = sizeof options, .device = "null"};
    struct session_pair p = {0};
    tssa_session_work work;
    tssa_value *inputs[4], *outputs[2] = {NULL};
    (void)state;
    session_pair_load(&p, filter, 1);
    no_error(tssa_session_create(p.model, &options, &p.kernels));
    make_filter_inputs(&p, inputs);
    no_error(tssa_session_run(p.kernels, 4, inputs, 2, outputs));
    no_error(tssa_session_counts(p.kernels, &work));
    assert_int_equal(work.launches, 1);
    assert_int_equal(work.bytes, (2 + TRIPS + 1 + TRIPS) * COLUMNS * sizeof(float));
    assert_int_equal(tssa_tensor_dims(outputs[1])[0], TRIPS);
    for (int i = 0; i < 2; i++)
        tssa_value_free(outputs[i]);
    for (int v = 0; v < 4; v++)
        tssa_value_free(inputs[v]);
    session_pair_close(&p);
}

/* It runs the iterations one by one, and stacks what comes of each, with the same bits. */
static void emulated(void **state)
{
    const tssa_session_options options = {.struct_size = sizeof options, .device = "emulated"};
    struct session_pair p = {0};
    tssa_session_work work;
    tssa_value *inputs[4];
    (void)state;
    session_pair_load(&p, filter, 1);
    no_error(tssa_session_create(p.model, &options, &p.kernels));
    make_filter_inputs(&p, inputs);
    assert_null(run_pair(&p, 4, inputs, 2));
    no_error(tssa_session_counts(p.kernels, &work));
    assert_int_equal(work.launches, 2 * TRIPS);
    for (int v = 0; v < 4; v++)
        tssa_value_free(inputs[v]);
    session_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(refusals),
        cmocka_unit_test(refusals_of_grids),
        cmocka_unit_test(wrong_bytes),
        cmocka_unit_test(loops),
        cmocka_unit_test(reads_too_far),
        cmocka_unit_test(scans),
        cmocka_unit_test(rows_by_numbers),
        cmocka_unit_test(one_launch),
        cmocka_unit_test(emulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
