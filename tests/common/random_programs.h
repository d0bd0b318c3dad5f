/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many random programs a test makes, by the environment, in all such tests alike (they have the
 * ctest label `random`):
 *
 *     TSSA_SEED=N           one program, which the test prints
 *     TSSA_PROGRAMS=N       so many
 *     TSSA_PROGRAMS=N%      so many hundredths of the usual number: less with a sanitizer, more at
 *                           night
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_PROGRAMS_H
#define TSSA_TESTS_COMMON_RANDOM_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

/* One program is asked for. */
bool programs_seed(uint64_t *seed);
/* At least 1. Fails the test where the environment holds something else. */
unsigned long programs_count(unsigned long usual);
/* Of cases that are there to be gone through: every one, or every second, third, ... where less
 * than all of the usual number is asked for. */
long programs_stride(void);

#endif
