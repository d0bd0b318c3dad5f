/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rearrangements of the pass `algebra`, which change an op that stands behind another and set
 * *changed.
 */
#ifndef TSSA_PASSES_SIMPLIFY_ALGEBRA_H
#define TSSA_PASSES_SIMPLIFY_ALGEBRA_H

#include "ir/ir.h"

/* The op that makes an operand; NULL: none does. */
static inline const struct ir_op *algebra_producer(const struct ir_op *op, uint32_t index)
{
    const struct ir_value *value = ir_operand(op, index);
    return value ? value->op : NULL;
}

static inline bool algebra_used_once(const struct ir_op *op)
{
    return op->results[0].uses && !op->results[0].uses->next;
}

tssa_status *algebra_merge_transposes(struct ir_graph *graph, struct ir_op *op, bool *changed);
/* Of a Reshape whose result does not depend on the dims of its operand. */
tssa_status *algebra_merge_reshapes(struct ir_graph *graph, struct ir_op *op, bool *changed);
/* A Concat takes in those that only it uses. */
tssa_status *algebra_merge_concats(struct ir_graph *graph, struct ir_op *op, bool *changed);
/* An element-wise op broadcasts by itself: its operands need not be made larger first. */
tssa_status *algebra_drop_broadcasts(struct ir_graph *graph, struct ir_op *op, bool *changed);

#endif
