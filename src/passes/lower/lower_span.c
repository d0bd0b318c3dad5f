/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: what must be there, or the run fails. A Slice takes what there is, so that another
 * operator asks for how much that is: a Reshape, which copies nothing, or a ScatterND. It cannot of
 * elements of no size: then nothing fails.
 */
#include "passes/lower/lower_writer.h"

static struct ir_value *end_of(struct lowering *l, const struct lower_number *start,
                               const struct lower_number *count)
{
    int64_t end;
    if (!start->value && start->number == 0)
        return lower_number_list(l, count);
    if (!start->value && !count->value &&
        !__builtin_add_overflow(start->number, count->number, &end))
        return lower_list(l, end);
    return lower_binary(l, IR_OP_Add, lower_number_list(l, start), lower_number_list(l, count));
}

/* x, or a failure where the axis is not so long. Other dims are 0: as they are. */
static struct ir_value *check_length(struct lowering *l, struct ir_value *x, int64_t axis,
                                     const struct lower_number *count)
{
    struct lower_number dims[TSSA_MAX_RANK] = {{0}};
    if (!count->value && count->number == 0)
        return x;
    dims[axis] = *count;
    struct ir_value *const operands[] = {x, lower_numbers(l, lower_rank(x), dims)};
    return lower_emit(l, IR_OP_Reshape, 2, operands);
}

struct ir_value *lower_read_span(struct lowering *l, struct ir_value *x,
                                 const struct rule_step *step, struct ir_value *const *params)
{
    const int64_t axis = step->params[0].value;
    if (lower_rank(x) <= axis)
        return NULL;
    const struct lower_number start = lower_param(l, &step->params[1], params),
                              count = lower_param(l, &step->params[2], params);
    struct ir_value *rows =
        lower_slice(l, x, (int)axis, lower_number_list(l, &start), end_of(l, &start, &count));
    return rows ? check_length(l, rows, axis, &count) : NULL;
}

bool lower_has_spans(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind == RULE_SPAN)
            return true;
    return false;
}

/* start, start + 1, ...: rows of the span's axis. */
static struct ir_value *rows_of(struct writer *w, const struct lower_number *start,
                                const struct lower_number *count)
{
    struct lowering *l = w->l;
    const struct rule_param *params = w->rule->steps[0].params;
    struct ir_value *first =
        start->value ? lower_scalar(l, w->params[params[1].value], 0) : lower_int(l, start->number);
    struct ir_value *end = !count->value ? lower_int(l, count->number)
                                         : lower_scalar(l, w->params[params[2].value], 0);
    if (start->value || start->number > 0)
        end = lower_binary(l, IR_OP_Add, first, end);
    struct ir_value *const range[] = {first, end, lower_int(l, 1)};
    return lower_emit(l, IR_OP_Range, 3, range);
}

/* ScatterND fails by itself where there are not enough rows, and copies what stays at most once. */
static struct ir_value *scatter_span(struct writer *w, const struct lower_number *start,
                                     const struct lower_number *count, struct ir_value *s)
{
    struct ir_value *const operands[] = {
        w->x, lower_unsqueeze(w->l, rows_of(w, start, count), 1, (const int64_t[]){1}), s};
    return lower_emit(w->l, IR_OP_ScatterND, 3, operands);
}

/* What is before, the source, what is behind, and a Reshape to the shape that it should have, which
 * fails where it has another one. */
static struct ir_value *join_span(struct writer *w, int axis, const struct lower_number *start,
                                  const struct lower_number *count, struct ir_value *s)
{
    struct lowering *l = w->l;
    struct ir_value *parts[3];
    uint32_t n = 0;
    if (start->value || start->number > 0)
        parts[n++] = lower_slice(l, w->x, axis, lower_list(l, 0), lower_number_list(l, start));
    parts[n++] = s;
    parts[n++] = lower_slice(l, w->x, axis, end_of(l, start, count), lower_list(l, INT64_MAX));
    struct ir_value *const operands[] = {lower_concat(l, n, parts, axis),
                                         lower_emit(l, IR_OP_Shape, 1, &w->x)};
    return lower_emit(l, IR_OP_Reshape, 2, operands);
}

struct ir_value *lower_write_span(struct writer *w)
{
    const struct rule_step *step = w->rule->n_steps == 1 ? w->rule->steps : NULL;
    if (!step || step->kind != RULE_SPAN || lower_rank(w->x) <= step->params[0].value)
        return NULL;
    struct ir_value *s = lower_full_source(w);
    if (!s)
        return NULL;
    const int axis = (int)step->params[0].value;
    const struct lower_number start = lower_param(w->l, &step->params[1], w->params),
                              count = lower_param(w->l, &step->params[2], w->params);
    return axis == 0 ? scatter_span(w, &start, &count, s) : join_span(w, axis, &start, &count, s);
}
