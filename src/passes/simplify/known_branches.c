/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control flow whose way is known before the run:
 *
 *   - an If whose condition is known becomes the branch that is taken. Known is a constant, and,
 *     inside a branch of another If or in a loop's body, what that If or loop has tested;
 *   - an If whose branches are equal becomes one of them;
 *   - a result that is the same outer value in both branches is that value; one that is true in one
 *     branch and false in the other is the condition or its Not;
 *   - a Loop that never runs becomes its initial values, and, where their size is known, empty
 *     outputs.
 *
 *   needs   known elements
 *   keeps   the order of what stays
 *   breaks  types: users of an If's results may be inferred more precisely (infer)
 */
#include "ir/equal.h"
#include "ir/infer.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"

struct branches {
    struct pass_context *pass;
    struct ir_cloner map;
    int8_t *assumed; /* by value id: 1 true, -1 false, where the walk is; 0 not known */
    uint32_t n_assumed;
};

/* ---- Conditions ------------------------------------------------------------------------------ */

static bool known_bool(const struct ir_value *value, bool *truth)
{
    int64_t element;
    const struct tensor *tensor = ir_value_constant(value);
    if (tensor && tensor->dtype == TSSA_BOOL && tensor_count(tensor) == 1) {
        *truth = *(const unsigned char *)tensor->data != 0;
        return true;
    }
    if (!value->known || value->known->count != 1 ||
        !dim_is_const(value->known->elements[0], &element))
        return false;
    *truth = element != 0;
    return true;
}

/* 1 true, -1 false, 0 not known. */
static int truth_of(const struct branches *branches, const struct ir_value *condition)
{
    bool truth;
    if (!condition)
        return 0;
    if (known_bool(condition, &truth))
        return truth ? 1 : -1;
    if (condition->id < branches->n_assumed && branches->assumed[condition->id])
        return branches->assumed[condition->id];
    if (condition->op && ir_op_is(condition->op, IR_OP_Not))
        return -truth_of(branches, ir_operand(condition->op, 0));
    return 0;
}

/* ---- Rewrites -------------------------------------------------------------------------------- */

static bool is_defined_in(const struct ir_value *value, const struct ir_block *block)
{
    return value->op ? value->op->parent == block : value->block == block;
}

/* `value` stands for `result` from now on, under its name where that is the better known one. */
static void substitute(struct ir_value *result, struct ir_value *value, bool take_name)
{
    ir_value_replace(result, value);
    if (result->name && (take_name || !value->name)) {
        value->name = result->name;
        result->name = NULL;
    }
}

static void inline_branch(struct ir_op *op, struct ir_block *block)
{
    const struct ir_op *ret = ir_block_return(block);
    for (uint32_t i = 0; i < op->n_results; i++) {
        struct ir_value *value = ir_operand(ret, i);
        substitute(&op->results[i], value, is_defined_in(value, block));
    }
    ir_move_ops(block, op);
    ir_release_blocks(op);
    ir_op_remove(op);
}

/* %c for `If(%c) {true} {false}`, Not(%c) for the opposite; NULL for anything else or no memory. */
static tssa_status *condition_itself(struct ir_op *op, const struct ir_value *then_value,
                                     const struct ir_value *else_value, struct ir_value **out)
{
    struct ir_value *condition = ir_operand(op, 0);
    bool a, b;
    *out = NULL;
    if (!known_bool(then_value, &a) || !known_bool(else_value, &b) || a == b ||
        then_value->type != else_value->type || condition->type != then_value->type ||
        condition->type->kind != TYPE_TENSOR || condition->type->dtype != TSSA_BOOL)
        return NULL;
    *out = condition;
    if (a)
        return NULL;
    struct ir_graph *graph = op->parent->graph;
    struct ir_op *negated = ir_op_create(graph, ir_op_info(IR_OP_Not), 1, 1);
    TRY_ALLOC(negated);
    negated->version = ir_op_bind(negated->info, IR_NEWEST_OPSET);
    negated->name = op->name;
    ir_op_set_operand(negated, 0, condition);
    ir_op_insert_before(negated, op);
    *out = &negated->results[0];
    return ir_infer_op_lenient(negated);
}

/* Results that need no branch. */
static tssa_status *replace_results(struct branches *branches, struct ir_op *op,
                                    const struct ir_op *then_return,
                                    const struct ir_op *else_return)
{
    for (uint32_t i = 0; i < op->n_results; i++) {
        struct ir_value *a = ir_operand(then_return, i), *b = ir_operand(else_return, i);
        struct ir_value *value = a;
        if (!op->results[i].uses)
            continue;
        if (a != b)
            TRY(condition_itself(op, a, b, &value));
        if (!value)
            continue;
        substitute(&op->results[i], value, false);
        branches->pass->changed = true;
    }
    return NULL;
}

static tssa_status *rewrite_if(struct branches *branches, struct ir_op *op)
{
    struct ir_block *then_block = ir_op_block(op, "then_branch");
    struct ir_block *else_block = ir_op_block(op, "else_branch");
    int truth = truth_of(branches, ir_operand(op, 0));
    const char *why = truth > 0 ? "its condition is always true" : "its condition is always false";
    if (!truth) {
        bool equal;
        ir_cloner_reset(&branches->map);
        TRY(ir_blocks_equal(&branches->map, then_block, else_block, &equal));
        if (!equal)
            return replace_results(branches, op, ir_block_return(then_block),
                                   ir_block_return(else_block));
        why = "both branches do the same";
    }
    TRY(pass_remark(branches->pass, TSSA_REMARK_APPLIED, op, "replaced by a branch: %s", why));
    inline_branch(op, truth < 0 ? else_block : then_block);
    branches->pass->changed = true;
    return NULL;
}

static bool never_runs(const struct branches *branches, const struct ir_op *op)
{
    const struct ir_value *trips = ir_operand(op, 0);
    int64_t count;
    if (truth_of(branches, ir_operand(op, 1)) < 0)
        return true;
    return trips && trips->known && trips->known->count == 1 &&
           dim_is_const(trips->known->elements[0], &count) && count <= 0;
}

/* Outputs of no iteration, where the size of a row is known. */
static tssa_status *replace_outputs(struct branches *branches, struct ir_op *op, uint32_t carried)
{
    const struct ir_op *ret = ir_block_return(op->blocks[0]);
    for (uint32_t i = carried; i < op->n_results; i++) {
        struct ir_value *empty;
        const struct ir_type *row = ir_operand(ret, i + 1)->type;
        if (!op->results[i].uses || !loop_has_empty(row))
            continue;
        TRY(loop_make_empty(op, row, &empty));
        substitute(&op->results[i], empty, true);
        branches->pass->changed = true;
    }
    return NULL;
}

static tssa_status *rewrite_loop(struct branches *branches, struct ir_op *op)
{
    uint32_t carried = op->n_operands > 2 ? op->n_operands - 2 : 0;
    if (!never_runs(branches, op))
        return NULL;
    for (uint32_t i = 0; i < carried; i++)
        if (op->results[i].uses && ir_operand(op, i + 2)) {
            substitute(&op->results[i], ir_operand(op, i + 2), false);
            branches->pass->changed = true;
        }
    return replace_outputs(branches, op, carried);
}

/* ---- The walk -------------------------------------------------------------------------------- */

static tssa_status *visit_block(struct branches *branches, struct ir_block *block);

/* Visits a block in which `condition` has a value; NULL: nothing is assumed. */
static tssa_status *visit_assuming(struct branches *branches, struct ir_block *block,
                                   const struct ir_value *condition, int8_t truth)
{
    if (!condition || condition->id >= branches->n_assumed)
        return visit_block(branches, block);
    int8_t before = branches->assumed[condition->id];
    branches->assumed[condition->id] = truth;
    TRY(visit_block(branches, block));
    branches->assumed[condition->id] = before;
    return NULL;
}

static tssa_status *visit_blocks(struct branches *branches, struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_If)) {
        const struct ir_value *condition = ir_operand(op, 0);
        TRY(visit_assuming(branches, ir_op_block(op, "then_branch"), condition, 1));
        return visit_assuming(branches, ir_op_block(op, "else_branch"), condition, -1);
    }
    if (ir_op_is(op, IR_OP_Loop)) /* an iteration runs only while the condition holds */
        return visit_assuming(branches, op->blocks[0], op->blocks[0]->params[1], 1);
    for (uint32_t i = 0; i < op->n_blocks; i++)
        TRY(visit_block(branches, op->blocks[i]));
    return NULL;
}

static tssa_status *visit_block(struct branches *branches, struct ir_block *block)
{
    struct ir_op *next;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next;
        TRY(visit_blocks(branches, op));
        if (ir_op_is(op, IR_OP_If))
            TRY(rewrite_if(branches, op));
        else if (ir_op_is(op, IR_OP_Loop))
            TRY(rewrite_loop(branches, op));
    }
    return NULL;
}

tssa_status *pass_known_branches(struct pass_context *pass)
{
    const tssa_allocator *allocator = pass->graph->allocator;
    struct branches branches = {.pass = pass, .n_assumed = pass->graph->n_values};
    branches.assumed = allocator_calloc(allocator, branches.n_assumed, sizeof *branches.assumed);
    TRY_ALLOC(branches.assumed);
    ir_cloner_init(&branches.map, pass->graph);
    tssa_status *status = visit_block(&branches, pass->graph->body);
    ir_cloner_free(&branches.map);
    allocator_free(allocator, branches.assumed);
    return status;
}
