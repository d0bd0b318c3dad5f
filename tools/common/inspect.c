/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/status.h"

static void print_type(const tssa_value_info *info)
{
    printf(info->is_optional ? "optional " : "");
    printf(info->kind == TSSA_KIND_SEQUENCE ? "sequence of " : "");
    if (info->kind == TSSA_KIND_MAP) {
        printf("map");
        return;
    }
    printf("%s", info->dtype == TSSA_UNDEFINED ? "?" : dtype_info(info->dtype)->ir_name);
    if (info->rank < 0) {
        printf("[*]");
        return;
    }
    for (int i = 0; i < info->rank; i++) {
        printf(i ? ", " : "[");
        if (info->symbols[i])
            printf("%s", info->symbols[i]);
        else if (info->dims[i] < 0)
            printf("?");
        else
            printf("%" PRId64, info->dims[i]);
    }
    printf(info->rank ? "]" : "[]");
}

typedef tssa_status *(*info_getter)(const tssa_model *model, size_t index, tssa_value_info *info);

static tssa_status *print_signature(const tssa_model *model, const char *title, size_t count,
                                    info_getter get)
{
    printf("%s\n", title);
    for (size_t i = 0; i < count; i++) {
        tssa_value_info info;
        TRY(get(model, i, &info));
        printf("  %-24s ", info.name);
        print_type(&info);
        printf(info.has_default ? "  (has a default)\n" : "\n");
    }
    return NULL;
}

static tssa_status *print_operators(const tssa_model *model)
{
    size_t count, total = 0, missing = 0;
    TRY(tssa_model_op_counts(model, NULL, 0, &count));
    tssa_op_count *rows = calloc(count ? count : 1, sizeof *rows);
    TRY_ALLOC(rows);
    tssa_status *status = tssa_model_op_counts(model, rows, count, &count);
    if (status) {
        free(rows);
        return status;
    }
    printf("operators, subgraphs included\n");
    for (size_t i = 0; i < count; i++) {
        printf("  %7zu  %s%s%s", rows[i].count, rows[i].domain, rows[i].domain[0] ? ":" : "",
               rows[i].name);
        if (rows[i].nested)
            printf("  (%zu in subgraphs)", rows[i].nested);
        printf(rows[i].supported ? "\n" : "  (cannot be run)\n");
        total += rows[i].count;
        missing += !rows[i].supported;
    }
    printf("  %7zu  in all", total);
    if (missing)
        printf("; %zu operator%s cannot be run", missing, missing == 1 ? "" : "s");
    printf("\n");
    free(rows);
    return NULL;
}

tssa_status *inspect_signature(const tssa_model *model)
{
    tssa_model_info info;
    TRY(tssa_model_get_info(model, &info));
    printf("graph %s", info.graph_name && info.graph_name[0] ? info.graph_name : "without a name");
    if (info.producer && info.producer[0])
        printf(", by %s", info.producer);
    printf("\nIR version %" PRId64, info.ir_version);
    if (info.opset)
        printf(", opset %" PRId64, info.opset);
    printf(", %zu initializer%s of %zu bytes", info.initializer_count,
           info.initializer_count == 1 ? "" : "s", info.initializer_bytes);
    if (info.function_count)
        printf(", %zu function%s", info.function_count, info.function_count == 1 ? "" : "s");
    if (info.function_count && !info.kept_function_count)
        printf(", inlined");
    printf("\n");
    TRY(print_signature(model, "inputs", tssa_model_input_count(model), tssa_model_input));
    return print_signature(model, "outputs", tssa_model_output_count(model), tssa_model_output);
}

tssa_status *inspect_model(const tssa_model *model)
{
    TRY(inspect_signature(model));
    return print_operators(model);
}
