/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns that follow each other along one axis, written at once. */
#include "passes/lower/lower_assembly.h"

/*
 * The one axis that an assign writes a constant part of, all others being whole; -1: it is not so.
 */
static tssa_status *constant_axis(struct lowering *l, const struct ir_op *op, int *axis)
{
    struct ir_value *params[IR_VARIADIC];
    struct writer w;
    int axes[TSSA_MAX_RANK];
    int64_t dim;
    for (uint32_t i = 0; i < rule_of(op)->n_operands; i++)
        params[i] = ir_operand(op, rule_first_operand(op) + i);
    TRY(lower_open_writer(&w, l, ir_operand(op, 0), ir_operand(op, 1), rule_of(op), params));
    bool one = w.is_box && !lower_has_spans(rule_of(op)) &&
               lower_partial_axes(&w.region, axes) == 1 &&
               lower_has_places(&w.region, axes[0], &dim);
    *axis = one ? axes[0] : -1;
    return NULL;
}

/* The assign whose base is this assign's result, which nothing else uses; NULL: none. */
static struct ir_op *next_write(const struct ir_op *op)
{
    const struct ir_use *use = op->results[0].uses;
    if (!use || use->next || !ir_op_is(use->user, IR_OP_assign) ||
        use->user->parent != op->parent || ir_operand(use->user, 0) != &op->results[0])
        return NULL;
    return use->user;
}

tssa_status *lower_is_chained(struct lowering *l, const struct ir_op *op, bool *chained)
{
    const struct ir_op *next = next_write(op);
    int axis, next_axis;
    *chained = false;
    if (!next)
        return NULL;
    TRY(constant_axis(l, op, &axis));
    if (axis < 0)
        return NULL;
    TRY(constant_axis(l, next, &next_axis));
    *chained = next_axis == axis;
    return NULL;
}

/* Puts one write into the assembly. */
static tssa_status *add_write(struct assembly *a, const struct ir_op *op)
{
    struct ir_value *params[IR_VARIADIC];
    struct writer w;
    for (uint32_t i = 0; i < rule_of(op)->n_operands; i++)
        params[i] = ir_operand(op, rule_first_operand(op) + i);
    TRY(lower_open_writer(&w, a->l, ir_operand(op, 0), ir_operand(op, 1), rule_of(op), params));
    w.x = a->sources[0]; /* of the same shape; the assign between goes */
    assembly_write(a, &w.region.axes[a->axis], lower_forward_source(&w));
    return a->l->status;
}

static tssa_status *write_chain(struct assembly *a, struct ir_op *const *ops, uint32_t n,
                                struct ir_value **y)
{
    for (uint32_t i = 0; i < n; i++)
        TRY(add_write(a, ops[i]));
    *y = assembly_make(a);
    return a->l->status;
}

tssa_status *lower_chain(struct lowering *l, struct ir_op *const *ops, uint32_t n,
                         struct ir_value **y)
{
    struct assembly a;
    int64_t dim = 0;
    int axis;
    TRY(constant_axis(l, ops[0], &axis));
    struct ir_value *x = ir_operand(ops[0], 0);
    (void)dim_is_const(x->type->dims[axis], &dim);
    tssa_status *status = assembly_init(&a, l, x, axis, dim, n);
    if (!status)
        status = write_chain(&a, ops, n, y);
    assembly_free(&a);
    return status;
}
