/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of movement.def share: infer_movement*.c. */
#ifndef TSSA_IR_INFER_MOVEMENT_H
#define TSSA_IR_INFER_MOVEMENT_H

#include "ir/infer.h"

/* Rank and dims of an operand; -1 when unknown. */
int infer_dims(const struct ir_op *op, uint32_t index, const struct dim **dims);
/* How many elements operand `index`, a list of integers, has: -1 when unknown. */
int64_t infer_list_length(const struct ir_op *op, uint32_t index);
/* Result 0 has operand 0's dtype, and `rank` dims of which nothing is known (-1: not even the
 * rank). */
tssa_status *infer_set_fresh(struct ir_op *op, int64_t rank);
tssa_status *infer_set_same(struct ir_op *op);
/* A result of rank 0 or 1 whose elements are operand 0's, in order. */
tssa_status *infer_pass_known(struct ir_op *op, int rank);
/* max(dim, 0), for a size that a formula may make negative. */
const struct dim *infer_not_negative(struct ir_graph *graph, const struct dim *dim);

#endif
