/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random loops compute what they computed after passes: trip counts that are absent, constant,
 * negative, the largest, or the run's; conditions that hold, fail, count, or look at data; carried
 * tensors, counters, sequences, and tensors that grow; loops in loops; scan outputs of no
 * iteration.
 *
 * TSSA_SEED=N runs one of them and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/op_run.h"
#include "common/random_programs.h"
#include "common/rewrite_check.h"

#define PASSES                                                                                     \
    "infer induction loop_conditions carried_values fold_shapes sequences unroll fold_shapes "     \
    "sequences infer dead_code"

struct generator {
    struct random random;
    struct text text;
    int n_loops;
};

static int pick(struct generator *g, int count)
{
    return (int)random_int(&g->random, 0, count - 1);
}

#define CHOOSE(g, array) ((array)[pick((g), (int)(sizeof(array) / sizeof *(array)))])

/* Trip count and condition; returns whether they alone end the loop. */
static bool put_limits(struct generator *g)
{
    static const char *const counts[] = {"%n", "%none", "%one", "%two", "%three", "%max", "_"};
    static const char *const conditions[] = {"_", "%true", "%flag", "%enter", "%never"};
    int count = pick(g, 7);
    text_printf(&g->text, "%s, %s", counts[count], CHOOSE(g, conditions));
    return count < 5;
}

/* The ops of a condition %m<id> that an iteration returns. */
static void put_condition(struct generator *g, int id, bool ends)
{
    struct text *text = &g->text;
    static const char *const limits[] = {"%n", "%two", "%three", "%list"};
    static const char *const comparisons[] = {"Less", "LessOrEqual"};
    text_printf(text, "  %%o%d = Constant() {value = i64[] %d}\n", id, pick(g, 4));
    text_printf(text, "  %%i%dn = Add(%%i%d, %%o%d)\n", id, id, id);
    if (pick(g, 2))
        text_printf(text, "  %%l%d = %s(%%i%dn, %s)\n", id, CHOOSE(g, comparisons), id,
                    CHOOSE(g, limits));
    else
        text_printf(text, "  %%g%d = Greater(%%i%dn, %s)\n  %%l%d = Not(%%g%d)\n", id, id,
                    CHOOSE(g, limits), id, id);
    /* A limit of one element makes a condition of one element. */
    text_printf(text, "  %%k%d = Reshape(%%l%d, %%no_dims)\n", id, id);
    text_printf(text, "  %%s%d = ReduceSum(%%v%d) {keepdims = 0}\n", id, id);
    text_printf(text, "  %%d%d = Less(%%s%d, %%limit)\n", id, id);
    switch (pick(g, ends ? 7 : 4)) {
    case 0:
        text_printf(text, "  %%m%d = Identity(%%k%d)\n", id, id);
        break;
    case 1:
        text_printf(text, "  %%m%d = And(%%d%d, %%k%d)\n", id, id, id);
        break;
    case 2:
        text_printf(text, "  %%a%d = And(%%k%d, %%flag)\n  %%m%d = And(%%c%d, %%a%d)\n", id, id, id,
                    id, id);
        break;
    case 3:
        text_printf(text, "  %%m%d = Identity(%%never)\n", id);
        break;
    case 4:
        text_printf(text, "  %%m%d = Identity(%%true)\n", id);
        break;
    case 5:
        text_printf(text, "  %%m%d = Identity(%%c%d)\n", id, id);
        break;
    default:
        text_printf(text, "  %%m%d = Identity(%%d%d)\n", id, id);
    }
}

/* %nv<id> from the carried %v<id>, the counter and an element of the sequence. */
static void put_body(struct generator *g, int id)
{
    static const char *const ops[] = {"Add", "Sub", "Max"};
    static const char *const steps[] = {"%one", "%two", "%none", "%n"};
    struct text *text = &g->text;
    text_printf(text, "  %%p%d = Mod(%%%s%d, %%three)\n", id, pick(g, 2) ? "i" : "j", id);
    text_printf(text, "  %%e%d = SequenceAt(%%items, %%p%d)\n", id, id);
    text_printf(text, "  %%x%d = ReduceSum(%%e%d, %%axis) {keepdims = 0}\n", id, id);
    text_printf(text, "  %%jf%d = Cast(%%j%d) {to = 1}\n", id, id);
    text_printf(text, "  %%xj%d = %s(%%x%d, %%jf%d)\n", id, CHOOSE(g, ops), id, id);
    text_printf(text, "  %%nv%d = %s(%%v%d, %%xj%d)\n", id, CHOOSE(g, ops), id, id);
    text_printf(text, "  %%nj%d = %s(%%j%d, %s)\n", id, pick(g, 3) ? "Add" : "Sub", id,
                CHOOSE(g, steps));
    text_printf(text, "  %%row%d = Unsqueeze(%%%sv%d, %%axis)\n", id, pick(g, 2) ? "n" : "", id);
    text_printf(text, "  %%nw%d = Concat(%%w%d, %%row%d) {axis = 0}\n", id, id, id);
    text_printf(text, "  %%nq%d = SequenceInsert(%%q%d, %%nw%d%s)\n", id, id, id,
                pick(g, 3) ? "" : ", %zero");
}

static void put_loop(struct generator *g, int depth, const char *v, const char *q)
{
    struct text *text = &g->text;
    int id = ++g->n_loops;
    text_printf(text, "  %%rv%d, %%rj%d, %%rw%d, %%rq%d, %%sv%d, %%sj%d = Loop(", id, id, id, id,
                id, id);
    bool ends = put_limits(g);
    text_printf(text, ", %s, %s, %%rows, %s) {\n body(%%i%d: i64[], %%c%d: bool[], %%v%d: f32[2], ",
                v, pick(g, 2) ? "%zero" : "%n", q, id, id, id);
    text_printf(text, "%%j%d: i64[], %%w%d: f32[*], %%q%d: seq(f32[*])) {\n", id, id, id);
    put_body(g, id);
    put_condition(g, id, ends);
    char last[16], sequence[16];
    snprintf(last, sizeof last, "%%nv%d", id);
    snprintf(sequence, sizeof sequence, "%%nq%d", id);
    if (depth > 0 && pick(g, 2)) {
        put_loop(g, depth - 1, last, pick(g, 2) ? sequence : "%empty");
        snprintf(last, sizeof last, "%%rv%d", id + 1);
        if (pick(g, 2))
            snprintf(sequence, sizeof sequence, "%%rq%d", id + 1);
    }
    text_printf(text, "  return(%%m%d, %s, %%nj%d, %%nw%d, %s, %s, %%%sj%d)\n } }\n", id, last, id,
                id, sequence, last, pick(g, 2) ? "n" : "", id);
}

static char *make_program(uint64_t seed)
{
    struct generator g = {.random = {seed * UINT64_C(0x9e3779b97f4a7c15) + 1}};
    text_init(&g.text, &allocator_default);
    text_puts(
        &g.text,
        "graph (%n: i64[], %x: f32[R, 2], %v: f32[2], %flag: bool[]) -> "
        "(%rv1, %rj1, %rw1, %rq1, %sv1, %sj1, %length) {\n"
        " %none = Constant() {value = i64[] -1}\n %zero = Constant() {value = i64[] 0}\n"
        " %one = Constant() {value = i64[] 1}\n %two = Constant() {value = i64[] 2}\n"
        " %three = Constant() {value = i64[] 3}\n %list = Constant() {value = i64[1] [2]}\n"
        " %max = Constant() {value = i64[] 9223372036854775807}\n"
        " %axis = Constant() {value = i64[1] [0]}\n %no_dims = Constant() {value = i64[0] []}\n"
        " %limit = Constant() {value = f32[] 4}\n %true = Constant() {value = bool[] true}\n"
        " %never = Constant() {value = bool[] false}\n %enter = Less(%zero, %n)\n"
        " %rows = Unsqueeze(%v, %axis)\n %neg = Neg(%x)\n %empty = SequenceEmpty()\n"
        " %items = SequenceConstruct(%x, %rows, %neg)\n");
    put_loop(&g, 2, "%v", "%empty");
    text_puts(&g.text, " %length = SequenceLength(%rq1)\n"
                       " return(%rv1, %rj1, %rw1, %rq1, %sv1, %sj1, %length)\n}\n");
    char *copy = strdup(text_string(&g.text));
    text_free(&g.text);
    return copy;
}

struct tally {
    int ran, removed; /* runs that did not fail, programs that lost a loop */
};

static void run_seed(uint64_t seed, bool print, struct tally *tally)
{
    char *text = make_program(seed);
    if (print)
        fputs(text, stderr);
    for (int64_t trips = -1; trips <= 3; trips++)
        for (int all = 0; all <= 1; all++)
            tally->ran += rewrite_check(&(const struct rewrite_check){.text = text,
                                                                      .passes = all ? NULL : PASSES,
                                                                      .size = 4,
                                                                      .scalar = trips,
                                                                      .seed = seed + 1});
    tally->removed += rewrite_count(text, PASSES, "Loop@") < rewrite_count(text, "infer", "Loop@");
    free(text);
}

static void loops_compute_the_same(void **state)
{
    (void)state;
    uint64_t seed;
    struct tally tally = {0};
    if (programs_seed(&seed)) {
        run_seed(seed, true, &tally);
        return;
    }
    int count = (int)programs_count(200);
    for (int i = 1; i <= count; i++)
        run_seed((uint64_t)i, false, &tally);
    /* or the test would test nothing */
    assert_true(tally.ran > 5 * count);
    assert_true(tally.removed > count / 10);
}

/* Rows `first`, `first` + 1, ... of a tensor of `rows`, in a loop of `trips` that may end early. */
static int stack_rows(int rows, int first, int trips, int64_t scalar)
{
    char text[2048];
    static const char *const passes =
        "scan_outputs carried_values fold_shapes fold_constants infer dead_code";
    snprintf(text, sizeof text,
             "graph (%%n: i64[], %%x: f32[%d, 2], %%v: f32[2]) -> (%%t, %%w) {\n"
             " %%trips = Constant() {value = i64[] %d}\n"
             " %%first = Constant() {value = i64[] %d}\n"
             " %%t, %%w = Loop(%%trips, _, %%x, %%v) {\n"
             "  body(%%i: i64[], %%c: bool[], %%t0: f32[%d, 2], %%v0: f32[2]) {\n"
             "   %%at = Add(%%i, %%first)\n"
             "   %%f = Cast(%%at) {to = 1}\n"
             "   %%v1 = Add(%%v0, %%f)\n"
             "   %%t1 = assign(%%t0, %%v1, %%at) {rule = [select(0, $0)]}\n"
             "   %%go = Less(%%i, %%n)\n"
             "   return(%%go, %%t1, %%v1)\n } }\n return(%%t, %%w)\n}\n",
             rows, trips, first, rows);
    int64_t iterations = scalar < 1 ? 1 : scalar + 1 < trips ? scalar + 1 : trips;
    bool ran = rewrite_check(&(const struct rewrite_check){
        .text = text, .passes = passes, .size = 1, .scalar = scalar, .seed = 1});
    assert_int_equal(ran, first + iterations <= rows);
    return rewrite_count(text, passes, "assign(") == 0;
}

static void appended_rows_are_stacked(void **state)
{
    (void)state;
    int stacked = 0;
    for (int rows = 1; rows <= 4; rows++)
        for (int first = 0; first <= 2; first++)
            for (int trips = 1; trips <= 4; trips++)
                for (int64_t scalar = -1; scalar <= 4; scalar++) {
                    bool fits = first + trips <= rows;
                    assert_int_equal(stack_rows(rows, first, trips, scalar), fits);
                    stacked += fits;
                }
    assert_true(stacked > 0);
}

static void grown_sequences_are_stacked(void **state)
{
    (void)state;
    static const char *const text =
        "graph (%n: i64[], %x: f32[8, 3, 2], %y: f32[8, R]) -> (%a, %b, %l, %e, %c, %d) {\n"
        " %empty = SequenceEmpty()\n %one = Constant() {value = i64[] -1}\n"
        " %s, %t = Loop(%n, _, %empty, %empty) {\n"
        "  body(%i: i64[], %go: bool[], %s0: seq(f32[*]), %t0: seq(f32[*])) {\n"
        "   %r0 = Gather(%x, %i) {axis = 0}\n %s1 = SequenceInsert(%s0, %r0)\n"
        "   %r1 = Gather(%y, %i) {axis = 0}\n %t1 = SequenceInsert(%t0, %r1)\n"
        "   return(%go, %s1, %t1)\n } }\n"
        " %a = ConcatFromSequence(%s) {axis = 2, new_axis = 1}\n"
        " %b = ConcatFromSequence(%s) {axis = 1}\n %l = SequenceLength(%s)\n"
        " %e = SequenceAt(%s, %one)\n"
        " %c = ConcatFromSequence(%t) {axis = -1, new_axis = 1}\n"
        " %d = ConcatFromSequence(%t) {axis = 0, new_axis = 1}\n"
        " return(%a, %b, %l, %e, %c, %d)\n}\n";
    static const char *const passes = "stack_sequences carried_values infer dead_code";
    for (int64_t trips = 1; trips <= 9; trips++)
        assert_int_equal(
            rewrite_check(&(const struct rewrite_check){
                .text = text, .passes = passes, .size = 4, .scalar = trips, .seed = 7}),
            trips <= 8);
    assert_int_equal(rewrite_count(text, passes, "Sequence"), 0);
}

/*
 * One value, to the elements [a, b], [a, b + 1], ... of a tensor; indices may count from the end.
 */
static void one_value_is_written_at_once(void **state)
{
    (void)state;
    int ran = 0;
    for (int a = -4; a <= 3; a += 2)
        for (int b = -3; b <= 3; b++)
            for (int64_t trips = -1; trips <= 6; trips++) {
                char text[1024];
                snprintf(text, sizeof text,
                         "graph (%%n: i64[], %%x: f32[R, 5], %%v: f32[]) -> (%%y) {\n"
                         " %%a = Constant() {value = i64[] %d}\n"
                         " %%b = Constant() {value = i64[] %d}\n"
                         " %%y = Loop(%%n, _, %%x) {\n"
                         "  body(%%i: i64[], %%c: bool[], %%t: f32[R, 5]) {\n"
                         "   %%at = Add(%%i, %%b)\n"
                         "   %%t1 = assign(%%t, %%v, %%a, %%at)"
                         " {rule = [select(0, $0), select(0, $1)]}\n"
                         "   return(%%c, %%t1)\n } }\n return(%%y)\n}\n",
                         a, b);
                const struct pass_batching batching = {.block = trips & 3}; /* 0: as it costs */
                ran += rewrite_check(&(const struct rewrite_check){.text = text,
                                                                   .passes = "batch_writes",
                                                                   .size = 4,
                                                                   .scalar = trips,
                                                                   .batching = batching,
                                                                   .seed = 3});
                assert_int_equal(rewrite_count_batched(text, "batch_writes", batching, "Loop@"),
                                 batching.block > 0);
            }
    assert_true(ran > 50);
}

/* Of iterations that overwrite a row, and one that is computed anew, the last one is left. */
static void last_iteration_is_enough(void **state)
{
    (void)state;
    for (int trips = 1; trips <= 5; trips++)
        for (int64_t row = -3; row <= 2; row++) {
            char text[1024];
            snprintf(text, sizeof text,
                     "graph (%%row: i64[], %%x: f32[3, 2], %%y: f32[8, 2]) -> (%%a, %%b) {\n"
                     " %%trips = Constant() {value = i64[] %d}\n"
                     " %%a, %%b = Loop(%%trips, _, %%x, %%y) {\n"
                     "  body(%%i: i64[], %%c: bool[], %%t: f32[3, 2], %%u: f32[8, 2]) {\n"
                     "   %%r = Gather(%%y, %%i) {axis = 0}\n"
                     "   %%t1 = assign(%%t, %%r, %%row) {rule = [select(0, $0)]}\n"
                     "   %%u1 = Sub(%%y, %%r)\n"
                     "   return(%%c, %%t1, %%u1)\n } }\n return(%%a, %%b)\n}\n",
                     trips);
            assert_true(rewrite_check(&(const struct rewrite_check){
                .text = text, .passes = "unroll", .size = 1, .scalar = row, .seed = 5}));
            assert_int_equal(rewrite_count(text, "unroll", "Loop@"), 0);
        }
}

/* What a body returns as it was captured tells the shape of a stack without iterations, though
 * nobody knows it before (the element of a sequence). */
static void captured_shapes(void **state)
{
    static const char text[] =
        "graph @g opset(\"\": 18) ir_version(8) (%n: i64[], %x: f32[N]) -> (%y, %z) {\n"
        "  %zero = Constant() {value = i64[] 0}\n  %axis = Constant() {value = i64[1] [0]}\n"
        "  %yes = Constant() {value = bool[] true}\n  %s = SequenceConstruct(%x)\n"
        "  %e = SequenceAt(%s, %zero)\n  %u = Unsqueeze(%x, %axis)\n"
        "  %l = Loop(%n, %yes) {\n"
        "    body(%i: i64[], %c: bool[]) {\n      return(%c, %e)\n    }\n  }\n"
        "  %y = Concat(%u, %l) {axis = 0}\n"
        "  %none = Slice(%u, %axis, %axis, %axis)\n"
        "  %m = Scan(%none) {num_scan_inputs = 1} {\n"
        "    body(%r: f32[N]) {\n      return(%e)\n    }\n  }\n"
        "  %z = Concat(%u, %m) {axis = 0}\n"
        "  return(%y, %z)\n}\n";
    (void)state;
    for (int64_t trips = 0; trips < 3; trips++)
        assert_true(
            rewrite_check(&(const struct rewrite_check){.text = text, .size = 4, .scalar = trips}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_compute_the_same),
        cmocka_unit_test(captured_shapes),
        cmocka_unit_test(appended_rows_are_stacked),
        cmocka_unit_test(grown_sequences_are_stacked),
        cmocka_unit_test(one_value_is_written_at_once),
        cmocka_unit_test(last_iteration_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
