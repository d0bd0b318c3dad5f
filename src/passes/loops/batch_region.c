/* SPDX-License-Identifier: Apache-2.0 */
/* The region that an access or an assign names in all iterations of a loop at once: its rule with
 * one axis more, step by step (batch.h). */
#include "passes/analysis/loops.h"
#include "passes/analysis/regions.h"
#include "passes/loops/batch.h"

bool batch_affine(const struct batch *batch, const struct dim *value, int64_t *factor,
                  int64_t *offset)
{
    const struct dim *by, *at_zero;
    return value && batch->counter &&
           dim_affine(&batch->graph->dims, value, batch->counter, &by, &at_zero) &&
           dim_is_const(by, factor) && dim_is_const(at_zero, offset);
}

bool batch_is_reversed(const struct batch *batch, const struct ir_op *op,
                       const struct rule_param *index)
{
    struct dim_table *table = &batch->graph->dims;
    const struct dim *value = rule_param_dim(op, index), *by, *first;
    return value && batch->counter && dim_affine(table, value, batch->counter, &by, &first) &&
           dim_is(by, -1) && first == dim_sub(table, batch->n_all, dim_const(table, 1));
}

/* The steps that are being made. */
struct maker {
    struct batch *batch;
    const struct ir_op *op;
    struct batch_region *region;
    struct rule_step steps[RULE_MAX_STEPS + 2];
    uint32_t n_steps;
    bool in_front; /* the axis is there */
};

static struct rule_param *new_params(struct maker *m, uint32_t count)
{
    struct rule_param *params =
        ARENA_ARRAY(&m->batch->graph->arena, struct rule_param, (size_t)count + 1);
    if (!params)
        batch_out_of_memory(m->batch);
    return params;
}

static bool push(struct maker *m, enum rule_kind kind, uint32_t n, const struct rule_param *params)
{
    if (!params || m->n_steps == RULE_MAX_STEPS)
        return false;
    m->steps[m->n_steps++] = (struct rule_step){kind, n, params};
    return true;
}

static bool operand_param(struct maker *m, struct ir_value *value, struct rule_param *param)
{
    if (!value || m->region->n_params == IR_VARIADIC - 4)
        return false;
    *param = rule_operand(m->region->n_params);
    m->region->params[m->region->n_params++] = value;
    return true;
}

/* The number of iterations as a param. */
static bool trips_param(struct maker *m, struct rule_param *param)
{
    int64_t n;
    if (!dim_is_const(m->batch->n_trips, &n))
        return operand_param(m, m->batch->trips, param);
    *param = rule_constant(n);
    return true;
}

/* A param outside the loop; false when it differs between iterations. */
static bool outer_param(struct maker *m, const struct rule_param *from, struct rule_param *to)
{
    bool batched;
    const struct ir_value *value = rule_param_value(m->op, from);
    *to = *from;
    if (!from->is_operand)
        return true;
    struct ir_value *outer = value ? batch_get(m->batch, value, &batched) : NULL;
    return outer && !batched && operand_param(m, outer, to);
}

static bool is_batched_param(const struct maker *m, const struct rule_param *param)
{
    bool batched = false;
    const struct ir_value *value = rule_param_value(m->op, param);
    return value && batch_get(m->batch, value, &batched) && batched;
}

/* permute(axis, the others in order): the axis comes to the front. */
static bool push_to_front(struct maker *m, uint32_t axis, int rank)
{
    struct rule_param *params = new_params(m, (uint32_t)rank);
    if (!params || axis == 0)
        return params != NULL;
    for (int i = 0, k = 0; i < rank; i++)
        if (i != (int)axis)
            params[++k] = rule_constant(i);
    params[0] = rule_constant(axis);
    return push(m, RULE_PERMUTE, (uint32_t)rank, params);
}

/* offset + i for i = 0 ... n - 1, or the same of a block: all must be there. */
static bool push_span(struct maker *m, uint32_t axis, int64_t offset, const struct dim *dim)
{
    struct batch *batch = m->batch;
    struct rule_param *params = new_params(m, 3);
    if (!batch->first && offset == 0 && batch->n_trips == dim)
        return true; /* all of it */
    if (!params)
        return false;
    params[0] = rule_constant(axis);
    params[1] = rule_constant(offset);
    return (!batch->first || operand_param(m, batch_start(batch, m->op, 1, offset), &params[1])) &&
           trips_param(m, &params[2]) && push(m, RULE_SPAN, 3, params);
}

/* Is the last of all iterations known to be within the dim? */
static bool is_in_range(const struct maker *m, int64_t factor, int64_t offset,
                        const struct dim *dim)
{
    int64_t n, size, last;
    return dim_is_const(m->batch->n_all, &n) && dim_is_const(dim, &size) &&
           !__builtin_mul_overflow(factor, n - 1, &last) &&
           !__builtin_add_overflow(last, offset, &last) && last < size;
}

/* The same for a block of the iterations. */
static bool push_block(struct maker *m, uint32_t axis, int64_t factor, int64_t offset,
                       const struct dim *dim)
{
    struct batch *batch = m->batch;
    int64_t n, length;
    struct rule_param *params = new_params(m, 4);
    if (!params || factor < 1)
        return false;
    struct ir_value *start = batch_start(batch, m->op, factor, offset), *span = batch->trips;
    if (factor != 1 && dim_is_const(batch->n_trips, &n)) {
        if (__builtin_mul_overflow(factor, n, &length))
            return false;
        span = batch_ints(batch, 0, 1, &length);
    } else if (factor != 1) {
        span = batch_arithmetic(batch, m->op, IR_OP_Mul, span, batch_ints(batch, 0, 1, &factor));
    }
    struct ir_value *end = batch_arithmetic(batch, m->op, IR_OP_Add, start, span);
    params[0] = rule_constant(axis);
    params[3] = rule_constant(factor);
    if (!operand_param(m, start, &params[1]) || !operand_param(m, end, &params[2]))
        return false;
    m->region->in_range &= is_in_range(m, factor, offset, dim);
    return push(m, RULE_SLICE, 4, params);
}

/* factor * i + offset for i = 0 ... n - 1 is slice(axis, first, end, factor), or a span of what a
 * run may not have. */
static bool push_affine(struct maker *m, uint32_t axis, int64_t factor, int64_t offset,
                        const struct dim *dim)
{
    int64_t n, last, size;
    bool fixed = dim_is_const(m->batch->n_trips, &n);
    if (offset < 0 || factor == 0 || (factor < 0 && !fixed))
        return false;
    if (factor == 1 && !is_in_range(m, factor, offset, dim))
        return push_span(m, axis, offset, dim);
    if (m->batch->first)
        return push_block(m, axis, factor, offset, dim);
    struct rule_param *params = new_params(m, 4);
    if (!params || !fixed || __builtin_mul_overflow(factor, n - 1, &last) ||
        __builtin_add_overflow(last, offset, &last) || last < 0)
        return false;
    params[0] = rule_constant(axis);
    params[1] = rule_constant(offset);
    params[3] = rule_constant(factor);
    params[2] = rule_constant(factor > 0 ? last + 1 : last ? last - 1 : INT64_MIN);
    /* An index that is out of range must stay an error: the caller checks how long the axis is. */
    if (!dim_is_const(dim, &size) || last >= size || offset >= size)
        m->region->in_range = false;
    return push(m, RULE_SLICE, 4, params);
}

/* n - 1 - i for i = 0 ... n - 1, of an axis of n: all of it, from the end. Blocks have no such
 * form. */
static bool push_reversed(struct maker *m, uint32_t axis, const struct rule_param *index,
                          const struct dim *dim)
{
    struct rule_param *params = new_params(m, 4);
    if (!params || m->batch->first || dim != m->batch->n_trips ||
        !batch_is_reversed(m->batch, m->op, index))
        return false;
    params[0] = rule_constant(axis);
    params[1] = rule_constant(-1);
    params[2] = rule_constant(INT64_MIN);
    params[3] = rule_constant(-1);
    return push(m, RULE_SLICE, 4, params);
}

static bool push_gather(struct maker *m, uint32_t axis, const struct rule_param *index)
{
    bool batched;
    struct rule_param *params = new_params(m, 2);
    struct ir_value *value = rule_param_value(m->op, index);
    struct ir_value *stacked = value ? batch_get(m->batch, value, &batched) : NULL;
    if (!params || !stacked || ir_op_is(m->op, IR_OP_assign))
        return false; /* rows that are written must be proven to differ */
    if (stacked->type->rank != 1)
        stacked = batch_flat_index(m->batch, m->op, stacked);
    params[0] = rule_constant(axis);
    return operand_param(m, stacked, &params[1]) && push(m, RULE_GATHER, 2, params);
}

/* select(axis, index that differs between iterations) */
static bool batch_select(struct maker *m, const struct rule_step *step,
                         const struct dim *const *dims, int rank)
{
    int64_t factor, offset;
    uint32_t axis = (uint32_t)step->params[0].value;
    if (m->in_front)
        return false;
    m->in_front = true;
    uint32_t n_params = m->region->n_params;
    if (!batch_affine(m->batch, rule_param_dim(m->op, &step->params[1]), &factor, &offset) ||
        !push_affine(m, axis, factor, offset, dims[axis])) {
        m->region->n_params = n_params;
        if (!push_reversed(m, axis, &step->params[1], dims[axis]) &&
            !push_gather(m, axis, &step->params[1]))
            return false;
    }
    return push_to_front(m, axis, rank);
}

/*
 * gather(axis, indices that differ between iterations): theirs is the first of the axes that come.
 */
static bool batch_gather(struct maker *m, const struct rule_step *step, int rank)
{
    bool batched;
    uint32_t axis = (uint32_t)step->params[0].value;
    struct rule_param *params = new_params(m, 2);
    struct ir_value *stacked =
        batch_get(m->batch, rule_param_value(m->op, &step->params[1]), &batched);
    if (!params || !stacked || m->in_front || ir_op_is(m->op, IR_OP_assign))
        return false; /* rows that are written must be proven to differ */
    m->in_front = true;
    rank += stacked->type->rank - 1;
    params[0] = rule_constant(axis);
    return rank <= TSSA_MAX_RANK && operand_param(m, stacked, &params[1]) &&
           push(m, RULE_GATHER, 2, params) && push_to_front(m, axis, rank);
}

#define MAX_WINDOW 64 /* rows that an iteration reads */
/* Elements, where kernels read them as they lie, and a copy would be more than a call. */
#define MAX_SESSION_WINDOW 16

/* Is a copy of what each iteration reads worth less than its calls? */
static bool is_worth_copying(const struct maker *m, const struct dim *const *dims, int rank,
                             uint32_t axis, int64_t length)
{
    int64_t size;
    if (!pass_is_for_session(m->batch->pass))
        return true;
    for (int i = 0; i < rank; i++)
        if (i != (int)axis && (!dim_is_const(dims[i], &size) || size > MAX_SESSION_WINDOW ||
                               (length *= size) > MAX_SESSION_WINDOW))
            return false;
    return length <= MAX_SESSION_WINDOW;
}

/* The places start, start + 1, ... of each iteration, as i64[n, length]. */
static struct ir_value *window_places(struct maker *m, const struct rule_param *start,
                                      int64_t length)
{
    bool batched;
    const struct ir_value *value = rule_param_value(m->op, start);
    struct ir_value *stacked = value ? batch_get(m->batch, value, &batched) : NULL;
    int64_t *offsets = ARENA_ARRAY(&m->batch->graph->arena, int64_t, (size_t)length);
    if (!offsets)
        batch_out_of_memory(m->batch);
    if (!offsets || !stacked || !batched)
        return NULL;
    for (int64_t i = 0; i < length; i++)
        offsets[i] = i;
    if (stacked->type->rank != 1)
        stacked = batch_flat_index(m->batch, m->op, stacked);
    struct ir_value *operands[] = {stacked ? batch_unsqueeze(m->batch, m->op, stacked, 1, 1) : NULL,
                                   batch_ints(m->batch, 1, (size_t)length, offsets)};
    struct ir_op *sum =
        operands[0] && operands[1] ? batch_make(m->batch, m->op, IR_OP_Add, 2, operands) : NULL;
    return sum ? &sum->results[0] : NULL;
}

/*
 * slice(axis, start, start + length, 1) that moves with the counter, and all of which is there in
 * every iteration.
 */
static bool batch_window(struct maker *m, const struct rule_step *step,
                         const struct dim *const *dims, int rank)
{
    struct dim_table *table = &m->batch->graph->dims;
    const struct rule_param *by = &step->params[3];
    const struct dim *start = rule_param_dim(m->op, &step->params[1]);
    const struct dim *end = rule_param_dim(m->op, &step->params[2]);
    uint32_t axis = (uint32_t)step->params[0].value;
    int64_t length;
    if (m->in_front || rank >= TSSA_MAX_RANK || ir_op_is(m->op, IR_OP_assign) || !start || !end ||
        by->is_operand || by->value != 1 || !dim_is_const(dim_sub(table, end, start), &length) ||
        length < 1 || length > MAX_WINDOW || !is_worth_copying(m, dims, rank, axis, length))
        return false;
    const struct dim *last = dim_sub(table, end, dim_const(table, 1));
    if (!loop_counts_within(m->op, start, dims[axis]) ||
        !loop_counts_within(m->op, last, dims[axis]))
        return false;
    struct rule_param *params = new_params(m, 2);
    struct ir_value *places = window_places(m, &step->params[1], length);
    if (!params || !places)
        return false;
    m->in_front = true;
    params[0] = rule_constant(axis);
    return operand_param(m, places, &params[1]) && push(m, RULE_GATHER, 2, params) &&
           push_to_front(m, axis, rank + 1);
}

/* Constant axes, one more each. */
static bool shift_axes(struct maker *m, const struct rule_step *step, struct rule_param *params,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        params[i] = rule_constant(step->params[i].value + m->in_front);
    for (uint32_t i = count; i < step->n_params; i++)
        if (!outer_param(m, &step->params[i], &params[i]))
            return false;
    return push(m, step->kind, step->n_params, params);
}

/* A param for the axis in front, then those of the step. */
static bool prepend(struct maker *m, const struct rule_step *step, struct rule_param *params,
                    struct rule_param first)
{
    params[0] = first;
    for (uint32_t i = 0; i < step->n_params; i++)
        if (!outer_param(m, &step->params[i], &params[i + m->in_front]))
            return false;
    return push(m, step->kind, step->n_params + m->in_front, params);
}

static bool has_rest(const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (step->params[i].is_operand || step->params[i].value == -1)
            return true;
    return false;
}

/* New axes come after the one in front. */
static bool shift_expand(struct maker *m, const struct rule_step *step, int rank)
{
    uint32_t added = step->n_params - (uint32_t)rank;
    struct rule_param *params = new_params(m, step->n_params + 1), *axes = new_params(m, added),
                      n = rule_constant(0);
    if (!params || !axes || (m->in_front && !trips_param(m, &n)))
        return false;
    for (uint32_t i = 0; i < added; i++)
        axes[i] = rule_constant(1 + i);
    if (m->in_front && added && !push(m, RULE_UNSQUEEZE, added, axes))
        return false;
    return prepend(m, step, params, n);
}

static bool shift_step(struct maker *m, const struct rule_step *step)
{
    struct rule_param *params = new_params(m, step->n_params + 1), n = rule_constant(0);
    if (!params)
        return false;
    switch (step->kind) {
    case RULE_SELECT:
    case RULE_SLICE:
    case RULE_SPAN:
    case RULE_GATHER:
    case RULE_MASK:
        return shift_axes(m, step, params, 1);
    case RULE_DIAGONAL:
        return shift_axes(m, step, params, 2);
    case RULE_SQUEEZE:
    case RULE_UNSQUEEZE:
        return shift_axes(m, step, params, step->n_params);
    case RULE_PERMUTE:
        params[0] = rule_constant(0);
        for (uint32_t i = 0; i < step->n_params; i++)
            params[i + m->in_front] = rule_constant(step->params[i].value + m->in_front);
        return push(m, step->kind, step->n_params + m->in_front, params);
    case RULE_RESHAPE:
        /* Without elements -1 could be anything. */
        if (m->in_front &&
            (!trips_param(m, &n) || (has_rest(step) && batch_may_be_empty(m->batch))))
            return false;
        return prepend(m, step, params, n);
    case RULE_TILE:
        return prepend(m, step, params, rule_constant(1));
    default:
        return false;
    }
}

static bool needs_counter(const struct maker *m, const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (is_batched_param(m, &step->params[i]))
            return true;
    return false;
}

/* A step that differs between iterations, or that needs the shape before it. */
static bool batch_step(struct maker *m, const struct rule_step *step, bool differs,
                       const struct dim *const *dims, int rank)
{
    if (!differs)
        return shift_expand(m, step, rank);
    if (step->kind == RULE_SELECT)
        return batch_select(m, step, dims, rank);
    if (step->kind == RULE_SLICE)
        return batch_window(m, step, dims, rank);
    return step->kind == RULE_GATHER && batch_gather(m, step, rank);
}

static bool make_steps(struct maker *m, const struct rule *rule, const struct ir_type *base)
{
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        const struct rule prefix = {.n_steps = i, .steps = rule->steps};
        const struct dim *dims[TSSA_MAX_RANK];
        int rank;
        bool differs = needs_counter(m, step);
        if (!differs && step->kind != RULE_EXPAND) {
            if (!shift_step(m, step))
                return false;
            continue;
        }
        tssa_status *status =
            rule_prefix_shape((struct ir_op *)m->op, &prefix, base->rank, base->dims, &rank, dims);
        bool known = !status && rank >= 0;
        tssa_status_free(status);
        if (!known || !batch_step(m, step, differs, dims, rank))
            return false;
    }
    return true;
}

struct batch_region *batch_new_region(struct batch *batch)
{
    struct batch_region *region = ARENA_NEW(&batch->graph->arena, struct batch_region);
    if (!region)
        batch_out_of_memory(batch);
    return region;
}

bool batch_region(struct batch *batch, const struct ir_op *op, bool base_batched,
                  const struct ir_type *base, struct batch_region *region)
{
    struct maker *m = ARENA_NEW(&batch->graph->arena, struct maker);
    if (!m)
        return batch_out_of_memory(batch);
    *m = (struct maker){.batch = batch, .op = op, .region = region, .in_front = base_batched};
    region->n_params = 0;
    region->in_range = true;
    if (!make_steps(m, rule_of(op), base) || !m->in_front)
        return false;
    region->rule = rule_create(batch->graph, m->n_steps, m->steps);
    return region->rule != NULL || batch_out_of_memory(batch);
}
