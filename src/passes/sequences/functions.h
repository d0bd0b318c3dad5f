/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that the standard defines by a function, and ONNX Runtime computes by it, since it has
 * no kernel for their element type. In the body of a SequenceMap, which is a function too, it
 * writes the nodes of such a function in the wrong order, and then refuses the graph.
 */
#ifndef TSSA_PASSES_SEQUENCES_FUNCTIONS_H
#define TSSA_PASSES_SEQUENCES_FUNCTIONS_H

#include "ir/ir.h"

/* Thread-safe. An operand of no known type counts as one without a kernel. */
bool is_written_out(const struct ir_op *op);

#endif
