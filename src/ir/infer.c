/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of inference and the vocabulary that rules are written in; see infer.h. */
#include "ir/infer.h"

#include <string.h>

#include "base/hash.h"

static struct ir_graph *graph_of(const struct ir_op *op)
{
    return op->parent->graph;
}

/* ---- Driver ---------------------------------------------------------------------------------- */

uint64_t ir_infer_stamp(const struct ir_op *op)
{
    uint64_t stamp = 1;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = op->operands[i].value;
        const void *facts[] = {value ? value->type : NULL, value ? value->known : NULL};
        stamp = hash_bytes(facts, sizeof facts, stamp);
    }
    return stamp;
}

tssa_status *ir_infer_op(struct ir_op *op)
{
    struct ir_graph *graph = graph_of(op);
    graph->infer_steps++;
    op->inferred_from = ir_infer_stamp(op);
    return ir_op_blame(op->info->infer(graph, op), op);
}

static void forget(struct ir_graph *graph, struct ir_value *value)
{
    value->type = graph->types.unknown;
    value->known = NULL;
}

/*
 * Nothing is known of the op's results and of what is in its blocks, where inference came halfway.
 */
static void forget_op(struct ir_graph *graph, struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        forget(graph, &op->results[i]);
    for (uint32_t b = 0; b < op->n_blocks; b++) {
        for (uint32_t i = 0; i < op->blocks[b]->n_params; i++)
            forget(graph, op->blocks[b]->params[i]);
        for (struct ir_op *inner = op->blocks[b]->first; inner; inner = inner->next)
            forget_op(graph, inner);
    }
}

/* That it can never run is no error. */
static tssa_status *forgive(struct ir_op *op, tssa_status *status)
{
    if (!status || tssa_status_code(status) == TSSA_OUT_OF_MEMORY)
        return status;
    tssa_status_free(status);
    forget_op(graph_of(op), op);
    return NULL;
}

tssa_status *ir_infer_op_lenient(struct ir_op *op)
{
    return forgive(op, ir_infer_op(op));
}

/* Control flow errs only where it has not the blocks that it must have. */
static tssa_status *infer_inner(struct ir_op *op)
{
    bool may_never_run = graph_of(op)->infer_doubts > 0 && op->info->cls != IR_CLASS_CONTROL;
    return may_never_run ? ir_infer_op_lenient(op) : ir_infer_op(op);
}

tssa_status *ir_infer_block(struct ir_block *block, bool certain)
{
    struct ir_graph *graph = block->graph;
    tssa_status *status = NULL;
    graph->infer_doubts += certain ? 0 : 1;
    for (struct ir_op *op = block->first; op && !status; op = op->next)
        status = infer_inner(op);
    graph->infer_doubts -= certain ? 0 : 1;
    return status;
}

tssa_status *ir_infer_graph(struct ir_graph *graph)
{
    return ir_infer_block(graph->body, true);
}

/* ---- Reading operands ------------------------------------------------------------------------ */

const struct ir_type *infer_operand_type(const struct ir_graph *graph, const struct ir_op *op,
                                         uint32_t index)
{
    const struct ir_value *value = ir_operand(op, index);
    return value ? value->type : graph->types.unknown;
}

tssa_dtype infer_dtype(const struct ir_op *op, uint32_t index)
{
    const struct ir_value *value = ir_operand(op, index);
    if (!value)
        return TSSA_UNDEFINED;
    const struct ir_type *type = value->type;
    while (type->kind == TYPE_OPTIONAL)
        type = type->element;
    return type->kind == TYPE_TENSOR ? type->dtype : TSSA_UNDEFINED;
}

int infer_value_rank(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR ? value->type->rank : -1;
}

int infer_rank(const struct ir_op *op, uint32_t index)
{
    return infer_value_rank(ir_operand(op, index));
}

const struct dim *infer_dim(const struct ir_op *op, uint32_t index, int d)
{
    return ir_operand(op, index)->type->dims[d];
}

const struct ir_known *infer_known(const struct ir_op *op, uint32_t index)
{
    const struct ir_value *value = ir_operand(op, index);
    return value ? value->known : NULL;
}

bool infer_const_ints(const struct ir_op *op, uint32_t index, int64_t *values, size_t *count)
{
    const struct ir_known *known = infer_known(op, index);
    if (!known)
        return false;
    for (size_t i = 0; i < known->count; i++)
        if (!dim_is_const(known->elements[i], &values[i]))
            return false;
    *count = known->count;
    return true;
}

/* ---- Setting results ------------------------------------------------------------------------- */

tssa_status *infer_set(struct ir_op *op, uint32_t index, const struct ir_type *type)
{
    TRY_ALLOC(type);
    if (ir_result_wanted(op, index)) {
        op->results[index].type = type;
        op->results[index].known = NULL;
    }
    return NULL;
}

tssa_status *infer_set_tensor(struct ir_op *op, uint32_t index, tssa_dtype dtype, int rank,
                              const struct dim *const *dims)
{
    int64_t size;
    for (int i = 0; i < rank; i++) {
        TRY_ALLOC(dims[i]);
        if (dim_is_const(dims[i], &size) && size < 0)
            return ERROR(TSSA_MALFORMED, "dim %d of result %u would be %lld", i, (unsigned)index,
                         (long long)size);
    }
    return infer_set(op, index, type_tensor(&graph_of(op)->types, dtype, rank, dims));
}

tssa_status *infer_set_unranked(struct ir_op *op, uint32_t index, tssa_dtype dtype)
{
    return infer_set(op, index, type_unranked(&graph_of(op)->types, dtype));
}

tssa_status *infer_set_known(struct ir_op *op, uint32_t index, size_t count,
                             const struct dim *const *elements)
{
    if (!ir_result_wanted(op, index) || count > IR_KNOWN_MAX ||
        ir_value_is_mutable(graph_of(op), &op->results[index]))
        return NULL;
    struct arena *arena = &graph_of(op)->arena;
    struct ir_known *known = ARENA_NEW(arena, struct ir_known);
    TRY_ALLOC(known);
    known->count = count;
    if (count) {
        known->elements = arena_copy(arena, elements, count * sizeof *elements);
        TRY_ALLOC(known->elements);
    }
    op->results[index].known = known;
    return NULL;
}

const struct dim *infer_fresh(struct ir_op *op)
{
    return dim_fresh(&graph_of(op)->dims, op->info->name);
}

const struct dim *infer_fresh_below(struct ir_op *op, const struct dim *bound)
{
    int64_t high = bound && bound->high > 0 ? bound->high : bound ? 0 : INT64_MAX;
    return dim_fresh_between(&graph_of(op)->dims, op->info->name, 0, high);
}

/* ---- Axes and broadcasting ------------------------------------------------------------------- */

bool infer_find_axis(int64_t axis, int rank, int *result)
{
    const bool fits = axis >= -rank && axis < rank; /* of no rank, -1, none does */
    *result = fits ? (int)(axis < 0 ? axis + rank : axis) : -1;
    return fits;
}

tssa_status *infer_axis(const struct ir_op *op, int64_t axis, int rank, int *result)
{
    (void)op;
    return infer_find_axis(axis, rank, result)
               ? NULL
               : ERROR(TSSA_MALFORMED, "axis %lld is out of range for rank %d", (long long)axis,
                       rank);
}

tssa_status *infer_broadcast_dim(struct ir_op *op, const struct dim *a, const struct dim *b,
                                 const struct dim **result)
{
    int64_t x = -1, y = -1;
    bool known_a = dim_is_const(a, &x), known_b = dim_is_const(b, &y);
    if (dim_broadcasts(b, a))
        *result = a;
    else if (dim_broadcasts(a, b))
        *result = b;
    else if (known_a && known_b)
        return ERROR(TSSA_MALFORMED, "dims %lld and %lld do not broadcast", (long long)x,
                     (long long)y);
    else if (known_a || known_b) /* the other can only be 1 or the same */
        *result = known_a ? a : b;
    else
        *result = infer_fresh_below(op, a->high > b->high ? a : b);
    TRY_ALLOC(*result);
    return NULL;
}

/* Broadcasts operand `index` into dims, right-aligned. */
static tssa_status *broadcast_operand(struct ir_op *op, uint32_t index, int *rank,
                                      const struct dim **dims)
{
    int own = infer_rank(op, index);
    if (own > *rank) {
        memmove(dims + (own - *rank), dims, (size_t)*rank * sizeof *dims);
        for (int i = 0; i < own - *rank; i++)
            dims[i] = infer_dim(op, index, i);
        int shared = *rank;
        *rank = own;
        for (int i = own - shared; i < own; i++)
            TRY(infer_broadcast_dim(op, dims[i], infer_dim(op, index, i), &dims[i]));
        return NULL;
    }
    for (int i = 0; i < own; i++) {
        const struct dim **dim = &dims[*rank - own + i];
        TRY(infer_broadcast_dim(op, *dim, infer_dim(op, index, i), dim));
    }
    return NULL;
}

tssa_status *infer_broadcast(struct ir_op *op, uint32_t first, uint32_t count, int *rank,
                             const struct dim **dims)
{
    *rank = 0;
    for (uint32_t i = first; i < first + count; i++) {
        if (!ir_operand(op, i))
            continue;
        if (infer_rank(op, i) < 0) {
            *rank = -1;
            return NULL;
        }
        TRY(broadcast_operand(op, i, rank, dims));
    }
    return NULL;
}

const struct tensor *infer_const_tensor(const struct ir_op *op, uint32_t index)
{
    const struct ir_value *value = ir_operand(op, index);
    return value && !ir_value_is_mutable(graph_of(op), value) ? ir_value_constant(value) : NULL;
}

tssa_status *infer_element(struct ir_graph *graph, tssa_dtype dtype, const void *element,
                           const struct dim **dim)
{
    int64_t value = dtype_load_int64(dtype, element);
    *dim = NULL;
    if (dtype == TSSA_UINT64 && value < 0)
        return NULL;
    *dim = dim_const(&graph->dims, value);
    TRY_ALLOC(*dim);
    return NULL;
}
