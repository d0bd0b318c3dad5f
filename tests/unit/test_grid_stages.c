/* SPDX-License-Identifier: Apache-2.0 */
/* Grids with stages (gir/grid.h): what is one, how many groups and stages it has, and what is none
 * since groups would need each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/gir_build.h"
#include "common/no_error.h"
#include "gir/grid.h"
#include "gir/grid_reach.h"
#include "ir/ir.h"

/* Of each of G heads: scores of L rows by what x comes to, and what is summed by their softmax. */
#define HEADS(G, L, D, scores, sums)                                                               \
    FUSED_GRAPH("%x: f32[" G ", 1, " D "], %w: f32[" G ", " D ", " D "], %k: f32[" G ", " L ", " D \
                "]",                                                                               \
                "%x, %w, %k",                                                                      \
                "%p: f32[" G ", 1, " D "], %q: f32[" G ", " D ", " D "], %r: f32[" G ", " L ", " D \
                "]) { %a = MatMul(%p, %q) " scores " %s = MatMul(%r, %t) "                         \
                "%u = access(%s) {rule = [permute(0, 2, 1)]} " sums " return(%o)",                 \
                "%y")
#define PLAIN "%t = access(%a) {rule = [permute(0, 2, 1)]}"
#define SOFTMAX "%m = Softmax(%u) %o = MatMul(%m, %r)"

static const struct {
    const char *text;
    int64_t groups; /* 0: it is none */
    uint32_t stages, inner;
} cases[] = {
    {HEADS("12", "50", "16", PLAIN, SOFTMAX), 12, 3, 2},
    {HEADS("4", "1", "1", PLAIN, SOFTMAX), 4, 3, 2},
    /* elements behind a product are of its stage */
    {HEADS("6", "7", "5", PLAIN, "%o = Neg(%u)"), 6, 2, 1},
    {HEADS("6", "7", "5", "%b = Exp(%a) %t = access(%b) {rule = [permute(0, 2, 1)]}", SOFTMAX), 6,
     3, 2},
    /* too few groups, too much of each, and of a size that nobody knows */
    {HEADS("1", "50", "16", PLAIN, SOFTMAX), 0, 0, 0},
    {HEADS("4", "900", "64", PLAIN, SOFTMAX), 0, 0, 0},
    {HEADS("N", "50", "16", PLAIN, SOFTMAX), 0, 0, 0},
    /* what another group has computed */
    {HEADS("6", "7", "5", "%t = access(%a) {rule = [slice(0, -1, -7, -1), permute(0, 2, 1)]}",
           SOFTMAX),
     0, 0, 0},
    {HEADS("6", "7", "5",
           "%b = access(%a) {rule = [slice(0, 0, 1, 1), permute(0, 2, 1)]} "
           "%t = access(%b) {rule = [expand(6, 5, 1)]}",
           SOFTMAX),
     0, 0, 0},
};

static uint32_t count_stages(const struct gir_grid *grid)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < grid->n; i++) {
        assert_true(grid->parts[i].stage >= last);
        assert_int_equal(grid->parts[i].kernel->stage, grid->parts[i].stage + 1);
        last = grid->parts[i].stage;
    }
    return last + 1;
}

static void what_has_stages(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why = NULL;
        struct ir_graph *graph = gir_parse_graph(cases[i].text);
        struct gir_grid *grid = gir_build_whole_grid(graph, &why);
        assert_int_equal(grid ? grid->groups : 0, cases[i].groups);
        if (grid) {
            assert_int_equal(count_stages(grid), cases[i].stages);
            assert_int_equal(grid->n_inner, cases[i].inner);
        } else {
            assert_non_null(why);
        }
        gir_grid_free(grid);
        ir_graph_free(graph);
    }
}

/* A chain of products, each of what the one before it came to. */
static struct gir_grid *build_chain(int products, struct ir_graph **graph, const char **why)
{
    struct text text;
    text_init(&text, &allocator_default);
    text_puts(&text, "graph (%x: f32[2, 8], %w: f32[8, 8]) -> (%y) {\n%y = fuse(%x, %w) {\n"
                     "body(%v0: f32[2, 8], %q: f32[8, 8]) {\n");
    for (int i = 0; i < products; i++)
        text_printf(&text, "%%m%d = MatMul(%%v%d, %%q)\n%%v%d = Tanh(%%m%d)\n", i, i, i + 1, i);
    text_printf(&text, "return(%%v%d) } }\nreturn(%%y)\n}\n", products);
    *graph = gir_parse_graph(text_string(&text));
    text_free(&text);
    return gir_build_whole_grid(*graph, why);
}

/* The last stage that there may be, and one more. */
static void stages_are_not_too_many(void **state)
{
    (void)state;
    for (int products = GIR_MAX_STAGES - 1; products < GIR_MAX_STAGES + 3; products++) {
        const char *why = NULL;
        struct ir_graph *graph;
        struct gir_grid *grid = build_chain(products, &graph, &why);
        assert_true((grid != NULL) == (products <= GIR_MAX_STAGES));
        if (grid)
            assert_int_equal(count_stages(grid), products);
        else
            assert_non_null(why);
        gir_grid_free(grid);
        ir_graph_free(graph);
    }
}

/* As text, a part says which stage it is of. */
static void stages_are_printed(void **state)
{
    (void)state;
    const char *why;
    struct ir_graph *graph = gir_parse_graph(cases[1].text);
    struct gir_grid *grid = gir_build_whole_grid(graph, &why);
    struct text text;
    assert_non_null(grid);
    text_init(&text, &allocator_default);
    assert_true(gir_print(grid->parts[grid->n - 1].kernel, &text));
    assert_non_null(
        strstr(text_string(&text), "grid of 0 numbers, stage 3, side by side, whole rows"));
    text_free(&text);
    gir_grid_free(grid);
    ir_graph_free(graph);
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

static void expect_range(struct gir_interval range, int64_t low, int64_t high)
{
    assert_int_equal(range.low, low);
    assert_int_equal(range.high, high);
}

#define NUMBER(n)                                                                                  \
    {                                                                                              \
        .op = GIR_CONSTANT, .type = TSSA_INT64, .bits = (uint64_t)(n)                              \
    }
#define OF(id, result, a, b, c)                                                                    \
    {                                                                                              \
        .op = GIR_SCALAR, .scalar = SCALAR_##id, .type = TSSA_##result, .operands = { a, b, c }    \
    }

static void what_numbers_may_be(void **state)
{
    (void)state;
    static const struct {
        struct gir_kernel kernel;
        struct gir_arg arg;
        struct gir_code codes[22];
    } k = {{.magic = GIR_MAGIC, .size = sizeof k, .grid = 1, .n_args = 1, .n_codes = 22},
           {.dtype = TSSA_INT64, .fields = 1, .is_looked_up = 1},
           {{.op = GIR_ROW, .type = TSSA_INT64},
            {.op = GIR_POSITION, .type = TSSA_INT64},
            NUMBER(64),
            OF(DIV, INT64, 0, 2, 0),
            OF(FMOD, INT64, 0, 2, 0),
            OF(MUL, INT64, 3, 2, 0),
            OF(ADD, INT64, 5, 1, 0),
            OF(SUB, INT64, 1, 0, 0),
            NUMBER(7),
            OF(FMOD, INT64, 0, 8, 0),
            OF(MIN, INT64, 1, 8, 0),
            OF(MAX, INT64, 1, 8, 0),
            {.op = GIR_LOOKUP, .type = TSSA_INT64, .operands = {0}},
            NUMBER(0),
            OF(GE, BOOL, 12, 13, 0),
            OF(LT, BOOL, 12, 8, 0),
            OF(AND, BOOL, 14, 15, 0),
            {.op = GIR_CHECK, .operands = {16}},
            OF(SEL, INT64, 14, 12, 2),
            OF(MUL, INT64, 12, 12, 0),
            {.op = GIR_TRIP, .type = TSSA_INT64},
            OF(ADD, INT64, 20, 8, 0)}};
    struct gir_reach *reach = malloc(sizeof *reach);
    assert_non_null(reach);
    gir_find_reach(&k.kernel,
                   &(struct gir_reach_of){.rows = {128, 191}, .positions = {0, 9}, .trips = {3, 6}},
                   reach);
    expect_range(reach->ranges[3], 2, 2);
    expect_range(reach->ranges[4], 0, 63);
    expect_range(reach->ranges[6], 128, 137);
    expect_range(reach->ranges[7], -191, -119);
    expect_range(reach->ranges[9], 0, 6);
    expect_range(reach->ranges[10], 0, 7);
    expect_range(reach->ranges[11], 7, 9);
    expect_range(reach->ranges[12], 0, 6); /* by the check */
    expect_range(reach->ranges[18], 0, 64);
    expect_range(reach->ranges[19], 0, 36);
    expect_range(reach->ranges[21], 10, 13);
    /* too large to be told, and of what is negative */
    gir_find_reach(&k.kernel,
                   &(struct gir_reach_of){.rows = {INT64_MIN, INT64_MAX}, .positions = {0, 9}},
                   reach);
    expect_range(reach->ranges[3], INT64_MIN / 64, INT64_MAX / 64);
    expect_range(reach->ranges[4], -63, 63);
    expect_range(reach->ranges[7], INT64_MIN, INT64_MAX);
    free(reach);
}

/* The number of an iteration is a step of stages alone, and is printed. */
static void trips_are_of_stages(void **state)
{
    struct {
        struct gir_kernel kernel;
        struct gir_arg arg;
        struct gir_code codes[2];
    } k = {{.magic = GIR_MAGIC, .size = sizeof k, .grid = 1, .stage = 1, .n_args = 1, .n_codes = 2},
           {.dtype = TSSA_INT64, .fields = 1, .is_result = 1},
           {{.op = GIR_TRIP, .type = TSSA_INT64}, {.op = GIR_STORE_AT, .type = TSSA_INT64}}};
    static const char wrong[] =
        "kernel, step 0: it is no number of an iteration, or there are none";
    struct text text;
    (void)state;
    no_error(gir_check(&k, sizeof k));
    text_init(&text, &allocator_default);
    assert_true(gir_print(&k.kernel, &text));
    assert_non_null(strstr(text_string(&text), "%0 = trip : i64\nstore 0 %0 at %0\n"));
    text_free(&text);
    k.codes[0].type = TSSA_INT32;
    gir_expect_wrong(&k, sizeof k, wrong);
    k.codes[0].type = TSSA_INT64;
    k.kernel.stage = 0;
    gir_expect_wrong(&k, sizeof k, wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_stages), cmocka_unit_test(stages_are_not_too_many),
        cmocka_unit_test(stages_are_printed), cmocka_unit_test(what_numbers_may_be),
        cmocka_unit_test(trips_are_of_stages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
