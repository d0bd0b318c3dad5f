/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that know an operator's bits: operands and results as numbers, operations in the type
 * that a kernel computes in, and threads.
 */
#ifndef TSSA_TESTS_COMMON_OP_NUMBERS_H
#define TSSA_TESTS_COMMON_OP_NUMBERS_H

#include "base/team.h"
#include "common/op_run.h"

/* Of a float type, between -1.5 and 2, one of a hundred -0. */
void op_numbers(struct tensor *x, struct random *random);
/* The next input, of these. */
struct tensor *op_add_numbers(struct op_run *run, struct random *random, tssa_dtype dtype, int rank,
                              const int64_t *dims);

/* An element as a double. */
double op_number(const struct tensor *x, int64_t i);
/* Fails the test unless element i has the bits of `value` rounded to its type, or both are NaN. */
void op_expect_number(const struct tensor *x, int64_t i, double value);

/*
 * What an operation of elements of `dtype` gives, `value` being what it gives in double: DOUBLE is
 * computed in double, narrower floats in float32. (A sum, difference, product, quotient or root of
 * doubles that are floats, rounded again, is that of floats.)
 */
double op_rounded(tssa_dtype dtype, double value);

/* n terms summed in the order of ir/reduction.def for an axis that is not the innermost one. */
double op_sum(tssa_dtype dtype, const double *terms, int64_t n);

/*
 * The run's parallel loops have so many parts, which run one after the other, the last one first.
 */
void op_threads(struct op_run *run, struct team *team, int threads);

#endif
