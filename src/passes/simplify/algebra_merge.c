/* SPDX-License-Identifier: Apache-2.0 */
/* Rearrangements in a row; see algebra.h. */
#include "passes/simplify/algebra.h"

#include <string.h>

#include "base/vec.h"
#include "ir/infer.h"
#include "ir/rebuild.h"

/* ---- Transposes and Reshapes ----------------------------------------------------------------- */

static tssa_status *set_ints(struct ir_graph *graph, struct ir_op *op, const char *name,
                             size_t count, const int64_t *values)
{
    struct ir_attr attr = {.name = intern_str(&graph->strings, name),
                           .kind = IR_ATTR_INTS,
                           .count = count,
                           .ints = arena_copy(&graph->arena, values, count * sizeof *values)};
    TRY_ALLOC(attr.name);
    TRY_ALLOC(attr.ints);
    return ir_op_set_attr(graph, op, &attr) ? NULL : status_out_of_memory();
}

/* The permutation; false when the rank is not known. */
static bool read_perm(const struct ir_op *op, int64_t *perm, size_t *rank)
{
    const int64_t *given = ir_attr_ints(op, "perm", rank);
    if (given && *rank <= TSSA_MAX_RANK) {
        memcpy(perm, given, *rank * sizeof *perm);
        return true;
    }
    int reversed = infer_rank(op, 0);
    if (given || reversed < 0)
        return false;
    *rank = (size_t)reversed;
    for (int i = 0; i < reversed; i++)
        perm[i] = reversed - 1 - i;
    return true;
}

tssa_status *algebra_merge_transposes(struct ir_graph *graph, struct ir_op *op, bool *changed)
{
    const struct ir_op *before = algebra_producer(op, 0);
    int64_t outer[TSSA_MAX_RANK], inner[TSSA_MAX_RANK], both[TSSA_MAX_RANK];
    size_t rank, n;
    if (!before || !ir_op_is(before, IR_OP_Transpose) || !read_perm(op, outer, &rank) ||
        !read_perm(before, inner, &n) || n != rank || rank == 0)
        return NULL;
    for (size_t i = 0; i < rank; i++) {
        if (outer[i] < 0 || outer[i] >= (int64_t)rank)
            return NULL;
        both[i] = inner[outer[i]];
    }
    TRY(set_ints(graph, op, "perm", rank, both));
    ir_op_set_operand(op, 0, ir_operand(before, 0));
    *changed = true;
    return NULL;
}

/* What the target shape says does not depend on the operand's dims. */
static bool is_absolute(const struct ir_op *reshape)
{
    const struct ir_known *shape = infer_known(reshape, 1);
    int64_t size;
    if (ir_attr_int(reshape, "allowzero", 0))
        return true;
    for (size_t i = 0; shape && i < shape->count; i++)
        if (!shape->elements[i] ||
            (dim_is_const(shape->elements[i], &size) ? size == 0 : shape->elements[i]->low < 1))
            return false;
    return shape != NULL;
}

tssa_status *algebra_merge_reshapes(struct ir_graph *graph, struct ir_op *op, bool *changed)
{
    (void)graph;
    const struct ir_op *before = algebra_producer(op, 0);
    if (!before || !ir_op_keeps_order(before) || !is_absolute(op))
        return NULL;
    ir_op_set_operand(op, 0, ir_operand(before, 0));
    *changed = true;
    return NULL;
}

/* ---- Concatenations -------------------------------------------------------------------------- */

/* `inner` can be part of `outer`: its only use. */
static bool is_part(const struct ir_op *inner, const struct ir_op *outer)
{
    return inner && ir_op_is(inner, IR_OP_Concat) && ir_op_is(outer, IR_OP_Concat) &&
           algebra_used_once(inner) && inner->parent == outer->parent &&
           inner->results[0].uses->user == outer && ir_op_axis(inner) == ir_op_axis(outer);
}

tssa_status *algebra_merge_concats(struct ir_graph *graph, struct ir_op *op, bool *changed)
{
    VEC(struct ir_value *) stack = VEC_INIT(graph->allocator);
    VEC(struct ir_value *) leaves = VEC_INIT(graph->allocator);
    bool fits = true, merged = false;
    if (algebra_used_once(op) && is_part(op, op->results[0].uses->user))
        return NULL; /* its user takes it in, with everything before it */
    for (uint32_t i = op->n_operands; i-- > 0 && fits;)
        fits = vec_push(&stack, ir_operand(op, i));
    while (fits && stack.count) {
        struct ir_value *value = stack.data[--stack.count];
        const struct ir_op *user = value->uses ? value->uses->user : NULL;
        bool part = value->op && user && is_part(value->op, user);
        merged |= part;
        for (uint32_t i = part ? value->op->n_operands : 0; i-- > 0 && fits;)
            fits = vec_push(&stack, ir_operand(value->op, i));
        if (!part)
            fits = fits && vec_push(&leaves, value);
    }
    if (fits && merged)
        fits = ir_op_set_operands(op, (uint32_t)leaves.count, leaves.data);
    *changed |= merged;
    vec_free(&stack);
    vec_free(&leaves);
    return fits ? NULL : status_out_of_memory();
}

/* ---- Broadcasting ---------------------------------------------------------------------------- */

static bool has_result_shape(const struct ir_op *op, const struct ir_value *value)
{
    const struct ir_type *type = op->results[0].type;
    if (!value || value->type->kind != TYPE_TENSOR || type->kind != TYPE_TENSOR || type->rank < 0 ||
        value->type->rank != type->rank)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (value->type->dims[i] != type->dims[i])
            return false;
    return true;
}

/* Another operand alone gives the result its shape. */
static bool is_shaped_without(const struct ir_op *op, uint32_t index)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (i != index && has_result_shape(op, ir_operand(op, i)))
            return true;
    return false;
}

/* A scalar with what a ConstantOfShape fills its result with; NULL when memory runs out. */
static struct ir_op *filling(struct ir_graph *graph, const struct ir_op *fill)
{
    static const float zero = 0;
    const struct tensor *value = ir_attr_tensor(fill, "value");
    struct tensor *scalar = ARENA_NEW(&graph->arena, struct tensor);
    if (!scalar)
        return NULL;
    *scalar = (struct tensor){.dtype = value ? value->dtype : TSSA_FLOAT, .rank = 0};
    scalar->data =
        arena_copy(&graph->arena, value ? value->data : &zero, tssa_dtype_size(scalar->dtype));
    struct ir_op *constant = scalar->data ? ir_constant_create(graph, scalar) : NULL;
    if (constant)
        constant->name = fill->name;
    return constant;
}

/* What can stand for an operand that is broadcast: what was expanded, or one element of what was
 * filled. NULL where there is no such thing. */
static tssa_status *unbroadcast(struct ir_graph *graph, struct ir_op *op, uint32_t index,
                                struct ir_value **value)
{
    const struct ir_op *before = algebra_producer(op, index);
    *value = NULL;
    if (!before || !is_shaped_without(op, index))
        return NULL;
    if (ir_op_is(before, IR_OP_Expand) && infer_rank(before, 0) >= 0)
        *value = ir_operand(before, 0);
    if (!ir_op_is(before, IR_OP_ConstantOfShape))
        return NULL;
    struct ir_op *constant = filling(graph, before);
    TRY_ALLOC(constant);
    ir_op_insert_before(constant, op);
    *value = &constant->results[0];
    return ir_infer_op_lenient(constant);
}

/* Operators that have come to broadcast their operands to each other. */
static bool broadcasts(const struct ir_op *op)
{
    return ir_op_broadcasts(op) && op->n_operands > 1 &&
           op->version >= (op->info->max_operands == IR_VARIADIC ? 8 : 7);
}

tssa_status *algebra_drop_broadcasts(struct ir_graph *graph, struct ir_op *op, bool *changed)
{
    struct ir_value *value;
    for (uint32_t i = 0; broadcasts(op) && i < op->n_operands; i++) {
        TRY(unbroadcast(graph, op, i, &value));
        if (!value)
            continue;
        ir_op_set_operand(op, i, value);
        *changed = true;
    }
    return NULL;
}
