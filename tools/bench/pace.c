/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/pace.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/clock.h"
#include "tools/common/statistics.h"

#define LANES 64
#define STEPS 1400
#define FIRST_READINGS 1000

/* Independent multiplications and additions, in registers and a few cache lines: what a neighbour
 * on the core's other hardware thread takes away, without emptying a cache of what is measured. */
static double work_once(void)
{
    float x[LANES];
    volatile float sink;
    uint64_t start = clock_now();
    for (int i = 0; i < LANES; i++)
        x[i] = (float)i * 0.01f;
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < LANES; i++)
            x[i] = x[i] * (0.5f + 0.25f * x[i]) + 0.1f;
    float sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += x[i];
    sink = sum;
    (void)sink;
    return (double)(clock_now() - start) * 1e-3;
}

double pace_read(void)
{
    double first = work_once(), second = work_once();
    return first < second ? first : second;
}

bool pace_note(struct pace *pace, double reading)
{
    if (pace->count == pace->capacity) {
        size_t capacity = pace->capacity ? 2 * pace->capacity : 1024;
        double *more = reallocarray(pace->readings, capacity, sizeof *more);
        if (!more)
            return false;
        pace->readings = more;
        pace->capacity = capacity;
    }
    pace->readings[pace->count++] = reading;
    return true;
}

bool pace_learn(struct pace *pace)
{
    bool good = true;
    for (int i = 0; i < FIRST_READINGS && good; i++)
        good = pace_note(pace, pace_read());
    return good;
}

double pace_quiet(const struct pace *pace)
{
    double *sorted = pace->count ? reallocarray(NULL, pace->count, sizeof *sorted) : NULL;
    if (!sorted)
        return 0;
    memcpy(sorted, pace->readings, pace->count * sizeof *sorted);
    statistics_sort(sorted, pace->count);
    double quiet = sorted[pace->count / 100];
    free(sorted);
    return quiet;
}

void pace_free(struct pace *pace)
{
    free(pace->readings);
    *pace = (struct pace){0};
}
