/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/caller_device.h"

#include "runtime/crossing.h"
#include "runtime/recorded.h"

static bool reads(const struct plan *plan, const struct ir_value *value)
{
    for (const struct ir_use *use = value->uses; use; use = use->next) {
        const struct ir_op *op = use->user;
        const uint32_t operand = (uint32_t)(use - op->operands);
        const struct ir_block *fused = plan_fused(plan, op);
        if (fused ? reads(plan, fused->params[operand])
                  : !(op->info->flags & IR_SHAPE) && !spaces_crosses(plan, op, operand))
            return true;
    }
    return false;
}

static bool tells(const struct plan *plan, uint32_t slot)
{
    const struct plan_bindings *binds = plan->body->binds;
    for (uint32_t i = 0; binds && i < binds->count; i++)
        if (binds->items[i].slot == slot && binds->items[i].is_element)
            return true;
    return false;
}

tssa_status *caller_device_find(struct plan *plan)
{
    const struct ir_block *body = plan->graph->body;
    if (plan->n_spaces == 1)
        return NULL;
    bool *found = ARENA_ARRAY(&plan->arena, bool, body->n_params);
    TRY_ALLOC(found);
    for (uint32_t i = 0; i < body->n_params; i++)
        found[i] = reads(plan, body->params[i]) || tells(plan, plan->body->params[i]);
    plan->host_reads = found;
    return NULL;
}

tssa_status *caller_device_follow(struct run *run)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    return run->caller_stream ? stream->context->device->stream_follow(stream, run->caller_stream)
                              : NULL;
}

bool caller_device_leads(struct run *run)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    bool leads = false;
    if (!run->caller_stream || !recorded_replayed(run))
        return false;
    tssa_status *status = stream->context->device->stream_lead(stream, run->caller_stream, &leads);
    leads &= !status;
    tssa_status_free(status);
    return leads;
}

static tssa_status *fetch(struct run *run, uint32_t index, struct tensor *tensor)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    const size_t size = tensor_bytes(tensor);
    struct buffer *buffer = pool_alloc(&run->pool, size);
    TRY_ALLOC(buffer);
    tensor->data = buffer->data;
    tensor->owner = buffer;
    const struct device_place from = {run->inputs_there[index], 0}, to = {buffer->data, 0};
    return stream->context->device->copy(stream, DEVICE_COPY_OUT, to, from, size);
}

tssa_status *caller_device_fetch(struct run *run)
{
    const struct block_plan *body = run->plan->body;
    for (uint32_t i = 0; i < body->n_params; i++)
        if (run->inputs_there[i] && body->params[i] != SLOT_NONE && run->plan->host_reads[i])
            TRY(fetch(run, i, &run->slots[body->params[i]].tensor));
    return NULL;
}

void caller_device_set_mirrors(struct run *run)
{
    const struct block_plan *body = run->plan->body;
    for (uint32_t i = 0; i < body->n_params; i++) {
        const uint32_t slot = body->params[i];
        if (!run->inputs_there[i] || slot == SLOT_NONE || !crossing_mirrored(run->plan, slot))
            continue;
        struct value *mirror = &run->slots[run->plan->n_values + slot];
        *mirror = run->slots[slot];
        mirror->tensor.data = run->inputs_there[i];
        mirror->tensor.offset = 0;
        mirror->tensor.owner = NULL;
    }
}

static tssa_status *copy_to_caller(struct run *run, uint32_t index, const struct value *value,
                                   enum device_copy kind)
{
    struct device_stream *stream = run->streams[SPACE_DEVICE];
    TRY(executor_check_output(value, &run->caller_outputs[index].tensor, index));
    const struct tensor *tensor = &value->tensor;
    const struct device_place from = {tensor->data, tensor->offset},
                              to = {run->outputs_there[index], 0};
    if (kind == DEVICE_COPY_WITHIN && from.memory == to.memory && from.offset == 0)
        return NULL; /* it was made there (bound.h) */
    return stream->context->device->copy(stream, kind, to, from, tensor_bytes(tensor));
}

tssa_status *caller_device_return(struct run *run, const struct value *value, uint32_t mirror,
                                  bool *wanted)
{
    const struct block_plan *body = run->plan->body;
    *wanted = false;
    for (uint32_t i = 0; i < body->n_returns; i++) {
        if (body->returns[i].slot != mirror)
            continue;
        if (run->outputs_there[i])
            TRY(copy_to_caller(run, i, value, DEVICE_COPY_WITHIN));
        else
            *wanted = true;
    }
    return NULL;
}

tssa_status *caller_device_take(struct run *run, uint32_t index, const struct value *value)
{
    const uint32_t slot = run->plan->body->returns[index].slot;
    if (slot != plan_home_slot(run->plan, slot))
        return NULL;
    TRY(copy_to_caller(run, index, value, DEVICE_COPY_IN));
    return run->streams[SPACE_DEVICE]->context->device->stream_wait(run->streams[SPACE_DEVICE]);
}
