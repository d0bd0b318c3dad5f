/* SPDX-License-Identifier: Apache-2.0 */
#include "gir/iteration.h"

#include "ir/infer_block.h"
#include "ir/rebuild.h"

const struct ir_value *gir_loop_next(const struct ir_op *loop, uint32_t result)
{
    return ir_operand(ir_block_return(loop->blocks[0]), ir_loop_return(loop, result));
}

int64_t gir_loop_number(const struct ir_op *loop, const char *name, uint32_t index)
{
    size_t count = 0;
    const int64_t *numbers = ir_attr_ints(loop, name, &count);
    return index < count ? numbers[index] : 0;
}

bool gir_loop_is_counted(const struct ir_op *loop)
{
    if (!ir_op_is(loop, IR_OP_Loop))
        return true;
    const struct ir_block *body = loop->blocks[0];
    const struct ir_value *entry = ir_operand(loop, 1),
                          *next = ir_operand(ir_block_return(body), 0);
    return ir_operand(loop, 0) && (!entry || infer_is_truth(entry, true)) &&
           (next == body->params[1] || infer_is_truth(next, true));
}

bool gir_has_dims(const struct ir_value *value, const struct ir_type *like)
{
    const struct ir_type *type = value ? value->type : NULL;
    bool same = type && type->kind == TYPE_TENSOR && type->rank == like->rank;
    for (int i = 0; same && i < like->rank; i++)
        same = type->dims[i] == like->dims[i];
    return same;
}
