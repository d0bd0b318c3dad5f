/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

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

/* Writes rows of a matrix, one or two of them: in place, where nothing reads the old ones, be it by
 * another name. */
static void updates(struct generator *g)
{
    uint32_t a = pick(g, MATRIX), row = pick(g, ROW), id;
    if (below(g, 2)) {
        id = fresh(g);
        emit(g, "%%v%u = Identity@16(%%v%u)\n", id, a);
        add(g, MATRIX, id);
    }
    id = fresh(g);
    emit(g, "%%v%u = ScatterND@18(%%v%u, %%row%u, %%v%u)\n", id, a, below(g, 3), row);
    if (below(g, 2)) {
        a = id, row = pick(g, ROW), id = fresh(g);
        emit(g, "%%v%u = ScatterND@18(%%v%u, %%row%u, %%v%u)\n", id, a, below(g, 3), row);
    }
    add(g, MATRIX, id);
}

/* What changes nothing, or is there twice. */
static void redundant(struct generator *g)
{
    uint32_t a = pick(g, VECTOR), b = pick(g, VECTOR), id = fresh(g);
    switch (below(g, 8)) {
    case 0:
        emit(g, "%%v%u = Mul(%%v%u, %%one)\n", id, a);
        break;
    case 1:
        emit(g, "%%v%us = Sub(%%v%u, %%nothing)\n%%v%u = Div(%%v%us, %%one)\n", id, a, id, id);
        break;
    case 2:
        emit(g, "%%v%un = Neg(%%v%u)\n%%v%u = Neg(%%v%un)\n", id, a, id, id);
        break;
    case 3:
        emit(g, "%%v%u = Where(%%yes, %%v%u, %%v%u)\n", id, a, b);
        break;
    case 4:
        emit(g, "%%v%us = Shape(%%v%u)\n%%v%ue = Expand(%%half, %%v%us)\n", id, a, id, id);
        emit(g, "%%v%u = Min(%%v%ue, %%v%u)\n", id, id, a);
        break;
    case 5:
        emit(g, "%%v%ua = Max(%%v%u, %%v%u)\n%%v%ub = Max(%%v%u, %%v%u)\n", id, a, b, id, a, b);
        emit(g, "%%v%u = Sub(%%v%ua, %%v%ub)\n", id, id, id);
        break;
    case 6:
        a = pick(g, MATRIX);
        emit(g, "%%v%ut = Transpose(%%v%u) {perm = [1, 0]}\n", id, a);
        emit(g, "%%v%u = Transpose(%%v%ut) {perm = [1, 0]}\n", id, id);
        add(g, MATRIX, id);
        return;
    default:
        emit(g, "%%v%uw = Cast(%%v%u) {to = 11}\n%%v%u = Cast(%%v%uw) {to = 1}\n", id, a, id, id);
    }
    add(g, VECTOR, id);
}

/* A row of a matrix, by an index that takes some arithmetic. */
static void indexed(struct generator *g)
{
    uint32_t m = pick(g, MATRIX), id = fresh(g);
    emit(g, "%%v%ui = Add(%s, %%three)\n%%v%uj = Add(%%v%ui, %%three)\n", id,
         below(g, 2) ? "%n" : "%zero", id, id);
    emit(g, "%%v%uk = Mod(%%v%uj, %%three)\n%%v%u = Gather(%%v%u, %%v%uk) {axis = 0}\n", id, id, id,
         m, id);
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
    static const char *const names[] = {"%yes", "%no", "%asked", "%asked", "%unasked", "%again"};
    emit(g, "%s", names[below(g, 6)]);
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
    static const char *const trips[] = {"%three", "%n", "%n", "%once", "%zero"};
    emit(g, "%%v%u, %%v%u, %%v%u, %%v%u = Loop@16(%s, ", first, first + 1, first + 2, first + 3,
         trips[below(g, 5)]);
    condition(g);
    emit(g, ", %%v%u, %%v%u, %%v%u) {\n", a, b, s);
    struct scope *outer = malloc(sizeof *outer);
    assert_non_null(outer);
    *outer = g->scope;
    emit(g, "body(%%i%u: i64[], %%c%u: bool[], ", first, first);
    uint32_t unchanged = parameter(g, VECTOR);
    emit(g, ", ");
    parameter(g, VECTOR);
    emit(g, ", ");
    parameter(g, SEQUENCE);
    emit(g, ") {\n");
    body(g, below(g, 8));
    a = below(g, 6) ? pick(g, VECTOR) : unchanged, b = pick(g, VECTOR), s = pick(g, SEQUENCE);
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

/* Carries nothing; stacks one vector, whose maximum is a vector again. */
static void map(struct generator *g)
{
    uint32_t id = g->n_values;
    g->n_values += 2;
    emit(g, "%%v%us = Loop@16(%s, _) {\nbody(%%i%u: i64[], %%c%u: bool[]) {\n", id,
         below(g, 2) ? "%three" : "%n", id, id);
    struct scope *outer = malloc(sizeof *outer);
    assert_non_null(outer);
    *outer = g->scope;
    uint32_t m = pick(g, MATRIX);
    emit(g, "%%i%um = Mod(%%i%u, %%three)\n%%v%u = Gather(%%v%u, %%i%um) {axis = 0}\n", id, id, id,
         m, id);
    add(g, VECTOR, id);
    body(g, below(g, 6));
    emit(g, "return(%%c%u, %%v%u)\n}\n}\n", id, pick(g, VECTOR));
    g->scope = *outer;
    free(outer);
    uint32_t row = pick(g, ROW);
    emit(g, "%%v%ux = Concat@13(%%v%u, %%v%us) {axis = 0}\n", id, row, id);
    emit(g, "%%v%u = ReduceMax@18(%%v%ux, %%axis) {keepdims = 0}\n", id + 1, id);
    add(g, VECTOR, id + 1);
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
    static void (*const plain[])(struct generator *) = {
        arithmetic, arithmetic, alias, alias, other_shapes, sequences, redundant, indexed, updates};
    static void (*const control[])(struct generator *) = {branches,  loop,         loop,        map,
                                                          scan_rows, scan_columns, sequence_map};
    g->depth++;
    for (uint32_t i = 0; i < length; i++)
        if (g->depth <= MAX_DEPTH && below(g, 4) == 0)
            control[below(g, 7)](g);
        else
            plain[below(g, 9)](g);
    g->depth--;
}

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
                 "%%row0 = Constant() {value = i64[1, 1] [0]}\n"
                 "%%row1 = Constant() {value = i64[1, 1] [1]}\n"
                 "%%row2 = Constant() {value = i64[1, 1] [-1]}\n"
                 "%%zero = Constant() {value = i64[] 0}\n"
                 "%%three = Constant() {value = i64[] 3}\n"
                 "%%yes = Constant() {value = bool[] true}\n"
                 "%%no = Constant() {value = bool[] false}\n"
                 "%%once = Constant() {value = i64[] 1}\n"
                 "%%one = Constant() {value = f32[] 1.0}\n"
                 "%%half = Constant() {value = f32[] 0.5}\n"
                 "%%nothing = Constant() {value = f32[1] [0.0]}\n"
                 "%%asked = Less@13(%%zero, %%n)\n"
                 "%%again = Less@13(%%zero, %%n)\n"
                 "%%unasked = Not(%%asked)\n");
    body(&inner, 6 + below(&inner, 20));
    uint32_t returned[RANDOM_GRAPH_OUTPUTS];
    for (int i = 0; i < RANDOM_GRAPH_OUTPUTS; i++) {
        uint32_t kind = below(&inner, 8);
        returned[i] = i && below(&inner, 4) == 0 ? returned[i - 1]
                                                 : pick(&inner, kind < N_KINDS ? kind : VECTOR);
    }
    emit(g, "%s", header);
    for (int i = 0; i < RANDOM_GRAPH_OUTPUTS; i++)
        emit(g, "%s%%v%u as \"o%d\"", i ? ", " : "", returned[i], i);
    emit(g, ") {\n%s", inner.text);
    for (int i = 0; i < RANDOM_GRAPH_OUTPUTS; i++)
        emit(g, "%s%%v%u", i ? ", " : "return(", returned[i]);
    emit(g, ")\n}\n");
    free(inner.text);
}

char *random_graph(uint64_t seed)
{
    struct generator g = {.capacity = 1 << 20};
    g.text = malloc(g.capacity);
    assert_non_null(g.text);
    generate(&g, seed);
    return g.text;
}
