/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/branch_sizes.h"

#include "ir/infer.h"
#include "passes/analysis/loops.h"

#define MAX_DEPTH 6 /* of And, Or and Not in a condition */

static bool lookup(void *context, const struct dim *symbol, int64_t *value)
{
    const struct branch_sizes *asked = context;
    for (int i = 0; i < asked->n_symbols; i++)
        if (asked->symbols[i] == symbol) {
            *value = cost_symbol(symbol, asked->sizes);
            return true;
        }
    return false;
}

static bool operand_size(const struct branch_sizes *asked, const struct ir_op *op, uint32_t index,
                         int64_t *size)
{
    const struct ir_known *known = infer_known(op, index);
    return known && known->count == 1 && known->elements[0] &&
           dim_eval(known->elements[0], lookup, (void *)asked, size);
}

static enum loop_truth compare(const struct branch_sizes *asked, const struct ir_op *op)
{
    int64_t a, b;
    unsigned signs = infer_signs(op->info->id);
    if (signs == INFER_ANY || !operand_size(asked, op, 0, &a) || !operand_size(asked, op, 1, &b))
        return LOOP_UNKNOWN;
    unsigned sign = a < b ? INFER_LESS : a > b ? INFER_GREATER : INFER_EQUAL;
    return signs & sign ? LOOP_TRUE : LOOP_FALSE;
}

static enum loop_truth truth_of(const struct branch_sizes *asked, const struct ir_value *condition,
                                int depth);

/* Of And, which one operand that is false decides; of Or, one that is true. */
static enum loop_truth join(const struct branch_sizes *asked, const struct ir_op *op,
                            enum loop_truth decides, int depth)
{
    enum loop_truth a = truth_of(asked, ir_operand(op, 0), depth);
    if (a == decides)
        return a;
    enum loop_truth b = truth_of(asked, ir_operand(op, 1), depth);
    return b == decides || a == b ? b : LOOP_UNKNOWN;
}

static enum loop_truth truth_of(const struct branch_sizes *asked, const struct ir_value *condition,
                                int depth)
{
    const struct ir_op *op = condition->op;
    if (!op || depth == MAX_DEPTH)
        return LOOP_UNKNOWN;
    if (op->info->flags & IR_ALIAS)
        return truth_of(asked, ir_operand(op, 0), depth + 1);
    switch (op->info->id) {
    case IR_OP_And:
        return join(asked, op, LOOP_FALSE, depth + 1);
    case IR_OP_Or:
        return join(asked, op, LOOP_TRUE, depth + 1);
    case IR_OP_Not: {
        enum loop_truth truth = truth_of(asked, ir_operand(op, 0), depth + 1);
        return truth == LOOP_TRUE ? LOOP_FALSE : truth == LOOP_FALSE ? LOOP_TRUE : LOOP_UNKNOWN;
    }
    default:
        return compare(asked, op);
    }
}

/* The block's owner is an If that does not take it. */
static bool is_left_out(const struct branch_sizes *asked, const struct ir_block *block)
{
    const struct ir_op *op = block->owner;
    struct ir_block *then_block;
    if (!ir_op_is(op, IR_OP_If) || op->n_blocks != 2 || !ir_operand(op, 0))
        return false;
    then_block = ir_op_block(op, "then_branch");
    enum loop_truth truth = truth_of(asked, ir_operand(op, 0), 0);
    return truth == (block == then_block ? LOOP_FALSE : LOOP_TRUE);
}

bool branch_sizes_exclude(const struct branch_sizes *asked, const struct ir_block *block)
{
    for (; block && block->owner; block = block->owner->parent)
        if (is_left_out(asked, block))
            return true;
    return false;
}
