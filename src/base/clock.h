/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TSSA_BASE_CLOCK_H
#define TSSA_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some time of no meaning; never goes back. */
static inline uint64_t clock_monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
