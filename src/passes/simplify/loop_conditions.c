/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says in a Loop's trip count what its condition says, where that is a matter of counting:
 *
 *   - a comparison i + c < L of the iteration's number with a value from outside, alone or as a
 *     term of And, limits the trip count;
 *   - so it goes from the condition, as do terms that always hold;
 *   - a condition that is always true is the one that the body is given;
 *   - a condition that is false after the first iteration makes the trip count 1.
 *
 *   needs   known elements: the iteration's number is a symbol, carried counters are affine in it
 *           (induction)
 *   keeps   types, order
 *   breaks  nothing
 */
#include "ir/infer.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"

/* ---- i + offset < limit ---------------------------------------------------------------------- */

struct bound {
    struct ir_value *limit; /* an INT64 of one element from outside of the loop */
    int64_t offset;
};

/* value == i + *offset, for the iteration's number i? */
static bool counts(const struct loop *loop, const struct ir_value *value, int64_t *offset)
{
    const struct ir_known *known = value ? value->known : NULL;
    const struct ir_known *counter = loop->body->params[0]->known;
    const struct dim *dim = known && known->count == 1 ? known->elements[0] : NULL;
    if (!dim || !counter || counter->count != 1)
        return false;
    *offset = dim->kind == DIM_SUM ? dim->value : 0;
    if (dim->kind != DIM_SUM)
        return dim == counter->elements[0];
    return dim->n_terms == 1 && dim->terms[0] == counter->elements[0] && dim->coefficients[0] == 1;
}

static bool is_limit(const struct loop *loop, const struct ir_value *value)
{
    const struct ir_type *type = value ? value->type : NULL;
    return type && type->dtype == TSSA_INT64 && type->rank <= 1 && type_has_one_element(type) &&
           (ir_value_constant(value) || !loop_makes(loop, value));
}

/* Comparisons as (smaller side, is it strict): -1 for what is none. */
static int smaller_side(enum ir_op_id id, bool negated, bool *strict)
{
    static const struct {
        enum ir_op_id id;
        int side;
        bool strict;
    } comparisons[] = {{IR_OP_Less, 0, true},
                       {IR_OP_LessOrEqual, 0, false},
                       {IR_OP_Greater, 1, true},
                       {IR_OP_GreaterOrEqual, 1, false}};
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
        if (comparisons[i].id == id) {
            *strict = comparisons[i].strict != negated;
            return negated ? 1 - comparisons[i].side : comparisons[i].side;
        }
    return -1;
}

/* The number of iterations is an int64: offsets of 1 and more cannot make the limit overflow. */
static bool read_bound(const struct loop *loop, struct ir_value *term, struct bound *bound)
{
    bool negated = false, strict;
    term = loop_unaliased(term);
    while (term && term->op && ir_op_is(term->op, IR_OP_Not)) {
        negated = !negated;
        term = loop_unaliased(ir_operand(term->op, 0));
    }
    int side = term && term->op ? smaller_side(term->op->info->id, negated, &strict) : -1;
    if (side < 0)
        return false;
    bound->limit = ir_operand(term->op, 1 - (uint32_t)side);
    if (!counts(loop, ir_operand(term->op, (uint32_t)side), &bound->offset) ||
        !is_limit(loop, bound->limit) || bound->offset == INT64_MIN)
        return false;
    bound->offset -= strict ? 0 : 1;
    return bound->offset >= 1;
}

/* ---- The new trip count ---------------------------------------------------------------------- */

/* A constant of the body, or a list of one element, as a scalar in front of the loop. */
static tssa_status *scalar_outside(const struct loop *loop, struct ir_value *limit,
                                   struct ir_value **scalar)
{
    int64_t number;
    *scalar = limit;
    if (loop_known_int(limit, &number))
        return loop_make_int(loop->op, 0, number, scalar);
    if (limit->type->rank == 0)
        return NULL;
    struct ir_value *axis;
    TRY(loop_make_int(loop->op, 1, 0, &axis));
    struct ir_op *squeeze = loop_make_op(loop->op, IR_OP_Squeeze, 2);
    TRY_ALLOC(squeeze);
    ir_op_set_operand(squeeze, 0, limit);
    ir_op_set_operand(squeeze, 1, axis);
    *scalar = &squeeze->results[0];
    return ir_infer_op_lenient(squeeze);
}

/* Does the condition before the first iteration say the same of the number before it? */
static bool asks_before(const struct loop *loop, const struct bound *bound)
{
    bool strict;
    int64_t number;
    const struct ir_value *entry = loop_unaliased(ir_operand(loop->op, 1));
    const struct ir_op *op = entry ? entry->op : NULL;
    int side = op ? smaller_side(op->info->id, false, &strict) : -1;
    if (side < 0 ||
        loop_unaliased(ir_operand(op, 1 - (uint32_t)side)) != loop_unaliased(bound->limit))
        return false;
    return loop_known_int(ir_operand(op, (uint32_t)side), &number) &&
           number == bound->offset - 1 + (strict ? 0 : 1);
}

static bool has_limit(const struct loop *loop)
{
    int64_t trips;
    struct ir_value *count = ir_operand(loop->op, 0);
    return count && (!loop_known_int(count, &trips) || trips != INT64_MAX);
}

/*
 * Iteration i is followed by another while i + offset < limit, so there are limit - offset + 1 of
 * them. The first one is there in any case, as far as the condition before it holds; where that
 * asks for the same (offset - 1 < limit), it goes.
 */
static tssa_status *limit_trips(const struct loop *loop, const struct bound *bound)
{
    struct ir_op *at = loop->op;
    struct ir_value *count, *number;
    bool asked = asks_before(loop, bound);
    TRY(scalar_outside(loop, bound->limit, &count));
    if (bound->offset > 1) {
        TRY(loop_make_int(at, 0, 0, &number));
        TRY(loop_make_binary(at, IR_OP_Max, count, number, &count));
        TRY(loop_make_int(at, 0, bound->offset - 1, &number));
        TRY(loop_make_binary(at, IR_OP_Sub, count, number, &count));
    }
    if (!asked) {
        TRY(loop_make_int(at, 0, 1, &number));
        TRY(loop_make_binary(at, IR_OP_Max, count, number, &count));
    }
    if (has_limit(loop))
        TRY(loop_make_binary(at, IR_OP_Min, ir_operand(at, 0), count, &count));
    ir_op_set_operand(at, 0, count);
    if (asked)
        ir_op_set_operand(at, 1, NULL);
    return NULL;
}

/* ---- Conditions ------------------------------------------------------------------------------ */

static bool is_known_true(const struct loop *loop, struct ir_value *term)
{
    int64_t truth;
    struct ir_value *value = loop_unaliased(term);
    return value == loop->body->params[1] || (loop_known_int(value, &truth) && truth) ||
           (loop_known_int(term, &truth) && truth);
}

/*
 * Takes the terms that hold by counting, or always, out of a condition: *rest is what is left, NULL
 * when nothing is. Only through chains of And: what is left of them are operands that exist
 * already.
 */
static tssa_status *strip(const struct loop *loop, struct ir_value *condition,
                          struct ir_value **rest)
{
    struct bound bound;
    struct ir_op *op = loop_unaliased(condition)->op;
    *rest = condition;
    if (is_known_true(loop, condition)) {
        *rest = NULL;
    } else if (read_bound(loop, condition, &bound)) {
        TRY(limit_trips(loop, &bound));
        *rest = NULL;
    } else if (op && ir_op_is(op, IR_OP_And) && condition->type->kind == TYPE_TENSOR &&
               condition->type->rank == 0) {
        struct ir_value *a = ir_operand(op, 0), *b = ir_operand(op, 1), *rest_a, *rest_b;
        TRY(strip(loop, a, &rest_a));
        TRY(strip(loop, b, &rest_b));
        if (rest_a == a && rest_b == b)
            return NULL;
        if (rest_a && rest_b) {
            TRY(loop_make_binary(loop->ret, IR_OP_And, rest_a, rest_b, rest));
            return NULL;
        }
        *rest = rest_a ? rest_a : rest_b;
    }
    return NULL;
}

static tssa_status *strip_condition(struct pass_context *pass, const struct loop *loop)
{
    struct ir_value *next = ir_operand(loop->ret, 0), *rest;
    if (!next || next == loop->body->params[1])
        return NULL;
    TRY(strip(loop, next, &rest));
    if (rest == next)
        return NULL;
    ir_op_set_operand(loop->ret, 0, rest ? rest : loop->body->params[1]);
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, loop->op,
                       rest ? "a part of its condition became the trip count"
                            : "its condition became the trip count");
}

/* Never true again after the first iteration. */
static tssa_status *one_iteration(struct pass_context *pass, const struct loop *loop)
{
    int64_t trips;
    struct ir_value *count;
    struct ir_value *limit = ir_operand(loop->op, 0);
    TRY(loop_make_int(loop->op, 0, 1, &count));
    if (limit && !(loop_known_int(limit, &trips) && trips >= 1)) {
        if (limit->type->kind != TYPE_TENSOR || limit->type->rank != 0)
            return NULL;
        TRY(loop_make_binary(loop->op, IR_OP_Min, limit, count, &count));
    }
    ir_op_set_operand(loop->op, 0, count);
    ir_op_set_operand(loop->ret, 0, loop->body->params[1]);
    pass->changed = true;
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    if (!ir_op_is(op, IR_OP_Loop) || op->n_operands < 2)
        return NULL;
    struct loop loop = loop_of(op);
    if (loop_stays(&loop) == LOOP_FALSE)
        return one_iteration(pass, &loop);
    return strip_condition(pass, &loop);
}

tssa_status *pass_loop_conditions(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
