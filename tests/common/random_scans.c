/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random_scans.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fuse_text.h"
#include "common/op_run.h"
#include "ir/ir.h"

#define MAX_VALUES 32
#define MAX_RANK 4

struct scan_value {
    tssa_dtype dtype;
    bool full; /* else it is broadcast */
};

struct writer {
    struct random random;
    struct fuse_text text;
    struct scan_value values[MAX_VALUES];
    int n_values, rank;
    int axis;   /* along which sums run */
    int length; /* of the axis; 0: only a run tells */
    int last;   /* the same of the last axis */
    bool reverse;
    tssa_dtype dtype; /* of nearly all */
};

static int add_value(struct writer *w, tssa_dtype dtype, bool full)
{
    w->values[w->n_values] = (struct scan_value){dtype, full};
    return w->n_values++;
}

/* Dim i of the space, or 1. */
static void write_dim(const struct writer *w, int i, bool is_one, char *dims, size_t size)
{
    const size_t n = strlen(dims);
    const char *comma = n ? ", " : "";
    const int length = is_one ? 1 : i == w->axis ? w->length : i + 1 == w->rank ? w->last : 0;
    if (length)
        snprintf(dims + n, size - n, "%s%d", comma, length);
    else
        snprintf(dims + n, size - n, "%s%c", comma, i == w->axis ? 'H' : 'A' + i);
}

static void add_param(struct writer *w, tssa_dtype dtype, bool full)
{
    char dims[80] = "";
    const int missing = full ? 0 : (int)random_int(&w->random, 0, w->rank);
    for (int i = missing; i < w->rank; i++)
        write_dim(w, i, !full && random_chance(&w->random, 50), dims, sizeof dims);
    fuse_text_param(&w->text, 'v', 'x', add_value(w, dtype, full), dtype, dims);
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
    const int value = add_value(w, w->dtype, turned);
    fuse_text_param(&w->text, 's', 'x', value, w->dtype, dims);
    text_printf(&w->text.ops, "%%v%d = access(%%s%d) {rule = [", value, value);
    if (!turned)
        text_printf(&w->text.ops, "unsqueeze(%d)]}\n", gone);
    for (int i = 0; i < w->rank && turned; i++)
        text_printf(&w->text.ops, "%s%d%s", i ? ", " : "permute(", w->rank - 1 - i,
                    i + 1 == w->rank ? ")]}\n" : "");
}

/* One of the type; -1: there is none. */
static int find_value(struct writer *w, tssa_dtype dtype, bool full)
{
    int found = -1, n = 0;
    for (int i = 0; i < w->n_values; i++)
        if (w->values[i].dtype == dtype && w->values[i].full >= full &&
            random_int(&w->random, 0, n++) == 0)
            found = i;
    return found;
}

static void add_elementwise(struct writer *w)
{
    const int a = find_value(w, w->dtype, true), b = find_value(w, w->dtype, false);
    fuse_text_elementwise(&w->text, &w->random, w->dtype, add_value(w, w->dtype, true), a, b);
}

static void add_scan(struct writer *w)
{
    const bool product = random_chance(&w->random, 30);
    const int wide = random_chance(&w->random, 15) ? find_value(w, TSSA_DOUBLE, true) : -1,
              x = wide < 0 ? find_value(w, w->dtype, true) : wide;
    text_printf(&w->text.ops, "%%v%d = Cum%s(%%v%d, %%axis) {exclusive = %d, reverse = %d}\n",
                add_value(w, wide < 0 ? w->dtype : TSSA_DOUBLE, true), product ? "Prod" : "Sum", x,
                (int)random_int(&w->random, 0, 1), w->reverse);
}

static void write_all(struct writer *w)
{
    w->rank = (int)random_int(&w->random, 2, MAX_RANK);
    w->axis = (int)random_int(&w->random, 0, w->rank - 2);
    w->length = random_chance(&w->random, 30) ? (int)random_int(&w->random, 2, 9) : 0;
    const bool told = w->rank == MAX_RANK || random_chance(&w->random, 50);
    w->last = told ? (int)random_int(&w->random, 2, 70) : 0;
    w->reverse = random_chance(&w->random, 40);
    w->dtype = fuse_text_dtype(&w->random);
    text_printf(&w->text.ops, "%%axis = Constant() {value = i64[] %d}\n",
                w->axis - (random_chance(&w->random, 50) ? w->rank : 0));
    add_param(w, w->dtype, true);
    for (int64_t i = random_int(&w->random, 0, 3); i > 0; i--)
        add_param(w, w->dtype, random_chance(&w->random, 30));
    if (random_chance(&w->random, 20))
        add_param(w, TSSA_DOUBLE, true);
    if (random_chance(&w->random, 25))
        add_access(w);
    for (int64_t i = random_int(&w->random, 0, 4); i > 0; i--)
        add_elementwise(w);
    for (int64_t i = random_int(&w->random, 1, 3); i > 0; i--) {
        add_scan(w);
        for (int64_t k = random_int(&w->random, 0, 2); k > 0; k--)
            add_elementwise(w);
    }
    for (int i = w->n_values; i-- > w->text.n_params && w->text.n_results < 6;)
        if (w->values[i].full && (!w->text.n_results || random_chance(&w->random, 30)))
            fuse_text_result(&w->text, i);
}

char *random_scans(uint64_t seed)
{
    struct writer w = {.random = {seed * 2 + 1}};
    fuse_text_init(&w.text);
    write_all(&w);
    return fuse_text_finish(&w.text, "scans");
}
