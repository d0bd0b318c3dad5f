/* SPDX-License-Identifier: Apache-2.0 */
/* What is proven about regions: equality, cover, overlap, affinity. */
#include <string.h>

#include "ir/region.h"

/* ---- Dims ------------------------------------------------------------------------------------ */

static struct dim_table *table_of(const struct region_space *space)
{
    return &space->graph->dims;
}

static bool proven_le(struct region_space *space, const struct dim *a, const struct dim *b)
{
    return dim_at_least(dim_sub(table_of(space), b, a), 0);
}

static bool proven_lt(struct region_space *space, const struct dim *a, const struct dim *b)
{
    return dim_at_least(dim_sub(table_of(space), b, a), 1);
}

static bool is_proven_empty(const struct dim *count)
{
    return count->high <= 0;
}

/* true when a symbol occurs for which `is` holds; deep, but dims are small (DIM_MAX_SIZE). */
static bool holds_symbol(const struct dim *dim, bool (*is)(const void *context, const struct dim *),
                         const void *context)
{
    if (dim->kind == DIM_SYMBOL)
        return is(context, dim);
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (holds_symbol(dim->terms[i], is, context))
            return true;
    return false;
}

static bool is_this(const void *symbol, const struct dim *dim)
{
    return symbol == dim;
}

bool region_affine(struct region_space *space, const struct dim *dim, const struct dim *symbol,
                   int64_t *factor, const struct dim **rest)
{
    struct dim_table *table = table_of(space);
    /* f(i) - f(0) must be factor * i, and f(1) - f(0) is the factor. */
    const struct dim *zero = dim_const(table, 0), *one = dim_const(table, 1);
    *rest = dim_substitute(table, dim, symbol, zero);
    const struct dim *slope = dim_sub(table, dim_substitute(table, dim, symbol, one), *rest);
    if (!*rest || holds_symbol(*rest, is_this, symbol) || !dim_is_const(slope, factor))
        return false;
    return dim_add(table, dim_mul(table, slope, symbol), *rest) == dim;
}

/* ---- Invariance ------------------------------------------------------------------------------ */

static bool is_inside(const struct ir_value *value, const struct ir_block *block)
{
    const struct ir_block *at = value->op ? value->op->parent : value->block;
    while (at && at != block)
        at = at->owner ? at->owner->parent : NULL;
    return at == block;
}

struct invariance {
    const struct region_space *space;
    const struct ir_block *block;
};

static bool in_type(const struct ir_type *type, const struct dim *symbol)
{
    for (int i = 0; type->kind == TYPE_TENSOR && i < type->rank; i++)
        if (holds_symbol(type->dims[i], is_this, symbol))
            return true;
    return false;
}

static bool is_operand_dim(const struct ir_op *op, const struct dim *symbol)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].value && in_type(op->operands[i].value->type, symbol))
            return true;
    return false;
}

/*
 * May a symbol be another number in each iteration? A name of the model's is one number in a run.
 */
static bool varies(const void *context, const struct dim *symbol)
{
    const struct invariance *query = context;
    if (!dim_is_fresh(symbol))
        return false;
    const struct ir_value *value = map_get(&query->space->symbols, &symbol->id, sizeof symbol->id);
    if (value)
        return is_inside(value, query->block);
    const struct ir_op *owner = query->block->owner;
    return !owner || !is_operand_dim(owner, symbol);
}

bool region_invariant(const struct region_space *space, const struct dim *dim,
                      const struct ir_block *block)
{
    const struct invariance query = {space, block};
    return dim && !holds_symbol(dim, varies, &query);
}

/* ---- Progressions ---------------------------------------------------------------------------- */

/* The lowest and the highest coordinate of an axis that is not empty. */
static const struct dim *extent(struct region_space *space, const struct region_axis *axis)
{
    struct dim_table *table = table_of(space);
    int64_t step = axis->step < 0 ? -axis->step : axis->step;
    return dim_mul(table, dim_sub(table, axis->count, dim_const(table, 1)), dim_const(table, step));
}

static const struct dim *lowest(struct region_space *space, const struct region_axis *axis)
{
    return axis->step > 0 ? axis->start
                          : dim_sub(table_of(space), axis->start, extent(space, axis));
}

static const struct dim *highest(struct region_space *space, const struct region_axis *axis)
{
    return axis->step < 0 ? axis->start
                          : dim_add(table_of(space), axis->start, extent(space, axis));
}

static int64_t stride_of(const struct region_axis *axis)
{
    if (dim_is(axis->count, 1))
        return 0; /* any */
    return axis->step < 0 ? -axis->step : axis->step;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Is a - b proven to be no multiple of `modulus`? */
static bool proven_apart(struct region_space *space, const struct dim *a, const struct dim *b,
                         int64_t modulus)
{
    const struct dim *apart = dim_sub(table_of(space), a, b);
    int64_t value;
    if (!apart || modulus == 1)
        return false;
    if (dim_is_const(apart, &value))
        return modulus == 0 ? value != 0 : value % modulus != 0;
    if (modulus == 0)
        return apart->low > 0 || apart->high < 0;
    if (apart->kind != DIM_SUM || apart->value % modulus == 0)
        return false;
    for (uint32_t i = 0; i < apart->n_terms; i++)
        if (apart->coefficients[i] % modulus != 0)
            return false;
    return true;
}

static bool axes_disjoint(struct region_space *space, const struct region_axis *a,
                          const struct region_axis *b)
{
    return proven_lt(space, highest(space, a), lowest(space, b)) ||
           proven_lt(space, highest(space, b), lowest(space, a)) ||
           proven_apart(space, a->start, b->start, gcd(stride_of(a), stride_of(b)));
}

static bool axis_is_whole(const struct region *region, int i)
{
    const struct region_axis *axis = &region->axes[i];
    return axis->exact && (axis->step == 1 || axis->step == -1) && axis->count == region->base[i];
}

/* Is every coordinate of b one of a? */
static bool axis_covers(struct region_space *space, const struct region *a, const struct region *b,
                        int i)
{
    const struct region_axis *x = &a->axes[i], *y = &b->axes[i];
    if (axis_is_whole(a, i))
        return true;
    if (!x->exact)
        return false;
    if (x->start == y->start && x->step == y->step && proven_le(space, y->count, x->count))
        return true;
    int64_t step = x->step < 0 ? -x->step : x->step, inner = stride_of(y);
    if (inner % step != 0)
        return false;
    if (step != 1) { /* on the same lattice? */
        const struct dim *apart = dim_sub(table_of(space), x->start, y->start);
        const struct dim *rest = dim_mod(table_of(space), apart, dim_const(table_of(space), step));
        if (!dim_is(rest, 0))
            return false;
    }
    return proven_le(space, lowest(space, x), lowest(space, y)) &&
           proven_le(space, highest(space, y), highest(space, x));
}

/* ---- Regions --------------------------------------------------------------------------------- */

bool region_is_empty(const struct region *region)
{
    for (int i = 0; i < region->rank; i++)
        if (is_proven_empty(region->dims[i]))
            return true;
    for (int i = 0; i < region->base_rank; i++)
        if (is_proven_empty(region->axes[i].count))
            return true;
    return false;
}

static bool holds_something(const struct region *region)
{
    for (int i = 0; i < region->rank; i++)
        if (region->dims[i]->low < 1)
            return false;
    return region->rank >= 0;
}

/* Regions of the same base: equal shapes are all that can be told here. */
static bool comparable(const struct region *a, const struct region *b)
{
    if (a->base_rank < 0 || a->base_rank != b->base_rank)
        return false;
    for (int i = 0; i < a->base_rank; i++)
        if (a->base[i] != b->base[i])
            return false;
    return true;
}

/* Is param p of two steps of one kind the same in every run? */
static bool same_param(struct region_space *space, const struct rule_step *x,
                       struct ir_value *const *params_x, const struct rule_step *y,
                       struct ir_value *const *params_y, uint32_t p)
{
    struct dim_table *table = table_of(space);
    const struct rule_param *s = &x->params[p], *t = &y->params[p];
    const struct ir_value *v = s->is_operand ? params_x[s->value] : NULL;
    const struct ir_value *w = t->is_operand ? params_y[t->value] : NULL;
    if (v == w && (v || s->value == t->value))
        return true;
    /* Index tensors and masks are compared as values only. */
    if (x->kind == RULE_GATHER || x->kind == RULE_MASK)
        return false;
    const struct dim *a = v ? region_scalar(space, v) : dim_const(table, s->value);
    return a && a == (w ? region_scalar(space, w) : dim_const(table, t->value));
}

uint32_t region_common_steps(struct region_space *space, const struct rule *a,
                             struct ir_value *const *params_a, const struct rule *b,
                             struct ir_value *const *params_b)
{
    uint32_t common = 0;
    for (; common < a->n_steps && common < b->n_steps; common++) {
        const struct rule_step *x = &a->steps[common], *y = &b->steps[common];
        if (x->kind != y->kind || x->n_params != y->n_params)
            return common;
        for (uint32_t p = 0; p < x->n_params; p++)
            if (!same_param(space, x, params_a, y, params_b, p))
                return common;
    }
    return common;
}

/* The same steps with the same params. */
static bool same_steps(struct region_space *space, const struct region *a, const struct region *b)
{
    return a->rule->n_steps == b->rule->n_steps &&
           region_common_steps(space, a->rule, a->params, b->rule, b->params) == a->rule->n_steps;
}

static bool same_dims(const struct region *a, const struct region *b)
{
    return a->rank == b->rank && a->rank >= 0 &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static bool same_mapping(const struct region *a, const struct region *b)
{
    if (!a->mapped || !b->mapped)
        return false;
    for (int i = 0; i < a->base_rank; i++) {
        const struct region_axis *x = &a->axes[i], *y = &b->axes[i];
        if (x->start != y->start || x->result != y->result ||
            (x->result >= 0 && x->step != y->step))
            return false;
    }
    return true;
}

static bool same_strides(const struct region *a, const struct region *b)
{
    if (!a->strided || !b->strided || a->offset != b->offset)
        return false;
    for (int i = 0; i < a->rank; i++) {
        int64_t dim;
        if (a->strides[i] != b->strides[i] && !(dim_is_const(a->dims[i], &dim) && dim <= 1))
            return false;
    }
    return true;
}

/* Strides that differ where it matters, all of it constant. */
static bool proven_different(struct region_space *space, const struct region *a,
                             const struct region *b)
{
    if (a->rank != b->rank)
        return a->rank >= 0 && b->rank >= 0;
    for (int i = 0; i < a->rank; i++)
        if (proven_apart(space, a->dims[i], b->dims[i], 0))
            return true;
    if (!a->strided || !b->strided || !holds_something(a) || !same_dims(a, b))
        return false;
    if (proven_apart(space, a->offset, b->offset, 0))
        return true;
    for (int i = 0; i < a->rank; i++)
        if (a->offset == b->offset && a->dims[i]->low >= 2 &&
            proven_apart(space, a->strides[i], b->strides[i], 0))
            return true;
    return false;
}

enum region_answer region_equal(struct region_space *space, const struct region *a,
                                const struct region *b)
{
    if (!comparable(a, b))
        return REGION_UNKNOWN;
    if (same_steps(space, a, b))
        return REGION_YES;
    if (same_dims(a, b) && (same_mapping(a, b) || same_strides(a, b)))
        return REGION_YES;
    return proven_different(space, a, b) ? REGION_NO : REGION_UNKNOWN;
}

enum region_answer region_covers(struct region_space *space, const struct region *a,
                                 const struct region *b)
{
    bool all = a->exact;
    if (region_is_empty(b))
        return REGION_YES;
    if (!comparable(a, b))
        return REGION_UNKNOWN;
    if (same_steps(space, a, b))
        return REGION_YES;
    for (int i = 0; i < a->base_rank && all; i++)
        all = axis_covers(space, a, b, i);
    if (all)
        return REGION_YES;
    if (!b->exact || !holds_something(b))
        return REGION_UNKNOWN;
    if (region_disjoint(space, a, b) == REGION_YES)
        return REGION_NO;
    for (int i = 0; i < a->base_rank; i++)
        if (proven_lt(space, a->axes[i].count, b->axes[i].count))
            return REGION_NO;
    return REGION_UNKNOWN;
}

/* Some coordinate of an axis in both? Both are exact, and hold something. */
static bool axes_meet(struct region_space *space, const struct region *a, const struct region *b,
                      int i)
{
    return a->axes[i].start == b->axes[i].start || axis_covers(space, a, b, i) ||
           axis_covers(space, b, a, i);
}

/* The lowest and highest offset of a strided region that is not empty; false: not known. */
static bool flat_range(struct region_space *space, const struct region *region,
                       const struct dim **low, const struct dim **high)
{
    struct dim_table *table = table_of(space);
    if (!region->strided)
        return false;
    *low = *high = region->offset;
    for (int i = 0; i < region->rank; i++) {
        const struct dim *stride = region->strides[i];
        const struct dim *way =
            dim_mul(table, dim_sub(table, region->dims[i], dim_const(table, 1)), stride);
        if (stride->low >= 0)
            *high = dim_add(table, *high, way);
        else if (stride->high <= 0)
            *low = dim_add(table, *low, way);
        else
            return false;
    }
    return *low && *high;
}

static int64_t flat_gcd(const struct region *region)
{
    int64_t all = 0, stride;
    for (int i = 0; i < region->rank; i++) {
        if (!dim_is_const(region->strides[i], &stride))
            return 1;
        all = gcd(all, stride < 0 ? -stride : stride);
    }
    return all;
}

static bool flat_disjoint(struct region_space *space, const struct region *a,
                          const struct region *b)
{
    const struct dim *low_a, *high_a, *low_b, *high_b;
    if (!flat_range(space, a, &low_a, &high_a) || !flat_range(space, b, &low_b, &high_b))
        return false;
    return proven_lt(space, high_a, low_b) || proven_lt(space, high_b, low_a) ||
           proven_apart(space, a->offset, b->offset, gcd(flat_gcd(a), flat_gcd(b)));
}

enum region_answer region_disjoint(struct region_space *space, const struct region *a,
                                   const struct region *b)
{
    bool meet = a->exact && b->exact && holds_something(a) && holds_something(b);
    if (region_is_empty(a) || region_is_empty(b))
        return REGION_YES;
    if (!comparable(a, b))
        return REGION_UNKNOWN;
    for (int i = 0; i < a->base_rank; i++)
        if (axes_disjoint(space, &a->axes[i], &b->axes[i]))
            return REGION_YES;
    if (flat_disjoint(space, a, b))
        return REGION_YES;
    for (int i = 0; i < a->base_rank && meet; i++)
        meet = axes_meet(space, a, b, i);
    return meet ? REGION_NO : REGION_UNKNOWN;
}

enum region_answer region_is_whole(struct region_space *space, const struct region *region)
{
    bool whole = region->exact && region->base_rank >= 0;
    if (region->base_rank < 0)
        return REGION_UNKNOWN;
    for (int i = 0; i < region->base_rank; i++)
        if (is_proven_empty(region->base[i]))
            return REGION_YES;
    for (int i = 0; i < region->base_rank && whole; i++)
        whole = axis_is_whole(region, i) ||
                (region->axes[i].exact && proven_le(space, region->base[i], region->axes[i].count));
    if (whole)
        return REGION_YES;
    for (int i = 0; i < region->base_rank; i++)
        if (region->base[i]->low < 1)
            return REGION_UNKNOWN;
    if (region_is_empty(region))
        return REGION_NO;
    for (int i = 0; i < region->base_rank; i++)
        if (proven_lt(space, region->axes[i].count, region->base[i]))
            return REGION_NO;
    return REGION_UNKNOWN;
}

/* ---- Iterations ------------------------------------------------------------------------------ */

/*
 * a.start = factor * i + r, b.start = factor * j + s: is the way to the next iteration long enough?
 */
static bool axes_disjoint_across(struct region_space *space, const struct region_axis *a,
                                 const struct region_axis *b, const struct dim *counter,
                                 const struct ir_block *body)
{
    struct dim_table *table = table_of(space);
    const struct dim *low_a = lowest(space, a), *low_b = lowest(space, b), *rest_a, *rest_b;
    const struct dim *way_a = extent(space, a), *way_b = extent(space, b);
    int64_t factor, factor_b;
    if (!low_a || !low_b || !region_affine(space, low_a, counter, &factor, &rest_a) ||
        !region_affine(space, low_b, counter, &factor_b, &rest_b))
        return false;
    if (factor != factor_b || factor == 0 || factor == INT64_MIN)
        return false;
    if (!region_invariant(space, rest_a, body) || !region_invariant(space, rest_b, body) ||
        !region_invariant(space, way_a, body) || !region_invariant(space, way_b, body) ||
        holds_symbol(way_a, is_this, counter) || holds_symbol(way_b, is_this, counter))
        return false;
    /*
     * |factor| > (rest_a - rest_b) + way_a and > (rest_b - rest_a) + way_b, whichever comes first
     */
    const struct dim *by = dim_const(table, factor < 0 ? -factor : factor);
    const struct dim *apart = dim_sub(table, rest_a, rest_b);
    return proven_lt(space, dim_add(table, apart, way_a), by) &&
           proven_lt(space, dim_sub(table, way_b, apart), by);
}

bool region_disjoint_across(struct region_space *space, const struct region *a,
                            const struct region *b, const struct dim *counter,
                            const struct ir_block *body)
{
    if (region_is_empty(a) || region_is_empty(b))
        return true;
    if (!comparable(a, b))
        return false;
    for (int i = 0; i < a->base_rank; i++)
        if (axes_disjoint_across(space, &a->axes[i], &b->axes[i], counter, body))
            return true;
    return false;
}
