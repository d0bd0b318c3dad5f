/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text form of the IR. ir_parse(ir_print(g)) prints the same text again. Grammar: docs/ir.md.
 *
 *     graph @name opset("": 18) ir_version(8) (%x: f32[N, 4], %n: i64[] = i64[] 3) -> (%y) {
 *       %one = Constant() {value = f32[] 1}: f32[]
 *       %y = Loop@16(%n, _, %x): f32[N, 4] {
 *         body(%i: i64[], %c: bool[], %v: f32[N, 4]) {
 *           %s = Add@14(%v, %one): f32[N, 4]
 *           return(%c, %s)
 *         }
 *       }
 *       return(%y)
 *     }
 *
 * `_` is an absent operand or an unwanted result. Constants above 64 elements print as `f32[1000]
 * <hash of the bytes, in hex>` unless `full` asks for all elements (then they parse back).
 */
#ifndef TSSA_IR_PRINTER_H
#define TSSA_IR_PRINTER_H

#include "base/text.h"
#include "ir/ir.h"

void ir_print_graph(const struct ir_graph *graph, bool full, struct text *text);
/* One line: the op without its blocks; unnamed values have the numbers that they have in the
 * graph's text. */
void ir_print_op_line(const struct ir_op *op, struct text *text);

#endif
