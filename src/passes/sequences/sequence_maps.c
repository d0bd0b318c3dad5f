/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Loop over the elements of sequences that only appends to sequences is a SequenceMap: what it
 * makes of element i depends on elements i alone.
 *
 *     Loop(SequenceLength(s), _, SequenceEmpty()) { q: x = SequenceAt(s, i)
 *                                                      return(SequenceInsert(q, f(x))) }
 *     SequenceMap(s) { x: return(f(x)) }
 *
 *   needs   nothing
 *   keeps   the ops of the body, moved into the SequenceMap; models of an opset without
 *           SequenceMap; loops in a SequenceMap and around one: ONNX Runtime writes maps out as
 *           functions, and gives what the inner one takes from the outer one another name; in
 *           files, those with an operator that it writes out as a function as well (functions.c)
 *   breaks  nothing
 *
 * A sequence that is shorter than the first one is an error in both, one that is longer in none.
 */
#include <string.h>

#include "ir/clone.h"
#include "ir/infer.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"
#include "passes/sequences/functions.h"

#define MAX_INPUTS 64
#define FIRST_OPSET 17

struct plan {
    struct pass_context *pass;
    struct loop loop;
    struct ir_value *inputs[MAX_INPUTS]; /* the sequences; the first one tells the length */
    uint32_t n_inputs, n_outputs;
    const char *reason; /* why it stays a loop */
    const struct ir_op *at;
};

static bool refuse(struct plan *plan, const struct ir_op *at, const char *reason)
{
    plan->at = at;
    plan->reason = reason;
    return false;
}

static bool has_opset(const struct ir_graph *graph)
{
    for (size_t i = 0; i < graph->n_opsets; i++)
        if (strcmp(graph->opsets[i].domain, "") == 0)
            return graph->opsets[i].version >= FIRST_OPSET;
    return true;
}

/* Carried value k is a sequence that starts out empty and is appended to, and nothing else. */
static struct ir_op *append_of(const struct loop *loop, uint32_t k)
{
    const struct ir_value *param = loop_param(loop, k), *next = loop_next(loop, k),
                          *initial = loop_initial(loop, k);
    struct ir_op *op = next ? next->op : NULL;
    if (!op || !ir_op_is(op, IR_OP_SequenceInsert) || op->parent != loop->body ||
        ir_operand(op, 0) != param || ir_operand(op, 2) || !initial || !initial->op ||
        !ir_op_is(initial->op, IR_OP_SequenceEmpty) || !param->uses || param->uses->next ||
        next->uses->next || ir_operand(op, 1)->type->kind != TYPE_TENSOR)
        return NULL;
    return op;
}

static bool is_unchanged(const struct loop *loop, uint32_t k)
{
    return loop_next(loop, k) && loop_unaliased(loop_next(loop, k)) == loop_param(loop, k);
}

static bool check_carried(struct plan *plan)
{
    for (uint32_t k = 0; k < plan->loop.n_carried; k++)
        if (append_of(&plan->loop, k))
            plan->n_outputs++;
        else if (!is_unchanged(&plan->loop, k))
            return refuse(plan, plan->loop.op, "it carries more than sequences that it appends to");
    return plan->n_outputs > 0;
}

static bool add_input(struct plan *plan, struct ir_value *sequence)
{
    for (uint32_t i = 0; i < plan->n_inputs; i++)
        if (plan->inputs[i] == sequence)
            return true;
    if (plan->n_inputs == MAX_INPUTS)
        return false;
    plan->inputs[plan->n_inputs++] = sequence;
    return true;
}

/* The counter only says which element of which sequence. */
static bool check_counter(struct plan *plan)
{
    const struct ir_op *length = NULL;
    struct ir_value *trips = ir_operand(plan->loop.op, 0);
    trips = trips ? loop_unaliased(trips) : NULL;
    if (trips)
        length = trips->op;
    if (!length || !ir_op_is(length, IR_OP_SequenceLength))
        return refuse(plan, plan->loop.op, "its trip count is not the length of a sequence");
    add_input(plan, ir_operand(length, 0));
    for (struct ir_use *u = plan->loop.body->params[0]->uses; u; u = u->next) {
        struct ir_op *at = u->user;
        if (!ir_op_is(at, IR_OP_SequenceAt) || at->parent != plan->loop.body ||
            u != &at->operands[1] || loop_makes(&plan->loop, ir_operand(at, 0)) ||
            !add_input(plan, ir_operand(at, 0)))
            return refuse(plan, at, "it uses the iteration's number");
    }
    return true;
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

static struct ir_value *input_param(const struct plan *plan, const struct ir_block *body,
                                    const struct ir_value *sequence)
{
    for (uint32_t i = 0; i < plan->n_inputs; i++)
        if (plan->inputs[i] == sequence)
            return body->params[i];
    return NULL;
}

/* The parameters of the loop's body are used no more. */
static tssa_status *replace_params(struct plan *plan, struct ir_block *body)
{
    struct loop *loop = &plan->loop;
    struct ir_value *truth;
    for (struct ir_use *u = loop->body->params[0]->uses; u; u = loop->body->params[0]->uses) {
        struct ir_op *at = u->user;
        struct ir_value *element = input_param(plan, body, ir_operand(at, 0));
        ir_value_declare(element, at->results[0].declared);
        loop_replace(&at->results[0], element);
        ir_op_remove(at);
    }
    TRY(loop_make_bool(loop->op, true, &truth));
    ir_value_replace(loop->body->params[1], truth);
    for (uint32_t k = 0; k < loop->n_carried; k++)
        if (is_unchanged(loop, k))
            ir_value_replace(loop_param(loop, k), loop_initial(loop, k));
    return NULL;
}

static tssa_status *make_return(struct plan *plan, struct ir_block *body)
{
    struct loop *loop = &plan->loop;
    struct ir_op *ret =
        ir_op_create(plan->pass->graph, ir_op_info(IR_OP_return), plan->n_outputs, 0);
    TRY_ALLOC(ret);
    ir_op_append(body, ret);
    ir_move_ops(loop->body, ret);
    for (uint32_t k = 0, n = 0; k < loop->n_carried; k++) {
        struct ir_value *next = loop_next(loop, k);
        if (!next->op || next->op->parent != body || !ir_op_is(next->op, IR_OP_SequenceInsert) ||
            ir_operand(next->op, 0) != loop_param(loop, k))
            continue;
        struct ir_op *insert = next->op;
        ir_op_set_operand(ret, n++, ir_operand(insert, 1));
        ir_op_set_operand(loop->ret, k + 1, NULL);
        ir_op_remove(insert);
    }
    return NULL;
}

static tssa_status *rewrite(struct plan *plan)
{
    struct ir_graph *graph = plan->pass->graph;
    struct loop *loop = &plan->loop;
    const struct ir_op_info *info = ir_op_info(IR_OP_SequenceMap);
    struct ir_op *map = ir_op_create(graph, info, plan->n_inputs, plan->n_outputs);
    bool *appended = ARENA_ARRAY(&graph->arena, bool, loop->n_carried);
    if (!map || !appended || !ir_op_set_blocks(graph, map, 1))
        return status_out_of_memory();
    struct ir_block *body = ir_block_create(graph, map, plan->n_inputs);
    TRY_ALLOC(body);
    map->version = ir_op_bind(info, IR_NEWEST_OPSET);
    map->name = loop->op->name;
    map->blocks[0] = body;
    map->block_names[0] = loop->op->block_names[0];
    for (uint32_t k = 0; k < loop->n_carried; k++)
        appended[k] = append_of(loop, k) != NULL;
    TRY(replace_params(plan, body));
    for (uint32_t i = 0; i < plan->n_inputs; i++)
        ir_op_set_operand(map, i, plan->inputs[i]);
    ir_op_insert_before(map, loop->op);
    TRY(make_return(plan, body));
    TRY(ir_infer_op_lenient(map));
    for (uint32_t k = 0, n = 0; k < loop->n_carried; k++)
        loop_replace(loop_final(loop, k), appended[k] ? &map->results[n++] : loop_initial(loop, k));
    ir_release_blocks(loop->op);
    ir_op_remove(loop->op);
    plan->pass->changed = true;
    return pass_remark(plan->pass, TSSA_REMARK_APPLIED, map,
                       "a Loop over the elements of %u sequences, one at a time",
                       (unsigned)plan->n_inputs);
}

static bool is_in_map(const struct ir_op *op)
{
    while (op && !ir_op_is(op, IR_OP_SequenceMap))
        op = op->parent->owner;
    return op != NULL;
}

static bool holds_map(const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        bool found = ir_op_is(op, IR_OP_SequenceMap);
        for (uint32_t b = 0; !found && b < op->n_blocks; b++)
            found = holds_map(op->blocks[b]);
        if (found)
            return true;
    }
    return false;
}

static bool check_nesting(struct plan *plan)
{
    if (is_in_map(plan->loop.op))
        return refuse(plan, plan->loop.op, "it would be one in another");
    if (holds_map(plan->loop.op->blocks[0]))
        return refuse(plan, plan->loop.op, "it would be one around another");
    return true;
}

static const struct ir_op *find_written_out(const struct ir_block *block)
{
    const struct ir_op *found = NULL;
    for (const struct ir_op *op = block->first; op && !found; op = op->next) {
        found = is_written_out(op) ? op : NULL;
        for (uint32_t b = 0; !found && b < op->n_blocks; b++)
            found = find_written_out(op->blocks[b]);
    }
    return found;
}

static bool check_functions(struct plan *plan)
{
    const struct ir_op *found =
        pass_is_for_session(plan->pass) ? NULL : find_written_out(plan->loop.body);
    return !found || refuse(plan, found, "a runtime may not have this operator in one");
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct plan plan = {.pass = context};
    char description[128];
    if (!ir_op_is(op, IR_OP_Loop) || op->n_blocks != 1 || !ir_block_return(op->blocks[0]))
        return NULL;
    plan.loop = loop_of(op);
    if (op->n_results != plan.loop.n_carried || loop_enters(&plan.loop) != LOOP_TRUE ||
        loop_stays(&plan.loop) != LOOP_TRUE || !has_opset(plan.pass->graph))
        return NULL;
    if (check_carried(&plan) && check_counter(&plan) && check_nesting(&plan) &&
        check_functions(&plan))
        return rewrite(&plan);
    if (plan.n_outputs == 0 || !plan.reason)
        return NULL;
    ir_op_describe(plan.at, description, sizeof description);
    return pass_remark(plan.pass, TSSA_REMARK_MISSED, op, "no SequenceMap: %s, in %s", plan.reason,
                       description);
}

tssa_status *pass_sequence_maps(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
