/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer elements wrap around, dims do not. What is known of an element as a dim holds only where
 * the arithmetic that computes it does not leave its type, and this says where that is proven:
 *
 *   - a size, and the number of a loop's iteration, is 0 at least and DIM_SIZE_LIMIT at most;
 *   - so is a product of sizes that are axes of one tensor of the graph: its elements are all in
 *     memory, hence not more than WRAP_MAX_ELEMENTS;
 *   - everything else follows from these by interval arithmetic.
 *
 * A longer axis is not refused, but what was proven of integers that count it (N*M in an INT64, N
 * itself in an INT32) need not hold then.
 */
#ifndef TSSA_IR_WRAP_H
#define TSSA_IR_WRAP_H

#include "ir/dim_range.h"
#include "ir/ir.h"

#define WRAP_MAX_ELEMENTS (INT64_C(1) << 47) /* the address space of a process */

/* The smallest and largest number of an integer type that an int64 can hold; BOOL is 0 and 1.
 * false: no such type. */
bool wrap_limits(tssa_dtype dtype, int64_t *low, int64_t *high);

/* Is the dim a number of this type in every run? */
bool wrap_never(const struct ir_graph *graph, tssa_dtype dtype, const struct dim *dim);

/*
 * The same for an INT64 that is an index, or leads to one, of which terms are scalars that only a
 * run can tell. Such a sum may wrap, but then its bounded rest (within WRAP_INDEX_REST) does not
 * bring it back into the range of any axis: in a run that does not fail the index is what the dim
 * says.
 */
bool wrap_never_as_index(const struct ir_graph *graph, const struct dim *dim);

#define WRAP_INDEX_REST (INT64_C(1) << 62)

/* The bounds that this is decided by; INT64_MIN and INT64_MAX: none is known. */
struct range wrap_bounds(const struct ir_graph *graph, const struct dim *dim);
bool wrap_never_within(tssa_dtype dtype, struct range range);

#endif
