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
    if (!batched) /* it broadcasts to all of them */
        return source;
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
        if (!source || !batch_region(batch, assign, false, ir_operand(assign, 0)->type, region) ||
            !region->in_range)
            return NULL;
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
    case CARRIED_SCATTERED:
        return parallel_scatter(s, batch, k);
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
