/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of conversion.def: the shape of operand 0, an element type that attributes
 * or other operands choose. */
#include "ir/infer_conversion.h"

#include <inttypes.h>

#include "ir/wrap.h"

tssa_status *infer_set_like_first(struct ir_op *op, uint32_t index, tssa_dtype dtype)
{
    const struct ir_value *value = ir_operand(op, 0);
    if (!value || value->type->kind != TYPE_TENSOR || value->type->rank < 0)
        return infer_set_unranked(op, index, dtype);
    return infer_set_tensor(op, index, dtype, value->type->rank, value->type->dims);
}

tssa_status *infer_check_dtype(const struct ir_op *op, tssa_dtype dtype)
{
    if (dtype != TSSA_UNDEFINED && !dtype_in(op->info->types, dtype))
        return ERROR(TSSA_MALFORMED, "operand 0 cannot be %s", dtype_info(dtype)->ir_name);
    return NULL;
}

tssa_status *infer_dtype_attr(const struct ir_op *op, const char *name, dtype_mask legal,
                              tssa_dtype *dtype)
{
    int64_t number = ir_attr_int(op, name, TSSA_UNDEFINED);
    if (number < 0 || number >= TSSA_DTYPE_COUNT ||
        (number != TSSA_UNDEFINED && !dtype_in(legal, (tssa_dtype)number)))
        return ERROR(TSSA_MALFORMED,
                     "attribute \"%s\" is %" PRId64 ", which is no element type it may name", name,
                     number);
    *dtype = (tssa_dtype)number;
    return NULL;
}

INFER_RULE(identity)
{
    TRY(infer_set(op, 0, infer_operand_type(graph, op, 0)));
    const struct ir_known *known = infer_known(op, 0);
    return known ? infer_set_known(op, 0, known->count, known->elements) : NULL;
}

/* Integers that are tracked and fit stay what they are; truth values become 0 and 1 and back. */
static tssa_status *cast_known(struct ir_graph *graph, struct ir_op *op, tssa_dtype from,
                               tssa_dtype to)
{
    const struct ir_known *known = infer_known(op, 0);
    bool integers = to == TSSA_INT64 || to == TSSA_INT32 || to == TSSA_BOOL;
    if (!known || !integers || (from != TSSA_INT64 && from != TSSA_INT32 && from != TSSA_BOOL))
        return NULL;
    const struct dim *elements[IR_KNOWN_MAX];
    for (size_t i = 0; i < known->count; i++) {
        int64_t value;
        bool constant = dim_is_const(known->elements[i], &value);
        elements[i] = known->elements[i];
        if (to == TSSA_BOOL && from != TSSA_BOOL) {
            elements[i] = constant ? dim_const(&graph->dims, value != 0) : NULL;
            if (constant)
                TRY_ALLOC(elements[i]);
        } else if (elements[i] && !wrap_never(graph, to, elements[i])) {
            elements[i] = NULL;
        }
    }
    return infer_set_known(op, 0, known->count, elements);
}

INFER_RULE(cast)
{
    tssa_dtype to, from = infer_dtype(op, 0);
    TRY(infer_check_dtype(op, from));
    if (ir_op_is(op, IR_OP_CastLike)) {
        to = infer_dtype(op, 1);
    } else {
        TRY(infer_dtype_attr(op, "to", op->info->types, &to));
        if (to == TSSA_UNDEFINED)
            return ERROR(TSSA_MALFORMED, "attribute \"to\" is missing");
    }
    TRY(infer_set_like_first(op, 0, to));
    return cast_known(graph, op, from, to);
}

INFER_RULE(bit_cast)
{
    (void)graph;
    tssa_dtype to, from = infer_dtype(op, 0);
    TRY(infer_check_dtype(op, from));
    TRY(infer_dtype_attr(op, "to", op->info->types, &to));
    if (to == TSSA_UNDEFINED)
        return ERROR(TSSA_MALFORMED, "attribute \"to\" is missing");
    if (from != TSSA_UNDEFINED && dtype_info(from)->file_bits != dtype_info(to)->file_bits)
        return ERROR(TSSA_MALFORMED, "%s and %s differ in width", dtype_info(from)->ir_name,
                     dtype_info(to)->ir_name);
    return infer_set_like_first(op, 0, to);
}
