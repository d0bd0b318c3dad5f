/* SPDX-License-Identifier: Apache-2.0 */
/* Fuse ops of parts of a block; see fuse.h. */
#include <string.h>

#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/lower/fuse.h"

/* ---- Order ----------------------------------------------------------------------------------- */

/* Parts, each as its first op, and ops in none, so that nothing comes before what it needs. */
struct order {
    struct fuse_plan *plan;
    const struct ir_block *block;
    VEC(struct ir_op *) done, open;
};

enum { OPENED = 1, DONE = 2 };

static struct ir_op *leader_of(const struct order *order, struct ir_op *op)
{
    const uint32_t part = fuse_part_of(order->plan, op);
    return part == FUSE_NO_PART ? op : order->plan->parts.data[part].first;
}

static uint8_t *state_of(const struct order *order, const struct ir_op *leader)
{
    return &order->plan->ops[leader->id].order;
}

static bool open_maker(struct order *order, struct ir_op *maker)
{
    struct ir_op *leader = leader_of(order, maker);
    return *state_of(order, leader) || vec_push(&order->open, leader);
}

/* What the op needs goes first, what is needed in its blocks too. */
static bool open_needed(struct order *order, const struct ir_op *op)
{
    struct ir_op *maker;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if ((maker = fuse_maker(ir_operand(op, i), order->block)) && !open_maker(order, maker))
            return false;
    for (uint32_t at = 0; (maker = fuse_captured(order->plan, op, &at));)
        if (!open_maker(order, maker))
            return false;
    return true;
}

static tssa_status *put_in_order(struct order *order, struct ir_op *leader)
{
    if (!vec_push(&order->open, leader))
        return status_out_of_memory();
    while (order->open.count) {
        struct ir_op *top = order->open.data[order->open.count - 1];
        uint8_t *state = state_of(order, top);
        if (*state == 0) {
            *state = OPENED;
            const bool fused = fuse_part_of(order->plan, top) != FUSE_NO_PART;
            for (const struct ir_op *op = top; op;
                 op = fused ? order->plan->ops[op->id].next : NULL)
                if (!open_needed(order, op))
                    return status_out_of_memory();
            continue;
        }
        order->open.count--;
        if (*state == OPENED && !vec_push(&order->done, top))
            return status_out_of_memory();
        *state = DONE;
    }
    return NULL;
}

/* Does anybody use what the op of a part computes, but the part? */
static bool is_used(struct fuse_plan *plan, const struct ir_op *op)
{
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next)
        if (use->user->parent != op->parent ||
            fuse_part_of(plan, use->user) != fuse_part_of(plan, op))
            return true;
    return false;
}

/* Links the ops of each part that is of use; true when there is one. */
static bool link_parts(struct fuse_plan *plan, const struct ir_block *block)
{
    bool found = false;
    for (struct ir_op *op = block->first; op; op = op->next)
        if (fuse_part_of(plan, op) != FUSE_NO_PART && is_used(plan, op))
            plan->parts.data[fuse_part_of(plan, op)].is_used = true;
    for (struct ir_op *op = block->first; op; op = op->next) {
        const uint32_t number = fuse_part_of(plan, op);
        if (number == FUSE_NO_PART)
            continue;
        struct fuse_part *part = &plan->parts.data[number];
        if (!part->is_used) {
            plan->ops[op->id].part = FUSE_NO_PART;
            continue;
        }
        if (part->last)
            plan->ops[part->last->id].next = op;
        else
            part->first = op;
        part->last = op;
        found = true;
    }
    return found;
}

/* Constants, then the order of the block, parts where their last op is, but for what is needed
 * earlier. */
static tssa_status *find_order(struct order *order)
{
    struct fuse_plan *plan = order->plan;
    for (struct ir_op *op = order->block->first; op; op = op->next)
        if (ir_op_is(op, IR_OP_Constant))
            TRY(put_in_order(order, op));
    for (struct ir_op *op = order->block->first; op && !ir_op_is(op, IR_OP_return); op = op->next) {
        const uint32_t part = fuse_part_of(plan, op);
        if (part == FUSE_NO_PART || plan->parts.data[part].last == op)
            TRY(put_in_order(order, leader_of(order, op)));
    }
    return NULL;
}

/* ---- Making ---------------------------------------------------------------------------------- */

struct making {
    struct pass_context *pass;
    struct ir_block *body;
    struct ir_cloner *cloner;
    VEC(struct ir_value *)
    operands, params;               /* outside and inside; some constants stand for themselves */
    VEC(struct ir_value *) results; /* inside */
};

/* A constant, again in the block. */
static struct ir_value *copy_constant(struct making *making, const struct ir_value *value)
{
    struct ir_op *copy = ir_clone_op(making->cloner, value->op);
    if (!copy)
        return NULL;
    copy->results[0].type = value->type;
    copy->results[0].known = value->known;
    if (making->body->first)
        ir_op_insert_before(copy, making->body->first);
    else
        ir_op_append(making->body, copy);
    return &copy->results[0];
}

static struct ir_value *make_param(const struct making *making, const struct ir_value *value)
{
    struct ir_value *param = ir_block_add_param(making->body);
    if (!param)
        return NULL;
    param->type = value->type;
    param->known = value->known;
    return param;
}

/* What stands in the block for a value from outside. */
static struct ir_value *enter(struct making *making, struct ir_value *value, bool is_inner)
{
    for (size_t i = 0; i < making->operands.count; i++)
        if (making->operands.data[i] == value)
            return making->params.data[i];
    struct ir_value *inner = is_inner ? copy_constant(making, value) : make_param(making, value);
    if (!inner || !vec_push(&making->operands, value) || !vec_push(&making->params, inner))
        return NULL;
    return inner;
}

static tssa_status *move_in(struct making *making, struct fuse_plan *plan, struct ir_op *first)
{
    struct ir_op *ret = ir_op_create(making->pass->graph, ir_op_info(IR_OP_return), 0, 0);
    TRY_ALLOC(ret);
    ir_op_append(making->body, ret);
    for (struct ir_op *op = first; op; op = plan->ops[op->id].next)
        ir_op_move_before(op, ret);
    for (struct ir_op *op = first; op; op = plan->ops[op->id].next)
        for (uint32_t i = 0; i < op->n_operands; i++) {
            struct ir_value *value = ir_operand(op, i);
            if (!value || fuse_maker(value, making->body))
                continue;
            value = enter(making, value, fuse_is_inner(op, i));
            TRY_ALLOC(value);
            ir_op_set_operand(op, i, value);
        }
    ir_op_remove(ret); /* it is made again, with results */
    return NULL;
}

static bool are_equal_ranges(const struct ir_op *a, const struct ir_op *b)
{
    return ir_op_is(a, IR_OP_Range) && ir_op_is(b, IR_OP_Range) &&
           ir_attr_int(a, "stash_type", TSSA_FLOAT) == ir_attr_int(b, "stash_type", TSSA_FLOAT);
}

/* Do both read the same, or go from there to there? */
static bool is_same_read(const struct ir_op *a, const struct ir_op *b)
{
    bool same = (ir_op_is(a, IR_OP_access) && ir_op_is(b, IR_OP_access) &&
                 a->n_operands == b->n_operands && rule_equal(rule_of(a), rule_of(b))) ||
                are_equal_ranges(a, b);
    for (uint32_t i = 0; same && i < a->n_operands; i++)
        same = ir_operand(a, i) == ir_operand(b, i);
    return same;
}

static struct ir_op *find_same_read(const struct fuse_plan *plan, const struct fuse_part *part,
                                    const struct ir_op *op)
{
    struct ir_op *other = part->first;
    while (other != op && !is_same_read(other, op))
        other = plan->ops[other->id].next;
    return other == op ? NULL : other;
}

/* Copies of an access or a Range (fuse_copy.c) that came into the same kernel are one again. */
static void merge_reads(struct fuse_plan *plan, const struct fuse_part *part)
{
    struct ir_op *previous = part->first, *op;
    while ((op = plan->ops[previous->id].next) && op != part->last) {
        struct ir_op *same = find_same_read(plan, part, op);
        if (!same) {
            previous = op;
            continue;
        }
        plan->ops[previous->id].next = plan->ops[op->id].next;
        ir_value_replace(&op->results[0], &same->results[0]);
        ir_op_remove(op);
    }
}

static bool is_used_outside(const struct ir_value *value)
{
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (use->user->parent != value->op->parent)
            return true;
    return false;
}

void fuse_hand_out(struct ir_value *inner, struct ir_value *result)
{
    struct ir_use *next;
    for (struct ir_use *use = inner->uses; use; use = next) {
        next = use->next;
        if (use->user->parent != inner->op->parent)
            ir_op_set_operand(use->user, (uint32_t)(use - use->user->operands), result);
    }
    result->type = inner->type;
    result->known = inner->known;
    result->declared = inner->declared;
    result->name = inner->name;
    inner->name = NULL;
    inner->declared = NULL;
}

/* The op around the block, once all is in it. */
static tssa_status *close_block(struct making *making, struct ir_op **made)
{
    struct ir_graph *graph = making->pass->graph;
    const uint32_t n_results = (uint32_t)making->results.count;
    struct ir_op *op =
        ir_op_create(graph, ir_op_info(IR_OP_fuse), making->body->n_params, n_results);
    struct ir_op *ret = ir_op_create(graph, ir_op_info(IR_OP_return), n_results, 0);
    if (!op || !ret || !ir_op_set_blocks(graph, op, 1))
        return status_out_of_memory();
    op->blocks[0] = making->body;
    op->block_names[0] = intern_str(&graph->strings, IR_FUSE_BODY);
    TRY_ALLOC(op->block_names[0]);
    making->body->owner = op;
    for (size_t i = 0, k = 0; i < making->operands.count; i++)
        if (making->params.data[i]->block)
            ir_op_set_operand(op, (uint32_t)k++, making->operands.data[i]);
    for (uint32_t i = 0; i < n_results; i++) {
        fuse_hand_out(making->results.data[i], &op->results[i]);
        ir_op_set_operand(ret, i, making->results.data[i]);
    }
    ir_op_append(making->body, ret);
    *made = op;
    return NULL;
}

static tssa_status *say(const struct fuse_plan *plan, const struct fuse_part *part,
                        const struct ir_op *fuse)
{
    struct text text;
    text_init(&text, plan->pass->graph->allocator);
    for (const struct ir_op *op = part->first; op; op = plan->ops[op->id].next)
        text_printf(&text, "%s%s", op == part->first ? "" : ", ", op->info->name);
    const char *names = text_string(&text);
    tssa_status *status =
        names ? pass_remark(plan->pass, TSSA_REMARK_APPLIED, fuse,
                            "one kernel of %u operands and %u results: %s",
                            (unsigned)fuse->n_operands, (unsigned)fuse->n_results, names)
              : status_out_of_memory();
    text_free(&text);
    return status;
}

static tssa_status *fill(struct making *making, struct fuse_plan *plan,
                         const struct fuse_part *part, struct ir_op *before)
{
    struct ir_op *fuse;
    making->body = ir_block_create(plan->pass->graph, NULL, 0);
    TRY_ALLOC(making->body);
    TRY(move_in(making, plan, part->first));
    merge_reads(plan, part);
    for (struct ir_op *op = part->first; op; op = plan->ops[op->id].next)
        if (is_used_outside(&op->results[0]) && !vec_push(&making->results, &op->results[0]))
            return status_out_of_memory();
    TRY(close_block(making, &fuse));
    fuse->name = part->last->name;
    ir_op_insert_before(fuse, before);
    fuse->inferred_from = ir_infer_stamp(fuse);
    plan->pass->changed = true;
    return say(plan, part, fuse);
}

static tssa_status *make(struct fuse_plan *plan, uint32_t number, struct ir_op *before)
{
    struct making making = {.pass = plan->pass, .cloner = &plan->cloner};
    vec_init(&making.operands, plan->pass->graph->allocator);
    vec_init(&making.params, plan->pass->graph->allocator);
    vec_init(&making.results, plan->pass->graph->allocator);
    tssa_status *status = fill(&making, plan, &plan->parts.data[number], before);
    vec_free(&making.results);
    vec_free(&making.params);
    vec_free(&making.operands);
    return status;
}

static tssa_status *make_all(struct order *order, struct ir_op *ret)
{
    TRY(find_order(order));
    for (size_t i = 0; i < order->done.count; i++) {
        struct ir_op *op = order->done.data[i];
        const uint32_t part = fuse_part_of(order->plan, op);
        if (part == FUSE_NO_PART)
            ir_op_move_before(op, ret);
        else
            TRY(make(order->plan, part, ret));
    }
    return NULL;
}

tssa_status *fuse_make(struct fuse_plan *plan, struct ir_block *block)
{
    struct order order = {.plan = plan, .block = block};
    if (!link_parts(plan, block))
        return NULL;
    vec_init(&order.done, plan->pass->graph->allocator);
    vec_init(&order.open, plan->pass->graph->allocator);
    tssa_status *status = make_all(&order, ir_block_return(block));
    vec_free(&order.open);
    vec_free(&order.done);
    return status;
}
