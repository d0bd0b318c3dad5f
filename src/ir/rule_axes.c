/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/rule_axes.h"

#include <string.h>

void rule_axes_begin(struct rule_axes *axes, int rank)
{
    axes->n = rank;
    for (int i = 0; i < rank; i++)
        axes->of[i] = i;
}

void rule_axes_remove(struct rule_axes *axes, int64_t at)
{
    memmove(axes->of + at, axes->of + at + 1, (size_t)(--axes->n - at) * sizeof *axes->of);
}

static bool insert(struct rule_axes *axes, int64_t at)
{
    if (axes->n == TSSA_MAX_RANK)
        return false;
    memmove(axes->of + at + 1, axes->of + at, (size_t)(axes->n++ - at) * sizeof *axes->of);
    axes->of[at] = -1;
    return true;
}

bool rule_axes_rearrange(struct rule_axes *axes, const struct rule_step *step)
{
    const struct rule_axes old = *axes;
    switch (step->kind) {
    case RULE_PERMUTE:
        for (int i = 0; i < axes->n; i++)
            axes->of[i] = old.of[step->params[i].value];
        return true;
    case RULE_SQUEEZE:
        for (uint32_t i = step->n_params; i-- > 0;)
            rule_axes_remove(axes, step->params[i].value);
        return true;
    case RULE_UNSQUEEZE:
        for (uint32_t i = 0; i < step->n_params; i++)
            if (!insert(axes, step->params[i].value))
                return false;
        return true;
    default:
        return false;
    }
}
