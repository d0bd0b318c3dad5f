/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that a loop is split into: one for each stage, with the stacks between them
 * (distribute.h). */
#include "base/vec.h"
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "ir/rule.h"
#include "passes/loops/distribute.h"

uint32_t distribution_stage_of(const struct distribution *d, const struct ir_value *value)
{
    uint32_t c = recurrence_of_value(&d->found, value);
    return c == RECURRENCE_NONE ? RECURRENCE_NONE : d->stage[c];
}

struct parts {
    VEC(uint32_t) carried;       /* carried values of the stage */
    VEC(struct ir_value *) scan; /* values that its loop stacks */
};

static bool is_listed(const struct parts *parts, const struct ir_value *value)
{
    for (size_t i = 0; i < parts->scan.count; i++)
        if (parts->scan.data[i] == value)
            return true;
    return false;
}

/* Is the value needed by a later stage? */
static bool is_needed_later(const struct distribution *d, const struct ir_value *value,
                            uint32_t stage)
{
    for (const struct ir_use *use = value->uses; use; use = use->next) {
        const struct ir_op *user = use->user;
        while (user->parent != d->found.body)
            user = user->parent->owner;
        if (!ir_op_is(user, IR_OP_return) &&
            d->stage[d->found.component[d->found.op_index[user->id] - 1]] != stage)
            return true;
    }
    return false;
}

/* What the loop of a stage carries and stacks. */
static bool list_parts(const struct distribution *d, uint32_t stage, struct parts *parts)
{
    const struct recurrences *found = &d->found;
    const struct ir_op *ret = ir_block_return(found->body);
    for (uint32_t k = 0; k < found->n_carried; k++)
        if (d->stage[found->component[found->n_ops + k]] == stage && !vec_push(&parts->carried, k))
            return false;
    for (uint32_t r = found->n_carried; r < found->loop->n_results; r++) {
        struct ir_value *value = ir_operand(ret, ir_loop_return(found->loop, r));
        uint32_t at = distribution_stage_of(d, value);
        if (at == RECURRENCE_NONE)
            at = d->n_stages - 1;
        if (at == stage && !is_listed(parts, value) && !vec_push(&parts->scan, value))
            return false;
    }
    size_t n_returned = parts->scan.count;
    for (uint32_t i = 0; i < found->n_ops; i++) {
        if (d->stage[found->component[i]] != stage)
            continue;
        const struct ir_op *op = found->ops[i];
        for (uint32_t r = 0; r < op->n_results; r++) {
            struct ir_value *value = (struct ir_value *)&op->results[r];
            if (!is_needed_later(d, value, stage))
                continue;
            if ((n_returned == 0 || !is_listed(parts, value)) && !vec_push(&parts->scan, value))
                return false;
        }
    }
    return true;
}

/* An op's operand from an earlier stage: this iteration's row of the stack. */
static bool read_row(void *context, struct ir_value *value)
{
    struct distribution *d = context;
    uint32_t stage = distribution_stage_of(d, value);
    struct ir_graph *graph = d->pass->graph;
    if (stage == RECURRENCE_NONE || stage == d->at || ir_cloner_get(&d->cloner, value) != value)
        return true;
    const struct rule_param params[2] = {rule_constant(0), rule_operand(0)};
    const struct rule_step row = {RULE_SELECT, 2, params};
    struct ir_op *access =
        rule_access_create(graph, d->stacked[value->id], rule_create(graph, 1, &row), 1,
                           (struct ir_value *[]){d->block->params[0]});
    if (!access)
        return false;
    ir_op_append(d->block, access);
    return ir_cloner_map(&d->cloner, value, &access->results[0]);
}

static bool fill_body(struct distribution *d, const struct parts *parts)
{
    const struct recurrences *found = &d->found;
    struct ir_graph *graph = d->pass->graph;
    ir_cloner_reset(&d->cloner);
    for (uint32_t p = 0; p < 2; p++)
        if (!ir_cloner_map(&d->cloner, found->body->params[p], d->block->params[p]))
            return false;
    for (size_t i = 0; i < parts->carried.count; i++) {
        uint32_t param = ir_loop_param(found->loop, parts->carried.data[i]);
        if (!ir_cloner_map(&d->cloner, found->body->params[param], d->block->params[i + 2]))
            return false;
    }
    for (uint32_t i = 0; i < found->n_ops; i++) {
        if (d->stage[found->component[i]] != d->at)
            continue;
        if (!recurrence_visit_operands(found->ops[i], read_row, d))
            return false;
        struct ir_op *copy = ir_clone_op(&d->cloner, found->ops[i]);
        if (!copy)
            return false;
        ir_op_append(d->block, copy);
    }
    const struct ir_op *ret = ir_block_return(found->body);
    uint32_t carried = (uint32_t)parts->carried.count, scan = (uint32_t)parts->scan.count;
    struct ir_op *made = ir_op_create(graph, ir_op_info(IR_OP_return), 1 + carried + scan, 0);
    if (!made)
        return false;
    ir_op_set_operand(made, 0, d->block->params[1]);
    for (uint32_t i = 0; i < carried; i++) {
        uint32_t at = ir_loop_return(found->loop, parts->carried.data[i]);
        ir_op_set_operand(made, 1 + i, ir_cloner_get(&d->cloner, ir_operand(ret, at)));
    }
    for (uint32_t i = 0; i < scan; i++)
        ir_op_set_operand(made, 1 + carried + i, ir_cloner_get(&d->cloner, parts->scan.data[i]));
    ir_op_append(d->block, made);
    return true;
}

/* The loop of stage d->at, with its body. */
static struct ir_op *make_loop(struct distribution *d, const struct parts *parts)
{
    struct ir_op *old = d->found.loop;
    struct ir_graph *graph = d->pass->graph;
    uint32_t carried = (uint32_t)parts->carried.count, scan = (uint32_t)parts->scan.count;
    struct ir_op *loop = ir_op_create(graph, old->info, 2 + carried, carried + scan);
    if (!loop || !ir_op_set_blocks(graph, loop, 1))
        return NULL;
    loop->version = old->version;
    loop->name = old->name;
    loop->fits = old->fits;
    ir_op_set_operand(loop, 0, ir_operand(old, 0));
    for (uint32_t i = 0; i < carried; i++)
        ir_op_set_operand(loop, 2 + i,
                          ir_operand(old, ir_loop_operand(old, parts->carried.data[i])));
    loop->blocks[0] = d->block = ir_block_create(graph, loop, 2 + carried);
    loop->block_names[0] = old->block_names[0];
    if (!d->block || !fill_body(d, parts))
        return NULL;
    ir_op_insert_before(loop, old);
    return loop;
}

static void take_over(struct ir_value *from, struct ir_value *to)
{
    if (!from->uses)
        return;
    ir_value_replace(from, to);
    if (!to->name) {
        to->name = from->name;
        from->name = NULL;
    }
}

static tssa_status *make_stage(struct distribution *d, const struct parts *parts)
{
    struct ir_op *old = d->found.loop, *loop = make_loop(d, parts);
    const struct ir_op *ret = ir_block_return(d->found.body);
    TRY_ALLOC(loop);
    TRY(ir_infer_op_lenient(loop));
    for (uint32_t i = 0; i < parts->carried.count; i++)
        take_over(&old->results[parts->carried.data[i]], &loop->results[i]);
    for (size_t i = 0; i < parts->scan.count; i++) {
        struct ir_value *stack = &loop->results[parts->carried.count + i];
        if (parts->scan.data[i]->id < d->n_values)
            d->stacked[parts->scan.data[i]->id] = stack;
        for (uint32_t r = d->found.n_carried; r < old->n_results; r++)
            if (ir_operand(ret, ir_loop_return(old, r)) == parts->scan.data[i])
                take_over(&old->results[r], stack);
    }
    return NULL;
}

static tssa_status *make_stages(struct distribution *d)
{
    const tssa_allocator *allocator = d->pass->graph->allocator;
    uint32_t made = 0;
    for (uint32_t stage = 0; stage < d->n_stages; stage++) {
        struct parts parts = {VEC_INIT(allocator), VEC_INIT(allocator)};
        d->at = stage;
        tssa_status *status = list_parts(d, stage, &parts) ? NULL : status_out_of_memory();
        if (!status && parts.carried.count + parts.scan.count > 0) {
            status = make_stage(d, &parts);
            made++;
        }
        vec_free(&parts.carried);
        vec_free(&parts.scan);
        TRY(status);
    }
    TRY(pass_remark(d->pass, TSSA_REMARK_APPLIED, d->found.loop,
                    "split into %u loops, one for each of its recurrences and what lies between",
                    (unsigned)made));
    ir_release_blocks(d->found.loop);
    ir_op_remove(d->found.loop);
    d->pass->changed = true;
    return NULL;
}

tssa_status *distribution_split(struct distribution *d)
{
    ir_cloner_init(&d->cloner, d->pass->graph);
    tssa_status *status = make_stages(d);
    ir_cloner_free(&d->cloner);
    return status;
}
