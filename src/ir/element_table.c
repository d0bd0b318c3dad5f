/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of constant tensors: grids are affine in the place. */
#include "ir/element_reader.h"

/* Where a place is in a constant, as numbers: offset + sum of steps[i] * coordinate i. */
struct path {
    int64_t offset, steps[TSSA_MAX_RANK];
};

/* How many positions there are along a coordinate, at most. */
static bool most_positions(const struct dim *extent, int64_t *count)
{
    *count = extent->high;
    return extent->high != INT64_MAX && extent->high >= 1;
}

static bool add_axis(const struct element_space *space, const struct element *at, int64_t dim,
                     int64_t stride, struct path *path)
{
    int64_t number, extent, factor, span, low, high;
    if (at->scalar || !dim_is_const(at->offset, &number) || number < 0 || number >= dim)
        return false;
    low = high = number;
    path->offset += number * stride;
    for (int i = 0; i < space->rank; i++) {
        if (!at->factors[i] || dim_is(space->extents[i], 1))
            continue;
        if (!dim_is_const(at->factors[i], &factor) || !most_positions(space->extents[i], &extent) ||
            __builtin_mul_overflow(factor, extent - 1, &span) || span >= dim || span <= -dim ||
            factor >= dim || factor <= -dim)
            return false;
        low += span < 0 ? span : 0;
        high += span > 0 ? span : 0;
        path->steps[i] += factor * stride;
    }
    return low >= 0 && high < dim;
}

int64_t element_load(const struct tensor *tensor, int64_t at)
{
    return dtype_load_int64(tensor->dtype, (const char *)tensor->data +
                                               (size_t)at * dtype_info(tensor->dtype)->size);
}

/* Do the table's elements on the path all lie on the grid that its first ones span? */
static bool is_grid(const struct tensor *table, const struct path *path, int rank,
                    const int64_t *extents, const int64_t *factors)
{
    int64_t at[TSSA_MAX_RANK] = {0}, origin = element_load(table, path->offset);
    int64_t place = path->offset, expected = origin, reach = 0, part;
    for (int i = 0; i < rank; i++) /* factors come from two elements and may be large */
        if (__builtin_mul_overflow(factors[i] < 0 ? factors[i] : -factors[i], extents[i], &part) ||
            __builtin_add_overflow(reach, part, &reach) || reach < INT64_MIN / 4)
            return false;
    if (origin > INT64_MAX / 4 || origin < INT64_MIN / 4)
        return false;
    for (;;) {
        if (element_load(table, place) != expected)
            return false;
        int axis = rank - 1;
        for (; axis >= 0; axis--) {
            if (++at[axis] < extents[axis]) {
                place += path->steps[axis];
                expected += factors[axis];
                break;
            }
            place -= path->steps[axis] * (extents[axis] - 1);
            expected -= factors[axis] * (extents[axis] - 1);
            at[axis] = 0;
        }
        if (axis < 0)
            return true;
    }
}

bool element_read_table(struct reader *reader, const struct tensor *table, const struct element *at,
                        struct element *out)
{
    const struct element_space *space = reader->space;
    struct path path = {0};
    int64_t stride = 1, extents[TSSA_MAX_RANK], factors[TSSA_MAX_RANK];
    if (!dtype_is_integer(table->dtype) || table->dtype == TSSA_UINT64)
        return false;
    for (int i = table->rank - 1; i >= 0; i--) {
        if (!add_axis(space, &at[i], table->dims[i], stride, &path))
            return false;
        stride *= table->dims[i];
    }
    if (!element_set(reader, element_load(table, path.offset), out))
        return false;
    for (int i = 0; i < space->rank; i++) {
        extents[i] = 1;
        factors[i] = 0;
        /* Coordinates that the place does not depend on need no number. */
        if (path.steps[i] == 0 || !most_positions(space->extents[i], &extents[i]) ||
            extents[i] < 2) {
            extents[i] = 1;
            continue;
        }
        if (__builtin_sub_overflow(element_load(table, path.offset + path.steps[i]),
                                   element_load(table, path.offset), &factors[i]))
            return false;
        if (factors[i] == 0)
            continue;
        out->factors[i] = dim_const(&reader->graph->dims, factors[i]);
        if (!element_made(reader, out->factors[i]))
            return false;
    }
    return is_grid(table, &path, space->rank, extents, factors);
}
