/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that are compositions of others: softmax, normalizations, losses. What they compute is
 * written once, in ir/composition.def, as IR text. The table is constant: any thread may read it.
 */
#ifndef TSSA_IR_COMPOSITION_H
#define TSSA_IR_COMPOSITION_H

#include "ir/ir.h"

/*
 * What the op computes, as a graph of its own, whose inputs are those operands of the op that are
 * there, of their element types, and of any shape; its outputs are all results that the operator
 * may have, and attributes are constants in it. Inferred; it may be used as long as the op's graph.
 * *graph is NULL where the op is no composition, or its axis is not known.
 */
tssa_status *ir_composition_of(const struct ir_op *op, const tssa_allocator *allocator,
                               struct ir_graph **graph);

#endif
