/* SPDX-License-Identifier: Apache-2.0 */
/* Names of values around the blocks of fuse ops; see plan.h. */
#include "ir/fuse.h"
#include "runtime/control.h"
#include "runtime/executor.h"

struct ir_block *plan_fused(const struct plan *plan, const struct ir_op *op)
{
    struct ir_block *body = ir_fuse_body(op);
    return body && !plan->device->device->find_kernel(op) ? body : NULL;
}

/* What the value is another name of; NULL: of nothing. */
static const struct ir_value *name_of(const struct plan *plan, const struct ir_value *value)
{
    if (value->op)
        return plan_fused(plan, value->op) ? ir_fuse_returned(value->op, value->index) : NULL;
    const struct ir_value *operand = ir_fuse_operand(value);
    return operand && plan_fused(plan, value->block->owner) ? operand : NULL;
}

const struct ir_value *plan_value(const struct plan *plan, const struct ir_value *value)
{
    if (!plan->runs_fused)
        return value;
    for (const struct ir_value *name = value; name; name = name_of(plan, value))
        value = name;
    return value;
}

const struct ir_block *plan_home(const struct plan *plan, const struct ir_op *op)
{
    const struct ir_block *block = op->parent;
    while (block->owner && plan_fused(plan, block->owner))
        block = block->owner->parent;
    return block;
}

/* What has its slot is there; the rest are parameters, constants, and what is returned twice. */
tssa_status *control_run_fuse(struct run *run, const struct step *step)
{
    const struct block_plan *block = step->blocks[0];
    TRY(executor_run_block(run, block));
    for (uint32_t i = 0; i < step->n_outputs; i++) {
        struct value *slot = run->outputs[step->first_output + i];
        if (slot && slot != &run->slots[block->returns[i].slot])
            value_copy(slot, &run->slots[block->returns[i].slot]);
    }
    return NULL;
}
