/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the op table says of the memory of results: where a result may lie that an operand lies. It
 * is the meaning of three flags of a row (IR_ALIAS, IR_UPDATE, IR_OVER) and of every element-wise
 * row, for whoever plans memory; kernels of any device keep it.
 */
#ifndef TSSA_IR_MEMORY_H
#define TSSA_IR_MEMORY_H

#include "ir/ir.h"

enum ir_memory {
    IR_MEMORY_OWN, /* nowhere an operand lies */
    /* where the operand lies, unchanged: another name of it, be that read later or not */
    IR_MEMORY_SHARED,
    IR_MEMORY_UPDATED, /* the operand itself, changed in place, where nobody reads that any more */
    /* Where an operand lay that nobody reads any more, if its elements are as many and as long:
     * what an element depends on is read before it is written over. */
    IR_MEMORY_OVER
};

/* Result `result`, with regard to operand `operand`. An element of a row depends on those in its
 * place, but where more than two operands are folded, one after the other. */
static inline enum ir_memory ir_result_memory(const struct ir_op *op, uint32_t result,
                                              uint32_t operand)
{
    const struct ir_op_info *info = op->info;
    if (result > 0)
        return IR_MEMORY_OWN;
    if (info->ew)
        return info->max_operands != IR_VARIADIC || op->n_operands <= 2 ? IR_MEMORY_OVER
                                                                        : IR_MEMORY_OWN;
    if (operand > 0 || !(info->flags & (IR_ALIAS | IR_UPDATE | IR_OVER)))
        return IR_MEMORY_OWN;
    return info->flags & IR_ALIAS    ? IR_MEMORY_SHARED
           : info->flags & IR_UPDATE ? IR_MEMORY_UPDATED
                                     : IR_MEMORY_OVER;
}

/* Is all that the op computes another name of operand 0? Not a Dropout, which may have a mask, or
 * drop something. */
static inline bool ir_op_is_name(const struct ir_op *op)
{
    return ir_result_memory(op, 0, 0) == IR_MEMORY_SHARED && op->info->max_results == 1;
}

/* The value is another name of operand 0 of its op, and lies where that lies. */
static inline bool ir_is_view(const struct ir_value *value)
{
    return value->op && ir_result_memory(value->op, value->index, 0) == IR_MEMORY_SHARED;
}

#endif
