/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/turned.h"

#include "ir/rule.h"

int64_t turned_axis(int rank, int i, bool last)
{
    if (i == 0)
        return 0;
    if (last)
        return i == rank - 1 ? 1 : i + 1;
    return i == 1 ? rank - 1 : i - 1;
}

struct ir_op *turned_access(struct ir_graph *graph, struct ir_value *value, bool last)
{
    struct rule_param axes[TSSA_MAX_RANK];
    const int rank = value->type->rank;
    for (int i = 0; i < rank; i++)
        axes[i] = rule_constant(turned_axis(rank, i, last));
    const struct rule_step step = {RULE_PERMUTE, (uint32_t)rank, axes};
    const struct rule *rule = rule_create(graph, 1, &step);
    return rule ? rule_access_create(graph, value, rule, 0, NULL) : NULL;
}

struct ir_value *turned_from(const struct ir_value *value)
{
    const struct ir_op *op = value ? value->op : NULL;
    if (!op || !ir_op_is(op, IR_OP_access))
        return NULL;
    const struct rule *rule = rule_of(op);
    const int rank = value->type->rank;
    if (rule->n_steps != 1 || rule->steps[0].kind != RULE_PERMUTE || rank < 3)
        return NULL;
    for (int i = 0; i < rank; i++)
        if (rule->steps[0].params[i].value != turned_axis(rank, i, false))
            return NULL;
    return ir_operand(op, 0);
}

tssa_status *turned_value(struct ir_graph *graph, struct ir_value *value, struct ir_op *before,
                          struct ir_value **turned)
{
    *turned = turned_from(value);
    if (*turned)
        return NULL;
    struct ir_op *access = turned_access(graph, value, true);
    TRY(pass_insert(access, before));
    *turned = &access->results[0];
    return NULL;
}
