/* SPDX-License-Identifier: Apache-2.0 */
#include "base/team.h"

#include <stddef.h>
#include <string.h>

#include "base/plugin.h"

void team_open(struct team *team, int threads)
{
    team->threads = threads > 1 ? threads : 1;
    team->parallel_for = NULL;
    if (sched_getaffinity(0, sizeof team->processors, &team->processors))
        CPU_ZERO(&team->processors);
    void *symbol = team->threads > 1 ? plugin_symbol(TEAM_PLUGIN, TEAM_PLUGIN_SYMBOL) : NULL;
    /* ISO C has no cast from object to function pointers; POSIX promises that the bytes fit. */
    if (symbol)
        memcpy(&team->parallel_for, &symbol, sizeof symbol);
}
