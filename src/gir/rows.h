/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a kernel being made: ops that compute each row by itself (ir/row.h), of reductions and
 * element-wise steps. */
#ifndef TSSA_GIR_ROWS_H
#define TSSA_GIR_ROWS_H

#include "gir/scalars.h"

/* What an op that has rows computes of its operands (GIR_NONE: absent); refuses others. */
uint32_t gir_make_row_op(struct gir_maker *maker, const struct ir_op *op, const uint32_t *operands);
/* A running sum or product (ir_scan_axis) of what operand 0 is in each row, in a kernel of columns
 * whose rows are one after the other. */
uint32_t gir_make_scan(struct gir_maker *maker, const struct ir_op *op, uint32_t value);

#endif
