/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"

static struct tally_row *find(struct tally *tally, const char *name, size_t length)
{
    for (size_t i = 0; i < tally->count; i++) {
        const char *other = tally->rows[i].name;
        if (strncmp(other, name, length) == 0 && other[length] == '\0')
            return &tally->rows[i];
    }
    tally->rows = xrealloc(tally->rows, (tally->count + 1) * sizeof *tally->rows);
    tally->rows[tally->count] = (struct tally_row){.name = xprintf("%.*s", (int)length, name)};
    return &tally->rows[tally->count++];
}

void tally_add(struct tally *tally, const char *operators, enum outcome outcome)
{
    for (const char *line = operators; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t length = strcspn(line, "\n");
        if (length < 2)
            continue;
        struct tally_row *row = find(tally, line + 1, length - 1);
        row->supported = line[0] == '+';
        row->counts[outcome]++;
    }
}

static int by_name(const void *a, const void *b)
{
    const struct tally_row *x = *(const struct tally_row *const *)a;
    const struct tally_row *y = *(const struct tally_row *const *)b;
    return strcmp(x->name, y->name);
}

static int by_skipped(const void *a, const void *b)
{
    const struct tally_row *x = *(const struct tally_row *const *)a;
    const struct tally_row *y = *(const struct tally_row *const *)b;
    size_t p = x->counts[OUTCOME_SKIP], q = y->counts[OUTCOME_SKIP];
    return p == q ? by_name(a, b) : p < q ? 1 : -1;
}

static void print_missing(const struct tally_row **rows, size_t count)
{
    qsort(rows, count, sizeof(struct tally_row *), by_skipped);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (rows[i]->supported || !rows[i]->counts[OUTCOME_SKIP])
            continue;
        printf("%s%s %zu",
               any ? ", " : "missing operators and the cases with them: ", rows[i]->name,
               rows[i]->counts[OUTCOME_SKIP]);
        any = true;
    }
    if (any)
        printf("\n");
}

void tally_print(const struct tally *tally, bool all)
{
    const struct tally_row **rows = xcalloc(tally->count, sizeof *rows);
    for (size_t i = 0; i < tally->count; i++)
        rows[i] = &tally->rows[i];
    if (all && tally->count) {
        qsort(rows, tally->count, sizeof *rows, by_name);
        printf("%-40s %7s %7s %7s\n", "operator", "passed", "failed", "skipped");
        for (size_t i = 0; i < tally->count; i++)
            printf("%-40s %7zu %7zu %7zu\n", rows[i]->name, rows[i]->counts[OUTCOME_PASS],
                   rows[i]->counts[OUTCOME_FAIL], rows[i]->counts[OUTCOME_SKIP]);
    }
    if (tally->count)
        print_missing(rows, tally->count);
    free(rows);
}

void tally_free(struct tally *tally)
{
    for (size_t i = 0; i < tally->count; i++)
        free(tally->rows[i].name);
    free(tally->rows);
}
