/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by the texts that there are of them, a launch each. */
#ifndef TSSA_DEVICE_GRIDS_MULTIPLY_H
#define TSSA_DEVICE_GRIDS_MULTIPLY_H

#include "device/grids/texts.h"
#include "device/library.h"

/* Sums of FLOAT16 and BFLOAT16 are FLOAT, and rounded once. */
#define MULTIPLY_TYPES                                                                             \
    (DTYPE_BIT(TSSA_FLOAT) | DTYPE_BIT(TSSA_DOUBLE) | DTYPE_BIT(TSSA_FLOAT16) |                    \
     DTYPE_BIT(TSSA_BFLOAT16))

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

/*
 * Columns of a block whose `threads` share `terms` terms, as a power of two, `most` at most: of n
 * columns that are side by side, `lines` times. The fewer, the more blocks there are, and the fewer
 * terms a thread has, which it waits for; but there are terms for all threads, and with blocks
 * enough whole lines are read, where columns are read side by side.
 */
struct columns {
    int64_t n, lines, terms, threads;
    bool side_by_side;
    int most;
};
int multiply_divide(const struct columns *columns);

/* The operand that c is. */
#define PRODUCT_C 2

tssa_status *multiply(struct device_stream *stream, const struct product *product,
                      const struct library_call *call);

/* Is there something to be done with sums? */
bool multiply_finishes(const struct product *product);
/* Finishes what a library has computed, the call's result, which is sums of the type that is
 * computed in (grids_computed_in), into another place, or where they are. */
tssa_status *multiply_finish(struct device_stream *stream, const struct product *product,
                             const struct library_call *call, struct device_place result);

#endif
