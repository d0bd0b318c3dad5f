/* SPDX-License-Identifier: Apache-2.0 */
/* Making dims: quotients and remainders, in the one form that dim.c tells. */
#include "ir/dim_linear.h"
#include "ir/dim_range.h"

static int64_t gcd(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = (uint64_t)b;
    while (x) {
        uint64_t r = y % x;
        y = x;
        x = r;
    }
    return (int64_t)y; /* divides b > 0 */
}

static int64_t common_factor(const struct linear *sum, int64_t c)
{
    for (uint32_t i = 0; i < sum->n; i++)
        c = gcd(sum->coefficients[i], c);
    return c;
}

/* Takes the multiples of c > 0 out of `sum`, divided, leaving a constant in [0, c). */
static void split_multiples(struct linear *sum, int64_t c, struct linear *quotient)
{
    struct linear rest = {.constant = range_floor_remainder(sum->constant, c)};
    *quotient = (struct linear){.constant = range_floor_quotient(sum->constant, c)};
    for (uint32_t i = 0; i < sum->n; i++) {
        bool multiple = sum->coefficients[i] % c == 0;
        struct linear *to = multiple ? quotient : &rest;
        to->terms[to->n] = sum->terms[i];
        to->coefficients[to->n++] = multiple ? sum->coefficients[i] / c : sum->coefficients[i];
    }
    *sum = rest;
}

/*
 * floor((floor(x / d) + k) / c) is floor((x + k*d) / (c*d)): `rest`, when it is one quotient by a
 * constant and a constant, becomes the new numerator and c the new divisor.
 */
static bool unnest(struct linear *rest, int64_t *c)
{
    int64_t constant, divisor, d;
    const struct dim *inner = rest->terms[0];
    if (rest->n != 1 || rest->coefficients[0] != 1 ||
        (inner->kind != DIM_FLOORDIV && inner->kind != DIM_CEILDIV) ||
        !dim_is_const(inner->terms[1], &d) || d <= 0 || !i64_mul(*c, d, &divisor) ||
        !i64_mul(rest->constant, d, &constant))
        return false;
    struct linear sum;
    linear_of(inner->terms[0], &sum);
    if (!i64_add(sum.constant, constant, &sum.constant) ||
        (inner->kind == DIM_CEILDIV && !i64_add(sum.constant, d - 1, &sum.constant)))
        return false;
    *rest = sum;
    *c = divisor;
    return true;
}

/*
 * floor(sum / c) for c > 0. The one form of a quotient by a constant; ceil(x / c) is (x + c-1) / c.
 */
static const struct dim *div_linear(struct dim_table *table, struct linear *rest, int64_t c)
{
    struct linear total = {.constant = 0}, quotient;
    do {
        split_multiples(rest, c, &quotient);
        if (!i64_add(total.constant, quotient.constant, &total.constant))
            return dim_unknown(table);
        for (uint32_t i = 0; i < quotient.n; i++)
            if (!linear_put(&total, quotient.terms[i], quotient.coefficients[i]))
                return dim_unknown(table);
        if (rest->n == 0)
            return linear_build(table, &total);
        int64_t g = common_factor(rest, c);
        c /= g;
        rest->constant /= g; /* not negative: rounds down */
        for (uint32_t i = 0; i < rest->n; i++)
            rest->coefficients[i] /= g;
    } while (unnest(rest, &c));

    bool up = rest->constant == c - 1;
    if (up)
        rest->constant = 0;
    const struct dim *atom = dim_binary(table, up ? DIM_CEILDIV : DIM_FLOORDIV,
                                        linear_build(table, rest), dim_const(table, c));
    if (!atom)
        return NULL;
    return linear_put(&total, atom, 1) ? linear_build(table, &total) : dim_unknown(table);
}

/* One term with its coefficient, c*N*M. */
static bool is_monomial(const struct linear *sum)
{
    return sum->n == 1 && sum->constant == 0;
}

/* coefficient * term divided by the monomial `by`, when that is exact. */
static bool divide_monomial(const struct dim *term, int64_t coefficient, const struct linear *by,
                            const struct dim **left, uint32_t *n_left, int64_t *quotient)
{
    const struct dim *const *ft, *const *fb;
    uint32_t nt = dim_factors(&term, &ft), nb = dim_factors(&by->terms[0], &fb), j = 0;
    int64_t d = by->coefficients[0];
    *n_left = 0;
    if (d == -1 ? coefficient == INT64_MIN : coefficient % d != 0)
        return false;
    *quotient = coefficient / d;
    for (uint32_t i = 0; i < nt; i++) {
        if (j < nb && ft[i] == fb[j])
            j++;
        else
            left[(*n_left)++] = ft[i];
    }
    return j == nb;
}

/*
 * Takes out of `sum` what the monomial `by` divides; false when memory runs out or *limit is set.
 */
static bool split_monomials(struct dim_table *table, struct linear *sum, const struct linear *by,
                            struct linear *quotient, bool *limit)
{
    struct linear rest = {.constant = sum->constant};
    *quotient = (struct linear){.constant = 0};
    for (uint32_t i = 0; i < sum->n; i++) {
        const struct dim *left[DIM_MAX_TERMS], *term;
        uint32_t n_left;
        int64_t c;
        if (!divide_monomial(sum->terms[i], sum->coefficients[i], by, left, &n_left, &c)) {
            rest.terms[rest.n] = sum->terms[i];
            rest.coefficients[rest.n++] = sum->coefficients[i];
            continue;
        }
        if (n_left == 0) {
            quotient->constant = c; /* at most one term has just these factors */
            continue;
        }
        term = n_left == 1 ? left[0] : dim_node(table, DIM_PRODUCT, 0, n_left, left, NULL);
        if (!term)
            return false;
        if (!linear_put(quotient, term, c)) {
            *limit = true;
            return false;
        }
    }
    *sum = rest;
    return true;
}

/* a == k * b for an integer k? */
static bool is_multiple(const struct linear *a, const struct linear *b, int64_t *k)
{
    int64_t c;
    if (a->n != b->n || a->n == 0 || b->coefficients[0] == -1 ||
        a->coefficients[0] % b->coefficients[0])
        return false;
    *k = a->coefficients[0] / b->coefficients[0];
    for (uint32_t i = 0; i < a->n; i++)
        if (a->terms[i] != b->terms[i] || !i64_mul(b->coefficients[i], *k, &c) ||
            c != a->coefficients[i])
            return false;
    return i64_mul(b->constant, *k, &c) && c == a->constant;
}

/*
 * What a division by something that is not a constant leaves: *quotient is what divides exactly,
 * *rest the remaining numerator. false when memory runs out.
 */
static bool divide_symbolic(struct dim_table *table, const struct dim *a, const struct dim *b,
                            const struct dim **quotient, const struct dim **rest)
{
    struct linear x, y, q = {.constant = 0};
    bool limit = false;
    int64_t k;
    linear_of(a, &x);
    linear_of(b, &y);
    if (is_monomial(&y)) {
        if (!split_monomials(table, &x, &y, &q, &limit)) {
            if (!limit)
                return false;
            linear_of(a, &x);
            q = (struct linear){.constant = 0};
        }
    } else if (is_multiple(&x, &y, &k)) {
        x = (struct linear){.constant = 0};
        q.constant = k;
    }
    *quotient = linear_build(table, &q);
    *rest = linear_build(table, &x);
    return *quotient && *rest;
}

static const struct dim *negate(struct dim_table *table, const struct dim *dim)
{
    return dim_sub(table, dim_const(table, 0), dim);
}

static const struct dim *divide(struct dim_table *table, enum dim_kind kind, const struct dim *a,
                                const struct dim *b)
{
    int64_t c;
    if (!a || !b)
        return NULL;
    if (dim_is_const(b, &c)) {
        if (c < 0 && c != INT64_MIN)
            return divide(table, kind, negate(table, a), dim_const(table, -c));
        struct linear sum;
        linear_of(a, &sum);
        if (c > 0 && (kind == DIM_FLOORDIV || i64_add(sum.constant, c - 1, &sum.constant)))
            return div_linear(table, &sum, c);
        return dim_binary(table, kind, a, b); /* 0, or next to overflow */
    }
    const struct dim *quotient, *rest;
    if (!divide_symbolic(table, a, b, &quotient, &rest))
        return NULL;
    return dim_is(rest, 0) ? quotient : dim_add(table, quotient, dim_binary(table, kind, rest, b));
}

const struct dim *dim_floordiv(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    return divide(table, DIM_FLOORDIV, a, b);
}

const struct dim *dim_ceildiv(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    return divide(table, DIM_CEILDIV, a, b);
}

/* sum mod c for c > 0. */
static const struct dim *mod_linear(struct dim_table *table, const struct linear *sum, int64_t c)
{
    struct linear rest = {.constant = range_floor_remainder(sum->constant, c)};
    for (uint32_t i = 0; i < sum->n; i++) {
        int64_t r = range_floor_remainder(sum->coefficients[i], c);
        if (r == 0)
            continue;
        rest.terms[rest.n] = sum->terms[i];
        rest.coefficients[rest.n++] = r;
    }
    if (rest.n == 0)
        return dim_const(table, rest.constant);
    /* (g*r + s) mod (g*c) is g * (r mod c) + s for s < g */
    int64_t g = common_factor(&rest, c), low, high;
    int64_t s = rest.constant % g;
    rest.constant /= g;
    c /= g;
    for (uint32_t i = 0; i < rest.n; i++)
        rest.coefficients[i] /= g;
    linear_bounds(&rest, &low, &high);
    const struct dim *numerator = linear_build(table, &rest), *value = numerator;
    if (low < 0 || high >= c)
        value = dim_binary(table, DIM_MOD, numerator, dim_const(table, c));
    value = dim_mul(table, value, dim_const(table, g));
    return dim_add(table, value, dim_const(table, s));
}

const struct dim *dim_mod(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    int64_t c;
    if (!a || !b)
        return NULL;
    if (dim_is_const(b, &c)) {
        if (c < 0 && c != INT64_MIN) /* the divisor's sign: -7 mod -3 is -(7 mod 3) */
            return negate(table, dim_mod(table, negate(table, a), dim_const(table, -c)));
        struct linear sum;
        linear_of(a, &sum);
        /* -1 becomes c - 1: no larger than what a size can be multiplied with */
        bool reduces = c > 0 && (c <= DIM_SIZE_LIMIT || sum.n == 0);
        return reduces ? mod_linear(table, &sum, c) : dim_binary(table, DIM_MOD, a, b);
    }
    const struct dim *quotient, *rest;
    if (!divide_symbolic(table, a, b, &quotient, &rest))
        return NULL;
    return dim_is(rest, 0) ? rest : dim_binary(table, DIM_MOD, rest, b);
}
