/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: results that are alive together never share bytes, for random lifetimes and sizes; which
 * steps compute graph outputs in the caller's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/test_device.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/placement.h"

#define MAX_PLACED 200
#define MAX_STEPS 1000

struct fixture {
    struct ir_graph *graph;
    struct plan plan;
    struct plan_placed placed[MAX_PLACED];
    size_t offsets[MAX_PLACED], sizes[MAX_PLACED], live[MAX_STEPS + 2], wanted[MAX_PLACED], slab;
    bool thorough;
};

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void setup(struct fixture *f)
{
    f->graph = ir_graph_create(&allocator_default);
    f->thorough = false;
    memset(f->wanted, 0, sizeof f->wanted);
    assert_non_null(f->graph);
    f->plan = (struct plan){.graph = f->graph, .placed = f->placed, .n_steps = MAX_STEPS};
}

static const struct ir_type *bytes_type(struct fixture *f, int64_t bytes)
{
    return type_tensor_const(&f->graph->types, TSSA_UINT8, 1, &bytes);
}

static void compute(struct fixture *f, uint32_t count, const int64_t *symbols)
{
    f->plan.n_placed = count;
    const struct layout layout = {.allocator = &allocator_default,
                                  .offsets = f->offsets,
                                  .sizes = f->sizes,
                                  .live = f->live,
                                  .wanted = f->wanted,
                                  .thorough = f->thorough,
                                  .alignment = TENSOR_ALIGNMENT};
    assert_null(placement_compute(&f->plan, symbols, &layout, &f->slab));
}

static void check_disjoint(const struct fixture *f, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (f->offsets[i] == SIZE_MAX)
            continue;
        assert_int_equal(f->offsets[i] % TENSOR_ALIGNMENT, 0);
        assert_true(f->offsets[i] + f->sizes[i] <= f->slab);
        for (uint32_t j = i + 1; j < count; j++) {
            const struct plan_placed *a = &f->placed[i], *b = &f->placed[j];
            bool together = a->first <= b->last && b->first <= a->last;
            bool overlap = f->offsets[j] != SIZE_MAX &&
                           f->offsets[i] < f->offsets[j] + f->sizes[j] &&
                           f->offsets[j] < f->offsets[i] + f->sizes[i];
            assert_false(together && overlap);
        }
    }
}

static void test_random_lifetimes(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t random = 1;
    setup(&f);
    for (int round = 0; round < 300; round++) {
        uint32_t count = 1 + next_random(&random) % MAX_PLACED, step = 0;
        for (uint32_t i = 0; i < count; i++) {
            step += next_random(&random) % 3;
            f.placed[i] = (struct plan_placed){.output = i,
                                               .first = step,
                                               .last = step + next_random(&random) % 20,
                                               .type = bytes_type(&f, next_random(&random) % 5000)};
        }
        f.thorough = false;
        compute(&f, count, NULL);
        check_disjoint(&f, count);
        const size_t quick = f.slab;
        f.thorough = true;
        compute(&f, count, NULL);
        check_disjoint(&f, count);
        assert_true(f.slab <= quick);
    }
    ir_graph_free(f.graph);
}

/* A chain needs two buffers, however long it is. */
static void test_chain_reuses_memory(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    for (uint32_t i = 0; i < 100; i++)
        f.placed[i] = (struct plan_placed){
            .output = i, .first = i, .last = i + 1, .type = bytes_type(&f, 1024)};
    compute(&f, 100, NULL);
    check_disjoint(&f, 100);
    assert_int_equal(f.slab, 2 * 1024);
    ir_graph_free(f.graph);
}

/* In the order of execution the third does not fit where the first was, because of the second. */
static void test_little_is_unused(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    static const uint32_t lives[][3] = {{0, 1, 2048}, {0, 4, 1024}, {2, 5, 3072}};
    for (uint32_t i = 0; i < 3; i++)
        f.placed[i] = (struct plan_placed){.output = i,
                                           .first = lives[i][0],
                                           .last = lives[i][1],
                                           .type = bytes_type(&f, lives[i][2])};
    compute(&f, 3, NULL);
    check_disjoint(&f, 3);
    assert_int_equal(f.live[0], 3072);
    assert_int_equal(f.live[3], 4096);
    assert_int_equal(f.slab, 6144);
    f.thorough = true;
    compute(&f, 3, NULL);
    check_disjoint(&f, 3);
    assert_int_equal(f.slab, 4096);
    ir_graph_free(f.graph);
}

/* Sizes follow the symbols; what overflows is left to the pool. */
static void test_symbolic_sizes(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    const struct dim *n = dim_symbol(&f.graph->dims, "N");
    const struct dim *dims[2] = {n, n};
    uint32_t numbers[64] = {0};
    assert_true(n->id < 64);
    numbers[n->id] = 1;
    f.plan.symbols = &n;
    f.plan.n_symbols = f.plan.n_input_symbols = 1;
    f.plan.symbol_numbers = numbers;
    f.plan.n_symbol_numbers = 64;
    f.placed[0] =
        (struct plan_placed){.last = 1, .type = type_tensor(&f.graph->types, TSSA_FLOAT, 2, dims)};
    compute(&f, 1, (const int64_t[]){8});
    assert_int_equal(f.sizes[0], 8 * 8 * 4);
    compute(&f, 1, (const int64_t[]){INT64_C(1) << 40});
    assert_int_equal(f.offsets[0], SIZE_MAX);
    assert_int_equal(f.slab, 0);
    ir_graph_free(f.graph);
}

static struct plan *make_plan(const char *text, struct ir_graph **graph)
{
    struct plan *plan;
    no_error(ir_parse(&allocator_default, text, strlen(text), graph));
    no_error(ir_infer_graph(*graph));
    no_error(plan_create(*graph, test_device(), &plan));
    return plan;
}

/* How many steps may compute graph outputs where the caller wants them. */
static uint32_t count_results(const char *text)
{
    struct ir_graph *graph;
    struct plan *plan = make_plan(text, &graph);
    uint32_t n = plan->n_results;
    plan_free(plan);
    ir_graph_free(graph);
    return n;
}

#define BRANCHES(then, otherwise)                                                                  \
    "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4], %c: bool[]) -> (%y as \"y\", %z as "     \
    "\"z\") {\n"                                                                                   \
    "  %y, %z = If@21(%c): f32[4], f32[4] {\n"                                                     \
    "    else_branch() {\n" otherwise "    }\n"                                                    \
    "    then_branch() {\n" then "    }\n"                                                         \
    "  }\n"                                                                                        \
    "  return(%y, %z)\n"                                                                           \
    "}\n"

/* Those of branches too, but not what is also something else's. */
static void test_results(void **state)
{
    (void)state;
    static const char *const text =
        "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4]) -> (%y as "
        "\"y\") {\n  %y = Neg@13(%x): f32[4]\n  return(%y)\n}\n";
    assert_int_equal(count_results(text), 1);
    assert_int_equal(count_results(BRANCHES("      %a = Neg@13(%x): f32[4]\n"
                                            "      %b = Abs@13(%x): f32[4]\n"
                                            "      return(%a, %b)\n",
                                            "      %d = Exp@13(%x): f32[4]\n"
                                            "      %e = Sqrt@13(%d): f32[4]\n"
                                            "      return(%e, %d)\n")),
                     4);
    assert_int_equal(count_results(BRANCHES("      %a = Neg@13(%x): f32[4]\n"
                                            "      return(%a, %a)\n",
                                            "      %d = Exp@13(%x): f32[4]\n"
                                            "      return(%x, %d)\n")),
                     1);
}

/* ---- Updates -------------------------------------------------------------------------------------- */

/* How many results lie where the tensor lay that they update. */
static uint32_t count_in_place(const char *text)
{
    struct ir_graph *graph;
    struct plan *plan = make_plan(text, &graph);
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_placed; i++)
        n += plan->placed[i].back > 0;
    plan_free(plan);
    ir_graph_free(graph);
    return n;
}

#define UPDATES(ops)                                                                               \
    "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4], %k: i64[1, 1], %u: f32[1]) -> (%z) {\n"  \
    "  %a = Neg@13(%x): f32[4]\n" ops "  return(%z)\n"                                             \
    "}\n"
#define UPDATE(to, from) "  %" to " = ScatterND@18(%" from ", %k, %u): f32[4]\n"

static void test_updates(void **state)
{
    (void)state;
    assert_int_equal(count_in_place(UPDATES(UPDATE("b", "a") "  %z = Abs@13(%b): f32[4]\n")), 1);
    /* The second of three takes the place of the first, which is that of the operand. */
    assert_int_equal(count_in_place(UPDATES(UPDATE("b", "a") UPDATE("c", "b")
                                                UPDATE("d", "c") "  %z = Abs@13(%d): f32[4]\n")),
                     3);
    /* An input is nobody's to change. */
    assert_int_equal(count_in_place(UPDATES(UPDATE("b", "x") "  %z = Add@14(%a, %b): f32[4]\n")),
                     0);
    /* Something reads it later: itself, or under another shape, or in the same step. */
    assert_int_equal(count_in_place(UPDATES(UPDATE("b", "a") "  %z = Add@14(%a, %b): f32[4]\n")),
                     0);
    assert_int_equal(count_in_place(UPDATES("  %s = Constant() {value = i64[2] [2, 2]}: i64[2]\n"
                                            "  %v = Reshape@21(%a, %s): f32[2, 2]\n" UPDATE(
                                                "b", "a") "  %w = Flatten@21(%v): f32[2, 2]\n"
                                                          "  %r = ReduceSum@13(%w): f32[1, 1]\n"
                                                          "  %z = Add@14(%r, %b)\n")),
                     0);
    assert_int_equal(
        count_in_place(UPDATES("  %i = Constant() {value = i64[4, 1] [3, 2, 1, 0]}: i64[4, 1]\n"
                               "  %v = Identity@21(%a): f32[4]\n"
                               "  %b = ScatterND@18(%a, %i, %v): f32[4]\n"
                               "  %z = Abs@13(%b): f32[4]\n")),
        0);
    assert_int_equal(
        count_in_place(UPDATES("  %i = Constant() {value = i64[4, 1] [3, 2, 1, 0]}: i64[4, 1]\n"
                               "  %b = ScatterND@18(%a, %i, %a): f32[4]\n"
                               "  %z = Abs@13(%b): f32[4]\n")),
        0);
}

/* The same for element-wise ops: of a type, and when the operand is done with. */
static void test_element_wise(void **state)
{
    (void)state;
    assert_int_equal(count_in_place(UPDATES("  %b = Abs@13(%a)\n  %c = Exp@13(%b)\n"
                                            "  %z = Neg@13(%c)\n")),
                     2);
    assert_int_equal(count_in_place(UPDATES("  %b = Abs@13(%a)\n  %z = Add@14(%b, %a)\n")), 0);
    assert_int_equal(count_in_place(UPDATES("  %b = Greater@13(%a, %u)\n  %c = Not@1(%b)\n"
                                            "  %z = Not@1(%c)\n")),
                     1);
    assert_int_equal(count_in_place(UPDATES("  %b = Abs@13(%x)\n  %c = Max@13(%u, %b, %a)\n"
                                            "  %z = Neg@13(%c)\n")),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lifetimes), cmocka_unit_test(test_chain_reuses_memory),
        cmocka_unit_test(test_little_is_unused), cmocka_unit_test(test_symbolic_sizes),
        cmocka_unit_test(test_results),          cmocka_unit_test(test_updates),
        cmocka_unit_test(test_element_wise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
