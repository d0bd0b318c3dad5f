/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/fuse.h"

#include "ir/clone.h"

struct ir_block *ir_fuse_body(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_fuse) ? ir_op_block(op, IR_FUSE_BODY) : NULL;
}

struct ir_value *ir_fuse_operand(const struct ir_value *value)
{
    const struct ir_op *op = value->block ? value->block->owner : NULL;
    return op && ir_op_is(op, IR_OP_fuse) ? ir_operand(op, value->index) : NULL;
}

struct ir_value *ir_fuse_returned(const struct ir_op *op, uint32_t result)
{
    const struct ir_block *body = ir_fuse_body(op);
    const struct ir_op *ret = body ? ir_block_return(body) : NULL;
    struct ir_value *value = ret ? ir_operand(ret, result) : NULL;
    if (!value || !ir_result_wanted(op, result) || !value->op ||
        ir_op_is(value->op, IR_OP_Constant))
        return NULL;
    for (uint32_t i = 0; i < result; i++)
        if (ir_operand(ret, i) == value && ir_result_wanted(op, i))
            return NULL;
    return value;
}

/* ---- Inlining ------------------------------------------------------------------------------------- */

void ir_fuse_inline(struct ir_op *op)
{
    struct ir_block *body = ir_fuse_body(op);
    struct ir_op *ret = ir_block_return(body);
    for (uint32_t i = 0; i < body->n_params; i++)
        ir_value_replace(body->params[i], ir_operand(op, i));
    ir_move_ops(body, op);
    for (uint32_t i = 0; i < op->n_results; i++) {
        struct ir_value *result = &op->results[i], *value = ir_operand(ret, i);
        ir_value_replace(result, value);
        if (!value->name && result->wanted) {
            value->name = result->name;
            result->name = NULL;
        }
    }
    ir_release_blocks(op);
    ir_op_remove(op);
}

static bool inline_block(struct ir_block *block)
{
    bool changed = false;
    struct ir_op *next;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            changed |= inline_block(op->blocks[i]);
        if (!ir_fuse_body(op))
            continue;
        ir_fuse_inline(op);
        changed = true;
    }
    return changed;
}

void ir_fuse_inline_all(struct ir_graph *graph, bool *changed)
{
    *changed |= inline_block(graph->body);
}

/* ---- Copies without ------------------------------------------------------------------------------- */

static bool has_fuse(const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (ir_op_is(op, IR_OP_fuse))
            return true;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            if (has_fuse(op->blocks[i]))
                return true;
    }
    return false;
}

static void copy_value(struct ir_value *to, const struct ir_value *from)
{
    to->name = from->name;
    to->type = from->type;
    to->declared = from->declared;
    to->known = from->known;
}

/* What a copy of an op or a block does not tell, since it may stand in the same graph. */
static void copy_facts(struct ir_block *to, const struct ir_block *from)
{
    to->name = from->name;
    to->notes = from->notes;
    for (uint32_t i = 0; i < from->n_params; i++)
        copy_value(to->params[i], from->params[i]);
    struct ir_op *copy = to->first;
    for (const struct ir_op *op = from->first; op; op = op->next, copy = copy->next) {
        copy->origin = op->origin;
        for (uint32_t i = 0; i < op->n_results; i++)
            copy_value(&copy->results[i], &op->results[i]);
        for (uint32_t i = 0; i < op->n_blocks; i++)
            copy_facts(copy->blocks[i], op->blocks[i]);
    }
}

tssa_status *ir_fuse_unfused(const struct ir_graph *graph, struct ir_graph *copy,
                             const struct ir_graph **unfused)
{
    *copy = (struct ir_graph){0};
    *unfused = graph;
    if (!has_fuse(graph->body))
        return NULL;
    /* The numbers of its ops and values go on where those of the graph end. */
    *copy = *graph;
    arena_init(&copy->arena, graph->allocator);
    struct ir_cloner cloner;
    ir_cloner_init(&cloner, copy);
    copy->body = ir_clone_block(&cloner, graph->body, NULL);
    ir_cloner_free(&cloner);
    TRY_ALLOC(copy->body);
    copy_facts(copy->body, graph->body);
    inline_block(copy->body);
    *unfused = copy;
    return NULL;
}

void ir_fuse_release(struct ir_graph *copy)
{
    if (copy->allocator)
        arena_clear(&copy->arena);
}
