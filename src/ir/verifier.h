/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the IR's invariants: every operand is defined before its use in the same or an enclosing block;
 * use lists and operand slots agree; arities fit the op table; every block ends in `return`; results
 * fit block returns (If, Loop, Scan); element types are legal; ids are dense. The message shows the
 * offending op, printed, with its neighbours.
 */
#ifndef TSSA_IR_VERIFIER_H
#define TSSA_IR_VERIFIER_H

#include "ir/ir.h"

tssa_status *ir_verify(struct ir_graph *graph);

#endif
