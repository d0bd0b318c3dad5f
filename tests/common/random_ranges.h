/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random `fuse` ops that hold Ranges along axes of their space: as long as shapes say, or the same
 * in every run, of all types, alone, broadcast, read by views, with what reads them element by
 * element.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_RANGES_H
#define TSSA_TESTS_COMMON_RANDOM_RANGES_H

#include <stdint.h>

/* A graph of one fuse op and what tells it sizes, as text, to be freed; the same for the same seed.
 */
char *random_ranges(uint64_t seed);

#endif
