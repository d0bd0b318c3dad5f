/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a plan that only two spaces need; see crossing.h. */
#include "runtime/crossing.h"

/* ---- Copies ---------------------------------------------------------------------------------- */

static struct plan_copy copy_of(const struct plan *plan, const struct ir_value *value)
{
    const bool away = plan_space(plan, value) != SPACE_HOST;
    return (struct plan_copy){.from = plan_value(plan, value)->id,
                              .to = plan_mirror(plan, value),
                              .space = away ? SPACE_HOST : SPACE_DEVICE};
}

/*
 * Of the operands that the op, a step or a return, wants in the other space; constants are there.
 */
static tssa_status *copies_for(const struct plan *plan, struct arena *arena, const struct ir_op *op,
                               struct plan_copies *copies)
{
    struct plan_copy *items = ARENA_ARRAY(arena, struct plan_copy, op->n_operands);
    TRY_ALLOC(items);
    copies->items = items;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (spaces_crosses(plan, op, i) && !ir_value_constant(plan_value(plan, ir_operand(op, i))))
            items[copies->count++] = copy_of(plan, ir_operand(op, i));
    return NULL;
}

/* Of the values whose mirrors tell symbols. */
static tssa_status *copies_to_bind(struct plan *plan, const struct plan_bindings *binds,
                                   struct plan_copies *copies)
{
    struct plan_copy *items = ARENA_ARRAY(&plan->arena, struct plan_copy, binds ? binds->count : 0);
    TRY_ALLOC(items);
    copies->items = items;
    for (uint32_t i = 0; binds && i < binds->count; i++) {
        const uint32_t slot = binds->items[i].slot;
        if (slot != plan_home_slot(plan, slot))
            items[copies->count++] = (struct plan_copy){
                .from = plan_home_slot(plan, slot), .to = slot, .space = SPACE_HOST};
    }
    return NULL;
}

tssa_status *crossing_plan_step(struct plan *plan, const struct ir_op *op, struct step *step)
{
    bool *on_host = ARENA_ARRAY(&plan->arena, bool, op->n_operands);
    TRY_ALLOC(on_host);
    for (uint32_t i = 0; i < op->n_operands; i++)
        on_host[i] = spaces_is_argument(plan, op, i);
    step->on_host = on_host;
    step->run = crossing_run_step;
    TRY(copies_for(plan, &plan->arena, op, &step->before));
    return copies_to_bind(plan, step->binds, &step->after);
}

static void add_mirror(const struct plan *plan, struct plan_crossing *crossing, uint32_t *mirrors,
                       const struct ir_value *value)
{
    if (crossing_mirrored(plan, value->id) && !ir_value_constant(value))
        mirrors[crossing->n_mirrors++] = plan_mirror(plan, value);
}

static tssa_status *find_mirrors(struct plan *plan, const struct ir_block *block,
                                 struct plan_crossing *crossing)
{
    size_t most = block->n_params;
    for (const struct ir_op *op = block->first; op; op = op->next)
        most += op->n_results;
    uint32_t *mirrors = ARENA_ARRAY(&plan->arena, uint32_t, most);
    TRY_ALLOC(mirrors);
    crossing->mirrors = mirrors;
    for (uint32_t i = 0; i < block->n_params; i++)
        add_mirror(plan, crossing, mirrors, block->params[i]);
    for (const struct ir_op *op = block->first; op; op = op->next)
        for (uint32_t i = 0; i < op->n_results; i++)
            add_mirror(plan, crossing, mirrors, &op->results[i]);
    return NULL;
}

/* A value of the block's own that is returned in the other space alone goes when it was copied. */
static bool leaves_by_copy(const struct plan *plan, const struct block_plan *block,
                           const struct plan_copy *copy)
{
    const struct ir_op *op = ir_block_return(block->block);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        const bool own =
            value->block == block->block || (value->op && value->op->parent == block->block &&
                                             !ir_op_is(value->op, IR_OP_Constant));
        if (plan_value(plan, value)->id == copy->from && (!own || !spaces_crosses(plan, op, i)))
            return false;
    }
    return true;
}

tssa_status *crossing_plan_block(struct plan *plan, struct block_plan *block)
{
    struct plan_crossing *crossing = ARENA_NEW(&plan->arena, struct plan_crossing);
    TRY_ALLOC(crossing);
    block->crossing = crossing;
    TRY(find_mirrors(plan, block->block, crossing));
    TRY(copies_to_bind(plan, block->binds, &crossing->entered));
    TRY(copies_for(plan, &plan->arena, ir_block_return(block->block), &crossing->returned));
    struct plan_copy *copies = (struct plan_copy *)crossing->returned.items; /* just made */
    for (uint32_t i = 0; i < crossing->returned.count; i++)
        copies[i].release = leaves_by_copy(plan, block, &copies[i]);
    return NULL;
}

/* ---- Constants ------------------------------------------------------------------------------- */

static tssa_status *open_stream(struct plan *plan)
{
    return plan->stream ? NULL : plan->device->device->stream_open(plan->device, &plan->stream);
}

tssa_status *crossing_plan_constant(struct plan *plan, const struct plan_constant *constant,
                                    struct plan_constant *mirror)
{
    const struct device *device = plan->device->device;
    const size_t size = tensor_bytes(constant->tensor);
    struct plan_upload *upload = ARENA_NEW(&plan->arena, struct plan_upload);
    struct tensor *tensor = arena_copy(&plan->arena, constant->tensor, sizeof *tensor);
    TRY_ALLOC(upload);
    TRY_ALLOC(tensor);
    TRY(open_stream(plan));
    *upload = (struct plan_upload){plan->uploads, device->allocate(plan->stream, size), size};
    TRY_ALLOC(upload->memory);
    plan->uploads = upload;
    tensor->data = upload->memory;
    tensor->owner = NULL;
    *mirror = (struct plan_constant){plan->n_values + constant->slot, tensor};
    const struct device_place from = {constant->tensor->data, 0}, to = {upload->memory, 0};
    TRY(device->copy(plan->stream, DEVICE_COPY_IN, to, from, size));
    return device->stream_wait(plan->stream);
}

void crossing_plan_free(struct plan *plan)
{
    const struct device *device = plan->device->device;
    for (const struct plan_upload *upload = plan->uploads; upload; upload = upload->next)
        device->release(plan->stream, upload->memory, upload->size);
    device->stream_close(plan->stream);
}
