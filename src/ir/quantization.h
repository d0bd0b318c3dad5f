/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TSSA_IR_QUANTIZATION_H
#define TSSA_IR_QUANTIZATION_H

#include "ir/ir.h"

/*
 * Is it a QuantizeLinear or DequantizeLinear (ai.onnx, 10 to 25) whose scale and zero point are one
 * number each, between float32 and integers of up to 16 bits (to float32 of 32, too)? Then each
 * element is computed of one element:
 *
 *     quantized    max(lowest, min(round(x / scale) + zero, highest)), NaN as the lowest
 *     dequantized  (x - zero) * scale
 *
 * in float32, zero as a number of that, 0 where there is none.
 */
bool ir_quantizes_elements(const struct ir_op *op);

#endif
