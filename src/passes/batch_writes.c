/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that only writes one and the same value to elements that its counter names is one write:
 *
 *     Loop(n, c, x) { (i, c, t): t1 = assign(t, v, a, b + i){[select(0, $0), select(0, $1)]}; return(c, t1) }
 *     ScatterND(x, [[a, b], [a, b + 1], ...], [v, v, ...])
 *
 * Whether iterations write the same elements does not matter, since they write the same value; that is why
 * this is more than independent iterations (parallelize), which must prove that they do not.
 *
 *   needs   assigns (recover), counters computed from the iteration's number (induction), invariants outside
 *           of the loop (hoist)
 *   keeps   types
 *   breaks  nothing
 */
#include "ir/clone.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/loops.h"
#include "passes/pass.h"

/* ---- Recognition ---------------------------------------------------------------------------------- */

static bool is_scalar(const struct ir_value *value)
{
    return value->type->kind == TYPE_TENSOR && value->type->rank == 0;
}

static bool is_index(const struct ir_value *value)
{
    return is_scalar(value) && value->type->dtype == TSSA_INT64;
}

static bool is_counter(const struct loop *loop, const struct ir_value *value)
{
    return value == loop->body->params[0];
}

/* The number that is added to the iteration's; NULL: the value is no such sum. */
static struct ir_value *offset_of(const struct loop *loop, const struct ir_value *value)
{
    const struct ir_op *op = value->op;
    if (!op || !ir_op_is(op, IR_OP_Add))
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        struct ir_value *other = ir_operand(op, 1 - i);
        if (is_counter(loop, ir_operand(op, i)) && !loop_makes(loop, other) && is_index(other))
            return other;
    }
    return NULL;
}

static bool is_known_index(const struct loop *loop, const struct ir_value *value)
{
    return is_index(value) &&
           (is_counter(loop, value) || !loop_makes(loop, value) || offset_of(loop, value));
}

/* An assign of a scalar to the one element that as many indices as the base has dims name. */
static bool writes_element(const struct loop *loop, const struct ir_op *assign)
{
    const struct rule *rule = rule_of(assign);
    const struct ir_value *base = ir_operand(assign, 0), *source = ir_operand(assign, 1);
    if (base->type->kind != TYPE_TENSOR || base->type->rank < 1 ||
        rule->n_steps != (uint32_t)base->type->rank || !is_scalar(source) ||
        loop_makes(loop, source))
        return false;
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        const struct ir_value *value = rule_param_value(assign, &step->params[1]);
        if (step->kind != RULE_SELECT || step->params[0].value != 0 ||
            (value && !is_known_index(loop, value)))
            return false;
    }
    return true;
}

static struct ir_op *only_write(const struct loop *loop, uint32_t k)
{
    struct ir_value *param = loop_param(loop, k), *next = loop_next(loop, k);
    struct ir_op *assign = next ? next->op : NULL;
    bool once = param->uses && !param->uses->next && next && next->uses && !next->uses->next;
    return once && assign && ir_op_is(assign, IR_OP_assign) && assign->parent == loop->body &&
                   ir_operand(assign, 0) == param && writes_element(loop, assign)
               ? assign
               : NULL;
}

static bool only_writes(const struct loop *loop)
{
    const struct ir_value *count = ir_operand(loop->op, 0);
    if (!count || !is_index(count) || loop->n_stacked || !loop->n_carried ||
        loop_enters(loop) != LOOP_TRUE || loop_stays(loop) != LOOP_TRUE)
        return false;
    for (uint32_t k = 0; k < loop->n_carried; k++)
        if (!loop_initial(loop, k) || !only_write(loop, k))
            return false;
    return true;
}

/* ---- Rewriting ------------------------------------------------------------------------------------ */

static tssa_status *emit(struct ir_op *at, enum ir_op_id id, uint32_t n,
                         struct ir_value *const *operands, struct ir_value **result)
{
    struct ir_op *op = loop_make_op(at, id, n);
    TRY_ALLOC(op);
    for (uint32_t i = 0; i < n; i++)
        ir_op_set_operand(op, i, operands[i]);
    *result = &op->results[0];
    return ir_infer_op_lenient(op);
}

/* 0, 1, ... for the iterations; and how many these are, as a shape. */
static tssa_status *make_range(const struct loop *loop, struct ir_value **range,
                               struct ir_value **shape)
{
    struct ir_value *operands[3] = {NULL, ir_operand(loop->op, 0), NULL};
    TRY(loop_make_int(loop->op, 0, 0, &operands[0]));
    TRY(loop_make_int(loop->op, 0, 1, &operands[2]));
    TRY(emit(loop->op, IR_OP_Range, 3, operands, range));
    return emit(loop->op, IR_OP_Shape, 1, range, shape);
}

/* One param of the rule in all iterations, as a column. */
static tssa_status *make_column(const struct loop *loop, const struct ir_op *assign,
                                const struct rule_param *param, struct ir_value *range,
                                struct ir_value *shape, struct ir_value **column)
{
    struct ir_value *value = rule_param_value(assign, param), *axis;
    struct ir_value *offset = value && loop_makes(loop, value) ? offset_of(loop, value) : NULL;
    *column = range;
    if (!value)
        TRY(loop_make_int(loop->op, 0, param->value, &value));
    if (offset)
        TRY(emit(loop->op, IR_OP_Add, 2, (struct ir_value *const[]){range, offset}, column));
    else if (!is_counter(loop, value))
        TRY(emit(loop->op, IR_OP_Expand, 2, (struct ir_value *const[]){value, shape}, column));
    TRY(loop_make_int(loop->op, 1, 1, &axis));
    return emit(loop->op, IR_OP_Unsqueeze, 2, (struct ir_value *const[]){*column, axis}, column);
}

static tssa_status *write_all(const struct loop *loop, uint32_t k, struct ir_value *range,
                              struct ir_value *shape)
{
    struct ir_graph *graph = loop->body->graph;
    struct ir_op *assign = only_write(loop, k);
    const struct rule *rule = rule_of(assign);
    struct ir_value *columns[TSSA_MAX_RANK], *operands[3] = {loop_initial(loop, k)}, *written;
    for (uint32_t i = 0; i < rule->n_steps; i++)
        TRY(make_column(loop, assign, &rule->steps[i].params[1], range, shape, &columns[i]));
    struct ir_op *concat = loop_make_op(loop->op, IR_OP_Concat, rule->n_steps);
    const struct ir_attr axis = {
        .name = intern_str(&graph->strings, "axis"), .kind = IR_ATTR_INT, .i = 1};
    TRY_ALLOC(concat);
    if (!axis.name || !ir_op_set_attr(graph, concat, &axis))
        return status_out_of_memory();
    for (uint32_t i = 0; i < rule->n_steps; i++)
        ir_op_set_operand(concat, i, columns[i]);
    TRY(ir_infer_op_lenient(concat));
    operands[1] = &concat->results[0];
    TRY(emit(loop->op, IR_OP_Expand, 2, (struct ir_value *const[]){ir_operand(assign, 1), shape},
             &operands[2]));
    TRY(emit(loop->op, IR_OP_ScatterND, 3, operands, &written));
    written->op->name = assign->name;
    loop_replace(loop_final(loop, k), written);
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    if (!ir_op_is(op, IR_OP_Loop))
        return NULL;
    struct loop loop = loop_of(op);
    struct ir_value *range, *shape;
    if (!only_writes(&loop))
        return NULL;
    TRY(make_range(&loop, &range, &shape));
    for (uint32_t k = 0; k < loop.n_carried; k++)
        TRY(write_all(&loop, k, range, shape));
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "writes one value: all elements at once"));
    ir_release_blocks(op);
    ir_op_remove(op);
    pass->changed = true;
    return NULL;
}

tssa_status *pass_batch_writes(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
