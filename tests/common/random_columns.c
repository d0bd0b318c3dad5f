/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_columns.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fuse_text.h"
#include "common/op_run.h"
#include "ir/ir.h"

#define MAX_VALUES 40
#define MAX_RANK 4

/* What a value has of the axes: all; some, one element along the others; all but the one that is
 * reduced. */
enum lie { FULL, BROADCAST, COLUMN, LIES };

struct column_value {
    tssa_dtype dtype;
    enum lie lie;
};

struct writer {
    struct random random;
    struct fuse_text text;
    struct column_value values[MAX_VALUES];
    int n_values, rank;
    int axis, last; /* what is reduced; the size of the last axis */
    int length;     /* of the axis; 0: only a run tells */
    bool keeps;
    tssa_dtype dtype; /* of nearly all */
};

static int add_value(struct writer *w, tssa_dtype dtype, enum lie lie)
{
    w->values[w->n_values] = (struct column_value){dtype, lie};
    return w->n_values++;
}

/* Dim i of the space, or 1. */
static void write_dim(const struct writer *w, int i, bool is_one, char *dims, size_t size)
{
    const size_t n = strlen(dims);
    const char *comma = n ? ", " : "";
    if (is_one)
        snprintf(dims + n, size - n, "%s1", comma);
    else if (i + 1 == w->rank)
        snprintf(dims + n, size - n, "%s%d", comma, w->last);
    else if (i == w->axis && w->length)
        snprintf(dims + n, size - n, "%s%d", comma, w->length);
    else
        snprintf(dims + n, size - n, "%s%c", comma, i == w->axis ? 'H' : 'A' + i);
}

static int write_param(struct writer *w, enum lie lie, const char *dims)
{
    const int value = add_value(w, w->dtype, lie);
    fuse_text_param(&w->text, 'v', 'x', value, w->dtype, dims);
    return value;
}

static void add_param(struct writer *w, enum lie lie)
{
    char dims[80] = "";
    const int missing = lie == BROADCAST ? (int)random_int(&w->random, 0, w->rank) : 0;
    for (int i = missing; i < w->rank; i++) {
        const bool is_one =
            lie == COLUMN ? i == w->axis : lie == BROADCAST && random_chance(&w->random, 50);
        if (lie != COLUMN || i != w->axis || w->keeps)
            write_dim(w, i, is_one, dims, sizeof dims);
    }
    write_param(w, lie, dims);
}

/* One axis is put in between, or all are the other way round. */
static void add_access(struct writer *w)
{
    char dims[80] = "";
    const bool turned = random_chance(&w->random, 40);
    const int gone = turned ? -1 : (int)random_int(&w->random, 0, w->rank - 1);
    for (int i = 0; i < w->rank; i++) {
        const int axis = turned ? w->rank - 1 - i : i;
        if (axis != gone)
            write_dim(w, axis, false, dims, sizeof dims);
    }
    const int from = write_param(w, LIES, dims),
              value = add_value(w, w->dtype, turned ? FULL : BROADCAST);
    text_printf(&w->text.ops, "%%v%d = access(%%v%d) {rule = [", value, from);
    if (!turned)
        text_printf(&w->text.ops, "unsqueeze(%d)]}\n", gone);
    for (int i = 0; i < w->rank && turned; i++)
        text_printf(&w->text.ops, "%s%d%s", i ? ", " : "permute(", w->rank - 1 - i,
                    i + 1 == w->rank ? ")]}\n" : "");
}

/* One of those that lie so, of the type; -1: there is none. */
static int find_value(struct writer *w, enum lie lie)
{
    int found = -1, n = 0;
    for (int i = 0; i < w->n_values; i++)
        if (w->values[i].lie == lie && w->values[i].dtype == w->dtype &&
            random_int(&w->random, 0, n++) == 0)
            found = i;
    return found;
}

static void add_elementwise(struct writer *w, enum lie lie)
{
    static const char *const two[] = {"Add", "Sub", "Mul", "Max", "Min", "Div"},
                             *const floats[] = {"Exp", "Sigmoid", "Sqrt", "Relu", "Tanh", "Abs"};
    const int a = find_value(w, lie), other = lie == FULL ? find_value(w, BROADCAST) : -1;
    if (a < 0)
        return;
    if (!dtype_is_float(w->dtype) || random_chance(&w->random, 70)) {
        const int b = other >= 0 && random_chance(&w->random, 60) ? other : find_value(w, lie);
        const bool swaps = random_chance(&w->random, 50);
        const char *name = two[random_int(&w->random, 0, 5)];
        text_printf(&w->text.ops, "%%v%d = %s(%%v%d, %%v%d)\n", add_value(w, w->dtype, lie), name,
                    swaps ? b : a, swaps ? a : b);
        return;
    }
    const char *name = floats[random_int(&w->random, 0, 5)];
    text_printf(&w->text.ops, "%%v%d = %s(%%v%d)\n", add_value(w, w->dtype, lie), name, a);
}

static void add_triangle(struct writer *w)
{
    const int x = find_value(w, FULL), value = add_value(w, w->dtype, FULL);
    char diagonal[24] = "";
    if (random_chance(&w->random, 70)) {
        text_printf(&w->text.ops, "%%d%d = Constant() {value = i64[] %d}\n", value,
                    (int)random_int(&w->random, -9, 9));
        snprintf(diagonal, sizeof diagonal, ", %%d%d", value);
    } else if (random_chance(&w->random, 50)) {
        snprintf(diagonal, sizeof diagonal, ", %%k0");
    }
    text_printf(&w->text.ops, "%%v%d = Trilu(%%v%d%s) {upper = %d}\n", value, x, diagonal,
                (int)random_int(&w->random, 0, 1));
}

static void add_reduction(struct writer *w)
{
    static const char *const some[] = {"Sum",  "Mean", "Max",       "Min", "Max",    "Min",
                                       "Prod", "L1",   "SumSquare", "L2",  "LogSum", "LogSumExp"};
    const int x = find_value(w, FULL), value = add_value(w, w->dtype, COLUMN);
    text_printf(&w->text.ops, "%%v%d = Reduce%s(%%v%d, %%axes) {keepdims = %d}\n", value,
                some[random_int(&w->random, 0, 11)], x, w->keeps);
}

/* Where the highest or lowest element of each column is. */
static void add_arg(struct writer *w)
{
    const int x = find_value(w, FULL);
    text_printf(&w->text.ops,
                "%%v%d = Arg%s(%%v%d) {axis = %d, keepdims = %d, select_last_index = %d}\n",
                add_value(w, TSSA_INT64, COLUMN), random_chance(&w->random, 50) ? "Max" : "Min", x,
                w->axis, w->keeps, (int)random_int(&w->random, 0, 1));
}

/* What an operator computes of whole columns. */
static void add_normalization(struct writer *w)
{
    const int x = find_value(w, FULL);
    if (!dtype_is_float(w->dtype))
        return;
    const int value = add_value(w, w->dtype, FULL);
    if (random_chance(&w->random, 30))
        text_printf(&w->text.ops, "%%v%d = LpNormalization(%%v%d) {axis = %d, p = %d}\n", value, x,
                    w->axis - w->rank, (int)random_int(&w->random, 1, 2));
    else
        text_printf(&w->text.ops, "%%v%d = %sSoftmax(%%v%d) {axis = %d}\n", value,
                    random_chance(&w->random, 40) ? "Log" : "", x, w->axis);
}

/* In each element, of what its column has come to: shapes tell that where the axis stays, or was
 * the first one. */
static void add_spread(struct writer *w)
{
    static const char *const two[] = {"Add", "Sub", "Mul", "Max", "Min", "Div"};
    const int x = find_value(w, FULL), column = find_value(w, COLUMN);
    const bool swaps = random_chance(&w->random, 30);
    if (x < 0 || column < 0 || (!w->keeps && w->axis > 0))
        return;
    text_printf(&w->text.ops, "%%v%d = %s(%%v%d, %%v%d)\n", add_value(w, w->dtype, FULL),
                two[random_int(&w->random, 0, 5)], swaps ? column : x, swaps ? x : column);
}

/* Walks of the columns, each of what the ones before have come to. */
static void add_walks(struct writer *w)
{
    for (int64_t i = random_int(&w->random, 1, 3); i > 0; i--) {
        add_spread(w);
        if (random_chance(&w->random, 40))
            add_normalization(w);
        add_elementwise(w, FULL);
        if (random_chance(&w->random, 50))
            add_reduction(w);
    }
    if (random_chance(&w->random, 80) && w->values[w->n_values - 1].lie != FULL)
        add_spread(w);
}

static void add_results(struct writer *w, enum lie lie)
{
    for (int i = w->n_values; i-- > 0 && w->text.n_results < 4;)
        if (w->values[i].lie == lie && (!w->text.n_results || random_chance(&w->random, 40)))
            fuse_text_result(&w->text, i);
}

static void write_all(struct writer *w)
{
    static const int lasts[] = {2, 3, 7, 16, 31, 32, 33, 40, 64, 100};
    const bool reduces = random_chance(&w->random, 75);
    w->rank = (int)random_int(&w->random, 2, MAX_RANK);
    w->axis = (int)random_int(&w->random, 0, w->rank - 2);
    w->last = lasts[random_int(&w->random, 0, 9)];
    w->length = random_chance(&w->random, 20) ? (int)random_int(&w->random, 1, 80) : 0;
    w->keeps = random_chance(&w->random, 40);
    w->dtype = fuse_text_dtype(&w->random);
    text_printf(&w->text.ops, "%%axes = Constant() {value = i64[1] [%d]}\n",
                random_chance(&w->random, 50) ? w->axis : w->axis - w->rank);
    fuse_text_param(&w->text, 'k', 'n', 0, TSSA_INT64, "");
    add_param(w, FULL);
    for (int64_t i = random_int(&w->random, 0, 2); i > 0; i--)
        add_param(w, reduces && random_chance(&w->random, 30) ? COLUMN : BROADCAST);
    for (int64_t i = random_int(&w->random, 0, 2); i > 0; i--)
        add_access(w);
    for (int64_t i = random_int(&w->random, 0, 4); i > 0; i--)
        if (random_chance(&w->random, 25))
            add_triangle(w);
        else
            add_elementwise(w, FULL);
    if (!reduces) {
        add_triangle(w);
        add_elementwise(w, FULL);
        add_results(w, FULL);
        return;
    }
    for (int64_t i = random_int(&w->random, 1, 3); i > 0; i--)
        add_reduction(w);
    if (w->length && random_chance(&w->random, 70)) /* of none, no element is the highest */
        add_arg(w);
    for (int64_t i = random_int(&w->random, 0, 3); i > 0; i--)
        add_elementwise(w, COLUMN);
    if (!random_chance(&w->random, 50)) {
        add_results(w, COLUMN);
        return;
    }
    add_walks(w);
    add_results(w, FULL);
    if (random_chance(&w->random, 50))
        add_results(w, COLUMN);
}

char *random_columns(uint64_t seed)
{
    struct writer w = {.random = {seed * 2 + 1}};
    fuse_text_init(&w.text);
    write_all(&w);
    return fuse_text_finish(&w.text, "columns");
}
