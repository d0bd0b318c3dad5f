/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of products, for the rules of contractions and of quantized operators. */
#ifndef TSSA_IR_INFER_CONTRACTION_H
#define TSSA_IR_INFER_CONTRACTION_H

#include "ir/infer.h"

/* numpy's matmul of operands a and b. */
tssa_status *infer_set_matmul(struct ir_op *op, uint32_t a, uint32_t b, tssa_dtype dtype);
/* The convolution of operand 0 with the weights at operand `w`. */
tssa_status *infer_set_conv(struct ir_graph *graph, struct ir_op *op, uint32_t w, tssa_dtype dtype);

#endif
