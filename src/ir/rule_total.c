/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of rules that cannot fail. */
#include "ir/rule.h"

static bool is_within(int64_t low, int64_t high, const struct dim *dim)
{
    return dim->low > 0 && low >= -dim->low && high < dim->low; /* what is there in every run */
}

/* All that the indices can be, as they are known. */
static bool are_within(const struct ir_value *indices, const struct dim *dim)
{
    const struct ir_known *known = indices ? indices->known : NULL;
    for (size_t i = 0; known && i < known->count; i++)
        if (!known->elements[i] ||
            !is_within(known->elements[i]->low, known->elements[i]->high, dim))
            return false;
    return known != NULL;
}

static bool are_ones(const struct rule_step *step, const struct dim *const *dims)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (!dim_is(dims[step->params[i].value], 1))
            return false;
    return true;
}

static bool is_broadcast(const struct rule_step *step, int rank, const struct dim *const *dims)
{
    for (int i = 1; i <= (int)step->n_params; i++) {
        const struct rule_param *param = &step->params[(int)step->n_params - i];
        if (param->is_operand || param->value < 0)
            return false;
        if (i <= rank && param->value != 1 && !dim_is(dims[rank - i], 1) &&
            !dim_is(dims[rank - i], param->value))
            return false;
    }
    return rank <= (int)step->n_params;
}

/* Numbers of elements that are there in every run. */
static bool is_there(const struct rule_step *step, const struct dim *dim)
{
    const struct rule_param *start = &step->params[1], *count = &step->params[2];
    return !start->is_operand && !count->is_operand && start->value <= dim->low &&
           count->value <= dim->low - start->value;
}

static bool are_counts(const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (step->params[i].is_operand || step->params[i].value < 0)
            return false;
    return true;
}

bool rule_step_is_total(const struct rule_step *step, int rank, const struct dim *const *dims,
                        const struct ir_value *value)
{
    const struct rule_param *params = step->params;
    switch (step->kind) {
    case RULE_SELECT:
        return params[1].is_operand
                   ? are_within(value, dims[params[0].value])
                   : is_within(params[1].value, params[1].value, dims[params[0].value]);
    case RULE_GATHER:
        return are_within(value, dims[params[0].value]);
    case RULE_SQUEEZE:
        return are_ones(step, dims);
    case RULE_SLICE:
        return !params[3].is_operand;
    case RULE_SPAN:
        return is_there(step, dims[params[0].value]);
    case RULE_EXPAND:
        return is_broadcast(step, rank, dims);
    case RULE_TILE:
        return are_counts(step);
    case RULE_PERMUTE:
    case RULE_UNSQUEEZE:
    case RULE_DIAGONAL:
        return true;
    default:
        return false;
    }
}
