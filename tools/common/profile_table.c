/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/profile_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* ---- Reading --------------------------------------------------------------------------------- */

static void row_free(struct profile_row *row)
{
    free(row->op);
    free(row->node);
    free(row->around);
}

void profile_table_free(struct profile_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        row_free(&table->rows[i]);
    free(table->rows);
    *table = (struct profile_table){0};
}

static struct profile_row *find(const struct profile_table *table, const tssa_step_profile *step)
{
    for (size_t i = 0; !table->layers && i < table->count; i++)
        if (strcmp(table->rows[i].op, step->op) == 0 &&
            strcmp(table->rows[i].around, step->around) == 0)
            return &table->rows[i];
    return NULL;
}

/* NULL when memory runs out. */
static struct profile_row *append(struct profile_table *table, const tssa_step_profile *step)
{
    struct profile_row *more = reallocarray(table->rows, table->count + 1, sizeof *more);
    if (!more)
        return NULL;
    table->rows = more;
    struct profile_row row = {.op = strdup(step->op),
                              .node = table->layers ? strdup(step->node) : NULL,
                              .around = strdup(step->around),
                              .depth = step->depth};
    if (!row.op || !row.around || (table->layers && !row.node)) {
        row_free(&row);
        return NULL;
    }
    more[table->count] = row;
    return &more[table->count++];
}

static void add_step(void *user, const tssa_step_profile *step)
{
    struct profile_table *table = user;
    struct profile_row *row = find(table, step);
    if (!row)
        row = append(table, step);
    if (!row) {
        table->failed = true;
        return;
    }
    uint64_t own = step->nanoseconds - step->nested_nanoseconds;
    row->calls += step->calls;
    row->nanoseconds += own;
    row->nested += step->nested_nanoseconds;
    table->inside += own;
}

static int by_cost(const void *a, const void *b)
{
    const struct profile_row *x = a, *y = b;
    if (x->nanoseconds != y->nanoseconds)
        return x->nanoseconds < y->nanoseconds ? 1 : -1;
    int order = strcmp(x->op, y->op);
    return order ? order : strcmp(x->around, y->around);
}

tssa_status *profile_table_read(tssa_session *session, bool layers, struct profile_table *table)
{
    *table = (struct profile_table){.layers = layers};
    TRY(tssa_session_profile_steps(session, add_step, table));
    if (table->failed)
        return status_out_of_memory();
    if (!layers && table->count)
        qsort(table->rows, table->count, sizeof *table->rows, by_cost);
    return NULL;
}

/* ---- Printing -------------------------------------------------------------------------------- */

struct scale {
    double runs, nanoseconds;
};

static void print_row(const struct scale *scale, uint64_t nanoseconds, uint64_t calls)
{
    double share = scale->nanoseconds > 0 ? (double)nanoseconds / scale->nanoseconds : 0;
    printf("  %10.4f %6.1f%%", (double)nanoseconds / scale->runs * 1e-6, 100 * share);
    if (calls)
        printf(" %10.6g %10.2f", (double)calls / scale->runs,
               (double)nanoseconds / (double)calls * 1e-3);
    else
        printf(" %10s %10s", "", "");
}

static void print_name(const struct profile_row *row, const struct scale *scale)
{
    if (row->node)
        printf("  %*s%s", 2 * row->depth, "", row->node);
    else if (row->around[0])
        printf("  %-24s in %s", row->op, row->around);
    else
        printf("  %s", row->op);
    if (row->nested)
        printf("%s(its subgraphs: %.4f ms)", row->node || row->around[0] ? "  " : " ",
               (double)row->nested / scale->runs * 1e-6);
    putchar('\n');
}

void profile_table_print(const struct profile_table *table, uint64_t runs, double nanoseconds)
{
    if (!runs)
        return;
    const struct scale scale = {(double)runs, nanoseconds};
    printf("%s, in %" PRIu64 " profiled run%s of %.4f ms\n", table->layers ? "nodes" : "operators",
           runs, runs == 1 ? "" : "s", nanoseconds / (double)runs * 1e-6);
    printf("  %10s %7s %10s %10s  %s\n", "ms/run", "share", "calls/run", "us/call",
           table->layers ? "node" : "operator");
    for (size_t i = 0; i < table->count; i++) {
        print_row(&scale, table->rows[i].nanoseconds, table->rows[i].calls);
        print_name(&table->rows[i], &scale);
    }
    uint64_t all = nanoseconds > 0 ? (uint64_t)nanoseconds : 0;
    print_row(&scale, all > table->inside ? all - table->inside : 0, 0);
    printf("  outside of operators\n");
}
