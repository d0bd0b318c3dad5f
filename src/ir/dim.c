/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making dims. Every expression is brought to the form
 *
 *     constant + sum of coefficient * product of atoms
 *
 * where an atom is a symbol, a division, a remainder, a minimum or a maximum of such expressions. The
 * same value built in two ways is then usually the same node. Rebuilding a node from its own terms gives
 * the node itself: substitution and the IR parser rely on it.
 */
#include "ir/dim.h"

#include <stdio.h>
#include <string.h>

#include "ir/dim_range.h"
#include "ir/quote.h"

/* A sum being computed; terms in canonical order, coefficients not 0. */
struct linear {
    int64_t constant;
    uint32_t n;
    const struct dim *terms[DIM_MAX_TERMS];
    int64_t coefficients[DIM_MAX_TERMS];
};

void dim_table_init(struct dim_table *table, struct arena *arena)
{
    *table = (struct dim_table){.arena = arena};
    map_init(&table->nodes, arena->allocator);
}

void dim_table_free(struct dim_table *table)
{
    map_free(&table->nodes);
}

/* ---- Order ---------------------------------------------------------------------------------------- */

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_symbols(const struct dim *a, const struct dim *b)
{
    int order = compare_i64(a->value, b->value);
    return order ? order : strcmp(a->name, b->name);
}

int dim_compare(const struct dim *a, const struct dim *b)
{
    /* Products before symbols: N*M + N. */
    static const uint8_t rank[] = {
        [DIM_CONST] = 0,   [DIM_PRODUCT] = 1, [DIM_SYMBOL] = 2, [DIM_SUM] = 3, [DIM_FLOORDIV] = 4,
        [DIM_CEILDIV] = 5, [DIM_MOD] = 6,     [DIM_MIN] = 7,    [DIM_MAX] = 8};
    if (a == b)
        return 0;
    if (a->kind != b->kind)
        return rank[a->kind] < rank[b->kind] ? -1 : 1;
    if (a->kind == DIM_SYMBOL)
        return compare_symbols(a, b);
    for (uint32_t i = 0; i < a->n_terms && i < b->n_terms; i++) {
        int order = dim_compare(a->terms[i], b->terms[i]);
        if (order == 0 && a->kind == DIM_SUM)
            order = compare_i64(a->coefficients[i], b->coefficients[i]);
        if (order)
            return order;
    }
    int order = compare_i64(a->n_terms, b->n_terms);
    return order ? order : compare_i64(a->value, b->value);
}

/* ---- Bounds --------------------------------------------------------------------------------------- */

static void linear_bounds(const struct linear *sum, int64_t *low, int64_t *high)
{
    struct range range =
        range_of_sum(sum->constant, sum->n, sum->terms, sum->coefficients, RANGE_ALWAYS);
    *low = range.low;
    *high = range.high;
}

static int64_t floor_remainder(int64_t a, int64_t b)
{
    if (b == -1)
        return 0; /* INT64_MIN % -1 traps */
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* ---- Nodes ---------------------------------------------------------------------------------------- */

/* What makes two nodes equal; hashed as bytes, so it has no padding. */
struct node_key {
    uint64_t kind, n;
    int64_t value;
    struct {
        uint64_t id;
        int64_t coefficient;
    } terms[DIM_MAX_TERMS];
};

static const struct dim *insert(struct dim_table *table, const struct dim *value, const void *key,
                                size_t key_size)
{
    void *stored = arena_copy(table->arena, key, key_size);
    struct dim *dim = arena_copy(table->arena, value, sizeof *value);
    if (!stored || !dim)
        return NULL;
    dim->id = table->n_dims;
    dim_set_bounds(dim);
    if (!map_put(&table->nodes, stored, key_size, dim))
        return NULL;
    table->n_dims++;
    return dim;
}

/* Symbols have keys of text: 'N' and the name, or 'F' and the name of a fresh one. The bounds are those
 * of a new one. */
static const struct dim *symbol(struct dim_table *table, const char *key, int64_t number,
                                int64_t low, int64_t high)
{
    size_t size = strlen(key);
    const struct dim *found = map_get(&table->nodes, key, size);
    if (found)
        return found;
    const char *name = arena_string(table->arena, key + 1, size - 1);
    if (!name)
        return NULL;
    struct dim dim = {.kind = DIM_SYMBOL,
                      .value = number,
                      .low = low,
                      .high = high,
                      .name = name,
                      .depth = 1,
                      .size = 1};
    return insert(table, &dim, key, size);
}

const struct dim *dim_symbol(struct dim_table *table, const char *name)
{
    char small[64], *key = small;
    size_t size = strlen(name) + 2;
    if (size > sizeof small)
        key = allocator_alloc(table->arena->allocator, size);
    if (!key)
        return NULL;
    key[0] = 'N';
    memcpy(key + 1, name, size - 1);
    const struct dim *dim = symbol(table, key, 0, 0, INT64_MAX);
    if (key != small)
        allocator_free(table->arena->allocator, key);
    return dim;
}

static const struct dim *fresh(struct dim_table *table, const char *hint, uint32_t number,
                               int64_t low, int64_t high)
{
    char key[64];
    if (!ir_is_identifier(hint) || strlen(hint) > 40)
        hint = "d";
    snprintf(key, sizeof key, "F%s#%u", hint, (unsigned)number);
    if (table->n_fresh < number)
        table->n_fresh = number;
    return symbol(table, key, number, low, high);
}

const struct dim *dim_fresh_numbered(struct dim_table *table, const char *hint, uint32_t number)
{
    return fresh(table, hint, number, strcmp(hint, "any") == 0 ? INT64_MIN : 0, INT64_MAX);
}

const struct dim *dim_fresh(struct dim_table *table, const char *hint)
{
    return dim_fresh_numbered(table, hint, table->n_fresh + 1);
}

const struct dim *dim_fresh_between(struct dim_table *table, const char *hint, int64_t low,
                                    int64_t high)
{
    return fresh(table, hint, table->n_fresh + 1, low, high);
}

/* Some integer that cannot be told. */
static const struct dim *unknown(struct dim_table *table)
{
    return dim_fresh(table, "any");
}

/* The node with these terms, or an unknown when that would be too large; coefficients for sums only. */
static const struct dim *node(struct dim_table *table, enum dim_kind kind, int64_t value,
                              uint32_t n, const struct dim *const *terms,
                              const int64_t *coefficients)
{
    struct node_key key = {.kind = kind, .n = n, .value = value};
    size_t depth = 1, size = 1;
    for (uint32_t i = 0; i < n; i++) {
        key.terms[i].id = terms[i]->id;
        key.terms[i].coefficient = coefficients ? coefficients[i] : 1;
        depth = terms[i]->depth >= depth ? terms[i]->depth + 1u : depth;
        size += terms[i]->size;
    }
    size_t key_size = offsetof(struct node_key, terms) + n * sizeof key.terms[0];
    const struct dim *found = map_get(&table->nodes, &key, key_size);
    if (found)
        return found;
    if (depth > DIM_MAX_DEPTH || size > DIM_MAX_SIZE)
        return unknown(table);
    struct dim dim = {.kind = kind,
                      .value = value,
                      .depth = (uint16_t)depth,
                      .size = (uint16_t)size,
                      .n_terms = n};
    if (n) {
        dim.terms = arena_copy(table->arena, terms, n * sizeof *terms);
        if (!dim.terms)
            return NULL;
    }
    if (n && coefficients) {
        dim.coefficients = arena_copy(table->arena, coefficients, n * sizeof *coefficients);
        if (!dim.coefficients)
            return NULL;
    }
    return insert(table, &dim, &key, key_size);
}

static const struct dim *binary(struct dim_table *table, enum dim_kind kind, const struct dim *a,
                                const struct dim *b)
{
    return a && b ? node(table, kind, 0, 2, (const struct dim *const[]){a, b}, NULL) : NULL;
}

const struct dim *dim_const(struct dim_table *table, int64_t value)
{
    return node(table, DIM_CONST, value, 0, NULL, NULL);
}

/* ---- Sums ----------------------------------------------------------------------------------------- */

static void linear_of(const struct dim *dim, struct linear *sum)
{
    sum->n = 0;
    sum->constant = dim->kind == DIM_CONST || dim->kind == DIM_SUM ? dim->value : 0;
    if (dim->kind == DIM_SUM) {
        sum->n = dim->n_terms;
        memcpy(sum->terms, dim->terms, sum->n * sizeof *sum->terms);
        memcpy(sum->coefficients, dim->coefficients, sum->n * sizeof *sum->coefficients);
    } else if (dim->kind != DIM_CONST) {
        sum->n = 1;
        sum->terms[0] = dim;
        sum->coefficients[0] = 1;
    }
}

static const struct dim *linear_build(struct dim_table *table, const struct linear *sum)
{
    if (sum->n == 0)
        return dim_const(table, sum->constant);
    if (sum->n == 1 && sum->constant == 0 && sum->coefficients[0] == 1)
        return sum->terms[0];
    return node(table, DIM_SUM, sum->constant, sum->n, sum->terms, sum->coefficients);
}

/* Adds coefficient * term; false on overflow or when there are too many terms. */
static bool linear_put(struct linear *sum, const struct dim *term, int64_t coefficient)
{
    uint32_t i = 0;
    int order = 1;
    while (i < sum->n && (order = dim_compare(sum->terms[i], term)) < 0)
        i++;
    bool there = i < sum->n && order == 0;
    if (there && !i64_add(sum->coefficients[i], coefficient, &sum->coefficients[i]))
        return false;
    if (there && sum->coefficients[i] == 0) {
        sum->n--;
        memmove(&sum->terms[i], &sum->terms[i + 1], (sum->n - i) * sizeof *sum->terms);
        memmove(&sum->coefficients[i], &sum->coefficients[i + 1],
                (sum->n - i) * sizeof *sum->coefficients);
    }
    if (there || coefficient == 0)
        return true;
    if (sum->n == DIM_MAX_TERMS)
        return false;
    memmove(&sum->terms[i + 1], &sum->terms[i], (sum->n - i) * sizeof *sum->terms);
    memmove(&sum->coefficients[i + 1], &sum->coefficients[i],
            (sum->n - i) * sizeof *sum->coefficients);
    sum->terms[i] = term;
    sum->coefficients[i] = coefficient;
    sum->n++;
    return true;
}

/* Adds factor * dim. */
static bool linear_add(struct linear *sum, const struct dim *dim, int64_t factor)
{
    struct linear other;
    int64_t scaled;
    linear_of(dim, &other);
    if (!i64_mul(other.constant, factor, &scaled) ||
        !i64_add(sum->constant, scaled, &sum->constant))
        return false;
    for (uint32_t i = 0; i < other.n; i++)
        if (!i64_mul(other.coefficients[i], factor, &scaled) ||
            !linear_put(sum, other.terms[i], scaled))
            return false;
    return true;
}

static const struct dim *add_scaled(struct dim_table *table, const struct dim *a,
                                    const struct dim *b, int64_t factor)
{
    if (!a || !b)
        return NULL;
    struct linear sum;
    linear_of(a, &sum);
    return linear_add(&sum, b, factor) ? linear_build(table, &sum) : unknown(table);
}

const struct dim *dim_add(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    return add_scaled(table, a, b, 1);
}

const struct dim *dim_sub(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    return add_scaled(table, a, b, -1);
}

/* ---- Products ------------------------------------------------------------------------------------- */

/* The factors of a term: those of a product, or the term itself. */
static uint32_t factors_of(const struct dim *const *term, const struct dim *const **factors)
{
    *factors = (*term)->kind == DIM_PRODUCT ? (*term)->terms : term;
    return (*term)->kind == DIM_PRODUCT ? (*term)->n_terms : 1;
}

/* The product of two terms that are no sums and no constants. */
static const struct dim *mul_terms(struct dim_table *table, const struct dim *a,
                                   const struct dim *b)
{
    const struct dim *const *fa, *const *fb, *merged[DIM_MAX_TERMS];
    uint32_t na = factors_of(&a, &fa), nb = factors_of(&b, &fb), n = 0;
    if (na + nb > DIM_MAX_TERMS)
        return unknown(table);
    for (uint32_t i = 0, j = 0; i < na || j < nb;)
        merged[n++] = j == nb || (i < na && dim_compare(fa[i], fb[j]) <= 0) ? fa[i++] : fb[j++];
    return node(table, DIM_PRODUCT, 0, n, merged, NULL);
}

/* Adds x * (constant, then terms of b) to the sum; *failed when memory ran out. */
static bool put_multiple(struct dim_table *table, struct linear *sum, const struct dim *term,
                         int64_t coefficient, const struct linear *b, bool *failed)
{
    int64_t c;
    if (!i64_mul(coefficient, b->constant, &c) || !linear_put(sum, term, c))
        return false;
    for (uint32_t i = 0; i < b->n; i++) {
        const struct dim *product = mul_terms(table, term, b->terms[i]);
        if (!product) {
            *failed = true;
            return false;
        }
        if (!i64_mul(coefficient, b->coefficients[i], &c) || !linear_put(sum, product, c))
            return false;
    }
    return true;
}

const struct dim *dim_mul(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    if (!a || !b)
        return NULL;
    struct linear x, y, sum = {.n = 0};
    bool failed = false;
    linear_of(a, &x);
    linear_of(b, &y);
    if ((size_t)x.n * y.n > (size_t)4 * DIM_MAX_TERMS ||
        !i64_mul(x.constant, y.constant, &sum.constant))
        return unknown(table);
    for (uint32_t i = 0; i < y.n; i++) {
        int64_t c;
        if (!i64_mul(x.constant, y.coefficients[i], &c) || !linear_put(&sum, y.terms[i], c))
            return unknown(table);
    }
    for (uint32_t i = 0; i < x.n; i++)
        if (!put_multiple(table, &sum, x.terms[i], x.coefficients[i], &y, &failed))
            return failed ? NULL : unknown(table);
    return linear_build(table, &sum);
}

/* ---- Quotients ------------------------------------------------------------------------------------ */

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
    struct linear rest = {.constant = floor_remainder(sum->constant, c)};
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

/* floor(sum / c) for c > 0. The one form of a quotient by a constant; ceil(x / c) is (x + c-1) / c. */
static const struct dim *div_linear(struct dim_table *table, struct linear *rest, int64_t c)
{
    struct linear total = {.constant = 0}, quotient;
    do {
        split_multiples(rest, c, &quotient);
        if (!i64_add(total.constant, quotient.constant, &total.constant))
            return unknown(table);
        for (uint32_t i = 0; i < quotient.n; i++)
            if (!linear_put(&total, quotient.terms[i], quotient.coefficients[i]))
                return unknown(table);
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
    const struct dim *atom = binary(table, up ? DIM_CEILDIV : DIM_FLOORDIV,
                                    linear_build(table, rest), dim_const(table, c));
    if (!atom)
        return NULL;
    return linear_put(&total, atom, 1) ? linear_build(table, &total) : unknown(table);
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
    uint32_t nt = factors_of(&term, &ft), nb = factors_of(&by->terms[0], &fb), j = 0;
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

/* Takes out of `sum` what the monomial `by` divides; false when memory runs out or *limit is set. */
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
        term = n_left == 1 ? left[0] : node(table, DIM_PRODUCT, 0, n_left, left, NULL);
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
 * What a division by something that is not a constant leaves: *quotient is what divides exactly, *rest
 * the remaining numerator. false when memory runs out.
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
        return binary(table, kind, a, b); /* 0, or next to overflow */
    }
    const struct dim *quotient, *rest;
    if (!divide_symbolic(table, a, b, &quotient, &rest))
        return NULL;
    return dim_is(rest, 0) ? quotient : dim_add(table, quotient, binary(table, kind, rest, b));
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
    struct linear rest = {.constant = floor_remainder(sum->constant, c)};
    for (uint32_t i = 0; i < sum->n; i++) {
        int64_t r = floor_remainder(sum->coefficients[i], c);
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
        value = binary(table, DIM_MOD, numerator, dim_const(table, c));
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
        return reduces ? mod_linear(table, &sum, c) : binary(table, DIM_MOD, a, b);
    }
    const struct dim *quotient, *rest;
    if (!divide_symbolic(table, a, b, &quotient, &rest))
        return NULL;
    return dim_is(rest, 0) ? rest : binary(table, DIM_MOD, rest, b);
}

/* ---- Minimum and maximum -------------------------------------------------------------------------- */

/* Proves a <= b in every run; false when it cannot tell. */
static bool at_most(const struct dim *a, const struct dim *b, int steps)
{
    struct linear difference;
    int64_t low = INT64_MIN, high;
    linear_of(b, &difference);
    if (linear_add(&difference, a, -1))
        linear_bounds(&difference, &low, &high);
    if (low >= 0)
        return true;
    if (steps == 0)
        return false;
    for (uint32_t i = 0; a->kind == DIM_MIN && i < a->n_terms; i++)
        if (at_most(a->terms[i], b, steps - 1))
            return true;
    for (uint32_t i = 0; b->kind == DIM_MAX && i < b->n_terms; i++)
        if (at_most(a, b->terms[i], steps - 1))
            return true;
    return false;
}

/* `a` makes `b` superfluous. */
static bool beats(enum dim_kind kind, const struct dim *a, const struct dim *b)
{
    return kind == DIM_MIN ? at_most(a, b, 1) : at_most(b, a, 1);
}

/* Adds one argument in canonical order unless others beat it; false when there are too many. */
static bool put_argument(enum dim_kind kind, const struct dim **kept, uint32_t *n,
                         const struct dim *arg)
{
    uint32_t left = 0, at = 0;
    for (uint32_t i = 0; i < *n; i++)
        if (beats(kind, kept[i], arg))
            return true;
    for (uint32_t i = 0; i < *n; i++)
        if (!beats(kind, arg, kept[i]))
            kept[left++] = kept[i];
    if (left == DIM_MAX_ARGUMENTS)
        return false;
    while (at < left && dim_compare(kept[at], arg) < 0)
        at++;
    memmove(&kept[at + 1], &kept[at], (left - at) * sizeof *kept);
    kept[at] = arg;
    *n = left + 1;
    return true;
}

static const struct dim *extremum(struct dim_table *table, enum dim_kind kind, const struct dim *a,
                                  const struct dim *b)
{
    if (!a || !b)
        return NULL;
    const struct dim *kept[DIM_MAX_ARGUMENTS], *sides[] = {a, b};
    uint32_t n = 0;
    for (int side = 0; side < 2; side++) {
        bool nested = sides[side]->kind == kind;
        const struct dim *const *args = nested ? sides[side]->terms : &sides[side];
        for (uint32_t i = 0; i < (nested ? sides[side]->n_terms : 1); i++)
            if (!put_argument(kind, kept, &n, args[i]))
                return unknown(table);
    }
    return n == 1 ? kept[0] : node(table, kind, 0, n, kept, NULL);
}

const struct dim *dim_min(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    return extremum(table, DIM_MIN, a, b);
}

const struct dim *dim_max(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    return extremum(table, DIM_MAX, a, b);
}
