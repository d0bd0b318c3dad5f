/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/iteration.h"

#include "ir/infer.h"

bool iteration_has_absent(const struct loop *loop)
{
    for (uint32_t i = 0; i < loop->n_carried; i++)
        if (!loop_initial(loop, i))
            return true;
    for (uint32_t i = 0; i < loop->ret->n_operands; i++)
        if (!ir_operand(loop->ret, i))
            return true;
    return false;
}

/* What the body's parameters are; NULL for a condition that nobody reads. */
static tssa_status *enter(const struct loop *loop, struct ir_value *number,
                          struct ir_value *const *carried, struct ir_value ***arguments)
{
    *arguments = ARENA_ARRAY(&loop->body->graph->arena, struct ir_value *, loop->body->n_params);
    TRY_ALLOC(*arguments);
    (*arguments)[0] = number;
    if (loop->body->params[1]->uses)
        TRY(loop_make_bool(loop->op, true, &(*arguments)[1]));
    for (uint32_t k = 0; k < loop->n_carried; k++)
        (*arguments)[k + 2] = carried[k];
    return NULL;
}

tssa_status *iteration_stack(struct ir_op *at, struct ir_value *const *elements, size_t stride,
                             int64_t count, struct ir_value **result)
{
    *result = elements[0];
    if (count == 1)
        return NULL;
    struct ir_graph *graph = at->parent->graph;
    struct ir_op *op = loop_make_op(at, IR_OP_Concat, (uint32_t)count);
    TRY_ALLOC(op);
    const struct ir_attr axis = {
        .name = intern_str(&graph->strings, "axis"), .kind = IR_ATTR_INT, .i = 0};
    if (!axis.name || !ir_op_set_attr(graph, op, &axis))
        return status_out_of_memory();
    for (int64_t i = 0; i < count; i++)
        ir_op_set_operand(op, (uint32_t)i, elements[(size_t)i * stride]);
    *result = &op->results[0];
    return ir_infer_op_lenient(op);
}

/* The values that the iteration returned. */
static tssa_status *leave(const struct loop *loop, const struct ir_cloner *cloner,
                          struct ir_value **carried, struct ir_value **elements)
{
    for (uint32_t k = 0; k < loop->n_carried; k++)
        carried[k] = ir_cloner_get(cloner, loop_next(loop, k));
    for (uint32_t k = 0; k < loop->n_stacked; k++)
        if (loop->op->results[loop->n_carried + k].uses)
            TRY(loop_make_unsqueeze(
                loop->op, ir_cloner_get(cloner, ir_operand(loop->ret, loop->n_carried + 1 + k)), 0,
                &elements[k]));
    return NULL;
}

tssa_status *iteration_copy(struct ir_cloner *cloner, const struct loop *loop,
                            struct ir_value *number, struct ir_value **carried,
                            struct ir_value **elements)
{
    struct ir_value **arguments;
    TRY(enter(loop, number, carried, &arguments));
    ir_cloner_reset(cloner);
    for (uint32_t p = 0; p < loop->body->n_params; p++)
        if (arguments[p] && !ir_cloner_map(cloner, loop->body->params[p], arguments[p]))
            return status_out_of_memory();
    TRY(ir_clone_ops(cloner, loop->body, loop->op));
    return leave(loop, cloner, carried, elements);
}

tssa_status *iteration_move(struct ir_cloner *cloner, const struct loop *loop,
                            struct ir_value *number, struct ir_value **carried,
                            struct ir_value **elements)
{
    struct ir_value **arguments;
    TRY(enter(loop, number, carried, &arguments));
    for (uint32_t p = 0; p < loop->body->n_params; p++)
        if (arguments[p])
            ir_value_replace(loop->body->params[p], arguments[p]);
    ir_move_ops(loop->body, loop->op);
    ir_cloner_reset(cloner);
    return leave(loop, cloner, carried, elements);
}
