/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of loops and branches that need not be there:
 *
 *   - a carried value that every iteration passes on unchanged is its initial value;
 *   - carried values that start equal and go on equal are one, and so are outputs, and results of
 *     an If, that are equal;
 *   - a carried value goes when its result is unused and it matters only to itself and others that
 *     go; so do unused outputs, unused results of an If, and all ops that are computed for such
 *     alone.
 *
 *   needs   nothing
 *   keeps   types, known elements, order
 *   breaks  pointers to the results of the ops that it shortens
 */
#include "base/vec.h"
#include "ir/clone.h"
#include "ir/rebuild.h"
#include "passes/pass.h"

struct state {
    struct pass_context *pass;
    bool *live_ops, *live_values;       /* by id */
    VEC(const struct ir_value *) queue; /* live values whose definition is to be looked at */
};

/* A Loop or Scan with its body, or an If or SequenceMap. */
struct control {
    struct ir_op *op;
    uint32_t carried;
    struct ir_block *body; /* of a loop: its only block */
};

static bool is_handled(const struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_Scan))
        return op->version >= 9;
    return ir_op_is(op, IR_OP_If) || ir_op_is(op, IR_OP_Loop) || ir_op_is(op, IR_OP_SequenceMap);
}

static struct ir_value *initial(const struct control *c, uint32_t i)
{
    return ir_operand(c->op, ir_loop_operand(c->op, i));
}

static struct ir_value *param(const struct control *c, uint32_t i)
{
    return c->body->params[ir_loop_param(c->op, i)];
}

static struct ir_value *returned(const struct control *c, uint32_t block, uint32_t i)
{
    return ir_operand(ir_block_return(c->op->blocks[block]), ir_loop_return(c->op, i));
}

/* Which carried value the parameter is; false for any other value. */
static bool is_carried(const struct control *c, const struct ir_value *value, uint32_t *index)
{
    uint32_t first = ir_loop_param(c->op, 0);
    if (!c->carried || value->block != c->body || value->index < first ||
        value->index >= first + c->carried)
        return false;
    *index = value->index - first;
    return true;
}

static void replace_result(struct state *state, struct ir_value *result, struct ir_value *by)
{
    if (!result->uses)
        return;
    ir_value_replace(result, by);
    if (!by->name) {
        by->name = result->name;
        result->name = NULL;
    }
    state->pass->changed = true;
}

/* ---- Invariant values ------------------------------------------------------------------------ */

static void replace_invariants(struct state *state, const struct control *c)
{
    for (uint32_t i = 0; i < c->carried; i++) {
        struct ir_value *first = initial(c, i), *inside = param(c, i);
        if (!first || returned(c, 0, i) != inside)
            continue;
        replace_result(state, &c->op->results[i], first);
        if (inside->uses && inside->uses->next) { /* not by the return alone */
            ir_value_replace(inside, first);
            state->pass->changed = true;
        }
        ir_op_set_operand(ir_block_return(c->body), ir_loop_return(c->op, i), inside);
    }
}

/* ---- Equal values ---------------------------------------------------------------------------- */

struct key {
    uintptr_t parts[3];
};

/* Gives equal keys the number of the first that has it; false when memory runs out. */
static bool classify(const tssa_allocator *allocator, const struct key *keys, uint32_t n,
                     uint32_t *classes, uint32_t *n_classes)
{
    struct map map;
    bool fits = true;
    *n_classes = 0;
    map_init(&map, allocator);
    for (uint32_t i = 0; i < n && fits; i++) {
        const struct key *found = map_get(&map, &keys[i], sizeof keys[i]);
        classes[i] = found ? (uint32_t)(found - keys) : i;
        if (found)
            continue;
        ++*n_classes;
        fits = map_put(&map, &keys[i], sizeof keys[i], (void *)&keys[i]);
    }
    map_free(&map);
    return fits;
}

/* Refinements after which carried values whose classes still split are left alone. */
#define MAX_REFINEMENTS 8

/*
 * At first all that start with the same value are thought equal; then those part whose next values
 * are not: not the same value, nor parameters that are thought equal.
 */
static tssa_status *classify_carried(const struct control *c, struct key *keys, uint32_t *classes)
{
    const tssa_allocator *allocator = c->body->graph->allocator;
    uint32_t n = c->carried, n_classes, n_before, other;
    for (uint32_t i = 0; i < n; i++)
        keys[i] = (struct key){{initial(c, i) ? (uintptr_t)initial(c, i) : i,
                                (uintptr_t)param(c, i)->type, c->op->results[i].wanted}};
    if (!classify(allocator, keys, n, classes, &n_classes))
        return status_out_of_memory();
    for (int round = 0; round < MAX_REFINEMENTS; round++) {
        n_before = n_classes;
        for (uint32_t i = 0; i < n; i++) {
            const struct ir_value *next = returned(c, 0, i);
            bool is_param = is_carried(c, next, &other);
            keys[i] =
                (struct key){{classes[i], is_param, is_param ? classes[other] : (uintptr_t)next}};
        }
        if (!classify(allocator, keys, n, classes, &n_classes))
            return status_out_of_memory();
        if (n_classes == n_before)
            return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        classes[i] = i;
    return NULL;
}

static int64_t number_of(const struct ir_op *op, const char *attribute, uint32_t index)
{
    size_t count;
    const int64_t *numbers = ir_attr_ints(op, attribute, &count);
    return numbers && index < count ? numbers[index] : 0;
}

/* Results that are not carried: equal when every block returns the same value for both. */
static tssa_status *classify_outputs(const struct control *c, struct key *keys, uint32_t *classes)
{
    const struct ir_op *op = c->op;
    uint32_t n = op->n_results - c->carried, n_classes;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t result = c->carried + i;
        uintptr_t how = op->results[result].wanted;
        if (ir_op_is(op, IR_OP_Scan))
            how += 2 * (uintptr_t)number_of(op, "scan_output_axes", i) +
                   ((uintptr_t)number_of(op, "scan_output_directions", i) << 16);
        keys[i] = (struct key){{(uintptr_t)returned(c, 0, result),
                                op->n_blocks > 1 ? (uintptr_t)returned(c, 1, result) : 0, how}};
    }
    return classify(op->parent->graph->allocator, keys, n, classes, &n_classes)
               ? NULL
               : status_out_of_memory();
}

static tssa_status *merge_equal(struct state *state, const struct control *c)
{
    struct ir_op *op = c->op;
    struct arena *arena = &state->pass->graph->arena;
    if (op->n_results < 2)
        return NULL;
    struct key *keys = ARENA_ARRAY(arena, struct key, op->n_results);
    uint32_t *classes = ARENA_ARRAY(arena, uint32_t, op->n_results);
    TRY_ALLOC(keys);
    TRY_ALLOC(classes);
    TRY(classify_carried(c, keys, classes));
    for (uint32_t i = 0; i < c->carried; i++) {
        if (classes[i] == i)
            continue;
        replace_result(state, &op->results[i], &op->results[classes[i]]);
        replace_result(state, param(c, i), param(c, classes[i]));
    }
    TRY(classify_outputs(c, keys, classes));
    for (uint32_t i = 0; i < op->n_results - c->carried; i++)
        if (classes[i] != i)
            replace_result(state, &op->results[c->carried + i],
                           &op->results[c->carried + classes[i]]);
    return NULL;
}

/* ---- Liveness -------------------------------------------------------------------------------- */

/*
 * One marking over the whole graph, from its outputs, and from ops with effects, backwards. Through
 * loops and branches it goes result by result: a carried value is needed when its result is, or its
 * parameter.
 */

static tssa_status *need(struct state *state, const struct ir_value *value)
{
    if (!value || state->live_values[value->id])
        return NULL;
    state->live_values[value->id] = true;
    return vec_push(&state->queue, value) ? NULL : status_out_of_memory();
}

static tssa_status *need_operands(struct state *state, const struct ir_op *op, uint32_t first,
                                  uint32_t end)
{
    for (uint32_t i = first; i < end && i < op->n_operands; i++)
        TRY(need(state, op->operands[i].value));
    return NULL;
}

/* The op is run, whatever of its results is needed: what decides how often it or its blocks run. */
static tssa_status *need_op(struct state *state, const struct ir_op *op)
{
    if (state->live_ops[op->id])
        return NULL;
    state->live_ops[op->id] = true;
    if (ir_op_is(op, IR_OP_Loop)) {
        TRY(need_operands(state, op, 0, 2));
        return need(state, ir_operand(ir_block_return(op->blocks[0]), 0));
    }
    if (ir_op_is(op, IR_OP_Scan) && is_handled(op))
        return need_operands(state, op, ir_loop_carried(op), op->n_operands);
    return need_operands(state, op, 0, op->n_operands);
}

static tssa_status *need_returned(struct state *state, const struct ir_op *op, uint32_t result)
{
    for (uint32_t b = 0; b < op->n_blocks; b++)
        TRY(need(state, ir_operand(ir_block_return(op->blocks[b]), ir_loop_return(op, result))));
    return NULL;
}

/* A parameter of a block. */
static tssa_status *follow_param(struct state *state, const struct ir_value *value)
{
    const struct ir_op *op = value->block->owner;
    if (!op || !is_handled(op))
        return NULL; /* an input of the graph; or all operands are needed anyway */
    uint32_t first = ir_loop_param(op, 0), carried = ir_loop_carried(op);
    if (value->index < first || value->index >= first + carried)
        return NULL;
    TRY(need(state, ir_operand(op, ir_loop_operand(op, value->index - first))));
    return need_returned(state, op, value->index - first);
}

static tssa_status *follow(struct state *state, const struct ir_value *value)
{
    const struct ir_op *op = value->op;
    if (!op)
        return follow_param(state, value);
    TRY(need_op(state, op));
    if (!is_handled(op))
        return NULL;
    TRY(need_returned(state, op, value->index));
    if (value->index >= ir_loop_carried(op))
        return NULL;
    return need(state, ir_operand(op, ir_loop_operand(op, value->index)));
}

/* Ops with effects; everything in the blocks of an op that nobody knows. `whole`: such a block. */
static tssa_status *need_effects(struct state *state, const struct ir_block *block, bool whole,
                                 bool *has_effects)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        bool effects = whole || !(op->info->flags & IR_PURE);
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(need_effects(state, op->blocks[i], whole || !is_handled(op), &effects));
        if (!effects)
            continue;
        *has_effects = true;
        TRY(need_op(state, op));
        for (uint32_t i = 0; i < op->n_results; i++) /* an op of ONNX has a result */
            if (whole || i == 0)
                TRY(need(state, &op->results[i]));
    }
    return NULL;
}

static tssa_status *mark(struct state *state)
{
    const struct ir_block *body = state->pass->graph->body;
    bool has_effects = false;
    TRY(need_op(state, ir_block_return(body)));
    TRY(need_effects(state, body, false, &has_effects));
    while (state->queue.count)
        TRY(follow(state, state->queue.data[--state->queue.count]));
    return NULL;
}

/* ---- Removal --------------------------------------------------------------------------------- */

static bool is_needed(const struct state *state, const struct ir_op *op, uint32_t result)
{
    if (state->live_values[op->results[result].id])
        return true;
    if (result >= ir_loop_carried(op))
        return false;
    return state->live_values[op->blocks[0]->params[ir_loop_param(op, result)]->id];
}

/* Ends the uses of what is to go: *drop tells per result, NULL when all stay. */
static tssa_status *cut(const struct state *state, struct ir_op *op, bool **drop,
                        uint32_t *n_dropped)
{
    *n_dropped = 0;
    *drop = ARENA_ARRAY(&state->pass->graph->arena, bool, op->n_results);
    TRY_ALLOC(*drop);
    for (uint32_t i = 0; i < op->n_results; i++) {
        if (((*drop)[i] = !is_needed(state, op, i))) {
            ++*n_dropped;
            for (uint32_t b = 0; b < op->n_blocks; b++)
                ir_op_set_operand(ir_block_return(op->blocks[b]), ir_loop_return(op, i), NULL);
            if (i < ir_loop_carried(op))
                ir_op_set_operand(op, ir_loop_operand(op, i), NULL);
        }
    }
    return NULL;
}

static tssa_status *sweep(struct state *state, struct ir_block *block);

static tssa_status *shorten(struct state *state, struct ir_op *op)
{
    uint32_t n_dropped = 0;
    bool *drop;
    if (is_handled(op) && op->n_results)
        TRY(cut(state, op, &drop, &n_dropped));
    for (uint32_t i = 0; i < op->n_blocks; i++)
        TRY(sweep(state, op->blocks[i]));
    if (n_dropped == 0)
        return NULL;
    if (!ir_control_drop_results(op, drop))
        return status_out_of_memory();
    state->pass->changed = true;
    return pass_remark(state->pass, TSSA_REMARK_APPLIED, op,
                       "no longer computes %u result%s that nobody needs", (unsigned)n_dropped,
                       n_dropped > 1 ? "s" : "");
}

/* From the end, so that what uses an op is gone before it. */
static tssa_status *sweep(struct state *state, struct ir_block *block)
{
    struct ir_op *previous;
    for (struct ir_op *op = block->last; op; op = previous) {
        previous = op->prev;
        if (ir_op_is(op, IR_OP_return) || state->live_ops[op->id]) {
            TRY(shorten(state, op));
            continue;
        }
        ir_release_blocks(op);
        ir_op_remove(op);
        state->pass->changed = true;
    }
    return NULL;
}

/* ---- The pass -------------------------------------------------------------------------------- */

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct state *state = context;
    if (!is_handled(op))
        return NULL;
    struct control c = {.op = op, .carried = ir_loop_carried(op), .body = op->blocks[0]};
    replace_invariants(state, &c);
    return merge_equal(state, &c);
}

static tssa_status *run(struct state *state)
{
    TRY_ALLOC(state->live_ops);
    TRY_ALLOC(state->live_values);
    TRY(ir_block_walk(state->pass->graph->body, visit, state));
    TRY(mark(state));
    return sweep(state, state->pass->graph->body);
}

tssa_status *pass_carried_values(struct pass_context *pass)
{
    const struct ir_graph *graph = pass->graph;
    struct state state = {.pass = pass};
    vec_init(&state.queue, graph->allocator);
    state.live_ops = allocator_calloc(graph->allocator, graph->n_ops, sizeof(bool));
    state.live_values = allocator_calloc(graph->allocator, graph->n_values, sizeof(bool));
    tssa_status *status = run(&state);
    allocator_free(graph->allocator, state.live_values);
    allocator_free(graph->allocator, state.live_ops);
    vec_free(&state.queue);
    return status;
}
