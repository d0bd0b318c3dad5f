/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intervals of dims. INT64_MIN and INT64_MAX also stand for the infinities, so saturating is sound.
 *
 * There are two kinds. What holds always counts on nothing but that sizes are not negative. What
 * holds on machines counts on DIM_SIZE_LIMIT as well: it is asked only where integers could wrap
 * (ir/wrap.h).
 */
#ifndef TSSA_IR_DIM_RANGE_H
#define TSSA_IR_DIM_RANGE_H

#include "ir/dim.h"

struct range {
    int64_t low, high;
};

enum range_kind { RANGE_ALWAYS, RANGE_ON_MACHINES };

struct range range_of(const struct dim *dim, enum range_kind kind);
struct range range_add(struct range a, struct range b);
struct range range_scale(struct range a, int64_t by);
/* constant + the sum of coefficients[i] * terms[i]. */
struct range range_of_sum(int64_t constant, uint32_t n, const struct dim *const *terms,
                          const int64_t *coefficients, enum range_kind kind);
/* a / b, rounded towards -infinity. */
int64_t range_floor_quotient(int64_t a, int64_t b);
/* What that leaves: not negative where b > 0. */
int64_t range_floor_remainder(int64_t a, int64_t b);

/* Sets the bounds of a new dim from its terms'; of a symbol, whose maker knows low and high, the
 * rest. */
void dim_set_bounds(struct dim *dim);

#endif
