/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/passes.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

#define MAX_LEVEL 2
#define LINE 100

/* The names of a stage, wrapped. */
static void print_names(const tssa_stage_info *stage, const char *indent)
{
    size_t column = strlen(indent);
    printf("%s", indent);
    for (size_t i = 0; i < stage->pass_count; i++) {
        size_t width = strlen(stage->passes[i]) + 1;
        if (i && column + width > LINE) {
            printf("\n%s", indent);
            column = strlen(indent);
        } else if (i) {
            printf(" ");
        }
        printf("%s", stage->passes[i]);
        column += width;
    }
    printf("\n");
}

static tssa_status *print_levels(enum listing listing)
{
    bool markdown = listing == LISTING_MARKDOWN;
    for (int level = 1; level <= MAX_LEVEL; level++) {
        size_t count = tssa_stage_count(level);
        printf(markdown ? "\n## Level %d\n\n" : "\nlevel %d\n", level);
        for (size_t i = 0; i < count; i++) {
            tssa_stage_info stage;
            TRY(tssa_stage(level, i, &stage));
            printf(markdown ? "%zu. %s:\n" : "  %zu. %s\n", i + 1,
                   stage.rounds > 1 ? "again while something changes" : "once");
            print_names(&stage, markdown ? "   " : "       ");
        }
    }
    return NULL;
}

tssa_status *passes_print(enum listing listing)
{
    tssa_pass_info info;
    int width = 0;
    for (size_t i = 0; i < tssa_pass_count(); i++) {
        TRY(tssa_pass(i, &info));
        int length = (int)strlen(info.name);
        width = length > width ? length : width;
    }
    if (listing == LISTING_MARKDOWN)
        printf("| pass | what it does |\n|---|---|\n");
    for (size_t i = 0; i < tssa_pass_count(); i++) {
        TRY(tssa_pass(i, &info));
        if (listing == LISTING_MARKDOWN)
            printf("| [`%s`](#%s) | %s |\n", info.name, info.name, info.summary);
        else
            printf("%-*s  %s\n", width, info.name, info.summary);
    }
    return print_levels(listing);
}
