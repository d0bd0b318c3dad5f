/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops.h"

#include "ir/infer.h"

bool loop_known_int(const struct ir_value *value, int64_t *number)
{
    return value && value->known && value->known->count == 1 &&
           dim_is_const(value->known->elements[0], number);
}

struct ir_value *loop_unaliased(struct ir_value *value)
{
    while (value && value->op && (value->op->info->flags & IR_ALIAS) && ir_operand(value->op, 0))
        value = ir_operand(value->op, 0);
    return value;
}

static enum loop_truth truth_of(struct ir_value *value)
{
    int64_t number;
    if (!loop_known_int(value, &number) && !loop_known_int(loop_unaliased(value), &number))
        return LOOP_UNKNOWN;
    return number ? LOOP_TRUE : LOOP_FALSE;
}

enum loop_truth loop_enters(const struct loop *loop)
{
    struct ir_value *condition = ir_operand(loop->op, 1);
    return condition ? truth_of(condition) : LOOP_TRUE;
}

enum loop_truth loop_stays(const struct loop *loop)
{
    struct ir_value *next = ir_operand(loop->ret, 0);
    return loop_unaliased(next) == loop->body->params[1] ? LOOP_TRUE : truth_of(next);
}

bool loop_trips(const struct loop *loop, int64_t *trips)
{
    int64_t limit = INT64_MAX;
    enum loop_truth enters = loop_enters(loop), stays = loop_stays(loop);
    struct ir_value *count = ir_operand(loop->op, 0);
    bool known = !count || loop_known_int(count, &limit);
    *trips = 0;
    if (enters == LOOP_FALSE || (known && limit <= 0))
        return true;
    if (enters == LOOP_UNKNOWN || !known)
        return false;
    *trips = stays == LOOP_FALSE ? 1 : limit;
    return stays != LOOP_UNKNOWN || limit == 1;
}

bool loop_makes(const struct loop *loop, const struct ir_value *value)
{
    const struct ir_block *block = value->op ? value->op->parent : value->block;
    while (block && block != loop->body)
        block = block->owner ? block->owner->parent : NULL;
    return block != NULL;
}

uint32_t loop_size(const struct ir_block *block, uint32_t limit)
{
    uint32_t size = 0;
    for (const struct ir_op *op = block->first; op && size < limit; op = op->next) {
        size += !ir_op_is(op, IR_OP_Constant) && !ir_op_is(op, IR_OP_return);
        for (uint32_t i = 0; i < op->n_blocks; i++)
            size += loop_size(op->blocks[i], limit - size);
    }
    return size;
}

struct ir_op *loop_make_op(struct ir_op *at, enum ir_op_id id, uint32_t n_operands)
{
    const struct ir_op_info *info = ir_op_info(id);
    struct ir_op *op = ir_op_create(at->parent->graph, info, n_operands, 1);
    if (!op)
        return NULL;
    op->version = ir_op_bind(info, IR_NEWEST_OPSET);
    op->name = at->name;
    ir_op_insert_before(op, at);
    return op;
}

static tssa_status *insert_constant(struct ir_op *at, struct ir_op *op, struct ir_value **result)
{
    TRY_ALLOC(op);
    op->name = at->name;
    ir_op_insert_before(op, at);
    *result = &op->results[0];
    return ir_infer_op(op);
}

tssa_status *loop_make_int(struct ir_op *at, int rank, int64_t number, struct ir_value **result)
{
    return insert_constant(at, ir_constant_ints(at->parent->graph, rank, 1, &number), result);
}

tssa_status *loop_make_bool(struct ir_op *at, bool truth, struct ir_value **result)
{
    struct ir_graph *graph = at->parent->graph;
    struct tensor *tensor = ARENA_NEW(&graph->arena, struct tensor);
    unsigned char *data = arena_alloc_aligned(&graph->arena, 1, TENSOR_ALIGNMENT);
    TRY_ALLOC(tensor);
    TRY_ALLOC(data);
    *data = truth;
    *tensor = (struct tensor){.dtype = TSSA_BOOL, .data = data};
    return insert_constant(at, ir_constant_create(graph, tensor), result);
}

void loop_replace(struct ir_value *old, struct ir_value *by)
{
    ir_value_replace(old, by);
    if (!by->name && old->name) {
        by->name = old->name;
        old->name = NULL;
    }
}
