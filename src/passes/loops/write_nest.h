/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops, one in the other, that do nothing with a carried tensor but write one value to elements of
 * it:
 *
 *     Loop(n, _, x) { (i, c, t): u = Loop(d, _, t) { (k, e, s): w = assign(s, v, i, b + k){...}
 *                                                               return(e, w) }
 *                                return(c, u) }
 *
 * As the value is the same everywhere, neither the order of the writes matters nor that some of
 * them write the same element: all that matters is the list of their indices.
 */
#ifndef TSSA_PASSES_LOOPS_WRITE_NEST_H
#define TSSA_PASSES_LOOPS_WRITE_NEST_H

#include "passes/analysis/loops.h"

/*
 * The op in the body that makes carried value k of the next iteration from that of this one, when
 * nothing else looks at either: an assign, or a Loop that carries nothing else. Else NULL.
 */
struct ir_op *write_nest_step(const struct loop *loop, uint32_t k);
/* The assign at the bottom, of a value from outside of the loop to one element; NULL: it is no such
 * nest. All loops run as often as their trip counts, i64 scalars, say. */
struct ir_op *write_nest_find(const struct loop *loop, uint32_t k);
/* `value` is the loop's counter, or a sum of it and *offset, an i64 scalar from outside of the
 * loop. */
bool write_nest_counts(const struct loop *loop, const struct ir_value *value,
                       struct ir_value **offset);

/* The carried value, a tensor that the enclosing loop carries, that a loop in this one's body only
 * writes to, where this one does more than that; RECURRENCE_NONE: there is none. */
uint32_t write_nest_writer(const struct loop *loop);
/* Readers of a carried value stay with it: what that loop reads of the others becomes a value of
 * its own. */
tssa_status *write_nest_free(const struct loop *loop, uint32_t writer);

#endif
