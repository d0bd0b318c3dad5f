/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops and blocks in another place: copied (unrolling) or moved (inlining a block that runs once).
 * And whole graphs.
 *
 *     struct ir_cloner cloner;
 *     ir_cloner_init(&cloner, graph);
 *     for each iteration:
 *         ir_cloner_reset(&cloner);
 *         TRY_ALLOC(ir_cloner_map(&cloner, body->params[i], value));      for each parameter
 *         TRY(ir_clone_ops(&cloner, body, loop));
 *         result = ir_cloner_get(&cloner, ir_operand(ir_block_return(body), i));
 *     ir_cloner_free(&cloner);
 *
 * Copies have no value names (two values may not share one); ops keep their names, which say what
 * part of the model they come from. Types are inferred anew: a fresh dim of the original is another
 * number in every copy.
 */
#ifndef TSSA_IR_CLONE_H
#define TSSA_IR_CLONE_H

#include "ir/ir.h"

/* Which value stands for which in the copies. One cloner serves any number of copies in a row. */
struct ir_cloner {
    struct ir_graph *graph;
    struct ir_cloned *values; /* by id of the original */
    size_t n_values;
    uint32_t epoch;
};

void ir_cloner_init(struct ir_cloner *cloner, struct ir_graph *graph);
void ir_cloner_free(struct ir_cloner *cloner);
/* Forgets what was mapped. */
void ir_cloner_reset(struct ir_cloner *cloner);
/* From now on copies use `to` where the original uses `from`; false when memory runs out. */
bool ir_cloner_map(struct ir_cloner *cloner, const struct ir_value *from, struct ir_value *to);
/* What stands for a value: the value itself when it was not mapped. NULL for NULL. */
struct ir_value *ir_cloner_get(const struct ir_cloner *cloner, const struct ir_value *value);

/* A copy with everything in it, in no block yet and without types; its results are mapped. NULL
 * when memory runs out. */
struct ir_op *ir_clone_op(struct ir_cloner *cloner, const struct ir_op *op);
/* Forgets what the model declares of values that the op and its blocks make: of a copy in another
 * graph, since types are their graph's. */
void ir_forget_declared(struct ir_op *op);
/*
 * Copies the ops of a block, but for its return, before `before`, and infers their types.
 * Parameters are mapped by the caller, results here. An op that no run can execute keeps unknown
 * types.
 */
tssa_status *ir_clone_ops(struct ir_cloner *cloner, const struct ir_block *block,
                          struct ir_op *before);
/* A copy of the block for an op's list of blocks; NULL when memory runs out. */
struct ir_block *ir_clone_block(struct ir_cloner *cloner, const struct ir_block *block,
                                struct ir_op *owner);

/*
 * A graph of its own with the same ops, blocks and values, under the same numbers and names, and
 * with all that is known of them: printed, both are the same text. What never changes is shared
 * (dims, types, tensors, rules, texts) and is not copied: the graph must outlive the copy, and both
 * may be changed. Only `graph` holds resources. May be called from many threads at once.
 */
tssa_status *ir_clone_graph(const struct ir_graph *graph, struct ir_graph **copy);

/* Moves the ops of a block, but for its return, before `before`, names and types kept. The
 * parameters were replaced before (ir_value_replace). */
void ir_move_ops(struct ir_block *block, struct ir_op *before);

/* Ends all uses that an op's blocks make of anything: before the op is removed with its blocks. */
void ir_release_blocks(struct ir_op *op);

#endif
