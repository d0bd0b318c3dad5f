/* SPDX-License-Identifier: Apache-2.0 */
/* What one op takes in a kernel of its own, and as a session runs it without. */
#include "ir/cost.h"
#include "ir/fuse.h"
#include "ir/rule.h"

static bool is_repeated(const struct ir_op *op, uint32_t operand)
{
    for (uint32_t i = 0; i < operand; i++)
        if (ir_operand(op, i) == ir_operand(op, operand))
            return true;
    return false;
}

double cost_read_bytes(const struct ir_op *op, uint32_t operand, const struct cost_sizes *sizes)
{
    const struct ir_type *type = ir_operand(op, operand)->type;
    if (!ir_fuse_reads(op, operand) || is_repeated(op, operand))
        return 0;
    if (operand == 0 && (ir_op_is(op, IR_OP_access) || op->info->cls == IR_CLASS_GATHER))
        type = op->results[0].type;
    return cost_bytes(type, sizes);
}

struct cost_work cost_kernel(const struct ir_op *op, const struct cost_sizes *sizes)
{
    const struct ir_value *result = &op->results[0];
    struct cost_work work = {.calls = 1};
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i))
            work.bytes += cost_read_bytes(op, i, sizes);
    work.bytes += cost_bytes(result->type, sizes);
    const bool reduces = op->info->cls == IR_CLASS_REDUCTION && ir_operand(op, 0);
    const struct ir_type *each = reduces ? ir_operand(op, 0)->type : result->type;
    work.operations = cost_elements(each, sizes) * cost_element_work(op);
    return work;
}

/* An access that is lowered to a view. */
static bool is_view(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_access) && rule_keeps_order(rule_of(op));
}

struct cost_work cost_step(const struct ir_op *op, bool in_place, const struct cost_sizes *sizes)
{
    if (is_view(op))
        return (struct cost_work){0};
    struct cost_work work = cost_kernel(op, sizes);
    if (ir_op_is(op, IR_OP_assign) && in_place)
        work.bytes = 2 * cost_read_bytes(op, 1, sizes);
    return work;
}
