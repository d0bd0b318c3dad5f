/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "common/fuse_text.h"
#include "common/op_run.h"
#include "ir/ir.h"

#define MAX_VALUES 24

/* What a value has of the axes: all; one element in the place of the row's; none in their place;
 * the row's alone; or, of one that only normalizations read, the last one of the rows. */
enum lie { FULL, KEPT, DROPPED, ROW, LIES, EACH = LIES };

struct row_value {
    tssa_dtype dtype;
    enum lie lie;
};

struct writer {
    struct random random;
    struct fuse_text text;
    struct row_value values[MAX_VALUES];
    int n_values, n_row_ops, rank; /* rank: of the rows */
    bool folds_all;                /* reductions drop the row's axis, none keeps it */
    tssa_dtype dtype;              /* of nearly all */
    int sizes[4]; /* of the rows' axes and of a row, where operands lie in planes; 0: symbols */
    int cut;      /* the last of the rows' axes is so many times what planes have of it */
};

static int add_value(struct writer *w, tssa_dtype dtype, enum lie lie)
{
    w->values[w->n_values] = (struct row_value){dtype, lie};
    return w->n_values++;
}

/* Axis i of the space; the last one is a row. */
static void add_dim(const struct writer *w, int i, char *dims, size_t size)
{
    const char *comma = *dims ? ", " : "";
    if (w->sizes[i])
        snprintf(dims + strlen(dims), size - strlen(dims), "%s%d", comma, w->sizes[i]);
    else
        snprintf(dims + strlen(dims), size - strlen(dims), "%s%c", comma,
                 i == w->rank ? 'H' : 'A' + i);
}

/* An operand whose rows are read from planes: of [R * cut, C] or [B, R * cut, C], what is there as
 * [cut * C, R]. */
static void add_planes(struct writer *w)
{
    const int value = add_value(w, w->dtype, FULL), row = w->sizes[w->rank],
              rows = w->sizes[w->rank - 1] / w->cut;
    const bool batch = w->rank > 1, select = !batch && random_chance(&w->random, 30);
    char dims[64];
    snprintf(dims, sizeof dims, "%s%d, %d", select ? "2, " : "", w->cut * row, rows);
    if (batch)
        snprintf(dims, sizeof dims, "%d, %d, %d", w->sizes[0], w->cut * row, rows);
    fuse_text_param(&w->text, 's', 'r', value, w->dtype, dims);
    text_printf(&w->text.ops, "%%v%d = access(%%s%d) {rule = [%spermute(%s)", value, value,
                select ? "select(0, 1), " : "", batch ? "0, 2, 1" : "1, 0");
    if (batch)
        text_printf(&w->text.ops, ", reshape(%d, -1, %d)", w->sizes[0], row);
    else if (w->cut > 1 || random_chance(&w->random, 50))
        text_printf(&w->text.ops, ", reshape(%d, %d)", w->sizes[0], row);
    text_puts(&w->text.ops, "]}\n");
}

static void add_param(struct writer *w, enum lie lie)
{
    char dims[64] = "";
    if (lie == FULL && w->cut && (w->text.n_params == 0 || random_chance(&w->random, 40))) {
        add_planes(w);
        return;
    }
    for (int i = lie == EACH ? w->rank - 1 : 0; i < w->rank && lie != ROW; i++)
        add_dim(w, i, dims, sizeof dims);
    if (lie == KEPT)
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%s1", *dims ? ", " : "");
    else if (lie != DROPPED && lie != EACH)
        add_dim(w, w->rank, dims, sizeof dims);
    const int value = add_value(w, w->dtype, lie);
    fuse_text_param(&w->text, 'v', 'x', value, w->dtype, dims);
}

/* A value of the type that lies so, or where `other` is told, so that both can be operands of one
 * op. */
static int find_value(struct writer *w, int other)
{
    int found = -1, n = 0;
    const bool dropped = other >= 0 && w->values[other].lie == DROPPED;
    for (int i = 0; i < w->n_values; i++) {
        const bool fits =
            w->values[i].lie != EACH && (other < 0 || (w->values[i].lie == DROPPED) == dropped);
        if (w->values[i].dtype == w->dtype && fits && random_int(&w->random, 0, n++) == 0)
            found = i;
    }
    return found;
}

static enum lie lie_of_two(enum lie a, enum lie b)
{
    if (a == b)
        return a;
    return a == DROPPED || b == DROPPED ? DROPPED : FULL;
}

static void add_elementwise(struct writer *w)
{
    static const char *const two[] = {"Add", "Sub", "Mul", "Max", "Min", "Div"},
                             *const any[] = {"Abs", "Neg"}, *const floats[] = {"Exp",  "Sigmoid",
                                                                               "Sqrt", "Relu",
                                                                               "Tanh", "Log"};
    const int a = find_value(w, -1);
    if (random_chance(&w->random, 60)) {
        const int b = find_value(w, a);
        const char *name = two[random_int(&w->random, 0, 5)];
        const int value = add_value(w, w->dtype, lie_of_two(w->values[a].lie, w->values[b].lie));
        text_printf(&w->text.ops, "%%v%d = %s(%%v%d, %%v%d)\n", value, name, a, b);
        return;
    }
    const bool is_float = dtype_is_float(w->dtype);
    const char *name =
        is_float
            ? floats[random_int(&w->random, 0, 5)]
            : any[dtype_info(w->dtype)->cls == DTYPE_CLASS_UNSIGNED ? 0
                                                                    : random_int(&w->random, 0, 1)];
    const int value = add_value(w, w->dtype, w->values[a].lie);
    text_printf(&w->text.ops, "%%v%d = %s(%%v%d)\n", value, name, a);
}

/* One that has the whole row. */
static int find_full(struct writer *w)
{
    int found = 0, n = 0;
    for (int i = 0; i < w->n_values; i++)
        if (w->values[i].lie == FULL && w->values[i].dtype == w->dtype &&
            random_int(&w->random, 0, n++) == 0)
            found = i;
    return found;
}

static void add_norm(struct writer *w, int x)
{
    static const char *const names[] = {
        "Softmax",         "LogSoftmax",      "LayerNormalization",        "RMSNormalization",
        "LpNormalization", "LpNormalization", "MeanVarianceNormalization", "InstanceNormalization"};
    const int64_t which = random_int(&w->random, 0, w->rank == 2 ? 7 : 6);
    const int value = add_value(w, w->dtype, FULL);
    text_printf(&w->text.ops, "%%v%d = %s(%%v%d", value, names[which], x);
    if (which == 2 || which == 3)
        text_printf(&w->text.ops, ", %%v%d", 1); /* the second operand has the row alone */
    if (which == 2 && random_chance(&w->random, 50))
        text_printf(&w->text.ops, ", %%v%d", 1);
    if (which == 7)
        text_puts(&w->text.ops,
                  ", %v2, %v2"); /* and the third one, of two axes, one element each */
    text_puts(&w->text.ops, ")");
    if (which == 4 || which == 5)
        text_printf(&w->text.ops, " {p = %d}", (int)which - 3);
    text_puts(&w->text.ops, which == 6 ? " {axes = [-1]}\n" : "\n");
}

static void add_row_op(struct writer *w)
{
    static const char *const some[] = {"Sum", "Mean",      "Max", "Min",    "Prod",
                                       "L1",  "SumSquare", "L2",  "LogSum", "LogSumExp"};
    const int x = find_full(w);
    w->n_row_ops++;
    if (dtype_is_float(w->dtype) && random_chance(&w->random, 35)) {
        add_norm(w, x);
        return;
    }
    const bool keeps = w->folds_all ? false : random_chance(&w->random, 60);
    const int value = add_value(w, w->dtype, keeps ? KEPT : DROPPED);
    text_printf(&w->text.ops, "%%v%d = Reduce%s(%%v%d, %%axes) {keepdims = %d}\n", value,
                some[random_int(&w->random, 0, 9)], x, keeps);
}

/* Where an extreme is, as an element that others may be computed with. There is one: the row has a
 * size. */
static void add_arg(struct writer *w)
{
    const int x = find_full(w);
    const bool keeps = w->folds_all ? false : random_chance(&w->random, 60);
    const enum lie lie = keeps ? KEPT : DROPPED;
    const int at = add_value(w, TSSA_INT64, lie);
    w->n_row_ops++;
    text_printf(&w->text.ops,
                "%%v%d = Arg%s(%%v%d) {axis = -1, keepdims = %d, select_last_index = %d}\n", at,
                random_chance(&w->random, 50) ? "Max" : "Min", x, keeps,
                (int)random_int(&w->random, 0, 1));
    if (w->n_values < MAX_VALUES && w->dtype != TSSA_INT64)
        text_printf(&w->text.ops, "%%v%d = Cast(%%v%d) {to = %d}\n", add_value(w, w->dtype, lie),
                    at, (int)w->dtype);
}

static void write_all(struct writer *w)
{
    static const int lengths[] = {1, 2, 3, 9, 20, 21, 31, 32, 33, 64, 100, 128, 2100};
    const int params = (int)random_int(&w->random, 0, 3), ops = (int)random_int(&w->random, 1, 8);
    if (!w->rank)
        w->rank = (int)random_int(&w->random, 1, 3);
    if (!w->sizes[w->rank] && random_chance(&w->random, 40))
        w->sizes[w->rank] = lengths[random_int(&w->random, 0, 12)];
    w->dtype = fuse_text_dtype(&w->random);
    w->folds_all = random_chance(&w->random, 40);
    add_param(w, FULL);
    add_param(w, ROW);
    if (w->rank == 2 && dtype_is_float(w->dtype))
        add_param(w, EACH);
    for (int i = 0; i < params; i++)
        add_param(w, (enum lie)random_int(&w->random, 0, LIES - 1));
    text_printf(&w->text.ops, "%%axes = Constant() {value = i64[1] [-1]}\n");
    if (random_chance(&w->random, 50))
        add_elementwise(w);
    add_row_op(w);
    for (int i = 0; i < ops && w->n_values < MAX_VALUES; i++)
        if (w->sizes[w->rank] && random_chance(&w->random, 20))
            add_arg(w);
        else if (random_chance(&w->random, 35))
            add_row_op(w);
        else
            add_elementwise(w);
    for (int i = w->n_values, n = 0; i-- > w->text.n_params && n < 4;)
        if (w->values[i].lie != ROW && (n == 0 || random_chance(&w->random, 40))) {
            fuse_text_result(&w->text, i);
            n++;
        }
}

char *random_rows(uint64_t seed)
{
    struct writer w = {.random = {seed * 2 + 1}};
    fuse_text_init(&w.text);
    write_all(&w);
    return fuse_text_finish(&w.text, "rows");
}

char *random_planes(uint64_t seed)
{
    struct writer w = {.random = {seed * 2 + 1}};
    const bool is_short = random_chance(&w.random, 60);
    fuse_text_init(&w.text);
    w.rank = (int)random_int(&w.random, 1, 2);
    w.cut = (int)random_int(&w.random, 1, 3);
    w.sizes[0] = (int)random_int(&w.random, 1, 3);
    w.sizes[w.rank - 1] = w.cut * (int)random_int(&w.random, 2, 80);
    w.sizes[w.rank] = (int)random_int(&w.random, 2, is_short ? 40 : 128);
    write_all(&w);
    return fuse_text_finish(&w.text, "planes");
}
