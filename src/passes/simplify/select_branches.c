/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A branch that only does a little arithmetic on a few numbers (an index that is made positive,
 * say) costs more than what it saves: both sides are computed, and Where selects. Of truth values
 * And and Or do: a flag that a branch sets is Or(condition, flag).
 *
 *   needs   types, known elements
 *   keeps   types; bits, signs of zeros too, for which the exporter sees to runtimes whose Where
 *           loses them (onnx/hazards.def); ops that might fail (total.h) stay behind their
 *           condition, and so does real work
 *   breaks  known elements of the results
 */
#include "ir/clone.h"
#include "ir/infer.h"
#include "ir/total.h"
#include "passes/analysis/regions.h"
#include "passes/maker.h"
#include "passes/pass.h"

#define MAX_OPS 16        /* in both branches together */
#define MAX_ELEMENTS 1024 /* that they compute, all together */

/* Adds the elements of a result of known size; false when there are too many or it is not known. */
static bool count_elements(const struct ir_value *value, int64_t *elements)
{
    const struct ir_type *type = value->type;
    int64_t count = 1, size;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &size) || size > MAX_ELEMENTS ||
            (count *= size) > MAX_ELEMENTS)
            return false;
    *elements += count;
    return *elements <= MAX_ELEMENTS;
}

static bool is_cheap(const struct ir_block *block, int *ops, int64_t *elements)
{
    for (const struct ir_op *op = block->first; op->next; op = op->next) {
        bool total =
            ir_op_is(op, IR_OP_access) ? region_never_fails_in_loops(op) : ir_op_is_total(op);
        if (op->n_blocks || !total || ++*ops > MAX_OPS)
            return false;
        for (uint32_t i = 0; i < op->n_results; i++)
            if (op->results[i].wanted && !count_elements(&op->results[i], elements))
                return false;
    }
    return true;
}

static bool is_selectable(const struct ir_value *condition, const struct ir_value *a,
                          const struct ir_value *b)
{
    int64_t elements = 0;
    return a == b || (a->type == b->type && count_elements(a, &elements) &&
                      (dtype_in(PASS_SELECTABLE, a->type->dtype) || a->type->dtype == TSSA_BOOL) &&
                      condition->type->rank <= a->type->rank);
}

static bool is_candidate(const struct ir_op *op, const struct ir_block *then_block,
                         const struct ir_block *else_block)
{
    int ops = 0;
    int64_t elements = 0;
    const struct ir_value *condition = ir_operand(op, 0);
    if (condition->type->kind != TYPE_TENSOR || condition->type->dtype != TSSA_BOOL ||
        !count_elements(condition, &elements) || elements != 1)
        return false;
    elements = 0;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (!is_selectable(condition, ir_operand(ir_block_return(then_block), i),
                           ir_operand(ir_block_return(else_block), i)))
            return false;
    return is_cheap(then_block, &ops, &elements) && is_cheap(else_block, &ops, &elements);
}

/* A constant: which one? False: it is none. */
static bool read_truth(const struct ir_value *value, bool *truth)
{
    int64_t number;
    if (!value->known || value->known->count != 1 ||
        !dim_is_const(value->known->elements[0], &number))
        return false;
    *truth = number != 0;
    return true;
}

/* (q and a) or (not q and b), where neither is the same whatever the condition is. */
static struct ir_value *make_flag(struct pass_maker *m, struct ir_value *q, struct ir_value *a,
                                  struct ir_value *b)
{
    bool truth;
    if (read_truth(a, &truth))
        return truth ? pass_make(m, IR_OP_Or, 2, q, b)
                     : pass_make(m, IR_OP_And, 2, pass_make(m, IR_OP_Not, 1, q, NULL), b);
    if (read_truth(b, &truth))
        return truth ? pass_make(m, IR_OP_Or, 2, pass_make(m, IR_OP_Not, 1, q, NULL), a)
                     : pass_make(m, IR_OP_And, 2, q, a);
    struct ir_value *yes = pass_make(m, IR_OP_And, 2, q, a);
    struct ir_value *no = pass_make(m, IR_OP_And, 2, pass_make(m, IR_OP_Not, 1, q, NULL), b);
    return pass_make(m, IR_OP_Or, 2, yes, no);
}

static tssa_status *select_result(struct ir_graph *graph, struct ir_op *op, uint32_t index,
                                  struct ir_value *a, struct ir_value *b)
{
    struct ir_value *result = &op->results[index], *value = a;
    struct pass_maker m = {.at = op, .graph = graph};
    if (!result->wanted)
        return NULL;
    if (a != b && a->type->dtype == TSSA_BOOL) {
        value = make_flag(&m, ir_operand(op, 0), a, b);
    } else if (a != b) {
        value = pass_make_where(&m, ir_operand(op, 0), a, b);
        if (value)
            value->op->exact = true;
    }
    TRY(m.status);
    ir_value_replace(result, value);
    if (!value->name) {
        value->name = result->name;
        result->name = NULL;
    }
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    if (!ir_op_is(op, IR_OP_If))
        return NULL;
    struct ir_block *then_block = ir_op_block(op, "then_branch");
    struct ir_block *else_block = ir_op_block(op, "else_branch");
    if (!is_candidate(op, then_block, else_block))
        return NULL;
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op,
                    "both branches are computed, which is less work than to choose one"));
    ir_move_ops(then_block, op);
    ir_move_ops(else_block, op);
    for (uint32_t i = 0; i < op->n_results; i++)
        TRY(select_result(pass->graph, op, i, ir_operand(ir_block_return(then_block), i),
                          ir_operand(ir_block_return(else_block), i)));
    ir_release_blocks(op);
    ir_op_remove(op);
    pass->changed = true;
    return NULL;
}

tssa_status *pass_select_branches(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
