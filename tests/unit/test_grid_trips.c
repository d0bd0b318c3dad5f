/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of which each iteration goes through stages (gir/grid_trips.c): which are one launch, and
 * why others are none; and random ones of attention, on each device as on the CPU. */
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
#include "common/no_error.h"
#include "gir/grid.h"

/* ---- Programs -------------------------------------------------------------------------------- */

/* What takes the place of #A, #B, ... in a program; NULL: it is not there. */
struct filling {
    const char *texts[26];
};

static void fill(const char *program, const struct filling *filling, struct text *text)
{
    for (; *program; program++)
        if (*program == '#')
            text_puts(text, filling->texts[*++program - 'A']);
        else
            text_putc(text, *program);
}

/*
 * Attention by steps: of B sequences and H heads, with caches of L rows of D elements. What is in
 * the place of #P and #Q computes the caches before the loop, or another name of them, #N is how
 * many iterations there are.
 */
#define CACHE "#T[#B, #H, #L, #D]"
#define ROW "#T[#B, #H, 1, #D]"
#define WEIGHT "#T[#H, #D, #D]"
#define HEAD "graph @g opset(\"\": 18) ir_version(8) "
static const char attention[] =
    HEAD "(%x: " ROW ", %k: " CACHE ", %v: " CACHE ", %w: " WEIGHT ", %u: " WEIGHT ", %o: " WEIGHT
         ", %b: i64[], %n: i64[]) -> (%y, %z, %c) {\n#P"
         "%y, %z, %c = fuse(#N, %x, #Q, %w, %u, %o, %b) { body(%m: i64[], %x1: " ROW ", %k1: " CACHE
         ", %v1: " CACHE ", %w1: " WEIGHT ", %u1: " WEIGHT ", %o1: " WEIGHT ", %b1: i64[]) {\n"
         "%y1, %z1, %c1 = Loop(%m, _, %x1, %k1, %v1) { body(%i: i64[], %go: bool[], %x2: " ROW
         ", %k2: " CACHE ", %v2: " CACHE ") {\n"
         "%at = Add(%b1, %i)\n"
         "%y2, %z2, %c2 = fuse(%x2, %k2, %v2, %w1, %u1, %o1, %at) { body(%x3: " ROW ", %k3: " CACHE
         ", %v3: " CACHE ", %w3: " WEIGHT ", %u3: " WEIGHT ", %o3: " WEIGHT ", %at3: i64[]) {\n"
         "%q = MatMul(%x3, %w3)\n%kr = MatMul(%x3, %u3)\n%vr = MatMul(%x3, %o3)\n"
         "%ks = access(%kr) {rule = [squeeze(2)]}\n%vs = access(%vr) {rule = [squeeze(2)]}\n"
         "%kn = assign(%k3, %ks, %at3) {rule = [select(2, $0)]}\n"
         "%vn = assign(%v3, %vs, %at3) {rule = [select(2, $0)]}\n"
         "%t = access(%q) {rule = [permute(0, 1, 3, 2)]}\n%s = MatMul(%kn, %t)\n"
         "%st = access(%s) {rule = [permute(0, 1, 3, 2)]}\n%p = Softmax(%st) {axis = 3}\n"
         "%d = MatMul(%p, %vn)\n%e = MatMul(%d, %o3)\nreturn(%e, %kn, %vn) } }\n"
         "return(%go, %y2, %z2, %c2) } }\nreturn(%y1, %z1, %c1) } }\nreturn(%y, %z, %c)\n}\n";

/* The caches are computed on the device: nobody else has their memory. */
static const char caches_before[] =
    "%k0, %v0 = fuse(%k, %v) { body(%k4: " CACHE ", %v4: " CACHE ") {\n"
    "%k5 = Neg(%k4)\n%v5 = Neg(%v4)\nreturn(%k5, %v5) } }\n";

struct loop {
    int64_t batch, heads, rows, depth;
    int64_t begin, trips;
    bool wide;    /* f64 */
    bool taken;   /* the loop may take the memory of the caches */
    bool is_told; /* the number of iterations is a constant */
};

static void print_loop(const struct loop *loop, struct text *text)
{
    char numbers[4][24], trips[100] = "";
    const int64_t sizes[] = {loop->batch, loop->heads, loop->rows, loop->depth};
    struct text before;
    struct filling filling = {{0}};
    for (int i = 0; i < 4; i++)
        snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)sizes[i]);
    if (loop->is_told)
        snprintf(trips, sizeof trips, "%%told = Constant() {value = i64[] %lld}\n",
                 (long long)loop->trips);
    filling.texts['B' - 'A'] = numbers[0];
    filling.texts['H' - 'A'] = numbers[1];
    filling.texts['L' - 'A'] = numbers[2];
    filling.texts['D' - 'A'] = numbers[3];
    filling.texts['T' - 'A'] = loop->wide ? "f64" : "f32";
    filling.texts['N' - 'A'] = loop->is_told ? "%told" : "%n";
    filling.texts['Q' - 'A'] = loop->taken ? "%k0, %v0" : "%k, %v";
    text_init(&before, &allocator_default);
    text_puts(&before, trips);
    if (loop->taken)
        fill(caches_before, &filling, &before);
    filling.texts['P' - 'A'] = before.size ? text_string(&before) : "";
    text_init(text, &allocator_default);
    fill(attention, &filling, text);
    text_free(&before);
}

/* ---- What is one launch ---------------------------------------------------------------------- */

static struct gir_grid *build(const char *program, struct ir_graph **graph, const char **why)
{
    *graph = gir_parse_graph(program);
    return gir_build_whole_grid(*graph, why);
}

static void attention_is_one(void **state)
{
    static const struct loop loops[] = {{1, 12, 20, 8, .begin = 3, .trips = 4, .is_told = true},
                                        {1, 2, 5, 3, .trips = 4},
                                        {3, 1, 5, 3, .trips = 4},
                                        {4, 12, 20, 8, .trips = 4},
                                        {2, 3, 5, 3, .trips = 0, .wide = true}};
    (void)state;
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        const char *why = NULL;
        struct ir_graph *graph;
        struct text text;
        print_loop(&loops[i], &text);
        struct gir_grid *grid = build(text_string(&text), &graph, &why);
        if (!grid)
            fail_msg("no grid: %s", why);
        assert_int_equal(grid->groups, loops[i].batch * loops[i].heads);
        assert_int_equal(grid->parts[grid->n - 1].stage, 3);
        assert_true(grid->trips != NULL || grid->trips_operand == 1);
        for (uint32_t k = 0; k < grid->n; k++)
            assert_int_equal(grid->parts[k].column, -1);
        gir_grid_free(grid);
        ir_graph_free(graph);
        text_free(&text);
    }
}

/* An iteration of two products, y = tanh(c a) b of each of 4 heads, and what there is beside. */
#define LOOP(params, operands, block, begin, carried, inner, returned, made, results)              \
    HEAD "(%n: i64[], %x: f32[4, 1, 6], %a: f32[4, 6, 6], %b: f32[4, 6, 6]" params                 \
         ") -> (" results ") {\n" results " = fuse(%n, %x, %a, %b" operands                        \
         ") { body(%m: i64[], %x1: f32[4, 1, 6], "                                                 \
         "%a1: f32[4, 6, 6], %b1: f32[4, 6, 6]" block ") {\n" made " = Loop(%m, _, " begin         \
         ") { body(%i: i64[], %go: bool[], " carried ") {\n" inner "\nreturn(%go, " returned       \
         ") } }\nreturn(" made ") } }\nreturn(" results ")\n}\n"
#define CHAIN(more, blocks, steps, returned)                                                       \
    "%f = fuse(%c, %a1, %b1" more ") { body(%c3: f32[4, 1, 6], %a3: f32[4, 6, 6], "                \
    "%b3: f32[4, 6, 6]" blocks                                                                     \
    ") {\n%p = MatMul(%c3, %a3)\n%t = Tanh(%p)\n%q = MatMul(%t, %b3)\n" steps "return(" returned   \
    ") } }"
#define C "%c: f32[4, 1, 6]"

static const struct {
    const char *program, *why; /* NULL: it is one */
} cases[] = {
    {LOOP("", "", "", "%x1", C, CHAIN("", "", "", "%q"), "%f", "%l", "%y"), NULL},
    /* the last stage reads what the next iteration is to have in its place */
    {LOOP("", "", "", "%x1", C, CHAIN("", "", "%r = Add(%q, %c3)\n", "%r"), "%f", "%l", "%y"),
     "it needs what it carries when the next of that is stored"},
    /* what others have left */
    {LOOP("", "", "", "%x1", C,
          CHAIN("", "", "%r = access(%q) {rule = [slice(0, -1, -5, -1)]}\n", "%r"), "%f", "%l",
          "%y"),
     "what a stage computes is needed by other groups, too"},
    {LOOP("", "", "", "%x1", C, CHAIN("", "", "", "%q"), "%f, %f", "%l, %s", "%y, %z"),
     "iterations stack what they compute"},
    /* iterations read what the loop begins with */
    {LOOP("", "", "", "%x1", C, CHAIN(", %x1", ", %x3: f32[4, 1, 6]", "%r = Add(%q, %x3)\n", "%r"),
          "%f", "%l", "%y"),
     "what it carries begins as what something else needs"},
    /* so does another value */
    {LOOP(", %o: f32[4, 1, 6]", ", %o", ", %o1: f32[4, 1, 6]", "%x1", C,
          CHAIN(", %o1", ", %x3: f32[4, 1, 6]", "%r = Add(%q, %x3)\n", "%r"), "%f", "%l", "%y"),
     NULL},
};

static void what_is_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why = NULL;
        struct ir_graph *graph;
        struct gir_grid *grid = build(cases[i].program, &graph, &why);
        if (grid && cases[i].why)
            fail_msg("case %u is a grid", (unsigned)i);
        if (!grid && (!cases[i].why || strcmp(why, cases[i].why) != 0))
            fail_msg("case %u: %s", (unsigned)i, why);
        gir_grid_free(grid);
        ir_graph_free(graph);
    }
}

/* ---- Devices --------------------------------------------------------------------------------- */

static void add_operands(struct operands *o, const struct loop *loop)
{
    const tssa_dtype type = loop->wide ? TSSA_DOUBLE : TSSA_FLOAT;
    const int64_t row[] = {loop->batch, loop->heads, 1, loop->depth},
                  cache[] = {loop->batch, loop->heads, loop->rows, loop->depth},
                  weight[] = {loop->heads, loop->depth, loop->depth};
    operands_add_numbers(o, type, 4, row);
    operands_add_numbers(o, type, 4, cache);
    operands_add_numbers(o, type, 4, cache);
    for (int i = 0; i < 3; i++)
        operands_add_numbers(o, type, 3, weight);
    *(int64_t *)operands_add(o, TSSA_INT64, 0, NULL)->data = loop->begin;
    *(int64_t *)operands_add(o, TSSA_INT64, 0, NULL)->data = loop->trips;
}

/* Rows of the caches are written from `begin` on, which may count from the end. */
static bool is_right(const struct loop *loop)
{
    const int64_t end = loop->begin + (loop->trips > 0 ? loop->trips : 0);
    return loop->trips <= 0 || (loop->begin >= -loop->rows && end <= loop->rows);
}

static void run_loop(const struct loop *loop, const char *device, uint64_t seed)
{
    struct grids_run run;
    struct operands o;
    char program[4096]; /* a test that is skipped gives no memory back */
    struct text text;
    print_loop(loop, &text);
    assert_true(text.size < sizeof program);
    strcpy(program, text_string(&text));
    text_free(&text);
    grids_run_open(&run, device, program);
    operands_open(&o, seed);
    add_operands(&o, loop);
    if (is_right(loop)) {
        assert_true(grids_run_go(&run, o.given));
        for (int r = 0; r < 3; r++)
            operands_expect_close(&run, r, loop->wide ? 1e-11 : 1e-4);
        /* the loop's, that of the caches, and copies of what cannot be taken */
        grids_expect_launches(&run, device, (loop->trips > 0) + (loop->taken ? 2 : 3));
    } else {
        tssa_status *made = grids_run_try(&run, o.given),
                    *wanted = grids_run_on_host(&run, o.given);
        assert_non_null(made);
        assert_non_null(wanted);
        tssa_status_free(made);
        tssa_status_free(wanted);
    }
    operands_clear(&o);
    grids_run_close(&run);
}

static void chosen_loops(void **state)
{
    static const struct loop loops[] = {
        {1, 12, 20, 8, .begin = 3, .trips = 6, .is_told = true, .taken = true},
        {1, 12, 20, 8, .begin = 3, .trips = 6},
        {1, 2, 1, 1, .trips = 1, .taken = true},
        {1, 2, 9, 5, .trips = 0, .taken = true},
        {1, 2, 9, 5, .trips = 0, .is_told = true},
        {1, 2, 9, 5, .trips = -3, .wide = true},
        {1, 3, 9, 33, .begin = -9, .trips = 9, .wide = true, .taken = true},
        {1, 3, 9, 5, .begin = 5, .trips = 5}, /* one too many */
        {1, 3, 9, 5, .begin = -10, .trips = 1},
        {1, 3, 9, 5, .begin = 40, .trips = 0}};
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        run_loop(&loops[i], *state, 7 + i);
}

static void random_loops(void **state)
{
    struct random random = {91};
    for (int i = 0; i < GRIDS_ROUNDS(10); i++) {
        struct loop loop = {.batch = random_int(&random, 1, 4),
                            .heads = random_int(&random, 2, 12),
                            .rows = random_int(&random, 1, 24),
                            .depth = random_int(&random, 1, 9),
                            .wide = random_chance(&random, 40),
                            .taken = random_chance(&random, 50),
                            .is_told = random_chance(&random, 50)};
        loop.begin = random_int(&random, 0, loop.rows - 1);
        loop.trips = random_int(&random, 0, loop.rows - loop.begin);
        run_loop(&loop, *state, 100 + (uint64_t)i);
    }
}

#define OF_DEVICE(test) cmocka_unit_test_prestate(test, (void *)device)

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {OF_DEVICE(chosen_loops), OF_DEVICE(random_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(attention_is_one),
                                       cmocka_unit_test(what_is_one)};
    return cmocka_run_group_tests(tests, NULL, NULL) + grids_run_on_each(run_on);
}
