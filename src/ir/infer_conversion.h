/* SPDX-License-Identifier: Apache-2.0 */
/* Element types that attributes choose, for the rules of conversions and quantized operators. */
#ifndef TSSA_IR_INFER_CONVERSION_H
#define TSSA_IR_INFER_CONVERSION_H

#include "ir/infer.h"

/* Result `index` has operand 0's shape. */
tssa_status *infer_set_like_first(struct ir_op *op, uint32_t index, tssa_dtype dtype);
/* An error where operand 0 cannot be of this type; UNDEFINED: it is not known. */
tssa_status *infer_check_dtype(const struct ir_op *op, tssa_dtype dtype);
/* A type attribute; UNDEFINED when absent or 0. */
tssa_status *infer_dtype_attr(const struct ir_op *op, const char *name, dtype_mask legal,
                              tssa_dtype *dtype);

#endif
