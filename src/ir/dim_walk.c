/* SPDX-License-Identifier: Apache-2.0 */
/* Reading dims: evaluation, substitution, printing. Depth and size are bounded when dims are made,
 * so these recurse. */
#include <inttypes.h>
#include <string.h>

#include "ir/dim.h"
#include "ir/quote.h"

/* ---- Evaluation ------------------------------------------------------------------------------ */

static bool divide(enum dim_kind kind, int64_t a, int64_t b, int64_t *value)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    int64_t q = a / b, r = a % b;
    bool negative = (a < 0) != (b < 0);
    if (kind == DIM_MOD)
        *value = r != 0 && negative ? r + b : r;
    else if (kind == DIM_FLOORDIV)
        *value = q - (r != 0 && negative);
    else
        *value = q + (r != 0 && !negative);
    return true;
}

/* One more term of a sum, a product, a minimum or a maximum. */
static bool accumulate(const struct dim *dim, uint32_t i, int64_t term, int64_t *value)
{
    switch (dim->kind) {
    case DIM_SUM:
        return i64_mul(term, dim->coefficients[i], &term) && i64_add(*value, term, value);
    case DIM_PRODUCT:
        return i64_mul(*value, term, value);
    case DIM_MIN:
        *value = i == 0 || term < *value ? term : *value;
        return true;
    default:
        *value = i == 0 || term > *value ? term : *value;
        return true;
    }
}

/* `of_parts`: `lookup` may know more than symbols. */
static bool evaluate(const struct dim *dim, bool of_parts, dim_lookup lookup, void *context,
                     int64_t *value)
{
    int64_t a, b, result = dim->kind == DIM_PRODUCT ? 1 : dim->value;
    if (of_parts && dim->kind != DIM_CONST && lookup(context, dim, value))
        return true;
    switch (dim->kind) {
    case DIM_CONST:
        *value = dim->value;
        return true;
    case DIM_SYMBOL:
        return !of_parts && lookup(context, dim, value);
    case DIM_FLOORDIV:
    case DIM_CEILDIV:
    case DIM_MOD:
        return evaluate(dim->terms[0], of_parts, lookup, context, &a) &&
               evaluate(dim->terms[1], of_parts, lookup, context, &b) &&
               divide(dim->kind, a, b, value);
    default:
        break;
    }
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (!evaluate(dim->terms[i], of_parts, lookup, context, &a) ||
            !accumulate(dim, i, a, &result))
            return false;
    *value = result;
    return true;
}

bool dim_eval(const struct dim *dim, dim_lookup lookup, void *context, int64_t *value)
{
    return evaluate(dim, false, lookup, context, value);
}

bool dim_eval_parts(const struct dim *dim, dim_lookup lookup, void *context, int64_t *value)
{
    return evaluate(dim, true, lookup, context, value);
}

/* ---- Substitution ---------------------------------------------------------------------------- */

typedef const struct dim *(*dim_maker)(struct dim_table *, const struct dim *, const struct dim *);

const struct dim *dim_substitute(struct dim_table *table, const struct dim *dim,
                                 const struct dim *symbol, const struct dim *by)
{
    static const dim_maker makers[] = {
        [DIM_SUM] = dim_add,         [DIM_PRODUCT] = dim_mul, [DIM_FLOORDIV] = dim_floordiv,
        [DIM_CEILDIV] = dim_ceildiv, [DIM_MOD] = dim_mod,     [DIM_MIN] = dim_min,
        [DIM_MAX] = dim_max};
    if (!dim || !by)
        return NULL;
    if (dim == symbol)
        return by;
    if (dim->kind == DIM_CONST || dim->kind == DIM_SYMBOL)
        return dim;
    bool same = true;
    const struct dim *result = dim->kind == DIM_SUM ? dim_const(table, dim->value) : NULL;
    for (uint32_t i = 0; i < dim->n_terms; i++) {
        const struct dim *term = dim_substitute(table, dim->terms[i], symbol, by);
        same = same && term == dim->terms[i];
        if (dim->kind == DIM_SUM)
            term = dim_mul(table, term, dim_const(table, dim->coefficients[i]));
        result = i == 0 && dim->kind != DIM_SUM ? term : makers[dim->kind](table, result, term);
        if (!result)
            return NULL;
    }
    return same ? dim : result;
}

bool dim_affine(struct dim_table *table, const struct dim *value, const struct dim *symbol,
                const struct dim **factor, const struct dim **at_zero)
{
    *at_zero = dim_substitute(table, value, symbol, dim_const(table, 0));
    *factor = dim_sub(table, dim_substitute(table, value, symbol, dim_const(table, 1)), *at_zero);
    return *factor && value == dim_add(table, *at_zero, dim_mul(table, *factor, symbol));
}

/* ---- Printing -------------------------------------------------------------------------------- */

static const char *const function_names[] = {[DIM_FLOORDIV] = "floordiv",
                                             [DIM_CEILDIV] = "ceildiv",
                                             [DIM_MOD] = "mod",
                                             [DIM_MIN] = "min",
                                             [DIM_MAX] = "max"};

static void print_symbol(const struct dim *dim, struct text *text)
{
    bool reserved = false;
    for (int kind = DIM_FLOORDIV; kind <= DIM_MAX; kind++)
        reserved = reserved || strcmp(dim->name, function_names[kind]) == 0;
    if (dim_is_fresh(dim))
        text_puts(text, dim->name);
    else if (reserved)
        ir_print_quoted(text, dim->name, strlen(dim->name));
    else
        ir_print_name(text, dim->name);
}

/*
 * " + 3", " - 3", or "3", "-3" at the beginning; the magnitude is left out when it is 1 and `hide`.
 */
static void print_signed(struct text *text, bool first, int64_t value, bool hide)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    text_puts(text, first ? (value < 0 ? "-" : "") : value < 0 ? " - " : " + ");
    if (magnitude != 1 || !hide)
        text_printf(text, "%" PRIu64, magnitude);
}

static void print_sum(const struct dim *dim, struct text *text)
{
    for (uint32_t i = 0; i < dim->n_terms; i++) {
        int64_t c = dim->coefficients[i];
        print_signed(text, i == 0, c, true);
        if (c != 1 && c != -1)
            text_putc(text, '*');
        dim_print(dim->terms[i], text);
    }
    if (dim->value != 0)
        print_signed(text, false, dim->value, false);
}

void dim_print(const struct dim *dim, struct text *text)
{
    switch (dim->kind) {
    case DIM_CONST:
        text_printf(text, "%" PRId64, dim->value);
        return;
    case DIM_SYMBOL:
        print_symbol(dim, text);
        return;
    case DIM_SUM:
        print_sum(dim, text);
        return;
    case DIM_PRODUCT:
        for (uint32_t i = 0; i < dim->n_terms; i++) {
            text_puts(text, i ? "*" : "");
            dim_print(dim->terms[i], text);
        }
        return;
    default:
        text_printf(text, "%s(", function_names[dim->kind]);
        for (uint32_t i = 0; i < dim->n_terms; i++) {
            text_puts(text, i ? ", " : "");
            dim_print(dim->terms[i], text);
        }
        text_putc(text, ')');
    }
}
