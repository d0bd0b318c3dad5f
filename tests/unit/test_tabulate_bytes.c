/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs of ops on quantized values, in sessions that look up what these make of bytes and
 * as they are: the same bits, at all sizes, with any scales, with kernels and without. And memory
 * that runs out in the pass.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/handles.h"
#include "base/text.h"
#include "common/model_text.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/same_value.h"
#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"
#include "tssa.h"

#define PROGRAMS 120
#define OPS 24
#define MOST 64
#define INPUTS 3
#define OUTPUTS 4

/* A program as it is written: values by number, %v0 and so on. */
struct program {
    struct random random;
    struct text ops;
    size_t n;
    enum { UNSIGNED, SIGNED, FLOATS } kinds[MOST];
};

static int pick(struct program *p, int low, int high)
{
    return (int)random_int(&p->random, low, high);
}

/* The last value of floats or of bytes, or, now and then, any one of them. */
static size_t pick_value(struct program *p, bool floats)
{
    size_t found = 0;
    const int skipped = pick(p, 0, 2) ? 0 : pick(p, 0, 9);
    for (size_t i = p->n, seen = 0; i-- > 0;)
        if ((p->kinds[i] == FLOATS) == floats) {
            found = i;
            if (seen++ == (size_t)skipped)
                break;
        }
    return found;
}

/* Scales: mostly good ones. */
static const char *pick_scale(struct program *p)
{
    static const char *const good[] = {"0.1", "0.02", "0.5"}, *const bad[] = {"inf",   "nan",
                                                                              "0",     "-0.3",
                                                                              "1e-42", "1e30"};
    return pick(p, 0, 12) ? good[pick(p, 0, 2)] : bad[pick(p, 0, 5)];
}

/* %sK and %zK, which are one number each, of rank 0 or 1. */
static void write_scale(struct program *p, bool is_signed)
{
    const char *dims = pick(p, 0, 1) ? "" : "1";
    const char *open = *dims ? "[" : "", *close = *dims ? "]" : "";
    text_printf(&p->ops, "%%s%zu = Constant() {value = f32[%s] %s%s%s}\n", p->n, dims, open,
                pick_scale(p), close);
    text_printf(&p->ops, "%%z%zu = Constant() {value = %s[%s] %s%d%s}\n", p->n,
                is_signed ? "i8" : "u8", dims, open,
                is_signed ? pick(p, -128, 127) : pick(p, 0, 255), close);
}

static void dequantize(struct program *p)
{
    const size_t x = pick_value(p, false);
    write_scale(p, p->kinds[x] == SIGNED);
    text_printf(&p->ops, "%%v%zu = DequantizeLinear(%%v%zu, %%s%zu, %%z%zu)\n", p->n, x, p->n,
                p->n);
    p->kinds[p->n++] = FLOATS;
}

static void quantize(struct program *p)
{
    const size_t x = pick_value(p, true);
    const bool is_signed = pick(p, 0, 1);
    write_scale(p, is_signed);
    text_printf(&p->ops, "%%v%zu = QuantizeLinear(%%v%zu, %%s%zu, %%z%zu)\n", p->n, x, p->n, p->n);
    p->kinds[p->n++] = is_signed ? SIGNED : UNSIGNED;
}

static void compute(struct program *p)
{
    static const char *const forms[] = {"Relu(%%v%zu)",
                                        "Erf(%%v%zu)",
                                        "Tanh(%%v%zu)",
                                        "Sqrt(%%v%zu)",
                                        "Exp(%%v%zu)",
                                        "Reciprocal(%%v%zu)",
                                        "Clip(%%v%zu, %%low, %%high)",
                                        "Div(%%v%zu, %%high)",
                                        "Add(%%low, %%v%zu)",
                                        "Mul(%%v%zu, %%ones)"};
    text_printf(&p->ops, "%%v%zu = ", p->n);
    text_printf(&p->ops, forms[pick(p, 0, 9)], pick_value(p, true));
    text_printf(&p->ops, "\n");
    p->kinds[p->n++] = FLOATS;
}

static void join(struct program *p)
{
    static const char *const names[] = {"Add", "Mul", "Sub", "Max"};
    text_printf(&p->ops, "%%v%zu = %s(%%v%zu, %%v%zu)\n", p->n, names[pick(p, 0, 3)],
                pick_value(p, true), pick_value(p, true));
    p->kinds[p->n++] = FLOATS;
}

/* By way of truth values and integers. */
static void convert(struct program *p)
{
    const size_t x = pick_value(p, true), n = p->n;
    if (pick(p, 0, 1))
        text_printf(&p->ops,
                    "%%b%zu = Less(%%v%zu, %%high)\n%%v%zu = Where(%%b%zu, %%v%zu, %%low)\n", n, x,
                    n, n, x);
    else
        text_printf(&p->ops,
                    "%%c%zu = Clip(%%v%zu, %%low, %%high)\n%%i%zu = Cast(%%c%zu) {to = 6}\n"
                    "%%j%zu = Div(%%i%zu, %%three)\n%%v%zu = Cast(%%j%zu) {to = 1}\n",
                    n, x, n, n, n, n, n, n);
    p->kinds[p->n++] = FLOATS;
}

static void write_program(struct program *p, struct text *text)
{
    static void (*const writers[])(struct program *) = {quantize, quantize, dequantize, dequantize,
                                                        compute,  compute,  join,       convert};
    char outputs[128] = "";
    text_init(&p->ops, &allocator_default);
    p->n = INPUTS;
    p->kinds[0] = UNSIGNED;
    p->kinds[1] = SIGNED;
    p->kinds[2] = FLOATS;
    for (int i = 0; i < OPS; i++)
        writers[pick(p, 0, 7)](p);
    quantize(p);
    for (int i = 0; i < OUTPUTS; i++)
        snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s%%v%zu",
                 i ? ", " : "", pick_value(p, false));
    text_printf(text,
                "graph @g opset(\"\": 21) ir_version(10) (%%v0: u8[N, 3, 7], %%v1: i8[N, 3, 7], "
                "%%v2: f32[N, 3, 7]) -> (%s) {\n%%low = Constant() {value = f32[] -0.5}\n"
                "%%high = Constant() {value = f32[] 1.5}\n%%three = Constant() {value = i32[] 3}\n"
                "%%ones = Constant() {value = f32[1, 1, 1] [1.25]}\n%sreturn(%s)\n}\n",
                outputs, text_string(&p->ops), outputs);
    text_free(&p->ops);
}

/* ---- Running --------------------------------------------------------------------------------- */

static void make_inputs(struct program *p, tssa_context *context, int64_t n, tssa_value **inputs)
{
    static const tssa_dtype dtypes[INPUTS] = {TSSA_UINT8, TSSA_INT8, TSSA_FLOAT};
    const int64_t dims[] = {n, 3, 7};
    const size_t count = (size_t)n * 21;
    for (int i = 0; i < INPUTS; i++) {
        no_error(tssa_tensor_create(context, dtypes[i], 3, dims, &inputs[i]));
        uint8_t *bytes = tssa_tensor_data(inputs[i]);
        for (size_t k = 0; i < 2 && k < count; k++)
            bytes[k] = (uint8_t)random_bits(&p->random);
    }
    random_floats(tssa_tensor_data(inputs[2]), count, 1);
}

static void compare_runs(struct program *p, tssa_context *context, tssa_session *const *sessions)
{
    static const int64_t sizes[] = {0, 1, 40, 400};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        tssa_value *inputs[INPUTS], *outputs[2][OUTPUTS] = {{NULL}};
        make_inputs(p, context, sizes[k], inputs);
        for (size_t i = 0; i < 2; i++)
            no_error(tssa_session_run(sessions[i], INPUTS, inputs, OUTPUTS, outputs[i]));
        for (size_t i = 0; i < OUTPUTS; i++)
            assert_true(same_value(&outputs[1][i]->value, &outputs[0][i]->value));
        for (size_t i = 0; i < 2 * OUTPUTS; i++)
            tssa_value_free(outputs[i / OUTPUTS][i % OUTPUTS]);
        for (size_t i = 0; i < INPUTS; i++)
            tssa_value_free(inputs[i]);
    }
}

/* How many steps look bytes up. */
static size_t check(struct program *p, const char *text, tssa_compile compile, int threads)
{
    struct level_pair pair;
    level_pair_open(&pair, text, compile, threads);
    compare_runs(p, pair.context, pair.sessions);
    const size_t steps = level_pair_steps(&pair, "byte_table");
    level_pair_close(&pair);
    return steps;
}

static void test_programs(void **state)
{
    size_t steps = 0;
    (void)state;
    for (uint64_t i = 0; i < PROGRAMS; i++) {
        struct program p = {.random = {i + 1}};
        struct text text;
        text_init(&text, &allocator_default);
        write_program(&p, &text);
        steps += check(&p, text_string(&text), i % 4 ? TSSA_COMPILE_OFF : TSSA_COMPILE_WAIT,
                       i % 3 ? 1 : 2);
        text_free(&text);
    }
    assert_true(steps > PROGRAMS);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static const char swept[] = "graph (%x: u8[4096]) -> (%y as \"y\") {\n"
                            "%s = Constant() {value = f32[] 0.1}\n"
                            "%z = Constant() {value = u8[] 7}\n"
                            "%a = DequantizeLinear(%x, %s, %z)\n"
                            "%b = Erf(%a)\n"
                            "%c = Mul(%a, %b)\n"
                            "%y = QuantizeLinear(%c, %s, %z)\n"
                            "return(%y)\n}\n";

static tssa_status *run_pass(struct ir_graph *graph)
{
    static const char *const names[] = {"tabulate_bytes", "dead_code"};
    const tssa_optimize_options options = {.target = TSSA_TARGET_SESSION};
    struct evaluator evaluator;
    evaluator_init(&evaluator, graph->allocator);
    const struct pipeline pipeline = {
        .options = &options, .evaluate = evaluator_run, .evaluate_user = &evaluator};
    tssa_status *status = ir_infer_graph(graph);
    if (!status)
        status = pipeline_run_passes(graph, names, 2, &pipeline);
    evaluator_free(&evaluator);
    return status;
}

static tssa_status *parse_and_run(const tssa_allocator *allocator)
{
    struct ir_graph *graph;
    TRY(ir_parse(allocator, swept, strlen(swept), &graph));
    tssa_status *status = run_pass(graph);
    if (!status)
        assert_true(ir_block_has(graph->body, IR_OP_byte_table));
    ir_graph_free(graph);
    return status;
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(parse_and_run) > 0);
}

int main(void)
{
    /* Beside the tests' folder; see base/plugin.h. */
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs),
                                       cmocka_unit_test(memory_may_run_out_anywhere)};
    return cmocka_run_group_tests_name("tabulate_bytes", tests, NULL, NULL);
}
