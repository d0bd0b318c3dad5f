/* SPDX-License-Identifier: Apache-2.0 */
/* What a loop carries and scatters into: rows that data tells, written or combined with. */
#include <string.h>

#include "passes/analysis/regions.h"
#include "passes/loops/parallelize.h"

/* What combines in any order, of integers, and what adds floats up in the order of the rows. */
static const struct {
    enum ir_op_id id;
    const char *reduction;
    int64_t opset; /* in which files can say it */
    dtype_mask types, session_types;
} combines[] = {
    {IR_OP_Add, "add", 16, T_I32I64, T_I32I64 | T_F32F64},
    {IR_OP_Mul, "mul", 16, T_I32I64, T_I32I64 | T_F32F64},
    {IR_OP_Max, "max", 18, T_I32I64, T_I32I64},
    {IR_OP_Min, "min", 18, T_I32I64, T_I32I64},
};

static bool has_opset(const struct ir_graph *graph, int64_t opset)
{
    for (size_t i = 0; i < graph->n_opsets; i++)
        if (strcmp(graph->opsets[i].domain, "") == 0)
            return graph->opsets[i].version >= opset;
    return true;
}

/* Rows, or elements, that numbers of an iteration name: [select(0, $0), select(0, $1), ...]. */
static bool selects_rows(const struct rule *rule, const struct ir_op *op)
{
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        const struct ir_value *index =
            step->kind == RULE_SELECT ? rule_param_value(op, &step->params[1]) : NULL;
        if (!index || step->params[0].value != 0 || index->type->kind != TYPE_TENSOR ||
            index->type->rank != 0 || index->type->dtype != TSSA_INT64)
            return false;
    }
    return rule->n_steps > 0 && rule->n_steps <= TSSA_MAX_RANK;
}

/* Is the value of the type of what is written, as it is? */
static bool fills_region(const struct ir_value *value, struct ir_op *assign)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_type *base = ir_operand(assign, 0)->type;
    int rank;
    tssa_status *status = rule_region_shape(assign, base->rank, base->dims, &rank, dims);
    bool fits = !status && value->type->kind == TYPE_TENSOR && value->type->rank == rank &&
                value->type->dtype == base->dtype;
    tssa_status_free(status);
    for (int i = 0; fits && i < rank; i++)
        fits = value->type->dims[i] == dims[i];
    return fits;
}

/* Does the op read of what is carried what the assign writes to? */
static bool reads_rows(struct parallel *s, const struct ir_op *op, const struct ir_op *assign)
{
    const struct rule *rule = rule_of(assign);
    if (ir_operand(op, 0) != ir_operand(assign, 0))
        return false;
    if (ir_op_is(op, IR_OP_access))
        return regions_identical(&s->space, op, assign);
    return ir_op_is(op, IR_OP_Gather) && ir_op_axis(op) == 0 && rule->n_steps == 1 &&
           ir_operand(op, 1) == rule_param_value(assign, &rule->steps[0].params[1]);
}

/* Which row of the table says what is done to what is there; -1: none. Reads of it are nothing
 * else's. */
static int find_combine(struct parallel *s, struct carried *c, const struct ir_value *param)
{
    struct ir_op *assign = c->assigns[0], *op = ir_operand(assign, 1)->op;
    bool session = pass_is_for_session(s->pass);
    size_t i = 0, n = sizeof combines / sizeof *combines;
    while (op && i < n && !ir_op_is(op, combines[i].id))
        i++;
    if (!op || i == n || op->parent != assign->parent || op->n_operands != 2 ||
        !loop_is_only_use(&op->results[0], assign, 1) ||
        !dtype_in(session ? combines[i].session_types : combines[i].types, param->type->dtype) ||
        (!session && !has_opset(s->pass->graph, combines[i].opset)))
        return -1;
    for (uint32_t k = 0; k < 2; k++) {
        struct ir_op *read = ir_operand(op, k) ? ir_operand(op, k)->op : NULL;
        if (!read || !loop_is_only_use(&read->results[0], op, k) || !reads_rows(s, read, assign))
            continue;
        c->combine = op;
        c->read = read;
        c->term = ir_operand(op, 1 - k);
        return (int)i;
    }
    return -1;
}

/* Elements of a row; each has an index of its own where there is no session. */
#define MAX_ROW 256

static bool has_short_rows(const struct ir_type *type)
{
    int64_t count = 1, size;
    for (int i = 1; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &size) || size > MAX_ROW || (count *= size) > MAX_ROW)
            return false;
    return true;
}

/* Do these two alone use what is carried? */
static bool is_used_by(const struct ir_value *param, const struct ir_op *a, const struct ir_op *b)
{
    for (const struct ir_use *use = param->uses; use; use = use->next)
        if ((use->user != a && use->user != b) || use != &use->user->operands[0])
            return false;
    return true;
}

bool parallel_check_scattered(struct parallel *s, uint32_t k)
{
    struct carried *c = &s->carried[k];
    const struct ir_value *param = loop_param(&s->loop, k), *next = loop_next(&s->loop, k);
    struct ir_op *op = next->op;
    if (!op || !ir_op_is(op, IR_OP_assign) || op->parent != s->loop.body ||
        ir_operand(op, 0) != param || !loop_is_only_use(next, s->loop.ret, k + 1) ||
        !selects_rows(rule_of(op), op))
        return false;
    *c = (struct carried){.kind = CARRIED_SCATTERED, .assigns = {op}, .n_assigns = 1};
    int row = find_combine(s, c, param);
    if (row < 0) { /* the last one that is written stays: so it is in sessions alone */
        c->term = ir_operand(op, 1);
        return pass_is_for_session(s->pass) && is_used_by(param, op, op) &&
               fills_region(c->term, op);
    }
    c->reduction = combines[row].reduction;
    return is_used_by(param, op, c->read) && fills_region(c->term, op) &&
           (pass_is_for_session(s->pass) ||
            (rule_of(op)->n_steps == 1 && has_short_rows(param->type)));
}

/* ---- What it leaves -------------------------------------------------------------------------- */

/* The indices of all iterations, as i64[n, count]. */
static struct ir_value *all_indices(struct batch *batch, const struct ir_op *assign)
{
    const struct rule *rule = rule_of(assign);
    struct ir_value *columns[TSSA_MAX_RANK];
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        struct ir_value *index = rule_param_value(assign, &rule->steps[i].params[1]);
        struct ir_value *stacked = batch_stacked(batch, index, assign);
        columns[i] = stacked ? batch_unsqueeze(batch, assign, stacked, 1, 1) : NULL;
        if (!columns[i])
            return NULL;
    }
    return rule->n_steps == 1 ? columns[0] : batch_concat(batch, assign, 1, rule->n_steps, columns);
}

/* The index of all iterations, for each element of a row. */
static struct ir_value *element_indices(struct batch *batch, const struct ir_op *assign,
                                        struct ir_value *terms)
{
    struct ir_value *index = rule_param_value(assign, &rule_of(assign)->steps[0].params[1]);
    struct ir_value *indices = batch_stacked(batch, index, assign);
    int rest = terms->type->rank - 1;
    if (!indices || rest == 0)
        return indices;
    struct ir_op *shape = batch_make(batch, assign, IR_OP_Shape, 1, &terms);
    struct ir_value *operands[] = {batch_unsqueeze(batch, assign, indices, 1, rest),
                                   shape ? &shape->results[0] : NULL};
    struct ir_op *expand =
        operands[0] && operands[1] ? batch_make(batch, assign, IR_OP_Expand, 2, operands) : NULL;
    return expand ? &expand->results[0] : NULL;
}

static bool set_reduction(struct batch *batch, struct ir_op *op, const char *reduction)
{
    const char *name = intern_str(&batch->graph->strings, "reduction");
    const struct ir_attr attr = {
        .name = name, .kind = IR_ATTR_STRING, .s = {reduction, strlen(reduction)}};
    return (name && ir_op_set_attr(batch->graph, op, &attr)) || batch_out_of_memory(batch);
}

/* Other runtimes may take several rows of a ScatterND at a time, and lose what one of them adds. */
struct ir_value *parallel_scatter(struct parallel *s, struct batch *batch, uint32_t k)
{
    const struct carried *c = &s->carried[k];
    const struct ir_op *assign = c->assigns[0];
    bool session = pass_is_for_session(s->pass);
    struct ir_value *terms = batch_stacked(batch, c->term, assign);
    struct ir_value *indices = !terms    ? NULL
                               : session ? all_indices(batch, assign)
                                         : element_indices(batch, assign, terms);
    struct ir_value *operands[] = {parallel_given(s, k), indices, terms};
    if (!indices)
        return NULL;
    struct ir_op *op =
        batch_new(batch, assign, session ? IR_OP_ScatterND : IR_OP_ScatterElements, 3, operands);
    if (!op || (!session && !batch_set_int(batch, op, "axis", 0)) ||
        (c->reduction && !set_reduction(batch, op, c->reduction)) || !batch_put(batch, op))
        return NULL;
    return &op->results[0];
}
