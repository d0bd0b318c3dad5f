/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/dim_range.h"

static const struct range everything = {INT64_MIN, INT64_MAX};

struct range range_of(const struct dim *dim, enum range_kind kind)
{
    return kind == RANGE_ALWAYS ? (struct range){dim->low, dim->high}
                                : (struct range){dim->least, dim->most};
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

static int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (i64_add(a, b, &sum))
        return sum;
    return a > 0 ? INT64_MAX : INT64_MIN;
}

static int64_t saturating_mul(int64_t a, int64_t b)
{
    int64_t product;
    if (i64_mul(a, b, &product))
        return product;
    return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
}

/* A bound that is an infinity must stay one. */
static int64_t bound_mul(int64_t bound, int64_t by)
{
    if (bound == INT64_MIN || bound == INT64_MAX)
        return by == 0 ? 0 : (bound > 0) == (by > 0) ? INT64_MAX : INT64_MIN;
    return saturating_mul(bound, by);
}

struct range range_add(struct range a, struct range b)
{
    bool no_low = a.low == INT64_MIN || b.low == INT64_MIN;
    bool no_high = a.high == INT64_MAX || b.high == INT64_MAX;
    return (struct range){no_low ? INT64_MIN : saturating_add(a.low, b.low),
                          no_high ? INT64_MAX : saturating_add(a.high, b.high)};
}

struct range range_scale(struct range a, int64_t by)
{
    return (struct range){bound_mul(by > 0 ? a.low : a.high, by),
                          bound_mul(by > 0 ? a.high : a.low, by)};
}

struct range range_of_sum(int64_t constant, uint32_t n, const struct dim *const *terms,
                          const int64_t *coefficients, enum range_kind kind)
{
    struct range sum = {constant, constant};
    for (uint32_t i = 0; i < n; i++)
        sum = range_add(sum, range_scale(range_of(terms[i], kind), coefficients[i]));
    return sum;
}

int64_t range_floor_quotient(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

int64_t range_floor_remainder(int64_t a, int64_t b)
{
    if (b == -1)
        return 0; /* INT64_MIN % -1 traps */
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t ceil_quotient(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q + ((a % b != 0) && ((a < 0) == (b < 0)));
}

/* ---- Per kind of dim ------------------------------------------------------------------------- */

static struct range of_product(const struct dim *dim, enum range_kind kind)
{
    struct range product = {1, 1};
    for (uint32_t i = 0; i < dim->n_terms; i++) {
        struct range term = range_of(dim->terms[i], kind);
        if (term.low < 0)
            return everything;
        product.low = bound_mul(term.low, product.low);
        product.high = product.high == 0 ? 0 : bound_mul(term.high, product.high);
    }
    return product;
}

static struct range of_quotient(const struct dim *dim, enum range_kind kind)
{
    struct range a = range_of(dim->terms[0], kind), b = range_of(dim->terms[1], kind);
    struct range quotient = everything;
    int64_t c;
    if (dim_is_const(dim->terms[1], &c) && c > 0) {
        bool up = dim->kind == DIM_CEILDIV;
        if (a.low != INT64_MIN)
            quotient.low = up ? ceil_quotient(a.low, c) : range_floor_quotient(a.low, c);
        if (a.high != INT64_MAX)
            quotient.high = up ? ceil_quotient(a.high, c) : range_floor_quotient(a.high, c);
    } else if (a.low >= 0 && b.low >= 0) {
        quotient = (struct range){0, a.high}; /* the divisor is at least 1 */
    }
    return quotient;
}

static struct range of_remainder(const struct dim *dim, enum range_kind kind)
{
    struct range divisor = range_of(dim->terms[1], kind);
    if (divisor.low < 0 || (divisor.low == 0 && dim->terms[1]->kind == DIM_CONST))
        return everything;
    return (struct range){0, divisor.high - (divisor.high != INT64_MAX)};
}

static struct range of_extremum(const struct dim *dim, enum range_kind kind)
{
    bool min = dim->kind == DIM_MIN;
    struct range all = range_of(dim->terms[0], kind);
    for (uint32_t i = 1; i < dim->n_terms; i++) {
        struct range term = range_of(dim->terms[i], kind);
        all.low = (term.low < all.low) == min ? term.low : all.low;
        all.high = (term.high < all.high) == min ? term.high : all.high;
    }
    return all;
}

static struct range of_symbol(const struct dim *dim, enum range_kind kind)
{
    struct range range = {dim->low, dim->high};
    bool is_size = dim->low >= 0 && dim->low <= DIM_SIZE_LIMIT;
    if (kind == RANGE_ON_MACHINES && is_size && dim->high > DIM_SIZE_LIMIT)
        range.high = DIM_SIZE_LIMIT;
    return range;
}

static struct range of_terms(const struct dim *dim, enum range_kind kind)
{
    switch (dim->kind) {
    case DIM_SYMBOL:
        return of_symbol(dim, kind);
    case DIM_CONST:
        return (struct range){dim->value, dim->value};
    case DIM_SUM:
        return range_of_sum(dim->value, dim->n_terms, dim->terms, dim->coefficients, kind);
    case DIM_PRODUCT:
        return of_product(dim, kind);
    case DIM_FLOORDIV:
    case DIM_CEILDIV:
        return of_quotient(dim, kind);
    case DIM_MOD:
        return of_remainder(dim, kind);
    case DIM_MIN:
    case DIM_MAX:
        return of_extremum(dim, kind);
    }
    return everything;
}

void dim_set_bounds(struct dim *dim)
{
    struct range always = of_terms(dim, RANGE_ALWAYS), here = of_terms(dim, RANGE_ON_MACHINES);
    dim->low = always.low;
    dim->high = always.high;
    dim->least = here.low;
    dim->most = here.high;
}
