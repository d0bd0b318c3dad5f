/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of what is broadcast, cast, and made by generators. */
#include "ir/element_reader.h"
#include "ir/infer.h"
#include "ir/wrap.h"

/* ---- Elementwise ops ------------------------------------------------------------------------- */

bool element_place(struct reader *reader, const struct ir_value *value, uint32_t index,
                   const struct element *at, struct element *inner)
{
    const struct ir_value *operand = ir_operand(value->op, index);
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
    return true;
}

bool element_read_operand(struct reader *reader, const struct ir_value *value, uint32_t index,
                          const struct element *at, struct element *out)
{
    struct element inner[TSSA_MAX_RANK];
    return element_place(reader, value, index, at, inner) &&
           element_read_value(reader, ir_operand(value->op, index), inner, out);
}

bool element_read_same(struct reader *reader, const struct ir_value *value,
                       const struct element *at, struct element *out)
{
    return element_read_operand(reader, value, 0, at, out);
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
    return dtype_is_integer(from) && element_read_operand(reader, value, 0, at, out) &&
           (widens(from, to) || element_fits(reader, to, out));
}

/* ---- Generators ------------------------------------------------------------------------------ */

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
