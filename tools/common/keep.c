/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/keep.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* The number of the output, or that of outputs. */
static size_t find(const tssa_model *model, const char *name)
{
    tssa_value_info info;
    size_t n = tssa_model_output_count(model);
    for (size_t i = 0; i < n; i++) {
        tssa_status *status = tssa_model_output(model, i, &info);
        if (!status && strcmp(info.name, name) == 0)
            return i;
        tssa_status_free(status);
    }
    return n;
}

/* Cuts the text into names, which point into it. */
static size_t split(char *text, const char **names)
{
    for (size_t count = 0;;) {
        names[count++] = text;
        char *comma = strchr(text, ',');
        if (!comma)
            return count;
        *comma = 0;
        text = comma + 1;
    }
}

static tssa_status *keep(tssa_model *model, size_t count, const char *const *names,
                         size_t **numbers)
{
    size_t *found = calloc(count, sizeof *found);
    TRY_ALLOC(found);
    for (size_t i = 0; i < count; i++)
        found[i] = find(model, names[i]);
    tssa_status *status = tssa_model_keep_outputs(model, count, names);
    if (status || !numbers)
        free(found);
    else
        *numbers = found;
    return status_prefix(status, "--outputs");
}

static tssa_status *keep_list(tssa_model *model, char *text, size_t **numbers, size_t *count)
{
    const char **names = calloc(strlen(text) + 1, sizeof *names);
    TRY_ALLOC(names);
    bool whole = find(model, text) < tssa_model_output_count(model);
    names[0] = text;
    size_t n = whole ? 1 : split(text, names);
    tssa_status *status = keep(model, n, names, numbers);
    free(names);
    if (count)
        *count = n;
    return status;
}

static tssa_status *number_all(const tssa_model *model, size_t **numbers, size_t *count)
{
    size_t n = tssa_model_output_count(model);
    if (count)
        *count = n;
    if (!numbers)
        return NULL;
    *numbers = calloc(n ? n : 1, sizeof **numbers);
    TRY_ALLOC(*numbers);
    for (size_t i = 0; i < n; i++)
        (*numbers)[i] = i;
    return NULL;
}

tssa_status *keep_outputs(tssa_model *model, const char *list, size_t **numbers, size_t *count)
{
    if (!list)
        return number_all(model, numbers, count);
    char *text = strdup(list);
    TRY_ALLOC(text);
    tssa_status *status = keep_list(model, text, numbers, count);
    free(text);
    return status;
}
