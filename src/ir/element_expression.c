/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of coordinates, and how small and large they get. */
#include "ir/element_reader.h"
#include "ir/infer.h"
#include "ir/wrap.h"

/* ---- Expressions ----------------------------------------------------------------------------- */

bool element_set(struct reader *reader, int64_t number, struct element *out)
{
    if (element_number(reader->graph, number, out))
        return true;
    reader->out_of_memory = true;
    return false;
}

bool element_number(struct ir_graph *graph, int64_t number, struct element *element)
{
    *element = (struct element){.offset = dim_const(&graph->dims, number)};
    return element->offset != NULL;
}

bool element_coordinate(struct ir_graph *graph, int axis, struct element *element)
{
    if (!element_number(graph, 0, element))
        return false;
    element->factors[axis] = dim_const(&graph->dims, 1);
    return element->factors[axis] != NULL;
}

int element_coordinate_of(const struct element *element, const struct element_space *space)
{
    int found = -1;
    if (element->scalar || !dim_is(element->offset, 0))
        return -1;
    for (int i = 0; i < space->rank; i++) {
        if (!element->factors[i] || dim_is(space->extents[i], 1))
            continue;
        if (found >= 0 || !dim_is(element->factors[i], 1))
            return -1;
        found = i;
    }
    return found;
}

bool element_is_number(const struct element *element, int64_t *value)
{
    if (element->scalar)
        return false;
    for (int i = 0; i < TSSA_MAX_RANK; i++)
        if (element->factors[i])
            return false;
    return dim_is_const(element->offset, value);
}

/* Notes that memory ran out when `dim` is NULL. */
bool element_made(struct reader *reader, const struct dim *dim)
{
    reader->out_of_memory |= dim == NULL;
    return dim != NULL;
}

static const struct dim *no_zero(const struct dim *factor)
{
    return dim_is(factor, 0) ? NULL : factor;
}

static bool is_zero_base(const struct element *a)
{
    return !a->scalar && dim_is(a->offset, 0);
}

bool element_add(struct reader *reader, const struct element *a, const struct element *b,
                 struct element *out)
{
    struct dim_table *dims = &reader->graph->dims;
    struct element sum = {.scalar = a->scalar ? a->scalar : b->scalar};
    if (a->scalar && b->scalar && a->scalar != b->scalar)
        return false;
    if (__builtin_add_overflow(a->scale, b->scale, &sum.scale))
        return false;
    if (sum.scale == 0)
        sum.scalar = NULL;
    sum.offset = dim_add(dims, a->offset, b->offset);
    if (!element_made(reader, sum.offset))
        return false;
    for (int i = 0; i < reader->space->rank; i++) {
        sum.factors[i] = a->factors[i] ? a->factors[i] : b->factors[i];
        if (a->factors[i] && b->factors[i]) {
            sum.factors[i] = dim_add(dims, a->factors[i], b->factors[i]);
            if (!element_made(reader, sum.factors[i]))
                return false;
            sum.factors[i] = no_zero(sum.factors[i]);
        }
    }
    sum.witness = is_zero_base(b) ? a->witness : is_zero_base(a) ? b->witness : NULL;
    *out = sum;
    return true;
}

bool element_scale(struct reader *reader, const struct element *a, const struct dim *by,
                   struct element *out)
{
    struct dim_table *dims = &reader->graph->dims;
    struct element product = {.scalar = a->scalar};
    int64_t number;
    if (dim_is(by, 1)) {
        *out = *a;
        return true;
    }
    if (a->scalar &&
        (!dim_is_const(by, &number) || __builtin_mul_overflow(a->scale, number, &product.scale)))
        return false;
    if (product.scale == 0)
        product.scalar = NULL;
    product.offset = dim_mul(dims, a->offset, by);
    if (!element_made(reader, product.offset))
        return false;
    for (int i = 0; i < reader->space->rank; i++) {
        if (!a->factors[i])
            continue;
        product.factors[i] = dim_mul(dims, a->factors[i], by);
        if (!element_made(reader, product.factors[i]))
            return false;
        product.factors[i] = no_zero(product.factors[i]);
    }
    *out = product;
    return true;
}

/* The dim that the element is everywhere; NULL: it varies, or is known to a run only. */
const struct dim *element_as_dim(const struct element *a)
{
    for (int i = 0; i < TSSA_MAX_RANK; i++)
        if (a->factors[i])
            return NULL;
    return a->scalar ? NULL : a->offset;
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

/* Is the scalar the counter of a Loop, and how often does the loop run at most (NULL: no limit)? */
static bool is_counter(const struct ir_value *scalar, const struct dim **trips)
{
    const struct ir_op *loop = scalar->block ? scalar->block->owner : NULL;
    *trips = NULL;
    if (!loop || !ir_op_is(loop, IR_OP_Loop) || scalar->index != 0)
        return false;
    const struct ir_known *known = infer_known(loop, 0);
    if (known && known->count == 1)
        *trips = known->elements[0];
    return true;
}

/* The bound with the numbers of the iterations around the question at the end of their ranges. */
static const struct dim *bound_counters(struct ir_graph *graph, const struct ir_block *block,
                                        const struct dim *sum, bool largest)
{
    struct dim_table *dims = &graph->dims;
    const struct dim *factor, *at_zero;
    for (; block && block->owner && sum; block = block->owner->parent) {
        const struct ir_known *counter = block->n_params ? block->params[0]->known : NULL;
        const struct ir_known *trips = infer_known(block->owner, 0);
        if (!ir_op_is(block->owner, IR_OP_Loop) || !counter ||
            counter->elements[0]->kind != DIM_SYMBOL ||
            !dim_affine(dims, sum, counter->elements[0], &factor, &at_zero))
            continue;
        bool rises = factor->low >= 0;
        if (!rises && factor->high > 0)
            continue;
        if (rises != largest)
            sum = at_zero;
        else if (trips && trips->count == 1)
            sum = dim_add(
                dims, at_zero,
                dim_mul(dims, factor, dim_sub(dims, trips->elements[0], dim_const(dims, 1))));
    }
    return sum;
}

/* offset + the terms at the end of their ranges that makes them largest, or smallest. */
static const struct dim *extreme(struct ir_graph *graph, const struct element_space *space,
                                 const struct element *element, bool largest)
{
    struct dim_table *dims = &graph->dims;
    const struct dim *sum = element->offset, *one = dim_const(dims, 1), *trips;
    if (element->scalar) {
        if (!is_counter(element->scalar, &trips))
            return NULL;
        if ((element->scale > 0) == largest) {
            if (!trips)
                return NULL;
            sum =
                dim_add(dims, sum,
                        dim_mul(dims, dim_const(dims, element->scale), dim_sub(dims, trips, one)));
        }
    }
    for (int i = 0; i < space->rank && sum; i++) {
        const struct dim *factor = element->factors[i];
        if (!factor)
            continue;
        bool positive = factor->low >= 0;
        if (!positive && factor->high > 0)
            return NULL;
        if (positive == largest)
            sum = dim_add(dims, sum, dim_mul(dims, factor, dim_sub(dims, space->extents[i], one)));
    }
    return bound_counters(graph, space->block, sum, largest);
}

const struct dim *element_least(struct ir_graph *graph, const struct element_space *space,
                                const struct element *element)
{
    return extreme(graph, space, element, false);
}

const struct dim *element_most(struct ir_graph *graph, const struct element_space *space,
                               const struct element *element)
{
    return extreme(graph, space, element, true);
}

bool element_within(struct ir_graph *graph, const struct element_space *space,
                    const struct element *element, const struct dim *dim)
{
    const struct dim *least = element_least(graph, space, element),
                     *most = element_most(graph, space, element);
    if (!least || !most || least->low < 0)
        return false;
    const struct dim *room =
        dim_sub(&graph->dims, dim, dim_add(&graph->dims, most, dim_const(&graph->dims, 1)));
    return room && room->low >= 0;
}

bool element_is_index(struct reader *reader, const struct element *element)
{
    const struct dim *least = element_least(reader->graph, reader->space, element);
    return least && least->low >= 0;
}

/* ---- Wrapping -------------------------------------------------------------------------------- */

/* Between which numbers `by` times 0, 1, ..., count - 1 is. */
static struct range walk_bounds(struct reader *reader, const struct dim *by,
                                const struct dim *count)
{
    struct dim_table *dims = &reader->graph->dims;
    const struct dim *way = dim_mul(dims, by, dim_sub(dims, count, dim_const(dims, 1)));
    if (!element_made(reader, way))
        return (struct range){INT64_MIN, INT64_MAX};
    struct range range = wrap_bounds(reader->graph, way);
    return (struct range){range.low < 0 ? range.low : 0, range.high > 0 ? range.high : 0};
}

/* The bounds of the element without its scalar. */
static struct range rest_bounds(struct reader *reader, const struct element *element)
{
    struct range sum = wrap_bounds(reader->graph, element->offset);
    for (int i = 0; i < reader->space->rank; i++)
        if (element->factors[i])
            sum =
                range_add(sum, walk_bounds(reader, element->factors[i], reader->space->extents[i]));
    return sum;
}

/* Of scale times a loop's counter, which is a size whatever the trip count says. */
static struct range counter_bounds(const struct element *element, const struct dim *trips)
{
    int64_t last = DIM_SIZE_LIMIT;
    if (trips && trips->most <= last)
        last = trips->most < 1 ? 0 : trips->most - 1;
    return range_scale((struct range){0, last}, element->scale);
}

/* By the smallest and the largest element, in which sizes may cancel out. */
static bool fits_between(struct reader *reader, tssa_dtype dtype, const struct element *element)
{
    const struct dim *least = element_least(reader->graph, reader->space, element),
                     *most = element_most(reader->graph, reader->space, element);
    return least && most && wrap_never(reader->graph, dtype, least) &&
           wrap_never(reader->graph, dtype, most);
}

/*
 * Does no element wrap in arithmetic of this type? Of an INT64 with a scalar that may be any number
 * this is asked as of an index (wrap_never_as_index): only indices are read here.
 */
bool element_fits(struct reader *reader, tssa_dtype dtype, const struct element *element)
{
    const struct dim *trips = NULL;
    struct range rest = rest_bounds(reader, element);
    if (reader->out_of_memory)
        return false;
    if (element->scalar && !is_counter(element->scalar, &trips))
        return dtype == TSSA_INT64 && (element->scale == 1 || element->scale == -1) &&
               rest.low >= -WRAP_INDEX_REST && rest.high <= WRAP_INDEX_REST;
    if (element->scalar)
        rest = range_add(rest, counter_bounds(element, trips));
    return wrap_never_within(dtype, rest) || fits_between(reader, dtype, element);
}
