/* SPDX-License-Identifier: Apache-2.0 */
/* SSA scalars as dims. */
#include "ir/region.h"

#include <string.h>

#include "ir/scalar.h"

/* Chains of arithmetic on one scalar that are longer are not looked through. */
#define MAX_DEPTH 64

void region_space_init(struct region_space *space, struct ir_graph *graph)
{
    *space = (struct region_space){.graph = graph};
    map_init(&space->symbols, graph->allocator);
}

void region_space_free(struct region_space *space)
{
    allocator_free(space->graph->allocator, space->scalars);
    map_free(&space->symbols);
}

static bool reserve(struct region_space *space, size_t n)
{
    if (n <= space->n_scalars)
        return true;
    if (n < 2 * space->n_scalars)
        n = 2 * space->n_scalars;
    const tssa_allocator *allocator = space->graph->allocator;
    const struct dim **grown = allocator_calloc(allocator, n, sizeof *grown);
    if (!grown)
        return false;
    if (space->n_scalars)
        memcpy(grown, space->scalars, space->n_scalars * sizeof *grown);
    allocator_free(allocator, space->scalars);
    space->scalars = grown;
    space->n_scalars = n;
    return true;
}

static tssa_dtype dtype_of(const struct ir_value *value)
{
    return value->type->kind == TYPE_TENSOR ? value->type->dtype : TSSA_UNDEFINED;
}

/* An op that hands its operand's only element on. */
static bool is_transparent(const struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_Cast))
        return ir_op_keeps_order(op);
    tssa_dtype from = dtype_of(ir_operand(op, 0)); /* narrower integers may wrap */
    return dtype_of(&op->results[0]) == TSSA_INT64 && (from == TSSA_INT32 || from == TSSA_INT64);
}

static const struct dim *scalar(struct region_space *space, const struct ir_value *value,
                                int depth);

/* What arithmetic on scalars comes to, by the row's program; *dim is NULL where that cannot be
 * told. */
static bool combine(struct region_space *space, const struct ir_op *op, int depth,
                    const struct dim **dim)
{
    const struct dim *operands[3] = {NULL};
    *dim = NULL;
    if (!op->info->ew || op->n_operands > 3)
        return true;
    for (uint32_t i = 0; i < op->n_operands; i++) /* the others wrap within the range of indices */
        if (ir_operand(op, i) && dtype_of(ir_operand(op, i)) != TSSA_INT64)
            return true;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !(operands[i] = scalar(space, ir_operand(op, i), depth + 1)))
            return false;
    tssa_status *status = scalar_index(op, operands, dim);
    bool done = tssa_status_code(status) != TSSA_OUT_OF_MEMORY;
    tssa_status_free(status);
    return done;
}

static const struct dim *new_symbol(struct region_space *space, const struct ir_value *value,
                                    const char *hint)
{
    const struct dim *dim = dim_fresh(&space->graph->dims, hint);
    /* The map never changes a value. */
    if (!dim || !map_put(&space->symbols, &dim->id, sizeof dim->id, (void *)(uintptr_t)value))
        return NULL;
    return dim;
}

static const struct dim *new_scalar(struct region_space *space, const struct ir_value *value,
                                    int depth)
{
    const struct ir_op *op = value->op;
    const struct dim *dim;
    if (value->known && value->known->count == 1 && value->known->elements[0])
        return value->known->elements[0];
    if (value->block && value->index == 0 && value->block->owner &&
        ir_op_is(value->block->owner, IR_OP_Loop))
        return new_symbol(space, value, "counter");
    if (op && op->n_results == 1 && depth < MAX_DEPTH && ir_operand(op, 0)) {
        if (is_transparent(op))
            return scalar(space, ir_operand(op, 0), depth + 1);
        if (!combine(space, op, depth, &dim))
            return NULL;
        if (dim)
            return dim;
    }
    return new_symbol(space, value, "any");
}

static const struct dim *scalar(struct region_space *space, const struct ir_value *value, int depth)
{
    if (!reserve(space, (size_t)value->id + 1))
        return NULL;
    if (space->scalars[value->id])
        return space->scalars[value->id];
    const struct dim *dim = new_scalar(space, value, depth);
    space->scalars[value->id] = dim;
    return dim;
}

const struct dim *region_scalar(struct region_space *space, const struct ir_value *value)
{
    return scalar(space, value, 0);
}
