/* SPDX-License-Identifier: Apache-2.0 */
/* Which control flow the device decides over while a run is recorded, or why it cannot; see
 * control_recorded.h. */
#include "runtime/control_recorded.h"

static bool lies_there(const struct plan *plan, const struct ir_value *value)
{
    return value && plan_space(plan, value) == SPACE_DEVICE;
}

bool control_is_recorded(const struct plan *plan, const struct ir_op *op)
{
    if (plan->n_spaces == 1)
        return false;
    if (ir_op_is(op, IR_OP_If))
        return lies_there(plan, ir_operand(op, 0));
    return ir_op_is(op, IR_OP_Loop) &&
           (lies_there(plan, ir_operand(op, 0)) || lies_there(plan, ir_operand(op, 1)) ||
            lies_there(plan, ir_operand(ir_block_return(op->blocks[0]), 0)));
}

bool control_is_count(const struct plan *plan, const struct ir_value *value)
{
    value = plan_value(plan, value);
    const struct ir_op *loop = value->op ? NULL : value->block->owner;
    return loop && ir_op_is(loop, IR_OP_Loop) && value->index == 0 &&
           control_is_recorded(plan, loop);
}

static uint32_t count_carried(const struct ir_op *loop)
{
    return loop->blocks[0]->n_params - 2;
}

bool control_is_stacked(const struct plan *plan, const struct ir_value *value)
{
    value = plan_value(plan, value);
    const struct ir_op *loop = value->op;
    return loop && ir_op_is(loop, IR_OP_Loop) && value->index >= count_carried(loop) &&
           control_is_recorded(plan, loop);
}

/* Does nobody read it before all is done, and the device can be asked how long it is? */
static bool is_returned_alone(const struct plan *plan, const struct ir_value *value)
{
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (use->user != ir_block_return(plan->graph->body))
            return false;
    return true;
}

static const char *stacks_lack(const struct plan *plan, const struct ir_op *loop)
{
    for (uint32_t i = count_carried(loop); i < loop->n_results; i++) {
        const struct ir_value *stacked = &loop->results[i];
        if (!stacked->wanted)
            continue;
        if (!ir_operand(loop, 0))
            return "a Loop whose end the device finds stacks results, and has no trip count";
        if (!lies_there(plan, stacked))
            return "the host stacks results of a Loop whose end the device finds";
        if (!is_returned_alone(plan, stacked))
            return "what a Loop stacks whose end the device finds is read before the run ends";
    }
    return NULL;
}

static const char *loop_lacks(const struct plan *plan, const struct ir_op *loop)
{
    const struct ir_block *body = loop->blocks[0];
    if (lies_there(plan, ir_operand(loop, 0)))
        return "the device computes how often a Loop may run";
    for (uint32_t i = 2; i < body->n_params; i++)
        if (!lies_there(plan, body->params[i]))
            return "the host computes what a Loop carries whose end the device finds";
    return stacks_lack(plan, loop);
}

static const char *if_lacks(const struct plan *plan, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted && !lies_there(plan, &op->results[i]))
            return "the host computes the result of an If over which the device decides";
    return NULL;
}

const char *control_recorded_lacks(const struct plan *plan, const struct ir_op *op)
{
    const struct device *device = plan->device->device;
    const bool is_if = ir_op_is(op, IR_OP_If);
    bool (*const records)(const struct device_context *) =
        is_if ? device->records_if : device->records_while;
    if (!records || !records(plan->device))
        return is_if ? "the host reads the condition of an If: here the device cannot decide"
                     : "the host reads when a Loop ends: here the device cannot decide";
    return is_if ? if_lacks(plan, op) : loop_lacks(plan, op);
}
