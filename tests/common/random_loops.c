/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_loops.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/text.h"
#include "common/op_run.h"

#define MAX_VALUES 40
#define MAX_CARRIED 3
#define MAX_RANK 3

/* Of the iteration's elements: all, or one along some axes. */
enum lie { FULL, BROADCAST, LIES };

struct loop_value {
    tssa_dtype dtype;
    enum lie lie;
};

/* The text of one level: a graph, the loop's block, and that of the fuse op in it. */
struct writer {
    struct random random;
    struct text inputs;                   /* of the graph, with types */
    struct text operands, params;         /* of the fuse op around the loop */
    struct text read, taken;              /* of the fuse op in it */
    struct text ops;                      /* of its block */
    struct loop_value values[MAX_VALUES]; /* %vN there */
    int n_values, n_inputs, n_taken;
    int needed; /* what needs all that is read by number; -1: nothing is */
    int rank, last, n_carried;
    bool scans;
    int ahead; /* of its own number an iteration of a Loop reads so far; -1: from the last one */
    char scanned[256], elements[512]; /* of a Scan: its operands, and its block's parameters */
    int n_scanned;
    tssa_dtype carried[MAX_CARRIED];
};

static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT,  TSSA_FLOAT,    TSSA_DOUBLE,
                                    TSSA_FLOAT, TSSA_INT32,  TSSA_INT64,    TSSA_UINT8,
                                    TSSA_INT16, TSSA_UINT64, TSSA_BFLOAT16, TSSA_FLOAT16};
#define N_DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

static const char *name_of(tssa_dtype dtype)
{
    return dtype_info(dtype)->ir_name;
}

static int add_value(struct writer *w, tssa_dtype dtype, enum lie lie)
{
    w->values[w->n_values] = (struct loop_value){dtype, lie};
    return w->n_values++;
}

/* Of an element, all axes or some; `rows` before them or not. */
static void write_dims(struct writer *w, bool rows, enum lie lie, char *dims, size_t size)
{
    const int missing = lie == BROADCAST ? (int)random_int(&w->random, 0, w->rank) : 0;
    size_t n = (size_t)snprintf(dims, size, "%s", rows ? "H" : "");
    for (int i = missing; i < w->rank; i++) {
        const char *comma = n ? ", " : "";
        if (lie == BROADCAST && random_chance(&w->random, 40))
            n += (size_t)snprintf(dims + n, size - n, "%s1", comma);
        else if (i + 1 == w->rank && w->last)
            n += (size_t)snprintf(dims + n, size - n, "%s%d", comma, w->last);
        else
            n += (size_t)snprintf(dims + n, size - n, "%s%c", comma, 'A' + i);
    }
}

/* Input %xN of the graph, which is %pN in the fuse op around the loop. */
static int add_input(struct writer *w, tssa_dtype dtype, const char *dims)
{
    const int number = w->n_inputs++;
    const char *comma = number ? ", " : "";
    text_printf(&w->inputs, "%s%%x%d: %s[%s]", comma, number, name_of(dtype), dims);
    text_printf(&w->operands, "%s%%x%d", comma, number);
    text_printf(&w->params, "%s%%p%d: %s[%s]", comma, number, name_of(dtype), dims);
    return number;
}

/* What the iteration's fuse op reads, as %NAME of its block. */
static void take(struct writer *w, const char *outer, char letter, int number, tssa_dtype dtype,
                 const char *dims)
{
    const char *comma = w->n_taken++ ? ", " : "";
    text_printf(&w->read, "%s%s", comma, outer);
    text_printf(&w->taken, "%s%%%c%d: %s[%s]", comma, letter, number, name_of(dtype), dims);
}

static void add_invariant(struct writer *w, enum lie lie, tssa_dtype dtype)
{
    char dims[64], outer[16];
    write_dims(w, false, lie, dims, sizeof dims);
    snprintf(outer, sizeof outer, "%%p%d", add_input(w, dtype, dims));
    take(w, outer, 'v', add_value(w, dtype, lie), dtype, dims);
}

/* An operand of a Loop is read by a number that the iteration tells, %k0. */
static void add_rows(struct writer *w, enum lie lie, tssa_dtype dtype)
{
    char dims[64], outer[16];
    write_dims(w, true, lie, dims, sizeof dims);
    const int input = add_input(w, dtype, dims), value = add_value(w, dtype, lie);
    if (w->scans) {
        const char *comma = w->n_scanned++ ? ", " : "", *own = strlen(dims) > 1 ? dims + 3 : "";
        size_t n = strlen(w->scanned);
        snprintf(w->scanned + n, sizeof w->scanned - n, "%s%%p%d", comma, input);
        n = strlen(w->elements);
        snprintf(w->elements + n, sizeof w->elements - n, "%s%%d%d: %s[%s]", comma, input,
                 name_of(dtype), own);
        snprintf(outer, sizeof outer, "%%d%d", input);
        take(w, outer, 'v', value, dtype, own);
        return;
    }
    snprintf(outer, sizeof outer, "%%p%d", input);
    take(w, outer, 'r', value, dtype, dims);
    text_printf(&w->ops, "%%v%d = access(%%r%d, %%k0) {rule = [select(0, $0)", value, value);
    const bool turns = lie == FULL && w->rank == 3 && !w->last && random_chance(&w->random, 20);
    text_printf(&w->ops, "%s]}\n", turns ? ", permute(0, 1, 2)" : "");
}

static int find_value(struct writer *w, enum lie lie, tssa_dtype dtype)
{
    int found = -1, n = 0;
    for (int i = 0; i < w->n_values; i++)
        if (w->values[i].lie == lie && w->values[i].dtype == dtype &&
            random_int(&w->random, 0, n++) == 0)
            found = i;
    return found;
}

static void add_unary(struct writer *w, int a, tssa_dtype dtype)
{
    static const char *const floats[] = {"Exp", "Sigmoid", "Sqrt", "Relu", "Tanh", "Abs", "Neg"};
    const char *name = dtype_is_float(dtype) ? floats[random_int(&w->random, 0, 6)] : "Abs";
    text_printf(&w->ops, "%%v%d = %s(%%v%d)\n", add_value(w, dtype, w->values[a].lie), name, a);
}

static void add_op(struct writer *w, tssa_dtype dtype)
{
    static const char *const two[] = {"Add", "Sub", "Mul", "Max", "Min", "Div"};
    const int a = find_value(w, FULL, dtype), other = find_value(w, BROADCAST, dtype);
    const int b = other >= 0 && random_chance(&w->random, 50) ? other : find_value(w, FULL, dtype);
    if (random_chance(&w->random, 25)) {
        add_unary(w, random_chance(&w->random, 80) || other < 0 ? a : other, dtype);
        return;
    }
    if (random_chance(&w->random, 15)) {
        const int c = find_value(w, FULL, dtype), number = w->n_values;
        text_printf(&w->ops, "%%t%d = Less(%%v%d, %%v%d)\n", number, a, b);
        text_printf(&w->ops, "%%v%d = Where(%%t%d, %%v%d, %%v%d)\n", add_value(w, dtype, FULL),
                    number, c, a);
        return;
    }
    text_printf(&w->ops, "%%v%d = %s(%%v%d, %%v%d)\n", add_value(w, dtype, FULL),
                two[random_int(&w->random, 0, 5)], a, b);
}

/* Of one type as another one, so that what is carried may have several. */
static void add_cast(struct writer *w)
{
    const tssa_dtype from = w->carried[random_int(&w->random, 0, w->n_carried - 1)],
                     to = w->carried[random_int(&w->random, 0, w->n_carried - 1)];
    const int a = find_value(w, FULL, from);
    text_printf(&w->ops, "%%v%d = Cast(%%v%d) {to = %d}\n", add_value(w, to, FULL), a, (int)to);
}

/* Values from `first` on are needed: what is wrong with them is an error then. */
static void need_all(struct writer *w, int first)
{
    const int end = w->n_values;
    w->needed = -1;
    for (int i = first; i < end; i++) {
        const int other = w->needed < 0 ? find_value(w, FULL, w->carried[0]) : w->needed;
        w->needed = w->n_values;
        text_printf(&w->ops, "%%v%d = Add(%%v%d, %%v%d)\n", add_value(w, w->carried[0], FULL), i,
                    other);
    }
}

/* The number of the iteration, which a Loop has. */
static void add_number(struct writer *w, tssa_dtype dtype)
{
    if (w->scans)
        return;
    text_printf(&w->ops, "%%v%d = Cast(%%k0) {to = %d}\n", add_value(w, dtype, BROADCAST),
                (int)dtype);
}

static void write_iteration(struct writer *w)
{
    const tssa_dtype dtype = w->carried[0];
    if (!w->scans)
        take(w, w->ahead ? "%j" : "%i", 'k', 0, TSSA_INT64, "");
    for (int64_t i = random_int(&w->random, 0, 2); i > 0; i--)
        add_invariant(w, random_chance(&w->random, 40) ? FULL : BROADCAST, dtype);
    const int first = w->n_values;
    for (int64_t i = random_int(&w->random, w->scans, 2); i > 0; i--)
        add_rows(w, random_chance(&w->random, 60) ? FULL : BROADCAST, dtype);
    need_all(w, first);
    if (random_chance(&w->random, 25))
        add_number(w, dtype);
    for (int64_t i = random_int(&w->random, 1, 7); i > 0; i--)
        add_op(w, w->carried[random_int(&w->random, 0, w->n_carried - 1)]);
    for (int64_t i = random_int(&w->random, 0, 2); i > 0; i--)
        add_cast(w);
}

/* What is carried begins as inputs, %cN in the loop's block. */
static void write_carried(struct writer *w, struct text *begin, struct text *carried)
{
    char dims[64], outer[16];
    write_dims(w, false, FULL, dims, sizeof dims);
    for (int i = 0; i < w->n_carried; i++) {
        const tssa_dtype dtype = i ? dtypes[random_int(&w->random, 0, N_DTYPES - 1)]
                                   : dtypes[random_int(&w->random, 0, 5)];
        const char *comma = i ? ", " : "";
        w->carried[i] = i && random_chance(&w->random, 60) ? w->carried[0] : dtype;
        text_printf(begin, "%s%%p%d", comma, add_input(w, w->carried[i], dims));
        text_printf(carried, "%s%%c%d: %s[%s]", comma, i, name_of(w->carried[i]), dims);
        snprintf(outer, sizeof outer, "%%c%d", i);
        take(w, outer, 'v', add_value(w, w->carried[i], FULL), w->carried[i], dims);
    }
}

/* Names %LETTER0, ... */
static void write_names(struct text *text, char letter, int n)
{
    for (int i = 0; i < n; i++)
        text_printf(text, "%s%%%c%d", i ? ", " : "", letter, i);
}

/* What is next of what is carried, or is stacked: a value of the iteration; now and then what
 * another one that is carried was. */
static void write_results(struct writer *w, int n_stacked, struct text *returned, struct text *next)
{
    int n = 0;
    for (int i = 0; i < w->n_carried + n_stacked; i++) {
        const int like = i < w->n_carried ? i : (int)random_int(&w->random, 0, w->n_carried - 1);
        const char *comma = i ? ", " : "";
        int other = (int)random_int(&w->random, 0, w->n_carried - 1);
        if (n && random_chance(&w->random, 15) && w->carried[other] == w->carried[like]) {
            text_printf(next, "%s%%c%d", comma, other);
            continue;
        }
        const bool must = i == 0 && w->needed >= 0;
        text_printf(returned, "%s%%v%d", n ? ", " : "",
                    must ? w->needed : find_value(w, FULL, w->carried[like]));
        text_printf(next, "%s%%u%d", comma, n++);
    }
    text_printf(&w->ops, "return(%s)\n", text_string(returned));
    text_clear(returned);
    write_names(returned, 'u', n);
}

/* ", NAME = [1, 0]", now and then. */
static void write_directions(struct writer *w, const char *name, int n, struct text *all)
{
    if (n == 0 || random_chance(&w->random, 60))
        return;
    text_printf(all, ", %s = [", name);
    for (int i = 0; i < n; i++)
        text_printf(all, "%s%d", i ? ", " : "", (int)random_int(&w->random, 0, 1));
    text_puts(all, "]");
}

static void write_scan(struct writer *w, int n_stacked, const char *begin, const char *carried,
                       struct text *all)
{
    text_printf(all, " = Scan(%s, %s) {num_scan_inputs = %d", begin, w->scanned, w->n_scanned);
    write_directions(w, "scan_input_directions", w->n_scanned, all);
    write_directions(w, "scan_output_directions", n_stacked, all);
    text_printf(all, "} {\nbody(%s, %s) {\n", carried, w->elements);
}

static void write_loop(struct writer *w, struct text *all)
{
    struct text begin, carried, returned, next;
    struct text *const texts[] = {&begin, &carried, &returned, &next};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_init(texts[i], &allocator_default);
    const int n_stacked = (int)random_int(&w->random, 0, 2), n = w->n_carried + n_stacked;
    write_carried(w, &begin, &carried);
    write_iteration(w);
    write_results(w, n_stacked, &returned, &next);
    write_names(all, 'l', n);
    if (w->scans)
        write_scan(w, n_stacked, text_string(&begin), text_string(&carried), all);
    else
        text_printf(all, " = Loop(%%n, _, %s) {\nbody(%%i: i64[], %%go: bool[], %s) {\n",
                    text_string(&begin), text_string(&carried));
    if (w->ahead > 0)
        text_printf(all, "%%a = Constant() {value = i64[] %d}\n%%j = Add(%%i, %%a)\n", w->ahead);
    if (w->ahead < 0)
        text_puts(all, "%j = Sub(%e, %i)\n");
    text_printf(all, "%s = fuse(%s) {\nbody(%s) {\n%s} }\nreturn(%s%s)\n} }\nreturn(",
                text_string(&returned), text_string(&w->read), text_string(&w->taken),
                text_string(&w->ops), w->scans ? "" : "%go, ", text_string(&next));
    write_names(all, 'l', n);
    text_puts(all, ")\n} }\nreturn(");
    write_names(all, 'y', n);
    text_puts(all, ")\n}\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_free(texts[i]);
    w->n_values = n; /* results of the graph */
}

/* As many iterations as the first input has rows, or a few; the last of the rows. */
static void write_trips(struct writer *w, struct text *graph)
{
    const int rows = add_input(w, TSSA_UINT8, "H"), less = w->ahead > 0 ? w->ahead : 0;
    text_printf(graph, "%%s = Shape(%%x%d) {end = 1, start = 0}\n%%rows = Squeeze(%%s)\n", rows);
    text_puts(graph, "%one = Constant() {value = i64[] 1}\n%last = Sub(%rows, %one)\n");
    if (random_chance(&w->random, 70))
        text_printf(
            graph, "%%less = Constant() {value = i64[] %d}\n%%trips = Sub(%%rows, %%less)\n", less);
    else
        text_printf(graph, "%%trips = Constant() {value = i64[] %d}\n",
                    (int)random_int(&w->random, -1, 12));
}

static void write_graph(struct writer *w, struct text *graph, struct text *loop, struct text *all)
{
    static const int lasts[] = {0, 0, 0, 1, 3, 64, 300};
    w->scans = random_chance(&w->random, 30);
    w->rank = (int)random_int(&w->random, 0, MAX_RANK);
    w->last = lasts[random_int(&w->random, 0, 6)];
    w->n_carried = (int)random_int(&w->random, 1, MAX_CARRIED);
    if (!w->scans && random_chance(&w->random, 40))
        w->ahead = (int)random_int(&w->random, -1, 2);
    if (!w->scans)
        write_trips(w, graph);
    write_loop(w, loop);
    text_printf(all, "graph @loops opset(\"\": 24) ir_version(11) (%s) -> (",
                text_string(&w->inputs));
    write_names(all, 'y', w->n_values);
    text_printf(all, ") {\n%s", text_string(graph));
    write_names(all, 'y', w->n_values);
    text_printf(all, " = fuse(%s%s) {\nbody(%s%s) {\n%s", text_string(&w->operands),
                w->scans ? "" : ", %trips, %last", text_string(&w->params),
                w->scans ? "" : ", %n: i64[], %e: i64[]", text_string(loop));
}

char *random_loops(uint64_t seed)
{
    struct writer w = {.random = {seed * 2 + 1}};
    struct text graph, loop, all;
    struct text *const texts[] = {&w.inputs, &w.operands, &w.params, &w.read, &w.taken,
                                  &w.ops,    &graph,      &loop,     &all};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_init(texts[i], &allocator_default);
    write_graph(&w, &graph, &loop, &all);
    char *text = strdup(text_string(&all));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_free(texts[i]);
    return text;
}
