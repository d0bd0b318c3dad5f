/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "tools/common/check.h"

static tssa_status *compare_infos(const char *what, size_t index, const tssa_value_info *old,
                                  const tssa_value_info *new)
{
    if (strcmp(old->name, new->name) != 0)
        return ERROR(TSSA_INTERNAL, "%s %zu is called %s now, not %s", what, index, new->name,
                     old->name);
    if (old->kind != new->kind || old->is_optional != new->is_optional)
        return ERROR(TSSA_INTERNAL, "%s %s is of another kind now", what, old->name);
    if (old->dtype != new->dtype && old->dtype != TSSA_UNDEFINED &&new->dtype != TSSA_UNDEFINED)
        return ERROR(TSSA_INTERNAL, "%s %s has the element type %s now, not %s", what, old->name,
                     tssa_dtype_name(new->dtype), tssa_dtype_name(old->dtype));
    return NULL;
}

/* Of inputs alone: what a model declares of its outputs may be wrong, and be shown while nothing
 * better is known. */
static tssa_status *compare_shapes(const tssa_value_info *old, const tssa_value_info *new)
{
    if (old->rank >= 0 && new->rank >= 0 && old->rank != new->rank)
        return ERROR(TSSA_INTERNAL, "input %s has %d dims now, not %d", old->name, new->rank,
                     old->rank);
    for (int i = 0; i < old->rank && i < new->rank; i++)
        if (old->dims[i] >= 0 && new->dims[i] >= 0 && old->dims[i] != new->dims[i])
            return ERROR(TSSA_INTERNAL, "input %s: dim %d is %" PRId64 " now, not %" PRId64,
                         old->name, i, new->dims[i], old->dims[i]);
    return NULL;
}

tssa_status *check_signatures(const tssa_model *original, const tssa_model *rewritten)
{
    tssa_value_info old, new;
    size_t inputs = tssa_model_input_count(original), outputs = tssa_model_output_count(original);
    if (inputs != tssa_model_input_count(rewritten) ||
        outputs != tssa_model_output_count(rewritten))
        return ERROR(TSSA_INTERNAL,
                     "the rewritten model has %zu inputs and %zu outputs, not %zu "
                     "and %zu",
                     tssa_model_input_count(rewritten), tssa_model_output_count(rewritten), inputs,
                     outputs);
    for (size_t i = 0; i < inputs; i++) {
        TRY(tssa_model_input(original, i, &old));
        TRY(tssa_model_input(rewritten, i, &new));
        TRY(compare_infos("input", i, &old, &new));
        TRY(compare_shapes(&old, &new));
    }
    for (size_t i = 0; i < outputs; i++) {
        TRY(tssa_model_output(original, i, &old));
        TRY(tssa_model_output(rewritten, i, &new));
        TRY(compare_infos("output", i, &old, &new));
    }
    return NULL;
}
