/* SPDX-License-Identifier: Apache-2.0 */
/* Element functions: a question about an element is moved from an op's result to its operands. */
#include "passes/element.h"

#include <string.h>

#include "ir/infer.h"
#include "ir/rule.h"

/* Ops asked per question: every exporter's grid takes fewer, and a pass stays linear. */
#define BUDGET 128

struct reader {
    struct ir_graph *graph;
    const struct element_space *space;
    int budget;
    bool out_of_memory;
    const struct ir_value *doubt; /* the first value that could not be answered */
};

typedef bool (*read_fn)(struct reader *reader, const struct ir_value *value,
                        const struct element *at, struct element *out);

static bool read_value(struct reader *reader, struct ir_value *value, const struct element *at,
                       struct element *out);

/* ---- Expressions ---------------------------------------------------------------------------------- */

static bool is_dim_number(const struct dim *dim, int64_t value)
{
    int64_t number;
    return dim_is_const(dim, &number) && number == value;
}

static bool set_number(struct reader *reader, int64_t number, struct element *out)
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
static bool made(struct reader *reader, const struct dim *dim)
{
    reader->out_of_memory |= dim == NULL;
    return dim != NULL;
}

static const struct dim *no_zero(const struct dim *factor)
{
    return is_dim_number(factor, 0) ? NULL : factor;
}

static bool is_zero_base(const struct element *a)
{
    return !a->scalar && is_dim_number(a->offset, 0);
}

static bool add(struct reader *reader, const struct element *a, const struct element *b,
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
    if (!made(reader, sum.offset))
        return false;
    for (int i = 0; i < reader->space->rank; i++) {
        sum.factors[i] = a->factors[i] ? a->factors[i] : b->factors[i];
        if (a->factors[i] && b->factors[i]) {
            sum.factors[i] = dim_add(dims, a->factors[i], b->factors[i]);
            if (!made(reader, sum.factors[i]))
                return false;
            sum.factors[i] = no_zero(sum.factors[i]);
        }
    }
    sum.witness = is_zero_base(b) ? a->witness : is_zero_base(a) ? b->witness : NULL;
    *out = sum;
    return true;
}

static bool scale(struct reader *reader, const struct element *a, const struct dim *by,
                  struct element *out)
{
    struct dim_table *dims = &reader->graph->dims;
    struct element product = {.scalar = a->scalar};
    int64_t number;
    if (is_dim_number(by, 1)) {
        *out = *a;
        return true;
    }
    if (a->scalar &&
        (!dim_is_const(by, &number) || __builtin_mul_overflow(a->scale, number, &product.scale)))
        return false;
    if (product.scale == 0)
        product.scalar = NULL;
    product.offset = dim_mul(dims, a->offset, by);
    if (!made(reader, product.offset))
        return false;
    for (int i = 0; i < reader->space->rank; i++) {
        if (!a->factors[i])
            continue;
        product.factors[i] = dim_mul(dims, a->factors[i], by);
        if (!made(reader, product.factors[i]))
            return false;
        product.factors[i] = no_zero(product.factors[i]);
    }
    *out = product;
    return true;
}

/* The dim that the element is everywhere; NULL: it varies, or is known to a run only. */
static const struct dim *as_dim(const struct element *a)
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
    return sum;
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

static bool is_never_negative(struct reader *reader, const struct element *element)
{
    const struct dim *least = element_least(reader->graph, reader->space, element);
    return least && least->low >= 0;
}

/* Does no element wrap in arithmetic of this type? INT64 is the type of dims, which do not overflow. */
static bool fits_dtype(struct reader *reader, tssa_dtype dtype, const struct element *element)
{
    if (dtype == TSSA_INT64)
        return true;
    const struct dim *least = element_least(reader->graph, reader->space, element),
                     *most = element_most(reader->graph, reader->space, element);
    return dtype == TSSA_INT32 && least && most && least->low >= INT32_MIN &&
           most->high <= INT32_MAX;
}

/* ---- Tables --------------------------------------------------------------------------------------- */

/* Where a place is in a constant, as numbers: offset + sum of steps[i] * coordinate i. */
struct path {
    int64_t offset, steps[TSSA_MAX_RANK];
};

static bool add_axis(const struct element_space *space, const struct element *at, int64_t dim,
                     int64_t stride, struct path *path)
{
    int64_t number, extent, factor, span, low, high;
    if (at->scalar || !dim_is_const(at->offset, &number) || number < 0 || number >= dim)
        return false;
    low = high = number;
    path->offset += number * stride;
    for (int i = 0; i < space->rank; i++) {
        if (!at->factors[i] || is_dim_number(space->extents[i], 1))
            continue;
        if (!dim_is_const(at->factors[i], &factor) || !dim_is_const(space->extents[i], &extent) ||
            extent < 1 || __builtin_mul_overflow(factor, extent - 1, &span) || span >= dim ||
            span <= -dim || factor >= dim || factor <= -dim)
            return false;
        low += span < 0 ? span : 0;
        high += span > 0 ? span : 0;
        path->steps[i] += factor * stride;
    }
    return low >= 0 && high < dim;
}

static int64_t load(const struct tensor *tensor, int64_t at)
{
    return dtype_load_int64(tensor->dtype, (const char *)tensor->data +
                                               (size_t)at * dtype_info(tensor->dtype)->size);
}

/* Do the table's elements on the path all lie on the grid that its first ones span? */
static bool is_grid(const struct tensor *table, const struct path *path, int rank,
                    const int64_t *extents, const int64_t *factors)
{
    int64_t at[TSSA_MAX_RANK] = {0}, origin = load(table, path->offset);
    int64_t place = path->offset, expected = origin, reach = 0, part;
    for (int i = 0; i < rank; i++) /* factors come from two elements and may be large */
        if (__builtin_mul_overflow(factors[i] < 0 ? factors[i] : -factors[i], extents[i], &part) ||
            __builtin_add_overflow(reach, part, &reach) || reach < INT64_MIN / 4)
            return false;
    if (origin > INT64_MAX / 4 || origin < INT64_MIN / 4)
        return false;
    for (;;) {
        if (load(table, place) != expected)
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

static bool read_table(struct reader *reader, const struct tensor *table, const struct element *at,
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
    if (!set_number(reader, load(table, path.offset), out))
        return false;
    for (int i = 0; i < space->rank; i++) {
        extents[i] = 1;
        factors[i] = 0;
        /* Coordinates that the place does not depend on need no number. */
        if (path.steps[i] == 0 || !dim_is_const(space->extents[i], &extents[i]) || extents[i] < 2) {
            extents[i] = 1;
            continue;
        }
        if (__builtin_sub_overflow(load(table, path.offset + path.steps[i]),
                                   load(table, path.offset), &factors[i]))
            return false;
        if (factors[i] == 0)
            continue;
        out->factors[i] = dim_const(&reader->graph->dims, factors[i]);
        if (!made(reader, out->factors[i]))
            return false;
    }
    return is_grid(table, &path, space->rank, extents, factors);
}

/* ---- Elementwise ops ------------------------------------------------------------------------------ */

/* Operand `index` at the place that broadcasting gives it. */
static bool read_broadcast(struct reader *reader, const struct ir_value *value, uint32_t index,
                           const struct element *at, struct element *out)
{
    struct ir_value *operand = ir_operand(value->op, index);
    struct element inner[TSSA_MAX_RANK];
    int rank = value->type->rank, from = infer_rank(value->op, index);
    if (from < 0 || from > rank)
        return false;
    for (int i = 0; i < from; i++) {
        const struct dim *dim = operand->type->dims[i];
        if (is_dim_number(dim, 1)) {
            if (!set_number(reader, 0, &inner[i]))
                return false;
        } else if (dim == value->type->dims[rank - from + i]) {
            inner[i] = at[rank - from + i];
        } else {
            return false;
        }
    }
    return read_value(reader, operand, inner, out);
}

static bool read_same(struct reader *reader, const struct ir_value *value, const struct element *at,
                      struct element *out)
{
    return read_broadcast(reader, value, 0, at, out);
}

static bool read_cast(struct reader *reader, const struct ir_value *value, const struct element *at,
                      struct element *out)
{
    tssa_dtype from = infer_dtype(value->op, 0), to = value->type->dtype;
    if (!dtype_is_integer(from) || !read_broadcast(reader, value, 0, at, out))
        return false;
    return (from == TSSA_INT32 && to == TSSA_INT64) || from == to ||
           (to != TSSA_INT64 && fits_dtype(reader, to, out)) ||
           (to == TSSA_INT64 && from != TSSA_UINT64);
}

static bool read_add(struct reader *reader, const struct ir_value *value, const struct element *at,
                     struct element *out)
{
    struct element a, b;
    return read_broadcast(reader, value, 0, at, &a) && read_broadcast(reader, value, 1, at, &b) &&
           add(reader, &a, &b, out) && fits_dtype(reader, value->type->dtype, out);
}

static bool negate(struct reader *reader, const struct element *a, struct element *out)
{
    const struct dim *minus = dim_const(&reader->graph->dims, -1);
    return made(reader, minus) && scale(reader, a, minus, out);
}

static bool read_neg(struct reader *reader, const struct ir_value *value, const struct element *at,
                     struct element *out)
{
    struct element a;
    return read_broadcast(reader, value, 0, at, &a) && negate(reader, &a, out) &&
           fits_dtype(reader, value->type->dtype, out);
}

static bool read_sub(struct reader *reader, const struct ir_value *value, const struct element *at,
                     struct element *out)
{
    struct element a, b, minus;
    return read_broadcast(reader, value, 0, at, &a) && read_broadcast(reader, value, 1, at, &b) &&
           negate(reader, &b, &minus) && add(reader, &a, &minus, out) &&
           fits_dtype(reader, value->type->dtype, out);
}

static bool read_mul(struct reader *reader, const struct ir_value *value, const struct element *at,
                     struct element *out)
{
    struct element a, b;
    if (!read_broadcast(reader, value, 0, at, &a) || !read_broadcast(reader, value, 1, at, &b))
        return false;
    const struct dim *left = as_dim(&a), *right = as_dim(&b);
    bool done = right ? scale(reader, &a, right, out) : left && scale(reader, &b, left, out);
    return done && fits_dtype(reader, value->type->dtype, out);
}

/* Is `a` below `b` everywhere (1), nowhere (0), or can it not be told (-1)? */
static int is_below(struct reader *reader, const struct element *a, const struct element *b)
{
    struct element minus, difference;
    if (!negate(reader, b, &minus) || !add(reader, a, &minus, &difference))
        return -1;
    const struct dim *least = element_least(reader->graph, reader->space, &difference),
                     *most = element_most(reader->graph, reader->space, &difference);
    if (least && least->low >= 0)
        return 0;
    return most && most->high < 0 ? 1 : -1;
}

/* What a condition is at a place: 1, 0, or -1 when it cannot be told. */
static int read_condition(struct reader *reader, const struct ir_value *where,
                          const struct element *at)
{
    struct element inner[TSSA_MAX_RANK], a, b;
    const struct ir_value *condition = ir_operand(where->op, 0);
    const struct ir_op *op = condition ? condition->op : NULL;
    const struct ir_known *known = condition ? condition->known : NULL;
    int64_t truth;
    if (known && known->count == 1 && dim_is_const(known->elements[0], &truth))
        return truth != 0;
    if (!op || (!ir_op_is(op, IR_OP_Less) && !ir_op_is(op, IR_OP_Greater)))
        return -1;
    int rank = where->type->rank, from = infer_rank(where->op, 0);
    for (int i = 0; i < from; i++) {
        if (condition->type->dims[i] == where->type->dims[rank - from + i])
            inner[i] = at[rank - from + i];
        else if (!is_dim_number(condition->type->dims[i], 1) || !set_number(reader, 0, &inner[i]))
            return -1;
    }
    bool swapped = ir_op_is(op, IR_OP_Greater);
    if (from < 0 || !dtype_is_integer(infer_dtype(op, 0)) ||
        !read_broadcast(reader, condition, swapped ? 1 : 0, inner, &a) ||
        !read_broadcast(reader, condition, swapped ? 0 : 1, inner, &b))
        return -1;
    return is_below(reader, &a, &b);
}

/* Where(index < 0, index + dim, index): exporters' way to count from the end. */
static bool read_where(struct reader *reader, const struct ir_value *value,
                       const struct element *at, struct element *out)
{
    int condition = read_condition(reader, value, at);
    return condition >= 0 && read_broadcast(reader, value, condition ? 1 : 2, at, out);
}

/* ---- Generators ----------------------------------------------------------------------------------- */

/* The element of an operand that has one. */
static bool read_single(struct reader *reader, const struct ir_value *value, uint32_t index,
                        struct element *out)
{
    struct element at[TSSA_MAX_RANK];
    int rank = infer_rank(value->op, index);
    if (rank < 0)
        return false;
    for (int i = 0; i < rank; i++)
        if (!set_number(reader, 0, &at[i]))
            return false;
    return read_value(reader, ir_operand(value->op, index), at, out);
}

static bool read_range(struct reader *reader, const struct ir_value *value,
                       const struct element *at, struct element *out)
{
    struct element start, delta, rest;
    if (!dtype_is_integer(value->type->dtype) || !read_single(reader, value, 0, &start) ||
        !read_single(reader, value, 2, &delta))
        return false;
    const struct dim *by = as_dim(&delta);
    return by && scale(reader, &at[0], by, &rest) && add(reader, &start, &rest, out) &&
           fits_dtype(reader, value->type->dtype, out);
}

static bool read_constant_of_shape(struct reader *reader, const struct ir_value *value,
                                   const struct element *at, struct element *out)
{
    const struct tensor *fill = ir_attr_tensor(value->op, "value");
    (void)at;
    return fill && dtype_is_integer(fill->dtype) && tensor_count(fill) == 1 &&
           set_number(reader, load(fill, 0), out);
}

/* ---- Movement ops --------------------------------------------------------------------------------- */

static bool read_transpose(struct reader *reader, const struct ir_value *value,
                           const struct element *at, struct element *out)
{
    struct element inner[TSSA_MAX_RANK];
    size_t n;
    const int64_t *perm = ir_attr_ints(value->op, "perm", &n);
    int rank = value->type->rank;
    for (int i = 0; i < rank; i++) {
        int64_t axis = perm ? perm[i] : rank - 1 - i;
        inner[axis < 0 ? axis + rank : axis] = at[i];
    }
    return read_value(reader, ir_operand(value->op, 0), inner, out);
}

/* The piece in which a constant place lies; pieces before it have constant sizes. */
static bool read_concat(struct reader *reader, const struct ir_value *value,
                        const struct element *at, struct element *out)
{
    const struct ir_op *op = value->op;
    struct element inner[TSSA_MAX_RANK];
    int64_t axis = ir_attr_int(op, "axis", 0), place, size;
    int rank = value->type->rank;
    axis += axis < 0 ? rank : 0;
    if (!element_is_number(&at[axis], &place))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (infer_rank(op, i) != rank || !dim_is_const(infer_dim(op, i, (int)axis), &size))
            return false;
        if (place >= size) {
            place -= size;
            continue;
        }
        memcpy(inner, at, (size_t)rank * sizeof *at);
        return set_number(reader, place, &inner[axis]) &&
               read_value(reader, ir_operand(op, i), inner, out);
    }
    return false;
}

static bool read_split(struct reader *reader, const struct ir_value *value,
                       const struct element *at, struct element *out)
{
    const struct ir_op *op = value->op;
    struct element inner[TSSA_MAX_RANK], offset;
    int64_t axis = ir_attr_int(op, "axis", 0), sum = 0, size;
    int rank = value->type->rank;
    axis += axis < 0 ? rank : 0;
    for (uint32_t i = 0; i < value->index; i++) {
        const struct ir_type *type = op->results[i].type;
        if (type->kind != TYPE_TENSOR || type->rank != rank ||
            !dim_is_const(type->dims[axis], &size))
            return false;
        sum += size;
    }
    memcpy(inner, at, (size_t)rank * sizeof *at);
    return set_number(reader, sum, &offset) && add(reader, &offset, &at[axis], &inner[axis]) &&
           read_value(reader, ir_operand(op, 0), inner, out);
}

/* Where a slice that is not empty begins. */
static bool slice_start(struct reader *reader, const struct ir_value *value, size_t i, int64_t step,
                        const struct dim *dim, struct element *out)
{
    const struct ir_known *starts = infer_known(value->op, 1);
    int64_t start, size;
    if (!starts || !dim_is_const(starts->elements[i], &start)) {
        const struct ir_type *type = ir_operand(value->op, 1)->type;
        return step > 0 && type->rank == 1 && is_dim_number(type->dims[0], 1) &&
               read_single(reader, value, 1, out) && is_never_negative(reader, out);
    }
    if (dim_is_const(dim, &size)) {
        start = start < -size ? 0 : start < 0 ? start + size : start;
        return set_number(reader, step < 0 && start >= size ? size - 1 : start, out);
    }
    if (start >= 0 && step > 0)
        return set_number(reader, start, out);
    if (!(step < 0 && (start == -1 || start == INT64_MAX)))
        return false;
    struct element all = {.offset = dim}, one;
    return set_number(reader, -1, &one) && add(reader, &all, &one, out);
}

static bool read_slice(struct reader *reader, const struct ir_value *value,
                       const struct element *at, struct element *out)
{
    const struct ir_op *op = value->op;
    struct element inner[TSSA_MAX_RANK], start, rest;
    int64_t axes[IR_KNOWN_MAX], steps[IR_KNOWN_MAX];
    size_t n = 0, n_steps = 0;
    int rank = value->type->rank;
    const struct ir_type *starts = ir_operand(op, 1)->type;
    int64_t count;
    memcpy(inner, at, (size_t)rank * sizeof *at);
    if (starts->kind != TYPE_TENSOR || starts->rank != 1 ||
        !dim_is_const(starts->dims[0], &count) || count > rank)
        return false;
    if (ir_operand(op, 3) && (!infer_const_ints(op, 3, axes, &n) || n != (size_t)count))
        return false;
    if (ir_operand(op, 4) &&
        (!infer_const_ints(op, 4, steps, &n_steps) || n_steps != (size_t)count))
        return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = n ? axes[i] : i, step = n_steps ? steps[i] : 1;
        axis += axis < 0 ? rank : 0;
        const struct dim *by = dim_const(&reader->graph->dims, step);
        if (axis < 0 || axis >= rank || !made(reader, by) ||
            !slice_start(reader, value, (size_t)i, step, infer_dim(op, 0, (int)axis), &start) ||
            !scale(reader, &at[axis], by, &rest) || !add(reader, &start, &rest, &inner[axis]))
            return false;
    }
    return read_value(reader, ir_operand(op, 0), inner, out);
}

static bool read_tile(struct reader *reader, const struct ir_value *value, const struct element *at,
                      struct element *out)
{
    struct element inner[TSSA_MAX_RANK];
    int rank = value->type->rank;
    for (int i = 0; i < rank; i++) {
        const struct dim *dim = infer_dim(value->op, 0, i);
        int64_t place, size;
        if (dim == value->type->dims[i])
            inner[i] = at[i];
        else if (is_dim_number(dim, 1) ||
                 (element_is_number(&at[i], &place) && dim_is_const(dim, &size) && size > 0)) {
            if (!set_number(reader, is_dim_number(dim, 1) ? 0 : place % size, &inner[i]))
                return false;
        } else {
            return false;
        }
    }
    return read_value(reader, ir_operand(value->op, 0), inner, out);
}

static bool read_gather(struct reader *reader, const struct ir_value *value,
                        const struct element *at, struct element *out)
{
    const struct ir_op *op = value->op;
    struct element inner[TSSA_MAX_RANK], index;
    int data = infer_rank(op, 0), indices = infer_rank(op, 1);
    int64_t axis = ir_attr_int(op, "axis", 0), number, size;
    if (data < 1 || indices < 0)
        return false;
    axis += axis < 0 ? data : 0;
    if (axis < 0 || axis >= data || !read_value(reader, ir_operand(op, 1), at + axis, &index))
        return false;
    if (element_is_number(&index, &number) && number < 0) {
        if (!dim_is_const(infer_dim(op, 0, (int)axis), &size) ||
            !set_number(reader, number + size, &index))
            return false;
    }
    if (!is_never_negative(reader, &index))
        return false;
    memcpy(inner, at, (size_t)axis * sizeof *at);
    inner[axis] = index;
    memcpy(inner + axis + 1, at + axis + indices, (size_t)(data - axis - 1) * sizeof *at);
    return read_value(reader, ir_operand(op, 0), inner, out);
}

/* ---- Reshape and the like ------------------------------------------------------------------------- */

/* The axes that are not of size one. */
static int long_axes(const struct ir_type *type, int *axes)
{
    int n = 0;
    for (int i = 0; i < type->rank; i++)
        if (!is_dim_number(type->dims[i], 1))
            axes[n++] = i;
    return n;
}

/* Axes of the result that join to axis `dim` of the operand: how many from `axes[from]` on; 0: none. */
static int joined(struct reader *reader, const struct ir_type *type, const int *axes, int from,
                  int n, const struct dim *dim)
{
    const struct dim *product = NULL;
    for (int i = from; i < n; i++) {
        const struct dim *next = type->dims[axes[i]];
        product = product ? dim_mul(&reader->graph->dims, product, next) : next;
        if (!made(reader, product))
            return 0;
        if (product == dim)
            return i - from + 1;
    }
    return 0;
}

/* The place on an axis that `count` axes of the result divide. */
static bool join_places(struct reader *reader, const struct ir_type *type, const int *axes,
                        int count, const struct element *at, struct element *out)
{
    *out = at[axes[0]];
    for (int i = 1; i < count; i++) {
        struct element scaled;
        if (!scale(reader, out, type->dims[axes[i]], &scaled) ||
            !add(reader, &scaled, &at[axes[i]], out))
            return false;
    }
    return true;
}

/*
 * Axes of size one come and go; an axis of the operand may be divided into several of the result. The
 * other way round a place would have to be divided, unless it is a number.
 */
static bool read_reshape(struct reader *reader, const struct ir_value *value,
                         const struct element *at, struct element *out)
{
    struct ir_value *operand = ir_operand(value->op, 0);
    const struct ir_type *from = operand->type, *to = value->type;
    struct element inner[TSSA_MAX_RANK];
    int in[TSSA_MAX_RANK], axes[TSSA_MAX_RANK];
    if (from->kind != TYPE_TENSOR || from->rank < 0)
        return false;
    int n_in = long_axes(from, in), n = long_axes(to, axes), next = 0;
    for (int i = 0; i < from->rank; i++)
        if (!set_number(reader, 0, &inner[i]))
            return false;
    for (int i = 0; i < n_in; i++) {
        int count = joined(reader, to, axes, next, n, from->dims[in[i]]);
        if (count == 0 || !join_places(reader, to, axes + next, count, at, &inner[in[i]]))
            return false;
        next += count;
    }
    return next == n && read_value(reader, operand, inner, out);
}

/* ---- Rules ---------------------------------------------------------------------------------------- */

/* A place in a region, on its way back through the steps of a rule. */
struct place {
    int rank;
    struct element at[TSSA_MAX_RANK + 1];
};

static bool insert_place(struct place *place, int64_t axis, const struct element *at)
{
    if (place->rank == TSSA_MAX_RANK || axis > place->rank)
        return false;
    memmove(place->at + axis + 1, place->at + axis,
            (size_t)(place->rank - axis) * sizeof *place->at);
    place->at[axis] = *at;
    place->rank++;
    return true;
}

static bool remove_place(struct place *place, int64_t axis, int count)
{
    if (axis + count > place->rank)
        return false;
    memmove(place->at + axis, place->at + axis + count,
            (size_t)(place->rank - axis - count) * sizeof *place->at);
    place->rank -= count;
    return true;
}

/* A param that is an index from the front: the number, or an element that is never negative. */
static bool read_param(struct reader *reader, const struct ir_op *op,
                       const struct rule_param *param, struct element *out)
{
    struct element at[TSSA_MAX_RANK];
    if (!param->is_operand)
        return param->value >= 0 && set_number(reader, param->value, out);
    struct ir_value *value = rule_param_value(op, param);
    int rank = value && value->type->kind == TYPE_TENSOR ? value->type->rank : -1;
    for (int i = 0; i < rank; i++)
        if (!set_number(reader, 0, &at[i]))
            return false;
    return rank >= 0 && read_value(reader, value, at, out) && is_never_negative(reader, out);
}

static bool undo_slice(struct reader *reader, const struct ir_op *op, const struct rule_step *step,
                       struct place *place)
{
    struct element start, rest;
    int64_t axis = step->params[0].value;
    if (step->params[3].is_operand || axis >= place->rank ||
        !read_param(reader, op, &step->params[1], &start))
        return false;
    const struct dim *by = dim_const(&reader->graph->dims, step->params[3].value);
    if (!made(reader, by) || by->value < 0) /* from beyond the end it would begin at the end */
        return false;
    return scale(reader, &place->at[axis], by, &rest) &&
           add(reader, &start, &rest, &place->at[axis]);
}

static bool undo_gather(struct reader *reader, const struct ir_op *op, const struct rule_step *step,
                        struct place *place)
{
    struct ir_value *indices = rule_param_value(op, &step->params[1]);
    int64_t axis = step->params[0].value;
    int rank = indices && indices->type->kind == TYPE_TENSOR ? indices->type->rank : -1;
    struct element index;
    return rank >= 0 && axis + rank <= place->rank &&
           read_value(reader, indices, place->at + axis, &index) &&
           is_never_negative(reader, &index) && remove_place(place, axis, rank) &&
           insert_place(place, axis, &index);
}

static bool undo_permute(const struct rule_step *step, struct place *place)
{
    struct place old = *place;
    for (uint32_t i = 0; i < step->n_params; i++)
        place->at[step->params[i].value] = old.at[i];
    return (int)step->n_params == place->rank;
}

static bool undo_step(struct reader *reader, const struct ir_op *op, const struct rule_step *step,
                      struct place *place)
{
    struct element at;
    switch (step->kind) {
    case RULE_SELECT:
        return read_param(reader, op, &step->params[1], &at) &&
               insert_place(place, step->params[0].value, &at);
    case RULE_SLICE:
        return undo_slice(reader, op, step, place);
    case RULE_PERMUTE:
        return undo_permute(step, place);
    case RULE_GATHER:
        return undo_gather(reader, op, step, place);
    case RULE_SQUEEZE:
        for (uint32_t i = 0; i < step->n_params; i++)
            if (!set_number(reader, 0, &at) || !insert_place(place, step->params[i].value, &at))
                return false;
        return true;
    case RULE_UNSQUEEZE:
        for (uint32_t i = step->n_params; i-- > 0;)
            if (!remove_place(place, step->params[i].value, 1))
                return false;
        return true;
    default:
        return false;
    }
}

/* A rule of one step whose shapes are those of operand and result. */
static read_fn reader_of_shape(const struct rule *rule)
{
    if (rule->n_steps != 1)
        return NULL;
    switch (rule->steps[0].kind) {
    case RULE_RESHAPE:
        return read_reshape;
    case RULE_EXPAND:
        return read_same;
    case RULE_TILE:
        return read_tile;
    default:
        return NULL;
    }
}

static bool read_access(struct reader *reader, const struct ir_value *value,
                        const struct element *at, struct element *out)
{
    const struct rule *rule = rule_of(value->op);
    struct place place = {.rank = value->type->rank};
    read_fn read = rule ? reader_of_shape(rule) : NULL;
    if (read)
        return read(reader, value, at, out);
    memcpy(place.at, at, (size_t)place.rank * sizeof *at);
    for (uint32_t i = rule ? rule->n_steps : 0; i-- > 0;)
        if (!undo_step(reader, value->op, &rule->steps[i], &place))
            return false;
    return rule && place.rank == infer_rank(value->op, 0) &&
           read_value(reader, ir_operand(value->op, 0), place.at, out);
}

/* ---- Values --------------------------------------------------------------------------------------- */

static const read_fn readers[IR_OP_COUNT] = {
    [IR_OP_Identity] = read_same,   [IR_OP_Cast] = read_cast,
    [IR_OP_Expand] = read_same,     [IR_OP_Add] = read_add,
    [IR_OP_Sub] = read_sub,         [IR_OP_Mul] = read_mul,
    [IR_OP_Neg] = read_neg,         [IR_OP_Where] = read_where,
    [IR_OP_Range] = read_range,     [IR_OP_ConstantOfShape] = read_constant_of_shape,
    [IR_OP_Reshape] = read_reshape, [IR_OP_Flatten] = read_reshape,
    [IR_OP_Squeeze] = read_reshape, [IR_OP_Unsqueeze] = read_reshape,
    [IR_OP_Slice] = read_slice,     [IR_OP_Transpose] = read_transpose,
    [IR_OP_Concat] = read_concat,   [IR_OP_Split] = read_split,
    [IR_OP_access] = read_access,   [IR_OP_Tile] = read_tile,
    [IR_OP_Gather] = read_gather,
};

static bool has_one_element(const struct ir_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (!is_dim_number(type->dims[i], 1))
            return false;
    return type->rank >= 0;
}

/* What inference knows of an element; NULL: nothing. */
static const struct dim *known_element(const struct ir_value *value, const struct element *at)
{
    const struct ir_known *known = value->known;
    int64_t place = 0;
    if (!known || value->type->rank > 1 ||
        (value->type->rank == 1 && !element_is_number(&at[0], &place)) || place < 0 ||
        (uint64_t)place >= known->count)
        return NULL;
    return known->elements[place];
}

static bool ask_op(struct reader *reader, struct ir_value *value, const struct element *at,
                   struct element *out)
{
    const struct tensor *table = ir_value_constant(value);
    if (table)
        return table->rank == value->type->rank && read_table(reader, table, at, out);
    read_fn read = value->op ? readers[value->op->info->id] : NULL;
    return read && reader->budget-- > 0 && read(reader, value, at, out);
}

/* A known number is enough; of what else is known, the op can say which scalar holds it. */
static bool ask(struct reader *reader, struct ir_value *value, const struct element *at,
                struct element *out)
{
    const struct dim *known = known_element(value, at);
    const struct ir_value *doubt = reader->doubt;
    struct element asked = {0};
    bool answered = !(known && known->kind == DIM_CONST) && ask_op(reader, value, at, &asked);
    if (!known || (answered && asked.scalar)) {
        *out = asked;
        return answered;
    }
    reader->doubt = doubt;
    *out = (struct element){.offset = known, .witness = asked.witness};
    return true;
}

static bool read_value(struct reader *reader, struct ir_value *value, const struct element *at,
                       struct element *out)
{
    if (!value || value->type->kind != TYPE_TENSOR || value->type->rank < 0 ||
        !dtype_is_integer(value->type->dtype))
        return false;
    const struct ir_value *doubt = reader->doubt;
    bool single = has_one_element(value->type);
    if (ask(reader, value, at, out)) {
        if (single && !out->witness)
            out->witness = value;
        return true;
    }
    if (reader->out_of_memory)
        return false;
    if (single) { /* known to a run only, but it is one number */
        reader->doubt = doubt;
        *out = (struct element){.scalar = value, .scale = 1, .witness = value};
        out->offset = dim_const(&reader->graph->dims, 0);
        return made(reader, out->offset);
    }
    if (!reader->doubt)
        reader->doubt = value;
    return false;
}

tssa_status *element_read(struct ir_graph *graph, const struct element_space *space,
                          struct ir_value *value, const struct element *at, struct element *element,
                          bool *proven, struct element_doubt *doubt)
{
    struct reader reader = {.graph = graph, .space = space, .budget = BUDGET};
    *proven = read_value(&reader, value, at, element);
    doubt->value = reader.doubt ? reader.doubt : value;
    return reader.out_of_memory ? status_out_of_memory() : NULL;
}
