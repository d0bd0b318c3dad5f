/* SPDX-License-Identifier: Apache-2.0 */
/* What inference of ops with blocks shares: finding a block, and what of it is known outside. */
#ifndef TSSA_IR_INFER_BLOCK_H
#define TSSA_IR_INFER_BLOCK_H

#include "ir/ir.h"

/* The block `name`, which must have as many parameters and results. */
tssa_status *infer_find_block(const struct ir_op *op, const char *name, uint32_t n_params,
                              uint32_t n_results, struct ir_block **block);
/* The type of a block's result. */
const struct ir_type *infer_returned(const struct ir_block *block, uint32_t index);
/* Did the block make the dim itself: it has an id from `first_local` on, of those free when the
 * block's inference began, or holds such a symbol? */
bool infer_is_local(const struct dim *dim, uint32_t first_local);
/* A type as seen outside the block: local dims become fresh ones. NULL: out of memory. */
const struct ir_type *infer_outside(struct ir_graph *graph, const struct ir_type *type,
                                    uint32_t first_local);
/* Is the condition this one in every run? */
bool infer_is_truth(const struct ir_value *condition, bool value);

#endif
