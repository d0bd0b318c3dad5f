/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuse op that is made around ops which are there, for fuse_loops.c, fuse_stages.c and
 * fuse_remake.c: what ops read from outside enters the block, then the op is made, and the ops are
 * moved before the return of its block.
 */
#ifndef TSSA_PASSES_LOWER_FUSE_WRAP_H
#define TSSA_PASSES_LOWER_FUSE_WRAP_H

#include "base/vec.h"
#include "ir/ir.h"

struct fuse_wrap {
    struct ir_graph *graph;
    struct ir_block *body;
    VEC(struct ir_value *) operands; /* from outside, per parameter of the block */
};

tssa_status *fuse_wrap_open(struct fuse_wrap *wrap, struct ir_graph *graph);
/* The block stays. */
void fuse_wrap_close(struct fuse_wrap *wrap);
/* Stands in the block for a value from outside; NULL: memory ran out. */
struct ir_value *fuse_wrap_enter(struct fuse_wrap *wrap, struct ir_value *value);
/* The op, in front of another one. Its block has a return of as many operands, none of them set. */
tssa_status *fuse_wrap_make(struct fuse_wrap *wrap, uint32_t n_results, const char *name,
                            struct ir_op *before, struct ir_op **fuse);

#endif
