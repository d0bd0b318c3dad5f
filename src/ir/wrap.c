/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/wrap.h"

#include "base/dtype.h"
#include "ir/dim_range.h"

/* ---- Elements of one tensor ------------------------------------------------------------------ */

#define MAX_TYPES 4096 /* that are looked through for a product, the newest first */

/* A sum that is not less than `factor`: it is one of its terms, and nothing is taken away. */
static bool is_sum_with(const struct dim *dim, const struct dim *factor)
{
    bool found = false;
    if (dim->kind != DIM_SUM || dim->value < 0)
        return false;
    for (uint32_t i = 0; i < dim->n_terms; i++) {
        if (dim->coefficients[i] < 0 || dim->terms[i]->low < 0)
            return false;
        found |= dim->terms[i] == factor;
    }
    return found;
}

/*
 * Takes the factor out of an axis that nothing was taken from yet; an axis may be a product itself.
 */
static bool take(const struct dim *dim, const struct dim *factor, uint64_t *taken)
{
    bool product = dim->kind == DIM_PRODUCT;
    uint32_t n = product ? dim->n_terms : 1;
    for (uint32_t i = 0; i < n; i++) {
        const struct dim *have = product ? dim->terms[i] : dim;
        if ((*taken >> i & 1) || !(have == factor || is_sum_with(have, factor)))
            continue;
        *taken |= (uint64_t)1 << i;
        return true;
    }
    return false;
}

/* Is the product at most the number of elements of a tensor of this type? */
static bool counts_in(const struct ir_type *type, const struct dim *product)
{
    uint64_t taken[TSSA_MAX_RANK] = {0};
    for (uint32_t f = 0; f < product->n_terms; f++) {
        int i = 0;
        while (i < type->rank && !take(type->dims[i], product->terms[f], &taken[i]))
            i++;
        if (i == type->rank)
            return false;
    }
    return true;
}

static bool counts_elements(const struct ir_graph *graph, const struct dim *product)
{
    const struct ir_type *type = graph->types.newest;
    for (int n = 0; type && n < MAX_TYPES; n++, type = type->older)
        if (counts_in(type, product))
            return true;
    return false;
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

/* Products of two sizes need no tensor. */
static struct range range_of_term(const struct ir_graph *graph, const struct dim *term)
{
    struct range range = range_of(term, RANGE_ON_MACHINES);
    if (term->kind == DIM_PRODUCT && range.low >= 0 && range.high > WRAP_MAX_ELEMENTS &&
        counts_elements(graph, term))
        range.high = WRAP_MAX_ELEMENTS;
    return range;
}

struct range wrap_bounds(const struct ir_graph *graph, const struct dim *dim)
{
    struct range range = range_of_term(graph, dim);
    if (dim->kind != DIM_SUM || (range.low != INT64_MIN && range.high != INT64_MAX))
        return range;
    range = (struct range){dim->value, dim->value};
    for (uint32_t i = 0; i < dim->n_terms; i++)
        range = range_add(range,
                          range_scale(range_of_term(graph, dim->terms[i]), dim->coefficients[i]));
    return range;
}

/* Does any number stand in the dim, one that only a run can tell? */
static bool holds_any(const struct dim *dim)
{
    if (dim->kind == DIM_SYMBOL)
        return dim->low == INT64_MIN && dim->high == INT64_MAX;
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (holds_any(dim->terms[i]))
            return true;
    return false;
}

bool wrap_never_as_index(const struct ir_graph *graph, const struct dim *dim)
{
    struct range rest = {0, 0};
    if (dim->kind != DIM_SUM) {
        rest = holds_any(dim) ? rest : wrap_bounds(graph, dim);
    } else {
        rest.low = rest.high = dim->value;
        for (uint32_t i = 0; i < dim->n_terms; i++)
            if (!holds_any(dim->terms[i]))
                rest = range_add(
                    rest, range_scale(range_of_term(graph, dim->terms[i]), dim->coefficients[i]));
    }
    return rest.low >= -WRAP_INDEX_REST && rest.high <= WRAP_INDEX_REST;
}

bool wrap_limits(tssa_dtype dtype, int64_t *low, int64_t *high)
{
    int bits = dtype_info(dtype)->file_bits;
    *low = 0;
    *high = 1;
    if (dtype == TSSA_BOOL)
        return true;
    if (!dtype_is_integer(dtype))
        return false;
    if (dtype_info(dtype)->cls == DTYPE_CLASS_SIGNED) {
        *high = (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
        *low = -*high - 1;
    } else {
        *high = bits == 64 ? INT64_MAX : (int64_t)((UINT64_C(1) << bits) - 1);
    }
    return true;
}

bool wrap_never_within(tssa_dtype dtype, struct range range)
{
    int64_t low, high;
    return wrap_limits(dtype, &low, &high) && range.low >= low && range.high <= high &&
           range.low != INT64_MIN && range.high != INT64_MAX;
}

bool wrap_never(const struct ir_graph *graph, tssa_dtype dtype, const struct dim *dim)
{
    int64_t low, high;
    if (dim->kind != DIM_CONST)
        return wrap_never_within(dtype, wrap_bounds(graph, dim));
    return wrap_limits(dtype, &low, &high) && dim->value >= low && dim->value <= high;
}
