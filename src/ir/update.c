/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/update.h"

#include "ir/fuse.h"
#include "ir/rebuild.h"
#include "ir/rule.h"

static const struct ir_use *only_use(const struct ir_value *value)
{
    return value->uses && !value->uses->next ? value->uses : NULL;
}

/* Is `from` what a loop carries, and is used once, and `to` what it carries on in its place? */
static bool is_carried(const struct ir_value *from, const struct ir_value *to)
{
    const struct ir_block *body = from->block;
    const bool carries = body && body->owner && ir_op_is(body->owner, IR_OP_Loop);
    return carries && from->index >= 2 && only_use(from) &&
           ir_operand(ir_block_return(body), from->index - 1) == to;
}

/* Has what is written the shape of where it is written? */
static bool writes_region(const struct ir_op *assign)
{
    const struct ir_type *base = ir_operand(assign, 0)->type, *source = ir_operand(assign, 1)->type;
    const struct dim *dims[TSSA_MAX_RANK];
    int rank;
    if (base->kind != TYPE_TENSOR || base->rank < 0 || source->kind != TYPE_TENSOR)
        return false;
    /* Only the op's graph is written to. */
    tssa_status *status =
        rule_region_shape((struct ir_op *)assign, base->rank, base->dims, &rank, dims);
    bool same = !status && rank >= 0 && rank == source->rank;
    tssa_status_free(status);
    for (int i = 0; same && i < rank; i++)
        same = dims[i] == source->dims[i];
    return same;
}

bool ir_updates_carried(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_assign) && is_carried(ir_operand(op, 0), &op->results[0]) &&
           writes_region(op);
}

static bool is_product(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm);
}

/* Is the value a product, through views? */
static bool is_of_product(const struct ir_value *value)
{
    while (value->op && ir_op_is(value->op, IR_OP_access))
        value = ir_operand(value->op, 0);
    return value->op && is_product(value->op);
}

/* Is it returned, and used elsewhere only by products of what a product has come to? These are
 * computed behind it, or there is no kernel of them (gir/grid_stages.c). */
static bool is_read_behind(const struct ir_op *assign, const struct ir_op *ret)
{
    bool good = true;
    uint32_t returned = 0;
    for (const struct ir_use *use = assign->results[0].uses; use; use = use->next) {
        returned += use->user == ret;
        good &= use->user == ret || (is_product(use->user) && is_of_product(ir_operand(assign, 1)));
    }
    return good && returned == 1;
}

bool ir_fuse_updates(const struct ir_op *fuse, uint32_t result, uint32_t *operand)
{
    const struct ir_value *made = ir_fuse_returned(fuse, result);
    const struct ir_op *assign = made ? made->op : NULL;
    if (!assign || !ir_op_is(assign, IR_OP_assign) ||
        !is_read_behind(assign, ir_block_return(ir_fuse_body(fuse))))
        return false;
    const struct ir_value *base = ir_operand(assign, 0);
    const struct ir_value *outside = ir_fuse_operand(base);
    if (!outside || !only_use(base) || !is_carried(outside, &fuse->results[result]) ||
        !writes_region(assign))
        return false;
    *operand = base->index;
    return true;
}

static bool has_product(const struct ir_block *block)
{
    return ir_block_has(block, IR_OP_MatMul) || ir_block_has(block, IR_OP_Gemm);
}

/* The same of a loop of products. */
static bool loop_begins_as(const struct ir_op *fuse, uint32_t result, uint32_t *operand)
{
    const struct ir_op *loop = ir_fuse_loop(fuse);
    const struct ir_op *iteration = loop ? ir_fuse_iteration(loop) : NULL;
    const struct ir_value *made = loop ? ir_fuse_returned(fuse, result) : NULL;
    if (!made || made->op != loop || made->index >= ir_loop_carried(loop) ||
        !has_product(ir_fuse_body(iteration)))
        return false;
    const struct ir_value *next =
        ir_operand(ir_block_return(loop->blocks[0]), ir_loop_return(loop, made->index));
    if (!next || next->op != iteration)
        return false;
    const struct ir_value *begin = ir_operand(loop, ir_loop_operand(loop, made->index));
    if (!begin || !ir_fuse_operand(begin) || !only_use(begin))
        return false;
    *operand = begin->index;
    return true;
}

bool ir_fuse_begins_as(const struct ir_op *fuse, uint32_t result, uint32_t *operand)
{
    return ir_fuse_updates(fuse, result, operand) || loop_begins_as(fuse, result, operand);
}

static bool is_number(const struct ir_value *value, const struct dim *number)
{
    return value && value->known && value->known->count == 1 && value->known->elements[0] == number;
}

static bool is_true(const struct ir_value *value)
{
    int64_t truth;
    return !value || (value->known && value->known->count == 1 &&
                      dim_is_const(value->known->elements[0], &truth) && truth);
}

/* Has the loop one iteration for each row, whatever it computes? */
static bool goes_over_rows(const struct ir_op *loop, const struct ir_type *type)
{
    const struct ir_block *body = loop->blocks[0];
    const struct ir_value *stays = ir_operand(ir_block_return(body), 0);
    return type->rank > 0 && is_number(ir_operand(loop, 0), type->dims[0]) &&
           is_true(ir_operand(loop, 1)) && (stays == body->params[1] || (stays && is_true(stays)));
}

bool ir_fuse_writes_all(const struct ir_op *fuse, uint32_t result)
{
    uint32_t operand;
    if (!ir_fuse_updates(fuse, result, &operand))
        return false;
    const struct ir_block *body = ir_operand(fuse, operand)->block;
    const struct ir_op *assign = ir_fuse_returned(fuse, result)->op;
    const struct rule *rule = rule_of(assign);
    if (rule->n_steps != 1 || rule->steps[0].kind != RULE_SELECT ||
        rule->steps[0].params[0].value != 0 || !rule->steps[0].params[1].is_operand)
        return false;
    const struct ir_value *row = rule_param_value(assign, &rule->steps[0].params[1]);
    return ir_fuse_operand(row) == body->params[0] &&
           goes_over_rows(body->owner, ir_operand(assign, 0)->type);
}
