/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing how many operands, results, parameters an op or a block has. The op and the parameters
 * that stay keep their identity; results are made anew (they are an array), with the uses, names,
 * types and known elements of the old ones, so pointers to results of the op must be fetched again.
 *
 * Ops must be in a block. All functions return false when memory runs out; the graph may then only
 * be freed.
 */
#ifndef TSSA_IR_REBUILD_H
#define TSSA_IR_REBUILD_H

#include "ir/ir.h"

#define IR_FRESH UINT32_MAX /* in `from`: a new one, of unknown type and without a name */

/* `values` may hold NULLs and may be values that the op has now. */
bool ir_op_set_operands(struct ir_op *op, uint32_t n, struct ir_value *const *values);
/* Result i becomes the old result from[i]. Old results that are in no place must have no uses. */
bool ir_op_set_results(struct ir_op *op, uint32_t n, const uint32_t *from);
/* Parameter i becomes the old parameter from[i]. Those that are in no place must have no uses. */
bool ir_block_set_params(struct ir_block *block, uint32_t n, const uint32_t *from);
/* Puts an operand at the end of an op's: of a block's return, say. */
bool ir_op_add_operand(struct ir_op *op, struct ir_value *value);

/*
 * Takes results off an If, a fuse op, a Loop or a Scan (9 or newer): drop[i] tells of result i,
 * which must have no uses; with a carried value its operand, parameter and what the body returns
 * for it go as well. The parameter must have no uses that remain but by the `return` operand that
 * goes. Axes and directions of a Scan's outputs follow. One result at least must stay.
 */
bool ir_control_drop_results(struct ir_op *op, const bool *drop);

/* Takes operands off a fuse op: drop[i] tells of operand i, whose parameter must have no uses. */
bool ir_fuse_drop_operands(struct ir_op *op, const bool *drop);

/* A Loop or a Scan: its body is given what the iteration before has left. */
static inline bool ir_op_is_loop(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Loop) || ir_op_is(op, IR_OP_Scan);
}
/* How many of a Loop's or Scan's first results are carried values (states). */
uint32_t ir_loop_carried(const struct ir_op *op);
/*
 * The place of carried value i among operands, parameters of the body, and what the body returns.
 */
uint32_t ir_loop_operand(const struct ir_op *op, uint32_t carried);
uint32_t ir_loop_param(const struct ir_op *op, uint32_t carried);
uint32_t ir_loop_return(const struct ir_op *op, uint32_t result);

#endif
