/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes for all iterations at once: accesses, assigns and Gather (batch_rules.h). */
#include "passes/analysis/loops.h"
#include "passes/loops/batch_rules.h"

/* The indices of a rule that only selects along the first axes, as i64[n, count]; NULL: it is
 * another. */
static struct ir_value *selected(struct batch *batch, const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    struct ir_value *columns[TSSA_MAX_RANK];
    if (rule->n_steps < 2 || rule->n_steps > TSSA_MAX_RANK)
        return NULL;
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        if (step->kind != RULE_SELECT || step->params[0].value != 0)
            return NULL;
        const struct ir_value *index = rule_param_value(op, &step->params[1]);
        if (!index || index->type->kind != TYPE_TENSOR || index->type->rank != 0 ||
            index->type->dtype != TSSA_INT64)
            return NULL;
    }
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        struct ir_value *index = rule_param_value(op, &rule->steps[i].params[1]);
        columns[i] = batch_unsqueeze(batch, op, batch_stacked(batch, index, op), 1, 1);
    }
    return batch_concat(batch, op, 1, rule->n_steps, columns);
}

/* Elements or rows of an invariant tensor that several indices name. */
static bool access_elements(struct batch *batch, const struct ir_op *op)
{
    bool batched;
    struct ir_value *base = batch_operand(batch, op, 0, &batched);
    struct ir_value *operands[] = {base, batched ? NULL : selected(batch, op)};
    struct ir_op *made = batch_make(batch, op, IR_OP_GatherND, 2, operands);
    return made && batch_define(batch, op, 0, &made->results[0], true);
}

bool batch_rule_access(struct batch *batch, const struct ir_op *op)
{
    bool batched;
    struct batch_region *region = batch_new_region(batch);
    struct ir_value *base = batch_operand(batch, op, 0, &batched);
    if (access_elements(batch, op))
        return true;
    if (batch->status || !region ||
        !batch_region(batch, op, batched, ir_operand(op, 0)->type, region))
        return false;
    struct ir_op *access =
        rule_access_create(batch->graph, base, region->rule, region->n_params, region->params);
    if (!batch_put(batch, access))
        return false;
    access->name = op->name;
    struct ir_value *value = &access->results[0];
    if (!region->in_range)
        value = batch_check(batch, op, value);
    return value && batch_define(batch, op, 0, value, true);
}

/* An assign into a value of the iteration; loops whose carried value it is are not handled here. */
bool batch_rule_assign(struct batch *batch, const struct ir_op *op)
{
    struct batch_region *region = batch_new_region(batch);
    struct ir_value *base = batch_stacked(batch, ir_operand(op, 0), op);
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_type *type = ir_operand(op, 0)->type;
    int rank;
    if (!region || !base || !batch_region(batch, op, true, type, region) || !region->in_range)
        return false;
    tssa_status *status =
        rule_region_shape((struct ir_op *)op, type->rank, type->dims, &rank, dims);
    bool known = !status && rank >= 0;
    tssa_status_free(status);
    struct ir_value *source = known ? batch_aligned(batch, op, 1, rank) : NULL;
    if (!source)
        return false;
    struct ir_op *assign = rule_assign_create(batch->graph, base, source, region->rule,
                                              region->n_params, region->params);
    if (!batch_put(batch, assign))
        return false;
    assign->name = op->name;
    return batch_define(batch, op, 0, &assign->results[0], true);
}

/* One axis of an invariant tensor at indices that differ: the indices' axis comes to the front. */
static bool gather_stacked(struct batch *batch, const struct ir_op *op, int axis)
{
    bool batched;
    struct ir_op *copy = batch_copy_operands(batch, op);
    (void)batch_operand(batch, op, 0, &batched);
    if (!copy || !batch_put(batch, copy))
        return false;
    struct ir_value *value = batch_move_axis(batch, op, &copy->results[0], axis, 0);
    return value && batch_define(batch, op, 0, value, true);
}

/* Row i of a tensor, where i is the iteration: a Slice instead of a Gather. */
static bool gather_slice(struct batch *batch, const struct ir_op *op, int axis)
{
    const struct ir_known *known = ir_operand(op, 1)->known;
    struct rule_param params[2] = {rule_constant(axis), rule_operand(0)};
    const struct rule *rule =
        rule_create(batch->graph, 1, &(struct rule_step){RULE_SELECT, 2, params});
    int64_t factor, offset;
    if (!rule)
        return batch_out_of_memory(batch);
    if (batch_rank(op, 1) != 0 || !known || known->count != 1 ||
        !batch_affine(batch, known->elements[0], &factor, &offset))
        return false;
    /* As an access, in the body for a moment: the rule asks its op for params. */
    struct ir_value *index = ir_operand(op, 1);
    struct ir_op *access = rule_access_create(batch->graph, ir_operand(op, 0), rule, 1, &index);
    if (!access)
        return batch_out_of_memory(batch);
    access->name = op->name;
    ir_op_insert_before(access, (struct ir_op *)op);
    bool done = batch_rule_access(batch, access), batched;
    struct ir_value *value = done ? batch_get(batch, &access->results[0], &batched) : NULL;
    ir_op_remove(access);
    return value && batch_define(batch, op, 0, value, true);
}

/* Both differ: rows of the axis that comes next. */
static bool gather_rows(struct batch *batch, const struct ir_op *op)
{
    bool batched;
    int64_t last = batch_rank(op, 1) + 1;
    struct ir_value *indices =
        batch_unsqueeze(batch, op, batch_operand(batch, op, 1, &batched), (int)last, 1);
    struct ir_value *operands[] = {batch_operand(batch, op, 0, &batched), indices};
    struct ir_op *made = batch_new(batch, op, IR_OP_GatherND, 2, operands);
    if (!made)
        return false;
    return batch_set_int(batch, made, "batch_dims", 1) && batch_put(batch, made) &&
           batch_define(batch, op, 0, &made->results[0], true);
}

bool batch_rule_gather(struct batch *batch, const struct ir_op *op)
{
    int64_t axis = ir_op_axis(op);
    int rank = batch_rank(op, 0);
    if (axis < 0)
        axis += rank;
    if (axis < 0 || axis >= rank)
        return false;
    if (!batch_has_axis(batch, op, 1)) {
        struct ir_op *copy = batch_copy_operands(batch, op);
        return copy && batch_set_int(batch, copy, "axis", axis + 1) &&
               batch_finish(batch, op, copy);
    }
    if (batch_has_axis(batch, op, 0))
        return axis == 0 && gather_rows(batch, op);
    if (gather_slice(batch, op, (int)axis))
        return true;
    return !batch->status && gather_stacked(batch, op, (int)axis);
}
