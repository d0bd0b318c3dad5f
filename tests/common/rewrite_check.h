/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program as it is written and after passes, on the same inputs, and compares what comes
 * out. */
#ifndef TSSA_TESTS_COMMON_REWRITE_CHECK_H
#define TSSA_TESTS_COMMON_REWRITE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "passes/pass.h"

struct rewrite_check {
    /* of the IR; inputs are tensors of known rank, outputs tensors or sequences */
    const char *text;
    const char *passes; /* names, spaces between them; NULL: all of level 2 */
    int64_t size;       /* of every symbolic dim */
    int64_t scalar;     /* of every integer input of rank 0: a number of iterations, an index */
    double tolerance; /* relative and absolute, of floats; 0: every bit is the same, but of NaNs */
    struct pass_batching batching;
    tssa_target target; /* of the passes */
    bool any_bytes;     /* inputs of bytes are any bytes */
    bool lenient; /* runs that fail may no longer do so: what fails is dead after the passes */
    /* Of the other inputs: floats in [-2, 2], of which some are -0.0, infinite or NaN; integers
     * from 0 to 3. */
    uint64_t seed;
};

/*
 * Fails the test, and prints the program before and after, unless both give the same, or both fail.
 * Returns whether they ran.
 */
bool rewrite_check(const struct rewrite_check *check);
/* How often the text of the program after the passes holds `word`. */
int rewrite_count(const char *text, const char *passes, const char *word);
int rewrite_count_batched(const char *text, const char *passes, struct pass_batching batching,
                          const char *word);
int rewrite_count_of(const struct rewrite_check *check, const char *word);

#endif
