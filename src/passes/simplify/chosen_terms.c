/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that combines what it carries with something where a condition holds, combines it in any
 * case, with something that changes nothing where it does not:
 *
 *     Loop { m: Where(q, Add(m, t), m) }     ->   Add(m, Where(q, t, 0))
 *     Loop { m: Where(Greater(t, m), t, m) } ->   Max(m, t)
 *
 * so that all iterations count, add up or compare at once (parallelize).
 *
 *   needs   types; branches of a few numbers are Wheres (select_branches)
 *   keeps   results' bits: integers alone, and truth values
 *   breaks  nothing
 */
#include "ir/infer.h"
#include "passes/analysis/loops.h"
#include "passes/maker.h"
#include "passes/pass.h"

/* What combines, and what changes nothing then. */
static const struct {
    enum ir_op_id id;
    int64_t neutral[2]; /* of INT32, of INT64 */
} combines[] = {
    {IR_OP_Add, {0, 0}},
    {IR_OP_Mul, {1, 1}},
    {IR_OP_Max, {INT32_MIN, INT64_MIN}},
    {IR_OP_Min, {INT32_MAX, INT64_MAX}},
};

/* Where: what it chooses between what is carried and what is made of that. */
struct choice {
    struct ir_op *where;
    struct ir_value *condition, *carried, *other;
    bool when; /* what the condition is where it is the other one */
};

static bool is_integer(const struct ir_type *type)
{
    return type->kind == TYPE_TENSOR && type->rank >= 0 &&
           (type->dtype == TSSA_INT32 || type->dtype == TSSA_INT64);
}

static bool is_one_number(const struct ir_value *value)
{
    return value->type->kind == TYPE_TENSOR && value->type->rank == 0;
}

/* Does the value have the shape that is carried, so that it is one of its own in each iteration? */
static bool fits(const struct ir_value *value, const struct ir_type *carried)
{
    const struct ir_type *type = value->type;
    if (type->kind != TYPE_TENSOR || type->rank != carried->rank)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] != carried->dims[i])
            return false;
    return true;
}

/* ---- What it is ------------------------------------------------------------------------------ */

/* The next value of carried value k is chosen so. */
static bool read_choice(const struct loop *loop, uint32_t k, struct choice *choice)
{
    struct ir_value *param = loop_param(loop, k), *next = loop_next(loop, k);
    struct ir_op *op = next ? next->op : NULL;
    if (!op || !ir_op_is(op, IR_OP_Where) || op->parent != loop->body || !is_integer(param->type) ||
        next->type != param->type)
        return false;
    bool kept = ir_operand(op, 1) == param;
    if (kept == (ir_operand(op, 2) == param))
        return false;
    *choice = (struct choice){.where = op,
                              .condition = ir_operand(op, 0),
                              .carried = param,
                              .other = ir_operand(op, kept ? 2 : 1),
                              .when = !kept};
    return is_one_number(choice->condition) || fits(choice->condition, param->type);
}

/* Which row of the table makes the other one of what is carried; -1: none. */
static int find_combine(const struct choice *choice)
{
    const struct ir_op *op = choice->other->op;
    if (!op || op->parent != choice->where->parent || op->n_operands != 2 ||
        !loop_is_only_use(choice->other, choice->where, choice->when ? 1 : 2))
        return -1;
    for (size_t i = 0; i < sizeof combines / sizeof *combines; i++)
        if (ir_op_is(op, combines[i].id))
            return (ir_operand(op, 0) == choice->carried) != (ir_operand(op, 1) == choice->carried)
                       ? (int)i
                       : -1;
    return -1;
}

/* t > m, where t is chosen, is the larger one of both: IR_OP_Max; or IR_OP_Min; IR_OP_COUNT. */
static enum ir_op_id find_extreme(const struct choice *choice)
{
    const struct ir_op *op = choice->condition->op;
    if (!op || op->n_operands != 2 || !fits(choice->other, choice->carried->type))
        return IR_OP_COUNT;
    bool carried_first = ir_operand(op, 0) == choice->carried;
    if (ir_operand(op, carried_first ? 0 : 1) != choice->carried ||
        ir_operand(op, carried_first ? 1 : 0) != choice->other)
        return IR_OP_COUNT;
    bool greater = ir_op_is(op, IR_OP_Greater) || ir_op_is(op, IR_OP_GreaterOrEqual);
    bool less = ir_op_is(op, IR_OP_Less) || ir_op_is(op, IR_OP_LessOrEqual);
    if (!greater && !less)
        return IR_OP_COUNT;
    return (greater != carried_first) == choice->when ? IR_OP_Max : IR_OP_Min;
}

/* ---- What becomes of it ---------------------------------------------------------------------- */

static struct ir_value *make_neutral(struct pass_maker *m, const struct choice *choice, int row)
{
    bool wide = choice->carried->type->dtype == TSSA_INT64;
    int64_t number = combines[row].neutral[wide];
    return wide ? pass_make_int(m, 0, number) : pass_make_number(m, TSSA_INT32, (double)number);
}

static struct ir_value *combine(struct pass_maker *m, const struct choice *choice, int row)
{
    const struct ir_op *op = choice->other->op;
    struct ir_value *term = ir_operand(op, ir_operand(op, 0) == choice->carried ? 1 : 0);
    struct ir_value *neutral = make_neutral(m, choice, row);
    struct ir_value *chosen = choice->when ? pass_make_where(m, choice->condition, term, neutral)
                                           : pass_make_where(m, choice->condition, neutral, term);
    return pass_make(m, combines[row].id, 2, choice->carried, chosen);
}

static tssa_status *rewrite(struct pass_context *pass, const struct choice *choice)
{
    struct pass_maker m = {.at = choice->where, .graph = pass->graph};
    struct ir_value *result = &choice->where->results[0], *made = NULL;
    enum ir_op_id extreme = find_extreme(choice);
    int row = find_combine(choice);
    if (extreme != IR_OP_COUNT)
        made = pass_make(&m, extreme, 2, choice->carried, choice->other);
    else if (row >= 0 && fits(choice->other, choice->carried->type))
        made = combine(&m, choice, row);
    else
        return NULL;
    TRY(m.status);
    made->op->exact = true; /* it takes the place of one that every runtime computes exactly */
    if (made->type != result->type)
        return NULL; /* dead_code removes it */
    pass_put_result(&m, result, made);
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, made->op,
                       "combines what the loop carries in any case");
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct choice choice;
    if (!ir_op_is(op, IR_OP_Loop) || op->n_blocks != 1)
        return NULL;
    const struct loop loop = loop_of(op);
    for (uint32_t k = 0; loop.ret && k < loop.n_carried && k < op->n_results; k++)
        if (read_choice(&loop, k, &choice))
            TRY(rewrite(pass, &choice));
    return NULL;
}

tssa_status *pass_chosen_terms(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
