/* SPDX-License-Identifier: Apache-2.0 */
/* A loop over blocks of a loop's iterations, with a loop of the block's in it, which distribute can
 * split. */
#ifndef TSSA_PASSES_LOOPS_DISTRIBUTE_BLOCKS_H
#define TSSA_PASSES_LOOPS_DISTRIBUTE_BLOCKS_H

#include "passes/loops/strip_mine.h"

/* Replaces the loop. *inner: the one of a block; NULL: it has no form in blocks, and stays as it
 * is. */
tssa_status *distribute_blocks(struct pass_context *pass, const struct loop *loop,
                               const struct block_size *size, struct ir_op **inner);

#endif
