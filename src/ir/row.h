/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that compute each row of their first operand by itself: reductions of the last axes, softmax
 * and normalizations over them, sums along the last axis. A row is all elements that differ in the
 * last axes alone. What is computed of one, a kernel computes where the row is.
 */
#ifndef TSSA_IR_ROW_H
#define TSSA_IR_ROW_H

#include "ir/ir.h"

/* How many of the last axes of operand 0 are a row; 0: the op is no such op, needs elements of
 * several rows, or it is not known. */
int ir_row_axes(const struct ir_op *op);
/* A softmax, log-softmax or hardmax as it was before version 13: of all axes from its axis on as
 * one, which may lie behind the last one. */
bool ir_row_flattens(const struct ir_op *op);
/* Of an op that has rows: has the operand elements for rows, along the last of their axes, and not
 * along those of a row? */
bool ir_row_is_each(const struct ir_op *op, uint32_t operand);
/* One element is computed of each row, not as many as it has: with axes of one element in the place
 * of the row's (keepdims) or without them. Of an op that has rows. */
bool ir_row_folds(const struct ir_op *op);

/*
 * The one axis along which an op reduces, finds the highest or lowest, or computes a softmax or a
 * norm, where that is not the innermost one, so that its order is that of steps of one element
 * (ir/reduction.def), whatever the run: an axis behind it has two elements or more. -1: it is no
 * such op, or it is not known.
 */
int ir_column_axis(const struct ir_op *op);
/* One element is computed of each column, as of rows. Of an op that has columns. */
bool ir_column_folds(const struct ir_op *op);

/*
 * The axis of running sums or products (CumSum, CumProd) where an axis behind it may have two
 * elements or more, so that there are columns, and where it may have several itself; -1: it is no
 * such op, or that is not known.
 */
int ir_scan_axis(const struct ir_op *op);

#endif
