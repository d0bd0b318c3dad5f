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
    struct value values[8];
    const struct value *given[8];
};

void operands_open(struct operands *o, uint64_t seed);
/* There are none any more. */
void operands_clear(struct operands *o);

/* The next operand, not filled. */
struct tensor *operands_add(struct operands *o, tssa_dtype dtype, int rank, const int64_t *dims);
/* So many in a hundred of any bits, zeros of both signs among them; the others are 0. */
struct tensor *operands_add_bits(struct operands *o, tssa_dtype dtype, int rank,
                                 const int64_t *dims, int percent);
/* n of INT64. */
struct tensor *operands_add_ints(struct operands *o, int64_t n, const int64_t *values);
/* Numbers between -1 and 1. */
struct tensor *operands_add_numbers(struct operands *o, tssa_dtype dtype, int rank,
                                    const int64_t *dims);

/* Mostly small, at times none or more than a tile of the kernels has. */
int64_t operands_size(struct operands *o);
/* The same, at times more than a block looks at. */
int64_t operands_length(struct operands *o);

/* grids_run_open, of a text in which the type is @@@. */
void grids_run_open_typed(struct grids_run *run, const char *device, const char *program,
                          const char *type);
/* An output of the last run is about the CPU's. */
void operands_expect_close(const struct grids_run *run, int output, double tolerance);

#endif
