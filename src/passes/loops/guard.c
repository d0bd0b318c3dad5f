/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/guard.h"

#include "ir/infer.h"
#include "passes/analysis/iteration.h"
#include "passes/loops/branch.h"
#include "passes/pass.h"

static bool is_question(const struct ir_value *condition)
{
    const struct ir_type *type = condition->type;
    return type->kind == TYPE_TENSOR && type->dtype == TSSA_BOOL && type->rank >= 0 &&
           type->rank <= 1;
}

static bool is_number(const struct ir_value *trips)
{
    const struct ir_type *type = trips->type;
    return type->kind == TYPE_TENSOR && type->dtype == TSSA_INT64 && type->rank >= 0 &&
           type->rank <= 1;
}

bool guard_has_form(const struct loop *loop)
{
    const struct ir_value *trips = ir_operand(loop->op, 0), *condition = ir_operand(loop->op, 1);
    bool used = false;
    if (loop->op->n_operands < 2 || iteration_has_absent(loop) || (trips && !is_number(trips)) ||
        (condition && !is_question(condition)))
        return false;
    for (uint32_t i = 0; i < loop->op->n_results; i++) {
        used |= loop->op->results[i].uses != NULL;
        if (i >= loop->n_carried && loop->op->results[i].uses &&
            !loop_has_empty(ir_operand(loop->ret, i + 1)->type))
            return false;
    }
    return used;
}

/* ---- The question ---------------------------------------------------------------------------- */

/* Does it make an iteration? */
static tssa_status *ask(const struct loop *loop, struct ir_value *trips, struct ir_value **question)
{
    struct ir_value *zero;
    *question = NULL;
    if (trips) {
        TRY(loop_make_int(loop->op, 0, 0, &zero));
        TRY(loop_make_binary(loop->op, IR_OP_Greater, trips, zero, question));
    }
    if (loop_enters(loop) == LOOP_TRUE && *question)
        return NULL;
    struct ir_value *condition = ir_operand(loop->op, 1);
    if (!condition)
        return loop_make_bool(loop->op, true, question);
    if (!*question)
        *question = condition;
    else
        TRY(loop_make_binary(loop->op, IR_OP_And, *question, condition, question));
    return NULL;
}

/* ---- The branches ---------------------------------------------------------------------------- */

/* What the loop leaves without an iteration. */
static tssa_status *make_nothing(const struct loop *loop, uint32_t result, struct ir_op *ret,
                                 uint32_t operand)
{
    struct ir_value *value;
    if (result < loop->n_carried)
        value = loop_initial(loop, result);
    else
        TRY(loop_make_empty(ret, ir_operand(loop->ret, result + 1)->type, &value));
    ir_op_set_operand(ret, operand, value);
    return NULL;
}

tssa_status *guard_create(const struct loop *loop, struct ir_value *trips, struct ir_op **branch,
                          uint32_t *kept)
{
    struct ir_value *question;
    TRY(ask(loop, trips, &question));
    TRY(branch_create(loop, question, branch, kept));
    struct ir_op *ret = ir_block_return((*branch)->blocks[1]);
    for (uint32_t j = 0; j < (*branch)->n_results; j++)
        TRY(make_nothing(loop, kept[j], ret, j));
    return NULL;
}

tssa_status *guard_loop(const struct loop *loop)
{
    struct ir_value *trips = NULL, *truth;
    struct ir_op *branch, *op = loop->op;
    uint32_t *kept = ARENA_ARRAY(&loop->body->graph->arena, uint32_t, op->n_results);
    TRY_ALLOC(kept);
    if (ir_operand(op, 0))
        TRY(loop_make_trips(loop, &trips));
    TRY(guard_create(loop, trips, &branch, kept));
    if (trips)
        ir_op_set_operand(op, 0, trips);
    if (loop_enters(loop) != LOOP_TRUE) {
        TRY(loop_make_bool(branch, true, &truth));
        ir_op_set_operand(op, 1, truth);
    }
    struct ir_value **results =
        ARENA_ARRAY(&loop->body->graph->arena, struct ir_value *, op->n_results);
    TRY_ALLOC(results);
    for (uint32_t i = 0; i < op->n_results; i++)
        results[i] = &op->results[i];
    branch_fill(branch, 0, branch, op->next, results, kept);
    TRY(ir_infer_op_lenient(op));
    return ir_infer_op_lenient(branch);
}
