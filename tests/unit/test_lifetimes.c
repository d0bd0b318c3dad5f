/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in the slab is nobody else's while it is in use: no step changes what lies in another
 * slot, in any committed model and in graphs that pass values through branches and loops in every
 * way; and these give what they give when everything comes from the pool.
 */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/committed_models.h"
#include "common/model_plan.h"
#include "common/no_error.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

/* ---- The check around every step ------------------------------------------------------------- */

#define MOST_STEPS 4096

static step_run
    plain[MOST_STEPS]; /* of the plan that is being run; cmocka runs one test at a time */

static uint64_t hash(const struct tensor *tensor)
{
    const unsigned char *bytes = tensor->data;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0, n = tensor_bytes(tensor); i < n; i++)
        h = (h ^ bytes[i]) * 1099511628211u;
    return h;
}

static bool is_result(const struct run *run, const struct step *step, uint32_t slot)
{
    for (uint32_t i = 0; i < step->n_outputs; i++)
        if (run->plan->outputs[step->first_output + i] == slot)
            return true;
    return false;
}

/* What nobody reads any more may be written over. */
static bool dies(const struct step *step, uint32_t slot)
{
    for (uint32_t i = 0; i < step->n_release; i++)
        if (step->release[i] == slot)
            return true;
    return false;
}

static bool has_bytes(const struct value *value)
{
    return value->kind == TSSA_KIND_TENSOR && value->tensor.dtype != TSSA_STRING;
}

static tssa_status *run_watched(struct run *run, const struct step *step)
{
    const uint32_t n = run->plan->n_slots;
    struct value *before = xcalloc(n, sizeof *before);
    uint64_t *hashes = xcalloc(n, sizeof *hashes);
    for (uint32_t i = 0; i < n; i++) {
        before[i] = run->slots[i];
        if (has_bytes(&before[i]))
            hashes[i] = hash(&before[i].tensor);
    }
    tssa_status *status = plain[step->index](run, step);
    for (uint32_t i = 0; !status && i < n; i++) {
        const struct value *now = &run->slots[i];
        if (has_bytes(&before[i]) && has_bytes(now) && now->tensor.data == before[i].tensor.data &&
            !is_result(run, step, i) && !dies(step, i) && hash(&now->tensor) != hashes[i])
            fail_msg("step %u (%s) changes slot %u", (unsigned)step->index, step->op->info->name,
                     (unsigned)i);
    }
    free(before);
    free(hashes);
    return status;
}

static void watch(const struct block_plan *block)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        struct step *step = (struct step *)&block->steps[i]; /* the plan is the test's */
        assert_true(step->index < MOST_STEPS);
        plain[step->index] = step->run;
        step->run = run_watched;
        for (uint32_t b = 0; b < step->n_blocks; b++)
            watch(step->blocks[b]);
    }
}

/* ---- Models ---------------------------------------------------------------------------------- */

#define RUNS 3 /* sizes that the first tells have places in the second */

static void run_model(const char *path, int level)
{
    struct model_plan p;
    model_plan_open(&p, path, level, TSSA_TARGET_ONNX);
    watch(p.plan->body);
    for (int r = 0; r < RUNS; r++) {
        model_plan_execute(&p);
        model_plan_release_outputs(&p);
    }
    model_plan_close(&p);
}

static void one_model(void **state)
{
    run_model(*state, 0);
    run_model(*state, 2);
}

/* ---- Branches and loops ---------------------------------------------------------------------- */

#define GRAPH(ops)                                                                                 \
    "graph @g opset(\"\": 21) ir_version(10) (%x: f32[N], %c: bool[], %t: i64[]) -> (%z) {\n"      \
    "  %one = Constant() {value = f32[] 1}: f32[]\n"                                               \
    "  %k0 = Constant() {value = i64[1, 1] [0]}: i64[1, 1]\n"                                      \
    "  %u0 = Constant() {value = f32[1] [5]}: f32[1]\n"                                            \
    "  %a = Neg@13(%x)\n" ops "  return(%z)\n}\n"
#define IF(name, then, otherwise)                                                                  \
    "%" name " = If@21(%c) {\n"                                                                    \
    "    else_branch() {\n" otherwise "    }\n"                                                    \
    "    then_branch() {\n" then "    }\n"                                                         \
    "  }\n"
#define LOOP2(results, initial, body)                                                              \
    "%" results " = Loop@21(%t, _, " initial ") {\n"                                               \
    "    body(%i: i64[], %d: bool[], %p: f32[N], %q: f32[N]) {\n" body "    }\n"                   \
    "  }\n"

static const char *const graphs[] = {
    /* Branches: made there, made outside, the same twice, through a view, one in the other. */
    GRAPH("  " IF("y", "%b = Abs@13(%a)\n return(%b)\n", "return(%a)\n") "  %e = Add@14(%y, %one)\n"
                                                                         "  %z = Add@14(%e, %a)\n"),
    GRAPH("  " IF(
        "y, %w", "%b = Abs@13(%a)\n return(%b, %b)\n",
        "%b6 = Exp@13(%a)\n %f = Add@14(%b6, %a)\n return(%f, %b6)\n") "  %e = Add@14(%y, %one)\n  "
                                                                       "%h "
                                                                       "= Sub@14(%e, %one)\n %z = "
                                                                       "Add@14(%h, %w)\n"),
    GRAPH(
        "  " IF("y", "%b = Abs@13(%a)\n %v = Identity@21(%b)\n %j = Add@14(%v, %b)\n return(%v)\n",
                "%o = "
                "If@21(%c) { else_branch() { %m = Sin@7(%a)\n return(%m) } then_branch() "
                "{ %m2 = Cos@7(%a)\n return(%m2) } }\n return(%o)\n") "  %e = Add@14(%y, %one)\n "
                                                                      " %h = Sub@14(%e, %one)\n  "
                                                                      "%z = Add@14(%h, %y)\n"),
    /*
     * Loops: read before and behind what is carried, exchanged, kept, given out, of no iteration.
     */
    GRAPH("  " LOOP2("y, %w", "%a, %x",
                     "%b = Add@14(%p, %q)\n %e = Mul@14(%b, %one)\n %f = Sub@14(%e, %p)\n"
                     "return(%d, %b, %f)\n") "  %h = Sub@14(%y, %one)\n %z = Add@14(%h, %w)\n"),
    GRAPH("  " LOOP2("y, %w", "%a, %x",
                     "%b = Add@14(%p, %one)\n return(%d, %q, %b)\n") "  %z = Add@14(%y, %w)\n"),
    GRAPH("  " LOOP2("y, %w", "%a, %a",
                     "%b = Add@14(%p, %q)\n return(%d, %b, %b)\n") "  %z = Add@14(%y, %w)\n"),
    GRAPH("  %n = Exp@13(%a)\n  " LOOP2(
        "y, %w", "%a, %n",
        "%b = Add@14(%p, %q)\n return(%d, %b, %q)\n") "  %h = Sub@14(%y, %one)\n %z = Add@14(%h, "
                                                      "%w)\n"),
    GRAPH("  %n = Exp@13(%a)\n  " LOOP2(
        "y, %w", "%a, %n",
        "%b = Add@14(%p, %q)\n return(%d, %b, %a)\n") "  %h = Sub@14(%y, %one)\n %z = Add@14(%h, "
                                                      "%w)\n"),
    GRAPH("  " LOOP2("y, %w, %s", "%a, %x",
                     "%b = Add@14(%p, %q)\n %e = Mul@14(%b, %one)\n %f = Sub@14(%e, %p)\n"
                     "return(%d, %b, %f, %p)\n") "  %h = Sub@14(%y, %one)\n %r = "
                                                 "ReduceSum@13(%s)\n %l = Add@14(%h, %w)\n"
                                                 "  %z = Add@14(%l, %r)\n"),
    GRAPH("  %n = Exp@13(%a)\n  " LOOP2(
        "y, %w", "%a, %n",
        "%b = Add@14(%p, %one)\n return(%d, %q, %b)\n") "  %h = Sub@14(%w, %one)\n %h2 = "
                                                        "Sin@7(%h)\n %h3 = Abs@13(%h2)\n"
                                                        "  %z = Add@14(%h3, %y)\n"),
    /* One that is read no more when the next one is made, and views of what is carried. */
    GRAPH("  " LOOP2("y, %w", "%a, %x",
                     "%b = Add@14(%p, %q)\n %e = Mul@14(%b, %one)\n %f = Sub@14(%e, %one)\n"
                     "return(%d, %f, %e)\n") "  %h = Sub@14(%y, %one)\n %z = Add@14(%h, %w)\n"),
    GRAPH("  " LOOP2("y, %w", "%a, %x",
                     "%v = Identity@21(%p)\n %b = Add@14(%q, %one)\n %vb = Identity@21(%b)\n"
                     "%f = Sub@14(%vb, %v)\n return(%d, %vb, %f)\n") "  %h = Sub@14(%y, %one)\n %z "
                                                                     "= Add@14(%h, %w)\n"),
    /* A branch in a loop, a loop in a loop. */
    GRAPH("  " LOOP2(
        "y, %w", "%a, %x",
        IF("b", "%b1 = Add@14(%p, %q)\n return(%b1)\n",
           "%b2 = Sub@14(%p, %q)\n "
           "return(%b2)\n") "%f = Sub@14(%b, %p)\n return(%d, %b, %f)\n") "  %h = Sub@14(%y, "
                                                                          "%one)\n %z = Add@14(%h, "
                                                                          "%w)\n"),
    GRAPH("  " LOOP2(
        "y, %w", "%a, %x",
        "%b, %f = Loop@21(%t, _, %q, %p) { body(%i2: i64[], %d2: bool[], %p2: f32[N], "
        "%q2: f32[N]) { %b3 = Add@14(%p2, %p)\n %f3 = Sub@14(%b3, %q2)\n "
        "%g3 = Add@14(%f3, %p2)\n return(%d2, %b3, %g3) } }\n"
        "%b4 = Mul@14(%b, %one)\n %f4 = Add@14(%f, %b)\n return(%d, %b4, %f4)\n") "  %h = "
                                                                                  "Sub@14(%y, "
                                                                                  "%one)\n %z = "
                                                                                  "Add@14(%h, "
                                                                                  "%w)\n"),
    GRAPH("  " LOOP2("y, %w", "%a, %x",
                     "%b, %f = Loop@21(%t, _, %q, %p) { body(%i2: i64[], %d2: bool[], %p2: f32[N], "
                     "%q2: f32[N]) { %b3 = Add@14(%p2, %p)\n %f3 = Sub@14(%b3, %q2)\n "
                     "return(%d2, %b3, %f3) } }\n"
                     "return(%d, %b, %f)\n") "  %h = Sub@14(%y, %one)\n %z = Add@14(%h, %w)\n"),
    GRAPH("  " LOOP2("y, %w", "%a, %x",
                     "%b, %f = Loop@21(%t, _, %a, %x) { body(%i2: i64[], %d2: bool[], %p2: f32[N], "
                     "%q2: f32[N]) { %b3 = Add@14(%p2, %p)\n %f3 = Sub@14(%b3, %q2)\n "
                     "%g3 = Add@14(%f3, %q)\n return(%d2, %b3, %g3) } }\n"
                     "return(%d, %b, %f)\n") "  %h = Sub@14(%y, %one)\n %z = Add@14(%h, %w)\n"),
    /* Element-wise in place: chains, both operands, a view of one, broadcast, in a loop, to the
     * end. */
    GRAPH("  %b = Exp@13(%a)\n %e = Mul@14(%b, %b)\n %f = Add@14(%e, %b)\n %h = Sub@14(%f, %e)\n"
          "  %v = Identity@21(%h)\n %m = Mul@14(%h, %v)\n %n = Greater@13(%m, %one)\n"
          "  %o = Where@16(%n, %m, %f)\n %r = Max@13(%o, %a, %m)\n %z = Pow@15(%r, %one)\n"),
    GRAPH("  %b = Exp@13(%a)\n %e = Sin@7(%b)\n %r = Max@13(%a, %e, %one)\n"
          "  %f = Cos@7(%a)\n %h = Sum@13(%a, %one, %f)\n %i = Add@14(%r, %h)\n"
          "  %z = Add@14(%i, %a)\n"),
    GRAPH("  %s = Constant() {value = i64[2] [1, -1]}: i64[2]\n %b = Exp@13(%a)\n"
          "  %v = Reshape@21(%b, %s)\n %w = Transpose@21(%v) {perm = [1, 0]}\n"
          "  %e = Mul@14(%b, %v)\n %f = Mul@14(%v, %w)\n %h = Exp@13(%f)\n %i = Abs@13(%h)\n"
          "  %j = Add@14(%i, %b)\n %k = Add@14(%j, %e)\n %z = Neg@13(%k)\n"),
    GRAPH("  " LOOP2(
        "y, %w", "%a, %x",
        "%b = Add@14(%p, %q)\n %e = Mul@14(%b, %one)\n %f = Sub@14(%e, %p)\n"
        "%g = Sin@7(%f)\n %l = Abs@13(%g)\n return(%d, %e, %l)\n") "  %h = Sub@14(%y, %one)\n %j = "
                                                                   "Abs@13(%h)\n %z = Add@14(%j, "
                                                                   "%w)\n"),
    GRAPH("  %b = Exp@13(%a)\n " IF("y", "%t1 = Abs@13(%b)\n %t2 = Sin@7(%t1)\n return(%t2)\n",
                                    "return(%b)\n") "  %e = Add@14(%b, %y)\n"
                                                    "  %f = Sub@14(%e, %b)\n %z = Neg@13(%f)\n"),
    /* Other rows that lie on operand 0, under other shapes too, in a loop and in branches. */
    GRAPH("  %s = Constant() {value = i64[2] [1, -1]}: i64[2]\n %l = Constant() {value = i64[1] "
          "[-1]}: i64[1]\n"
          "  %s3 = Constant() {value = i64[3] [1, 1, -1]}: i64[3]\n"
          "  %b = Exp@13(%a)\n %e = Softmax@13(%b) {axis = 0}\n %f = LogSoftmax@13(%e) {axis = 0}\n"
          "  %v = Reshape@21(%f, %s)\n %h = LpNormalization@22(%v) {axis = 1}\n"
          "  %m = LayerNormalization@17(%h, %x, %x)\n %n = RMSNormalization@23(%m, %x)\n"
          "  %o = Abs@13(%x)\n %q = BatchNormalization@15(%n, %x, %x, %x, %o)\n"
          "  %r = Reshape@21(%q, %s3)\n %u = InstanceNormalization@22(%r, %u0, %u0)\n"
          "  %w = GroupNormalization@21(%u, %u0, %u0) {num_groups = 1}\n"
          "  %y = MeanVarianceNormalization@13(%w) {axes = [2]}\n %g = Reshape@21(%y, %l)\n"
          "  %i = BitCast@26(%g) {to = 6}\n %j = BitCast@26(%i) {to = 1}\n %z = Neg@13(%j)\n"),
    GRAPH("  %s = Constant() {value = i64[2] [1, -1]}: i64[2]\n %b = Exp@13(%a)\n %v = "
          "Reshape@21(%b, %s)\n"
          "  %e = Softmax@13(%v)\n %f = Add@14(%e, %b)\n %h = Softmax@13(%f)\n"
          "  %w = Transpose@21(%h) {perm = [1, 0]}\n %j = Softmax@13(%w) {axis = 0}\n"
          "  %l = Constant() {value = i64[1] [-1]}: i64[1]\n %z = Reshape@21(%j, %l)\n"),
    GRAPH("  " LOOP2(
        "y, %w", "%a, %x",
        "%b = Add@14(%p, %q)\n %e = Softmax@13(%b) {axis = 0}\n %f = Softmax@13(%p) {axis = 0}\n"
        "return(%d, %e, %f)\n") "  %h = Softmax@13(%y) {axis = 0}\n %z = Add@14(%h, %w)\n"),
    GRAPH("  " IF(
        "y, %w",
        "%b = Abs@13(%a)\n %e = Softmax@13(%b) {axis = 0}\n %f = Sin@7(%a)\n return(%e, %f)\n",
        "%o, %o2 = If@21(%c) { else_branch() { %m = Sin@7(%a)\n %m1 = Softmax@13(%m) {axis = 0}\n"
        "return(%m, %m1) } then_branch() { %m2 = Cos@7(%a)\n return(%m2, %m2) } }\n"
        "return(%o, %o2)\n") "  %e2 = Add@14(%y, %one)\n %h = Mul@14(%e2, %w)\n"
                             "  %z = Add@14(%h, %y)\n"),
    /* What a loop is given and carries on in one place, with branches in it. */
    GRAPH("  %n = Exp@13(%a)\n %n2 = Sin@7(%a)\n  " LOOP2(
        "y, %w", "%n, %n2",
        "%k = ReduceMax@20(%p)\n %k2 = ReduceMax@20(%q)\n %k3 = Add@14(%k, %k2)\n"
        "%b = Add@14(%k3, %x)\n %e = Mul@14(%b, %b)\n"
        "%f = If@21(%c) { else_branch() { %f1 = Sub@14(%e, %b)\n return(%f1) } then_branch() {"
        "%f2 = Add@14(%e, %b)\n return(%f2) } }\n"
        "return(%d, %e, %f)\n") "  %h = Sub@14(%y, %one)\n %z = Add@14(%h, %w)\n"),
    /* First one branch, then the other, and what they return goes on; one reads the old value
     * behind it. */
    GRAPH("  %last = Constant() {value = i64[] 1}: i64[]\n  " LOOP2(
        "y, %w", "%a, %x",
        "%r = Greater@13(%i, %last)\n"
        "%f, %h = If@21(%r) { else_branch() { %f1 = Sin@7(%x)\n %h1 = Cos@7(%x)\n return(%f1, %h1) "
        "}"
        "then_branch() { %f2 = Exp@13(%x)\n %h2 = Add@14(%f2, %p)\n return(%f2, %h2) } }\n"
        "return(%d, %f, %h)\n") "  %e = Sub@14(%y, %one)\n %z = Add@14(%e, %w)\n"),
    /* The number of an iteration, which the next one is given, as it is and by another name. */
    GRAPH("  %n0 = Constant() {value = i64[] 3}: i64[]\n"
          "  %y, %w, %v = Loop@21(%t, _, %a, %n0, %n0) {\n"
          "    body(%i: i64[], %d: bool[], %p: f32[N], %q: i64[], %r: i64[]) {\n"
          "%e = Cast@25(%q) {to = 1}\n %f = Cast@25(%r) {to = 1}\n %b = Add@14(%p, %e)\n"
          "%g = Mul@14(%b, %f)\n %j = Identity@21(%i)\n return(%d, %g, %i, %j)\n    }\n  }\n"
          "  %h = Cast@25(%w) {to = 1}\n %k = Cast@25(%v) {to = 1}\n %m = Mul@14(%h, %k)\n"
          "  %z = Add@14(%y, %m)\n"),
    /* What a loop stacks, read behind it, and in the next iteration of one around it. */
    GRAPH("  %s0 = Constant() {value = i64[1] [0]}: i64[1]\n  " LOOP2(
        "y, %w", "%a, %x",
        "%l, %s = Loop@21(%t, _, %q) { body(%i2: i64[], %d2: bool[], %p2: f32[N]) {\n"
        "%b3 = Add@14(%p2, %p)\n return(%d2, %b3, %b3) } }\n"
        "%u = ReduceSum@13(%s, %s0) {keepdims = 0}\n %o = Add@14(%u, %l)\n %b = Sub@14(%o, %p)\n"
        "return(%d, %b, %u)\n") "  %h = Sub@14(%y, %one)\n %z = Add@14(%h, %w)\n"),
    /*
     * Updates: of what a loop carries, of what a branch gives, of a value that is carried as well.
     */
    GRAPH("  " LOOP2("y, %w", "%a, %x",
                     "%b = ScatterND@18(%p, %k0, %u0)\n %f = Sub@14(%q, %one)\n"
                     "return(%d, %b, %f)\n") "  %h = Sub@14(%y, %one)\n %z = Add@14(%h, %w)\n"),
    GRAPH("  " LOOP2("y, %w", "%a, %x",
                     "%b = Add@14(%p, %q)\n %e = ScatterND@18(%b, %k0, %u0)\n"
                     "%f = Sub@14(%e, %p)\n return(%d, %e, %f)\n") "  %h = Sub@14(%y, %one)\n %z = "
                                                                   "Add@14(%h, %w)\n"),
    GRAPH("  " IF("y", "%b = Abs@13(%a)\n return(%b)\n",
                  "%b5 = Exp@13(%a)\n return(%b5)\n") "  %e = ScatterND@18(%y, %k0, %u0)\n  %h = "
                                                      "Sub@14(%e, %one)\n"
                                                      "  %z = Add@14(%h, %a)\n"),
};

#define N 37

struct graph_run {
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
};

static void open_graph(struct graph_run *g, const char *text)
{
    no_error(ir_parse(&allocator_default, text, strlen(text), &g->graph));
    no_error(ir_infer_graph(g->graph));
    no_error(plan_create(g->graph, test_device(), &g->plan));
}

static void close_graph(struct graph_run *g)
{
    run_free(g->run);
    plan_free(g->plan);
    ir_graph_free(g->graph);
}

static void one_graph(const char *text)
{
    struct graph_run placed, pooled;
    float x[N];
    bool condition;
    int64_t trips;
    const struct value values[] = {
        {.kind = TSSA_KIND_TENSOR,
         .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {N}, .data = x}},
        {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_BOOL, .data = &condition}},
        {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_INT64, .data = &trips}},
    };
    const struct value *inputs[] = {&values[0], &values[1], &values[2]};
    open_graph(&placed, text);
    open_graph(&pooled, text);
    assert_true(placed.plan->n_placed > 0);
    pooled.plan->n_placed = pooled.plan->n_leaving = pooled.plan->n_parts = 0;
    no_error(run_create(placed.plan, &allocator_default, NULL, false, &placed.run));
    no_error(run_create(pooled.plan, &allocator_default, NULL, false, &pooled.run));
    watch(placed.plan->body);
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < N; k++)
            x[k] = (float)((k * 7 + i) % 13) - 6;
        condition = i % 2;
        trips = i / 2 % 5;
        struct value got = {0}, expected = {0};
        if (placed.run->slab.parts[SPACE_HOST].memory)
            memset(placed.run->slab.parts[SPACE_HOST].memory, 0xff,
                   placed.run->slab.parts[SPACE_HOST].size);
        no_error(run_execute(placed.run, inputs, &got));
        no_error(run_execute(pooled.run, inputs, &expected));
        assert_true(tensor_same_shape(&got.tensor, &expected.tensor));
        assert_memory_equal(got.tensor.data, expected.tensor.data, tensor_bytes(&got.tensor));
        value_release(&got);
        value_release(&expected);
    }
    close_graph(&placed);
    close_graph(&pooled);
}

static void test_graphs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        one_graph(graphs[i]);
}

/* ---- The number of an iteration -------------------------------------------------------------- */

/* A loop over carried integers: what it carries out, of which both runs of one_graph would be wrong
 * alike where a body is lent a number that goes on into the next iteration, or out of the loop. */
static void runs_to(const char *body, int64_t trips, const int64_t *expected, size_t count)
{
    struct graph_run g;
    char *text =
        xprintf("graph @g opset(\"\": 21) ir_version(10) (%%t: i64[]) -> (%%y, %%w) {\n"
                "  %%n0 = Constant() {value = i64[] 7}: i64[]\n"
                "  %%y, %%w = Loop@21(%%t, _, %%n0, %%n0) {\n"
                "    body(%%i: i64[], %%d: bool[], %%p: i64[], %%q: i64[]) {\n%s    }\n  }\n"
                "  return(%%y, %%w)\n}\n",
                body);
    const struct value value = {.kind = TSSA_KIND_TENSOR,
                                .tensor = {.dtype = TSSA_INT64, .data = &trips}};
    const struct value *input = &value;
    open_graph(&g, text);
    no_error(run_create(g.plan, &allocator_default, NULL, false, &g.run));
    for (int run = 0; run < RUNS; run++) {
        struct value results[2] = {{0}};
        no_error(run_execute(g.run, &input, results));
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(results[i].tensor.dtype, TSSA_INT64);
            assert_int_equal(*(const int64_t *)results[i].tensor.data, expected[i]);
            value_release(&results[i]);
        }
    }
    close_graph(&g);
    free(text);
}

/* q: the number of the iteration before; p: 10 p + q. */
static void test_iteration_number(void **state)
{
    static const char *const bodies[] = {
        "%k = Constant() {value = i64[] 10}: i64[]\n %a = Mul@14(%p, %k)\n %b = Add@14(%a, %q)\n"
        "return(%d, %b, %i)\n",
        /* by another name */
        "%k = Constant() {value = i64[] 10}: i64[]\n %a = Mul@14(%p, %k)\n %b = Add@14(%a, %q)\n"
        "%j = Identity@21(%i)\n return(%d, %b, %j)\n",
        /* out of a branch */
        "%k = Constant() {value = i64[] 10}: i64[]\n %a = Mul@14(%p, %k)\n %b = Add@14(%a, %q)\n"
        "%j = If@21(%d) { else_branch() { return(%p) } then_branch() { return(%i) } }\n"
        "return(%d, %b, %j)\n",
        /* through a loop that carries it round and round */
        "%k = Constant() {value = i64[] 10}: i64[]\n %a = Mul@14(%p, %k)\n %b = Add@14(%a, %q)\n"
        "%two = Constant() {value = i64[] 2}: i64[]\n"
        "%j = Loop@21(%two, _, %i) { body(%i2: i64[], %d2: bool[], %r: i64[]) { return(%d2, %r) } "
        "}\n"
        "return(%d, %b, %j)\n",
    };
    static const int64_t of_none[] = {7, 7}, of_one[] = {77, 0}, of_four[] = {77012, 3};
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        runs_to(bodies[i], 0, of_none, 2);
        runs_to(bodies[i], 1, of_one, 2);
        runs_to(bodies[i], 4, of_four, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_graphs),
                                       cmocka_unit_test(test_iteration_number)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return committed_models_test(one_model) + failed;
}
