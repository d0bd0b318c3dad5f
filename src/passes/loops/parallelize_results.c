/* SPDX-License-Identifier: Apache-2.0 */
/* What a loop leaves behind, of what all its iterations computed at once (parallelize.h): one
 * assign of all that was written, one reduction, and the stacks. */
#include "passes/loops/parallelize.h"

/* A source that broadcasts needs axes behind the one in front. */
static struct ir_value *stacked_source(struct batch *batch, const struct ir_op *assign)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_type *base = ir_operand(assign, 0)->type;
    int rank;
    bool batched;
    tssa_status *status =
        rule_region_shape((struct ir_op *)assign, base->rank, base->dims, &rank, dims);
    bool known = !status && rank >= 0;
    tssa_status_free(status);
    struct ir_value *source = batch_get(batch, ir_operand(assign, 1), &batched);
    if (!known || !source)
        return NULL;
    if (!batched)
        return batch_stacked(batch, ir_operand(assign, 1), assign);
    return batch_unsqueeze(batch, assign, source, 1, rank - ir_operand(assign, 1)->type->rank);
}

struct ir_value *parallel_slice(struct batch *batch, const struct ir_op *origin,
                                struct ir_value *base, int64_t axis, struct ir_value *start,
                                struct ir_value *end)
{
    struct ir_value *operands[] = {base, start, end, batch_ints(batch, 1, 1, &axis)};
    struct ir_op *op = batch_make(batch, origin, IR_OP_Slice, 4, operands);
    return op ? &op->results[0] : NULL;
}

/* Are `rows` rows of `base` as they are, with nothing to broadcast? */
static bool are_rows_of(const struct ir_value *base, const struct ir_value *rows)
{
    bool same = base->type->rank >= 1 && rows->type->kind == TYPE_TENSOR &&
                rows->type->rank == base->type->rank;
    for (int i = 1; i < base->type->rank && same; i++)
        same = base->type->dims[i] == rows->type->dims[i];
    return same;
}

/* The same of the first axis: ScatterND fails by itself where there are not enough rows, and copies
 * what stays at most once. */
static struct ir_value *scatter_rows(struct batch *batch, const struct ir_op *assign,
                                     struct ir_value *base, struct ir_value *rows, int64_t offset)
{
    struct ir_value *numbers = batch_range(batch);
    if (offset > 0) {
        struct ir_value *terms[] = {numbers, batch_ints(batch, 0, 1, &offset)};
        struct ir_op *sum = batch_make(batch, assign, IR_OP_Add, 2, terms);
        numbers = sum ? &sum->results[0] : NULL;
    }
    struct ir_value *column = numbers ? batch_unsqueeze(batch, assign, numbers, 1, 1) : NULL;
    struct ir_value *operands[] = {base, column, rows};
    struct ir_op *op = column ? batch_make(batch, assign, IR_OP_ScatterND, 3, operands) : NULL;
    return op ? &op->results[0] : NULL;
}

/* Rows as large as those of the base without `axis`; NULL where a smaller one cannot be widened. */
static struct ir_value *fit_rows(struct batch *batch, const struct ir_op *assign,
                                 const struct ir_value *base, int64_t axis, struct ir_value *rows)
{
    int64_t dims[TSSA_MAX_RANK];
    const struct ir_type *type = base->type;
    bool same = true, known = true;
    if (rows->type->kind != TYPE_TENSOR || rows->type->rank != type->rank)
        return NULL;
    for (int i = 0, k = 0; i < type->rank; i++) {
        if (i == axis)
            continue;
        same &= rows->type->dims[k + 1] == type->dims[i];
        known &= dim_is_const(type->dims[i], &dims[k]) && dims[k] > 0;
        k++;
    }
    if (same || !known)
        return same ? rows : NULL;
    struct ir_value *operands[] = {rows, batch_shape(batch, (size_t)type->rank - 1, dims)};
    struct ir_op *op = batch_make(batch, assign, IR_OP_Expand, 2, operands);
    return op ? &op->results[0] : NULL;
}

/*
 * Rows offset, offset + 1, ... of an axis whose length may not be enough: what is before, the rows,
 * what is after, and a Reshape to the shape that it should have, which fails when it has not.
 */
static struct ir_value *assign_rows(struct batch *batch, const struct ir_op *assign,
                                    struct ir_value *base, struct ir_value *rows)
{
    static const int64_t end = INT64_MAX, zero = 0;
    const struct rule *rule = rule_of(assign);
    const struct dim *index = rule_param_dim(assign, &rule->steps[0].params[1]);
    int64_t factor, offset, axis = rule->steps[0].params[0].value;
    if (rule->n_steps != 1 || rule->steps[0].kind != RULE_SELECT ||
        !batch_affine(batch, index, &factor, &offset) || factor != 1 || offset < 0)
        return NULL;
    rows = fit_rows(batch, assign, base, axis, rows);
    if (!rows)
        return NULL;
    if (axis == 0 && are_rows_of(base, rows))
        return scatter_rows(batch, assign, base, rows, offset);
    struct ir_value *parts[3], *behind = batch_trips_1d(batch);
    struct ir_value *first =
        batch_unsqueeze(batch, assign, batch_start(batch, assign, 1, offset), 0, 1);
    uint32_t n = 0;
    if (offset > 0 || batch->first) {
        struct ir_value *terms[] = {behind, first};
        struct ir_op *sum = batch_make(batch, assign, IR_OP_Add, 2, terms);
        behind = sum ? &sum->results[0] : NULL;
        parts[n++] =
            parallel_slice(batch, assign, base, axis, batch_ints(batch, 1, 1, &zero), first);
    }
    parts[n++] = batch_move_axis(batch, assign, rows, 0, (int)axis);
    parts[n++] = parallel_slice(batch, assign, base, axis, behind, batch_ints(batch, 1, 1, &end));
    struct ir_value *all = batch_concat(batch, assign, axis, n, parts);
    struct ir_op *shape = batch_make(batch, assign, IR_OP_Shape, 1, &base);
    struct ir_value *operands[] = {all, shape ? &shape->results[0] : NULL};
    struct ir_op *checked = batch_make(batch, assign, IR_OP_Reshape, 2, operands);
    return checked ? &checked->results[0] : NULL;
}

struct ir_value *parallel_given(const struct parallel *s, uint32_t k)
{
    return s->block ? s->block->params[k + 2] : loop_initial(&s->loop, k);
}

static struct ir_value *final_tensor(struct parallel *s, struct batch *batch, uint32_t k)
{
    struct carried *c = &s->carried[k];
    struct ir_value *value = parallel_given(s, k);
    struct batch_region *region = batch_new_region(batch);
    for (uint32_t i = c->n_assigns; region && value && i-- > 0;) {
        struct ir_op *assign = c->assigns[i];
        struct ir_value *source = stacked_source(batch, assign);
        if (!source || !batch_region(batch, assign, false, ir_operand(assign, 0)->type, region))
            return NULL;
        if (!region->in_range) {
            value = assign_rows(batch, assign, value, source);
            continue;
        }
        struct ir_op *made = rule_assign_create(s->pass->graph, value, source, region->rule,
                                                region->n_params, region->params);
        if (!batch_put(batch, made))
            return NULL;
        made->name = assign->name;
        value = &made->results[0];
    }
    return region ? value : NULL;
}

static struct ir_value *cast_to(struct batch *batch, const struct ir_op *origin,
                                struct ir_value *value, tssa_dtype dtype)
{
    struct ir_op *op = batch_new(batch, origin, IR_OP_Cast, 1, &value);
    if (!op)
        return NULL;
    return batch_set_int(batch, op, "to", dtype) && batch_put(batch, op) ? &op->results[0] : NULL;
}

/* What was there before is one more of what is reduced, so that there is always one; of a block, in
 * which there is one, it joins the result. */
static struct ir_value *final_reduction(struct parallel *s, struct batch *batch, uint32_t k)
{
    static const int64_t zero = 0;
    const struct carried *c = &s->carried[k];
    const struct reduction *how = reduction_of(c->combine);
    struct ir_value *all = batch_stacked(batch, c->term, c->combine);
    if (!s->block) {
        struct ir_value *parts[] = {batch_unsqueeze(batch, c->combine, parallel_given(s, k), 0, 1),
                                    all};
        all = batch_concat(batch, c->combine, 0, 2, parts);
    }
    if (how->truth)
        all = cast_to(batch, c->combine, all, TSSA_INT32);
    struct ir_value *operands[] = {all, batch_ints(batch, 1, 1, &zero)};
    struct ir_op *op = batch_new(batch, c->combine, how->reduce, 2, operands);
    if (!op)
        return NULL;
    op->exact = true;
    if (!batch_set_int(batch, op, "keepdims", 0) || !batch_put(batch, op))
        return NULL;
    struct ir_value *reduced =
        how->truth ? cast_to(batch, c->combine, &op->results[0], TSSA_BOOL) : &op->results[0];
    if (!s->block)
        return reduced;
    struct ir_value *terms[] = {parallel_given(s, k), reduced};
    op = batch_make(batch, c->combine, c->combine->info->id, 2, terms);
    return op ? &op->results[0] : NULL;
}

/* Behind the last term. */
static struct ir_value *final_sum(struct batch *batch, const struct carried *c)
{
    struct ir_value *operands[] = {c->sums, batch->trips};
    struct ir_op *op = batch_make(batch, c->combine, IR_OP_Gather, 2, operands);
    return op ? &op->results[0] : NULL;
}

static struct ir_value *final_carried(struct parallel *s, struct batch *batch, uint32_t k)
{
    if (s->carried[k].ordered)
        return final_sum(batch, &s->carried[k]);
    switch (s->carried[k].kind) {
    case CARRIED_TENSOR:
        return final_tensor(s, batch, k);
    case CARRIED_REDUCED:
    case CARRIED_SUMMED:
        return final_reduction(s, batch, k);
    default:
        return parallel_given(s, k);
    }
}

bool parallel_results(struct parallel *s, struct batch *batch, struct ir_value **results)
{
    for (uint32_t i = 0; i < s->loop.op->n_results; i++) {
        if (i < s->loop.n_carried)
            results[i] = final_carried(s, batch, i);
        else
            results[i] = batch_stacked(batch, ir_operand(s->loop.ret, i + 1), s->loop.ret);
        if (!results[i]) {
            if (!batch->reason)
                batch->reason = "what it leaves has no form for all iterations at once";
            if (!batch->blamed)
                batch->blamed = s->loop.op;
            return false;
        }
    }
    return true;
}
