/* SPDX-License-Identifier: Apache-2.0 */
/* The first ones of what a mask keeps (bound_lists.h). */
#include <math.h>

#include "passes/lower/bound_lists.h"

#define MOST_SORTED 1024 /* that are wanted of a list: so many are chosen by a block */

/* ---- TopK ------------------------------------------------------------------------------------ */

static bool is_above(const struct ir_value *bound, bool or_equal)
{
    const struct tensor *tensor = ir_value_constant(bound);
    if (!tensor || tensor->dtype != TSSA_FLOAT || tensor_count(tensor) != 1)
        return false;
    const float value = *(const float *)tensor->data;
    return value > -INFINITY || (value == -INFINITY && !or_equal);
}

static const struct ir_value *without_slices(const struct ir_value *x)
{
    const struct rule *rule = x->op && ir_op_is(x->op, IR_OP_access) ? rule_of(x->op) : NULL;
    while (rule && rule->n_steps == 1 && rule->steps[0].kind == RULE_SLICE &&
           bound_are_constants(rule->steps) && rule->steps[0].params[1].value == 0 &&
           rule->steps[0].params[2].value >= 0 && rule->steps[0].params[3].value == 1) {
        x = ir_operand(x->op, 0);
        rule = x->op && ir_op_is(x->op, IR_OP_access) ? rule_of(x->op) : NULL;
    }
    return x;
}

#define MOST_MASKS 8 /* And in And */

/* Is what the mask keeps of x more than -inf, and no NaN? */
static bool keeps_above(const struct ir_value *mask, const struct ir_value *x, int depth)
{
    const struct ir_op *op = mask->op;
    if (!op || op->opaque || depth == MOST_MASKS)
        return false;
    const struct ir_value *a = ir_operand(op, 0), *c = ir_operand(op, 1);
    if (ir_op_is(op, IR_OP_And))
        return (a->type == mask->type && keeps_above(a, x, depth + 1)) ||
               (c->type == mask->type && keeps_above(c, x, depth + 1));
    const bool or_equal = ir_op_is(op, IR_OP_GreaterOrEqual) || ir_op_is(op, IR_OP_LessOrEqual);
    if (ir_op_is(op, IR_OP_Less) || ir_op_is(op, IR_OP_LessOrEqual)) {
        a = ir_operand(op, 1);
        c = ir_operand(op, 0);
    } else if (!or_equal && !ir_op_is(op, IR_OP_Greater)) {
        return false;
    }
    return is_above(c, or_equal) && bound_is_ranked(a) && a->type->rank == mask->type->rank &&
           without_slices(a) == without_slices(x);
}

/* The first `size` of all of them; 0: it takes others. */
static int64_t count_sorted(const struct bounding *b, const struct ir_op *op,
                            const struct bound_set *set)
{
    const struct dim *size = op->results[0].type->dims[0];
    int64_t most = set->bound, value;
    bool fits = size == set->dim;
    for (uint32_t i = 0; size->kind == DIM_MIN && i < size->n_terms; i++)
        if (size->terms[i] == set->dim)
            fits = true;
        else if (!dim_is_const(size->terms[i], &value) || value < 1)
            return 0;
        else
            most = value < most ? value : most;
    return fits && most <= MOST_SORTED && bound_of(b, ir_operand(op, 1))->kind == BOUND_SIZE ? most
                                                                                             : 0;
}

static tssa_status *sort(struct bounding *b, struct ir_op *op, const struct bound_value *x,
                         int64_t most)
{
    struct pass_maker m = {.at = op, .graph = b->pass->graph};
    const uint32_t from = x->set;
    struct bound_set sorted = {
        .dim = op->results[0].type->dims[0], .bound = most, .roots = bound_set_at(b, from)->roots};
    uint32_t set;
    struct ir_value *least = pass_make_float(&m, -INFINITY),
                    *filled = pass_make_where(&m, bound_set_at(b, from)->mask,
                                              (struct ir_value *)x->whole, least);
    if (!m.status && bound_set_at(b, from)->mask->type->rank > 1)
        filled = pass_make_access(&m, filled, RULE_RESHAPE, 1, &bound_set_at(b, from)->bound, NULL);
    struct ir_value *k = pass_make_int(&m, 1, most), *values, *valid;
    TRY(m.status);
    ir_cloner_reset(&b->cloner);
    if (!ir_cloner_map(&b->cloner, ir_operand(op, 0), filled) ||
        !ir_cloner_map(&b->cloner, ir_operand(op, 1), k))
        return status_out_of_memory();
    struct ir_op *copy = ir_clone_op(&b->cloner, op);
    TRY_ALLOC(copy);
    TRY(pass_insert(copy, op));
    values = &copy->results[0];
    valid = pass_make(&m, IR_OP_Greater, 2, values, pass_make_float(&m, -INFINITY));
    TRY(m.status);
    sorted.valid = valid;
    TRY(bound_add_set(b, sorted, &set));
    bound_note(b, op, 0, (struct bound_value){.kind = BOUND_PADDED, .set = set, .value = values});
    bound_note(b, op, 1,
               (struct bound_value){.kind = BOUND_PADDED,
                                    .set = set,
                                    .value = &copy->results[1],
                                    .below = bound_set_at(b, from)->bound,
                                    .places = from + 1});
    return NULL;
}

tssa_status *bound_visit_topk(struct bounding *b, struct ir_op *op)
{
    const struct bound_value *x = bound_of(b, ir_operand(op, 0));
    if (x->kind != BOUND_PADDED || !x->whole || op->n_results != 2 || op->n_operands != 2 ||
        ir_operand(op, 0)->type->dtype != TSSA_FLOAT || ir_operand(op, 0)->type->rank != 1 ||
        !ir_attr_int(op, "largest", 1) || !ir_attr_int(op, "sorted", 1) ||
        !bound_is_ranked(&op->results[0]) || !op->results[0].wanted || !op->results[1].wanted)
        return NULL;
    const struct bound_set *set = bound_set_at(b, x->set);
    const int64_t most = count_sorted(b, op, set);
    return set->mask && x->whole->type->rank == set->mask->type->rank && most &&
                   keeps_above(set->mask, x->whole, 0)
               ? sort(b, op, x, most)
               : NULL;
}
