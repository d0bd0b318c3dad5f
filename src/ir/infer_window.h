/* SPDX-License-Identifier: Apache-2.0 */
/* Output sizes of sliding windows, for the rules of convolutions and pooling. */
#ifndef TSSA_IR_INFER_WINDOW_H
#define TSSA_IR_INFER_WINDOW_H

#include "ir/infer.h"

/*
 * The output size along spatial axis i of `rank`, from attributes strides, dilations, pads,
 * auto_pad and ceil_mode; `kernel` is the window's size. A fresh dim where it cannot be told. NULL:
 * out of memory.
 */
const struct dim *infer_window_dim(struct ir_graph *graph, struct ir_op *op, const struct dim *in,
                                   int rank, int i, int64_t kernel);
/* The d-th dim of an operand, or a fresh one where its rank is unknown or too low. */
const struct dim *infer_dim_or_fresh(struct ir_op *op, uint32_t operand, int d);

#endif
