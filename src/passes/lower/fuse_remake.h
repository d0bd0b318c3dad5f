/* SPDX-License-Identifier: Apache-2.0 */
/* Fuse ops that are made, of which the ops are changed: what fuse_products.c, fuse_invariants.c,
 * fuse_behind.c, fuse_stages.c, follow_boxes.c and follow_convolutions.c share. */
#ifndef TSSA_PASSES_LOWER_FUSE_REMAKE_H
#define TSSA_PASSES_LOWER_FUSE_REMAKE_H

#include "passes/lower/fuse.h"

/* The fuse op with the ops that are in its block now, which may read what they like: its operands
 * are what they read, and its results what the block returns: the old ones, and more or less behind
 * them. It stands in the old one's place, which is gone. */
tssa_status *fuse_remake(struct pass_context *pass, struct ir_op **fuse);
/* The fuse op with an op of one result in front, which it alone reads. The op's operands, which are
 * all there and each another one, are the first of its own. */
tssa_status *fuse_take_in(struct pass_context *pass, struct ir_op *op, struct ir_op **fuse);
/* An op that was in the fuse op's block does not know its parameters any more. */
void fuse_leave_block(struct ir_op *op, const struct ir_op *fuse);
/* Why there is no kernel of the fuse op; NULL: there is. */
const char *fuse_refuses_whole(const struct pass_context *pass, const struct ir_op *fuse);

static inline bool fuse_is_read_once(const struct ir_value *value)
{
    return value->uses && !value->uses->next;
}

#endif
