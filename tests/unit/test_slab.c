/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slab of a run: runs of changing shapes and data on one run state give what a run on a fresh
 * one gives, whatever lies in the slab before; runs that are alike take nothing from the pool once
 * sizes are learnt; and a layout that was too large is given up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/test_alloc.h"
#include "common/test_device.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

#define MOST 300 /* elements of an input */

/*
 * What is positive, twice; then the same through an If, and through a Loop that carries two values.
 */
static const char *const text =
    "graph @g opset(\"\": 21) ir_version(10) (%x: f32[N], %c: bool[], %t: i64[]) -> (%p, %q, %r) "
    "{\n"
    "  %zero = Constant() {value = f32[] 0}: f32[]\n"
    "  %two = Constant() {value = f32[] 2}: f32[]\n"
    "  %m = Greater@13(%x, %zero)\n"
    "  %k = Compress@11(%x, %m) {axis = 0}\n"
    "  %a = Mul@14(%k, %two)\n"
    "  %b = Add@14(%a, %k)\n"
    "  %p = Neg@13(%b)\n"
    "  %y = If@21(%c) {\n"
    "    else_branch() {\n"
    "      %e = Sub@14(%b, %a)\n"
    "      %f = Mul@14(%e, %e)\n"
    "      return(%f)\n"
    "    }\n"
    "    then_branch() {\n"
    "      %g = Abs@13(%b)\n"
    "      return(%g)\n"
    "    }\n"
    "  }\n"
    "  %q = Add@14(%y, %b)\n"
    "  %v, %w = Loop@21(%t, _, %y, %x) {\n"
    "    body(%i: i64[], %d: bool[], %s: f32[K], %u: f32[N]) {\n"
    "      %s1 = Add@14(%s, %k)\n"
    "      %s2 = Mul@14(%s1, %zero)\n"
    "      %s3 = Add@14(%s2, %s)\n"
    "      %s4 = Sub@14(%s3, %a)\n"
    "      %u1 = Neg@13(%u)\n"
    "      return(%d, %s4, %u1)\n"
    "    }\n"
    "  }\n"
    "  %h = Compress@11(%w, %m) {axis = 0}\n"
    "  %o = Add@14(%v, %h)\n"
    "  %r = Add@14(%o, %b)\n"
    "  return(%p, %q, %r)\n"
    "}\n";

struct fixture {
    struct ir_graph *graph;
    struct plan *plan;
    float x[MOST];
    bool condition;
    int64_t trips;
    struct value values[3];
    const struct value *inputs[3];
    uint64_t random;
};

static uint32_t next_random(struct fixture *f)
{
    f->random = f->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(f->random >> 33);
}

static void setup(struct fixture *f)
{
    *f = (struct fixture){.random = 7};
    no_error(ir_parse(&allocator_default, text, strlen(text), &f->graph));
    no_error(ir_infer_graph(f->graph));
    no_error(plan_create(f->graph, test_device(), &f->plan));
    f->values[0] = (struct value){.kind = TSSA_KIND_TENSOR,
                                  .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .data = f->x}};
    f->values[1] = (struct value){.kind = TSSA_KIND_TENSOR,
                                  .tensor = {.dtype = TSSA_BOOL, .data = &f->condition}};
    f->values[2] = (struct value){.kind = TSSA_KIND_TENSOR,
                                  .tensor = {.dtype = TSSA_INT64, .data = &f->trips}};
    for (int i = 0; i < 3; i++)
        f->inputs[i] = &f->values[i];
}

static void teardown(struct fixture *f)
{
    plan_free(f->plan);
    ir_graph_free(f->graph);
}

/* `n` numbers, of which about `positive` percent are. */
static void choose(struct fixture *f, int64_t n, uint32_t positive)
{
    f->values[0].tensor.dims[0] = n;
    for (int64_t i = 0; i < n; i++) {
        const float size = 1.0f + (float)(next_random(f) % 1000);
        f->x[i] = next_random(f) % 100 < positive ? size : -size;
    }
    f->condition = next_random(f) % 2;
    f->trips = next_random(f) % 5;
}

static struct run *new_run(struct fixture *f, const tssa_allocator *allocator)
{
    struct run *run;
    no_error(run_create(f->plan, allocator, NULL, false, &run));
    return run;
}

static void release(struct value *outputs)
{
    for (int i = 0; i < 3; i++)
        value_release(&outputs[i]);
}

static void compare(struct fixture *f, struct run *run)
{
    struct run *fresh = new_run(f, &allocator_default);
    struct value expected[3] = {{0}}, outputs[3] = {{0}};
    if (run->slab.parts[SPACE_HOST].memory)
        memset(run->slab.parts[SPACE_HOST].memory, 0xff, run->slab.parts[SPACE_HOST].size);
    no_error(run_execute(fresh, f->inputs, expected));
    no_error(run_execute(run, f->inputs, outputs));
    for (int i = 0; i < 3; i++) {
        const struct tensor *a = &expected[i].tensor, *b = &outputs[i].tensor;
        assert_true(tensor_same_shape(a, b));
        assert_memory_equal(a->data, b->data, tensor_bytes(a));
    }
    release(expected);
    release(outputs);
    run_free(fresh);
}

static void test_changing_shapes(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct run *run = new_run(&f, &allocator_default);
    for (int i = 0; i < 1000; i++) {
        /* The shape stays for a while, what is positive does not. */
        const int64_t n = i % 7 ? f.values[0].tensor.dims[0] : 1 + next_random(&f) % MOST;
        choose(&f, n, next_random(&f) % 101);
        compare(&f, run);
    }
    run_free(run);
    teardown(&f);
}

static void execute(struct fixture *f, struct run *run)
{
    struct value outputs[3] = {{0}};
    no_error(run_execute(run, f->inputs, outputs));
    release(outputs);
}

/* What is told on the way counts with the most of late. */
static void test_layout_follows(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct run *run = new_run(&f, &allocator_default);
    choose(&f, MOST, 100);
    execute(&f, run);
    const size_t first = run->slab.parts[SPACE_HOST].size;
    execute(&f, run);
    const size_t all = run->slab.parts[SPACE_HOST].size;
    assert_true(all > first); /* results whose size the first run told */
    void *memory = run->slab.parts[SPACE_HOST].memory;
    choose(&f, MOST, 60);
    execute(&f, run);
    assert_ptr_equal(run->slab.parts[SPACE_HOST].memory, memory); /* fits */
    assert_int_equal(run->slab.parts[SPACE_HOST].size, all);
    choose(&f, MOST, 0);
    for (int i = 0; i < 40; i++)
        execute(&f, run);
    for (uint32_t i = 0; i < f.plan->n_placed; i++)
        assert_true(run->slab.parts[SPACE_HOST].layout.sizes[i] == SIZE_MAX ||
                    run->slab.parts[SPACE_HOST].layout.sizes[i] == 0 ||
                    run->slab.parts[SPACE_HOST].layout.sizes[i] >=
                        MOST); /* of as many as the input has */
    run_free(run);
    teardown(&f);
}

/* When there is no memory for all that was ever told, that of the inputs does. */
static void test_memory_runs_out(void **state)
{
    (void)state;
    struct test_alloc counter;
    struct fixture f;
    setup(&f);
    for (long fail_at = 0;; fail_at++) {
        test_alloc_init(&counter);
        struct run *run = new_run(&f, &counter.allocator);
        choose(&f, MOST, 100);
        execute(&f, run);
        const long before = counter.count;
        counter.fail_at = before + fail_at;
        struct value outputs[3] = {{0}};
        tssa_status *status = run_execute(run, f.inputs, outputs);
        if (status)
            assert_int_equal(tssa_status_code(status), TSSA_OUT_OF_MEMORY);
        tssa_status_free(status);
        release(outputs);
        const bool done = counter.count <= counter.fail_at;
        counter.fail_at = -1;
        execute(&f, run); /* as if nothing had been */
        run_free(run);
        assert_int_equal(counter.live, 0);
        if (done)
            break;
    }
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changing_shapes),
        cmocka_unit_test(test_layout_follows),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
