/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Equality of ops and blocks: same operator, version and attributes, and operands that are the same
 * value or stand for each other. Nothing is said about purity. Names do not count.
 */
#ifndef TSSA_IR_EQUAL_H
#define TSSA_IR_EQUAL_H

#include "ir/clone.h"

bool tensor_equal(const struct tensor *a, const struct tensor *b); /* bit by bit */
bool ir_attrs_equal(const struct ir_op *a, const struct ir_op *b);
/* Of what makes an op but its operands and blocks: equal ops have equal hashes. Only the ends of
 * large tensors are looked at. */
uint64_t ir_op_hash(const struct ir_op *op);
/*
 * `a` is equal to `b` when every value in it is exchanged for the one that `map` gives; what the
 * blocks of `a` define is mapped on the way. *equal is false when memory runs out, which is told.
 */
tssa_status *ir_ops_equal(struct ir_cloner *map, const struct ir_op *a, const struct ir_op *b,
                          bool *equal);
/* The same for blocks: parameters, ops, and what they return. */
tssa_status *ir_blocks_equal(struct ir_cloner *map, const struct ir_block *a,
                             const struct ir_block *b, bool *equal);

#endif
