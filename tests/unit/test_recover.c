/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `recover` raises computes what it computed: random writes and reads in the spellings of
 * exporters, with indices in and out of range, negative ones, backwards ranges and empty tensors,
 * inside loops and outside. And the spellings are recognised.
 *
 * TSSA_SEED=N runs one of them and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/op_run.h"
#include "common/random_programs.h"
#include "common/rewrite_check.h"

#define MAX_RANK 3
/* With shape arithmetic as exporters wrote it, and folded; NULL: level 2, which lowers again. */
static const char *const passes[] = {"identity recover", "identity fold_shapes recover",
                                     "identity fold_shapes fold_constants recover",
                                     "recover identity fold_shapes recover", NULL};

/* A program in the making. The tensor that is written and read is %x0, %x1, ..., of one shape. */
struct maker {
    struct random random;
    struct text inputs, body;
    int rank, version, next;
    bool symbolic; /* axis 0 has the size N */
    int64_t dims[MAX_RANK];
};

static int64_t pick(struct maker *m, int64_t low, int64_t high)
{
    return random_int(&m->random, low, high);
}

/* "N, 3, 4" with one dim replaced (axis < 0: none), or left out (size < 0). */
static void put_dims(struct maker *m, struct text *text, int axis, int64_t size)
{
    bool first = true;
    for (int i = 0; i < m->rank; i++) {
        if (i == axis && size < 0)
            continue;
        text_puts(text, first ? "" : ", ");
        first = false;
        if (i != axis && i == 0 && m->symbolic)
            text_puts(text, "N");
        else
            text_printf(text, "%lld", (long long)(i == axis ? size : m->dims[i]));
    }
}

/* A new input with the dims of x, but for one axis. Returns its number. */
static int put_source(struct maker *m, int axis, int64_t size)
{
    int name = m->next++;
    text_printf(&m->inputs, ", %%v%d: f32[", name);
    put_dims(m, &m->inputs, axis, size);
    text_puts(&m->inputs, "]");
    return name;
}

static int put_ints(struct maker *m, int count, const int64_t *values, const char *shape)
{
    int name = m->next++;
    text_printf(&m->body, "  %%v%d = Constant() {value = i64[%s] ", name, shape);
    for (int i = 0; i < count; i++)
        text_printf(&m->body, "%s%lld", i ? ", " : *shape ? "[" : "", (long long)values[i]);
    text_puts(&m->body, *shape ? count ? "]}\n" : "[]}\n" : "}\n");
    return name;
}

static int put_number(struct maker *m, int64_t value)
{
    return put_ints(m, 1, &value, "");
}

static int put_list(struct maker *m, int count, const int64_t *values)
{
    char shape[16];
    snprintf(shape, sizeof shape, "%d", count);
    return put_ints(m, count, values, shape);
}

static int put_op(struct maker *m, const char *format, ...)
{
    va_list arguments;
    int name = m->next++;
    text_printf(&m->body, "  %%v%d = ", name);
    va_start(arguments, format);
    text_vprintf(&m->body, format, arguments);
    va_end(arguments);
    text_puts(&m->body, "\n");
    return name;
}

static void put_result(struct maker *m, int value)
{
    text_printf(&m->body, "  %%x%d = Identity(%%v%d)\n", ++m->version, value);
}

/* A rank-0 index: a number, which may be out of range, or the graph's %i. */
static int put_index(struct maker *m, int axis)
{
    if (pick(m, 0, 2) == 0)
        return put_op(m, "Identity(%%i)");
    int64_t dim = m->dims[axis], slack = dim == 0 || pick(m, 0, 9) == 0;
    return put_number(m, pick(m, -dim - slack, dim - 1 + slack));
}

static int put_reshape(struct maker *m, int value, int count, const int64_t *shape)
{
    return put_op(m, "Reshape(%%v%d, %%v%d)", value, put_list(m, count, shape));
}

/* A range along an axis: start, how many, step. Its values are in 0 .. dim, now and then beyond. */
struct range {
    int64_t start, count, step;
};

static struct range pick_range(struct maker *m, int axis)
{
    int64_t dim = m->dims[axis];
    struct range range = {.step = pick(m, 0, 3) == 0 ? -1 : pick(m, 1, 2)};
    if (dim == 0)
        return (struct range){0, 0, 1};
    range.start = pick(m, 0, dim - 1);
    int64_t room = range.step > 0 ? dim - 1 - range.start : range.start;
    int64_t stride = range.step > 0 ? range.step : -range.step;
    range.count = pick(m, 0, room / stride + 1);
    if (pick(m, 0, 9) == 0)
        range.start += pick(m, -1, 1);
    if (pick(m, 0, 9) == 0)
        range.start -= dim; /* the same, from the end */
    return range;
}

static int put_range(struct maker *m, struct range range)
{
    int start = put_number(m, range.start), step = put_number(m, range.step);
    int end = put_number(m, range.start + range.count * range.step);
    return put_op(m, "Range(%%v%d, %%v%d, %%v%d)", start, end, step);
}

/* [1, .., -1, .., 1] */
static int put_along(struct maker *m, int value, int axis, int rank)
{
    int64_t shape[MAX_RANK];
    for (int i = 0; i < rank; i++)
        shape[i] = i == axis ? -1 : 1;
    return put_reshape(m, value, rank, shape);
}

/* ---- Writes ---------------------------------------------------------------------------------- */

static void write_column_elements(struct maker *m)
{
    int axis = (int)pick(m, 0, m->rank - 1);
    int update = put_source(m, axis, 1), shape = put_op(m, "Shape(%%v%d)", update);
    int index = put_along(m, put_index(m, axis), 0, 1);
    int all = put_op(m, "Expand(%%v%d, %%v%d)", index, shape);
    put_result(m, put_op(m, "ScatterElements(%%x%d, %%v%d, %%v%d) {axis = %d}", m->version, all,
                         update, pick(m, 0, 1) ? axis : axis - m->rank));
}

static void write_range_elements(struct maker *m)
{
    int axis = (int)pick(m, 0, m->rank - 1);
    if (m->symbolic && axis == 0)
        return;
    struct range range = pick_range(m, axis);
    int update = put_source(m, axis, range.count), shape = put_op(m, "Shape(%%v%d)", update);
    int places = put_along(m, put_range(m, range), axis, m->rank);
    int all = put_op(m, "Expand(%%v%d, %%v%d)", places, shape);
    put_result(m, put_op(m, "ScatterElements(%%x%d, %%v%d, %%v%d) {axis = %d}", m->version, all,
                         update, axis));
}

/* An explicit coordinate for every element: a range on one axis, or one index and no such axis. */
static int put_grid(struct maker *m, int source, int axis, int places, bool single)
{
    int shape = put_op(m, "Shape(%%v%d)", source), rank = m->rank - single, columns[MAX_RANK];
    int zero = put_number(m, 0), one = put_number(m, 1), minus = put_list(m, 1, (int64_t[]){-1});
    for (int d = 0, free = 0; d < m->rank; d++) {
        int column = places;
        if (d != axis) {
            int at = put_number(m, free);
            int size = put_op(m, "Gather(%%v%d, %%v%d)", shape, at);
            int all = put_op(m, "Range(%%v%d, %%v%d, %%v%d)", zero, size, one);
            column = put_along(m, all, free, rank);
        }
        free += d != axis || !single;
        column = put_op(m, "Expand(%%v%d, %%v%d)", column, shape);
        columns[d] = put_op(m, "Unsqueeze(%%v%d, %%v%d)", column, minus);
    }
    if (m->rank == 1)
        return columns[0];
    if (m->rank == 2)
        return put_op(m, "Concat(%%v%d, %%v%d) {axis = -1}", columns[0], columns[1]);
    return put_op(m, "Concat(%%v%d, %%v%d, %%v%d) {axis = -1}", columns[0], columns[1], columns[2]);
}

static void write_column_nd(struct maker *m)
{
    int axis = (int)pick(m, 0, m->rank - 1);
    int update = put_source(m, axis, -1), index = put_index(m, axis);
    if (m->rank == 1)
        return;
    int grid = put_grid(m, update, axis, index, true);
    put_result(m, put_op(m, "ScatterND(%%x%d, %%v%d, %%v%d)", m->version, grid, update));
}

static void write_range_nd(struct maker *m)
{
    int axis = (int)pick(m, 0, m->rank - 1);
    if (m->symbolic && axis == 0)
        return;
    struct range range = pick_range(m, axis);
    int update = put_source(m, axis, range.count);
    int places = put_along(m, put_range(m, range), axis, m->rank);
    int grid = put_grid(m, update, axis, places, false);
    put_result(m, put_op(m, "ScatterND(%%x%d, %%v%d, %%v%d)", m->version, grid, update));
}

static void write_row(struct maker *m)
{
    int row = put_source(m, 0, 1);
    int index = put_reshape(m, put_index(m, 0), 2, (int64_t[]){1, 1});
    put_result(m, put_op(m, "ScatterND(%%x%d, %%v%d, %%v%d)", m->version, index, row));
}

/* An axis moved to the front, written, and moved back. */
static void write_transposed(struct maker *m)
{
    static const char *const there[3] = {"0, 1, 2", "1, 0, 2", "2, 0, 1"};
    static const char *const back[3] = {"0, 1, 2", "1, 0, 2", "1, 2, 0"};
    if (m->rank != 3)
        return;
    int axis = (int)pick(m, 1, 2);
    int front = put_op(m, "Transpose(%%x%d) {perm = [%s]}", m->version, there[axis]);
    int index, update;
    if (pick(m, 0, 1)) {
        index = put_reshape(m, put_index(m, axis), 2, (int64_t[]){1, 1});
        int zero = put_list(m, 1, (int64_t[]){0});
        update = put_op(m, "Unsqueeze(%%v%d, %%v%d)", put_source(m, axis, -1), zero);
    } else {
        struct range range = pick_range(m, axis);
        index = put_reshape(m, put_range(m, range), 2, (int64_t[]){-1, 1});
        update = put_op(m, "Transpose(%%v%d) {perm = [%s]}", put_source(m, axis, range.count),
                        there[axis]);
    }
    int written = put_op(m, "ScatterND(%%v%d, %%v%d, %%v%d)", front, index, update);
    put_result(m, put_op(m, "Transpose(%%v%d) {perm = [%s]}", written, back[axis]));
}

/* A slice of x along an axis, with bounds from either end. */
static int put_slice(struct maker *m, int axis, int64_t start, int64_t end, int64_t step)
{
    int64_t dim = m->dims[axis];
    if (!(m->symbolic && axis == 0) && pick(m, 0, 3) == 0 && start < dim && start >= 0)
        start -= dim;
    int from = put_list(m, 1, &start), to = put_list(m, 1, &end);
    int64_t at = pick(m, 0, 1) ? axis : axis - m->rank;
    int axes = put_list(m, 1, &at), steps = put_list(m, 1, &step);
    return put_op(m, "Slice(%%x%d, %%v%d, %%v%d, %%v%d, %%v%d)", m->version, from, to, axes, steps);
}

static void write_concat(struct maker *m)
{
    int axis = (int)pick(m, 0, m->rank - 1);
    if (m->symbolic && axis == 0)
        return;
    int64_t dim = m->dims[axis], a = pick(m, 0, dim), b = pick(m, a, dim);
    int head = put_slice(m, axis, 0, a, 1), tail = put_slice(m, axis, b, INT64_MAX, 1);
    int64_t shift = pick(m, 0, 5) == 0 && a > 0; /* a part that is not in its place */
    int middle = shift ? put_slice(m, axis, a - 1, b - 1, 1) : put_source(m, axis, b - a);
    if (pick(m, 0, 5) == 0)
        middle = put_slice(m, axis, a, b, 1);
    put_result(m, put_op(m, "Concat(%%v%d, %%v%d, %%v%d) {axis = %d}", head, middle, tail, axis));
}

/* A write into a slice that is written back. */
static void write_part(struct maker *m)
{
    int axis = (int)pick(m, 0, m->rank - 1);
    if (m->symbolic)
        return;
    int64_t dim = m->dims[axis], whole = m->version, a = pick(m, 0, dim), b = pick(m, a, dim);
    int part = put_slice(m, axis, a, b, 1);
    m->dims[axis] = b - a;
    put_result(m, part);
    (pick(m, 0, 1) ? write_column_elements : write_range_nd)(m);
    m->dims[axis] = dim;
    int places = put_along(m, put_range(m, (struct range){a, b - a, 1}), axis, m->rank);
    int shape = put_op(m, "Shape(%%x%d)", m->version);
    int all = put_op(m, "Expand(%%v%d, %%v%d)", places, shape);
    put_result(m, put_op(m, "ScatterElements(%%x%d, %%v%d, %%x%d) {axis = %d}", (int)whole, all,
                         m->version, axis));
}

/* Rows by a list, equal ones among them. */
static void write_rows(struct maker *m)
{
    int64_t count = pick(m, 0, 4);
    int name = m->next++, rows = put_source(m, 0, count), last = put_list(m, 1, (int64_t[]){-1});
    text_printf(&m->inputs, ", %%v%d: i64[%lld]", name, (long long)count);
    int index = put_op(m, "Unsqueeze(%%v%d, %%v%d)", name, last);
    put_result(m, put_op(m, "ScatterND(%%x%d, %%v%d, %%v%d)", m->version, index, rows));
}

static void write_where(struct maker *m)
{
    static const char *const kinds[] = {"Equal", "Less", "LessOrEqual", "Greater",
                                        "GreaterOrEqual"};
    int axis = m->rank - 1;
    if (m->symbolic && axis == 0)
        return;
    int64_t dim = m->dims[axis];
    int iota = put_range(m, (struct range){0, dim, 1});
    int limit = pick(m, 0, 3) ? put_number(m, pick(m, -1, dim + 1)) : put_op(m, "Identity(%%i)");
    int swap = (int)pick(m, 0, 1);
    int mask = put_op(m, "%s(%%v%d, %%v%d)", kinds[pick(m, 0, 4)], swap ? limit : iota,
                      swap ? iota : limit);
    int source = put_source(m, pick(m, 0, 1) ? axis : -1, 1);
    if (pick(m, 0, 1))
        put_result(m, put_op(m, "Where(%%v%d, %%v%d, %%x%d)", mask, source, m->version));
    else
        put_result(m, put_op(m, "Where(%%v%d, %%x%d, %%v%d)", mask, m->version, source));
}

static void write_one_hot(struct maker *m)
{
    int axis = m->rank - 1;
    if (m->symbolic && axis == 0)
        return;
    int index = put_index(m, axis), depth = put_number(m, m->dims[axis]);
    int values = put_list(m, 2, (int64_t[]){0, 1});
    int hot = put_op(m, "OneHot(%%v%d, %%v%d, %%v%d)", index, depth, values);
    int mask = put_op(m, "Cast(%%v%d) {to = 9}", hot);
    int source = put_source(m, pick(m, 0, 1) ? axis : -1, 1);
    put_result(m, put_op(m, "Where(%%v%d, %%v%d, %%x%d)", mask, source, m->version));
}

static void write_constant_mask(struct maker *m)
{
    int64_t count = m->dims[m->rank - 1];
    if ((m->symbolic && m->rank == 1) || count == 0)
        return;
    int mask = m->next++, source = put_source(m, -1, 0);
    text_printf(&m->body, "  %%v%d = Constant() {value = bool[%lld] [", mask, (long long)count);
    for (int64_t i = 0; i < count; i++)
        text_printf(&m->body, "%s%s", i ? ", " : "", pick(m, 0, 1) ? "true" : "false");
    text_puts(&m->body, "]}\n");
    put_result(m, put_op(m, "Where(%%v%d, %%v%d, %%x%d)", mask, source, m->version));
}

/* One value to where a mask of trailing axes is true, by the list that NonZero makes; in a row,
 * perhaps. */
static void write_listed(struct maker *m)
{
    static const char *const scalars[] = {"-0.0", "2.5"};
    int lead = m->rank > 1 ? (int)pick(m, 0, 1) : 0, rank = m->rank - lead;
    int64_t picked = pick(m, 0, 3) ? rank : 1; /* axes of the mask */
    if (lead && pick(m, 0, 9) == 0)
        picked = 1;
    int axes_behind = rank - (int)picked;
    int mask = put_op(m, "Greater(%%x%d, %%v%d)", m->version, put_source(m, -1, 0));
    for (int i = m->rank - 1; i >= 0;
         i--) { /* of the mask's axes, the first elements of the others */
        if (i >= lead && i < lead + (int)picked)
            continue;
        if (m->dims[i] == 0)
            return;
        mask = put_op(m, "Gather(%%v%d, %%v%d) {axis = %d}", mask, put_number(m, 0), i);
    }
    int places = put_op(m, "Transpose(%%v%d)", put_op(m, "NonZero(%%v%d)", mask));
    int shape = put_op(m, "Shape(%%v%d)", places), zero = put_list(m, 1, (int64_t[]){0});
    int one = put_list(m, 1, (int64_t[]){1});
    int count = put_op(m, "Slice(%%v%d, %%v%d, %%v%d, %%v%d)", shape, zero, one, zero);
    if (lead) {
        int column = put_op(m, "Concat(%%v%d, %%v%d) {axis = 0}", count, one);
        int row = put_along(m, put_index(m, 0), 0, 2);
        row = put_op(m, "Expand(%%v%d, %%v%d)", row, column);
        places = put_op(m, "Concat(%%v%d, %%v%d) {axis = 1}", row, places);
    }
    int whole = put_op(m, "Shape(%%x%d)", m->version);
    int from = put_list(m, 1, (int64_t[]){m->rank - axes_behind});
    int end = put_list(m, 1, (int64_t[]){INT64_MAX});
    int behind = put_op(m, "Slice(%%v%d, %%v%d, %%v%d, %%v%d)", whole, from, end, zero);
    int all = put_op(m, "Concat(%%v%d, %%v%d) {axis = 0}", count, behind);
    int value = put_op(m, "Constant() {value = f32[] %s}", scalars[pick(m, 0, 1)]);
    if (pick(m, 0, 1))
        value = put_along(m, value, 0, axes_behind + 1);
    int updates = put_op(m, "Expand(%%v%d, %%v%d)", value, all);
    put_result(m, put_op(m, "ScatterND(%%x%d, %%v%d, %%v%d)", m->version, places, updates));
}

static void write_tensor(struct maker *m)
{
    if (m->rank < 2 || m->symbolic)
        return;
    int axis = (int)pick(m, 1, m->rank - 1);
    int64_t count = pick(m, 0, m->dims[axis]), start = pick(m, 0, m->dims[axis] - count);
    int64_t starts[8];
    for (int i = 0; i < 8; i++)
        starts[i] = start + (pick(m, 0, 20) == 0);
    int places = put_list(m, (int)m->dims[0], starts), update = put_source(m, axis, count);
    put_result(m, put_op(m, "TensorScatter(%%x%d, %%v%d, %%v%d) {axis = %d, mode = \"%s\"}",
                         m->version, update, places, axis, pick(m, 0, 1) ? "linear" : "circular"));
}

/* ---- Reads: each is added to x, so that the result keeps its shape --------------------------- */

static void add_read(struct maker *m, int value)
{
    /* Running sums tell the order of the elements. */
    int flat = put_reshape(m, value, 1, (int64_t[]){-1}), zero = put_number(m, 0);
    int sums = put_op(m, "CumSum(%%v%d, %%v%d)", flat, zero);
    int all = put_op(m, "ReduceSum(%%v%d) {keepdims = 0}", sums);
    put_result(m, put_op(m, "Add(%%x%d, %%v%d)", m->version, all));
}

static void read_slice(struct maker *m)
{
    int axis = (int)pick(m, 0, m->rank - 1);
    int64_t step = pick(m, 0, 1) ? pick(m, 1, 3) : -pick(m, 1, 2);
    add_read(m, put_slice(m, axis, pick(m, -6, 6), pick(m, -7, 7), step));
}

static void read_gather(struct maker *m)
{
    int axis = (int)pick(m, 0, m->rank - 1);
    int index = put_op(m, "Identity(%%i)");
    if (pick(m, 0, 1))
        index = put_reshape(m, index, 1, (int64_t[]){1});
    add_read(m, put_op(m, "Gather(%%x%d, %%v%d) {axis = %d}", m->version, index, axis));
}

static void read_grid(struct maker *m)
{
    int axis = (int)pick(m, 0, m->rank - 1);
    if (m->symbolic && axis == 0)
        return;
    struct range range = pick_range(m, axis);
    int like = put_source(m, axis, range.count);
    int places = put_along(m, put_range(m, range), axis, m->rank);
    if (pick(m, 0, 1)) {
        int grid = put_grid(m, like, axis, places, false);
        add_read(m, put_op(m, "GatherND(%%x%d, %%v%d)", m->version, grid));
        return;
    }
    int shape = put_op(m, "Shape(%%v%d)", like);
    int all = put_op(m, "Expand(%%v%d, %%v%d)", places, shape);
    add_read(m, put_op(m, "GatherElements(%%x%d, %%v%d) {axis = %d}", m->version, all, axis));
}

static void read_list(struct maker *m)
{
    int axis = (int)pick(m, 0, m->rank - 1);
    if (m->symbolic && axis == 0)
        return;
    int places = put_range(m, pick_range(m, axis));
    add_read(m, put_op(m, "Gather(%%x%d, %%v%d) {axis = %d}", m->version, places, axis));
}

static void read_moved(struct maker *m)
{
    int flat = put_op(m, "Flatten(%%x%d) {axis = %d}", m->version, (int)pick(m, 0, m->rank));
    int turned = put_op(m, "Transpose(%%v%d)", flat);
    int zero = put_list(m, 1, (int64_t[]){1}),
        more = put_op(m, "Unsqueeze(%%v%d, %%v%d)", turned, zero);
    int tiled = put_op(m, "Tile(%%v%d, %%v%d)", more, put_list(m, 3, (int64_t[]){2, 1, 1}));
    add_read(m, put_op(m, "Squeeze(%%v%d, %%v%d)", tiled, zero));
}

/* ---- Programs -------------------------------------------------------------------------------- */

typedef void (*make_fn)(struct maker *m);

static const make_fn makers[] = {
    write_column_elements,
    write_range_elements,
    write_column_nd,
    write_range_nd,
    write_row,
    write_transposed,
    write_concat,
    write_part,
    write_one_hot,
    write_rows,
    write_where,
    write_constant_mask,
    write_listed,
    write_tensor,
    read_slice,
    read_list,
    read_gather,
    read_grid,
    read_moved,
};

static char *make_program(uint64_t seed)
{
    struct maker m = {.random = {seed * UINT64_C(0x9e3779b97f4a7c15) + 1}};
    struct text text;
    text_init(&text, &allocator_default);
    text_init(&m.inputs, &allocator_default);
    text_init(&m.body, &allocator_default);
    m.rank = (int)pick(&m, 1, MAX_RANK);
    m.symbolic = pick(&m, 0, 2) == 0;
    for (int i = 0; i < m.rank; i++)
        m.dims[i] = pick(&m, 0, 9) == 0 ? 0 : pick(&m, 1, 5);
    bool loop = pick(&m, 0, 2) == 0;
    for (int64_t i = pick(&m, 1, 4); i > 0; i--)
        makers[pick(&m, 0, (int64_t)(sizeof makers / sizeof *makers) - 1)](&m);
    text_printf(&text, "graph (%%%s: i64[], %%%s: f32[", loop ? "n" : "i", loop ? "start" : "x0");
    put_dims(&m, &text, -1, 0);
    text_printf(&text, "]%s) -> (%%y) {\n", text_string(&m.inputs));
    if (loop) {
        text_puts(&text, "%y = Loop(%n, _, %start) { body(%i: i64[], %c: bool[], %x0: f32[");
        put_dims(&m, &text, -1, 0);
        text_printf(&text, "]) {\n%s  return(%%c, %%x%d)\n} }\n", text_string(&m.body), m.version);
    } else {
        text_printf(&text, "%s  %%y = Identity(%%x%d)\n", text_string(&m.body), m.version);
    }
    text_puts(&text, "  return(%y)\n}\n");
    char *copy = strdup(text_string(&text));
    text_free(&text);
    text_free(&m.inputs);
    text_free(&m.body);
    return copy;
}

/* Returns how many accesses and assigns there are; counts the runs that ended well. */
static int run_seed(uint64_t seed, bool print, int *ran)
{
    char *text = make_program(seed);
    if (print)
        fputs(text, stderr);
    const char *list = passes[seed % 5];
    for (int64_t scalar = -2; scalar <= 5; scalar++)
        *ran += rewrite_check(&(const struct rewrite_check){.text = text,
                                                            .passes = list,
                                                            .lenient = !list,
                                                            .size = scalar & 3,
                                                            .scalar = scalar,
                                                            .seed = seed});
    int raised = 0;
    if (list)
        raised = rewrite_count(text, list, "assign(") + rewrite_count(text, list, "access(");
    free(text);
    return raised;
}

static void recovered_programs_compute_the_same(void **state)
{
    (void)state;
    uint64_t seed;
    int ran = 0;
    if (programs_seed(&seed)) {
        run_seed(seed, true, &ran);
        return;
    }
    int count = (int)programs_count(600), raised = 0;
    for (int i = 1; i <= count; i++)
        raised += run_seed((uint64_t)i, false, &ran);
    assert_true(raised > count && ran > count); /* or the test would test nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recovered_programs_compute_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
