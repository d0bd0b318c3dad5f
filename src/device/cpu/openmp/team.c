/* SPDX-License-Identifier: Apache-2.0 */
/* The thread team of base/team.h on OpenMP, the runtime that oneDNN brings along. */
#include "device/cpu/plugins.h"

#include <omp.h>

#include "base/float_mode.h"

void tssa_plugin_parallel_for(int threads, int64_t count, team_body body, void *context)
{
#pragma omp parallel num_threads(threads)
    {
        int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
        int64_t each = count / parts, rest = count % parts;
        int64_t begin = part * each + (part < rest ? part : rest);
        int64_t end = begin + each + (part < rest ? 1 : 0);
        FLOAT_MODE_ENTER();
        if (begin < end)
            body(context, begin, end);
    }
}
