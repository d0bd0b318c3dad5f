/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row of ir/composition.def is what the operator's kernel computes: both are run on random
 * operands of random shapes, and the bits are compared.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/kernel_check.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/test_device.h"
#include "ir/composition.h"
#include "ir/printer.h"
#include "ir/verifier.h"

/* A program of one op, being written. */
struct writer {
    struct random random;
    const char *dtype;
    int rank;
    int64_t dims[5];
    int64_t classes;          /* of a loss */
    struct text params, call; /* with their commas; the call with its attributes */
    int n_results;
};

static bool chance(struct writer *w, int percent)
{
    return random_chance(&w->random, percent);
}

static int number(struct writer *w, int low, int high)
{
    return (int)random_int(&w->random, low, high);
}

/* An operand, of these dims and what is already known of `dtype`. */
static void operand(struct writer *w, const char *name, const char *dtype, int rank,
                    const int64_t *dims)
{
    const bool first = w->params.size == 0;
    text_printf(&w->params, "%s%%%s: %s[", first ? "" : ", ", name, dtype);
    for (int i = 0; i < rank; i++)
        text_printf(&w->params, "%s%" PRId64, i ? ", " : "", dims[i]);
    text_puts(&w->params, "]");
    text_printf(&w->call, "%s%%%s", first ? "" : ", ", name);
}

/* Few elements in all, but now and then a long axis; in each lane of a row a level is full at 2,048
 * elements, of columns at 64. */
static void shape(struct writer *w, int least, int most)
{
    static const int64_t some[] = {1,  2,  3,  4,  5,   7,   8,    16,  31,
                                   33, 64, 65, 70, 130, 300, 2100, 4200};
    int64_t count = 1;
    w->rank = number(w, least, most);
    for (int i = 0; i < w->rank; i++) {
        w->dims[i] = some[number(w, 0, chance(w, 20) ? 16 : 8)];
        if (count * w->dims[i] > 9000)
            w->dims[i] = 1 + i % 2;
        count *= w->dims[i];
    }
}

static void begin(struct writer *w, const char *operator, int version)
{
    text_printf(&w->call, "%s", operator);
    if (version)
        text_printf(&w->call, "@%d", version);
    text_puts(&w->call, "(");
    operand(w, "x", w->dtype, w->rank, w->dims);
}

/* An axis, counted from either end. */
static int axis_of(struct writer *w, bool behind)
{
    return number(w, -w->rank, w->rank - !behind);
}

static void softmax(struct writer *w, const char *operator)
{
    const bool old = chance(w, 30);
    shape(w, 1, 4);
    begin(w, operator, old ? 11 : 13);
    text_puts(&w->call, ")");
    if (!old || chance(w, 70))
        text_printf(&w->call, " {axis = %d}", axis_of(w, old));
    else if (w->rank == 1)
        text_puts(&w->call, " {axis = 0}");
}

/* Of the shape of the last axes, some of them 1. */
static void broadcast(struct writer *w, const char *name)
{
    int64_t dims[5];
    const int rank = number(w, 0, w->rank);
    for (int i = 0; i < rank; i++)
        dims[i] = chance(w, 30) ? 1 : w->dims[w->rank - rank + i];
    operand(w, name, w->dtype, rank, dims);
}

static void layer(struct writer *w, const char *operator)
{
    const bool rms = strcmp(operator, "RMSNormalization") == 0;
    shape(w, 1, 4);
    begin(w, operator, 0);
    broadcast(w, "scale");
    if (!rms && chance(w, 60))
        broadcast(w, "bias");
    text_printf(&w->call, ") {axis = %d", axis_of(w, false));
    if (chance(w, 50))
        text_puts(&w->call, ", epsilon = 0.3");
    if (!rms && chance(w, 30))
        text_printf(&w->call, ", stash_type = %d", chance(w, 50) ? TSSA_DOUBLE : TSSA_FLOAT16);
    text_puts(&w->call, "}");
    w->n_results = rms ? 1 : number(w, 1, 3);
}

static void instance(struct writer *w, const char *operator)
{
    shape(w, 2, 5);
    begin(w, operator, 0);
    operand(w, "scale", w->dtype, 1, &w->dims[1]);
    operand(w, "bias", w->dtype, 1, &w->dims[1]);
    text_puts(&w->call, chance(w, 50) ? ") {epsilon = 0.25}" : ")");
}

static void batch(struct writer *w, const char *operator)
{
    static const char *const names[] = {"scale", "bias", "mean", "variance"};
    int64_t channels, rank = 1;
    const bool old = chance(w, 20), trains = !old && chance(w, 50), spatial = !old || chance(w, 50);
    shape(w, old ? 2 : 1, 5);
    channels = w->rank > 1 ? w->dims[1] : 1;
    if (!spatial)
        rank = w->rank - 1;
    begin(w, operator, old ? 7 : 15);
    for (int i = 0; i < 4; i++)
        operand(w, names[i], w->dtype, (int)rank, spatial ? &channels : &w->dims[1]);
    text_printf(&w->call, ") {%s = %d", old ? "spatial" : "training_mode", old ? spatial : trains);
    if (chance(w, 50))
        text_puts(&w->call, ", epsilon = 0.25, momentum = 0.75");
    text_puts(&w->call, "}");
    w->n_results = trains ? 3 : number(w, 1, 3);
}

static void group(struct writer *w, const char *operator)
{
    const int64_t groups = number(w, 1, 5);
    const bool old = chance(w, 40);
    shape(w, 2, 5);
    w->dims[1] = groups * number(w, 1, 4);
    begin(w, operator, old ? 18 : 21);
    operand(w, "scale", w->dtype, 1, old ? &groups : &w->dims[1]);
    operand(w, "bias", w->dtype, 1, old ? &groups : &w->dims[1]);
    text_printf(&w->call, ") {num_groups = %" PRId64 "%s}", groups,
                chance(w, 50) ? ", epsilon = 2e-2" : "");
}

static void mean_variance(struct writer *w, const char *operator)
{
    const bool usual = chance(w, 50);
    shape(w, usual ? 4 : 1, 4);
    begin(w, operator, 0);
    text_puts(&w->call, ")");
    if (usual)
        return;
    const char *comma = "";
    text_puts(&w->call, " {axes = ints[");
    if (chance(w, 90)) {
        w->call.size -= strlen("ints[");
        text_puts(&w->call, "[");
        const int one = number(w, 0, w->rank - 1);
        for (int i = 0; i < w->rank; i++)
            if (i == one || chance(w, 40)) {
                text_printf(&w->call, "%s%d", comma, chance(w, 50) ? i : i - w->rank);
                comma = ", ";
            }
    }
    text_puts(&w->call, "]}");
}

static void lp(struct writer *w, const char *operator)
{
    shape(w, 1, 4);
    begin(w, operator, 0);
    text_printf(&w->call, ") {axis = %d", axis_of(w, false));
    if (chance(w, 70))
        text_printf(&w->call, ", p = %d", number(w, 1, 2));
    text_puts(&w->call, "}");
}

static void loss(struct writer *w, const char *operator)
{
    static const char *const reductions[] = {"mean", "sum", "none"};
    int64_t dims[4];
    shape(w, 2, 5);
    w->classes = w->dims[1];
    dims[0] = w->dims[0];
    for (int i = 2; i < w->rank; i++)
        dims[i - 1] = w->dims[i];
    begin(w, operator, 0);
    operand(w, "target", chance(w, 50) ? "i64" : "i32", w->rank - 1, dims);
    if (chance(w, 50))
        operand(w, "weight", w->dtype, 1, &w->classes);
    text_printf(&w->call, ") {reduction = \"%s\"", reductions[number(w, 0, 2)]);
    if (chance(w, 50))
        text_printf(&w->call, ", ignore_index = %d", number(w, 0, 3));
    text_puts(&w->call, "}");
    if (strcmp(operator, "SoftmaxCrossEntropyLoss") == 0)
        w->n_results = number(w, 1, 2);
}

static const struct {
    enum ir_op_id id;
    const char *name;
    void (*write)(struct writer *w, const char *operator);
} cases[] = {
    {IR_OP_Softmax, "Softmax", softmax},
    {IR_OP_LogSoftmax, "LogSoftmax", softmax},
    {IR_OP_Hardmax, "Hardmax", softmax},
    {IR_OP_LayerNormalization, "LayerNormalization", layer},
    {IR_OP_RMSNormalization, "RMSNormalization", layer},
    {IR_OP_InstanceNormalization, "InstanceNormalization", instance},
    {IR_OP_BatchNormalization, "BatchNormalization", batch},
    {IR_OP_GroupNormalization, "GroupNormalization", group},
    {IR_OP_MeanVarianceNormalization, "MeanVarianceNormalization", mean_variance},
    {IR_OP_LpNormalization, "LpNormalization", lp},
    {IR_OP_NegativeLogLikelihoodLoss, "NegativeLogLikelihoodLoss", loss},
    {IR_OP_SoftmaxCrossEntropyLoss, "SoftmaxCrossEntropyLoss", loss},
};
#define N_CASES (sizeof cases / sizeof *cases)

/* ---- Running --------------------------------------------------------------------------------- */

/* To be freed. */
static struct text write_program(struct writer *w, size_t which)
{
    static const char *const dtypes[] = {"f32", "f32", "f64", "f16", "bf16"};
    struct text text;
    w->dtype = dtypes[number(w, 0, 4)];
    w->n_results = 1;
    text_init(&w->params, &allocator_default);
    text_init(&w->call, &allocator_default);
    cases[which].write(w, cases[which].name);
    const char *results[] = {"%y", "%y, %z", "%y, %z, %t"};
    const char *list = results[w->n_results - 1];
    text_init(&text, &allocator_default);
    text_printf(&text, "graph (%s) -> (%s) {\n  %s = ", text_string(&w->params), list, list);
    text_printf(&text, "%s\n  return(%s)\n}\n", text_string(&w->call), list);
    text_free(&w->params);
    text_free(&w->call);
    return text;
}

/* Mostly near 0, some equal, few of them far or no numbers. */
static double random_number(struct random *random)
{
    static const double special[] = {INFINITY, -INFINITY, NAN, 1e30, -1e-41, 300, -120, 1e-310};
    if (random_chance(random, 1) && random_chance(random, 20))
        return special[random_int(random, 0, 7)];
    if (random_chance(random, 10))
        return random_chance(random, 50) ? -0.0 : 0.0;
    return (double)random_int(random, -4000000, 4000000) / 1048576;
}

static void make_input(struct writer *w, const struct ir_type *type, bool zeros,
                       struct value *value)
{
    struct tensor tensor = {.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        assert_true(dim_is_const(type->dims[i], &tensor.dims[i]));
    no_error(tensor_create(&allocator_default, tensor.dtype, tensor.rank, tensor.dims, &tensor));
    for (size_t i = 0, n = tensor_count(&tensor); i < n; i++) {
        char *element = (char *)tensor.data + i * dtype_info(tensor.dtype)->size;
        if (dtype_is_float(tensor.dtype))
            dtype_store_double(tensor.dtype, element, zeros ? 0 : random_number(&w->random));
        else
            dtype_store_int64(tensor.dtype, element, random_int(&w->random, 0, w->classes - 1));
    }
    *value = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = tensor};
}

static struct ir_graph *composition_of(const struct ir_graph *program, const char *text)
{
    struct ir_graph *graph;
    const struct ir_op *op = program->body->first;
    no_error(ir_composition_of(op, &allocator_default, &graph));
    if (!graph)
        fail_msg("no composition:\n%s", text);
    no_error(ir_verify(graph));
    for (const struct ir_op *part = graph->body->first; part; part = part->next)
        assert_true(part->info->id != op->info->id);
    return graph;
}

static void check(size_t which, uint64_t seed)
{
    struct writer w = {.random = {seed * 64 + which}};
    struct text text = write_program(&w, which);
    struct kernel_program program = {0}, composition = {0};
    struct value inputs[5];
    const struct value *given[5];
    struct ir_graph *graph = kernel_parse(text_string(&text));
    struct ir_graph *composed = composition_of(graph, text_string(&text));
    const bool zeros = chance(&w, 5);
    const uint32_t n = graph->body->n_params;
    assert_int_equal(composed->body->n_params, n);
    for (uint32_t i = 0; i < n; i++) {
        make_input(&w, graph->body->params[i]->type, zeros, &inputs[i]);
        given[i] = &inputs[i];
    }
    kernel_program_open(&program, graph, test_device());
    kernel_program_open(&composition, composed, test_device());
    no_error(run_execute(program.run, given, program.outputs));
    no_error(run_execute(composition.run, given, composition.outputs));
    for (uint32_t i = 0; i < program.n_outputs; i++)
        kernel_compare(&program.outputs[i].tensor, &composition.outputs[i].tensor,
                       text_string(&text), i);
    kernel_program_close(&composition);
    kernel_program_close(&program);
    for (uint32_t i = 0; i < n; i++)
        value_release(&inputs[i]);
    text_free(&text);
}

static void kernels_compute_them(void **state)
{
    (void)state;
    for (size_t which = 0; which < N_CASES; which++)
        for (uint64_t seed = 0; seed < 150; seed++)
            check(which, seed);
}

/* None of the rows is left out above. */
static void all_are_checked(void **state)
{
    (void)state;
    static const enum ir_op_id rows[] = {
#define COMPOSITION(op, ...) IR_OP_##op,
#include "ir/composition.def"
#undef COMPOSITION
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool found = false;
        for (size_t which = 0; which < N_CASES; which++)
            found |= cases[which].id == rows[i];
        if (!found)
            fail_msg("%s", ir_op_info(rows[i])->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_checked),
                                       cmocka_unit_test(kernels_compute_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
