/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor on small programs in IR text: loops, branches, scans, sequences, and their memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/test_device.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "runtime/executor.h"

/* ---- Running a text -------------------------------------------------------------------------- */

struct program {
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
};

static void program_open(struct program *p, const char *text)
{
    no_error(ir_parse(&allocator_default, text, strlen(text), &p->graph));
    no_error(ir_infer_graph(p->graph));
    no_error(ir_verify(p->graph));
    no_error(plan_create(p->graph, test_device(), &p->plan));
    no_error(run_create(p->plan, &allocator_default, NULL, false, &p->run));
}

static void program_close(struct program *p)
{
    run_free(p->run);
    plan_free(p->plan);
    ir_graph_free(p->graph);
}

static struct value i64_scalar(int64_t *storage)
{
    return (struct value){.kind = TSSA_KIND_TENSOR,
                          .tensor = {.dtype = TSSA_INT64, .rank = 0, .data = storage}};
}

static struct value f32_vector(float *storage, int64_t count)
{
    return (struct value){
        .kind = TSSA_KIND_TENSOR,
        .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {count}, .data = storage}};
}

static void expect_floats(const struct value *value, const float *expected, size_t count)
{
    assert_int_equal(value->kind, TSSA_KIND_TENSOR);
    assert_int_equal(value->tensor.dtype, TSSA_FLOAT);
    assert_int_equal(tensor_count(&value->tensor), count);
    for (size_t i = 0; i < count; i++)
        assert_true(((const float *)value->tensor.data)[i] == expected[i]);
}

/* ---- Loops ----------------------------------------------------------------------------------- */

/* Adds 1 to %x each time; stacks the values it had. */
static const char counting[] =
    "graph @counting opset(\"\": 18) ir_version(8) (%n: i64[], %x: f32[N]) -> (%y, %all) {\n"
    "  %one = Constant() {value = f32[] 1}: f32[]\n"
    "  %y, %all = Loop@16(%n, _, %x) {\n"
    "    body(%i: i64[], %c: bool[], %v: f32[N]) {\n"
    "      %s = Add@14(%v, %one)\n"
    "      return(%c, %s, %v)\n"
    "    }\n"
    "  }\n"
    "  return(%y, %all)\n"
    "}\n";

static void run_counting(struct program *p, int64_t trips, struct value outputs[2])
{
    float x[2] = {1, 2};
    struct value n = i64_scalar(&trips), v = f32_vector(x, 2);
    const struct value *inputs[] = {&n, &v};
    memset(outputs, 0, 2 * sizeof *outputs);
    no_error(run_execute(p->run, inputs, outputs));
}

static void test_loop_counts(void **state)
{
    (void)state;
    struct program p;
    struct value out[2];
    program_open(&p, counting);

    run_counting(&p, 3, out);
    expect_floats(&out[0], (float[]){4, 5}, 2);
    expect_floats(&out[1], (float[]){1, 2, 2, 3, 3, 4}, 6);
    assert_int_equal(out[1].tensor.rank, 2);
    assert_int_equal(out[1].tensor.dims[0], 3);
    value_release(&out[0]);
    value_release(&out[1]);

    for (int64_t trips = -1; trips <= 0; trips++) {
        run_counting(&p, trips, out);
        expect_floats(&out[0], (float[]){1, 2}, 2);
        assert_int_equal(out[1].tensor.rank, 2);
        assert_int_equal(out[1].tensor.dims[0], 0);
        value_release(&out[0]);
        value_release(&out[1]);
    }
    program_close(&p);
}

/* The condition ends a loop whose trip count never would. */
static void test_loop_ends_by_condition(void **state)
{
    (void)state;
    struct program p;
    program_open(&p, "graph @g opset(\"\": 18) ir_version(8) (%n: i64[], %x: f32[N]) -> (%y) {\n"
                     "  %one = Constant() {value = f32[] 1}\n"
                     "  %limit = Constant() {value = i64[] 4}\n"
                     "  %go = Constant() {value = bool[] true}\n"
                     "  %y = Loop@16(%n, %go, %x) {\n"
                     "    body(%i: i64[], %c: bool[], %v: f32[N]) {\n"
                     "      %s = Add@14(%v, %one)\n"
                     "      %more = Less@13(%i, %limit)\n"
                     "      return(%more, %s)\n"
                     "    }\n"
                     "  }\n"
                     "  return(%y)\n"
                     "}\n");
    int64_t trips = INT64_MAX;
    float x[1] = {0};
    struct value n = i64_scalar(&trips), v = f32_vector(x, 1), out = {.kind = TSSA_KIND_NONE};
    const struct value *inputs[] = {&n, &v};
    no_error(run_execute(p.run, inputs, &out));
    expect_floats(&out, (float[]){5}, 1);
    value_release(&out);
    program_close(&p);
}

/* An inner loop reads the outer loop's carried value, and the outer block's values. */
static void test_nested_capture(void **state)
{
    (void)state;
    struct program p;
    program_open(&p, "graph @g opset(\"\": 18) ir_version(8) (%n: i64[], %x: f32[N]) -> (%y) {\n"
                     "  %one = Constant() {value = f32[] 1}\n"
                     "  %x1 = Add@14(%x, %one)\n"
                     "  %y = Loop@16(%n, _, %x) {\n"
                     "    body(%i: i64[], %c: bool[], %v: f32[N]) {\n"
                     "      %v1 = Add@14(%v, %one)\n"
                     "      %w = Loop@16(%n, _, %v) {\n"
                     "        body(%j: i64[], %d: bool[], %u: f32[N]) {\n"
                     "          %t = Add@14(%u, %v1)\n"
                     "          %t1 = Add@14(%t, %x1)\n"
                     "          return(%d, %t1)\n"
                     "        }\n"
                     "      }\n"
                     "      return(%c, %w)\n"
                     "    }\n"
                     "  }\n"
                     "  return(%y)\n"
                     "}\n");
    int64_t trips = 3;
    float x[2] = {1, 5}, expected[2];
    for (int k = 0; k < 2; k++) {
        float v = x[k];
        for (int i = 0; i < 3; i++) {
            float u = v;
            for (int j = 0; j < 3; j++)
                u = u + (v + 1) + (x[k] + 1);
            v = u;
        }
        expected[k] = v;
    }
    struct value n = i64_scalar(&trips), v = f32_vector(x, 2), out = {.kind = TSSA_KIND_NONE};
    const struct value *inputs[] = {&n, &v};
    no_error(run_execute(p.run, inputs, &out));
    expect_floats(&out, expected, 2);
    value_release(&out);
    program_close(&p);
}

/* A loop without an end is ended from outside; the run state is usable afterwards. */
static void test_endless_loop_stops(void **state)
{
    (void)state;
    struct program p;
    atomic_bool stop = true;
    program_open(&p, "graph @g opset(\"\": 18) ir_version(8) (%n: i64[], %x: f32[N]) -> (%y) {\n"
                     "  %y = Loop@16(_, _, %x) {\n"
                     "    body(%i: i64[], %c: bool[], %v: f32[N]) {\n"
                     "      %s = Add@14(%v, %x)\n"
                     "      return(%c, %s)\n"
                     "    }\n"
                     "  }\n"
                     "  return(%y)\n"
                     "}\n");
    int64_t unused = 0;
    float x[1] = {0};
    struct value n = i64_scalar(&unused), v = f32_vector(x, 1), out = {.kind = TSSA_KIND_NONE};
    const struct value *inputs[] = {&n, &v};
    p.run->stop = &stop;
    tssa_status *status = run_execute(p.run, inputs, &out);
    assert_int_equal(tssa_status_code(status), TSSA_LIMIT);
    tssa_status_free(status);
    program_close(&p);
}

/* ---- If -------------------------------------------------------------------------------------- */

/* One branch returns a captured value as it is, the other one a result of its own. */
static void test_if_branches(void **state)
{
    (void)state;
    struct program p;
    program_open(&p,
                 "graph @g opset(\"\": 18) ir_version(8) (%n: i64[], %x: f32[N]) -> (%y, %x1) {\n"
                 "  %one = Constant() {value = f32[] 1}\n"
                 "  %zero = Constant() {value = i64[] 0}\n"
                 "  %x1 = Add@14(%x, %one)\n"
                 "  %c = Less@13(%n, %zero)\n"
                 "  %y = If@16(%c) {\n"
                 "    then_branch() {\n"
                 "      return(%x1)\n"
                 "    }\n"
                 "    else_branch() {\n"
                 "      %t = Mul@14(%x1, %x1)\n"
                 "      return(%t)\n"
                 "    }\n"
                 "  }\n"
                 "  return(%y, %x1)\n"
                 "}\n");
    float x[1] = {2};
    for (int64_t n = -1; n <= 0; n++) {
        int64_t number = n;
        struct value c = i64_scalar(&number), v = f32_vector(x, 1),
                     out[2] = {{.kind = TSSA_KIND_NONE}};
        const struct value *inputs[] = {&c, &v};
        no_error(run_execute(p.run, inputs, out));
        expect_floats(&out[0], (float[]){n < 0 ? 3 : 9}, 1);
        expect_floats(&out[1], (float[]){3}, 1);
        assert_ptr_not_equal(out[0].tensor.data, out[1].tensor.data);
        value_release(&out[0]);
        value_release(&out[1]);
    }
    program_close(&p);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* A result is written where the caller wants it; another shape is an error and leaves nothing
 * behind. */
static void test_given_outputs(void **state)
{
    (void)state;
    struct program p;
    program_open(&p, "graph @g opset(\"\": 18) ir_version(8) (%x: f32[N]) -> (%y) {\n"
                     "  %y = Add@14(%x, %x)\n"
                     "  return(%y)\n"
                     "}\n");
    float x[3] = {1, 2, 3}, y[3] = {0};
    struct value v = f32_vector(x, 3), out = f32_vector(y, 3);
    const struct value *inputs[] = {&v};
    no_error(run_execute(p.run, inputs, &out));
    assert_true(y[0] == 2 && y[1] == 4 && y[2] == 6);

    out = f32_vector(y, 2);
    tssa_status *status = run_execute(p.run, inputs, &out);
    assert_int_equal(tssa_status_code(status), TSSA_SHAPE_MISMATCH);
    tssa_status_free(status);
    program_close(&p);
}

/* ---- Updates in place ------------------------------------------------------------------------ */

#define LENGTH 1000

/* Runs a program on a condition and ones, until runs are alike; gives y, and how many tensors like
 * y are left in the pool: what was copied, for y itself leaves it. */
static size_t copies_left(const char *body, bool condition, float y[LENGTH])
{
    char text[2000];
    struct program p;
    float x[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        x[i] = 1;
    snprintf(text, sizeof text,
             "graph @g opset(\"\": 18) ir_version(8) (%%c: bool[], %%x: f32[N]) -> (%%y) {\n"
             "  %%n = Constant() {value = i64[] 10}\n"
             "  %%k = Constant() {value = i64[1, 1] [7]}\n"
             "  %%five = Constant() {value = f32[1] [5]}\n"
             "  %%six = Constant() {value = f32[1] [6]}\n"
             "  %%axes = Constant() {value = i64[2] [0, 1]}\n"
             "%s  return(%%y)\n}\n",
             body);
    program_open(&p, text);
    struct value c = {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_BOOL, .data = &condition}},
                 v = f32_vector(x, LENGTH);
    const struct value *inputs[] = {&c, &v};
    for (int run = 0; run < 3; run++) { /* first it is told what leaves, then how much stays */
        struct value out = {.kind = TSSA_KIND_NONE};
        no_error(run_execute(p.run, inputs, &out));
        assert_int_equal(tensor_count(&out.tensor), LENGTH);
        memcpy(y, out.tensor.data, sizeof(float[LENGTH]));
        value_release(&out);
        assert_true(x[7] == 1);
    }
    size_t left = pool_held(&p.run->pool) / sizeof(float[LENGTH]);
    program_close(&p);
    return left;
}

#define LOOP(start, body)                                                                          \
    "  %y = Loop@16(%n, _, %" start ") {\n"                                                        \
    "    body(%i: i64[], %d: bool[], %v: f32[N]) {\n"                                              \
    "      %at = Unsqueeze@13(%i, %axes)\n"                                                        \
    "      %w = ScatterND@18(%v, %at, %five)\n" body "    }\n"                                     \
    "  }\n"

/* A loop writes to the tensor that it was given, once that is its own. */
static void test_loop_updates_in_place(void **state)
{
    (void)state;
    float y[LENGTH];
    const char *const write = LOOP("a", "      return(%d, %w)\n");
    char own[1000];
    snprintf(own, sizeof own, "  %%a = Neg@13(%%x)\n%s", write);
    assert_int_equal(copies_left(own, true, y), 0);
    assert_true(y[0] == 5 && y[9] == 5 && y[10] == -1);

    assert_int_equal(copies_left(LOOP("x", "      return(%d, %w)\n"), true, y), 0);
    assert_true(y[0] == 5 && y[9] == 5 && y[10] == 1);

    /* Here the version before the write is read after it. */
    assert_int_not_equal(
        copies_left(LOOP("x", "      %s = Sub@14(%w, %v)\n      return(%d, %s)\n"), true, y), 0);
    assert_true(y[0] == 0 && y[9] == 5 && y[10] == 0);
}

#define BRANCH                                                                                     \
    "  %a = Neg@13(%x)\n"                                                                          \
    "  %z = If@16(%c) {\n"                                                                         \
    "    then_branch() {\n"                                                                        \
    "      %t = ScatterND@18(%a, %k, %five)\n"                                                     \
    "      %u = ScatterND@18(%t, %k, %six)\n"                                                      \
    "      return(%u)\n"                                                                           \
    "    }\n"                                                                                      \
    "    else_branch() {\n"                                                                        \
    "      return(%a)\n"                                                                           \
    "    }\n"                                                                                      \
    "  }\n"

/* A branch writes to what nobody uses but the other branch. */
static void test_branch_updates_in_place(void **state)
{
    (void)state;
    float y[LENGTH];
    for (int taken = 0; taken < 2; taken++) {
        assert_int_equal(copies_left(BRANCH "  %y = Identity@16(%z)\n", taken, y), 0);
        assert_true(y[7] == (taken ? 6 : -1) && y[6] == -1);
    }
    /* Here it is read after the branch. */
    copies_left(BRANCH "  %y = Sub@14(%z, %a)\n", true, y);
    assert_true(y[7] == 7 && y[6] == 0);
}

/* Sizes follow the input's shape from run to run, larger and smaller. */
static void test_shapes_change(void **state)
{
    (void)state;
    struct program p;
    program_open(&p, "graph @g opset(\"\": 18) ir_version(8) (%x: f32[N], %z: f32[N]) -> (%y) {\n"
                     "  %a = Add@14(%x, %z)\n"
                     "  %b = Mul@14(%a, %a)\n"
                     "  %y = Add@14(%b, %a)\n"
                     "  return(%y)\n"
                     "}\n");
    static float x[1000], expected[1000];
    for (int64_t n = 1000; n > 0; n = n * 2 / 3) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = (float)(i % 17);
            expected[i] = 2 * x[i] * (2 * x[i]) + 2 * x[i];
        }
        struct value v = f32_vector(x, n), out = {.kind = TSSA_KIND_NONE};
        const struct value *inputs[] = {&v, &v};
        no_error(run_execute(p.run, inputs, &out));
        expect_floats(&out, expected, (size_t)n);
        value_release(&out);
    }
    struct value v = f32_vector(x, 3), w = f32_vector(x, 4), out = {.kind = TSSA_KIND_NONE};
    const struct value *inputs[] = {&v, &w};
    tssa_status *status = run_execute(p.run, inputs, &out);
    assert_int_equal(tssa_status_code(status), TSSA_SHAPE_MISMATCH);
    assert_non_null(strstr(tssa_status_message(status), "\"z\""));
    tssa_status_free(status);
    program_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_counts),
        cmocka_unit_test(test_loop_ends_by_condition),
        cmocka_unit_test(test_endless_loop_stops),
        cmocka_unit_test(test_nested_capture),
        cmocka_unit_test(test_if_branches),
        cmocka_unit_test(test_given_outputs),
        cmocka_unit_test(test_loop_updates_in_place),
        cmocka_unit_test(test_branch_updates_in_place),
        cmocka_unit_test(test_shapes_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
