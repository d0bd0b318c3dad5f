/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes loops out that have few iterations, all of which every run makes:
 *
 *   - a Loop of one iteration, or whose condition is false after the first one, always;
 *   - a Loop that goes through sequences or carries them, whose iterations differ in shape, when
 *     iterations times ops of the body stay below a limit. What it carries is then a known list
 *     (sequences);
 *   - a Loop in the body of another, each of whose iterations needs the one before: a stack of
 *     layers, say. Where it indexes what the outer loop carries, that can be taken apart then
 *     (scalar_replacement);
 *   - of a Loop whose iterations do not see what the ones before did, and overwrite it, the last
 *     one;
 *   - a SequenceMap over sequences that are constructed from as few values.
 *
 * Other loops over tensors stay: they become batched operators (parallelize), or are truly
 * sequential, and then writing them out would only make the model large.
 *
 *   needs   known elements, for trip counts; SequenceLength of known sequences is a constant
 *           (sequences)
 *   keeps   the order of what is computed
 *   breaks  types: the copies may be inferred more precisely (infer)
 */
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "ir/rule.h"
#include "passes/analysis/iteration.h"
#include "passes/pass.h"

#define MAX_LAYERS 16 /* trips of a loop in a loop */
#define MAX_LAYER_OPS 1024
#define MAX_TRIPS 64        /* of one loop */
#define MAX_LOOP_OPS 2048   /* that one loop may become */
#define MAX_TOTAL_OPS 16384 /* that one run of the pass may make */

struct unroll {
    struct pass_context *pass;
    struct ir_cloner cloner;
    uint32_t made;
};

/* ---- Which loops ----------------------------------------------------------------------------- */

static bool is_sequence(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_SEQUENCE;
}

/* Does an op of the body, at any depth, take an element of a sequence from outside at the place
 * that the iteration's number names? */
static bool indexes_sequence(const struct loop *loop)
{
    for (const struct ir_use *use = loop->body->params[0]->uses; use; use = use->next)
        if (ir_op_is(use->user, IR_OP_SequenceAt) && !loop_makes(loop, ir_operand(use->user, 0)))
            return true;
    return false;
}

static bool handles_sequences(const struct loop *loop)
{
    for (uint32_t i = 0; i < loop->n_carried; i++)
        if (is_sequence(loop_initial(loop, i)))
            return true;
    return indexes_sequence(loop);
}

/* Are `trips` copies of the block few enough? They count as made when they are. */
static bool affordable(struct unroll *unroll, const struct ir_block *body, int64_t trips,
                       uint32_t limit)
{
    if (trips > MAX_TRIPS)
        return false;
    uint32_t size = loop_size(body, limit + 1) * (uint32_t)trips;
    if (size > limit || unroll->made + size > MAX_TOTAL_OPS)
        return false;
    unroll->made += size;
    return true;
}

static bool is_in_loop(const struct ir_op *op)
{
    while ((op = op->parent->owner))
        if (ir_op_is_loop(op))
            return true;
    return false;
}

/* Layers of a network that is run in a loop. */
static tssa_status *is_stack_of_layers(const struct loop *loop, int64_t trips, bool *layers)
{
    const struct ir_value *recurrence;
    *layers = false;
    if (trips > MAX_LAYERS || !is_in_loop(loop->op))
        return NULL;
    TRY(loop_find_recurrence(loop, true, &recurrence));
    *layers = recurrence != NULL;
    return NULL;
}

/* What decides is what the loop is for, then what it costs. */
static tssa_status *is_worth_it(struct unroll *unroll, const struct loop *loop, int64_t trips,
                                bool *worth)
{
    bool layers;
    *worth = true;
    if (trips == 1)
        return NULL;
    if (handles_sequences(loop)) {
        *worth = affordable(unroll, loop->body, trips, MAX_LOOP_OPS);
        return NULL;
    }
    TRY(is_stack_of_layers(loop, trips, &layers));
    *worth = layers && affordable(unroll, loop->body, trips, MAX_LAYER_OPS);
    return NULL;
}

/* Does every iteration write the same region of the carried value, and is that all that is done
 * with it? */
static bool is_overwritten(const struct loop *loop, uint32_t k)
{
    const struct ir_value *param = loop_param(loop, k), *next = loop_next(loop, k);
    const struct ir_op *assign = next->op;
    if (!assign || !ir_op_is(assign, IR_OP_assign) || assign->parent != loop->body ||
        param->uses != &assign->operands[0] || param->uses->next || next->uses->next)
        return false;
    for (uint32_t i = rule_first_operand(assign); i < assign->n_operands; i++)
        if (!ir_operand(assign, i) || loop_makes(loop, ir_operand(assign, i)))
            return false;
    return true;
}

static bool only_last_counts(const struct loop *loop)
{
    for (uint32_t k = 0; k < loop->n_carried; k++)
        if (loop_param(loop, k)->uses && !is_overwritten(loop, k))
            return false;
    for (uint32_t k = 0; k < loop->n_stacked; k++)
        if (loop->op->results[loop->n_carried + k].uses)
            return false;
    return true;
}

/* ---- Loop ------------------------------------------------------------------------------------ */

/* What was computed in the only iteration is better known under the loop's name. */
static void take_name(struct ir_value *result, struct ir_value *value)
{
    if (result->name && value->op && !ir_op_is(value->op, IR_OP_Constant))
        value->name = NULL;
    loop_replace(result, value);
}

static tssa_status *finish(const struct loop *loop, int64_t trips, struct ir_value *const *carried,
                           struct ir_value *const *elements)
{
    for (uint32_t k = 0; k < loop->n_carried; k++)
        take_name(loop_final(loop, k), carried[k]);
    for (uint32_t k = 0; k < loop->n_stacked; k++) {
        struct ir_value *stacked, *result = &loop->op->results[loop->n_carried + k];
        if (!result->uses)
            continue;
        TRY(iteration_stack(loop->op, elements + k, loop->n_stacked, trips, &stacked));
        loop_replace(result, stacked);
    }
    ir_release_blocks(loop->op);
    ir_op_remove(loop->op);
    return NULL;
}

/* Iterations first, first + 1, ... of which there are `trips`. */
static tssa_status *unroll_loop(struct unroll *unroll, const struct loop *loop, int64_t first,
                                int64_t trips)
{
    struct arena *arena = &unroll->pass->graph->arena;
    size_t n_elements = (size_t)loop->n_stacked * (size_t)trips;
    struct ir_value **carried = ARENA_ARRAY(arena, struct ir_value *, loop->n_carried);
    struct ir_value **elements = ARENA_ARRAY(arena, struct ir_value *, n_elements);
    TRY_ALLOC(carried);
    TRY_ALLOC(elements);
    for (uint32_t k = 0; k < loop->n_carried; k++)
        carried[k] = loop_initial(loop, k);
    TRY(pass_remark(unroll->pass, TSSA_REMARK_APPLIED, loop->op, "written out: %s%lld iteration%s",
                    first ? "the last of " : "", (long long)(first + trips),
                    first + trips == 1 ? "" : "s"));
    unroll->pass->changed = true;
    for (int64_t i = 0; i < trips; i++) {
        struct ir_value *number;
        TRY(loop_make_int(loop->op, 0, first + i, &number));
        TRY((trips == 1 ? iteration_move : iteration_copy)(&unroll->cloner, loop, number, carried,
                                                           elements + (size_t)i * loop->n_stacked));
    }
    return finish(loop, trips, carried, elements);
}

static tssa_status *visit_loop(struct unroll *unroll, struct ir_op *op)
{
    struct loop loop = loop_of(op);
    int64_t trips;
    bool worth;
    if (!loop_trips(&loop, &trips) || trips < 1 || iteration_has_absent(&loop))
        return NULL;
    if (trips < INT64_MAX && only_last_counts(&loop))
        return unroll_loop(unroll, &loop, trips - 1, 1);
    TRY(is_worth_it(unroll, &loop, trips, &worth));
    return worth ? unroll_loop(unroll, &loop, 0, trips) : NULL;
}

/* ---- SequenceMap ----------------------------------------------------------------------------- */

/* The number of elements of all sequence operands; 0 when they are not constructed. */
static uint32_t map_length(const struct ir_op *op)
{
    uint32_t length = 0;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (value && value->type->kind == TYPE_TENSOR && i > 0)
            continue;
        if (!value || !value->op || !ir_op_is(value->op, IR_OP_SequenceConstruct) ||
            (i > 0 && value->op->n_operands != length))
            return 0;
        length = value->op->n_operands;
    }
    return length;
}

/* One copy of the body; its results go to elements[k * length]. */
static tssa_status *copy_element(struct unroll *unroll, struct ir_op *op, uint32_t i,
                                 uint32_t length, struct ir_value **elements)
{
    struct ir_block *body = op->blocks[0];
    struct ir_cloner *cloner = &unroll->cloner;
    ir_cloner_reset(cloner);
    for (uint32_t p = 0; p < body->n_params; p++) {
        struct ir_value *operand = ir_operand(op, p);
        if (is_sequence(operand))
            operand = ir_operand(operand->op, i);
        if (!ir_cloner_map(cloner, body->params[p], operand))
            return status_out_of_memory();
    }
    TRY(ir_clone_ops(cloner, body, op));
    for (uint32_t k = 0; k < op->n_results; k++)
        elements[(size_t)k * length] = ir_cloner_get(cloner, ir_operand(ir_block_return(body), k));
    return NULL;
}

static tssa_status *visit_map(struct unroll *unroll, struct ir_op *op)
{
    uint32_t length = map_length(op);
    if (length == 0 || !affordable(unroll, op->blocks[0], length, MAX_LOOP_OPS))
        return NULL;
    struct ir_value **elements =
        ARENA_ARRAY(&unroll->pass->graph->arena, struct ir_value *, (size_t)op->n_results * length);
    TRY_ALLOC(elements);
    for (uint32_t i = 0; i < length; i++)
        TRY(copy_element(unroll, op, i, length, elements + i));
    for (uint32_t k = 0; k < op->n_results; k++) {
        struct ir_op *construct = loop_make_op(op, IR_OP_SequenceConstruct, length);
        TRY_ALLOC(construct);
        for (uint32_t i = 0; i < length; i++)
            ir_op_set_operand(construct, i, elements[(size_t)k * length + i]);
        TRY(ir_infer_op_lenient(construct));
        loop_replace(&op->results[k], &construct->results[0]);
    }
    TRY(pass_remark(unroll->pass, TSSA_REMARK_APPLIED, op, "written out: %u elements",
                    (unsigned)length));
    unroll->pass->changed = true;
    ir_release_blocks(op);
    ir_op_remove(op);
    return NULL;
}

/* ---- The pass -------------------------------------------------------------------------------- */

/* What is a kernel already stays one. */
static tssa_status *visit(void *context, struct ir_op *op)
{
    if (ir_fuse_is_inside(op))
        return NULL;
    if (ir_op_is(op, IR_OP_Loop))
        return visit_loop(context, op);
    return ir_op_is(op, IR_OP_SequenceMap) ? visit_map(context, op) : NULL;
}

tssa_status *pass_unroll(struct pass_context *pass)
{
    struct unroll unroll = {.pass = pass};
    ir_cloner_init(&unroll.cloner, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &unroll);
    ir_cloner_free(&unroll.cloner);
    return status;
}
