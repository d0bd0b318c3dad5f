/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a graph into a plan: steps, slots, releases; see plan.h. Placement is in placement.c. */
#include "runtime/plan.h"

#include <inttypes.h>
#include <string.h>

#include "device/library_cache.h"
#include "ir/fuse.h"
#include "ir/memory.h"
#include "runtime/caller_device.h"
#include "runtime/control.h"
#include "runtime/crossing.h"
#include "runtime/executor.h"
#include "runtime/held_constants.h"
#include "runtime/placement.h"
#include "runtime/repeat.h"
#include "runtime/steady.h"
#include "runtime/symbols.h"

struct compiler {
    struct plan *plan;
    struct arena scratch;
    uint32_t *inputs, *outputs;     /* plan->inputs and plan->outputs, being filled */
    uint32_t *releases;             /* what is left of room for what the steps release */
    bool *last_uses, *sized, *told; /* plan->last_uses and so on, the same */
    struct symbol_scope symbols;
    struct plan_constant *constants;
    uint32_t *last_user;  /* per op id, head of the list of slots that die there */
    uint32_t *next_dying; /* per slot */
    uint32_t *position;   /* per op id: steps before it in its block */
};

/* ---- Sizes ----------------------------------------------------------------------------------- */

static void count_block(struct compiler *c, const struct ir_block *block);

/* A step, and what is in its blocks, but of a fuse op that a kernel takes. */
static void count_op(struct compiler *c, const struct ir_op *op)
{
    struct plan *plan = c->plan;
    const bool fused = ir_op_is(op, IR_OP_fuse) && plan_fused(plan, op);
    plan->runs_fused |= fused;
    plan->n_steps++;
    plan->n_inputs += op->n_operands;
    plan->n_outputs += op->n_results;
    for (uint32_t i = 0; i < op->n_blocks && (fused || !ir_op_is(op, IR_OP_fuse)); i++)
        count_block(c, op->blocks[i]);
}

/* Numbers the ops of each block: its return gets the number of steps. */
static void count_block(struct compiler *c, const struct ir_block *block)
{
    uint32_t position = 0;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        c->position[op->id] = position;
        if (ir_op_is(op, IR_OP_Constant)) {
            c->plan->n_constants++;
        } else if (!ir_op_is(op, IR_OP_return)) {
            position++;
            count_op(c, op);
        }
    }
}

static tssa_status *compiler_init(struct compiler *c, struct plan *plan,
                                  const struct ir_graph *graph)
{
    c->plan = plan;
    plan->graph = graph;
    plan->n_values = graph->n_values;
    plan->n_spaces = plan->device->device->is_host ? 1 : SPACE_COUNT;
    plan->n_slots = plan->n_spaces * plan->n_values;
    c->position = ARENA_ARRAY(&c->scratch, uint32_t, graph->n_ops);
    TRY_ALLOC(c->position);
    count_block(c, graph->body);
    TRY(spaces_find(plan));
    c->inputs = ARENA_ARRAY(&plan->arena, uint32_t, plan->n_inputs);
    c->outputs = ARENA_ARRAY(&plan->arena, uint32_t, plan->n_outputs);
    c->last_uses = ARENA_ARRAY(&plan->arena, bool, plan->n_inputs);
    c->releases = ARENA_ARRAY(&plan->arena, uint32_t, plan->n_slots); /* each dies once */
    c->sized = ARENA_ARRAY(&plan->arena, bool, plan->n_outputs);
    c->told = ARENA_ARRAY(&plan->arena, bool, plan->n_outputs);
    c->constants =
        ARENA_ARRAY(&plan->arena, struct plan_constant, (size_t)plan->n_spaces * plan->n_constants);
    plan->scratch = ARENA_ARRAY(&plan->arena, size_t, plan->n_steps);
    c->last_user = ARENA_ARRAY(&c->scratch, uint32_t, graph->n_ops);
    c->next_dying = ARENA_ARRAY(&c->scratch, uint32_t, graph->n_values);
    if (!c->inputs || !c->outputs || !c->releases || !c->last_uses || !c->sized || !c->told ||
        !c->constants || !plan->scratch || !c->last_user || !c->next_dying)
        return status_out_of_memory();
    memset(c->last_user, 0xff, graph->n_ops * sizeof *c->last_user);
    plan->inputs = c->inputs;
    plan->outputs = c->outputs;
    plan->last_uses = c->last_uses;
    plan->sized = c->sized;
    plan->told = c->told;
    plan->constants = c->constants;
    plan->n_steps = plan->n_inputs = plan->n_outputs = plan->n_constants =
        0; /* now counted as filled */
    return NULL;
}

/* Is it the block of a fuse op that is run? Its parameters are the operands, and what it binds
 * stays bound. */
static bool is_fused(const struct compiler *c, const struct ir_block *block)
{
    return block->owner && plan_fused(c->plan, block->owner);
}

static uint32_t slot_of(const struct compiler *c, const struct ir_value *value)
{
    return plan_value(c->plan, value)->id;
}

/* ---- Lifetimes ------------------------------------------------------------------------------- */

/* The op of `block` in which `op` is nested, or `op` itself. */
static const struct ir_op *ancestor_in(const struct ir_op *op, const struct ir_block *block)
{
    while (op->parent != block)
        op = op->parent->owner;
    return op;
}

/* Does the value live on where it is returned? Not from a fuse op that is run, to where nobody
 * wants it. */
static bool is_taken_out(const struct compiler *c, const struct ir_use *use)
{
    const struct ir_op *owner = use->user->parent->owner;
    uint32_t index = (uint32_t)(use - use->user->operands);
    return !owner || !plan_fused(c->plan, owner) || owner->results[index].wanted;
}

/* Puts the value on the list of the last op of its block that uses it; what is returned stays. */
static void record_death(struct compiler *c, const struct ir_value *value,
                         const struct ir_block *block, const struct ir_op *definer)
{
    const struct ir_op *last = definer;
    for (const struct ir_use *use = value->uses; use; use = use->next) {
        const struct ir_op *user = ancestor_in(use->user, block);
        if (ir_op_is(user, IR_OP_return) && is_taken_out(c, use))
            return;
        if (ir_op_is(user, IR_OP_return))
            continue;
        if (!last || c->position[user->id] > c->position[last->id])
            last = user;
    }
    if (!last)
        return;
    uint32_t slot = slot_of(c, value);
    c->next_dying[slot] = c->last_user[last->id];
    c->last_user[last->id] = slot;
}

static void record_deaths_of_params(struct compiler *c, const struct ir_block *block)
{
    for (uint32_t i = 0; i < block->n_params && !is_fused(c, block); i++)
        record_death(c, block->params[i], block, NULL);
}

static void record_deaths_of_results(struct compiler *c, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted)
            record_death(c, &op->results[i], op->parent, op);
}

/* The value, and with it its mirror: values that die are no constants. */
static void take_deaths(struct compiler *c, const struct ir_op *op, struct step *step)
{
    step->release = c->releases;
    for (uint32_t slot = c->last_user[op->id]; slot != SLOT_NONE; slot = c->next_dying[slot]) {
        *c->releases++ = slot;
        if (crossing_mirrored(c->plan, slot))
            *c->releases++ = c->plan->n_values + slot;
    }
    step->n_release = (uint32_t)(c->releases - step->release);
}

/* ---- Last uses ------------------------------------------------------------------------------- */

/* A value with more is not looked at: each of its users would look at all. */
#define MOST_USES 64

/* Do all blocks around `op`, up to the value's own, run once at most for each time that the value
 * is made? */
static bool runs_once(const struct ir_op *op, const struct ir_value *value)
{
    const struct ir_block *home = value->op ? value->op->parent : value->block;
    const struct ir_block *block = op->parent;
    while (block != home && ir_block_is_branch(block))
        block = block->owner->parent;
    return block == home;
}

/* Is it certain that `user` has not used its operand after `op` runs? Both see the operand. */
static bool is_before(const struct compiler *c, const struct ir_op *user, const struct ir_op *op)
{
    for (const struct ir_op *b = op;; b = b->parent->owner)
        for (const struct ir_op *a = user; a; a = a->parent->owner)
            if (a->parent == b->parent && a == b) /* around both: the branch that is not taken */
                return a != user && b != op;
            else if (a->parent == b->parent)
                return c->position[a->id] < c->position[b->id];
}

/* What is said of a parameter of a fuse op that is run must hold of the operand. */
static bool is_last(const struct compiler *c, const struct ir_op *op, uint32_t operand)
{
    const struct ir_value *value = op->operands[operand].value;
    if (!value || ir_value_constant(value) || !runs_once(op, value))
        return false;
    int n = 0;
    for (const struct ir_use *use = value->uses; use; use = use->next, n++)
        if (n == MOST_USES || (use != &op->operands[operand] && !is_before(c, use->user, op)))
            return false;
    return !value->block || !is_fused(c, value->block) ||
           is_last(c, value->block->owner, value->index);
}

/* Which operands the step can take out of their slots: what it updates, or carries. */
static void find_last_uses(const struct compiler *c, const struct ir_op *op,
                           const struct kernel *kernel, bool *last_uses)
{
    for (uint32_t i = 0; kernel && kernel->updates && i < op->n_results; i++) {
        const uint32_t operand = kernel->updates(op, i);
        if (operand != UINT32_MAX)
            last_uses[operand] = is_last(c, op, operand);
    }
    if (ir_result_memory(op, 0, 0) == IR_MEMORY_UPDATED)
        last_uses[0] = is_last(c, op, 0);
    for (uint32_t i = 2; ir_op_is(op, IR_OP_Loop) && i < op->n_operands; i++)
        last_uses[i] = is_last(c, op, i);
}

/* ---- What cannot be run ---------------------------------------------------------------------- */

static tssa_status *compile_block(struct compiler *c, const struct ir_block *block,
                                  struct block_plan **out);

static tssa_status *refuse_call(const char *op, const struct ir_function *function)
{
    const struct ir_function_op *unknown = ir_function_unknown(function);
    if (!unknown)
        return ERROR(TSSA_UNSUPPORTED,
                     "%s: a function that is called cannot be run: load the model without keeping "
                     "its functions",
                     op);
    return ERROR(TSSA_UNSUPPORTED, "%s: in this function, operator %s%s%s cannot be run", op,
                 unknown->name, unknown->domain[0] ? " of domain " : "", unknown->domain);
}

static tssa_status *refuse(const struct ir_op *op)
{
    char text[256];
    ir_op_describe(op, text, sizeof text);
    if (op->opaque && op->opaque->function)
        return refuse_call(text, op->opaque->function);
    if (op->opaque && op->opaque->domain[0])
        return ERROR(TSSA_UNSUPPORTED,
                     "%s: operator %s of domain %s, opset %" PRId64 ", cannot be run", text,
                     op->opaque->name, op->opaque->domain, op->opaque->opset);
    if (op->opaque)
        return ERROR(TSSA_UNSUPPORTED, "%s: operator %s of opset %" PRId64 " cannot be run", text,
                     op->opaque->name, op->opaque->opset);
    return ERROR(TSSA_UNSUPPORTED, "%s: operator %s-%d has no kernel on this device", text,
                 op->info->name, op->version);
}

/* So that plan_free releases what `prepare` made, if it did. */
static tssa_status *hold_kernel(struct plan *plan, const struct step *step, tssa_status *prepared)
{
    if (prepared || !step->kernel->release || !step->state)
        return prepared;
    struct plan_held *held = ARENA_NEW(&plan->arena, struct plan_held);
    if (!held) {
        kernel_release(step->kernel, step->state);
        return status_out_of_memory();
    }
    *held = (struct plan_held){plan->held, step->kernel, step->state};
    plan->held = held;
    return NULL;
}

/* The slot of an operand that is there: that of its mirror where it is wanted in the other space.
 */
static inline uint32_t operand_slot(const struct compiler *c, const struct ir_op *op,
                                    uint32_t index)
{
    const struct ir_value *value = op->operands[index].value;
    return c->plan->n_spaces > 1 && spaces_crosses(c->plan, op, index) ? plan_mirror(c->plan, value)
                                                                       : slot_of(c, value);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Which results' sizes are known before they are computed, and which symbols they tell: no axis of
 * a size that is known. */
static tssa_status *bind_results(struct compiler *c, const struct ir_op *op, struct step *step)
{
    bool *sized = &c->sized[step->first_output], *told = &c->told[step->first_output];
    for (uint32_t i = 0; i < op->n_results; i++)
        told[i] = sized[i] = symbols_size(&c->symbols, &op->results[i]);
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_value *value = &op->results[i];
        if (value->wanted && !sized[i])
            TRY(symbols_bind_shape(&c->symbols, value, slot_of(c, value)));
        if (value->wanted && value->known)
            TRY(symbols_bind_elements(&c->symbols, value, slot_of(c, value)));
    }
    if (symbols_made(&c->symbols)) {
        for (uint32_t i = 0; i < op->n_results; i++)
            told[i] = sized[i] || symbols_size(&c->symbols, &op->results[i]);
        TRY(symbols_take(&c->symbols, &step->binds));
    }
    step->compute = step->run;
    if (c->plan->n_spaces > 1)
        return crossing_plan_step(c->plan, op, step);
    if (step->binds)
        step->run = executor_run_and_bind;
    return NULL;
}

static tssa_status *bind_kernel(struct compiler *c, const struct ir_op *op, struct step *step)
{
    struct plan *plan = c->plan;
    const bool away = plan->n_spaces > 1 && plan->spaces.on_device[op->id];
    struct device_context *context = away ? plan->device : plan->host;
    const step_run run = away ? crossing_run_kernel : executor_run_kernel;
    step->kernel = context->device->find_kernel(op);
    step->run = step->kernel ? run : control_find(op);
    if (!step->run)
        return refuse(op);
    if (!step->kernel)
        return ir_op_blame(control_prepare(op, &plan->arena, &step->state), op);
    const struct kernel_setup setup = {.arena = &plan->arena,
                                       .context = context,
                                       .tally = &plan->tally,
                                       .graph = plan->graph,
                                       .shelf = &plan->shelf};
    return hold_kernel(plan, step,
                       ir_op_blame(kernel_prepare(step->kernel, op, &setup, &step->state), op));
}

static tssa_status *compile_blocks(struct compiler *c, const struct ir_op *op, struct step *step)
{
    struct block_plan **blocks = ARENA_ARRAY(&c->plan->arena, struct block_plan *, op->n_blocks);
    TRY_ALLOC(blocks);
    for (uint32_t i = 0; i < op->n_blocks; i++)
        TRY(compile_block(c, control_block(op, i), &blocks[i]));
    step->blocks = blocks;
    step->n_blocks = op->n_blocks;
    return NULL;
}

static tssa_status *compile_step(struct compiler *c, const struct ir_op *op, struct step *step)
{
    struct plan *plan = c->plan;
    step->op = op;
    step->n_inputs = op->n_operands;
    step->n_outputs = op->n_results;
    step->first_input = plan->n_inputs;
    step->first_output = plan->n_outputs;
    for (uint32_t i = 0; i < op->n_operands; i++)
        c->inputs[plan->n_inputs++] = op->operands[i].value ? operand_slot(c, op, i) : SLOT_NONE;
    for (uint32_t i = 0; i < op->n_results; i++)
        c->outputs[plan->n_outputs++] =
            op->results[i].wanted ? slot_of(c, &op->results[i]) : SLOT_NONE;
    TRY(bind_kernel(c, op, step));
    find_last_uses(c, op, step->kernel, &c->last_uses[step->first_input]);
    record_deaths_of_results(c, op); /* here or later */
    take_deaths(c, op, step);
    if (!step->kernel)
        TRY(compile_blocks(c, op, step));
    step->index = plan->n_steps++;
    return bind_results(c, op, step);
}

static tssa_status *compile_returns(struct compiler *c, const struct ir_block *block,
                                    struct block_plan *out)
{
    const struct ir_op *op = ir_block_return(block);
    struct plan_return *returns = ARENA_ARRAY(&c->plan->arena, struct plan_return, op->n_operands);
    TRY_ALLOC(returns);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = op->operands[i].value;
        if (!value)
            return ERROR(TSSA_MALFORMED, "output %u of a subgraph has no value", (unsigned)i);
        bool own = value->block == block ||
                   (value->op && value->op->parent == block && ir_op_computes(value->op));
        for (uint32_t j = i + 1; own && j < op->n_operands; j++)
            own = op->operands[j].value != value ||
                  spaces_crosses(c->plan, op, i) != spaces_crosses(c->plan, op, j);
        if (is_fused(c, block)) /* it is there already, in the slot of the result */
            own = ir_fuse_returned(block->owner, i) == value;
        returns[i] = (struct plan_return){.slot = operand_slot(c, op, i), .move = own};
    }
    out->returns = returns;
    out->n_returns = op->n_operands;
    return NULL;
}

static tssa_status *bind_param(struct compiler *c, const struct ir_value *param)
{
    TRY(symbols_bind_shape(&c->symbols, param, param->id));
    return param->known ? symbols_bind_elements(&c->symbols, param, param->id) : NULL;
}

/* The symbols of graph inputs are bound by the executor, which checks them. */
static tssa_status *bind_params(struct compiler *c, const struct ir_block *block,
                                struct block_plan *out)
{
    for (uint32_t i = 0; i < block->n_params; i++)
        if (!block->owner)
            TRY(symbols_bind_shape(&c->symbols, block->params[i], block->params[i]->id));
        else if (block->params[i]->uses)
            TRY(bind_param(c, block->params[i]));
    TRY(symbols_take(&c->symbols, &out->binds));
    if (block->owner)
        return NULL;
    c->plan->n_input_symbols = (uint32_t)c->symbols.symbols.count;
    out->binds = NULL;
    return NULL;
}

static tssa_status *compile_params(struct compiler *c, const struct ir_block *block,
                                   struct block_plan *out)
{
    uint32_t *params = ARENA_ARRAY(&c->plan->arena, uint32_t, block->n_params);
    TRY_ALLOC(params);
    for (uint32_t i = 0; i < block->n_params; i++)
        params[i] = block->params[i]->uses ? slot_of(c, block->params[i]) : SLOT_NONE;
    out->params = params;
    out->n_params = block->n_params;
    return is_fused(c, block) ? NULL : bind_params(c, block, out);
}

/* Weights may lie at any offset of a file; kernels need natural alignment. */
static tssa_status *aligned_constant(struct compiler *c, const struct tensor *tensor,
                                     const struct tensor **out)
{
    size_t element = tssa_dtype_size(tensor->dtype);
    size_t alignment = element < sizeof(void *) ? element : sizeof(void *);
    *out = tensor;
    if (alignment <= 1 || (uintptr_t)tensor->data % alignment == 0)
        return NULL;
    struct tensor *copy = arena_copy(&c->plan->arena, tensor, sizeof *tensor);
    TRY_ALLOC(copy);
    size_t bytes = tensor_bytes(tensor);
    copy->data = arena_alloc_aligned(&c->plan->arena, bytes, TENSOR_ALIGNMENT);
    TRY_ALLOC(copy->data);
    memcpy(copy->data, tensor->data, bytes);
    copy->owner = NULL;
    *out = copy;
    return NULL;
}

static tssa_status *compile_constant(struct compiler *c, const struct ir_op *op)
{
    const struct tensor *tensor = ir_value_constant(&op->results[0]);
    if (!tensor)
        return ERROR(TSSA_INTERNAL, "a Constant has no value");
    struct plan_constant *constant = &c->constants[c->plan->n_constants++];
    constant->slot = op->results[0].id;
    TRY(aligned_constant(c, tensor, &constant->tensor));
    if (!crossing_mirrored(c->plan, constant->slot))
        return NULL;
    struct plan_constant *mirror = &c->constants[c->plan->n_constants++];
    return crossing_plan_constant(c->plan, constant, mirror);
}

static tssa_status *compile_defaults(struct compiler *c)
{
    const struct ir_graph *graph = c->plan->graph;
    uint32_t n = graph->body->n_params;
    const struct tensor **defaults = ARENA_ARRAY(&c->plan->arena, const struct tensor *, n);
    TRY_ALLOC(defaults);
    c->plan->defaults = defaults;
    for (uint32_t i = 0; graph->input_defaults && i < n; i++)
        if (graph->input_defaults[i])
            TRY(aligned_constant(c, graph->input_defaults[i], &defaults[i]));
    return NULL;
}

static tssa_status *compile_block(struct compiler *c, const struct ir_block *block,
                                  struct block_plan **out)
{
    struct block_plan *compiled = ARENA_NEW(&c->plan->arena, struct block_plan);
    TRY_ALLOC(compiled);
    const struct ir_op *end = ir_block_return(block);
    if (!end)
        return ERROR(TSSA_INTERNAL, "a block has no return");
    struct step *steps = ARENA_ARRAY(&c->plan->arena, struct step, c->position[end->id]);
    TRY_ALLOC(steps);
    compiled->block = block;
    compiled->steps = steps;
    record_deaths_of_params(c, block);
    const size_t mark = symbols_enter(&c->symbols);
    TRY(compile_params(c, block, compiled));
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (ir_op_computes(op))
            TRY(compile_step(c, op, &steps[compiled->n_steps++]));
        else if (ir_op_is(op, IR_OP_Constant))
            TRY(compile_constant(c, op));
    }
    if (!is_fused(c, block))
        symbols_leave(&c->symbols, mark);
    *out = compiled;
    TRY(compile_returns(c, block, compiled));
    return c->plan->n_spaces > 1 ? crossing_plan_block(c->plan, compiled) : NULL;
}

/* ---- Entry ----------------------------------------------------------------------------------- */

static tssa_status *compile(struct compiler *c, struct plan *plan, const struct ir_graph *graph)
{
    struct block_plan *body;
    TRY(compiler_init(c, plan, graph));
    TRY(symbols_init(&c->symbols, plan, &c->scratch));
    TRY(compile_block(c, graph->body, &body));
    TRY(symbols_finish(&c->symbols));
    plan->body = body;
    TRY(compile_defaults(c));
    return held_constants_hold(plan);
}

tssa_status *plan_compile(const struct ir_graph *graph, struct device_context *device,
                          struct plan **out)
{
    const tssa_allocator *allocator = device->allocator;
    struct plan *plan = allocator_calloc(allocator, 1, sizeof *plan);
    TRY_ALLOC(plan);
    plan->device = device;
    plan->host = device->host ? device->host : device;
    arena_init(&plan->arena, allocator);
    library_shelf_open(&plan->shelf);
    struct compiler compiler = {0};
    arena_init(&compiler.scratch, allocator);
    tssa_status *status = compile(&compiler, plan, graph);
    symbols_free(&compiler.symbols);
    arena_clear(&compiler.scratch);
    if (status)
        plan_free(plan);
    else
        *out = plan;
    return status;
}

tssa_status *plan_place(struct plan *plan)
{
    struct arena scratch;
    arena_init(&scratch, plan->arena.allocator);
    tssa_status *status = placement_analyse(plan, &scratch);
    arena_clear(&scratch);
    TRY(status);
    TRY(caller_device_find(plan));
    TRY(steady_find(plan));
    return repeat_plan(plan);
}

tssa_status *plan_create(const struct ir_graph *graph, struct device_context *device,
                         struct plan **out)
{
    struct plan *plan;
    TRY(plan_compile(graph, device, &plan));
    tssa_status *status = plan_place(plan);
    if (status)
        plan_free(plan);
    else
        *out = plan;
    return status;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    const tssa_allocator *allocator = plan->arena.allocator;
    for (const struct plan_held *held = plan->held; held; held = held->next)
        kernel_release(held->kernel, held->state);
    held_constants_drop(plan);
    crossing_plan_free(plan);
    library_shelf_close(&plan->shelf);
    arena_clear(&plan->arena);
    allocator_free(allocator, plan);
}
