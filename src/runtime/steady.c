/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/steady.h"

#include "ir/memory.h"
#include "runtime/control_recorded.h"

struct finder {
    const struct plan *plan;
    bool *varies;  /* per value id: it lies in the host's space, and is not the same in each run */
    int64_t *ones; /* per symbol of the inputs' shapes */
    bool changed;
    const char *why;
};

static bool *entry(const struct finder *f, const struct ir_value *value)
{
    return &f->varies[plan_value(f->plan, value)->id];
}

static bool varies(const struct finder *f, const struct ir_value *value)
{
    return value && *entry(f, value);
}

static void set(struct finder *f, const struct ir_value *value, bool does)
{
    if (!does || *entry(f, value) || plan_space(f->plan, value) != SPACE_HOST)
        return;
    *entry(f, value) = true;
    f->changed = true;
}

static void refuse(struct finder *f, bool does, const char *why)
{
    if (does && !f->why)
        f->why = why;
}

static const struct ir_value *returned(const struct ir_block *block, uint32_t index)
{
    return ir_operand(ir_block_return(block), index);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static bool is_input(const struct finder *f, const struct ir_value *value)
{
    value = plan_value(f->plan, value);
    return !value->op && value->block == f->plan->graph->body;
}

/* A number that the device counts is there for kernels that read it; what is told of names is told
 * by the host. */
static bool reads_count(const struct finder *f, const struct ir_op *op, uint32_t index)
{
    const struct ir_value *value = ir_operand(op, index);
    return value && control_is_count(f->plan, value) && (!ir_op_is_name(op) || index == 0);
}

/* What a launch is given: inputs are copied to the device before, each time. */
static void visit_launch(struct finder *f, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        const bool crosses = spaces_crosses(f->plan, op, i);
        if (reads_count(f, op, i))
            continue;
        refuse(f,
               varies(f, value) &&
                   (spaces_is_argument(f->plan, op, i) || (crosses && !is_input(f, value))),
               "the host computes what a launch is given from an input");
    }
}

/* Is its shape the same in each run, since the inputs' shapes tell it? */
static bool has_steady_shape(const struct finder *f, const struct ir_value *value)
{
    const struct plan *plan = f->plan;
    const struct ir_type *type = value->type;
    int64_t size;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!plan_dim(plan, f->ones, plan->n_input_symbols, type->dims[i], &size))
            return false;
    return true;
}

static void visit_host(struct finder *f, const struct ir_op *op)
{
    const bool asks_shape = op->info->flags & IR_SHAPE;
    bool any = op->opaque || (op->info->flags & IR_RANDOM);
    for (uint32_t i = 0; i < op->n_operands; i++)
        any |=
            varies(f, ir_operand(op, i)) && !(asks_shape && has_steady_shape(f, ir_operand(op, i)));
    for (uint32_t i = 0; i < op->n_results; i++)
        set(f, &op->results[i], any);
}

static void visit_block(struct finder *f, const struct ir_block *block);

static void visit_if(struct finder *f, const struct ir_op *op)
{
    refuse(f, varies(f, ir_operand(op, 0)), "an input decides over an If");
    for (uint32_t b = 0; b < op->n_blocks; b++) {
        visit_block(f, op->blocks[b]);
        for (uint32_t i = 0; i < op->n_results; i++)
            set(f, &op->results[i], varies(f, returned(op->blocks[b], i)));
    }
}

static void visit_loop(struct finder *f, const struct ir_op *op)
{
    const struct ir_block *body = op->blocks[0];
    const uint32_t n_carried = body->n_params - 2;
    refuse(f, varies(f, ir_operand(op, 0)) || varies(f, ir_operand(op, 1)),
           "an input says how often a Loop runs");
    set(f, body->params[0], control_is_recorded(f->plan, op));
    for (uint32_t k = 0; k < n_carried; k++)
        set(f, body->params[k + 2],
            varies(f, ir_operand(op, k + 2)) || varies(f, returned(body, k + 1)));
    visit_block(f, body);
    refuse(f, varies(f, returned(body, 0)), "an input decides when a Loop ends");
    for (uint32_t i = 0; i < op->n_results; i++) {
        /* of no iterations, what it is given */
        const bool given = i < n_carried && varies(f, ir_operand(op, i + 2));
        set(f, &op->results[i], given || varies(f, returned(body, i + 1)));
    }
}

static void visit_op(struct finder *f, const struct ir_op *op)
{
    const struct ir_block *fused = plan_fused(f->plan, op);
    if (fused)
        visit_block(f, fused);
    else if (ir_op_is(op, IR_OP_If))
        visit_if(f, op);
    else if (ir_op_is(op, IR_OP_Loop))
        visit_loop(f, op);
    else if (f->plan->spaces.on_device[op->id])
        visit_launch(f, op);
    else if (op->n_blocks)
        refuse(f, true, "the host runs a Scan, or a SequenceMap");
    else
        visit_host(f, op);
}

static void visit_block(struct finder *f, const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op && !f->why; op = op->next)
        if (ir_op_computes(op))
            visit_op(f, op);
}

static void visit_graph(struct finder *f)
{
    const struct ir_block *body = f->plan->graph->body;
    const struct ir_op *end = ir_block_return(body);
    for (uint32_t i = 0; i < body->n_params; i++)
        set(f, body->params[i], true);
    do {
        f->changed = false;
        visit_block(f, body);
    } while (f->changed && !f->why);
    for (uint32_t i = 0; i < end->n_operands; i++)
        refuse(f, varies(f, ir_operand(end, i)), "the host computes an output");
}

/* ---- Copies ---------------------------------------------------------------------------------- */

/* Control flow over which the device decides: its condition is not read. */
static bool decides(struct finder *f, const struct ir_op *op)
{
    const char *why = NULL;
    if (!control_is_recorded(f->plan, op))
        return false;
    why = control_recorded_lacks(f->plan, op);
    refuse(f, why != NULL, why);
    return true;
}

static void refuse_reads(struct finder *f, const struct plan_copies *copies)
{
    for (uint32_t i = 0; i < copies->count; i++)
        refuse(f, copies->items[i].space == SPACE_HOST,
               "the host reads what the device computes before it goes on");
}

/* Of all but what the graph returns, which is read when all is done. */
static void visit_copies(struct finder *f, const struct block_plan *block)
{
    const struct ir_op *owner = block->block->owner;
    if (block->crossing) {
        refuse_reads(f, &block->crossing->entered);
        if (owner && !control_is_recorded(f->plan, owner))
            refuse_reads(f, &block->crossing->returned);
    }
    for (uint32_t i = 0; i < block->n_steps; i++) {
        const struct step *step = &block->steps[i];
        if (!decides(f, step->op))
            refuse_reads(f, &step->before);
        refuse_reads(f, &step->after);
        for (uint32_t b = 0; b < step->n_blocks; b++)
            visit_copies(f, step->blocks[b]);
    }
}

/* ---- What is done otherwise while it is recorded --------------------------------------------- */

static tssa_status *find_counts(struct plan *plan, struct step *step)
{
    bool *on_host = NULL;
    for (uint32_t i = 0; step->on_host && step->kernel && i < step->n_inputs; i++) {
        const struct ir_value *value = ir_operand(step->op, i);
        if (!step->on_host[i] || !control_is_count(plan, value))
            continue;
        if (!on_host)
            on_host = arena_copy(&plan->arena, step->on_host, step->n_inputs * sizeof *on_host);
        TRY_ALLOC(on_host);
        on_host[i] = false;
    }
    step->on_host_recorded = on_host;
    return NULL;
}

static tssa_status *mark_recorded(struct plan *plan, const struct block_plan *block)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        struct step *step = (struct step *)&block->steps[i]; /* of a plan that is being made */
        step->is_recorded = control_is_recorded(plan, step->op);
        TRY(find_counts(plan, step));
        for (uint32_t b = 0; b < step->n_blocks; b++)
            TRY(mark_recorded(plan, step->blocks[b]));
    }
    return NULL;
}

/* ---- All ------------------------------------------------------------------------------------- */

static bool open_finder(struct finder *f)
{
    const tssa_allocator *a = f->plan->arena.allocator;
    f->varies = allocator_calloc(a, f->plan->n_values + 1u, sizeof *f->varies);
    f->ones = allocator_calloc(a, f->plan->n_input_symbols + 1u, sizeof *f->ones);
    for (uint32_t i = 0; f->ones && i < f->plan->n_input_symbols; i++)
        f->ones[i] = 1;
    return f->varies && f->ones;
}

static void close_finder(struct finder *f)
{
    allocator_free(f->plan->arena.allocator, f->varies);
    allocator_free(f->plan->arena.allocator, f->ones);
}

tssa_status *steady_find(struct plan *plan)
{
    if (plan->n_spaces == 1 || !plan->device->device->record_begin) {
        plan->driven = "the device records nothing";
        return NULL;
    }
    struct finder f = {.plan = plan};
    if (!open_finder(&f)) {
        close_finder(&f);
        return status_out_of_memory();
    }
    visit_copies(&f, plan->body);
    if (!f.why)
        visit_graph(&f);
    close_finder(&f);
    plan->driven = f.why;
    return f.why ? NULL : mark_recorded(plan, plan->body);
}
