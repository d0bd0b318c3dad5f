/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the IR's invariants: every operand is defined before its use in the same or an enclosing
 * block; use lists and operand slots agree; arities fit the op table; every block ends in `return`;
 * results fit block returns (Loop, Scan; of an If those of the branch that is taken, where that is
 * known); element types are legal; ids and names are unique. The message shows the offending op,
 * printed. Time is linear in the size of the graph.
 *
 * TSSA_UNSUPPORTED for an element type that the op table does not allow, else TSSA_INTERNAL: the
 * importer refuses everything else that a model can do wrong. Only reads the graph.
 */
#ifndef TSSA_IR_VERIFIER_H
#define TSSA_IR_VERIFIER_H

#include "ir/ir.h"

tssa_status *ir_verify(struct ir_graph *graph);

#endif
