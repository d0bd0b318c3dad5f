/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of coordinates, and how small and large they get. */
#include "ir/infer.h"
#include "passes/element_reader.h"

/* ---- Expressions ---------------------------------------------------------------------------------- */

bool element_dim_is(const struct dim *dim, int64_t value)
{
    int64_t number;
    return dim_is_const(dim, &number) && number == value;
}

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
    if (element->scalar || !element_dim_is(element->offset, 0))
        return -1;
    for (int i = 0; i < space->rank; i++) {
        if (!element->factors[i] || element_dim_is(space->extents[i], 1))
            continue;
        if (found >= 0 || !element_dim_is(element->factors[i], 1))
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
    return element_dim_is(factor, 0) ? NULL : factor;
}

static bool is_zero_base(const struct element *a)
{
    return !a->scalar && element_dim_is(a->offset, 0);
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
    if (element_dim_is(by, 1)) {
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

/* ---- Bounds --------------------------------------------------------------------------------------- */

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

/* Does no element wrap in arithmetic of this type? INT64 is the type of dims, which do not overflow. */
bool element_fits(struct reader *reader, tssa_dtype dtype, const struct element *element)
{
    if (dtype == TSSA_INT64)
        return true;
    const struct dim *least = element_least(reader->graph, reader->space, element),
                     *most = element_most(reader->graph, reader->space, element);
    return dtype == TSSA_INT32 && least && most && least->low >= INT32_MIN &&
           most->high <= INT32_MAX;
}
