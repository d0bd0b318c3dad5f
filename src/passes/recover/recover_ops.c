/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that take the place of what is raised; see recover.h. */
#include <inttypes.h>
#include <stdio.h>

#include "ir/infer.h"
#include "passes/recover/recover.h"

static void take_name(struct ir_value *from, struct ir_value *to)
{
    to->name = from->name;
    from->name = NULL;
}

/* Puts `fresh` where result `index` of `op` was. */
static tssa_status *put(struct pass_context *pass, struct ir_op *op, uint32_t index,
                        struct ir_op *fresh)
{
    struct ir_value *old = &op->results[index], *new = &fresh->results[0];
    fresh->name = op->name;
    ir_op_insert_before(fresh, op);
    TRY(ir_infer_op_lenient(fresh));
    /* The same sizes, under the symbols that other types already use. */
    if (recover_is_ranked(old))
        new->type = old->type;
    ir_value_replace(old, new);
    take_name(old, new);
    pass->changed = true;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses)
            return NULL;
    ir_op_remove(op);
    return NULL;
}

tssa_status *recover_access(struct pass_context *pass, struct ir_op *op, uint32_t index,
                            struct ir_value *base, const struct rule_draft *draft)
{
    const struct rule *rule = rule_create(pass->graph, draft->n_steps, draft->steps);
    TRY_ALLOC(rule);
    struct ir_op *access =
        rule_access_create(pass->graph, base, rule, draft->n_operands, draft->operands);
    TRY_ALLOC(access);
    return put(pass, op, index, access);
}

tssa_status *recover_assign(struct pass_context *pass, struct ir_op *op, struct ir_value *base,
                            struct ir_value *source, const struct rule_draft *draft)
{
    const struct rule *rule = rule_create(pass->graph, draft->n_steps, draft->steps);
    struct text text;
    TRY_ALLOC(rule);
    struct ir_op *assign =
        rule_assign_create(pass->graph, base, source, rule, draft->n_operands, draft->operands);
    TRY_ALLOC(assign);
    text_init(&text, pass->graph->allocator);
    rule_print(rule, &text);
    const char *string = text_string(&text);
    tssa_status *status =
        string ? pass_remark(pass, TSSA_REMARK_APPLIED, op, "is a write to %s", string)
               : status_out_of_memory();
    text_free(&text);
    TRY(status);
    return put(pass, op, 0, assign);
}

tssa_status *recover_insert_access(struct pass_context *pass, struct ir_op *op,
                                   struct ir_value *base, const struct rule_draft *draft,
                                   struct ir_value **result)
{
    *result = base;
    if (draft->n_steps == 0)
        return NULL;
    const struct rule *rule = rule_create(pass->graph, draft->n_steps, draft->steps);
    TRY_ALLOC(rule);
    struct ir_op *access =
        rule_access_create(pass->graph, base, rule, draft->n_operands, draft->operands);
    TRY_ALLOC(access);
    access->name = op->name;
    ir_op_insert_before(access, op);
    *result = &access->results[0];
    return ir_infer_op_lenient(access);
}

void recover_replace(struct pass_context *pass, struct ir_op *op, struct ir_value *value)
{
    ir_value_replace(&op->results[0], value);
    ir_op_remove(op);
    pass->changed = true;
}

const char *recover_name(const struct ir_value *value, char *text, size_t size)
{
    char op[128];
    if (value->name) {
        snprintf(text, size, "%%%s", value->name);
    } else if (value->op) {
        ir_op_describe(value->op, op, sizeof op);
        snprintf(text, size, "%s", op);
    } else {
        snprintf(text, size, "parameter %" PRIu32 " of its block", value->index);
    }
    return text;
}
