/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolic dims: integer expressions over symbols, hash-consed in one table per graph, so that
 * equal expressions are the same pointer. Sums and products are kept in one canonical polynomial
 * form (N + N is 2*N, (N+1)*2 is 2*N + 2, N*M is M*N), so == decides most equalities that hold.
 *
 * A symbol is a dim_param of the model (one global scope, "N") or fresh, for a size that only a run
 * can tell. Symbols are sizes, so they count as non-negative; expressions can be negative (a
 * difference, a shape operand of Reshape). Arithmetic that would overflow int64, or an expression
 * that grows beyond DIM_MAX_TERMS, DIM_MAX_DEPTH or DIM_MAX_SIZE, gives a fresh symbol with the
 * hint "any", never a wrong number; symbols with that hint may be negative too.
 *
 * Divisors count as non-zero: N*M / N is M.
 *
 * Every maker returns NULL only when memory runs out, and takes such a NULL as an operand, so that
 * a caller checks once. Not thread-safe.
 */
#ifndef TSSA_IR_DIM_H
#define TSSA_IR_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/text.h"

enum dim_kind {
    DIM_CONST,    /* value */
    DIM_SYMBOL,   /* name, id */
    DIM_SUM,      /* value + sum of coefficient[i] * term[i]; terms are not sums or constants */
    DIM_PRODUCT,  /* product of terms, none of them a constant, a sum or a product */
    DIM_FLOORDIV, /* term[0] / term[1], rounded towards -infinity */
    DIM_CEILDIV,
    DIM_MOD, /* sign of the divisor, as Python's % */
    DIM_MIN,
    DIM_MAX
};

#define DIM_MAX_TERMS 64 /* of a sum or product; DIM_MAX_ARGUMENTS of a min or max */
#define DIM_MAX_ARGUMENTS 16
#define DIM_MAX_DEPTH 32
#define DIM_MAX_SIZE 512 /* nodes, shared ones counted every time */

/*
 * No axis is longer than this, and no loop runs more often, in any run that is reckoned with where
 * integers could wrap: a dim fits in an int32, and the product of two in an int64 (ir/wrap.h).
 * Nowhere else are dims bounded.
 */
#define DIM_SIZE_LIMIT INT32_MAX

struct dim {
    enum dim_kind kind;
    uint32_t id;         /* creation order; the order of terms is structural, see dim_compare */
    int64_t value;       /* of a symbol: 0, or the number of a fresh one */
    int64_t low, high;   /* bounds that hold in every run; INT64_MIN and INT64_MAX: none known */
    int64_t least, most; /* the same, of runs in which no size exceeds DIM_SIZE_LIMIT */
    const char *name;    /* of a fresh symbol: "nonzero#3" */
    uint16_t depth, size;
    uint32_t n_terms;
    const struct dim *const *terms;
    const int64_t *coefficients;
};

struct dim_table {
    struct arena *arena;
    struct map nodes; /* structural key -> struct dim */
    uint32_t n_dims, n_fresh;
};

void dim_table_init(struct dim_table *table, struct arena *arena);
void dim_table_free(struct dim_table *table);
/* A table of the same dims, which it shares; what is made in it is its own, and lives in `arena`.
 * `copy` is initialized, and in any case to be freed. False when memory runs out. */
bool dim_table_copy(struct dim_table *copy, const struct dim_table *table, struct arena *arena);

const struct dim *dim_const(struct dim_table *table, int64_t value);
const struct dim *dim_symbol(struct dim_table *table, const char *name);
/* A new symbol; `hint` becomes part of its printed name ("nonzero" -> "nonzero#3"), which no
 * model's dim_param can equal because '#' is quoted there. */
const struct dim *dim_fresh(struct dim_table *table, const char *hint);
/* The same, when bounds are known that hold in every run (a count of elements is at most their
 * number). */
const struct dim *dim_fresh_between(struct dim_table *table, const char *hint, int64_t low,
                                    int64_t high);
/* The fresh symbol of a given number, for the IR parser: made when it is not there yet. */
const struct dim *dim_fresh_numbered(struct dim_table *table, const char *hint, uint32_t number);
const struct dim *dim_add(struct dim_table *table, const struct dim *a, const struct dim *b);
const struct dim *dim_sub(struct dim_table *table, const struct dim *a, const struct dim *b);
const struct dim *dim_mul(struct dim_table *table, const struct dim *a, const struct dim *b);
const struct dim *dim_floordiv(struct dim_table *table, const struct dim *a, const struct dim *b);
const struct dim *dim_ceildiv(struct dim_table *table, const struct dim *a, const struct dim *b);
const struct dim *dim_mod(struct dim_table *table, const struct dim *a, const struct dim *b);
const struct dim *dim_min(struct dim_table *table, const struct dim *a, const struct dim *b);
const struct dim *dim_max(struct dim_table *table, const struct dim *a, const struct dim *b);
/* Replaces a symbol everywhere in `dim`. */
const struct dim *dim_substitute(struct dim_table *table, const struct dim *dim,
                                 const struct dim *symbol, const struct dim *by);

/* value = *at_zero + *factor * symbol in every run, and neither of the two depends on the symbol;
 * false: it is not of this form, or memory ran out. */
bool dim_affine(struct dim_table *table, const struct dim *value, const struct dim *symbol,
                const struct dim **factor, const struct dim **at_zero);

/*
 * The canonical order of terms: by structure and names, so that it survives printing and parsing.
 */
int dim_compare(const struct dim *a, const struct dim *b);

static inline bool dim_is_fresh(const struct dim *dim)
{
    return dim->kind == DIM_SYMBOL && dim->value != 0;
}

/* true and *value when the dim is a constant. */
static inline bool dim_is_const(const struct dim *dim, int64_t *value)
{
    if (!dim || dim->kind != DIM_CONST)
        return false;
    *value = dim->value;
    return true;
}

/* Is the dim this number in every run? */
static inline bool dim_is(const struct dim *dim, int64_t value)
{
    return dim && dim->kind == DIM_CONST && dim->value == value;
}

/* Is the dim proven to be no less in every run? */
static inline bool dim_at_least(const struct dim *dim, int64_t value)
{
    return dim && dim->low >= value;
}

/* Is `dim` the same number as `to` in every run, or 1? It is, too, where it is min(1, to), the
 * length of the first row of `to` rows: 0 of 0 rows, else 1. */
bool dim_broadcasts(const struct dim *dim, const struct dim *to);

/*
 * The value under `lookup` (false for a symbol it does not know); false on overflow, division by 0.
 */
typedef bool (*dim_lookup)(void *context, const struct dim *symbol, int64_t *value);
bool dim_eval(const struct dim *dim, dim_lookup lookup, void *context, int64_t *value);
/* The same where `lookup` may know the value of an expression, as a shape tells min(N, 1000), and
 * not that of its symbols: it is asked for each part, the whole first. */
bool dim_eval_parts(const struct dim *dim, dim_lookup lookup, void *context, int64_t *value);

/* "2*N + 1", "ceildiv(N, 3)", "min(N, 1000)"; and back. Symbols that are not identifiers are
 * quoted. */
void dim_print(const struct dim *dim, struct text *text);

#endif
