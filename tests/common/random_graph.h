/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs as text of the IR: nested control flow, captured values, aliases and sequences,
 * without rounding errors, so that every rewrite must keep every bit.
 */
#ifndef TSSA_TESTS_COMMON_RANDOM_GRAPH_H
#define TSSA_TESTS_COMMON_RANDOM_GRAPH_H

#include <stdint.h>

#define RANDOM_GRAPH_OUTPUTS 6 /* tensors and sequences of tensors */

/* The same text for the same seed, to be freed. Inputs: %n: i64[], a number of iterations, and two
 * of type f32[N]. */
char *random_graph(uint64_t seed);

#endif
