/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a value is read: the first elements along an axis, by way of ops that treat those one
 * by one. */
#ifndef TSSA_PASSES_ANALYSIS_ROWS_USED_H
#define TSSA_PASSES_ANALYSIS_ROWS_USED_H

#include "ir/ir.h"

/*
 * How many of the first elements along `axis` are read of any of n values, which have as many of
 * them. What is made of element i alone (it is gathered, or gathers; computed with, joined along
 * another axis) is followed to where it is cut, be it that an If returns it. False: all may be
 * read, or are counted. Time: linear in the uses, of a few dozen values at most.
 */
bool rows_used(const struct ir_value *const *values, uint32_t n, int axis, int64_t *used);

/* Element i of a list of integers, where inference knows it. */
bool rows_known_at(const struct ir_value *list, size_t i, int64_t *number);

#endif
