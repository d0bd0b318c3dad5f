/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rules of batch_find_rule's table share (batch.h), and those of them that have files of
 * their own. Internal to batch_*.c.
 */
#ifndef TSSA_PASSES_LOOPS_BATCH_RULES_H
#define TSSA_PASSES_LOOPS_BATCH_RULES_H

#include "passes/loops/batch.h"

/* ---- batch_operands.c ------------------------------------------------------------------------ */

/* What stands for the op's operand; NULL: it has none there, or it was not made. */
struct ir_value *batch_operand(struct batch *batch, const struct ir_op *op, uint32_t index,
                               bool *batched);
/* Does the operand differ between iterations? */
bool batch_has_axis(struct batch *batch, const struct ir_op *op, uint32_t index);
/* The rank that the operand has in the body. */
int batch_rank(const struct ir_op *op, uint32_t index);
/* The operand with axes of size one after the one in front, so that it broadcasts as before. */
struct ir_value *batch_aligned(struct batch *batch, const struct ir_op *op, uint32_t index,
                               int rank);
/* A copy whose operands are what stands for the op's. */
struct ir_op *batch_copy_operands(struct batch *batch, const struct ir_op *op);
/* Puts `copy` there; all its results have the axis, and stand for the op's. */
bool batch_finish(struct batch *batch, const struct ir_op *op, struct ir_op *copy);

/* ---- batch_reads.c --------------------------------------------------------------------------- */

bool batch_rule_access(struct batch *batch, const struct ir_op *op);
bool batch_rule_assign(struct batch *batch, const struct ir_op *op);
bool batch_rule_gather(struct batch *batch, const struct ir_op *op);

/* ---- batch_matmul.c -------------------------------------------------------------------------- */

bool batch_rule_matmul(struct batch *batch, const struct ir_op *op);
bool batch_rule_gemm(struct batch *batch, const struct ir_op *op);

#endif
