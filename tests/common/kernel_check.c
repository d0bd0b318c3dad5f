/* SPDX-License-Identifier: Apache-2.0 */
#include "common/kernel_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/gir_build.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/random_columns.h"
#include "common/random_fuse.h"
#include "common/random_keeps.h"
#include "common/random_loops.h"
#include "common/random_programs.h"
#include "common/random_ranges.h"
#include "common/random_rows.h"
#include "common/random_scans.h"
#include "common/test_device.h"
#include "common/xmalloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/row.h"
#include "ir/verifier.h"
#include "runtime/compile.h"

#define ROUNDS 2 /* runs of each program */

struct ir_graph *kernel_parse(const char *text)
{
    struct ir_graph *graph;
    tssa_status *status = ir_parse(&allocator_default, text, strlen(text), &graph);
    if (!status)
        status = ir_infer_graph(graph);
    if (!status)
        status = ir_verify(graph);
    if (status)
        print_message("%s\n%s\n", tssa_status_message(status), text);
    no_error(status);
    return graph;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static void random_element(struct random *random, tssa_dtype dtype, void *element)
{
    static const double special[] = {
        0.0,  -0.0,  INFINITY,     -INFINITY,     NAN,    1e-41, -1e-310, 6e-8,
        1e30, -1e30, 65504.0,      0x1p-126,      0.5,    -1,    2,       3,
        2.5,  -3.5,  2147483648.0, -2147483649.0, 9.3e18, 88.5,  -104.5,  1.5e9};
    const int64_t way = random_int(random, 0, 9);
    const uint64_t bits = random_bits(random);
    if (dtype == TSSA_BOOL) /* which is 0 or 1 */
        *(bool *)element = bits & 1;
    else if (way == 0 || (way < 3 && !dtype_is_float(dtype)))
        memcpy(element, &bits, dtype_info(dtype)->size);
    else if (dtype_is_float(dtype) && way < 4)
        dtype_store_double(dtype, element, special[random_int(random, 0, 23)]);
    else if (dtype_is_float(dtype))
        dtype_store_double(dtype, element, (double)random_int(random, -4096, 4096) / 512);
    else
        dtype_store_int64(dtype, element, random_int(random, -3, 5));
}

static void make_input(struct random *random, const struct ir_type *type, const int64_t *sizes,
                       struct value *value)
{
    struct tensor tensor = {.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &tensor.dims[i]))
            tensor.dims[i] = sizes[type->dims[i]->name[0] - 'A'];
    tensor.owner = buffer_create(&allocator_default, tensor_bytes(&tensor) + 1);
    assert_non_null(tensor.owner);
    tensor.data = tensor.owner->data;
    /* Numbers of rows, some of which are there. */
    const bool small = !dtype_is_float(tensor.dtype) && random_int(random, 0, 1);
    for (size_t i = 0, n = tensor_count(&tensor); i < n; i++) {
        char *element = (char *)tensor.data + i * dtype_info(tensor.dtype)->size;
        if (small)
            dtype_store_int64(tensor.dtype, element, random_int(random, -3, 5));
        else
            random_element(random, tensor.dtype, element);
    }
    *value = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = tensor};
}

/* Few elements in all, and now and then none. */
static void make_sizes(struct random *random, int64_t *sizes)
{
    static const int64_t some[] = {1, 1, 2, 3, 4, 7, 16, 33, 64, 100};
    int64_t count = 1;
    for (int i = 0; i < 8; i++) {
        sizes[i] = random_int(random, 0, 60) ? some[random_int(random, 0, 9)] : 0;
        if (count * sizes[i] > 6000)
            sizes[i] = 1;
        count *= sizes[i] ? sizes[i] : 1;
    }
}

/* Rows of all lengths at which something is done otherwise, H; few of the long ones. */
static void make_row_sizes(struct random *random, int64_t *sizes)
{
    static const int64_t lengths[] = {0,    1,    64,   65,    100,    1000,   1999,   2048,
                                      2049, 4100, 7000, 33000, 100000, 131072, 131073, 140000};
    const bool is_short = random_int(random, 0, 9) < 6;
    const int64_t n = is_short ? random_int(random, 2, 70) : lengths[random_int(random, 0, 15)];
    int64_t most = 12000 / (n + 1) + 1;
    for (int i = 0; i < 3; i++) {
        sizes[i] = random_int(random, 0, 30) ? random_int(random, 1, 50) : 0;
        if (sizes[i] > most)
            sizes[i] = 1 + (most > 1);
        most /= sizes[i] ? sizes[i] : 1;
    }
    sizes['H' - 'A'] = n;
}

/* Columns, all that is reduced of them, H, and at which lengths something is done otherwise. */
static void make_column_sizes(struct random *random, int64_t *sizes)
{
    static const int64_t lengths[] = {0, 1, 63, 64, 65, 128, 200, 4095, 4096, 4097, 8200};
    const int64_t n =
        random_int(random, 0, 2) ? random_int(random, 1, 40) : lengths[random_int(random, 0, 10)];
    int64_t most = 400 / (n + 1) + 1;
    for (int i = 0; i < 3; i++) {
        sizes[i] = random_int(random, 0, 30) ? random_int(random, 1, 6) : 0;
        if (sizes[i] > most)
            sizes[i] = 1;
        most /= sizes[i] ? sizes[i] : 1;
    }
    sizes['H' - 'A'] = n;
}

/* Columns of which there are groups, and iterations, H. */
static void make_loop_sizes(struct random *random, int64_t *sizes)
{
    static const int64_t lengths[] = {0,  1,   3,   16,  31,  32,  33,   64,
                                      65, 100, 256, 257, 300, 520, 1100, 2100};
    for (int i = 0; i < 3; i++)
        sizes[i] = random_int(random, 0, 3) ? random_int(random, 1, 4) : 1;
    sizes[random_int(random, 0, 2)] = lengths[random_int(random, 0, 15)];
    sizes['H' - 'A'] = random_int(random, 0, 20);
}

/* A list, A, also one of which threads would have slices. */
static void make_list_sizes(struct random *random, int64_t *sizes)
{
    static const int64_t lengths[] = {0, 1, 31, 32, 33, 63, 64, 65, 128, 1000, 4099, 70001};
    sizes[0] =
        random_int(random, 0, 2) ? random_int(random, 1, 300) : lengths[random_int(random, 0, 11)];
    for (int i = 1; i < 8; i++)
        sizes[i] = 1;
}

/* ---- Running --------------------------------------------------------------------------------- */

void kernel_program_open(struct kernel_program *p, struct ir_graph *graph,
                         struct device_context *device)
{
    p->graph = graph;
    no_error(plan_create(graph, device, &p->plan));
    no_error(run_create(p->plan, &allocator_default, NULL, false, &p->run));
    p->n_outputs = ir_block_return(graph->body)->n_operands;
    assert_true(p->n_outputs <= KERNEL_MAX_VALUES);
}

void kernel_program_close(struct kernel_program *p)
{
    for (uint32_t i = 0; i < p->n_outputs; i++)
        value_release(&p->outputs[i]);
    run_free(p->run);
    plan_free(p->plan);
    ir_graph_free(p->graph);
}

static bool same_element(tssa_dtype dtype, const char *a, const char *b)
{
    return memcmp(a, b, dtype_info(dtype)->size) == 0 ||
           (dtype_is_float(dtype) && isnan(dtype_load_double(dtype, a)) &&
            isnan(dtype_load_double(dtype, b)));
}

void kernel_compare(const struct tensor *a, const struct tensor *b, const char *text,
                    uint32_t output)
{
    const size_t width = dtype_info(a->dtype)->size;
    assert_true(a->dtype == b->dtype && tensor_same_shape(a, b));
    for (size_t i = 0, n = tensor_count(a); i < n; i++)
        if (!same_element(a->dtype, (char *)a->data + i * width, (char *)b->data + i * width)) {
            print_message("%s", text);
            fail_msg("output %u, element %zu: %.17g where %.17g is right", (unsigned)output, i,
                     dtype_load_double(a->dtype, (char *)a->data + i * width),
                     dtype_load_double(b->dtype, (char *)b->data + i * width));
        }
}

void kernel_compare_run(tssa_session *session, const struct model_run *run, const char *name)
{
    tssa_value *outputs[KERNEL_MAX_VALUES] = {NULL};
    assert_true(run->output_count <= KERNEL_MAX_VALUES);
    no_error(tssa_session_run(session, run->input_count, run->inputs, run->output_count, outputs));
    for (size_t k = 0; k < run->output_count; k++) {
        const struct value *made = &outputs[k]->value, *wanted = model_run_output(run, k);
        assert_int_equal(made->kind, wanted->kind);
        if (made->kind == TSSA_KIND_TENSOR)
            kernel_compare(&made->tensor, &wanted->tensor, name, (uint32_t)k);
        tssa_value_free(outputs[k]);
    }
}

static const struct {
    char *(*text)(uint64_t seed);
    void (*make_sizes)(struct random *random, int64_t *sizes);
} kinds[KERNEL_KINDS] = {
    [KERNEL_FUSE] = {random_fuse, make_sizes},
    [KERNEL_MAPS] = {random_maps, make_sizes},
    [KERNEL_ROWS] = {random_rows, make_row_sizes},
    [KERNEL_COLUMNS] = {random_columns, make_column_sizes},
    [KERNEL_PLANES] = {random_planes, make_row_sizes},
    [KERNEL_LOOPS] = {random_loops, make_loop_sizes},
    [KERNEL_KEEPS] = {random_keeps, make_list_sizes},
    [KERNEL_SCANS] = {random_scans, make_loop_sizes},
    [KERNEL_RANGES] = {random_ranges, make_sizes},
};

char *kernel_text(enum kernel_kind kind, uint64_t seed)
{
    return kinds[kind].text(seed);
}

/* For one run of the program; the caller releases them. */
static uint32_t make_inputs(enum kernel_kind kind, struct random *random,
                            const struct ir_graph *graph, struct value *inputs)
{
    const uint32_t n = graph->body->n_params;
    int64_t sizes[8];
    kinds[kind].make_sizes(random, sizes);
    for (uint32_t i = 0; i < n; i++)
        make_input(random, graph->body->params[i]->type, sizes, &inputs[i]);
    return n;
}

/* What an error says of a number, behind who says it; the whole where it is of none. */
static const char *said_of_number(const tssa_status *status)
{
    const char *at = strstr(tssa_status_message(status), "index ");
    return at ? at : tssa_status_message(status);
}

static void compare_errors(const tssa_status *a, const tssa_status *b, const char *text)
{
    const bool names_fused = a && strstr(tssa_status_message(a), "or one fused with it");
    if (!a != !b || (a && strstr(tssa_status_message(b), "index ") && !names_fused &&
                     strcmp(said_of_number(a), said_of_number(b)) != 0))
        fail_msg("%s\n%s\n%s", a ? tssa_status_message(a) : "no error",
                 b ? tssa_status_message(b) : "no error", text);
}

/* A launch for no elements is none, and so finds nothing wrong. */
static bool found_nothing(const struct kernel_program *program, const tssa_status *a,
                          const tssa_status *b)
{
    size_t elements = 0;
    for (uint32_t i = 0; i < program->n_outputs && !a; i++)
        elements += tensor_count(&program->outputs[i].tensor);
    return !a && b && !elements && strstr(tssa_status_message(b), "index ");
}

static bool check_runs(enum kernel_kind kind, const char *text, uint64_t seed,
                       struct device_context *device)
{
    struct random random = {seed};
    struct kernel_program compiled = {0}, interpreted = {0};
    struct compile_report report = {0};
    struct ir_graph *graph = kernel_parse(text);
    uint64_t one;
    if (programs_seed(&one))
        print_message("%s", text);
    if (device->device->compile)
        no_error(compile_fused(graph, device, -1, &report));
    kernel_program_open(&compiled, graph, device);
    kernel_program_open(&interpreted, kernel_parse(text), test_device());
    for (int round = 0; round < ROUNDS; round++) {
        struct value inputs[KERNEL_MAX_VALUES];
        const struct value *given[KERNEL_MAX_VALUES];
        const uint32_t n = make_inputs(kind, &random, graph, inputs);
        for (uint32_t i = 0; i < n; i++)
            given[i] = &inputs[i];
        tssa_status *status = run_execute(compiled.run, given, compiled.outputs),
                    *other = run_execute(interpreted.run, given, interpreted.outputs);
        if (!device->device->launcher || !found_nothing(&compiled, status, other))
            compare_errors(status, other, text);
        for (uint32_t i = 0; i < compiled.n_outputs && !status; i++) {
            if (!other)
                kernel_compare(&compiled.outputs[i].tensor, &interpreted.outputs[i].tensor, text,
                               i);
            value_release(&compiled.outputs[i]);
            value_release(&interpreted.outputs[i]);
        }
        tssa_status_free(status);
        tssa_status_free(other);
        for (uint32_t i = 0; i < n; i++)
            value_release(&inputs[i]);
    }
    kernel_program_close(&compiled);
    kernel_program_close(&interpreted);
    return report.compiled == 1;
}

/* What fails is said with the seed, by which TSSA_SEED asks for this program alone. */
bool kernel_check_text(enum kernel_kind kind, const char *text, uint64_t seed,
                       struct device_context *device)
{
    char *named = xprintf("// TSSA_SEED=%llu\n%s", (unsigned long long)seed, text);
    const bool compiled = check_runs(kind, named, seed, device);
    free(named);
    return compiled;
}

bool kernel_check(enum kernel_kind kind, uint64_t seed, struct device_context *device)
{
    char *text = kernel_text(kind, seed);
    const bool compiled = kernel_check_text(kind, text, seed, device);
    free(text);
    return compiled;
}

/* ---- What programs have ---------------------------------------------------------------------- */

static void see_values(struct kernel_seen *seen, const struct tensor *tensor)
{
    const size_t width = dtype_info(tensor->dtype)->size;
    for (size_t i = 0, n = tensor_count(tensor); i < n && dtype_is_float(tensor->dtype); i++) {
        const char *at = (const char *)tensor->data + i * width;
        const double x = dtype_load_double(tensor->dtype, at);
        seen->nan += isnan(x);
        seen->infinite += isinf(x);
        seen->minus_zero += x == 0 && signbit(x);
        seen->denormal += tensor->dtype == TSSA_DOUBLE    ? fpclassify(x) == FP_SUBNORMAL
                          : tensor->dtype == TSSA_FLOAT16 ? x != 0 && fabs(x) < 0x1p-14
                                                          : x != 0 && fabs(x) < 0x1p-126;
    }
}

static void see_input(struct kernel_seen *seen, const struct tensor *tensor)
{
    bool has_one = false;
    seen->dtypes[tensor->dtype]++;
    seen->ranks[tensor->rank]++;
    for (int i = 0; i < tensor->rank; i++)
        has_one |= tensor->dims[i] == 1;
    seen->ones += has_one;
    seen->empty += tensor_count(tensor) == 0;
    see_values(seen, tensor);
}

/* Of types: an axis of one element in every run, where another operand may have more. */
static bool is_broadcast(const struct ir_type *type)
{
    int64_t size;
    for (int i = 0; i < type->rank; i++)
        if (dim_is_const(type->dims[i], &size) && size == 1)
            return true;
    return false;
}

/* Does it compute elements of what columns come to? */
static bool spreads_columns(const struct ir_op *op)
{
    for (uint32_t i = 0; op->info->ew && i < op->n_operands; i++) {
        const struct ir_op *of = ir_operand(op, i) ? ir_operand(op, i)->op : NULL;
        if (of && ir_column_axis(of) >= 0 && ir_column_folds(of) &&
            ir_operand(of, 0)->type == op->results[0].type)
            return true;
    }
    return false;
}

static tssa_status *see_op(void *context, struct ir_op *op)
{
    struct kernel_seen *seen = context;
    const bool is_column = ir_column_axis(op) >= 0;
    seen->ops[op->info->id]++;
    seen->column_walks += is_column && !ir_column_folds(op);
    seen->column_places += is_column && ir_column_folds(op) && !op->info->reduction;
    seen->column_elements += spreads_columns(op);
    return NULL;
}

/* Slices with a step below zero. */
static unsigned long count_backward(const char *text)
{
    unsigned long n = 0;
    int step;
    while ((text = strstr(text, "slice(")) != NULL)
        n += sscanf(text++, "slice(%*d, %*d, %*d, %d", &step) == 1 && step < 0;
    return n;
}

/* Numbers of rows that kernels compute. */
static unsigned long count_computed(struct ir_graph *graph)
{
    const char *why;
    struct gir_parts *parts = gir_build_parts(graph, &why);
    unsigned long n = 0;
    for (uint32_t i = 0; parts && i < parts->n; i++)
        for (uint32_t k = 0; k < parts->parts[i].kernel->n_args; k++)
            n += gir_args(parts->parts[i].kernel)[k].is_looked_up &&
                 parts->parts[i].maps[k].indices & GIR_COMPUTED;
    gir_parts_free(parts);
    return n;
}

void kernel_see(enum kernel_kind kind, uint64_t seed, struct kernel_seen *seen)
{
    struct random random = {seed};
    struct value inputs[KERNEL_MAX_VALUES];
    char *text = kernel_text(kind, seed);
    struct ir_graph *graph = kernel_parse(text);
    seen->programs++;
    seen->backward += count_backward(text);
    if (kind == KERNEL_MAPS)
        seen->computed += count_computed(graph);
    no_error(ir_block_walk(graph->body, see_op, seen));
    for (uint32_t i = 0; i < graph->body->n_params; i++)
        seen->broadcast += is_broadcast(graph->body->params[i]->type);
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t n = make_inputs(kind, &random, graph, inputs);
        for (uint32_t i = 0; i < n; i++) {
            see_input(seen, &inputs[i].tensor);
            value_release(&inputs[i]);
        }
    }
    ir_graph_free(graph);
    free(text);
}
