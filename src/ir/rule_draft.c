/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/rule_draft.h"

static struct rule_param *draft_params(struct rule_draft *draft, enum rule_kind kind, uint32_t n)
{
    if (draft->n_steps == RULE_MAX_STEPS ||
        draft->n_params + n > sizeof draft->params / sizeof *draft->params) {
        draft->full = true;
        return NULL;
    }
    struct rule_param *params = draft->params + draft->n_params;
    draft->steps[draft->n_steps++] =
        (struct rule_step){.kind = kind, .n_params = n, .params = params};
    draft->n_params += n;
    return params;
}

void draft_step(struct rule_draft *draft, enum rule_kind kind, uint32_t n, const int64_t *params)
{
    struct rule_param *to = draft_params(draft, kind, n);
    for (uint32_t i = 0; to && i < n; i++)
        to[i] = rule_constant(params[i]);
}

static struct rule_param draft_operand(struct rule_draft *draft, struct ir_value *value)
{
    if (draft->n_operands == RULE_MAX_STEPS) {
        draft->full = true;
        return rule_constant(0);
    }
    draft->operands[draft->n_operands] = value;
    return rule_operand(draft->n_operands++);
}

void draft_step_value(struct rule_draft *draft, enum rule_kind kind, int64_t axis,
                      struct ir_value *value)
{
    struct rule_param *to = draft_params(draft, kind, 2);
    if (!to)
        return;
    to[0] = rule_constant(axis);
    to[1] = draft_operand(draft, value);
}

void draft_sizes(struct rule_draft *draft, enum rule_kind kind, uint32_t n, const int64_t *dims,
                 struct ir_value *const *sizes)
{
    struct rule_param *to = draft_params(draft, kind, n);
    for (uint32_t i = 0; to && i < n; i++) {
        const struct tensor *constant = sizes[i] ? ir_value_constant(sizes[i]) : NULL;
        to[i] = constant   ? rule_constant(dtype_load_int64(constant->dtype, constant->data))
                : sizes[i] ? draft_operand(draft, sizes[i])
                           : rule_constant(dims ? dims[i] : 0); /* of what could not be made */
    }
}

void draft_select(struct rule_draft *draft, int64_t axis, int64_t index)
{
    draft_step(draft, RULE_SELECT, 2, (const int64_t[]){axis, index});
}

void draft_slice(struct rule_draft *draft, int64_t axis, int64_t start, int64_t end, int64_t step)
{
    draft_step(draft, RULE_SLICE, 4, (const int64_t[]){axis, start, end, step});
}

void draft_permute(struct rule_draft *draft, int rank, const int64_t *perm)
{
    for (int i = 0; i < rank; i++)
        if (perm[i] != i) {
            draft_step(draft, RULE_PERMUTE, (uint32_t)rank, perm);
            return;
        }
}

void draft_rule(struct rule_draft *draft, const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        struct rule_param *to = draft_params(draft, step->kind, step->n_params);
        for (uint32_t p = 0; to && p < step->n_params; p++)
            to[p] = step->params[p].is_operand
                        ? draft_operand(draft, rule_param_value(op, &step->params[p]))
                        : step->params[p];
    }
}
