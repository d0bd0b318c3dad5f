/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/held_constants.h"

#include "ir/copies.h"

struct plan_held_copy {
    const struct plan_held_copy *next;
    const void *data;
};

static bool is_packed_by(const struct plan *plan, const struct ir_use *use)
{
    const struct kernel *kernel = plan->device->device->find_kernel(use->user);
    return kernel && kernel->packs && use == &use->user->operands[kernel->packs];
}

/* Where there are two spaces, kernels of the other one pack nothing. */
static bool is_packed(const struct plan *plan, const struct ir_value *constant)
{
    if (!plan->device->device->is_host)
        return false;
    for (const struct ir_use *use = constant->uses; use; use = use->next)
        if (!is_packed_by(plan, use))
            return false;
    return true;
}

static tssa_status *hold(struct plan *plan, const struct tensor *tensor)
{
    if (tensor_bytes(tensor) < IR_COPIES_FROM)
        return NULL;
    struct plan_held_copy *copy = ARENA_NEW(&plan->arena, struct plan_held_copy);
    TRY_ALLOC(copy);
    if (!ir_copies_hold(plan->graph, tensor->data))
        return NULL;
    *copy = (struct plan_held_copy){plan->copies, tensor->data};
    plan->copies = copy;
    return NULL;
}

static tssa_status *hold_tensors(void *context, struct ir_op *op)
{
    struct plan *plan = context;
    if (ir_op_is(op, IR_OP_Constant) && is_packed(plan, &op->results[0]))
        return NULL;
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].kind == IR_ATTR_TENSOR)
            TRY(hold(plan, op->attrs[i].tensor));
    return NULL;
}

tssa_status *held_constants_hold(struct plan *plan)
{
    const struct ir_graph *graph = plan->graph;
    for (uint32_t i = 0; graph->input_defaults && i < graph->body->n_params; i++)
        if (graph->input_defaults[i])
            TRY(hold(plan, graph->input_defaults[i]));
    return ir_block_walk(graph->body, hold_tensors, plan);
}

void held_constants_drop(struct plan *plan)
{
    for (const struct plan_held_copy *copy = plan->copies; copy; copy = copy->next)
        ir_copies_drop(plan->graph, copy->data);
    plan->copies = NULL;
}
