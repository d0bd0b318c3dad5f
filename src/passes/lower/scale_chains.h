/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops beside a product that multiply or shift each of its channels by constants: Mul, Div, Add, Sub
 * and BatchNormalization, each the only user of the one before.
 */
#ifndef TSSA_PASSES_LOWER_SCALE_CHAINS_H
#define TSSA_PASSES_LOWER_SCALE_CHAINS_H

#include "passes/lower/products.h"

#define SCALE_CHAIN_MAX 16

/* factor * x + shift, per channel. */
struct affine {
    double *factor, *shift;
    int64_t count;
    bool scales, shifts; /* some factor is not 1, some shift not 0 */
};

/* Ops in a row, and what they do together. */
struct scale_chain {
    struct ir_op *ops[SCALE_CHAIN_MAX];
    uint32_t count;
    struct ir_value *from; /* what the chain before a product reads */
    struct affine affine;
    /* would have been the next one; NULL: there was none, or it is something else */
    const struct ir_op *stays;
    const char *obstacle;
};

/* Is there an op before or behind the product that a chain may begin with? Asked before anything is
 * allocated: most products have none. */
bool scale_chain_exists(const struct product *p);
/* An empty one, of so many channels; to be freed also after an error. */
tssa_status *scale_chain_create(const tssa_allocator *allocator, int64_t count,
                                struct scale_chain *chain);
void scale_chain_free(const tssa_allocator *allocator, struct scale_chain *chain);
/* Takes in the ops that come before the product, the nearest one first, and those behind it. */
void scale_chain_precede(const struct product *p, struct scale_chain *chain);
void scale_chain_follow(const struct product *p, struct scale_chain *chain);

#endif
