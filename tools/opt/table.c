/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* ---- Reading --------------------------------------------------------------------------------- */

static tssa_status *own_names(struct op_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        tssa_op_count *row = &table->rows[i];
        row->domain = strdup(row->domain);
        row->name = strdup(row->name);
        if (!row->domain || !row->name) {
            free((char *)row->domain);
            free((char *)row->name);
            table->count = i;
            return status_out_of_memory();
        }
    }
    return NULL;
}

tssa_status *op_table_read(const tssa_model *model, struct op_table *table)
{
    size_t count;
    tssa_model_info info;
    op_table_free(table);
    TRY(tssa_model_get_info(model, &info));
    TRY(tssa_model_op_counts(model, NULL, 0, &count));
    table->constants = info.initializer_count;
    table->constant_bytes = info.initializer_bytes;
    table->rows = calloc(count + 1, sizeof *table->rows);
    TRY_ALLOC(table->rows);
    TRY(tssa_model_op_counts(model, table->rows, count, &count));
    table->count = count;
    return own_names(table);
}

void op_table_free(struct op_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free((char *)table->rows[i].domain);
        free((char *)table->rows[i].name);
    }
    free(table->rows);
    *table = (struct op_table){0};
}

/* ---- Before beside after --------------------------------------------------------------------- */

struct pair {
    const char *domain, *name;
    size_t before, after, nested_before, nested_after;
    bool supported, function;
};

static struct pair *find(struct pair *pairs, size_t count, const tssa_op_count *row)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(pairs[i].domain, row->domain) == 0 && strcmp(pairs[i].name, row->name) == 0)
            return &pairs[i];
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int order = strcmp(x->domain, y->domain);
    return order ? order : strcmp(x->name, y->name);
}

/* Every operator that is in either; to be freed. */
static struct pair *join(const struct op_table *before, const struct op_table *after, size_t *count)
{
    struct pair *pairs = calloc(before->count + after->count + 1, sizeof *pairs);
    *count = 0;
    for (size_t i = 0; pairs && i < before->count + after->count; i++) {
        bool old = i < before->count;
        const tssa_op_count *row = old ? &before->rows[i] : &after->rows[i - before->count];
        struct pair *pair = old ? NULL : find(pairs, *count, row);
        if (!pair) {
            pair = &pairs[(*count)++];
            *pair = (struct pair){.domain = row->domain, .name = row->name, .supported = true};
        }
        pair->supported &= row->supported != 0;
        pair->function |= row->function != 0;
        *(old ? &pair->before : &pair->after) = row->count;
        *(old ? &pair->nested_before : &pair->nested_after) = row->nested;
    }
    if (*count)
        qsort(pairs, *count, sizeof *pairs, by_name);
    return pairs;
}

static void print_number(size_t number)
{
    if (number)
        printf(" %8zu", number);
    else
        printf(" %8s", "-");
}

static void print_row(const char *name, size_t before, size_t after, const char *remark)
{
    printf("  %-28s", name);
    print_number(before);
    print_number(after);
    if (before != after)
        printf(" %+8" PRId64, (int64_t)after - (int64_t)before);
    printf("%s\n", remark);
}

tssa_status *op_table_print(const struct op_table *before, const struct op_table *after)
{
    size_t count, sums[4] = {0};
    struct pair *pairs = join(before, after, &count);
    TRY_ALLOC(pairs);
    printf("  %-28s %8s %8s %8s\n", "operators", "before", "after", "change");
    for (size_t i = 0; i < count; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s%s%s", pairs[i].domain, pairs[i].domain[0] ? ":" : "",
                 pairs[i].name);
        print_row(name, pairs[i].before, pairs[i].after,
                  pairs[i].function    ? "  (a function)"
                  : pairs[i].supported ? ""
                                       : "  (tssa cannot run it)");
        sums[0] += pairs[i].before;
        sums[1] += pairs[i].after;
        sums[2] += pairs[i].nested_before;
        sums[3] += pairs[i].nested_after;
    }
    print_row("in all", sums[0], sums[1], "");
    if (sums[2] || sums[3])
        print_row("of these in subgraphs", sums[2], sums[3], "");
    if (before->constants || after->constants) {
        print_row("constants", before->constants, after->constants, "");
        print_row("bytes of constants", before->constant_bytes, after->constant_bytes, "");
    }
    free(pairs);
    return NULL;
}

json_t *op_table_json(const struct op_table *before, const struct op_table *after)
{
    size_t count;
    struct pair *pairs = join(before, after, &count);
    json_t *array = pairs ? json_array() : NULL;
    for (size_t i = 0; array && i < count; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s%s%s", pairs[i].domain, pairs[i].domain[0] ? ":" : "",
                 pairs[i].name);
        json_t *row = json_pack("{s:s, s:I, s:I}", "operator", name, "before",
                                (json_int_t)pairs[i].before, "after", (json_int_t)pairs[i].after);
        if (json_array_append_new(array, row) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    free(pairs);
    return array;
}
