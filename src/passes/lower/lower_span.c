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

struct ir_value *lower_read_span(struct lowering *l, struct ir_value *x, int axis,
                                 const struct rule_step *step, struct ir_value *const *params)
{
    if (lower_rank(x) <= axis)
        return NULL;
    const struct lower_number start = lower_param(l, &step->params[1], params),
                              count = lower_param(l, &step->params[2], params);
    struct ir_value *there =
        lower_slice(l, x, axis, lower_number_list(l, &start), end_of(l, &start, &count));
    return there ? check_length(l, there, axis, &count) : NULL;
}

bool lower_has_spans(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind == RULE_SPAN)
            return true;
    return false;
}

bool lower_spans_cut_alone(const struct writer *w)
{
    int n = 0;
    for (uint32_t i = 0; i < w->rule->n_steps; i++)
        n += w->rule->steps[i].kind == RULE_SPAN;
    for (int axis = 0; axis < w->region.base_rank; axis++)
        n -= lower_span_of(w, axis) != NULL;
    return n == 0;
}

/* A param as a number without axes. */
static struct ir_value *scalar_of(struct writer *w, const struct rule_param *param)
{
    const struct lower_number number = lower_param(w->l, param, w->params);
    return number.value ? lower_scalar(w->l, w->params[param->value], 0)
                        : lower_int(w->l, number.number);
}

/* ScatterND fails by itself where there are not enough rows, and copies what stays at most once. */
static struct ir_value *scatter_span(struct writer *w, const struct rule_step *span,
                                     struct ir_value *x, struct ir_value *part)
{
    struct lowering *l = w->l;
    struct ir_value *start = scalar_of(w, &span->params[1]), *end = scalar_of(w, &span->params[2]);
    if (span->params[1].is_operand || span->params[1].value > 0)
        end = lower_binary(l, IR_OP_Add, start, end);
    struct ir_value *const range[] = {start, end, lower_int(l, 1)};
    struct ir_value *rows = lower_emit(l, IR_OP_Range, 3, range);
    struct ir_value *const operands[] = {x, lower_unsqueeze(l, rows, 1, (const int64_t[]){1}),
                                         part};
    return lower_emit(l, IR_OP_ScatterND, 3, operands);
}

/* What is before, the part, what is behind, and a Reshape to the shape that it should have, which
 * fails where it has another one. */
static struct ir_value *join_span(struct writer *w, const struct rule_step *span,
                                  struct ir_value *x, struct ir_value *part, int axis)
{
    struct lowering *l = w->l;
    const struct lower_number start = lower_param(l, &span->params[1], w->params),
                              count = lower_param(l, &span->params[2], w->params);
    struct ir_value *parts[3];
    uint32_t n = 0;
    if (start.value || start.number > 0)
        parts[n++] = lower_slice(l, x, axis, lower_list(l, 0), lower_number_list(l, &start));
    parts[n++] = part;
    parts[n++] = lower_slice(l, x, axis, end_of(l, &start, &count), lower_list(l, INT64_MAX));
    struct ir_value *const operands[] = {lower_concat(l, n, parts, axis),
                                         lower_emit(l, IR_OP_Shape, 1, &x)};
    return lower_emit(l, IR_OP_Reshape, 2, operands);
}

struct ir_value *lower_write_span(struct writer *w, struct ir_value *x, struct ir_value *part,
                                  int axis)
{
    const struct rule_step *span = lower_span_of(w, axis);
    if (!span)
        return NULL;
    return axis == 0 ? scatter_span(w, span, x, part) : join_span(w, span, x, part, axis);
}
