/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How good compiled kernels are by themselves, on one thread. What is bound by memory, at 64 MiB in
 * and as many out, is set against a kernel that only loads and stores, made in the same way, and
 * memmove. What goes row by row, of [4096, 1000], is set against the same written by hand
 * (kernels/by_hand.c), and against the operator without a kernel. Each is one kernel. All take
 * turns. Best on one core: taskset -c 1.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "bench/kernels/by_hand.h"
#include "bench/measure.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/compile.h"
#include "runtime/executor.h"

#define COUNT 16777216
#define ROWS 4096
#define LENGTH 1000
#define ROUNDS 41
#define MAX_INPUTS 3

/* Operators as a graph or, in a fuse op, as a kernel. */
struct subject {
    const char *name;
    const char *types[MAX_INPUTS]; /* of %a, %b, %c, as far as they are there */
    const char *body;              /* with what it returns */
};

struct program {
    struct ir_graph *graph;
    struct plan *plan;
    struct run *run;
};

/* The first input lies in `x`, all others in `others`; the result comes to `y`. */
struct data {
    float *x, *y;
    float others[LENGTH];
};

/* Names of the inputs, the first of which is that, and their types. */
static void list_inputs(struct text *text, const struct subject *subject, char first)
{
    for (int i = 0; i < MAX_INPUTS && subject->types[i]; i++)
        text_printf(text, "%s%%%c: %s", i ? ", " : "", first + i, subject->types[i]);
}

static void parse(const struct subject *subject, bool compiled, struct ir_graph **graph)
{
    struct text text;
    text_init(&text, &allocator_default);
    text_puts(&text, "graph @bench opset(\"\": 18) ir_version(8) (");
    list_inputs(&text, subject, compiled ? 'p' : 'a');
    text_printf(&text, ") -> (%%%c) {\n", compiled ? 'z' : 'y');
    if (compiled) {
        text_puts(&text, "%z = fuse(");
        for (int i = 0; i < MAX_INPUTS && subject->types[i]; i++)
            text_printf(&text, "%s%%%c", i ? ", " : "", 'p' + i);
        text_puts(&text, ") {\nbody(");
        list_inputs(&text, subject, 'a');
        text_printf(&text, ") {\n%s\n}\n}\nreturn(%%z)\n}\n", subject->body);
    } else {
        text_printf(&text, "%s\n}\n", subject->body);
    }
    check(ir_parse(&allocator_default, text_string(&text), text.size, graph));
    check(ir_infer_graph(*graph));
    text_free(&text);
}

static void program_open(struct program *program, const struct subject *subject, bool compiled,
                         struct device_context *device)
{
    struct compile_report report = {0};
    parse(subject, compiled, &program->graph);
    if (compiled)
        check(compile_fused(program->graph, device, -1, &report));
    if (compiled && report.compiled != 1) {
        printf("%s: not measured, it is no kernel here: %s\n", subject->name, report.why);
        exit(0);
    }
    check(plan_create(program->graph, device, &program->plan));
    check(run_create(program->plan, &allocator_default, NULL, false, &program->run));
}

static void program_close(struct program *program)
{
    run_free(program->run);
    plan_free(program->plan);
    ir_graph_free(program->graph);
}

/* ---- Subjects -------------------------------------------------------------------------------- */

#define X "f32[16777216]"
#define ROWS_OF_X "f32[4096, 1000]"

static const struct subject copy = {"copy", {X}, "return(%a)"};
static const struct {
    struct subject subject;
    double least_share; /* of the copy's bandwidth, that it should have */
} bound_by_memory[] = {
    {{"x + s", {X, "f32[]"}, "%y = Add(%a, %b) return(%y)"}, 0.8},
    {{"x * s + s", {X, "f32[]"}, "%m = Mul(%a, %b) %y = Add(%m, %b) return(%y)"}, 0.8},
    {{"exp", {X}, "%y = Exp(%a) return(%y)"}, 0.6},
    {{"sigmoid", {X}, "%y = Sigmoid(%a) return(%y)"}, 0.6},
};

static void move(const struct data *data)
{
    memmove(data->y, data->x, sizeof(float) * COUNT);
}

static void softmax(const struct data *data)
{
    softmax_by_hand(data->x, ROWS, LENGTH, data->y);
}

static void layer_norm(const struct data *data)
{
    layer_norm_by_hand(data->x, data->others, data->others, ROWS, LENGTH, data->y);
}

static void argmax(const struct data *data)
{
    argmax_by_hand(data->x, ROWS, LENGTH, (void *)data->y);
}

static const struct {
    struct subject subject;
    void (*by_hand)(const struct data *data);
} by_rows[] = {
    {{"softmax", {ROWS_OF_X}, "%y = Softmax(%a) {axis = -1} return(%y)"}, softmax},
    {{"layer norm",
      {ROWS_OF_X, "f32[1000]", "f32[1000]"},
      "%y = LayerNormalization(%a, %b, %c) {axis = -1} return(%y)"},
     layer_norm},
    {{"argmax", {ROWS_OF_X}, "%y = ArgMax(%a) {axis = -1, keepdims = 0} return(%y)"}, argmax},
};

#define LENGTH_OF(array) (sizeof(array) / sizeof *(array))

/* ---- Times ----------------------------------------------------------------------------------- */

static struct tensor tensor_of(const struct ir_type *type, void *memory)
{
    struct tensor tensor = {.dtype = type->dtype, .rank = type->rank, .data = memory};
    for (int i = 0; i < type->rank; i++)
        dim_is_const(type->dims[i], &tensor.dims[i]);
    return tensor;
}

/* Microseconds of a run into the data's memory. */
static double time_program(const struct program *program, struct data *data)
{
    const struct ir_block *body = program->graph->body;
    const struct ir_type *result = ir_block_return(body)->operands[0].value->type;
    struct value inputs[MAX_INPUTS], out = {.kind = TSSA_KIND_TENSOR};
    const struct value *pointers[MAX_INPUTS];
    out.tensor = tensor_of(result, data->y);
    for (uint32_t i = 0; i < body->n_params; i++) {
        void *memory = i ? data->others : data->x;
        inputs[i] = (struct value){.kind = TSSA_KIND_TENSOR};
        inputs[i].tensor = tensor_of(body->params[i]->type, memory);
        pointers[i] = &inputs[i];
    }
    const uint64_t start = executor_now();
    check(run_execute(program->run, pointers, &out));
    return (double)(executor_now() - start) / 1e3;
}

static double time_by_hand(void (*by_hand)(const struct data *data), const struct data *data)
{
    const uint64_t start = executor_now();
    by_hand(data);
    return (double)(executor_now() - start) / 1e3;
}

static double median(double *samples)
{
    qsort(samples, ROUNDS, sizeof *samples, by_value);
    return samples[ROUNDS / 2];
}

/* Medians: some processors now and then write whole lines without reading them, in two thirds of
 * the time, which does not depend on the kernel. */
static void measure_memory(struct data *data, struct device_context *device)
{
    struct program programs[1 + LENGTH_OF(bound_by_memory)];
    double samples[LENGTH_OF(programs)][ROUNDS], moved[ROUNDS];
    for (size_t i = 0; i < LENGTH_OF(programs); i++)
        program_open(&programs[i], i ? &bound_by_memory[i - 1].subject : &copy, true, device);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < LENGTH_OF(programs); i++)
            samples[i][round] = time_program(&programs[i], data);
        moved[round] = time_by_hand(move, data);
    }
    const double copied = median(samples[0]);
    printf("64 MiB in, 64 MiB out; medians, us; %.1f GB/s copied\n",
           2 * sizeof(float) * COUNT / copied / 1e3);
    printf("  %-12s %8.0f\n  %-12s %8.0f\n", copy.name, copied, "memmove", median(moved));
    for (size_t i = 1; i < LENGTH_OF(programs); i++) {
        const double time = median(samples[i]);
        printf("  %-12s %8.0f   %3.0f %% of the copy's bandwidth (wanted: %.0f %%)\n",
               bound_by_memory[i - 1].subject.name, time, 100 * copied / time,
               100 * bound_by_memory[i - 1].least_share);
    }
    for (size_t i = 0; i < LENGTH_OF(programs); i++)
        program_close(&programs[i]);
}

static void keep_least(double *least, double time)
{
    if (time < *least)
        *least = time;
}

static void measure_rows(struct data *data, struct device_context *device)
{
    printf("[%d, %d], one kernel each; least, us\n", ROWS, LENGTH);
    printf("  %-12s %8s %8s %8s   kernel / by hand (wanted: 1.2)\n", "", "kernel", "operator",
           "by hand");
    for (size_t i = 0; i < LENGTH_OF(by_rows); i++) {
        const struct subject *subject = &by_rows[i].subject;
        struct program kernel, operator;
        double least[3] = {INFINITY, INFINITY, INFINITY};
        program_open(&kernel, subject, true, device);
        program_open(&operator, subject, false, device);
        for (int round = 0; round < ROUNDS; round++) {
            keep_least(&least[0], time_program(&kernel, data));
            keep_least(&least[1], time_program(&operator, data));
            keep_least(&least[2], time_by_hand(by_rows[i].by_hand, data));
        }
        printf("  %-12s %8.0f %8.0f %8.0f   %.2f\n", subject->name, least[0], least[1], least[2],
               least[0] / least[2]);
        program_close(&kernel);
        program_close(&operator);
    }
}

int main(void)
{
    struct data data = {.x = aligned_alloc(64, sizeof(float) * COUNT),
                        .y = aligned_alloc(64, sizeof(float) * COUNT)};
    struct device_context device;
    if (!data.x || !data.y)
        return 1;
    for (int i = 0; i < COUNT; i++)
        data.x[i] = (float)((i * 7919LL) % 4093) / 512 - 4;
    for (int i = 0; i < LENGTH; i++)
        data.others[i] = 0.5F + (float)i / LENGTH;
    memset(data.y, 0, sizeof(float) * COUNT);
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    device_context_open(&device, device_find(NULL), &allocator_default, NULL);
    measure_memory(&data, &device);
    measure_rows(&data, &device);
    device_context_close(&device);
    free(data.x);
    free(data.y);
    return 0;
}
