/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of a Scan, and the stacks that a Loop makes, are laid out before there is one of what
 * they consist of: by the shape that is written, or that the runtime infers.
 */
#include "ir/rebuild.h"
#include "onnx/hazard.h"

bool hazard_stacked_shape(const struct ir_op *results, uint32_t index)
{
    const struct ir_op *owner = results->parent->owner;
    if (!owner)
        return false;
    return ir_op_is(owner, IR_OP_Scan) ||
           (ir_op_is(owner, IR_OP_Loop) && index > ir_loop_carried(owner));
}
