/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/measure.h"

#include "base/status.h"
#include "tools/common/clock.h"

tssa_status *measure_calls(const struct callee *callee, size_t first, size_t count,
                           uint64_t deadline, double *nanoseconds, size_t *done)
{
    size_t set = first % callee->set_count;
    uint64_t end = 0;
    for (*done = 0; *done < count && end < deadline; (*done)++) {
        uint64_t start = clock_now();
        tssa_status *status = callee->call(callee->user, set);
        end = clock_now();
        if (status)
            return status;
        nanoseconds[*done] = (double)(end - start);
        callee->after(callee->user);
        set = set + 1 == callee->set_count ? 0 : set + 1;
    }
    return NULL;
}
