/* SPDX-License-Identifier: Apache-2.0 */
/* Fuse ops that are made, of which the ops are changed: what fuse_products.c, fuse_invariants.c,
 * fuse_behind.c and fuse_stages.c share. */
#ifndef TSSA_PASSES_LOWER_FUSE_REMAKE_H
#define TSSA_PASSES_LOWER_FUSE_REMAKE_H

#include "passes/lower/fuse.h"

/* The fuse op with the ops that are in its block now, which may read what they like: its operands
 * are what they read, and its results what the block returns: the old ones, and more or less behind
 * them. It stands in the old one's place, which is gone. */
tssa_status *fuse_remake(struct pass_context *pass, struct ir_op **fuse);
/* An op that was in the fuse op's block does not know its parameters any more. */
void fuse_leave_block(struct ir_op *op, const struct ir_op *fuse);
/* Why there is no kernel of the fuse op; NULL: there is. */
const char *fuse_refuses_whole(const struct pass_context *pass, const struct ir_op *fuse);

static inline bool fuse_is_read_once(const struct ir_value *value)
{
    return value->uses && !value->uses->next;
}

#endif
