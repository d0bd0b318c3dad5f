/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/hazards.h"

#include <stdio.h>

#include "base/status.h"

static void print_markdown(const tssa_hazard_info *info)
{
    printf("\n## %s\n\n%s.\n\n- *seen in* %s\n- *written in its place*: %s\n- *model*: `%s` in "
           "`tests/hazards/models.py`\n",
           info->name, info->pattern, info->seen, info->around, info->model);
}

static void print_text(const tssa_hazard_info *info)
{
    printf("%s\n  %s\n  seen in %s\n  written in its place: %s\n", info->name, info->pattern,
           info->seen, info->around);
}

tssa_status *hazards_print(enum listing listing)
{
    tssa_hazard_info info;
    for (size_t i = 0; i < tssa_hazard_count(); i++) {
        TRY(tssa_hazard(i, &info));
        (listing == LISTING_MARKDOWN ? print_markdown : print_text)(&info);
    }
    return NULL;
}
