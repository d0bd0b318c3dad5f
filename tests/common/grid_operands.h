/* SPDX-License-Identifier: Apache-2.0 */
/* Random operands of programs that run on a device and on the CPU (grids_run.h). */
#ifndef TSSA_TESTS_COMMON_GRID_OPERANDS_H
#define TSSA_TESTS_COMMON_GRID_OPERANDS_H

#include "base/arena.h"
#include "base/value.h"
#include "common/grids_run.h"
#include "common/op_run.h"

struct operands {
    struct arena arena;
    struct random random;
    uint32_t n;
    struct value values[5];
    const struct value *given[5];
};

void operands_open(struct operands *o, uint64_t seed);
/* There are none any more. */
void operands_clear(struct operands *o);

/* The next operand, not filled. */
struct tensor *operands_add(struct operands *o, tssa_dtype dtype, int rank, const int64_t *dims);
/* Numbers between -1 and 1. */
struct tensor *operands_add_numbers(struct operands *o, tssa_dtype dtype, int rank,
                                    const int64_t *dims);

/* An output of the last run is about the CPU's. */
void operands_expect_close(const struct grids_run *run, int output, double tolerance);

#endif
