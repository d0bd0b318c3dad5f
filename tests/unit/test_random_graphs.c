/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs with nested control flow, captured values, aliases and sequences: neither the passes of
 * level 1 nor the places that the memory plan gives to results may change a bit. Every program runs with
 * all results in the pool and with the memory plan, whose slab is filled with NaNs before each run;
 * several times on one run state, with outputs of the run's and of the caller's; and optimized.
 *
 * TSSA_SEED=N runs one program and prints it; TSSA_PROGRAMS=N runs more of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"
#include "runtime/executor.h"

/* ---- Programs ------------------------------------------------------------------------------------- */

enum kind {
    VECTOR,
    ROW,
    MATRIX,
    SEQUENCE,
    N_KINDS
}; /* f32[N], f32[1, N], f32[3, N], seq(f32[N]) */

#define MAX_VALUES 400
#define MAX_DEPTH 3

struct scope {
    uint32_t values[N_KINDS][MAX_VALUES];
    uint32_t count[N_KINDS];
};

struct generator {
    char *text;
    size_t size, capacity;
    uint64_t random;
    uint32_t n_values;
    int depth;
    struct scope scope;
};

static uint32_t below(struct generator *g, uint32_t limit)
{
    g->random = g->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->random >> 33) % limit;
}

__attribute__((format(printf, 2, 3))) static void emit(struct generator *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(g->text + g->size, g->capacity - g->size, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < g->capacity - g->size);
    g->size += (size_t)n;
}

static uint32_t add(struct generator *g, enum kind kind, uint32_t id)
{
    assert_true(g->scope.count[kind] < MAX_VALUES);
    g->scope.values[kind][g->scope.count[kind]++] = id;
    return id;
}

static uint32_t fresh(struct generator *g)
{
    return g->n_values++;
}

static uint32_t pick(struct generator *g, enum kind kind);

/* The value that stands for `kind` when there is none yet. */
static uint32_t make(struct generator *g, enum kind kind)
{
    uint32_t a = pick(g, kind == MATRIX ? ROW : VECTOR), b = pick(g, kind == MATRIX ? ROW : VECTOR),
             id = fresh(g);
    if (kind == ROW)
        emit(g, "%%v%u = Unsqueeze@13(%%v%u, %%axis)\n", id, a);
    else if (kind == MATRIX)
        emit(g, "%%v%u = Concat@13(%%v%u, %%v%u, %%v%u) {axis = 0}\n", id, a, b, a);
    else
        emit(g, "%%v%u = SequenceConstruct@11(%%v%u, %%v%u)\n", id, a, b);
    return add(g, kind, id);
}

/* Any value in scope, often a recent one. */
static uint32_t pick(struct generator *g, enum kind kind)
{
    uint32_t n = g->scope.count[kind];
    if (n == 0)
        return make(g, kind);
    uint32_t window = below(g, 2) && n > 4 ? 4 : n;
    return g->scope.values[kind][n - 1 - below(g, window)];
}

static void arithmetic(struct generator *g)
{
    static const char *const ops[] = {"Sub@14", "Max@13", "Min@13", "Sub@14"};
    uint32_t a = pick(g, VECTOR), b = pick(g, VECTOR), id = fresh(g);
    emit(g, "%%v%u = %s(%%v%u, %%v%u)\n", id, ops[below(g, 4)], a, b);
    add(g, VECTOR, id);
}

static void alias(struct generator *g)
{
    enum kind from = below(g, 2) ? VECTOR : ROW, to = VECTOR;
    uint32_t a = pick(g, from), id = fresh(g);
    if (from == ROW && below(g, 2))
        emit(g, "%%v%u = Squeeze@13(%%v%u, %%axis)\n", id, a);
    else if (from == ROW)
        emit(g, "%%v%u = Reshape@14(%%v%u, %%flat)\n", id, a);
    else if (below(g, 2))
        emit(g, "%%v%u = Identity@16(%%v%u)\n", id, a);
    else if (below(g, 2))
        emit(g, "%%v%u = Dropout@13(%%v%u)\n", id, a);
    else {
        emit(g, "%%v%u = Reshape@14(%%v%u, %%row)\n", id, a);
        to = ROW;
    }
    add(g, to, id);
}

static void other_shapes(struct generator *g)
{
    uint32_t a, id;
    switch (below(g, 4)) {
    case 0:
        make(g, MATRIX);
        return;
    case 1:
        a = pick(g, MATRIX), id = fresh(g);
        emit(g, "%%v%u = ReduceMax@18(%%v%u, %%axis) {keepdims = 0}\n", id, a);
        break;
    case 2:
        a = pick(g, MATRIX), id = fresh(g);
        emit(g, "%%v%u = Gather@13(%%v%u, %%zero) {axis = 0}\n", id, a);
        break;
    default:
        a = pick(g, VECTOR), id = fresh(g);
        emit(g, "%%v%uo = Optional@15(%%v%u)\n%%v%u = OptionalGetElement@18(%%v%uo)\n", id, a, id,
             id);
    }
    add(g, VECTOR, id);
}

static void sequences(struct generator *g)
{
    uint32_t a = pick(g, VECTOR), s = pick(g, SEQUENCE), id = fresh(g);
    switch (below(g, 5)) {
    case 0:
        emit(g, "%%v%u = SequenceInsert@11(%%v%u, %%v%u)\n", id, s, a);
        break;
    case 1:
        emit(g,
             "%%v%ui = SequenceInsert@11(%%v%u, %%v%u)\n"
             "%%v%u = SequenceErase@11(%%v%ui, %%zero)\n",
             id, s, a, id, id);
        break;
    case 2:
        emit(g, "%%v%u = Identity@16(%%v%u)\n", id, s);
        break;
    case 3:
        emit(g, "%%v%u = SequenceConstruct@11(%%v%u)\n", id, a);
        break;
    default:
        emit(g, "%%v%u = SequenceAt@11(%%v%u, %%zero)\n", id, s);
        add(g, VECTOR, id);
        return;
    }
    add(g, SEQUENCE, id);
}

static void body(struct generator *g, uint32_t length);

static uint32_t parameter(struct generator *g, enum kind kind)
{
    static const char *const types[] = {"f32[N]", "f32[1, N]", "f32[3, N]", "seq(f32[N])"};
    uint32_t id = fresh(g);
    emit(g, "%%v%u: %s", id, types[kind]);
    return add(g, kind, id);
}

static void condition(struct generator *g)
{
    static const char *const names[] = {"%yes", "%no", "%asked"};
    emit(g, "%s", names[below(g, 3)]);
}

/* Results are a vector, a vector and a sequence. */
static void branches(struct generator *g)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    uint32_t y = fresh(g), z = fresh(g), s = fresh(g);
    emit(g, "%%v%u, %%v%u, %%v%u = If@16(", y, z, s);
    condition(g);
    emit(g, ") {\n");
    for (int i = 0; i < 2; i++) {
        struct scope *outer = malloc(sizeof *outer);
        assert_non_null(outer);
        *outer = g->scope;
        emit(g, "%s() {\n", names[i]);
        body(g, below(g, 5));
        uint32_t a = pick(g, VECTOR), b = below(g, 4) ? pick(g, VECTOR) : a, c = pick(g, SEQUENCE);
        emit(g, "return(%%v%u, %%v%u, %%v%u)\n}\n", a, b, c);
        g->scope = *outer;
        free(outer);
    }
    emit(g, "}\n");
    add(g, VECTOR, y);
    add(g, VECTOR, z);
    add(g, SEQUENCE, s);
}

/* Carries two vectors and a sequence, stacks one vector, whose maximum is a vector again. */
static void loop(struct generator *g)
{
    uint32_t a = pick(g, VECTOR), b = pick(g, VECTOR), s = pick(g, SEQUENCE), first = g->n_values;
    g->n_values += 5;
    emit(g, "%%v%u, %%v%u, %%v%u, %%v%u = Loop@16(%s, ", first, first + 1, first + 2, first + 3,
         below(g, 2) ? "%three" : "%n");
    condition(g);
    emit(g, ", %%v%u, %%v%u, %%v%u) {\n", a, b, s);
    struct scope *outer = malloc(sizeof *outer);
    assert_non_null(outer);
    *outer = g->scope;
    emit(g, "body(%%i%u: i64[], %%c%u: bool[], ", first, first);
    parameter(g, VECTOR);
    emit(g, ", ");
    parameter(g, VECTOR);
    emit(g, ", ");
    parameter(g, SEQUENCE);
    emit(g, ") {\n");
    body(g, below(g, 8));
    a = pick(g, VECTOR), b = pick(g, VECTOR), s = pick(g, SEQUENCE);
    uint32_t stacked = below(g, 3) ? pick(g, VECTOR) : a;
    if (below(g, 4))
        emit(g, "return(%%c%u, %%v%u, %%v%u, %%v%u, %%v%u)\n}\n}\n", first, a, b, s, stacked);
    else
        emit(g, "return(%%asked, %%v%u, %%v%u, %%v%u, %%v%u)\n}\n}\n", a, b, s, stacked);
    g->scope = *outer;
    free(outer);
    /* Without an iteration there is nothing to reduce, so a row is put in front. */
    uint32_t row = pick(g, ROW);
    emit(g, "%%v%ux = Concat@13(%%v%u, %%v%u) {axis = 0}\n", first + 3, row, first + 3);
    emit(g, "%%v%u = ReduceMax@18(%%v%ux, %%axis) {keepdims = 0}\n", first + 4, first + 3);
    add(g, VECTOR, first);
    add(g, VECTOR, first + 1);
    add(g, SEQUENCE, first + 2);
    add(g, VECTOR, first + 4);
}

/* Over the rows of a matrix, with a vector as state; stacks rows. */
static void scan_rows(struct generator *g)
{
    uint32_t a = pick(g, VECTOR), m = pick(g, MATRIX), y = fresh(g), z = fresh(g);
    uint32_t back = below(g, 2), reverse = below(g, 2);
    emit(g,
         "%%v%u, %%v%u = Scan@16(%%v%u, %%v%u) {num_scan_inputs = 1, scan_input_directions = [%u], "
         "scan_output_directions = [%u]} {\n",
         y, z, a, m, back, reverse);
    struct scope *outer = malloc(sizeof *outer);
    assert_non_null(outer);
    *outer = g->scope;
    emit(g, "body(");
    parameter(g, VECTOR);
    emit(g, ", ");
    uint32_t row = parameter(g, VECTOR);
    emit(g, ") {\n");
    body(g, below(g, 6));
    a = pick(g, VECTOR);
    uint32_t out = below(g, 3) ? pick(g, VECTOR) : below(g, 2) ? row : a;
    emit(g, "return(%%v%u, %%v%u)\n}\n}\n", a, out);
    g->scope = *outer;
    free(outer);
    add(g, VECTOR, y);
    add(g, MATRIX, z);
}

/* Over the columns, which are stacked as columns again. */
static void scan_columns(struct generator *g)
{
    uint32_t m = pick(g, MATRIX), y = fresh(g);
    emit(g,
         "%%v%u = Scan@16(%%v%u) {num_scan_inputs = 1, scan_input_axes = [%d], "
         "scan_input_directions = [%u], scan_output_axes = [%d], scan_output_directions = [%u]} {\n"
         "body(%%e%u: f32[3]) {\n",
         y, m, below(g, 2) ? 1 : -1, below(g, 2), below(g, 2) ? 1 : -1, below(g, 2), y);
    if (below(g, 2))
        emit(g, "return(%%e%u)\n}\n}\n", y);
    else
        emit(g, "%%f%u = Identity@16(%%e%u)\n%%g%u = Neg@13(%%f%u)\nreturn(%%g%u)\n}\n}\n", y, y, y,
             y, y);
    add(g, MATRIX, y);
}

static void sequence_map(struct generator *g)
{
    uint32_t s = pick(g, SEQUENCE), a = pick(g, VECTOR), y = fresh(g);
    emit(g, "%%v%u = SequenceMap@17(%%v%u, %%v%u) {\nbody(", y, s, a);
    struct scope *outer = malloc(sizeof *outer);
    assert_non_null(outer);
    *outer = g->scope;
    parameter(g, VECTOR);
    emit(g, ", ");
    parameter(g, VECTOR);
    emit(g, ") {\n");
    body(g, below(g, 5));
    emit(g, "return(%%v%u)\n}\n}\n", pick(g, VECTOR));
    g->scope = *outer;
    free(outer);
    add(g, SEQUENCE, y);
}

static void body(struct generator *g, uint32_t length)
{
    static void (*const plain[])(struct generator *) = {arithmetic, arithmetic,   alias,
                                                        alias,      other_shapes, sequences};
    static void (*const control[])(struct generator *) = {branches,  loop,         loop,
                                                          scan_rows, scan_columns, sequence_map};
    g->depth++;
    for (uint32_t i = 0; i < length; i++)
        if (g->depth <= MAX_DEPTH && below(g, 4) == 0)
            control[below(g, 6)](g);
        else
            plain[below(g, 6)](g);
    g->depth--;
}

#define N_OUTPUTS 6

/* `text` has room for the program; names of outputs are told after the body is known. */
static void generate(struct generator *g, uint64_t seed)
{
    static const char header[] =
        "graph @g opset(\"\": 18) ir_version(8) (%n: i64[], %v0: f32[N], %v1: f32[N]) -> (";
    struct generator inner = {
        .text = malloc(g->capacity), .capacity = g->capacity, .random = seed, .n_values = 2};
    assert_non_null(inner.text);
    add(&inner, VECTOR, 0);
    add(&inner, VECTOR, 1);
    emit(&inner, "%%axis = Constant() {value = i64[1] [0]}\n"
                 "%%flat = Constant() {value = i64[1] [-1]}\n"
                 "%%row = Constant() {value = i64[2] [1, -1]}\n"
                 "%%zero = Constant() {value = i64[] 0}\n"
                 "%%three = Constant() {value = i64[] 3}\n"
                 "%%yes = Constant() {value = bool[] true}\n"
                 "%%no = Constant() {value = bool[] false}\n"
                 "%%asked = Less@13(%%zero, %%n)\n");
    body(&inner, 6 + below(&inner, 20));
    uint32_t returned[N_OUTPUTS];
    for (int i = 0; i < N_OUTPUTS; i++) {
        uint32_t kind = below(&inner, 8);
        returned[i] = i && below(&inner, 4) == 0 ? returned[i - 1]
                                                 : pick(&inner, kind < N_KINDS ? kind : VECTOR);
    }
    emit(g, "%s", header);
    for (int i = 0; i < N_OUTPUTS; i++)
        emit(g, "%s%%v%u as \"o%d\"", i ? ", " : "", returned[i], i);
    emit(g, ") {\n%s", inner.text);
    for (int i = 0; i < N_OUTPUTS; i++)
        emit(g, "%s%%v%u", i ? ", " : "return(", returned[i]);
    emit(g, ")\n}\n");
    free(inner.text);
}

/* ---- Running -------------------------------------------------------------------------------------- */

struct program {
    const char *text;
    uint64_t seed;
    struct ir_graph *graph, *optimized_graph;
    struct plan *plan, *pooled, *optimized_plan;
    struct run *run, *reference, *optimized;
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
    no_error(p, plan_create(graph, &allocator_default, plan));
    no_error(p, run_create(*plan, &allocator_default, NULL, false, &run));
    return run;
}

static void program_open(struct program *p)
{
    static const uint32_t nowhere[N_OUTPUTS] = {SLOT_NONE, SLOT_NONE, SLOT_NONE,
                                                SLOT_NONE, SLOT_NONE, SLOT_NONE};
    const tssa_optimize_options checked = {.verify_after_passes = 1};
    const struct pipeline pipeline = {.options = &checked};
    p->graph = parse(p);
    p->run = prepare(p, p->graph, &p->plan);
    p->reference = prepare(p, p->graph, &p->pooled);
    p->pooled->n_placed = 0;
    p->pooled->result_outputs = nowhere;
    p->optimized_graph = parse(p);
    no_error(p, pipeline_run(p->optimized_graph, 1, &pipeline));
    p->optimized = prepare(p, p->optimized_graph, &p->optimized_plan);
}

static void program_close(struct program *p)
{
    run_free(p->run);
    run_free(p->reference);
    run_free(p->optimized);
    plan_free(p->plan);
    plan_free(p->pooled);
    plan_free(p->optimized_plan);
    ir_graph_free(p->graph);
    ir_graph_free(p->optimized_graph);
}

static bool same(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == TSSA_KIND_TENSOR) {
        size_t bytes = tensor_bytes(&a->tensor);
        return a->tensor.dtype == b->tensor.dtype && tensor_same_shape(&a->tensor, &b->tensor) &&
               (bytes == 0 || memcmp(a->tensor.data, b->tensor.data, bytes) == 0);
    }
    assert_int_equal(a->kind, TSSA_KIND_SEQUENCE);
    bool equal = sequence_length(a->sequence) == sequence_length(b->sequence);
    for (size_t i = 0; equal && i < sequence_length(a->sequence); i++)
        equal = same(sequence_element(a->sequence, i), sequence_element(b->sequence, i));
    return equal;
}

static void expect_same(const struct program *p, const struct value *actual,
                        const struct value *expected, const char *when)
{
    for (int i = 0; i < N_OUTPUTS; i++) {
        if (same(&actual[i], &expected[i]))
            continue;
        print_message("TSSA_SEED=%llu: output %d differs, %s\n", (unsigned long long)p->seed, i,
                      when);
        fail();
    }
}

static void release(struct value *outputs)
{
    for (int i = 0; i < N_OUTPUTS; i++)
        value_release(&outputs[i]);
}

static void poison(struct run *run)
{
    if (run->slab)
        memset(run->slab, 0xff, run->slab_size);
}

/* Memory of the caller's for every output that is a tensor. */
static void give(const struct value *expected, struct value *outputs)
{
    for (int i = 0; i < N_OUTPUTS; i++) {
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

static void run_all_ways(struct program *p, int64_t trips, float *x, int64_t count)
{
    struct value n = {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_INT64, .data = &trips}};
    struct value a = {.kind = TSSA_KIND_TENSOR,
                      .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {count}, .data = x}};
    struct value b = a;
    b.tensor.data = x + count;
    const struct value *inputs[] = {&n, &a, &b};
    struct value expected[N_OUTPUTS] = {0}, first[N_OUTPUTS] = {0}, given[N_OUTPUTS] = {0},
                 last[N_OUTPUTS] = {0};
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
    poison(p->optimized);
    no_error(p, run_execute(p->optimized, inputs, last));
    expect_same(p, last, expected, "optimized");
    release(expected);
    release(first);
    release(given);
    release(last);
}

static void run_seed(uint64_t seed, bool print)
{
    struct generator g = {.capacity = 1 << 20};
    g.text = malloc(g.capacity);
    assert_non_null(g.text);
    generate(&g, seed);
    if (print)
        fputs(g.text, stderr);
    struct program p = {.text = g.text, .seed = seed};
    program_open(&p);
    static const int64_t counts[] = {5, 300, 1, 37};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        size_t bytes = 2 * (size_t)counts[k] * sizeof(float);
        float *x = malloc(bytes), *before = malloc(bytes);
        assert_true(x && before);
        for (int64_t i = 0; i < 2 * counts[k]; i++)
            x[i] = (float)((i * 7919 + (int64_t)k) % 101) / 8 - 6;
        memcpy(before, x, bytes);
        for (int64_t trips = 0; trips < 3; trips += 2)
            run_all_ways(&p, trips, x, counts[k]);
        assert_memory_equal(x, before, bytes);
        free(x);
        free(before);
    }
    program_close(&p);
    free(g.text);
}

static void test_no_bit_changes(void **state)
{
    (void)state;
    const char *seed = getenv("TSSA_SEED"), *programs = getenv("TSSA_PROGRAMS");
    if (seed) {
        run_seed(strtoull(seed, NULL, 10), true);
        return;
    }
    unsigned long count = programs ? strtoul(programs, NULL, 10) : 300;
    for (unsigned long i = 1; i <= count; i++)
        run_seed(i, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_bit_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
