/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference of the rows of sequence.def.
 *
 * A symbolic dim in the type of a sequence's elements says little: it may stand for a size that was
 * another one whenever an element was inserted. So only ranks and constant dims are taken out
 * again.
 */
#include "ir/infer.h"

static const struct ir_type *operand_type(const struct ir_graph *graph, const struct ir_op *op,
                                          uint32_t index)
{
    return infer_operand_type(graph, op, index);
}

/* The type of the elements of operand 0, a sequence; unknown when that is unknown. */
static tssa_status *element_type(const struct ir_graph *graph, const struct ir_op *op,
                                 const struct ir_type **element)
{
    const struct ir_type *type = operand_type(graph, op, 0);
    *element = graph->types.unknown;
    if (type->kind == TYPE_SEQUENCE)
        *element = type->element;
    else if (type->kind != TYPE_UNKNOWN)
        return ERROR(TSSA_MALFORMED, "operand 0 is not a sequence");
    return NULL;
}

/* A tensor type with fresh symbols for all dims that are not constants. */
static tssa_status *element_dims(struct ir_op *op, const struct ir_type *type,
                                 const struct dim **dims)
{
    for (int i = 0; i < type->rank; i++) {
        dims[i] = type->dims[i]->kind == DIM_CONST ? type->dims[i] : infer_fresh(op);
        TRY_ALLOC(dims[i]);
    }
    return NULL;
}

/* What two elements have in common; an unknown one tells nothing. */
static const struct ir_type *join_elements(struct ir_graph *graph, const struct ir_type *a,
                                           const struct ir_type *b)
{
    if (a->kind == TYPE_TENSOR && b->kind == TYPE_UNKNOWN)
        return type_unranked(&graph->types, a->dtype);
    return type_join(&graph->types, a, b);
}

static tssa_status *dtype_conflict(const struct ir_type *a, const struct ir_type *b)
{
    if (a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->dtype != TSSA_UNDEFINED &&
        b->dtype != TSSA_UNDEFINED && a->dtype != b->dtype)
        return ERROR(TSSA_MALFORMED, "a sequence cannot hold both %s and %s",
                     dtype_info(a->dtype)->ir_name, dtype_info(b->dtype)->ir_name);
    return NULL;
}

INFER_RULE(sequence_construct)
{
    const struct ir_type *element = operand_type(graph, op, 0);
    for (uint32_t i = 1; i < op->n_operands; i++) {
        const struct ir_type *type = operand_type(graph, op, i);
        TRY(dtype_conflict(element, type));
        element = join_elements(graph, element, type);
        TRY_ALLOC(element);
    }
    return infer_set(op, 0, type_sequence(&graph->types, element));
}

INFER_RULE(sequence_empty)
{
    int64_t dtype = ir_attr_int(op, "dtype", TSSA_FLOAT);
    if (dtype <= 0 || dtype >= TSSA_DTYPE_COUNT)
        return ERROR(TSSA_MALFORMED, "dtype %lld does not exist", (long long)dtype);
    const struct ir_type *element = type_unranked(&graph->types, (tssa_dtype)dtype);
    TRY_ALLOC(element);
    return infer_set(op, 0, type_sequence(&graph->types, element));
}

INFER_RULE(sequence_at)
{
    const struct ir_type *element;
    const struct dim *dims[TSSA_MAX_RANK];
    TRY(element_type(graph, op, &element));
    if (element->kind != TYPE_TENSOR || element->rank < 0)
        return infer_set(op, 0, element);
    TRY(element_dims(op, element, dims));
    return infer_set_tensor(op, 0, element->dtype, element->rank, dims);
}

INFER_RULE(sequence_insert)
{
    const struct ir_type *element, *inserted = operand_type(graph, op, 1);
    const struct ir_value *sequence = ir_operand(op, 0);
    TRY(element_type(graph, op, &element));
    TRY(dtype_conflict(element, inserted));
    /* The first element of a sequence that is known to be empty decides alone. */
    bool first = sequence && sequence->op && ir_op_is(sequence->op, IR_OP_SequenceEmpty);
    if (!first || inserted->kind == TYPE_UNKNOWN)
        inserted = join_elements(graph, element, inserted);
    TRY_ALLOC(inserted);
    return infer_set(op, 0, type_sequence(&graph->types, inserted));
}

INFER_RULE(sequence_erase)
{
    const struct ir_type *element;
    TRY(element_type(graph, op, &element));
    return infer_set(op, 0, operand_type(graph, op, 0));
}

INFER_RULE(sequence_length)
{
    const struct ir_type *element;
    TRY(element_type(graph, op, &element));
    TRY(infer_set(op, 0, type_scalar(&graph->types, TSSA_INT64)));
    const struct dim *length = infer_fresh(op);
    TRY_ALLOC(length);
    return infer_set_known(op, 0, 1, &length);
}

/* The size of the parts along the axis, where all have the same; else a fresh symbol. */
static const struct dim *part_size(struct ir_graph *graph, struct ir_op *op,
                                   const struct dim *whole)
{
    const struct ir_known *sizes = infer_known(op, 1);
    int64_t dim, size;
    if (!ir_operand(op, 1))
        return dim_const(&graph->dims, 1);
    if (!sizes || sizes->count == 0 || !dim_is_const(sizes->elements[0], &size))
        return infer_fresh(op);
    /* A scalar's last part may be smaller. */
    bool same =
        infer_rank(op, 1) == 1 || (size > 0 && dim_is_const(whole, &dim) && dim % size == 0);
    for (size_t i = 1; same && i < sizes->count; i++)
        same = dim_is(sizes->elements[i], size);
    return same ? sizes->elements[0] : infer_fresh(op);
}

bool infer_split_keeps_axis(const struct ir_op *op, bool *known)
{
    const struct ir_value *split = ir_operand(op, 1);
    const struct ir_known *size = split ? split->known : NULL;
    int64_t number;
    *known = true;
    if (ir_attr_int(op, "keepdims", 1) != 0)
        return true;
    if (!split || (split->type->kind == TYPE_TENSOR && split->type->rank > 0))
        return split != NULL;
    *known = split->type->kind == TYPE_TENSOR && split->type->rank == 0 && size &&
             size->count == 1 && dim_is_const(size->elements[0], &number);
    return *known && number != 1;
}

INFER_RULE(split_to_sequence)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = infer_rank(op, 0), axis, left = 0;
    const struct ir_type *element;
    bool known, keep = infer_split_keeps_axis(op, &known);
    if (rank < 0 || !known) {
        element = type_unranked(&graph->types, infer_dtype(op, 0));
        TRY_ALLOC(element);
        return infer_set(op, 0, type_sequence(&graph->types, element));
    }
    TRY(infer_axis(op, ir_op_axis(op), rank, &axis));
    for (int i = 0; i < rank; i++) {
        if (i == axis && !keep)
            continue;
        dims[left] = i == axis ? part_size(graph, op, infer_dim(op, 0, i)) : infer_dim(op, 0, i);
        TRY_ALLOC(dims[left]);
        left++;
    }
    element = type_tensor(&graph->types, infer_dtype(op, 0), left, dims);
    TRY_ALLOC(element);
    return infer_set(op, 0, type_sequence(&graph->types, element));
}

INFER_RULE(concat_from_sequence)
{
    const struct ir_type *element;
    const struct dim *inner[TSSA_MAX_RANK], *dims[TSSA_MAX_RANK];
    int axis;
    TRY(element_type(graph, op, &element));
    tssa_dtype dtype = element->kind == TYPE_TENSOR ? element->dtype : TSSA_UNDEFINED;
    if (element->kind != TYPE_TENSOR || element->rank < 0)
        return infer_set_unranked(op, 0, dtype);
    int grow = ir_attr_int(op, "new_axis", 0) != 0, rank = element->rank + grow;
    TRY(infer_axis(op, ir_op_axis(op), rank, &axis));
    if (rank > TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "the result would have rank %d, at most %d is supported",
                     rank, TSSA_MAX_RANK);
    TRY(element_dims(op, element, inner));
    for (int i = 0, from = 0; i < rank; i++) {
        dims[i] = i == axis ? infer_fresh(op) : inner[from];
        from += i != axis || !grow;
    }
    return infer_set_tensor(op, 0, dtype, rank, dims);
}

/* ---- Optionals ------------------------------------------------------------------------------- */

INFER_RULE(optional)
{
    const struct ir_attr *type = ir_attr(op, "type");
    const struct ir_type *element = operand_type(graph, op, 0);
    if (!ir_operand(op, 0) && type && type->kind == IR_ATTR_TYPE)
        element = type->type;
    return infer_set(op, 0, type_optional(&graph->types, element));
}

INFER_RULE(optional_get_element)
{
    const struct ir_type *type = operand_type(graph, op, 0);
    return infer_set(op, 0, type->kind == TYPE_OPTIONAL ? type->element : type);
}

INFER_RULE(optional_has_element)
{
    const struct ir_type *type = operand_type(graph, op, 0);
    TRY(infer_set(op, 0, type_scalar(&graph->types, TSSA_BOOL)));
    bool present = type->kind == TYPE_TENSOR || type->kind == TYPE_SEQUENCE;
    if (!present && ir_operand(op, 0))
        return NULL;
    const struct dim *element = dim_const(&graph->dims, present);
    TRY_ALLOC(element);
    return infer_set_known(op, 0, 1, &element);
}
