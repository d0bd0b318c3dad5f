/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a loop carries on, of which an iteration writes a region, and which it does not read as it
 * was before that:
 *
 *     Loop(n, c, x) { (i, c, t): ... t1 = assign(t, row, i){[select(0, $0)]}; ... return(c, t1) }
 *
 * From the second iteration on both names may be one memory, of which the region alone is stored:
 * by an op that computes nothing else, or by a kernel that computes what is written, but nothing of
 * what becomes of t.
 *
 * Threads: what is asked only reads, but for sizes that are new in the graph.
 */
#ifndef TSSA_IR_UPDATE_H
#define TSSA_IR_UPDATE_H

#include "ir/ir.h"

/* Is the op such an assign, of a source that has the region's shape? */
bool ir_updates_carried(const struct ir_op *op);
/* Is the result of a fuse op computed by such an assign, which is all that its block does with
 * operand *operand? */
bool ir_fuse_updates(const struct ir_op *fuse, uint32_t result, uint32_t *operand);
/*
 * Must the memory of the result be that of operand *operand, or a copy of it, before the op stores
 * into it? What it updates is, and what a loop carries of which each iteration is made of products,
 * which are stored where the next one reads them (gir/grid_trips.c), if nothing else reads the
 * operand.
 */
bool ir_fuse_begins_as(const struct ir_op *fuse, uint32_t result, uint32_t *operand);
/* Of a result that the op updates: do the iterations write all of it, row by row, so that nothing
 * is left of what it was before the loop? Then the first one may begin with any elements. */
bool ir_fuse_writes_all(const struct ir_op *fuse, uint32_t result);

#endif
