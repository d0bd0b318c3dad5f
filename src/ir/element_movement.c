/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of what is moved: each is one of an operand, at another place. Here: where the types say
 * which, and of several operands or results. What rules say is in element_rule.c. */
#include <string.h>

#include "ir/element_reader.h"
#include "ir/infer.h"

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* The piece in which a constant place lies; pieces before it have constant sizes. */
bool element_read_concat(struct reader *reader, const struct ir_value *value,
                         const struct element *at, struct element *out)
{
    const struct ir_op *op = value->op;
    struct element inner[TSSA_MAX_RANK];
    int64_t axis = ir_op_axis(op), place, size;
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
        return element_set(reader, place, &inner[axis]) &&
               element_read_value(reader, ir_operand(op, i), inner, out);
    }
    return false;
}

bool element_read_split(struct reader *reader, const struct ir_value *value,
                        const struct element *at, struct element *out)
{
    const struct ir_op *op = value->op;
    struct element inner[TSSA_MAX_RANK], offset;
    int64_t axis = ir_op_axis(op), sum = 0, size;
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
    return element_set(reader, sum, &offset) &&
           element_add(reader, &offset, &at[axis], &inner[axis]) &&
           element_read_value(reader, ir_operand(op, 0), inner, out);
}

bool element_read_tile(struct reader *reader, const struct ir_value *value,
                       const struct element *at, struct element *out)
{
    struct element inner[TSSA_MAX_RANK];
    int rank = value->type->rank;
    for (int i = 0; i < rank; i++) {
        const struct dim *dim = infer_dim(value->op, 0, i);
        int64_t place, size = 1;
        if (dim == value->type->dims[i])
            inner[i] = at[i];
        else if (dim_is(dim, 1) ||
                 (element_is_number(&at[i], &place) && dim_is_const(dim, &size) && size > 0)) {
            if (!element_set(reader, dim_is(dim, 1) ? 0 : place % size, &inner[i]))
                return false;
        } else {
            return false;
        }
    }
    return element_read_value(reader, ir_operand(value->op, 0), inner, out);
}

/* ---- Reshape and the like -------------------------------------------------------------------- */

/* The axes that are not of size one. */
static int long_axes(const struct ir_type *type, int *axes)
{
    int n = 0;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is(type->dims[i], 1))
            axes[n++] = i;
    return n;
}

/* Axes of the result that join to axis `dim` of the operand: how many from `axes[from]` on; 0:
 * none. */
static int joined(struct reader *reader, const struct ir_type *type, const int *axes, int from,
                  int n, const struct dim *dim)
{
    const struct dim *product = NULL;
    for (int i = from; i < n; i++) {
        const struct dim *next = type->dims[axes[i]];
        product = product ? dim_mul(&reader->graph->dims, product, next) : next;
        if (!element_made(reader, product))
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
        if (!element_scale(reader, out, type->dims[axes[i]], &scaled) ||
            !element_add(reader, &scaled, &at[axes[i]], out))
            return false;
    }
    return true;
}

/*
 * Axes of size one come and go; an axis of the operand may be divided into several of the result.
 * The other way round a place would have to be divided, unless it is a number.
 */
bool element_read_reshape(struct reader *reader, const struct ir_value *value,
                          const struct element *at, struct element *out)
{
    struct ir_value *operand = ir_operand(value->op, 0);
    const struct ir_type *from = operand->type, *to = value->type;
    struct element inner[TSSA_MAX_RANK];
    int in[TSSA_MAX_RANK], axes[TSSA_MAX_RANK];
    if (from == to)
        return element_read_value(reader, operand, at, out);
    if (from->kind != TYPE_TENSOR || from->rank < 0)
        return false;
    int n_in = long_axes(from, in), n = long_axes(to, axes), next = 0;
    for (int i = 0; i < from->rank; i++)
        if (!element_set(reader, 0, &inner[i]))
            return false;
    for (int i = 0; i < n_in; i++) {
        int count = joined(reader, to, axes, next, n, from->dims[in[i]]);
        if (count == 0 || !join_places(reader, to, axes + next, count, at, &inner[in[i]]))
            return false;
        next += count;
    }
    return next == n && element_read_value(reader, operand, inner, out);
}
