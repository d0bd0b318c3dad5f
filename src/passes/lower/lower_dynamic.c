/* SPDX-License-Identifier: Apache-2.0 */
/* Places of an axis that only a run tells: a step of the rule alone cuts the axis there. */
#include <string.h>

#include "ir/rule_axes.h"
#include "passes/lower/lower_writer.h"

/* Steps that cut axes of the base; a step that cuts one alone. Behind what is neither that nor a
 * rearrangement nobody can tell. */
void lower_find_dynamic(struct writer *w)
{
    struct rule_axes axes;
    bool seen[TSSA_MAX_RANK] = {false};
    rule_axes_begin(&axes, w->region.base_rank);
    for (uint32_t i = 0; i < w->rule->n_steps; i++) {
        const struct rule_step *step = &w->rule->steps[i];
        if (rule_axes_rearrange(&axes, step))
            continue;
        const bool cuts =
            step->kind == RULE_SELECT || step->kind == RULE_SLICE || step->kind == RULE_SPAN;
        const int axis = cuts ? axes.of[step->params[0].value] : -1;
        if (axis < 0) {
            memset(w->dynamic, 0, sizeof w->dynamic);
            return;
        }
        w->dynamic[axis] = seen[axis] ? NULL : step;
        seen[axis] = true;
        if (step->kind == RULE_SELECT)
            rule_axes_remove(&axes, step->params[0].value);
    }
}

const struct dim *lower_param_dim(struct writer *w, const struct rule_param *param)
{
    return param->is_operand ? region_scalar(w->l->space, w->params[param->value])
                             : dim_const(&w->l->graph->dims, param->value);
}

/* Is there a step that cuts the axis at [start, end), which needs no counting from the end? An
 * index may: it is made one that does not. */
bool lower_is_dynamic(struct writer *w, int axis)
{
    const struct rule_step *step = w->dynamic[axis];
    if (!step || step->kind != RULE_SLICE)
        return step && step->kind == RULE_SELECT;
    const struct dim *start = lower_param_dim(w, &step->params[1]),
                     *end = lower_param_dim(w, &step->params[2]);
    return dim_is(lower_param_dim(w, &step->params[3]), 1) && dim_at_least(start, 0) &&
           dim_at_least(dim_sub(&w->l->graph->dims, end, start), 0);
}

/* [start, end) as lists of one element. */
void lower_dynamic_bounds(struct writer *w, struct ir_value *x, int axis, struct ir_value **start,
                          struct ir_value **end)
{
    const struct rule_step *step = w->dynamic[axis];
    struct lower_number number = lower_param(w->l, &step->params[1], w->params);
    *start = lower_number_list(w->l, &number);
    if (step->kind == RULE_SLICE) {
        number = lower_param(w->l, &step->params[2], w->params);
        *end = lower_number_list(w->l, &number);
        return;
    }
    if (!dim_at_least(lower_param_dim(w, &step->params[1]), 0)) {
        struct lower_number dim = lower_dim(w->l, x, axis);
        *start = lower_binary(w->l, IR_OP_Mod, *start, lower_number_list(w->l, &dim));
    }
    *end = lower_binary(w->l, IR_OP_Add, *start, lower_list(w->l, 1));
}

struct ir_value *lower_slice(struct lowering *l, struct ir_value *x, int axis,
                             struct ir_value *start, struct ir_value *end)
{
    struct ir_value *const operands[] = {x, start, end, lower_list(l, axis)};
    return lower_emit(l, IR_OP_Slice, 4, operands);
}
