/* SPDX-License-Identifier: Apache-2.0 */
/* See spaces.h. */
#include "runtime/spaces.h"

#include "base/vec.h"
#include "ir/fuse.h"
#include "ir/memory.h"
#include "ir/rule.h"
#include "runtime/plan.h"

/* A tensor of no more elements is an argument of a launch, and nothing to ask a device for. */
#define MOST_SMALL 64

struct finder {
    const struct plan *plan;
    const struct ir_graph *graph;
    const struct device *device;
    struct spaces *spaces;
    uint8_t *of_value;
    bool *known, *needed, *mirrored;     /* per value id */
    bool *on_device, *lacked;            /* per op id */
    bool changed;                        /* in this round */
    VEC(const struct ir_value *) marked; /* needed, and not looked at yet */
};

static bool is_small(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    int64_t count = 1;
    if (value->known)
        return true;
    if (type->kind != TYPE_TENSOR || type->rank < 0 || type->dtype == TSSA_STRING)
        return false;
    for (int i = 0; i < type->rank; i++) {
        if (type->dims[i]->high > MOST_SMALL)
            return false;
        count *= type->dims[i]->high;
        if (count > MOST_SMALL)
            return false;
    }
    return true;
}

static bool suits_device(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    return type->kind == TYPE_TENSOR && type->dtype != TSSA_UNDEFINED && type->dtype != TSSA_STRING;
}

static uint32_t id_of(const struct finder *f, const struct ir_value *value)
{
    return plan_value(f->plan, value)->id;
}

/* A fuse op with a kernel is one op: nobody looks into its block. */
static uint32_t blocks_of(const struct plan *plan, const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_fuse) && !plan_fused(plan, op) ? 0 : op->n_blocks;
}

/* ---- Loops ----------------------------------------------------------------------------------- */

/* What a Loop carries: operand 2 + k is parameter 2 + k, return 1 + k and result k. */
static uint32_t carried_of(const struct ir_op *loop)
{
    return loop->n_operands > 2 ? loop->n_operands - 2 : 0;
}

/* NULL of what is malformed, which is refused when its step is made. */
static const struct ir_value *returned(const struct ir_op *op, uint32_t block, uint32_t index)
{
    const struct ir_op *from = ir_block_return(op->blocks[block]);
    return from ? ir_operand(from, index) : NULL;
}

static bool is_loop(const struct ir_op *op)
{
    return op && ir_op_is(op, IR_OP_Loop) && op->n_blocks == 1 &&
           op->blocks[0]->n_params >= carried_of(op) + 2 && op->n_results >= carried_of(op);
}

/* ---- What the host can compute --------------------------------------------------------------- */

static void refuse(struct finder *f, const struct ir_value *value)
{
    f->changed |= f->known[id_of(f, value)];
    f->known[id_of(f, value)] = false;
}

static bool is_known(const struct finder *f, const struct ir_value *value)
{
    return !value || f->known[id_of(f, value)];
}

static void refuse_all(struct finder *f, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        refuse(f, &op->results[i]);
}

static void know_if(struct finder *f, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        for (uint32_t b = 0; b < blocks_of(f->plan, op); b++)
            if (!is_known(f, ir_operand(op, 0)) || !is_known(f, returned(op, b, i)))
                refuse(f, &op->results[i]);
}

static void know_loop(struct finder *f, const struct ir_op *op)
{
    const uint32_t n = carried_of(op);
    const struct ir_block *body = op->blocks[0];
    for (uint32_t k = 0; k < op->n_results; k++) {
        const bool stacked = k >= n;
        if (stacked || !is_known(f, ir_operand(op, k + 2)) ||
            !is_known(f, returned(op, 0, k + 1))) {
            refuse(f, &op->results[k]);
            if (!stacked)
                refuse(f, body->params[k + 2]);
        }
    }
}

/* A result that is no name of what is returned as it is a handle to the same. */
static void know_fused(struct finder *f, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (!is_known(f, returned(op, 0, i)))
            refuse(f, &op->results[i]);
}

static void know_op(struct finder *f, const struct ir_op *op)
{
    bool all = !op->opaque && !ir_op_is(op, IR_OP_fuse);
    for (uint32_t i = 0; i < op->n_operands && !(op->info->flags & IR_SHAPE); i++)
        all &= is_known(f, ir_operand(op, i));
    for (uint32_t i = 0; i < op->n_results; i++)
        all &= !op->results[i].wanted || f->known[id_of(f, &op->results[i])];
    if (!all)
        refuse_all(f, op);
}

static void know_block(struct finder *f, const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t b = 0; b < blocks_of(f->plan, op); b++)
            know_block(f, op->blocks[b]);
        if (!ir_op_computes(op))
            continue;
        if (ir_op_is(op, IR_OP_If))
            know_if(f, op);
        else if (is_loop(op))
            know_loop(f, op);
        else if (plan_fused(f->plan, op))
            know_fused(f, op);
        else if (blocks_of(f->plan, op))
            refuse_all(f, op);
        else
            know_op(f, op);
    }
}

/* The most that can be, to begin with. */
static void suppose_block(struct finder *f, const struct ir_block *block)
{
    const bool repeats = block->owner && !is_loop(block->owner);
    const bool fused = block->owner && plan_fused(f->plan, block->owner);
    for (uint32_t i = 0; !fused && i < block->n_params; i++)
        f->known[block->params[i]->id] = !repeats && is_small(block->params[i]);
    for (const struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_results; i++)
            f->known[id_of(f, &op->results[i])] =
                ir_op_is(op, IR_OP_Constant) || is_small(&op->results[i]);
        for (uint32_t b = 0; b < blocks_of(f->plan, op); b++)
            suppose_block(f, op->blocks[b]);
    }
}

/* ---- What the host must know ----------------------------------------------------------------- */

static bool mark(struct finder *f, const struct ir_value *value)
{
    if (!value || f->needed[id_of(f, value)])
        return true;
    f->needed[id_of(f, value)] = true;
    return !f->known[id_of(f, value)] || vec_push(&f->marked, value);
}

static bool mark_carried(struct finder *f, const struct ir_op *loop, uint32_t k)
{
    return mark(f, ir_operand(loop, k + 2)) && mark(f, returned(loop, 0, k + 1)) &&
           mark(f, loop->blocks[0]->params[k + 2]) && mark(f, &loop->results[k]);
}

/* What the value is computed from. */
static bool mark_sources(struct finder *f, const struct ir_value *value)
{
    value = plan_value(f->plan, value);
    const struct ir_op *op = value->op ? value->op : value->block->owner;
    bool good = true;
    if (!op)
        return true;
    if (plan_fused(f->plan, op))
        return mark(f, returned(op, 0, value->index));
    if (is_loop(op)) {
        const uint32_t k = value->op ? value->index : value->index - 2;
        return (!value->op && value->index < 2) || k >= carried_of(op) || mark_carried(f, op, k);
    }
    for (uint32_t b = 0; value->op && b < blocks_of(f->plan, op) && good; b++)
        good = mark(f, returned(op, b, value->index));
    for (uint32_t i = 0; i < op->n_operands && good && !(op->info->flags & IR_SHAPE); i++)
        good = mark(f, ir_operand(op, i));
    return good;
}

static bool tells_shapes(const struct ir_value *value)
{
    for (size_t i = 0; value->known && i < value->known->count; i++)
        if (value->known->elements[i])
            return true;
    return false;
}

static bool tells_size(const struct ir_op *op, uint32_t operand);

/* Of an operand of a fuse op: does one of its ops have it so? */
static bool tells_fused_size(const struct ir_block *body, uint32_t operand)
{
    for (const struct ir_use *use = body->params[operand]->uses; use; use = use->next)
        if (tells_size(use->user, (uint32_t)(use - use->user->operands)))
            return true;
    return false;
}

/* Is it a number of a slice of what an access reads? */
static bool tells_slice(const struct ir_op *op, const struct ir_value *value)
{
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    for (uint32_t i = 0; rule && i < rule->n_steps; i++)
        for (uint32_t k = 0; rule->steps[i].kind == RULE_SLICE && k < rule->steps[i].n_params; k++)
            if (rule_param_value(op, &rule->steps[i].params[k]) == value)
                return true;
    return false;
}

/* Do the numbers of the operand tell how large the result is, what of it is read, or how often a
 * loop runs? */
static bool tells_size(const struct ir_op *op, uint32_t operand)
{
    const struct ir_value *value = ir_operand(op, operand);
    if (value && ir_fuse_body(op))
        return tells_fused_size(ir_fuse_body(op), operand);
    if (value && (tells_slice(op, value) || (is_loop(op) && operand < 2)))
        return true;
    if (!value || op->info->max_operands == IR_VARIADIC || (op->info->flags & IR_SHAPE))
        return false;
    if (ir_op_is(op, IR_OP_Range) || ir_op_is(op, IR_OP_ConstantOfShape))
        return true;
    switch (op->info->cls) {
    case IR_CLASS_MOVEMENT:
    case IR_CLASS_GENERATOR:
    case IR_CLASS_SELECTION:
    case IR_CLASS_REDUCTION:
    case IR_CLASS_WINDOW:
        return operand > 0 && value->type->kind == TYPE_TENSOR &&
               dtype_is_integer(value->type->dtype);
    default:
        return false;
    }
}

static bool mark_values(struct finder *f, const struct ir_block *block)
{
    bool good = true;
    for (uint32_t i = 0; good && i < block->n_params; i++)
        good = !tells_shapes(block->params[i]) || mark(f, block->params[i]);
    for (const struct ir_op *op = block->first; good && op; op = op->next) {
        for (uint32_t i = 0; good && i < op->n_results; i++)
            good = !tells_shapes(&op->results[i]) || mark(f, &op->results[i]);
        for (uint32_t i = 0; good && i < op->n_operands; i++)
            good = !tells_size(op, i) || mark(f, ir_operand(op, i));
        if (is_loop(op))
            good = good && mark(f, returned(op, 0, 0));
        else if (ir_op_is(op, IR_OP_If))
            good = good && mark(f, ir_operand(op, 0));
        for (uint32_t b = 0; good && b < blocks_of(f->plan, op); b++)
            good = mark_values(f, op->blocks[b]);
    }
    return good;
}

static tssa_status *find_needed(struct finder *f)
{
    vec_init(&f->marked, f->graph->arena.allocator);
    bool good = mark_values(f, f->graph->body);
    while (good && f->marked.count)
        good = mark_sources(f, f->marked.data[--f->marked.count]);
    vec_free(&f->marked);
    return good ? NULL : status_out_of_memory();
}

/* ---- Where values lie ------------------------------------------------------------------------ */

static void put(struct finder *f, const struct ir_value *value, bool on_device)
{
    f->of_value[id_of(f, value)] = on_device ? SPACE_DEVICE : SPACE_HOST;
}

static bool on_device(const struct finder *f, const struct ir_value *value)
{
    return value && f->of_value[id_of(f, value)] == SPACE_DEVICE;
}

static bool host_computes(const struct finder *f, const struct ir_value *value)
{
    return f->known[id_of(f, value)] && f->needed[id_of(f, value)];
}

static bool host_runs(const struct finder *f, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (host_computes(f, &op->results[i]))
            return true;
    return false;
}

static void place_op(struct finder *f, const struct ir_op *op)
{
    if (!ir_op_computes(op) || op->opaque || host_runs(f, op))
        return;
    if (!f->device->find_kernel(op)) {
        f->lacked[op->id] = true;
        f->spaces->n_lacked++;
        return;
    }
    f->on_device[op->id] = true;
    for (uint32_t i = 0; i < op->n_results; i++)
        put(f, &op->results[i], op->results[i].wanted);
}

static void place_block(struct finder *f, const struct ir_block *block);

static void place_loop(struct finder *f, const struct ir_op *op)
{
    const uint32_t n = carried_of(op);
    const struct ir_block *body = op->blocks[0];
    for (uint32_t k = 0; k < n; k++) {
        const struct ir_value *param = body->params[k + 2], *result = &op->results[k];
        const bool there = suits_device(param) && (!result->wanted || suits_device(result)) &&
                           !host_computes(f, param);
        put(f, param, there);
        put(f, result, there);
    }
    place_block(f, body);
    for (uint32_t k = n; k < op->n_results; k++)
        put(f, &op->results[k], on_device(f, returned(op, 0, k + 1)));
}

static void place_if(struct finder *f, const struct ir_op *op)
{
    for (uint32_t b = 0; b < blocks_of(f->plan, op); b++)
        place_block(f, op->blocks[b]);
    for (uint32_t i = 0; i < op->n_results; i++) {
        bool there = false;
        for (uint32_t b = 0; b < blocks_of(f->plan, op); b++)
            there |= on_device(f, returned(op, b, i));
        put(f, &op->results[i],
            there && suits_device(&op->results[i]) && !host_computes(f, &op->results[i]));
    }
}

static void place_fused(struct finder *f, const struct ir_op *op)
{
    place_block(f, op->blocks[0]);
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted)
            put(f, &op->results[i], on_device(f, returned(op, 0, i)));
}

static void place_block(struct finder *f, const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (is_loop(op))
            place_loop(f, op);
        else if (ir_op_is(op, IR_OP_If))
            place_if(f, op);
        else if (plan_fused(f->plan, op))
            place_fused(f, op);
        else if (blocks_of(f->plan, op))
            for (uint32_t b = 0; b < blocks_of(f->plan, op); b++)
                place_block(f, op->blocks[b]);
        else
            place_op(f, op);
    }
}

/* ---- Who needs a mirror ---------------------------------------------------------------------- */

/* Where a block's return must lie. */
static enum space space_of_return(const struct plan *plan, const struct ir_op *op, uint32_t index)
{
    const struct ir_op *owner = op->parent->owner;
    if (owner && (ir_op_is(owner, IR_OP_If) || plan_fused(plan, owner)))
        return plan_space(plan, &owner->results[index]);
    if (is_loop(owner) && index > 0)
        return plan_space(plan, &owner->results[index - 1]);
    return SPACE_HOST;
}

static enum space space_of_operand(const struct plan *plan, const struct ir_op *op, uint32_t index)
{
    if (ir_op_is(op, IR_OP_return))
        return space_of_return(plan, op, index);
    if (is_loop(op) && index >= 2)
        return plan_space(plan, op->blocks[0]->params[index]);
    return plan->spaces.on_device[op->id] ? SPACE_DEVICE : SPACE_HOST;
}

bool spaces_crosses(const struct plan *plan, const struct ir_op *op, uint32_t index)
{
    const struct ir_value *value = ir_operand(op, index);
    /* What is in the block of a fuse op that is run reads the operand itself. */
    if (!plan->spaces.of_value || !value || (op->info->flags & IR_SHAPE) || plan_fused(plan, op))
        return false;
    if (ir_op_is(op, IR_OP_return) && op->parent->owner && plan_fused(plan, op->parent->owner))
        return false;
    const enum space to = space_of_operand(plan, op, index);
    if (to == plan_space(plan, value))
        return false;
    return !spaces_is_argument(plan, op, index);
}

/* An input of which the host knows nothing lies there like a large one, so that launches are given
 * the same in each run. */
static bool is_copied(const struct plan *plan, const struct ir_value *value)
{
    value = plan_value(plan, value);
    return !value->op && value->block == plan->graph->body && !plan->spaces.needed[value->id];
}

bool spaces_is_argument(const struct plan *plan, const struct ir_op *op, uint32_t index)
{
    const struct ir_value *value = ir_operand(op, index);
    if (!plan->spaces.of_value || !plan->spaces.on_device[op->id] || !value ||
        plan_space(plan, value) != SPACE_HOST)
        return false;
    if (ir_op_is_name(op))
        return index > 0;
    return is_small(value) && !is_copied(plan, value);
}

/* The host reads what shapes are made of. */
static void mirror_shapes(struct finder *f, const struct ir_value *value)
{
    if (on_device(f, value) && tells_shapes(value))
        f->mirrored[id_of(f, value)] = true;
}

static void mirror_in_block(struct finder *f, const struct ir_block *block)
{
    for (uint32_t i = 0; i < block->n_params; i++)
        mirror_shapes(f, block->params[i]);
    for (const struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_operands; i++)
            if (spaces_crosses(f->plan, op, i))
                f->mirrored[id_of(f, ir_operand(op, i))] = true;
        for (uint32_t i = 0; i < op->n_results; i++)
            mirror_shapes(f, &op->results[i]);
        for (uint32_t b = 0; b < blocks_of(f->plan, op); b++)
            mirror_in_block(f, op->blocks[b]);
    }
}

/* ---- All ------------------------------------------------------------------------------------- */

static tssa_status *find(struct finder *f)
{
    suppose_block(f, f->graph->body);
    do {
        f->changed = false;
        know_block(f, f->graph->body);
    } while (f->changed);
    TRY(find_needed(f));
    place_block(f, f->graph->body);
    mirror_in_block(f, f->graph->body);
    return NULL;
}

tssa_status *spaces_find(struct plan *plan)
{
    const struct ir_graph *graph = plan->graph;
    struct spaces *spaces = &plan->spaces;
    struct arena *arena = &plan->arena;
    if (plan->n_spaces == 1)
        return NULL;
    struct finder f = {
        .plan = plan, .graph = graph, .device = plan->device->device, .spaces = spaces};
    f.of_value = ARENA_ARRAY(arena, uint8_t, graph->n_values);
    f.known = ARENA_ARRAY(arena, bool, graph->n_values);
    f.needed = ARENA_ARRAY(arena, bool, graph->n_values);
    f.mirrored = ARENA_ARRAY(arena, bool, graph->n_values);
    f.on_device = ARENA_ARRAY(arena, bool, graph->n_ops);
    f.lacked = ARENA_ARRAY(arena, bool, graph->n_ops);
    if (!f.of_value || !f.known || !f.needed || !f.mirrored || !f.on_device || !f.lacked)
        return status_out_of_memory();
    spaces->of_value = f.of_value;
    spaces->known = f.known;
    spaces->needed = f.needed;
    spaces->mirrored = f.mirrored;
    spaces->on_device = f.on_device;
    spaces->lacked = f.lacked;
    return find(&f);
}
