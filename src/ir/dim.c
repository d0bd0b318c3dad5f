/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making dims. Every expression is brought to the form
 *
 *     constant + sum of coefficient * product of atoms
 *
 * where an atom is a symbol, a division, a remainder, a minimum or a maximum of such expressions.
 * The same value built in two ways is then usually the same node. Rebuilding a node from its own
 * terms gives the node itself: substitution and the IR parser rely on it.
 */
#include "ir/dim.h"

#include <stdio.h>
#include <string.h>

#include "ir/dim_linear.h"
#include "ir/dim_range.h"
#include "ir/quote.h"

void dim_table_init(struct dim_table *table, struct arena *arena)
{
    *table = (struct dim_table){.arena = arena};
    map_init(&table->nodes, arena->allocator);
}

void dim_table_free(struct dim_table *table)
{
    map_free(&table->nodes);
}

bool dim_table_copy(struct dim_table *copy, const struct dim_table *table, struct arena *arena)
{
    copy->arena = arena;
    copy->n_dims = table->n_dims;
    copy->n_fresh = table->n_fresh;
    return map_copy(&copy->nodes, &table->nodes);
}

/* ---- Order ----------------------------------------------------------------------------------- */

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

/* ---- Bounds ---------------------------------------------------------------------------------- */

void linear_bounds(const struct linear *sum, int64_t *low, int64_t *high)
{
    struct range range =
        range_of_sum(sum->constant, sum->n, sum->terms, sum->coefficients, RANGE_ALWAYS);
    *low = range.low;
    *high = range.high;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

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

/* Symbols have keys of text: 'N' and the name, or 'F' and the name of a fresh one. The bounds are
 * those of a new one. */
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

const struct dim *dim_unknown(struct dim_table *table)
{
    return dim_fresh(table, "any");
}

const struct dim *dim_node(struct dim_table *table, enum dim_kind kind, int64_t value, uint32_t n,
                           const struct dim *const *terms, const int64_t *coefficients)
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
        return dim_unknown(table);
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

const struct dim *dim_binary(struct dim_table *table, enum dim_kind kind, const struct dim *a,
                             const struct dim *b)
{
    return a && b ? dim_node(table, kind, 0, 2, (const struct dim *const[]){a, b}, NULL) : NULL;
}

const struct dim *dim_const(struct dim_table *table, int64_t value)
{
    return dim_node(table, DIM_CONST, value, 0, NULL, NULL);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

void linear_of(const struct dim *dim, struct linear *sum)
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

const struct dim *linear_build(struct dim_table *table, const struct linear *sum)
{
    if (sum->n == 0)
        return dim_const(table, sum->constant);
    if (sum->n == 1 && sum->constant == 0 && sum->coefficients[0] == 1)
        return sum->terms[0];
    return dim_node(table, DIM_SUM, sum->constant, sum->n, sum->terms, sum->coefficients);
}

bool linear_put(struct linear *sum, const struct dim *term, int64_t coefficient)
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
    return linear_add(&sum, b, factor) ? linear_build(table, &sum) : dim_unknown(table);
}

const struct dim *dim_add(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    return add_scaled(table, a, b, 1);
}

const struct dim *dim_sub(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    return add_scaled(table, a, b, -1);
}

/* ---- Products -------------------------------------------------------------------------------- */

uint32_t dim_factors(const struct dim *const *term, const struct dim *const **factors)
{
    *factors = (*term)->kind == DIM_PRODUCT ? (*term)->terms : term;
    return (*term)->kind == DIM_PRODUCT ? (*term)->n_terms : 1;
}

/* The product of two terms that are no sums and no constants. */
static const struct dim *mul_terms(struct dim_table *table, const struct dim *a,
                                   const struct dim *b)
{
    const struct dim *const *fa, *const *fb, *merged[DIM_MAX_TERMS];
    uint32_t na = dim_factors(&a, &fa), nb = dim_factors(&b, &fb), n = 0;
    if (na + nb > DIM_MAX_TERMS)
        return dim_unknown(table);
    for (uint32_t i = 0, j = 0; i < na || j < nb;)
        merged[n++] = j == nb || (i < na && dim_compare(fa[i], fb[j]) <= 0) ? fa[i++] : fb[j++];
    return dim_node(table, DIM_PRODUCT, 0, n, merged, NULL);
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
        return dim_unknown(table);
    for (uint32_t i = 0; i < y.n; i++) {
        int64_t c;
        if (!i64_mul(x.constant, y.coefficients[i], &c) || !linear_put(&sum, y.terms[i], c))
            return dim_unknown(table);
    }
    for (uint32_t i = 0; i < x.n; i++)
        if (!put_multiple(table, &sum, x.terms[i], x.coefficients[i], &y, &failed))
            return failed ? NULL : dim_unknown(table);
    return linear_build(table, &sum);
}

/* ---- Minimum and maximum --------------------------------------------------------------------- */

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
                return dim_unknown(table);
    }
    return n == 1 ? kept[0] : dim_node(table, kind, 0, n, kept, NULL);
}

const struct dim *dim_min(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    return extremum(table, DIM_MIN, a, b);
}

const struct dim *dim_max(struct dim_table *table, const struct dim *a, const struct dim *b)
{
    return extremum(table, DIM_MAX, a, b);
}

bool dim_broadcasts(const struct dim *dim, const struct dim *to)
{
    return dim == to || dim_is(dim, 1) ||
           (dim->kind == DIM_MIN && dim->n_terms == 2 &&
            ((dim_is(dim->terms[0], 1) && dim->terms[1] == to) ||
             (dim_is(dim->terms[1], 1) && dim->terms[0] == to)));
}
