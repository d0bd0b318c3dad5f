/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is joined is computed in its place (runtime/joined.c): which operands of Concats lie there,
 * and that runs give the bits that they give where everything comes from the pool, with memory that
 * nothing reads any more written over (runtime/poison.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/same_value.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"
#include "runtime/poison.h"

#define MOST 300 /* rows */
#define RUNS 4   /* sizes are learnt, and the layout takes its time */

struct program {
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
};

static void open_program(struct program *p, const char *text, bool pooled)
{
    no_error(ir_parse(&allocator_default, text, strlen(text), &p->graph));
    no_error(ir_infer_graph(p->graph));
    no_error(plan_create(p->graph, test_device(), &p->plan));
    if (pooled)
        p->plan->n_placed = p->plan->n_leaving = p->plan->n_parts = 0;
    else
        no_error(poison_plan(p->plan));
    no_error(run_create(p->plan, &allocator_default, NULL, false, &p->run));
}

static void close_program(struct program *p)
{
    run_free(p->run);
    plan_free(p->plan);
    ir_graph_free(p->graph);
}

static void run_program(struct program *p, float *x, int64_t n, struct value *result)
{
    struct value input = {.kind = TSSA_KIND_TENSOR,
                          .tensor = {.dtype = TSSA_FLOAT, .rank = 2, .dims = {n, 4}, .data = x}};
    int64_t trips = 3;
    struct value count = {.kind = TSSA_KIND_TENSOR,
                          .tensor = {.dtype = TSSA_INT64, .data = &trips}};
    const struct value *inputs[] = {&input, &count};
    no_error(run_execute(p->run, inputs, result));
}

static uint32_t lying(const struct program *p)
{
    const struct layout *layout = &p->run->slab.parts[SPACE_HOST].layout;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->plan->n_parts; i++)
        n += layout->begins[i] != SIZE_MAX;
    return n;
}

/* How many operands lie where they belong in what is joined. */
static uint32_t count_parts(const char *ops)
{
    static const int64_t sizes[] = {7, MOST, 12, 33};
    static float x[MOST * 4];
    char *text = xprintf("%s%s%s",
                         "graph @g opset(\"\": 21) ir_version(10) (%x: f32[N, 4], %t: i64[]) -> "
                         "(%z) {\n  %s = Constant() {value = i64[2] [4, -1]}: i64[2]\n"
                         "  %o = Constant() {value = i64[1] [0]}: i64[1]\n",
                         ops, "\n  return(%z)\n}\n");
    struct program placed, pooled;
    uint32_t n = 0;
    for (int i = 0; i < MOST * 4; i++)
        x[i] = (float)((i * 37) % 101 - 50) / 16;
    open_program(&placed, text, false);
    open_program(&pooled, text, true);
    for (int i = 0; i < 4 * RUNS; i++) {
        struct value got = {.kind = TSSA_KIND_NONE}, expected = {.kind = TSSA_KIND_NONE};
        run_program(&placed, x, sizes[i / RUNS], &got);
        run_program(&pooled, x, sizes[i / RUNS], &expected);
        assert_true(same_value(&got, &expected));
        value_release(&got);
        value_release(&expected);
        n = i ? n : lying(&placed);
        assert_int_equal(lying(&placed), n);
    }
    close_program(&placed);
    close_program(&pooled);
    free(text);
    return n;
}

#define TWO "  %a = Cos@7(%x)\n  %b = Exp@13(%x)\n"
#define JOIN(to, operands, axis) "  %" to " = Concat@13(" operands ") {axis = " axis "}\n"
#define END(of) "  %z = ReduceSum@13(%" of ", %o)\n"

static void test_operands(void **state)
{
    (void)state;
    assert_int_equal(count_parts(TWO JOIN("c", "%a, %b", "0") END("c")), 2);
    assert_int_equal(count_parts(TWO JOIN("c", "%x, %b, %a, %x", "0") END("c")), 2);
    /* one of them twice */
    assert_int_equal(count_parts(TWO JOIN("c", "%a, %b, %a", "0") END("c")), 2);
    /* rows are elsewhere; there is one */
    assert_int_equal(count_parts(TWO JOIN("c", "%a, %b", "1") END("c")), 0);
    assert_int_equal(
        count_parts(TWO "  %v = Unsqueeze@21(%a, %o)\n  %w = Unsqueeze@21(%b, %o)\n" JOIN(
            "c", "%v, %w", "1") END("c")),
        2);
    /* it is the caller's */
    assert_int_equal(count_parts(TWO JOIN("z", "%a, %b", "0")), 0);
    /* one is read later, too */
    assert_int_equal(count_parts(TWO JOIN("c", "%a, %b", "0") "  %d = Sin@7(%a)\n" JOIN(
                         "e", "%c, %d", "0") END("e")),
                     3);
    /* who makes one reads the other */
    assert_int_equal(count_parts("  %a = Cos@7(%x)\n  %b = ReduceSum@13(%a, %o)\n" JOIN(
                         "c", "%a, %b", "0") END("c")),
                     2);
}

/* Under other names, changed in place and computed on one another. */
static void test_chains(void **state)
{
    (void)state;
    assert_int_equal(count_parts(TWO "  %v = Reshape@21(%a, %s)\n  %w = Reshape@21(%b, %s)\n"
                                     "  %n = Neg@13(%w)\n" JOIN("c", "%v, %n", "0") END("c")),
                     2);
    assert_int_equal(
        count_parts(TWO "  %k = Constant() {value = i64[1, 1] [0]}: i64[1, 1]\n"
                        "  %u = Constant() {value = f32[1, 4] [1, 2, 3, 4]}: f32[1, 4]\n"
                        "  %v = ScatterND@18(%b, %k, %u)\n" JOIN("c", "%a, %v", "0") END("c")),
        2);
    /* what is changed later is the whole, and what was there before it */
    assert_int_equal(
        count_parts(TWO "  %k = Constant() {value = i64[1, 1] [0]}: i64[1, 1]\n"
                        "  %u = Constant() {value = f32[1, 4] [1, 2, 3, 4]}: f32[1, 4]\n" JOIN(
                            "c", "%a, %b", "0") "  %v = ScatterND@18(%a, %k, %u)\n"
                                                "  %w = ScatterND@18(%c, %k, %u)\n" JOIN(
                                                    "d", "%v, %w", "0") END("d")),
        3);
}

static void test_joined_again(void **state)
{
    (void)state;
    assert_int_equal(count_parts(TWO JOIN("c", "%a, %b", "0") "  %d = Sin@7(%x)\n" JOIN(
                         "e", "%d, %c", "0") END("e")),
                     4);
    assert_int_equal(count_parts(TWO JOIN("c", "%a, %b", "0") "  %d = Abs@13(%c)\n" JOIN(
                         "e", "%d, %c", "0") JOIN("f", "%x, %e", "0") END("f")),
                     5);
}

/* What a run alone tells has no place before. */
static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(count_parts("  %m = Constant() {value = f32[] 0}: f32[]\n"
                                 "  %i = Constant() {value = i64[1] [1]}: i64[1]\n"
                                 "  %f = ReduceMax@20(%x, %i) {keepdims = 0}\n"
                                 "  %h = Greater@13(%f, %m)\n  %a = Cos@7(%x)\n"
                                 "  %k = Compress@11(%x, %h) {axis = 0}\n" JOIN("c", "%a, %k", "0")
                                     END("c")),
                     0);
}

static void test_blocks(void **state)
{
    (void)state;
    /* in the body, and not what is carried on, or comes from outside */
    assert_int_equal(
        count_parts("  %y = Loop@21(%t, _, %x): f32[N, 4] {\n"
                    "    body(%i: i64[], %d: bool[], %p: f32[N, 4]) {\n"
                    "      %a = Cos@7(%p)\n      %b = Exp@13(%p)\n    " JOIN(
                        "c", "%a, %b", "0") "      %r = ReduceSum@13(%c, %o)\n"
                                            "      %q = Sub@14(%p, %r)\n"
                                            "      return(%d, %q)\n    }\n  }\n" END("y")),
        2);
    assert_int_equal(
        count_parts("  %a = Cos@7(%x)\n  %b = Exp@13(%x)\n"
                    "  %y = Loop@21(%t, _, %x): f32[N, 4] {\n"
                    "    body(%i: i64[], %d: bool[], %p: f32[N, 4]) {\n    " JOIN(
                        "c", "%a, %p, %b", "0") "      %r = ReduceSum@13(%c, %o)\n"
                                                "      %q = Sub@14(%p, %r)\n"
                                                "      return(%d, %q)\n    }\n  }\n" END("y")),
        0);
    assert_int_equal(
        count_parts("  %c = Concat@13(%x, %x) {axis = 0}\n"
                    "  %y = Loop@21(%t, _, %c): f32[2*N, 4] {\n"
                    "    body(%i: i64[], %d: bool[], %p: f32[2*N, 4]) {\n"
                    "      %r = ReduceSum@13(%p, %o)\n      %a = Sub@14(%x, %r)\n"
                    "      %b = Add@14(%x, %r)\n    " JOIN(
                        "q", "%a, %b", "0") "      return(%d, %q)\n    }\n  }\n" END("y")),
        0);
}

/* A step in between needs the most memory, and would need more. */
static void test_memory(void **state)
{
    (void)state;
#define BETWEEN(of)                                                                                \
    "  %e = Concat@13(%x, %x, %x, %x, %x, %x, %x, %x) {axis = 0}\n  %f = ReduceMax@20(%e)\n"       \
    "  %b = Sub@14(%" of ", %f)\n"
    assert_int_equal(
        count_parts("  %a = Cos@7(%x)\n" BETWEEN("x") JOIN("c", "%a, %b", "0") END("c")), 1);
    /* the most is elsewhere */
    assert_int_equal(count_parts("  %a = Cos@7(%x)\n" BETWEEN("x") JOIN("c", "%a, %b", "0")
                                     JOIN("g", "%c, %x, %x, %x, %x, %x, %x, %x, %x", "0") END("g")),
                     2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operands),     cmocka_unit_test(test_chains),
        cmocka_unit_test(test_joined_again), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_blocks),       cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
