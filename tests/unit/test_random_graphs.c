/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs (common/random_graph.h): neither the passes of a level nor the places that the
 * memory plan gives to results may change a bit. Every program runs with all results in the pool,
 * none of which takes the place of another, and with the memory plan, whose slab is filled with
 * NaNs before each run; several times on one run state, with outputs of the run's and of the
 * caller's; and optimized; and on a device with memory of its own and the CPU's kernels, all of
 * them or some.
 *
 * TSSA_SEED=N runs one of them and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/random_graph.h"
#include "common/random_programs.h"
#include "common/same_value.h"
#include "common/shadow_device.h"
#include "common/test_device.h"
#include "ir/cost.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"
#include "runtime/executor.h"
#include "runtime/poison.h"

/* ---- Running --------------------------------------------------------------------------------- */

static const struct ir_fusion kernels = {.classes = IR_FUSES_ALL,
                                         .machine = &cost_cpu,
                                         .most_operands = 8,
                                         .moves_inside = true,
                                         .row_parts = true,
                                         .side_by_side = true};

static const struct {
    int level; /* 0: fuse alone */
    tssa_target target;
    struct pass_batching batching;
    const char *name;
    const struct ir_fusion *fusion;
} ways[] = {
    {1, TSSA_TARGET_ONNX, {0}, "optimized at level 1", NULL},
    {2, TSSA_TARGET_ONNX, {0}, "optimized at level 2", NULL},
    {2, TSSA_TARGET_SESSION, {0}, "optimized at level 2 for sessions", NULL},
    {2, TSSA_TARGET_ONNX, {.block = 2}, "optimized at level 2, loops in blocks", NULL},
    {2, TSSA_TARGET_ONNX, {.block_bytes = 100}, "optimized at level 2, in small blocks", NULL},
    {0, TSSA_TARGET_SESSION, {0}, "with ops fused", &kernels},
    {2, TSSA_TARGET_SESSION, {0}, "optimized at level 2, with ops fused", &kernels}};

#define N_WAYS 7

/* On a device with memory of its own. */
static const struct {
    int way; /* -1: as it is */
    bool lacks;
    const char *name;
} shadows[] = {{-1, false, "on a device"},
               {-1, true, "on a device that lacks kernels"},
               {4, true, "in small blocks, on a device that lacks kernels"},
               {N_WAYS - 1, false, "with ops fused, on a device"}};

#define N_SHADOWS 4

struct shadow {
    struct device_context context;
    struct plan *plan;
    struct run *run;
};

struct program {
    const char *text;
    uint64_t seed;
    unsigned long batched; /* loops that level 2 computed at once */
    unsigned long fused;   /* kernels that ops were put into */
    struct ir_graph *graph, *optimized_graph[N_WAYS];
    struct plan *plan, *pooled, *optimized_plan[N_WAYS];
    struct run *run, *reference, *optimized[N_WAYS]; /* [i]: in way i */
    struct shadow shadows[N_SHADOWS];
};

static void no_error(const struct program *p, tssa_status *status)
{
    if (!status)
        return;
    print_message("TSSA_SEED=%llu: %s\n", (unsigned long long)p->seed, tssa_status_message(status));
    tssa_status_free(status);
    fail();
}

static struct ir_graph *parse(const struct program *p)
{
    struct ir_graph *graph;
    no_error(p, ir_parse(&allocator_default, p->text, strlen(p->text), &graph));
    no_error(p, ir_infer_graph(graph));
    no_error(p, ir_verify(graph));
    return graph;
}

static struct run *prepare(const struct program *p, const struct ir_graph *graph,
                           struct plan **plan)
{
    struct run *run;
    no_error(p, plan_create(graph, test_device(), plan));
    no_error(p, run_create(*plan, &allocator_default, NULL, false, &run));
    return run;
}

static void open_shadow(struct program *p, int i)
{
    struct shadow *shadow = &p->shadows[i];
    const int way = shadows[i].way;
    device_context_open(&shadow->context, shadow_device(shadows[i].lacks), &allocator_default,
                        NULL);
    shadow->context.host = test_device();
    no_error(p, plan_create(way < 0 ? p->graph : p->optimized_graph[way], &shadow->context,
                            &shadow->plan));
    no_error(p, run_create(shadow->plan, &allocator_default, NULL, false, &shadow->run));
}

static void close_shadow(struct shadow *shadow)
{
    run_free(shadow->run);
    plan_free(shadow->plan);
    device_context_close(&shadow->context);
}

static void count_batched(void *user, const tssa_remark *remark)
{
    struct program *p = user;
    p->batched += remark->kind == TSSA_REMARK_APPLIED && strcmp(remark->pass, "parallelize") == 0;
    p->fused += remark->kind == TSSA_REMARK_APPLIED && strcmp(remark->pass, "fuse") == 0;
}

static void program_open(struct program *p)
{
    tssa_optimize_options checked = {
        .verify_after_passes = 1, .remark = count_batched, .remark_user = p};
    struct evaluator evaluator;
    evaluator_init(&evaluator, &allocator_default);
    struct pipeline pipeline = {
        .options = &checked, .evaluate = evaluator_run, .evaluate_user = &evaluator};
    p->graph = parse(p);
    p->run = prepare(p, p->graph, &p->plan);
    p->reference = prepare(p, p->graph, &p->pooled);
    p->pooled->n_placed = p->pooled->n_leaving = p->pooled->n_parts = 0;
    no_error(p, poison_plan(p->plan));
    p->pooled->n_results = 0;
    p->pooled->last_uses = ARENA_ARRAY(&p->pooled->arena, bool, p->pooled->n_inputs); /* none */
    assert_non_null(p->pooled->last_uses);
    for (int i = 0; i < N_WAYS; i++) {
        p->optimized_graph[i] = parse(p);
        checked.target = ways[i].target;
        pipeline.batching = ways[i].batching;
        pipeline.fusion = ways[i].fusion;
        static const char *const fuse[] = {"fuse"};
        no_error(p, ways[i].level ? pipeline_run(p->optimized_graph[i], ways[i].level, &pipeline)
                                  : pipeline_run_passes(p->optimized_graph[i], fuse, 1, &pipeline));
        p->optimized[i] = prepare(p, p->optimized_graph[i], &p->optimized_plan[i]);
        no_error(p, poison_plan(p->optimized_plan[i]));
    }
    evaluator_free(&evaluator);
    for (int i = 0; i < N_SHADOWS; i++)
        open_shadow(p, i);
}

static void program_close(struct program *p)
{
    for (int i = 0; i < N_SHADOWS; i++)
        close_shadow(&p->shadows[i]);
    run_free(p->run);
    run_free(p->reference);
    plan_free(p->plan);
    plan_free(p->pooled);
    ir_graph_free(p->graph);
    for (int i = 0; i < N_WAYS; i++) {
        run_free(p->optimized[i]);
        plan_free(p->optimized_plan[i]);
        ir_graph_free(p->optimized_graph[i]);
    }
}

static void expect_same(const struct program *p, const struct value *actual,
                        const struct value *expected, const char *when)
{
    for (int i = 0; i < RANDOM_GRAPH_OUTPUTS; i++) {
        if (same_value(&actual[i], &expected[i]))
            continue;
        print_message("TSSA_SEED=%llu: output %d differs, %s\n", (unsigned long long)p->seed, i,
                      when);
        fail();
    }
}

static void release(struct value *outputs)
{
    for (int i = 0; i < RANDOM_GRAPH_OUTPUTS; i++)
        value_release(&outputs[i]);
}

static void poison(struct run *run)
{
    if (run->slab.parts[SPACE_HOST].memory)
        memset(run->slab.parts[SPACE_HOST].memory, 0xff, run->slab.parts[SPACE_HOST].size);
}

/* Memory of the caller's for every output that is a tensor. */
static void give(const struct value *expected, struct value *outputs)
{
    for (int i = 0; i < RANDOM_GRAPH_OUTPUTS; i++) {
        if (expected[i].kind != TSSA_KIND_TENSOR)
            continue;
        outputs[i] = expected[i];
        outputs[i].tensor.owner =
            buffer_create(&allocator_default, tensor_bytes(&outputs[i].tensor));
        assert_non_null(outputs[i].tensor.owner);
        outputs[i].tensor.data = outputs[i].tensor.owner->data;
        memset(outputs[i].tensor.data, 0xfe, tensor_bytes(&outputs[i].tensor));
    }
}

static void run_optimized(struct program *p, const struct value *const *inputs,
                          const struct value *expected)
{
    for (int i = 0; i < N_WAYS; i++) {
        struct value outputs[RANDOM_GRAPH_OUTPUTS] = {0};
        poison(p->optimized[i]);
        no_error(p, run_execute(p->optimized[i], inputs, outputs));
        expect_same(p, outputs, expected, ways[i].name);
        release(outputs);
    }
}

/* Every output alone, and all but one, as they are among the others. */
static void run_wanted(const struct program *p, struct run *run, const struct value *const *inputs,
                       const struct value *expected)
{
    for (int k = 0; k < 2 * RANDOM_GRAPH_OUTPUTS; k++) {
        struct value outputs[RANDOM_GRAPH_OUTPUTS] = {0};
        bool wanted[RANDOM_GRAPH_OUTPUTS];
        for (int i = 0; i < RANDOM_GRAPH_OUTPUTS; i++)
            wanted[i] = (i == k / 2) == (k % 2 == 0);
        poison(run);
        no_error(p, run_execute_some(run, inputs, outputs, wanted));
        for (int i = 0; i < RANDOM_GRAPH_OUTPUTS; i++) {
            if (wanted[i] ? same_value(&outputs[i], &expected[i])
                          : outputs[i].kind == TSSA_KIND_NONE)
                continue;
            print_message("TSSA_SEED=%llu: output %d differs, choice %d\n",
                          (unsigned long long)p->seed, i, k);
            fail();
        }
        release(outputs);
    }
}

static void run_shadows(struct program *p, const struct value *const *inputs,
                        const struct value *expected)
{
    for (int i = 0; i < N_SHADOWS; i++) {
        struct value outputs[RANDOM_GRAPH_OUTPUTS] = {0};
        no_error(p, run_execute(p->shadows[i].run, inputs, outputs));
        expect_same(p, outputs, expected, shadows[i].name);
        release(outputs);
        give(expected, outputs);
        no_error(p, run_execute(p->shadows[i].run, inputs, outputs));
        expect_same(p, outputs, expected, shadows[i].name);
        release(outputs);
    }
    run_wanted(p, p->shadows[1].run, inputs, expected);
}

static void run_all_ways(struct program *p, int64_t trips, float *x, int64_t count)
{
    struct value n = {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_INT64, .data = &trips}};
    struct value a = {.kind = TSSA_KIND_TENSOR,
                      .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {count}, .data = x}};
    struct value b = a;
    b.tensor.data = x + count;
    const struct value *inputs[] = {&n, &a, &b};
    struct value expected[RANDOM_GRAPH_OUTPUTS] = {0}, first[RANDOM_GRAPH_OUTPUTS] = {0},
                 given[RANDOM_GRAPH_OUTPUTS] = {0}, last[RANDOM_GRAPH_OUTPUTS] = {0};
    tssa_status *status = run_execute(p->reference, inputs, expected);
    if (status) { /* a loop without iterations stacks rows of an unknown size */
        tssa_status *other = run_execute(p->run, inputs, first);
        assert_non_null(other);
        assert_string_equal(tssa_status_message(other), tssa_status_message(status));
        tssa_status_free(other);
        tssa_status_free(status);
        return;
    }
    poison(p->run);
    no_error(p, run_execute(p->run, inputs, first));
    expect_same(p, first, expected, "in the first run");
    give(expected, given);
    poison(p->run);
    no_error(p, run_execute(p->run, inputs, given));
    expect_same(p, given, expected, "in memory of the caller's");
    poison(p->run);
    no_error(p, run_execute(p->run, inputs, last));
    expect_same(p, last, expected, "in a later run");
    poison(p->run);
    expect_same(p, first, expected, "after later runs");
    expect_same(p, given, expected, "in memory of the caller's, after later runs");
    release(last);
    release(first);
    release(given);
    run_wanted(p, p->run, inputs, expected);
    run_shadows(p, inputs, expected);
    run_optimized(p, inputs, expected);
    release(expected);
}

/* Zeros of either sign among them, and in one set of inputs infinities and NaNs. */
static float number(int64_t i, int64_t set)
{
    static const float special[] = {-0.0f, 0.0f, -0.0f, INFINITY, -INFINITY, NAN};
    int64_t pick = (i * 7919 + set) % 101;
    return pick % 17 == 1 ? special[pick / 17 % (set == 3 ? 6 : 3)] : (float)pick / 8 - 6;
}

/* How many loops were computed at once, and kernels made. */
struct tally {
    unsigned long batched, fused;
};

static void run_seed(uint64_t seed, bool print, struct tally *tally)
{
    char *text = random_graph(seed);
    if (print)
        fputs(text, stderr);
    struct program p = {.text = text, .seed = seed};
    program_open(&p);
    static const int64_t counts[] = {5, 300, 1, 37};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        size_t bytes = 2 * (size_t)counts[k] * sizeof(float);
        float *x = malloc(bytes), *before = malloc(bytes);
        assert_true(x && before);
        for (int64_t i = 0; i < 2 * counts[k]; i++)
            x[i] = number(i, (int64_t)k);
        memcpy(before, x, bytes);
        for (int64_t trips = 0; trips < 3; trips += 2)
            run_all_ways(&p, trips, x, counts[k]);
        assert_memory_equal(x, before, bytes);
        free(x);
        free(before);
    }
    program_close(&p);
    free(text);
    tally->batched += p.batched;
    tally->fused += p.fused;
}

static void test_no_bit_changes(void **state)
{
    (void)state;
    uint64_t seed;
    struct tally tally = {0};
    if (programs_seed(&seed)) {
        run_seed(seed, true, &tally);
        return;
    }
    unsigned long count = programs_count(300);
    for (unsigned long i = 1; i <= count; i++)
        run_seed(i, false, &tally);
    print_message("%lu loops were computed at once, %lu kernels made\n", tally.batched,
                  tally.fused);
    assert_true(tally.batched >= count / 10 && tally.fused >= count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_bit_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
