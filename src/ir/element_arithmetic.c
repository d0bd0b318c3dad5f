/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of what arithmetic computes and generators make. */
#include "ir/element_reader.h"
#include "ir/infer.h"
#include "ir/wrap.h"

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
        if (dim_is(dim, 1)) {
            if (!element_set(reader, 0, &inner[i]))
                return false;
        } else if (dim == value->type->dims[rank - from + i]) {
            inner[i] = at[rank - from + i];
        } else {
            return false;
        }
    }
    return element_read_value(reader, operand, inner, out);
}

bool element_read_same(struct reader *reader, const struct ir_value *value,
                       const struct element *at, struct element *out)
{
    return read_broadcast(reader, value, 0, at, out);
}

/* Every number of one type is one of the other. */
static bool widens(tssa_dtype from, tssa_dtype to)
{
    int64_t low, high, least, most;
    return from == to || (from != TSSA_UINT64 && wrap_limits(from, &low, &high) &&
                          wrap_limits(to, &least, &most) && least <= low && high <= most);
}

bool element_read_cast(struct reader *reader, const struct ir_value *value,
                       const struct element *at, struct element *out)
{
    tssa_dtype from = infer_dtype(value->op, 0), to = value->type->dtype;
    return dtype_is_integer(from) && read_broadcast(reader, value, 0, at, out) &&
           (widens(from, to) || element_fits(reader, to, out));
}

bool element_read_add(struct reader *reader, const struct ir_value *value, const struct element *at,
                      struct element *out)
{
    struct element a, b;
    return read_broadcast(reader, value, 0, at, &a) && read_broadcast(reader, value, 1, at, &b) &&
           element_add(reader, &a, &b, out) && element_fits(reader, value->type->dtype, out);
}

static bool negate(struct reader *reader, const struct element *a, struct element *out)
{
    const struct dim *minus = dim_const(&reader->graph->dims, -1);
    return element_made(reader, minus) && element_scale(reader, a, minus, out);
}

bool element_read_neg(struct reader *reader, const struct ir_value *value, const struct element *at,
                      struct element *out)
{
    struct element a;
    return read_broadcast(reader, value, 0, at, &a) && negate(reader, &a, out) &&
           element_fits(reader, value->type->dtype, out);
}

bool element_read_sub(struct reader *reader, const struct ir_value *value, const struct element *at,
                      struct element *out)
{
    struct element a, b, minus;
    return read_broadcast(reader, value, 0, at, &a) && read_broadcast(reader, value, 1, at, &b) &&
           negate(reader, &b, &minus) && element_add(reader, &a, &minus, out) &&
           element_fits(reader, value->type->dtype, out);
}

bool element_read_mul(struct reader *reader, const struct ir_value *value, const struct element *at,
                      struct element *out)
{
    struct element a, b;
    if (!read_broadcast(reader, value, 0, at, &a) || !read_broadcast(reader, value, 1, at, &b))
        return false;
    const struct dim *left = element_as_dim(&a), *right = element_as_dim(&b);
    bool done = right ? element_scale(reader, &a, right, out)
                      : left && element_scale(reader, &b, left, out);
    return done && element_fits(reader, value->type->dtype, out);
}

/* Is `a` below `b` everywhere (1), nowhere (0), or can it not be told (-1)? */
static int is_below(struct reader *reader, const struct element *a, const struct element *b)
{
    struct element minus, difference;
    if (!negate(reader, b, &minus) || !element_add(reader, a, &minus, &difference))
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
        else if (!dim_is(condition->type->dims[i], 1) || !element_set(reader, 0, &inner[i]))
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
bool element_read_where(struct reader *reader, const struct ir_value *value,
                        const struct element *at, struct element *out)
{
    int condition = read_condition(reader, value, at);
    return condition >= 0 && read_broadcast(reader, value, condition ? 1 : 2, at, out);
}

/* ---- Generators ----------------------------------------------------------------------------------- */

/* The element of an operand that has one. */
bool element_read_single(struct reader *reader, const struct ir_value *value, uint32_t index,
                         struct element *out)
{
    struct element at[TSSA_MAX_RANK];
    int rank = infer_rank(value->op, index);
    if (rank < 0)
        return false;
    for (int i = 0; i < rank; i++)
        if (!element_set(reader, 0, &at[i]))
            return false;
    return element_read_value(reader, ir_operand(value->op, index), at, out);
}

bool element_read_range(struct reader *reader, const struct ir_value *value,
                        const struct element *at, struct element *out)
{
    struct element start, delta, rest;
    if (!dtype_is_integer(value->type->dtype) || !element_read_single(reader, value, 0, &start) ||
        !element_read_single(reader, value, 2, &delta))
        return false;
    const struct dim *by = element_as_dim(&delta);
    return by && element_scale(reader, &at[0], by, &rest) &&
           element_add(reader, &start, &rest, out) && element_fits(reader, value->type->dtype, out);
}

bool element_read_constant_of_shape(struct reader *reader, const struct ir_value *value,
                                    const struct element *at, struct element *out)
{
    const struct tensor *fill = ir_attr_tensor(value->op, "value");
    (void)at;
    return fill && dtype_is_integer(fill->dtype) && tensor_count(fill) == 1 &&
           element_set(reader, element_load(fill, 0), out);
}
