/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/status.h"

/* ---- Functions ------------------------------------------------------------------------------- */

static void print_function(void *user, const tssa_function_info *info)
{
    size_t *printed = user;
    if (!(*printed)++)
        printf("functions\n");
    printf("  %s%s%s%s%s: %zu operator%s (%s); ", info->domain, info->domain[0] ? ":" : "",
           info->name, info->overload[0] ? ", overload " : "", info->overload, info->op_count,
           info->op_count == 1 ? "" : "s", info->operators);
    if (!info->calls) {
        printf("nothing calls it\n");
        return;
    }
    printf("called %zu time%s, %s", info->calls, info->calls == 1 ? "" : "s",
           info->stays ? "stays" : "inlined");
    if (!info->stays && info->needed)
        printf(" but in functions that stay");
    if (info->unknown[0])
        printf(" (tssa does not know %s)", info->unknown);
    printf("\n");
}

tssa_status *inspect_functions(const tssa_model *model)
{
    size_t printed = 0;
    return tssa_model_functions(model, print_function, &printed);
}

/* ---- Loops and branches ---------------------------------------------------------------------- */

struct printer {
    const struct remark_list *remarks;
    struct map kept; /* descriptions of the loops and branches that stay; keys are owned */
    bool failed;
    size_t printed;
};

static void note_kept(void *user, const tssa_control_info *info)
{
    struct printer *printer = user;
    char *op = strdup(info->op);
    if (op && map_get_str(&printer->kept, op))
        free(op);
    else if (!op || !map_put_str(&printer->kept, op, op))
        printer->failed = true;
}

static void print_trips(const tssa_control_info *info)
{
    if (strncmp(info->op, "If ", 3) == 0) {
        printf(info->condition_is_constant ? "its condition is always %s" : "decided by %s",
               info->condition);
        return;
    }
    if (!info->trips[0])
        printf("runs without a limit");
    else if (strcmp(info->trips, "1") == 0)
        printf("runs once");
    else if (info->trips_are_constant)
        printf("runs %s times", info->trips);
    else
        printf("trip count %s, which only a run tells", info->trips);
    if (info->condition[0] && strcmp(info->condition, "true") != 0)
        printf(", as long as %s holds", info->condition);
}

static void print_control(void *user, const tssa_control_info *info)
{
    struct printer *printer = user;
    int indent = 2 + 2 * info->depth;
    bool stays = map_get_str(&printer->kept, info->op) != NULL;
    if (!printer->printed++)
        printf("loops and branches\n");
    printf("%*s%s: %s\n", indent, "", info->op,
           stays ? "stays" : "optimization removes or replaces it");
    printf("%*s", indent + 4, "");
    print_trips(info);
    printf("; %zu operator%s inside", info->op_count, info->op_count == 1 ? "" : "s");
    if (info->carried)
        printf("; carries %s", info->carries);
    if (info->collected)
        printf("; collects %zu result%s", info->collected, info->collected == 1 ? "" : "s");
    if (info->captured)
        printf("; uses %zu value%s from outside", info->captured, info->captured == 1 ? "" : "s");
    printf("\n");
    if (stays)
        remarks_print_missed(printer->remarks, info->op, indent + 4);
}

tssa_status *inspect_control_flow(const tssa_model *model, const tssa_model *optimized,
                                  const struct remark_list *remarks)
{
    struct printer printer = {.remarks = remarks};
    map_init(&printer.kept, &allocator_default);
    tssa_status *status = tssa_model_control_flow(optimized, note_kept, &printer);
    if (!status && printer.failed)
        status = status_out_of_memory();
    if (!status)
        status = tssa_model_control_flow(model, print_control, &printer);
    for (const struct map_entry *e = map_next(&printer.kept, NULL); e;
         e = map_next(&printer.kept, e))
        free(e->value);
    map_free(&printer.kept);
    return status;
}
