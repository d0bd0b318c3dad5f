/* SPDX-License-Identifier: Apache-2.0 */
#include "common/work_table.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char columns[] =
    "# model                       launches  library        bytes   allocs   copies "
    "copied_bytes    waits\n";

void work_table_open(struct work_table *table, const char *name, const char *test)
{
    table->name = name;
    text_init(&table->found, &allocator_default);
    text_printf(
        &table->found,
        "# What a run asks of a device (docs/tools.md); TSSA_UPDATE_GOLDEN=1 %s writes it.\n",
        test);
    text_puts(&table->found, columns);
}

static const char *name_of(const char *path)
{
    const char *end = strrchr(path, '/'), *start = end - 1;
    while (start > path && start[-1] != '/')
        start--;
    return start;
}

void work_table_add(struct work_table *table, const char *path, const tssa_session_work *work)
{
    const char *name = name_of(path);
    text_printf(&table->found,
                "%-28.*s %8" PRIu64 " %8" PRIu64 " %12" PRIu64 " %8" PRIu64 " %8" PRIu64
                " %12" PRIu64 " %8" PRIu64 "\n",
                (int)strcspn(name, "/"), name, work->launches, work->library_calls, work->bytes,
                work->allocations, work->copies, work->copied_bytes, work->waits);
}

static int compare(const char *found, const char *wanted)
{
    int differ = 0;
    while (*found || *wanted) {
        const size_t n = strcspn(found, "\n"), m = strcspn(wanted, "\n");
        if (n != m || memcmp(found, wanted, n) != 0) {
            print_error("found  %.*s\nwanted %.*s\n", (int)n, found, (int)m, wanted);
            differ++;
        }
        found += n + (found[n] == '\n');
        wanted += m + (wanted[m] == '\n');
    }
    if (differ)
        print_error("where that is meant: TSSA_UPDATE_GOLDEN=1\n");
    return differ;
}

static char *read_table(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    if (file) {
        text[fread(text, 1, (1 << 16) - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

static int write_table(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool good = file && fputs(text, file) >= 0;
    good = file && fclose(file) == 0 && good;
    if (!good)
        print_error("cannot write %s\n", path);
    return !good;
}

int work_table_close(struct work_table *table, bool good)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/%s", TSSA_SOURCE_DIR, table->name);
    const char *found = text_string(&table->found);
    int failed;
    if (good && getenv("TSSA_UPDATE_GOLDEN")) {
        failed = write_table(path, found);
    } else {
        char *wanted = read_table(path);
        failed = compare(found, wanted);
        free(wanted);
    }
    text_free(&table->found);
    return failed;
}
