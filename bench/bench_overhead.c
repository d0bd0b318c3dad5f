/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the executor itself costs: a chain of element-wise ops on 16 floats, and a loop with such a
 * body. Prints nanoseconds per step: the minimum and the median over the samples. The limit is the
 * kernel alone: 128 bytes in, 64 out, all in the first-level cache, a few nanoseconds.
 */
#include <string.h>

#include "base/text.h"
#include "bench/measure.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

#define CHAIN 1000
#define WARMUP 50
#define SAMPLES 501

static void write_chain(struct text *text)
{
    text_puts(text,
              "graph @chain opset(\"\": 18) ir_version(8) (%n: i64[], %v0: f32[16]) -> (%out) {\n");
    for (int i = 0; i < CHAIN; i++)
        text_printf(text, "%%v%d = Add@14(%%v%d, %%v0)\n", i + 1, i);
    text_printf(text, "%%out = Add@14(%%v%d, %%v0)\nreturn(%%out)\n}\n", CHAIN);
}

static void write_loop(struct text *text)
{
    text_puts(text,
              "graph @loop opset(\"\": 18) ir_version(8) (%n: i64[], %v0: f32[16]) -> (%out) {\n"
              "%out = Loop@16(%n, _, %v0) {\n"
              "body(%i: i64[], %c: bool[], %v: f32[16]) {\n"
              "%w = Add@14(%v, %v0)\n"
              "return(%c, %w)\n}\n}\nreturn(%out)\n}\n");
}

static void measure(const char *name, void (*write)(struct text *))
{
    struct text text;
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
    struct device_context device;
    device_context_open(&device, device_find(NULL), &allocator_default, NULL);
    text_init(&text, &allocator_default);
    write(&text);
    const char *source = text_string(&text);
    check(ir_parse(&allocator_default, source, text.size, &graph));
    check(ir_infer_graph(graph));
    check(plan_create(graph, &device, &plan));
    check(run_create(plan, &allocator_default, NULL, false, &run));

    static double samples[SAMPLES];
    int64_t trips = CHAIN;
    float x[16] = {1}, y[16];
    struct value n = {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_INT64, .data = &trips}};
    struct value v = {.kind = TSSA_KIND_TENSOR,
                      .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {16}, .data = x}};
    const struct value *inputs[] = {&n, &v};
    for (int i = -WARMUP; i < SAMPLES; i++) {
        struct value out = v;
        out.tensor.data = y;
        uint64_t start = executor_now();
        check(run_execute(run, inputs, &out));
        if (i >= 0)
            samples[i] = (double)(executor_now() - start) / CHAIN;
    }
    report(name, "ns", samples, SAMPLES);
    run_free(run);
    plan_free(plan);
    ir_graph_free(graph);
    device_context_close(&device);
    text_free(&text);
}

int main(void)
{
    measure("step of a chain, f32[16]", write_chain);
    measure("iteration of a 1-op loop", write_loop);
    return 0;
}
