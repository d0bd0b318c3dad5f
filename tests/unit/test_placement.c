/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: results that are alive together never share bytes, for random lifetimes and
 * sizes; which steps compute graph outputs in the caller's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
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
    size_t pooled[MAX_STEPS], chunk; /* what the pool holds without what is left to it */
    uint32_t left[MAX_PLACED];
    bool thorough;
    size_t room;
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
    f->chunk = f->room = 0;
    memset(f->wanted, 0, sizeof f->wanted);
    memset(f->pooled, 0, sizeof f->pooled);
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
                                  .left = f->left,
                                  .pooled = f->pooled,
                                  .chunk = f->chunk,
                                  .wanted = f->wanted,
                                  .thorough = f->thorough,
                                  .room = f->room,
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
    int fits = 0;
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
        const size_t thorough = f.slab;
        f.thorough = false;
        f.room = thorough; /* in which what is quick may not fit */
        compute(&f, count, NULL);
        check_disjoint(&f, count);
        assert_true(f.slab <= quick);
        fits += f.slab <= thorough && quick > thorough;
        f.room = thorough / 8; /* in which nothing does */
        compute(&f, count, NULL);
        assert_int_equal(f.slab, quick);
        f.room = 0;
    }
    assert_true(fits > 0);
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

/* ---- What is left to the pool ---------------------------------------------------------------- */

#define KIB ((size_t)1024)

/* The most of the pool: what came from it anyway, and all that has no place. */
static size_t pool_needs(const struct fixture *f, uint32_t count, const size_t *pooled)
{
    size_t most = 0;
    for (uint32_t s = 0; s < MAX_STEPS; s++) {
        size_t sum = pooled[s];
        for (uint32_t i = 0; i < count; i++)
            if (f->left[i] && f->placed[i].first <= s && s <= f->placed[i].last)
                sum += f->sizes[i];
        most = sum > most ? sum : most;
    }
    return most;
}

/* The pool needs 64 KiB during steps 10 and 11, the slab 80 before. */
static void test_left_to_pool(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    static const uint32_t lives[][3] = {{0, 10, 16}, {1, 3, 48}, {2, 3, 16}, {12, 13, 16}};
    for (uint32_t i = 0; i < 4; i++)
        f.placed[i] = (struct plan_placed){.output = i,
                                           .first = lives[i][0],
                                           .last = lives[i][1],
                                           .type = bytes_type(&f, lives[i][2] * 1024)};
    f.thorough = true;
    compute(&f, 4, NULL);
    assert_int_equal(f.slab, 80 * KIB);
    f.pooled[10] = f.pooled[11] = f.chunk = 64 * KIB;
    compute(&f, 4, NULL);
    assert_int_equal(f.slab, 16 * KIB);
    assert_int_equal(f.offsets[1], SIZE_MAX);
    assert_int_equal(f.offsets[2], SIZE_MAX);
    assert_true(f.offsets[0] == 0 && f.offsets[3] == 0);

    /* Where they meet, nothing is won; nor by what is less than a page. */
    memset(f.pooled, 0, sizeof f.pooled);
    f.pooled[2] = f.pooled[3] = f.chunk = 64 * KIB;
    compute(&f, 4, NULL);
    assert_int_equal(f.slab, 80 * KIB);
    memset(f.pooled, 0, sizeof f.pooled);
    f.pooled[10] = f.chunk = 2 * KIB;
    compute(&f, 4, NULL);
    assert_int_equal(f.slab, 80 * KIB);
    ir_graph_free(f.graph);
}

/* The pool's 16 KiB are too little for what the slab needs most, but without all of it less is
 * held. */
static void test_left_although_larger(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    f.placed[0] = (struct plan_placed){.first = 1, .last = 2, .type = bytes_type(&f, 64 * 1024)};
    f.placed[1] = (struct plan_placed){.first = 5, .last = 6, .type = bytes_type(&f, 48 * 1024)};
    f.thorough = true;
    f.pooled[5] = f.chunk = 16 * KIB;
    compute(&f, 2, NULL);
    assert_int_equal(f.slab, 0);
    assert_true(f.left[0] && f.left[1]);
    ir_graph_free(f.graph);
}

static size_t most_live(const struct fixture *f)
{
    size_t most = 0;
    for (uint32_t s = 0; s < MAX_STEPS; s++)
        most = f->live[s] > most ? f->live[s] : most;
    return most;
}

/* Less is held, or as much, whatever comes from the pool. */
static void test_random_left(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t random = 7;
    size_t pooled[MAX_STEPS], before, n_left = 0;
    for (int round = 0; round < 200; round++) {
        const uint32_t count = 1 + next_random(&random) % MAX_PLACED;
        uint32_t step = 0;
        setup(&f);
        for (uint32_t i = 0; i < count; i++) {
            step += next_random(&random) % 3;
            f.placed[i] =
                (struct plan_placed){.output = i,
                                     .first = step,
                                     .last = step + next_random(&random) % 20,
                                     .type = bytes_type(&f, next_random(&random) % 50000)};
        }
        for (uint32_t s = 0; s < MAX_STEPS; s++) {
            f.pooled[s] = s % 64 ? f.pooled[s - 1] : next_random(&random) % 300000;
            f.chunk = f.pooled[s] > f.chunk ? f.pooled[s] : f.chunk;
        }
        memcpy(pooled, f.pooled, sizeof pooled);
        compute(&f, count, NULL);
        before = most_live(&f) + f.chunk;
        f.thorough = true;
        compute(&f, count, NULL);
        check_disjoint(&f, count);
        assert_true(most_live(&f) + pool_needs(&f, count, pooled) <= before);
        for (uint32_t i = 0; i < count; i++)
            n_left += f.left[i] != 0;
        ir_graph_free(f.graph);
    }
    assert_true(n_left > 0);
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

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

#define LOOP(body)                                                                                 \
    "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4], %k: i64[1, 1], %u: f32[1], %t: i64[]) "  \
    "-> (%y as \"y\", %z as \"z\") {\n"                                                            \
    "  %y, %z = Loop@21(%t, _, %x, %x): f32[4], f32[4] {\n"                                        \
    "    body(%i: i64[], %d: bool[], %p: f32[4], %q: f32[4]) {\n" body "    }\n  }\n"              \
    "  return(%y, %z)\n}\n"
#define UPDATED(to, from) "      %" to " = ScatterND@18(%" from ", %k, %u): f32[4]\n"

/* What a loop updates, in its body: where the step is the last that reads it, under any name. */
static void test_updated_results(void **state)
{
    (void)state;
    assert_int_equal(
        count_results(LOOP(UPDATED("a", "p") UPDATED("b", "q") "return(%d, %a, %b)\n")), 2);
    assert_int_equal(count_results(LOOP(UPDATED("a", "p") "      %b = Neg@13(%q): f32[4]\n"
                                                          "return(%d, %a, %b)\n")),
                     2);
    /* crosswise; one of them twice; read behind; by another name; inside another op */
    assert_int_equal(
        count_results(LOOP(UPDATED("a", "p") UPDATED("b", "q") "return(%d, %b, %a)\n")), 0);
    assert_int_equal(count_results(LOOP(UPDATED("a", "p") "return(%d, %a, %a)\n")), 0);
    assert_int_equal(count_results(LOOP(UPDATED("a", "p") "      %b = Add@14(%p, %q): f32[4]\n"
                                                          "return(%d, %a, %b)\n")),
                     1);
    assert_int_equal(count_results(LOOP("      %v = Identity@21(%p): f32[4]\n" UPDATED(
                         "a", "p") "      %b = Add@14(%q, %v): f32[4]\n"
                                   "return(%d, %a, %b)\n")),
                     1);
    assert_int_equal(count_results(LOOP("      %r = ReduceMax@20(%p): f32[1]\n"
                                        "      %s = Shape@21(%p): i64[1]\n"
                                        "      %a = Expand@13(%r, %s): f32[4]\n" UPDATED(
                                            "b", "q") "return(%d, %a, %b)\n")),
                     1);
}

/* How many placed results lie in the caller's memory, where that is given. */
static uint32_t count_there(const char *text)
{
    struct ir_graph *graph;
    struct plan *plan = make_plan(text, &graph);
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_leaving; i++)
        n += plan->leaving[i].there;
    plan_free(plan);
    ir_graph_free(graph);
    return n;
}

/* Also what is computed in its place before, but not what is one of two that may be the output. */
static void test_leaving(void **state)
{
    (void)state;
    static const char *const before =
        "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4], %c: bool[]) -> (%y as \"y\") {\n";
    char *one = xprintf("%s  %%a = Cos@7(%%x): f32[4]\n  %%b = Neg@13(%%a): f32[4]\n"
                        "  %%y = Identity@21(%%b): f32[4]\n  return(%%y)\n}\n",
                        before);
    char *two = xprintf("%s  %%a = Cos@7(%%x): f32[4]\n  %%b = Exp@13(%%a): f32[4]\n"
                        "  %%e = Add@14(%%a, %%b): f32[4]\n"
                        "  %%y = If@21(%%c): f32[4] {\n"
                        "    then_branch() {\n      return(%%a)\n    }\n"
                        "    else_branch() {\n      return(%%e)\n    }\n  }\n"
                        "  return(%%y)\n}\n",
                        before);
    /* b is output 1, and output 0 only by one branch: in the other one, that is filled with x. */
    static const char *const other =
        "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4], %c: bool[]) -> (%y as \"y\", %b as "
        "\"b\") {\n  %a = Cos@7(%x): f32[4]\n  %b = Identity@21(%a): f32[4]\n"
        "  %y = If@21(%c): f32[4] {\n    then_branch() {\n      %d = Identity@21(%a): f32[4]\n"
        "      return(%d)\n    }\n    else_branch() {\n      return(%x)\n    }\n  }\n"
        "  return(%y, %b)\n}\n";
    assert_int_equal(count_there(one), 2);
    assert_int_equal(count_there(two), 0);
    assert_int_equal(count_there(other), 0);
    free(one);
    free(two);
}

/* ---- Updates --------------------------------------------------------------------------------- */

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

#define REVERSED_BY(begin)                                                                         \
    UPDATES("  %n = Constant() {value = i64[] 0}: i64[]\n"                                         \
            "  %l = Loop@16(%n, _, %" begin "): f32[4] {\n"                                        \
            "    body(%j: i64[], %c: bool[], %p: f32[4]) {\n"                                      \
            "      %q = Cos@7(%p): f32[4]\n      return(%c, %q)\n    }\n  }\n"                     \
            "  %i = Constant() {value = i64[4, 1] [3, 2, 1, 0]}: i64[4, 1]\n"                      \
            "  %b = ScatterND@18(%a, %i, %l): f32[4]\n"                                            \
            "  %z = Abs@13(%b): f32[4]\n")

/* Of a loop that may make no iteration the result may be what it begins with. */
static void test_updates_by_loops(void **state)
{
    (void)state;
    assert_int_equal(count_in_place(REVERSED_BY("x")), 1);
    assert_int_equal(count_in_place(REVERSED_BY("a")), 0);
    assert_int_equal(
        count_in_place(UPDATES("  %t = Greater@13(%u, %u): bool[1]\n"
                               "  %l = If@16(%t): f32[4] {\n"
                               "    then_branch() {\n      return(%a)\n    }\n"
                               "    else_branch() {\n      return(%x)\n    }\n  }\n"
                               "  %i = Constant() {value = i64[4, 1] [3, 2, 1, 0]}: i64[4, 1]\n"
                               "  %b = ScatterND@18(%a, %i, %l): f32[4]\n"
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

/* The same of ops that make %c of %b, which lies on nothing. */
static uint32_t count_behind_sum(const char *ops)
{
    char *text =
        xprintf("%s%s%s",
                "graph @g opset(\"\": 26) ir_version(10) (%x: f32[4], %k: i64[1, 1]) -> (%z) {\n"
                "  %s = Constant() {value = i64[2] [4, 1]}: i64[2]\n"
                "  %b = Sum@13(%x, %x, %x)\n",
                ops, "  %z = ReduceMax@20(%c)\n  return(%z)\n}\n");
    const uint32_t n = count_in_place(text);
    free(text);
    return n;
}

/* Of other rows that say so, of operand 0 alone, and through names that views give. */
static void test_lies_over(void **state)
{
    (void)state;
    static const char *const places[] = {
        "  %c = Softmax@13(%b)\n",
        "  %c = LayerNormalization@17(%b, %x)\n",
        "  %c = BitCast@26(%b) {to = 6}\n",
        "  %v = Reshape@21(%b, %s)\n  %c = Exp@13(%v)\n",
        "  %v = Flatten@21(%b)\n  %w = Identity@21(%v)\n  %c = Exp@13(%w)\n",
        /* read twice, element by element */
        "  %v = Identity@21(%b)\n  %c = Add@14(%b, %v)\n",
    };
    static const char *const apart[] = {
        /* fewer bytes, more elements */
        "  %c = Cast@21(%b) {to = 10}\n",
        "  %v = Reshape@21(%b, %s)\n  %c = Add@14(%v, %x)\n",
        /* what is normalized scales itself; under another name */
        "  %c = LayerNormalization@17(%b, %b)\n",
        "  %v = Identity@21(%b)\n  %c = LayerNormalization@17(%b, %v)\n",
        /* read later, itself or by another name */
        "  %e = Softmax@13(%b)\n  %c = Concat@13(%e, %b) {axis = 0}\n",
        "  %v = Identity@21(%b)\n  %e = Exp@13(%b)\n  %c = Concat@13(%e, %v) {axis = 0}\n",
        "  %v = Identity@21(%b)\n  %e = Exp@13(%v)\n  %c = Concat@13(%e, %b) {axis = 0}\n",
        /* it is not element by element */
        "  %c = LRN@13(%b) {size = 1}\n",
        "  %c = Transpose@21(%b)\n",
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        assert_int_equal(count_behind_sum(places[i]), 1);
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        assert_int_equal(count_behind_sum(apart[i]), 0);
}

/* What both branches return as one result lies in one place; `counted` results, and each behind one
 * that is on its own. */
static uint32_t count_in_branches(const char *then_branch, const char *else_branch)
{
    char *text =
        xprintf("%s%s%s%s%s",
                "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4], %c: bool[]) -> (%z) {\n"
                "  %y, %w = If@21(%c) {\n    then_branch() {\n",
                then_branch, "    }\n    else_branch() {\n", else_branch,
                "    }\n  }\n  %r = Concat@13(%y, %w) {axis = 0}\n"
                "  %z = ReduceMax@20(%r)\n  return(%z)\n}\n");
    const uint32_t n = count_in_place(text);
    free(text);
    return n;
}

static void test_branches(void **state)
{
    (void)state;
#define TWO(a, b) "%" a " = Cos@7(%x)\n %" b " = Sin@7(%x)\n return(%" a ", %" b ")\n"
    assert_int_equal(count_in_branches(TWO("a", "b"), TWO("d", "e")), 2);
    /* through a view, and of an If in a branch: both of its own with that of the other */
    assert_int_equal(count_in_branches("%a = Cos@7(%x)\n %b = Sin@7(%x)\n %v = Identity@21(%b)\n"
                                       " return(%a, %v)\n",
                                       TWO("d", "e")),
                     2);
    assert_int_equal(
        count_in_branches(TWO("a", "b"),
                          "%d, %e = If@21(%c) { then_branch() {" TWO(
                              "f", "g") "} else_branch() {" TWO("h", "i") "} } return(%d, %e)\n"),
        4);
    /* what is both results can be in one place alone; what comes from outside, another type */
    assert_int_equal(count_in_branches(TWO("a", "b"), "%d = Cos@7(%x)\n return(%d, %d)\n"), 1);
    assert_int_equal(count_in_branches("%d = Cos@7(%x)\n return(%d, %d)\n", TWO("a", "b")), 1);
    assert_int_equal(count_in_branches(TWO("a", "b"), "%d = Cos@7(%x)\n return(%x, %d)\n"), 1);
    assert_int_equal(count_in_branches(TWO("a", "b"), "%d = Cos@7(%x)\n"
                                                      " %e = Concat@13(%d, %d) {axis = 0}\n"
                                                      " return(%d, %e)\n"),
                     1);
}

/* What a loop carries on lies where what it was given lay. */
static uint32_t count_in_loop(const char *before, const char *given, const char *body,
                              const char *behind)
{
    char *text =
        xprintf("%s%s%s%s%s%s%s%s%s",
                "graph @g opset(\"\": 21) ir_version(10) (%x: f32[4], %t: i64[]) -> (%z) {\n"
                "  %a = Cos@7(%x)\n",
                before, "  %y = Loop@21(%t, _, %", given,
                ") {\n    body(%i: i64[], %d: bool[], %p: f32[4]) {\n", body,
                "    }\n  }\n  %r = ReduceMax@20(%y)\n", behind, "  return(%z)\n}\n");
    const uint32_t n = count_in_place(text);
    free(text);
    return n;
}

static void test_loops(void **state)
{
    (void)state;
    static const char *const behind = "  %z = ReduceMax@20(%r)\n",
                             *const body = "%m = ReduceMax@20(%p)\n %e = Expand@13(%m, %s)\n"
                                           " return(%d, %e)\n",
                             *const shape = "  %s = Constant() {value = i64[1] [4]}: i64[1]\n";
    assert_int_equal(count_in_loop(shape, "a", body, behind), 1);
    assert_int_equal(count_in_loop("  %s = Constant() {value = i64[1] [4]}: i64[1]\n"
                                   "  %v = Identity@21(%a)\n  %b = Concat@13(%v, %a) {axis = 0}\n"
                                   "  %a2 = Cos@7(%x)\n  %v2 = Identity@21(%a2)\n",
                                   "v2", body, behind),
                     1);
    /* It is read behind the loop, in it, by another name; the old value is read when the new one is
     * there. */
    assert_int_equal(count_in_loop(shape, "a", body, "  %z = Add@14(%r, %a)\n"), 0);
    assert_int_equal(count_in_loop("  %s = Constant() {value = i64[1] [4]}: i64[1]\n"
                                   "  %v = Identity@21(%a)\n",
                                   "a", body, "  %z = Add@14(%r, %v)\n"),
                     0);
    assert_int_equal(count_in_loop(shape, "a",
                                   "%m = ReduceMax@20(%p)\n %e = Expand@13(%m, %s)\n"
                                   " %g = ReduceMax@20(%a)\n %f = Add@14(%e, %g)\n"
                                   " return(%d, %f)\n",
                                   behind),
                     0);
    assert_int_equal(count_in_loop(shape, "a",
                                   "%m = ReduceMax@20(%p)\n %e = Expand@13(%m, %s)\n"
                                   " %g = Sub@14(%m, %p)\n return(%d, %e)\n",
                                   behind),
                     0);
    /* an input is the caller's */
    assert_int_equal(count_in_loop(shape, "x", body, behind), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lifetimes),
        cmocka_unit_test(test_chain_reuses_memory),
        cmocka_unit_test(test_little_is_unused),
        cmocka_unit_test(test_left_to_pool),
        cmocka_unit_test(test_left_although_larger),
        cmocka_unit_test(test_random_left),
        cmocka_unit_test(test_symbolic_sizes),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_updated_results),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_updates_by_loops),
        cmocka_unit_test(test_element_wise),
        cmocka_unit_test(test_lies_over),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
