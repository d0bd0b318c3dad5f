/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/clone.h"

#include <string.h>

#include "ir/infer.h"

/* ---- The map --------------------------------------------------------------------------------- */

struct ir_cloned {
    struct ir_value *value;
    uint32_t epoch; /* older than the cloner's: forgotten */
};

void ir_cloner_init(struct ir_cloner *cloner, struct ir_graph *graph)
{
    *cloner = (struct ir_cloner){.graph = graph, .epoch = 1};
}

void ir_cloner_free(struct ir_cloner *cloner)
{
    allocator_free(cloner->graph->allocator, cloner->values);
    cloner->values = NULL;
    cloner->n_values = 0;
}

void ir_cloner_reset(struct ir_cloner *cloner)
{
    if (++cloner->epoch)
        return;
    for (size_t i = 0; i < cloner->n_values; i++) /* once in 2^32 times */
        cloner->values[i].epoch = 0;
    cloner->epoch = 1;
}

static bool grow(struct ir_cloner *cloner, size_t n)
{
    const tssa_allocator *allocator = cloner->graph->allocator;
    size_t size = n + n / 2;
    struct ir_cloned *values = allocator_calloc(allocator, size, sizeof *values);
    if (!values)
        return false;
    if (cloner->n_values)
        memcpy(values, cloner->values, cloner->n_values * sizeof *values);
    allocator_free(allocator, cloner->values);
    cloner->values = values;
    cloner->n_values = size;
    return true;
}

bool ir_cloner_map(struct ir_cloner *cloner, const struct ir_value *from, struct ir_value *to)
{
    const size_t values = cloner->graph->n_values;
    /* A value of another graph may have a higher number than all of this one. */
    if (from->id >= cloner->n_values && !grow(cloner, from->id < values ? values : from->id + 1u))
        return false;
    cloner->values[from->id] = (struct ir_cloned){.value = to, .epoch = cloner->epoch};
    return true;
}

struct ir_value *ir_cloner_get(const struct ir_cloner *cloner, const struct ir_value *value)
{
    if (value && value->id < cloner->n_values && cloner->values[value->id].epoch == cloner->epoch)
        return cloner->values[value->id].value;
    return (struct ir_value *)value;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Attributes are never changed in place but for their slot, so only the slots are copied. */
static bool copy_attrs(struct ir_graph *graph, struct ir_op *copy, const struct ir_op *op)
{
    if (!op->n_attrs)
        return true;
    copy->attrs = arena_copy(&graph->arena, op->attrs, op->n_attrs * sizeof *op->attrs);
    copy->n_attrs = op->n_attrs;
    return copy->attrs != NULL;
}

static bool copy_blocks(struct ir_cloner *cloner, struct ir_op *copy, const struct ir_op *op)
{
    if (!op->n_blocks)
        return true;
    if (!ir_op_set_blocks(cloner->graph, copy, op->n_blocks))
        return false;
    for (uint32_t i = 0; i < op->n_blocks; i++) {
        copy->block_names[i] = op->block_names[i];
        if (!(copy->blocks[i] = ir_clone_block(cloner, op->blocks[i], copy)))
            return false;
    }
    return true;
}

struct ir_op *ir_clone_op(struct ir_cloner *cloner, const struct ir_op *op)
{
    struct ir_op *copy = ir_op_create(cloner->graph, op->info, op->n_operands, op->n_results);
    if (!copy)
        return NULL;
    copy->opaque = op->opaque;
    copy->version = op->version;
    copy->exact = op->exact;
    copy->name = op->name;
    copy->notes = op->notes;
    for (uint32_t i = 0; i < op->n_operands; i++)
        ir_op_set_operand(copy, i, ir_cloner_get(cloner, op->operands[i].value));
    if (!copy_attrs(cloner->graph, copy, op) || !copy_blocks(cloner, copy, op))
        return NULL;
    for (uint32_t i = 0; i < op->n_results; i++) {
        copy->results[i].declared = op->results[i].declared;
        copy->results[i].wanted = op->results[i].wanted;
        if (!ir_cloner_map(cloner, &op->results[i], &copy->results[i]))
            return NULL;
    }
    return copy;
}

struct ir_block *ir_clone_block(struct ir_cloner *cloner, const struct ir_block *block,
                                struct ir_op *owner)
{
    struct ir_block *copy = ir_block_create(cloner->graph, owner, block->n_params);
    if (!copy)
        return NULL;
    for (uint32_t i = 0; i < block->n_params; i++) {
        copy->params[i]->declared = block->params[i]->declared;
        if (!ir_cloner_map(cloner, block->params[i], copy->params[i]))
            return NULL;
    }
    for (const struct ir_op *op = block->first; op; op = op->next) {
        struct ir_op *op_copy = ir_clone_op(cloner, op);
        if (!op_copy)
            return NULL;
        ir_op_append(copy, op_copy);
    }
    return copy;
}

tssa_status *ir_clone_ops(struct ir_cloner *cloner, const struct ir_block *block,
                          struct ir_op *before)
{
    for (const struct ir_op *op = block->first; op != ir_block_return(block); op = op->next) {
        struct ir_op *copy = ir_clone_op(cloner, op);
        TRY_ALLOC(copy);
        ir_op_insert_before(copy, before);
        TRY(ir_infer_op_lenient(copy));
    }
    return NULL;
}

/* ---- Moves ----------------------------------------------------------------------------------- */

void ir_move_ops(struct ir_block *block, struct ir_op *before)
{
    struct ir_op *ret = ir_block_return(block), *first = block->first, *last = ret->prev;
    if (!last)
        return;
    for (struct ir_op *op = first; op != ret; op = op->next)
        op->parent = before->parent;
    block->first = ret;
    ret->prev = NULL;
    first->prev = before->prev;
    *(before->prev ? &before->prev->next : &before->parent->first) = first;
    last->next = before;
    before->prev = last;
}

void ir_release_blocks(struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_blocks; i++)
        for (struct ir_op *inner = op->blocks[i]->first; inner; inner = inner->next) {
            for (uint32_t k = 0; k < inner->n_operands; k++)
                ir_op_set_operand(inner, k, NULL);
            ir_release_blocks(inner);
        }
}

void ir_forget_declared(struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        op->results[i].declared = NULL;
    for (uint32_t i = 0; i < op->n_blocks; i++) {
        for (uint32_t k = 0; k < op->blocks[i]->n_params; k++)
            op->blocks[i]->params[k]->declared = NULL;
        for (struct ir_op *inner = op->blocks[i]->first; inner; inner = inner->next)
            ir_forget_declared(inner);
    }
}
