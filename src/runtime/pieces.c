/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/pieces.h"

#include "ir/memory.h"

/* Uses of a result, under all its names, that are looked at. */
#define MOST_USES 32
/* Pieces of pieces. */
#define MOST_STEPS 8

static const struct step *step_of(const struct lifetimes *l, const struct ir_op *op)
{
    const struct step *step = l->steps[l->step_of_op[op->id]];
    return step && step->op == op ? step : NULL;
}

/* ---- Who reads it ---------------------------------------------------------------------------- */

static bool is_read(const struct lifetimes *l, const struct ir_value *value, int *uses);

/* A condition or a trip count is read when the step begins; a fuse op reads what its kernel or its
 * block does. */
static bool is_read_by_control(const struct lifetimes *l, const struct ir_use *use, int *uses)
{
    const struct ir_op *user = use->user;
    const struct ir_block *fused = plan_fused(l->plan, user);
    const uint32_t index = (uint32_t)(use - user->operands);
    if (fused)
        return is_read(l, fused->params[index], uses);
    return ir_op_is(user, IR_OP_fuse) || ir_op_is(user, IR_OP_If) ||
           (ir_op_is(user, IR_OP_Loop) && index < 2);
}

/* Is the value, whatever it is called, read by kernels and by nobody else? */
static bool is_read(const struct lifetimes *l, const struct ir_value *value, int *uses)
{
    for (const struct ir_use *use = value->uses; use; use = use->next) {
        const struct ir_op *user = use->user;
        const enum ir_memory memory =
            use == &user->operands[0] ? ir_result_memory(user, 0, 0) : IR_MEMORY_OWN;
        if (++*uses > MOST_USES || ir_op_is(user, IR_OP_return) ||
            user->info->cls == IR_CLASS_SEQUENCE || memory == IR_MEMORY_UPDATED ||
            (user->info->cls == IR_CLASS_CONTROL && !is_read_by_control(l, use, uses)) ||
            (memory == IR_MEMORY_SHARED && !is_read(l, &user->results[0], uses)))
            return false;
    }
    return true;
}

/* A piece, if the memory of the operand allows it. */
static bool may_be_piece(const struct lifetimes *l, const struct step *step, uint32_t k)
{
    const struct ir_value *result = &step->op->results[k];
    int uses = 0;
    return l->plan->n_spaces == 1 && pieces_may_be(step) && result->wanted &&
           result->type->dtype != TSSA_STRING && step->kernel->is_piece(step->op, k) &&
           is_read(l, result, &uses);
}

/* ---- The operand's memory -------------------------------------------------------------------- */

/* A constant, an input of the graph, or a name of one. */
static bool is_outside(const struct lifetimes *l, const struct ir_value *value, int depth)
{
    value = plan_value(l->plan, value);
    if (ir_value_constant(value) || (value->block && !value->block->owner))
        return true;
    const struct step *step = value->op ? step_of(l, value->op) : NULL;
    return step && step->kernel && depth < MOST_STEPS &&
           (ir_is_view(value) || may_be_piece(l, step, value->index)) &&
           is_outside(l, ir_operand(value->op, 0), depth + 1);
}

bool pieces_lie_outside(const struct lifetimes *l, const struct step *step, uint32_t k)
{
    return may_be_piece(l, step, k) && is_outside(l, ir_operand(step->op, 0), 0);
}

/* Does the result have all elements of the operand? */
static bool is_all(const struct ir_type *operand, const struct ir_type *result)
{
    int i = 0, k = 0;
    while (true) { /* axes of one element are passed over */
        while (i < operand->rank && dim_is(operand->dims[i], 1))
            i++;
        while (k < result->rank && dim_is(result->dims[k], 1))
            k++;
        if (i == operand->rank || k == result->rank)
            return i == operand->rank && k == result->rank;
        if (operand->dims[i++] != result->dims[k++])
            return false;
    }
}

/* Are all results of it pieces, which die together? */
static bool are_all(const struct lifetimes *l, const struct step *step)
{
    const uint32_t last = l->values[step->op->results[0].id].last;
    bool all = step->n_outputs > 1;
    for (uint32_t k = 0; all && k < step->n_outputs; k++)
        all = l->values[step->op->results[k].id].last == last && may_be_piece(l, step, k);
    return all;
}

bool pieces_lie_in(const struct lifetimes *l, const struct step *step, uint32_t k, uint32_t last)
{
    const struct ir_value *result = &step->op->results[k];
    return may_be_piece(l, step, k) && (l->values[result->id].last < last || are_all(l, step) ||
                                        is_all(ir_operand(step->op, 0)->type, result->type));
}
