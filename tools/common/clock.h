/* SPDX-License-Identifier: Apache-2.0 */
/* The time, for durations. */
#ifndef TSSA_TOOLS_CLOCK_H
#define TSSA_TOOLS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds, monotonic. */
static inline uint64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Milliseconds since then. */
static inline double clock_ms_since(uint64_t start)
{
    return (double)(clock_now() - start) * 1e-6;
}

/* Seconds, since some moment in the past. */
static inline double clock_seconds(void)
{
    return (double)clock_now() * 1e-9;
}

#endif
