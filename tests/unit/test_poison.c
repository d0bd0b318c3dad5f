/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No run reads memory that its plan says is dead: every committed model gives the same bits when
 * that is written over (runtime/poison.h) as when everything comes from the pool, whoever gives the
 * outputs' memory.
 */
/* ctest-timeout: 300 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/committed_models.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/same_value.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"
#include "runtime/poison.h"

#define RUNS 5 /* sizes are learnt, outputs given, and the layout takes its time */

static void make(const struct model_run *model, struct plan **plan, struct run **run, bool poisoned)
{
    no_error(plan_create(model->model->graph, &model->context->device, plan));
    if (poisoned)
        no_error(poison_plan(*plan));
    else
        (*plan)->n_placed = (*plan)->n_leaving = (*plan)->n_parts = 0;
    no_error(run_create(*plan, &allocator_default, NULL, false, run));
}

static void compare(struct run *run, struct run *pooled, const struct value *const *inputs,
                    size_t count)
{
    struct value *outputs = xcalloc(count, sizeof *outputs);
    struct value *expected = xcalloc(count, sizeof *expected);
    no_error(run_execute(pooled, inputs, expected));
    for (int r = 0; r < RUNS; r++) {
        for (size_t i = 0; i < count; i++)
            if (outputs[i].kind != TSSA_KIND_TENSOR || outputs[i].tensor.dtype == TSSA_STRING)
                value_release(&outputs[i]);
            else
                memset(outputs[i].tensor.data, 0x55, tensor_bytes(&outputs[i].tensor));
        no_error(run_execute(run, inputs, outputs));
        for (size_t i = 0; i < count; i++)
            assert_true(same_value(&outputs[i], &expected[i]));
    }
    for (size_t i = 0; i < count; i++) {
        value_release(&outputs[i]);
        value_release(&expected[i]);
    }
    free(outputs);
    free(expected);
}

static void run_model(const char *path, int level)
{
    const tssa_optimize_options options = {.struct_size = sizeof options, .level = level};
    struct model_run model = {0};
    struct plan *plans[2];
    struct run *runs[2];
    no_error(model_run_open(&model, path, 0));
    no_error(tssa_model_optimize(model.model, &options));
    no_error(model_run_read_inputs(&model, path));
    const struct value **inputs = xcalloc(model.input_count, sizeof *inputs);
    for (size_t i = 0; i < model.input_count; i++)
        inputs[i] = model.inputs[i] ? &model.inputs[i]->value : NULL;
    for (int i = 0; i < 2; i++)
        make(&model, &plans[i], &runs[i], i == 0);
    compare(runs[0], runs[1], inputs, model.output_count);
    assert_true(plans[0]->n_placed == 0 || runs[0]->slab.parts[SPACE_HOST].size == 0 ||
                runs[0]->poisoned > 0);
    for (int i = 0; i < 2; i++) {
        run_free(runs[i]);
        plan_free(plans[i]);
    }
    free(inputs);
    model_run_close(&model);
}

static void one_model(void **state)
{
    run_model(*state, 0);
    run_model(*state, 1);
    run_model(*state, 2);
}

/* ---- What it finds --------------------------------------------------------------------------- */

#define N 100

/* -(-x) + x, by a plan that says that -x is dead after step `last`. */
static void run_chain(bool poisoned, uint32_t last, float *results)
{
    static const char text[] =
        "graph @g opset(\"\": 21) ir_version(10) (%x: f32[N]) -> (%z) {\n"
        "  %a = Neg@13(%x)\n  %r = ReduceMax@20(%x)\n  %b = Neg@13(%a)\n  %z = Add@14(%b, %r)\n"
        "  return(%z)\n}\n";
    float x[N];
    struct value input = {.kind = TSSA_KIND_TENSOR,
                          .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {N}, .data = x}};
    struct value output = {
        .kind = TSSA_KIND_TENSOR,
        .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {N}, .data = results}};
    const struct value *inputs[] = {&input};
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    no_error(plan_create(graph, test_device(), &plan));
    if (poisoned)
        no_error(poison_plan(plan));
    struct plan_placed *placed = (struct plan_placed *)plan->placed; /* the plan is the test's */
    for (uint32_t i = 0; i < plan->n_placed; i++)
        if (placed[i].output == 0)
            placed[i].last = last ? last : placed[i].last;
    no_error(run_create(plan, &allocator_default, NULL, false, &run));
    no_error(run_execute(run, inputs, &output));
    run_free(run);
    plan_free(plan);
    ir_graph_free(graph);
}

/* What is read too late shows, and nothing else does. */
static void finds_what_is_read_too_late(void **state)
{
    float results[N];
    (void)state;
    run_chain(true, 0, results);
    for (int i = 0; i < N; i++)
        assert_true(results[i] == (float)(i + N - 1));
    run_chain(true, 1, results);
    for (int i = 0; i < N; i++)
        assert_true(isnan(results[i]));
    /* without it, nobody notices */
    run_chain(false, 1, results);
    assert_true(results[1] == (float)N);
}

/* What goes back to the pool is written over, and what it keeps when it is cleared is asked for the
 * same again. */
static void pool_writes_over(void **state)
{
    struct pool pool;
    (void)state;
    pool_init(&pool, &allocator_default);
    pool.poisons = true;
    for (int i = 0; i < 2; i++) {
        for (int run = 0; run < 2; run++) { /* the second one has a chunk */
            struct buffer *buffer = pool_alloc(&pool, 64);
            assert_non_null(buffer);
            memset(buffer->data, 7, 64);
            buffer_release(buffer);
            if (run == 0)
                pool_trim(&pool);
        }
        struct buffer *again = pool_alloc(&pool, 64); /* where that lay */
        const unsigned char *data = again->data;
        for (int k = 0; k < 64; k++)
            assert_int_equal(data[k], POOL_POISON);
        buffer_release(again);
        pool_clear(&pool);
        assert_true(pool.poisons);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_is_read_too_late),
                                       cmocka_unit_test(pool_writes_over)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return committed_models_test(one_model) + failed;
}
