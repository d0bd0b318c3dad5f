/* SPDX-License-Identifier: Apache-2.0 */
/* How numbers and constant tensors are spelled in the text form of the IR. */
#ifndef TSSA_IR_TENSOR_TEXT_H
#define TSSA_IR_TENSOR_TEXT_H

#include "base/text.h"
#include "base/value.h"

/* Constants with more elements are printed as a hash unless all of them are asked for. */
#define IR_PRINT_MAX 64

/* The shortest decimal that reads back as the same number; "inf", "-inf", "nan" (whatever its
 * payload). Independent of the locale. With `point`, a whole number gets ".0". */
void ir_print_float(struct text *text, float value, bool point);
void ir_print_double(struct text *text, double value);

/* "f32[2] [1, 2.5]", "i64[] 3", "f32[1000] <93b8cbb3a1a21d04>". */
void ir_print_tensor(struct text *text, const struct tensor *tensor, bool full);

#endif
