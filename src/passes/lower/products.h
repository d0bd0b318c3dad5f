/* SPDX-License-Identifier: Apache-2.0 */
/* Products with constant weights, as passes that change the weights see them. */
#ifndef TSSA_PASSES_LOWER_PRODUCTS_H
#define TSSA_PASSES_LOWER_PRODUCTS_H

#include "passes/pass.h"

/* Conv, ConvTranspose, Gemm or MatMul: y[out] = bias[out] + sum of x[in] * w[out, in, inner]. */
struct product {
    struct ir_op *op;
    const struct tensor *w, *bias;    /* FLOAT, DOUBLE or FLOAT16; bias may be NULL */
    bool has_bias;                    /* the operator can have one */
    int rank, in_axis, out_axis;      /* of operand 0 and the result: where their channels are */
    int64_t in, out, groups;          /* channels of all groups together */
    int64_t inner, step_in, step_out; /* elements of w for one pair; from pair to pair in w */
    /* w has the inputs of all groups, and outputs of one; else it is the other way round */
    bool turned;
};

/* false: it is no such product, or its weights are no constants of these types. */
bool product_open(struct ir_op *op, struct product *p);
/* The value's constant of one of these types and of this rank, -1: of any; NULL: it is none. */
const struct tensor *product_constant(const struct ir_value *value, int rank);
/* An element of such a tensor. */
double product_number(const struct tensor *tensor, int64_t index);

#endif
