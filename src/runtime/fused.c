/* SPDX-License-Identifier: Apache-2.0 */
/* Names of values around the blocks of fuse ops; see plan.h. */
#include "ir/fuse.h"
#include "runtime/plan.h"

struct ir_block *plan_fused_body(const struct plan *plan, const struct ir_op *fuse)
{
    struct ir_block *body = ir_fuse_body(fuse);
    return body && !plan->device->device->find_kernel(fuse) ? body : NULL;
}

/* What the value is another name of; NULL: of nothing. */
static const struct ir_value *name_of(const struct plan *plan, const struct ir_value *value)
{
    if (value->op)
        return plan_fused(plan, value->op) ? ir_fuse_returned(value->op, value->index) : NULL;
    const struct ir_value *operand = ir_fuse_operand(value);
    return operand && plan_fused(plan, value->block->owner) ? operand : NULL;
}

const struct ir_value *plan_named(const struct plan *plan, const struct ir_value *value)
{
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
