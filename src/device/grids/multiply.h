/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by the texts that there are of them, a launch each. */
#ifndef TSSA_DEVICE_GRIDS_MULTIPLY_H
#define TSSA_DEVICE_GRIDS_MULTIPLY_H

#include "device/grids/texts.h"
#include "device/library.h"

#define MULTIPLY_TYPES (DTYPE_BIT(TSSA_FLOAT) | DTYPE_BIT(TSSA_DOUBLE))

/* What becomes of a sum: alpha * sum + beta * c, as Gemm has it. */
struct finish {
    float alpha, beta;
    bool with_c;
    int64_t c_row, c_column; /* steps of elements */
};

#define FINISH_NOTHING ((struct finish){.alpha = 1, .beta = 1})

struct product {
    struct matmul_problem problem;
    tssa_dtype dtype;
    struct finish finish;
};

/* The text that computes it on the context's device. */
enum grids_text multiply_text(const struct device_context *context,
                              const struct matmul_problem *problem);

/* The operand that c is. */
#define PRODUCT_C 2

tssa_status *multiply(struct device_stream *stream, const struct product *product,
                      const struct library_call *call);

/* Finishes what a library has computed, where there is something to be done. */
tssa_status *multiply_finish(struct device_stream *stream, const struct product *product,
                             const struct library_call *call);

#endif
