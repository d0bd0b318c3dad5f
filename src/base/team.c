/* SPDX-License-Identifier: Apache-2.0 */
#include "base/team.h"

#include <stddef.h>

void team_open(struct team *team, int threads)
{
    team->threads = threads > 1 ? threads : 1;
    team->parallel_for = NULL;
}
