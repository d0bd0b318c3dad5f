/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes: to a box of the base (lower_box.c), where a mask is true, to rows by an index tensor.
 * Other regions are written by the offsets of their elements, which the rule gives when it reads a
 * tensor of all offsets.
 */
#include "passes/lower/lower_writer.h"

/* ---- Masks and rows -------------------------------------------------------------------------- */

/* The only step, if it is of this kind; its param is an operand. */
static const struct rule_step *only_step(const struct writer *w, enum rule_kind kind)
{
    return w->rule->n_steps == 1 && w->rule->steps[0].kind == kind ? &w->rule->steps[0] : NULL;
}

/* The source as it broadcasts to the base, when it is the same wherever the mask is true; else
 * NULL. */
static struct ir_value *uniform_source(struct writer *w, int axis, int mask_rank)
{
    int64_t axes[TSSA_MAX_RANK];
    int region_rank = lower_rank(w->x) - mask_rank + 1;
    int at = axis - (region_rank - lower_rank(w->s)); /* of the source, that the mask's axis is */
    if (lower_rank(w->s) < 0 || lower_rank(w->s) > region_rank)
        return NULL;
    if (at < 0)
        return w->s;
    if (!dim_is(w->s->type->dims[at], 1))
        return NULL;
    for (int i = 0; i < mask_rank - 1; i++)
        axes[i] = at + i;
    return lower_unsqueeze(w->l, w->s, mask_rank - 1, axes);
}

/* One source wherever the mask is true, or its rows where the true ones are. */
static struct ir_value *assign_mask(struct writer *w)
{
    const struct rule_step *step = only_step(w, RULE_MASK);
    int rank = lower_rank(w->x), n = 0;
    int64_t axes[TSSA_MAX_RANK];
    if (!step || rank < 0)
        return NULL;
    struct ir_value *mask = w->params[step->params[1].value];
    int axis = (int)step->params[0].value, behind = axis + lower_rank(mask);
    if (lower_rank(mask) < 1 || behind > rank)
        return NULL;
    struct ir_value *s = uniform_source(w, axis, lower_rank(mask));
    for (int i = behind; i < rank; i++)
        axes[n++] = lower_rank(mask) + i - behind;
    if (s)
        return lower_choose(w->l, lower_unsqueeze(w->l, mask, n, axes), s, w->x);
    s = axis == 0 ? lower_full_source(w) : NULL;
    if (!s)
        return NULL;
    struct ir_value *places = lower_emit(w->l, IR_OP_NonZero, 1, &mask);
    struct ir_value *const operands[] = {
        w->x, lower_transpose(w->l, places, 2, (const int64_t[]){1, 0}), s};
    return lower_emit(w->l, IR_OP_ScatterND, 3, operands);
}

/* The list of one element that a number was taken from. */
static struct ir_value *list_of(const struct ir_value *value)
{
    const struct ir_op *op = lower_rank(value) == 0 ? value->op : NULL;
    struct ir_value *x = op ? ir_operand(op, 0) : NULL;
    return op && ir_op_keeps_order(op) && lower_rank(x) == 1 ? x : NULL;
}

/* An element of a list: ScatterElements takes a list as it is, ScatterND wants a number. */
static struct ir_value *assign_to_list(struct writer *w, const struct lower_number *number)
{
    struct ir_value *s = lower_rank(w->x) == 1 ? list_of(w->s) : NULL;
    if (!s)
        return NULL;
    struct ir_value *const operands[] = {w->x, number->value, s};
    return lower_emit(w->l, IR_OP_ScatterElements, 3, operands);
}

/* One element, row or slab, that numbers name, not all of them constants: their list is the index,
 * and no axis is needed around it or the source. */
static struct ir_value *assign_element(struct writer *w)
{
    struct lower_number numbers[TSSA_MAX_RANK];
    uint32_t n = w->rule->n_steps;
    bool constant = true;
    if (n < 1 || n > TSSA_MAX_RANK || w->region.rank < 0 || (n == 1 && lower_is_in_place(w, w->x)))
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const struct rule_step *step = &w->rule->steps[i];
        if (step->kind != RULE_SELECT || step->params[0].value != 0)
            return NULL;
        numbers[i] = lower_param(w->l, &step->params[1], w->params);
        constant = constant && !numbers[i].value;
    }
    if (constant)
        return NULL;
    struct ir_value *y = assign_to_list(w, &numbers[0]);
    struct ir_value *s = y ? NULL : lower_full_source(w);
    if (!s)
        return y;
    struct ir_value *const operands[] = {w->x, lower_numbers(w->l, (int)n, numbers), s};
    return lower_emit(w->l, IR_OP_ScatterND, 3, operands);
}

/* Rows by an index tensor. */
static struct ir_value *assign_rows(struct writer *w)
{
    const struct rule_step *step = only_step(w, RULE_GATHER);
    if (!step || step->params[0].value != 0)
        return NULL;
    struct ir_value *indices = lower_cast(w->l, w->params[step->params[1].value], TSSA_INT64);
    int rank = lower_rank(indices);
    struct ir_value *s = rank >= 0 ? lower_full_source(w) : NULL;
    if (!s)
        return NULL;
    struct ir_value *const operands[] = {
        w->x, lower_unsqueeze(w->l, indices, 1, (const int64_t[]){rank}), s};
    return lower_emit(w->l, IR_OP_ScatterND, 3, operands);
}

/* ---- Any region ------------------------------------------------------------------------------ */

/* All of the base: the source, put back into its shape. */
static struct ir_value *assign_all(struct writer *w)
{
    const struct rule *inverse = NULL;
    if (region_is_whole(w->l->space, &w->region) != REGION_YES)
        return NULL;
    tssa_status *status = rule_invert(w->l->graph, w->x->type, w->rule, &inverse);
    if (status) {
        w->l->status = status;
        return NULL;
    }
    struct ir_value *s = inverse ? lower_full_source(w) : NULL;
    return s ? lower_access(w->l, s, inverse, NULL) : NULL;
}

static struct ir_value *like(struct writer *w, struct ir_value *flat)
{
    struct lower_shape shape = {.rank = lower_rank(w->x)};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = lower_dim(w->l, w->x, i);
    return shape.rank == 1 ? flat : lower_rearrange(w->l, flat, &shape);
}

/* By offsets, which the rule reads from 0, 1, ... in the shape of the base. */
static struct ir_value *assign_any(struct writer *w)
{
    struct lowering *l = w->l;
    if (lower_rank(w->x) < 0)
        return NULL;
    struct ir_value *size = lower_emit(l, IR_OP_Size, 1, &w->x);
    struct ir_value *const range[] = {lower_int(l, 0), size, lower_int(l, 1)};
    struct ir_value *all = like(w, lower_emit(l, IR_OP_Range, 3, range));
    struct ir_value *offsets = lower_access(l, all, w->rule, w->params);
    if (!offsets)
        return NULL;
    struct ir_value *s = w->s;
    if (!lower_has_dims(s, lower_rank(offsets), offsets->type->dims)) {
        struct ir_value *const operands[] = {s, lower_emit(l, IR_OP_Shape, 1, &offsets)};
        s = lower_emit(l, IR_OP_Expand, 2, operands);
    }
    struct ir_value *const column[] = {offsets, lower_ints(l, 1, 2, (const int64_t[]){-1, 1})};
    struct ir_value *const operands[] = {
        lower_flatten(l, w->x), lower_emit(l, IR_OP_Reshape, 2, column), lower_flatten(l, s)};
    return like(w, lower_emit(l, IR_OP_ScatterND, 3, operands));
}

tssa_status *lower_is_cheap_write(struct lowering *l, const struct ir_op *op, bool *cheap)
{
    struct ir_value *params[IR_VARIADIC];
    struct writer w;
    *cheap = false;
    if (!rule_is_strided(rule_of(op)))
        return NULL;
    for (uint32_t i = 0; i < rule_of(op)->n_operands; i++)
        params[i] = ir_operand(op, rule_first_operand(op) + i);
    TRY(lower_open_writer(&w, l, ir_operand(op, 0), ir_operand(op, 1), rule_of(op), params));
    *cheap = w.is_box && !region_is_empty(&w.region) &&
             region_is_whole(l->space, &w.region) != REGION_YES;
    return NULL;
}

struct ir_value *lower_assign(struct lowering *l, struct ir_value *x, struct ir_value *s,
                              const struct rule *rule, struct ir_value *const *params)
{
    static struct ir_value *(*const ways[])(struct writer * w) = {
        assign_all, assign_element, lower_assign_box, assign_mask, assign_rows, assign_any};
    struct writer w;
    tssa_status *status = lower_open_writer(&w, l, x, s, rule, params);
    struct ir_value *y = NULL;
    if (status) {
        l->status = status;
        return NULL;
    }
    if (w.region.rank >= 0 && region_is_empty(&w.region))
        return x;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !y && !l->status; i++)
        y = ways[i](&w);
    return l->status ? NULL : y;
}
