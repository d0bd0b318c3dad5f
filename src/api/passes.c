/* SPDX-License-Identifier: Apache-2.0 */
/* What optimization consists of. */
#include "base/status.h"
#include "passes/pipeline.h"

size_t tssa_pass_count(void)
{
    size_t count;
    pass_table(&count);
    return count;
}

tssa_status *tssa_pass(size_t index, tssa_pass_info *info)
{
    size_t count;
    const struct pass *table = pass_table(&count);
    if (!info || index >= count)
        return ERROR(TSSA_INVALID_ARGUMENT, "there is no pass %zu", index);
    *info = (tssa_pass_info){.name = table[index].name, .summary = table[index].summary};
    return NULL;
}

size_t tssa_stage_count(int level)
{
    return pipeline_stage_count(level);
}

tssa_status *tssa_stage(int level, size_t index, tssa_stage_info *info)
{
    if (!info || index >= pipeline_stage_count(level))
        return ERROR(TSSA_INVALID_ARGUMENT, "level %d has no stage %zu", level, index);
    *info = pipeline_stage(level, index);
    return NULL;
}
