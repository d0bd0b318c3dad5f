/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/write_nest.h"

#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/analysis/recurrence.h"

static bool is_scalar(const struct ir_value *value)
{
    return value->type->kind == TYPE_TENSOR && value->type->rank == 0;
}

static bool is_index(const struct ir_value *value)
{
    return is_scalar(value) && value->type->dtype == TSSA_INT64;
}

static bool is_counted(const struct loop *loop)
{
    const struct ir_value *count = ir_operand(loop->op, 0);
    return count && is_index(count) && loop_enters(loop) == LOOP_TRUE &&
           loop_stays(loop) == LOOP_TRUE;
}

bool write_nest_counts(const struct loop *loop, const struct ir_value *value,
                       struct ir_value **offset)
{
    const struct ir_value *counter = loop->body->params[0];
    const struct ir_op *op = value->op;
    *offset = NULL;
    if (value == counter || !op || !ir_op_is(op, IR_OP_Add))
        return value == counter;
    for (uint32_t i = 0; i < 2; i++) {
        struct ir_value *other = ir_operand(op, 1 - i);
        if (ir_operand(op, i) == counter && !loop_makes(loop, other) && is_index(other)) {
            *offset = other;
            return true;
        }
    }
    return false;
}

struct ir_op *write_nest_step(const struct loop *loop, uint32_t k)
{
    struct ir_value *param = loop_param(loop, k), *next = loop_next(loop, k);
    struct ir_op *op = next ? next->op : NULL;
    bool once = param->uses && !param->uses->next && next && next->uses && !next->uses->next;
    if (!once || !op || op->parent != loop->body)
        return NULL;
    if (ir_op_is(op, IR_OP_assign))
        return ir_operand(op, 0) == param ? op : NULL;
    return ir_op_is(op, IR_OP_Loop) && op->n_results == 1 && op->n_operands == 3 &&
                   ir_operand(op, 2) == param
               ? op
               : NULL;
}

/* An assign of a scalar to the one element that as many indices as the base has dims name. */
static bool writes_element(const struct loop *outermost, const struct ir_op *assign)
{
    const struct rule *rule = rule_of(assign);
    const struct ir_value *base = ir_operand(assign, 0), *source = ir_operand(assign, 1);
    if (base->type->kind != TYPE_TENSOR || base->type->rank < 1 ||
        rule->n_steps != (uint32_t)base->type->rank || !is_scalar(source) ||
        loop_makes(outermost, source))
        return false;
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        if (step->kind != RULE_SELECT || step->params[0].value != 0)
            return false;
        const struct ir_value *value = rule_param_value(assign, &step->params[1]);
        if (value && !is_index(value))
            return false;
    }
    return true;
}

struct ir_op *write_nest_find(const struct loop *loop, uint32_t k)
{
    struct loop at = *loop;
    struct ir_op *step;
    if (!loop_initial(loop, k))
        return NULL;
    for (; is_counted(&at) && (step = write_nest_step(&at, k)); k = 0) {
        if (ir_op_is(step, IR_OP_assign))
            return writes_element(loop, step) ? step : NULL;
        at = loop_of(step);
    }
    return NULL;
}

/* ---- Loops that only write ------------------------------------------------------------------- */

uint32_t write_nest_writer(const struct loop *loop)
{
    const struct ir_op *owner = loop->body->owner->parent->owner;
    if (!owner || !ir_op_is(owner, IR_OP_Loop) || loop->op->n_results < 2)
        return RECURRENCE_NONE;
    for (uint32_t k = 0; k < loop->n_carried; k++) {
        const struct ir_value *initial = loop_initial(loop, k);
        if (initial && initial->block == owner->blocks[0] && initial->index >= 2 &&
            write_nest_find(loop, k) && ir_op_is(write_nest_step(loop, k), IR_OP_Loop))
            return k;
    }
    return RECURRENCE_NONE;
}

struct reader {
    const struct ir_value *param;
    bool reads;
};

static bool find_read(void *context, struct ir_value *value)
{
    struct reader *reader = context;
    reader->reads |= value == reader->param;
    return !reader->reads;
}

static bool is_inside(const struct ir_op *op, const struct ir_op *outer)
{
    while (op && op != outer)
        op = op->parent->owner;
    return op != NULL;
}

tssa_status *write_nest_free(const struct loop *loop, uint32_t writer)
{
    struct ir_op *step = write_nest_step(loop, writer);
    for (uint32_t k = 0; k < loop->n_carried; k++) {
        struct reader reader = {.param = loop_param(loop, k)};
        if (k == writer)
            continue;
        (void)recurrence_visit_operands(step, find_read, &reader);
        if (!reader.reads)
            continue;
        struct ir_op *copy = loop_make_op(loop->body->first, IR_OP_Identity, 1);
        TRY_ALLOC(copy);
        for (struct ir_use *use = reader.param->uses, *next; use; use = next) {
            next = use->next;
            if (is_inside(use->user, step))
                ir_op_set_operand(use->user, (uint32_t)(use - use->user->operands),
                                  &copy->results[0]);
        }
        ir_op_set_operand(copy, 0, loop_param(loop, k));
        TRY(ir_infer_op_lenient(copy));
    }
    return NULL;
}
