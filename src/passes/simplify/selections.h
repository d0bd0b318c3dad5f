/* SPDX-License-Identifier: Apache-2.0 */
/* Selections of rows, and the ops before which they may be made. */
#ifndef TSSA_PASSES_SIMPLIFY_SELECTIONS_H
#define TSSA_PASSES_SIMPLIFY_SELECTIONS_H

#include "ir/ir.h"

#define SELECTION_MOST_JOINED 8 /* operands of a join */

/* Of operand 0. */
struct selection {
    struct ir_op *op;
    int axis;
};

/* Is it a Compress, a Gather or a GatherND that selects fewer rows than there are, maybe? */
bool selection_find(struct ir_op *op, struct selection *found);

/*
 * What has the rows that the op has along this axis of its result, and along which axis of its own;
 * NULL: nothing alone has them, or nobody knows. Of an element-wise op ...
 */
struct ir_value *selection_rows_operand(const struct ir_op *op, int axis, int *found);
/* ... a view that adds or drops axes of one element ... */
struct ir_value *selection_viewed_operand(const struct ir_op *op, int axis, int *found);
/* ... and a Slice that leaves most of each row: it copies selected rows alone then. */
struct ir_value *selection_sliced_operand(const struct ir_op *op, int axis, int *found);
/* Is it a join along another axis, of few? All operands have the rows then. */
bool selection_is_join(const struct ir_op *op, int axis, int *along);

#endif
