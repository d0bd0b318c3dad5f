/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random `fuse` ops of running sums and products (ir_scan_axis), all along one axis in one
 * direction, with what computes what is summed up and what reads the sums: exclusive or not, of
 * all types, broadcast, read by views. That axis has a size of its own, or is H long.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_SCANS_H
#define TSSA_TESTS_COMMON_RANDOM_SCANS_H

#include <stdint.h>

/* A graph of one fuse op, as text, to be freed; the same for the same seed. */
char *random_scans(uint64_t seed);

#endif
