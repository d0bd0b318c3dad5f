/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_keeps.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/fuse_text.h"
#include "common/op_run.h"
#include "ir/ir.h"

#define MAX_VALUES 32

struct list_value {
    tssa_dtype dtype;
    bool full; /* else it is one element for all */
    bool kept; /* nothing is computed of it */
    bool rows; /* of a few columns */
};

struct writer {
    struct random random;
    struct fuse_text text;
    struct list_value values[MAX_VALUES];
    int n_values;
    tssa_dtype dtype; /* of nearly all */
    char dim[16];
    int columns; /* of rows */
};

static int add_value(struct writer *w, tssa_dtype dtype, bool full)
{
    w->values[w->n_values] = (struct list_value){.dtype = dtype, .full = full};
    return w->n_values++;
}

static void add_param(struct writer *w, tssa_dtype dtype, bool full)
{
    const char *one = random_chance(&w->random, 50) ? "" : "1";
    fuse_text_param(&w->text, 'v', 'x', add_value(w, dtype, full), dtype, full ? w->dim : one);
}

/* A column of a table. */
static void add_column(struct writer *w)
{
    char dims[24];
    const int value = add_value(w, w->dtype, true);
    snprintf(dims, sizeof dims, "%s, 5", w->dim);
    fuse_text_param(&w->text, 's', 'x', value, w->dtype, dims);
    text_printf(&w->text.ops, "%%v%d = access(%%s%d) {rule = [select(1, %d)]}\n", value, value,
                (int)random_int(&w->random, 0, 4));
}

/* One of the type; -1: there is none. */
static int find_value(struct writer *w, tssa_dtype dtype, bool full)
{
    int found = -1, n = 0;
    for (int i = 0; i < w->n_values; i++)
        if (!w->values[i].kept && !w->values[i].rows && w->values[i].dtype == dtype &&
            w->values[i].full >= full && random_int(&w->random, 0, n++) == 0)
            found = i;
    return found;
}

static void add_elementwise(struct writer *w)
{
    const int a = find_value(w, w->dtype, true), b = find_value(w, w->dtype, false);
    fuse_text_elementwise(&w->text, &w->random, w->dtype, add_value(w, w->dtype, true), a, b);
}

static void add_mask(struct writer *w)
{
    static const char *const tests[] = {"Greater", "Less", "GreaterOrEqual", "LessOrEqual",
                                        "Equal"},
                             *const joins[] = {"And", "Or", "Xor"};
    const int other = find_value(w, TSSA_BOOL, true);
    if (other >= 0 && random_chance(&w->random, 40)) {
        const int second = find_value(w, TSSA_BOOL, false);
        text_printf(&w->text.ops, "%%v%d = %s(%%v%d, %%v%d)\n", add_value(w, TSSA_BOOL, true),
                    joins[random_int(&w->random, 0, 2)], other, second);
        return;
    }
    const int a = find_value(w, w->dtype, true), b = find_value(w, w->dtype, false);
    text_printf(&w->text.ops, "%%v%d = %s(%%v%d, %%v%d)\n", add_value(w, TSSA_BOOL, true),
                tests[random_int(&w->random, 0, 4)], a, b);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static int find_rows(struct writer *w)
{
    int found = -1, n = 0;
    for (int i = 0; i < w->n_values; i++)
        if (!w->values[i].kept && w->values[i].rows && random_int(&w->random, 0, n++) == 0)
            found = i;
    return found;
}

static int add_rows(struct writer *w)
{
    const int value = add_value(w, w->dtype, true);
    w->values[value].rows = true;
    return value;
}

static void add_rows_param(struct writer *w)
{
    char dims[24];
    snprintf(dims, sizeof dims, "%s, %d", w->dim, w->columns);
    fuse_text_param(&w->text, 'v', 'x', add_rows(w), w->dtype, dims);
}

/* The first columns of one, and the others of another one; or one column of the first is a list. */
static void join_columns(struct writer *w)
{
    const int a = find_rows(w), b = find_rows(w), list = find_value(w, w->dtype, true),
              at = (int)random_int(&w->random, 1, w->columns - 1), value = add_rows(w);
    if (random_chance(&w->random, 40)) {
        text_printf(&w->text.ops, "%%v%d = assign(%%v%d, %%v%d) {rule = [select(1, %d)]}\n", value,
                    a, list, at);
        return;
    }
    text_printf(&w->text.ops, "%%a%d = access(%%v%d) {rule = [slice(1, 0, %d, 1)]}\n", value, a,
                at);
    text_printf(&w->text.ops, "%%b%d = access(%%v%d) {rule = [slice(1, %d, %d, 1)]}\n", value, b,
                at, w->columns);
    text_printf(&w->text.ops, "%%v%d = Concat(%%a%d, %%b%d) {axis = 1}\n", value, value, value);
}

static void compute_rows(struct writer *w)
{
    static const char *const two[] = {"Add", "Sub", "Mul", "Max", "Min"};
    const char *name = two[random_int(&w->random, 0, 4)];
    const int a = find_rows(w), b = find_rows(w), list = find_value(w, w->dtype, true);
    if (random_chance(&w->random, 30)) {
        join_columns(w);
        return;
    }
    const int value = add_rows(w);
    if (random_chance(&w->random, 50)) {
        text_printf(&w->text.ops, "%%v%d = %s(%%v%d, %%v%d)\n", value, name, a, b);
        return;
    }
    text_printf(&w->text.ops, "%%u%d = access(%%v%d) {rule = [unsqueeze(1)]}\n", value, list);
    text_printf(&w->text.ops, "%%v%d = %s(%%v%d, %%u%d)\n", value, name, a, value);
}

/* Rows that are as they come: of any length, and behind an axis of one element. */
static void keep_long_rows(struct writer *w, int mask)
{
    char dims[24];
    const int value = add_value(w, TSSA_INT16, true), columns = (int)random_int(&w->random, 1, 20);
    const bool behind = random_chance(&w->random, 50);
    w->values[value].kept = true;
    snprintf(dims, sizeof dims, "%s%s, %d", behind ? "1, " : "", w->dim, columns);
    fuse_text_param(&w->text, 's', 'x', value, TSSA_INT16, dims);
    text_printf(&w->text.ops, "%%v%d = Compress(%%s%d, %%v%d) {axis = %d}\n", value, value, mask,
                behind);
    fuse_text_result(&w->text, value);
}

static void keep_rows(struct writer *w, int mask)
{
    const int rows = find_rows(w), value = add_value(w, w->dtype, true);
    w->values[value].kept = true;
    if (random_chance(&w->random, 50))
        text_printf(&w->text.ops, "%%v%d = access(%%v%d, %%v%d) {rule = [mask(0, $0)]}\n", value,
                    rows, mask);
    else
        text_printf(&w->text.ops, "%%v%d = Compress(%%v%d, %%v%d) {axis = 0}\n", value, rows, mask);
    fuse_text_result(&w->text, value);
}

/* ---- All ------------------------------------------------------------------------------------- */

static void add_kept(struct writer *w)
{
    static const char *const how[] = {" {axis = 0}", " {axis = -1}", ""};
    const int mask = find_value(w, TSSA_BOOL, true);
    if (w->columns && random_chance(&w->random, 50)) {
        keep_rows(w, mask);
        return;
    }
    if (w->columns && random_chance(&w->random, 15)) {
        keep_long_rows(w, mask);
        return;
    }
    const tssa_dtype dtype = random_chance(&w->random, 80)   ? w->dtype
                             : random_chance(&w->random, 50) ? TSSA_BOOL
                                                             : TSSA_DOUBLE;
    const int x = find_value(w, dtype, true);
    const bool numbers = x < 0 || random_chance(&w->random, 25);
    const int value = add_value(w, numbers ? TSSA_INT64 : dtype, true);
    w->values[value].kept = true;
    if (numbers)
        text_printf(&w->text.ops, "%%v%d = NonZero(%%v%d)\n", value, mask);
    else if (random_chance(&w->random, 50))
        text_printf(&w->text.ops, "%%v%d = access(%%v%d, %%v%d) {rule = [mask(0, $0)]}\n", value, x,
                    mask);
    else
        text_printf(&w->text.ops, "%%v%d = Compress(%%v%d, %%v%d)%s\n", value, x, mask,
                    how[random_int(&w->random, 0, 2)]);
    fuse_text_result(&w->text, value);
}

static void write_all(struct writer *w)
{
    if (random_chance(&w->random, 15))
        snprintf(w->dim, sizeof w->dim, "%d", (int)random_int(&w->random, 1, 70));
    else
        snprintf(w->dim, sizeof w->dim, "A");
    w->dtype = fuse_text_dtype(&w->random);
    add_param(w, w->dtype, true);
    for (int64_t i = random_int(&w->random, 0, 2); i > 0; i--)
        add_param(w, w->dtype, random_chance(&w->random, 50));
    if (random_chance(&w->random, 25))
        add_param(w, TSSA_BOOL, true);
    if (random_chance(&w->random, 20))
        add_param(w, TSSA_DOUBLE, true);
    if (random_chance(&w->random, 25))
        add_column(w);
    w->columns = random_chance(&w->random, 50) ? (int)random_int(&w->random, 2, 8) : 0;
    for (int64_t i = w->columns ? random_int(&w->random, 1, 2) : 0; i > 0; i--)
        add_rows_param(w);
    for (int64_t i = random_int(&w->random, 0, 4); i > 0; i--)
        add_elementwise(w);
    for (int64_t i = w->columns ? random_int(&w->random, 0, 3) : 0; i > 0; i--)
        compute_rows(w);
    for (int64_t i = random_int(&w->random, 1, 3); i > 0; i--)
        add_mask(w);
    for (int64_t i = random_int(&w->random, 1, 4); i > 0; i--)
        add_kept(w);
    for (int i = w->n_values; i-- > w->text.n_params && w->text.n_results < 6;)
        if (w->values[i].full && !w->values[i].kept && !w->values[i].rows &&
            random_chance(&w->random, 20))
            fuse_text_result(&w->text, i);
}

char *random_keeps(uint64_t seed)
{
    struct writer w = {.random = {seed * 2 + 1}};
    fuse_text_init(&w.text);
    write_all(&w);
    return fuse_text_finish(&w.text, "keeps");
}
