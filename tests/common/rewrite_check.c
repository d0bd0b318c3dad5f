/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rewrite_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "common/test_device.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"
#include "runtime/executor.h"

#define MAX_VALUES 32

struct program {
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
    struct value outputs[MAX_VALUES];
    size_t n_outputs;
};

static void print_program(const char *title, const struct ir_graph *graph)
{
    struct text text;
    text_init(&text, &allocator_default);
    ir_print_graph(graph, false, &text);
    print_message("%s:\n%s\n", title, text_string(&text));
    text_free(&text);
}

static void no_error(const char *source, tssa_status *status)
{
    if (!status)
        return;
    print_message("%s\n", tssa_status_message(status)); /* first: long messages are cut */
    print_message("%s\n", source);
    tssa_status_free(status);
    fail();
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static tssa_status *run_passes(struct ir_graph *graph, const struct rewrite_check *check)
{
    const tssa_optimize_options options = {.verify_after_passes = 1, .target = check->target};
    const char *passes = check->passes;
    struct evaluator evaluator;
    char names[512], *rest = NULL;
    const char *list[32];
    size_t count = 0;
    evaluator_init(&evaluator, &allocator_default);
    const struct pipeline pipeline = {.options = &options,
                                      .evaluate = evaluator_run,
                                      .evaluate_user = &evaluator,
                                      .batching = check->batching};
    snprintf(names, sizeof names, "%s", passes ? passes : "");
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        list[count++] = name;
    tssa_status *status = passes ? pipeline_run_passes(graph, list, count, &pipeline)
                                 : pipeline_run(graph, PIPELINE_MAX_LEVEL, &pipeline);
    evaluator_free(&evaluator);
    return status;
}

static struct ir_graph *prepare(const struct rewrite_check *check, bool rewritten)
{
    struct ir_graph *graph;
    const char *text = check->text;
    no_error(text, ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(text, ir_verify(graph));
    no_error(text, ir_infer_graph(graph));
    if (rewritten)
        no_error(text, run_passes(graph, check));
    return graph;
}

static void program_open(struct program *p, const struct rewrite_check *check, bool rewritten)
{
    p->graph = prepare(check, rewritten);
    p->n_outputs = ir_block_return(p->graph->body)->n_operands;
    assert_true(p->n_outputs <= MAX_VALUES);
    no_error(check->text, plan_create(p->graph, test_device(), &p->plan));
    no_error(check->text, run_create(p->plan, &allocator_default, NULL, false, &p->run));
}

static void program_close(struct program *p)
{
    for (size_t i = 0; i < p->n_outputs; i++)
        value_release(&p->outputs[i]);
    run_free(p->run);
    plan_free(p->plan);
    ir_graph_free(p->graph);
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

/*
 * Of every sixteen floats one is -0.0 and one 0.0; of every sixty-four one an infinity and one NaN.
 */
static double random_float(struct random *random)
{
    static const double special[] = {INFINITY, -INFINITY, NAN, NAN};
    int64_t kind = random_int(random, 0, 63);
    if (kind < 8)
        return kind < 4 ? -0.0 : 0.0;
    double number = (double)random_int(random, -64, 64) / 32;
    return kind < 12 ? special[kind - 8] : number;
}

static void fill(const struct rewrite_check *check, struct random *random, struct tensor *tensor)
{
    size_t count = tensor_count(tensor), width = dtype_info(tensor->dtype)->size;
    for (size_t i = 0; i < count; i++) {
        char *element = (char *)tensor->data + i * width;
        if (dtype_is_float(tensor->dtype))
            dtype_store_double(tensor->dtype, element, random_float(random));
        else if (check->any_bytes && width == 1)
            *element = (char)random_bits(random);
        else if (tensor->rank == 0 && dtype_is_integer(tensor->dtype))
            dtype_store_int64(tensor->dtype, element, check->scalar);
        else
            dtype_store_int64(tensor->dtype, element,
                              random_int(random, 0, tensor->dtype == TSSA_BOOL ? 1 : 3));
    }
}

static void make_input(const struct rewrite_check *check, struct random *random,
                       const struct ir_type *type, struct value *value)
{
    struct tensor tensor = {.dtype = type->dtype, .rank = type->rank};
    assert_int_equal(type->kind, TYPE_TENSOR);
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &tensor.dims[i]))
            tensor.dims[i] = check->size;
    tensor.owner = buffer_create(&allocator_default, tensor_bytes(&tensor) + 1);
    assert_non_null(tensor.owner);
    tensor.data = tensor.owner->data;
    fill(check, random, &tensor);
    *value = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = tensor};
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static bool close_enough(const struct tensor *a, const struct tensor *b, double tolerance)
{
    size_t width = dtype_info(a->dtype)->size;
    for (size_t i = 0; i < tensor_count(a); i++) {
        double x = dtype_load_double(a->dtype, (const char *)a->data + i * width);
        double y = dtype_load_double(b->dtype, (const char *)b->data + i * width);
        if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= tolerance * (1 + fabs(y))))
            return false;
    }
    return true;
}

/* The same bits, but that a NaN may be another one: which of two operands' it is depends on their
 * order. */
static bool same_bits(const struct tensor *a, const struct tensor *b)
{
    size_t width = dtype_info(a->dtype)->size, count = tensor_count(a);
    const char *x = a->data, *y = b->data;
    if (!dtype_is_float(a->dtype) || count == 0)
        return count == 0 || memcmp(x, y, tensor_bytes(a)) == 0;
    for (size_t i = 0; i < count; i++, x += width, y += width)
        if (memcmp(x, y, width) != 0 &&
            !(isnan(dtype_load_double(a->dtype, x)) && isnan(dtype_load_double(a->dtype, y))))
            return false;
    return true;
}

static bool same(const struct value *a, const struct value *b, double tolerance)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == TSSA_KIND_TENSOR) {
        if (a->tensor.dtype != b->tensor.dtype || !tensor_same_shape(&a->tensor, &b->tensor))
            return false;
        if (tolerance > 0 && dtype_is_float(a->tensor.dtype))
            return close_enough(&a->tensor, &b->tensor, tolerance);
        return same_bits(&a->tensor, &b->tensor);
    }
    if (a->kind != TSSA_KIND_SEQUENCE ||
        sequence_length(a->sequence) != sequence_length(b->sequence))
        return false;
    for (size_t i = 0; i < sequence_length(a->sequence); i++)
        if (!same(sequence_element(a->sequence, i), sequence_element(b->sequence, i), tolerance))
            return false;
    return true;
}

static void fail_check(const struct rewrite_check *check, const struct program *before,
                       const struct program *after, const char *what)
{
    print_message("size %lld, scalar %lld, seed %llu: %s\n", (long long)check->size,
                  (long long)check->scalar, (unsigned long long)check->seed, what);
    print_program("before", before->graph);
    print_program("after", after->graph);
    fail();
}

bool rewrite_check(const struct rewrite_check *check)
{
    struct program before = {0}, after = {0};
    struct random random = {check->seed};
    struct value inputs[MAX_VALUES];
    const struct value *given[MAX_VALUES];
    program_open(&before, check, false);
    program_open(&after, check, true);
    uint32_t n_inputs = before.graph->body->n_params;
    assert_true(n_inputs <= MAX_VALUES);
    for (uint32_t i = 0; i < n_inputs; i++) {
        make_input(check, &random, before.graph->body->params[i]->type, &inputs[i]);
        given[i] = &inputs[i];
    }
    tssa_status *first = run_execute(before.run, given, before.outputs);
    tssa_status *second = run_execute(after.run, given, after.outputs);
    if (check->lenient ? !first && second : !first != !second)
        fail_check(check, &before, &after, tssa_status_message(first ? first : second));
    for (size_t i = 0; !first && i < before.n_outputs; i++)
        if (!same(&after.outputs[i], &before.outputs[i], check->tolerance))
            fail_check(check, &before, &after, "the results differ");
    bool ran = !first;
    tssa_status_free(first);
    tssa_status_free(second);
    for (uint32_t i = 0; i < n_inputs; i++)
        value_release(&inputs[i]);
    program_close(&before);
    program_close(&after);
    return ran;
}

int rewrite_count(const char *source, const char *passes, const char *word)
{
    return rewrite_count_of(&(struct rewrite_check){.text = source, .passes = passes}, word);
}

int rewrite_count_batched(const char *source, const char *passes, struct pass_batching batching,
                          const char *word)
{
    return rewrite_count_of(
        &(struct rewrite_check){.text = source, .passes = passes, .batching = batching}, word);
}

int rewrite_count_of(const struct rewrite_check *check, const char *word)
{
    struct ir_graph *graph = prepare(check, true);
    struct text text;
    int count = 0;
    text_init(&text, &allocator_default);
    ir_print_graph(graph, false, &text);
    for (const char *at = text_string(&text); (at = strstr(at, word)); at += strlen(word))
        count++;
    text_free(&text);
    ir_graph_free(graph);
    return count;
}
