/* SPDX-License-Identifier: Apache-2.0 */
/* What the makers of dims share (dim.c, dim_quotient.c): sums on their way, and nodes. NULL: memory
 * ran out. */
#ifndef TSSA_IR_DIM_LINEAR_H
#define TSSA_IR_DIM_LINEAR_H

#include "ir/dim.h"

/* A sum being computed; terms in canonical order, coefficients not 0. */
struct linear {
    int64_t constant;
    uint32_t n;
    const struct dim *terms[DIM_MAX_TERMS];
    int64_t coefficients[DIM_MAX_TERMS];
};

void linear_of(const struct dim *dim, struct linear *sum);
const struct dim *linear_build(struct dim_table *table, const struct linear *sum);
/* Adds coefficient * term; false on overflow or when there are too many terms. */
bool linear_put(struct linear *sum, const struct dim *term, int64_t coefficient);
void linear_bounds(const struct linear *sum, int64_t *low, int64_t *high);
/* Some integer that cannot be told. */
const struct dim *dim_unknown(struct dim_table *table);
/* The node with these terms, or an unknown when that would be too large; coefficients for sums
 * only. */
const struct dim *dim_node(struct dim_table *table, enum dim_kind kind, int64_t value, uint32_t n,
                           const struct dim *const *terms, const int64_t *coefficients);
const struct dim *dim_binary(struct dim_table *table, enum dim_kind kind, const struct dim *a,
                             const struct dim *b);
/* The factors of a term: those of a product, or the term itself. */
uint32_t dim_factors(const struct dim *const *term, const struct dim *const **factors);

#endif
