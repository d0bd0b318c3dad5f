/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a loop stacks is written into a tensor that it carries, where kernels can store into that
 * what they compute (ir_fusion.updates):
 *
 *     rows = Loop(n, _, h) { (i, c, h): ... return(c, h1, h1) }
 * ->
 *     _, rows = Loop(n, _, h, zeros) { (i, c, h, t): ... t1 = assign(t, h1, i){[select(0, $0)]};
 *                                      return(c, h1, t1) }
 *
 * A stack is copied row by row, on a device one more thing to be launched in each iteration; the
 * kernel that computes the row may as well store it where it belongs. The other way round from
 * scan_outputs. Only of a number of iterations that is told before the first one, and is not known
 * to be small, of float32 rows of known dims that element-wise ops compute.
 *
 *   needs   types, a table of what kernels take, else nothing is done
 *   keeps   types
 *   breaks  nothing
 */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "ir/rule_draft.h"
#include "passes/analysis/loops.h"
#include "passes/maker.h"
#include "passes/pass.h"

#define LEAST_TRIPS 4 /* the zeros are a launch as well */

/* How many iterations there are, if that is told before, and as a size; NULL: it is not. */
static const struct dim *trips_of(const struct loop *loop)
{
    const struct ir_value *count = ir_operand(loop->op, 0);
    if (!count || !count->known || count->known->count != 1 || !count->known->elements[0] ||
        loop_enters(loop) != LOOP_TRUE || loop_stays(loop) != LOOP_TRUE)
        return NULL;
    const struct dim *trips = count->known->elements[0];
    int64_t number;
    const bool few = dim_is_const(trips, &number) && number < LEAST_TRIPS;
    return few || trips->low < 0 ? NULL : trips;
}

/* The dims of the stack, -1 for the first one where it is no number, if it may be written; false:
 * it may not. */
static bool read_stack(const struct loop *loop, uint32_t result, int64_t *dims)
{
    const struct ir_value *stack = &loop->op->results[result];
    const struct ir_value *row = ir_operand(loop->ret, result + 1);
    const struct ir_type *type = stack->type;
    if (!stack->wanted || !stack->uses || type->kind != TYPE_TENSOR || type->rank < 1 ||
        type->dtype != TSSA_FLOAT || !row->op || row->op->parent != loop->body ||
        row->op->info->cls != IR_CLASS_ELEMENTWISE || !loop_is_row(type, row->type))
        return false;
    if (!dim_is_const(type->dims[0], &dims[0]))
        dims[0] = -1;
    for (int i = 1; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dims[i]))
            return false;
    return type->dims[0] == trips_of(loop);
}

/* The dims of a stack of `rank` axes, as a list. */
static tssa_status *make_shape(const struct loop *loop, int rank, const int64_t *dims,
                               struct ir_value **shape)
{
    struct pass_maker m = {.at = loop->op, .graph = loop->body->graph};
    struct ir_value *trips, *first, *rest;
    if (dims[0] >= 0) {
        *shape = pass_put(&m, ir_constant_ints(m.graph, 1, (size_t)rank, dims));
        return m.status;
    }
    TRY(loop_make_trips(loop, &trips));
    TRY(loop_make_unsqueeze(loop->op, trips, 0, &first));
    *shape = first;
    if (rank > 1) {
        rest = pass_put(&m, ir_constant_ints(m.graph, 1, (size_t)rank - 1, dims + 1));
        *shape = pass_make_with(&m, IR_OP_Concat, first, rest, "axis", 0);
    }
    return m.status;
}

static tssa_status *make_zeros(const struct loop *loop, int rank, const int64_t *dims,
                               struct ir_value **zeros)
{
    struct ir_value *shape;
    TRY(make_shape(loop, rank, dims, &shape));
    struct ir_op *fill = loop_make_op(loop->op, IR_OP_ConstantOfShape, 1);
    TRY_ALLOC(fill);
    ir_op_set_operand(fill, 0, shape);
    *zeros = &fill->results[0];
    return ir_infer_op_lenient(fill);
}

/* The row goes into row i of the parameter. */
static tssa_status *make_assign(const struct loop *loop, struct ir_value *param,
                                struct ir_value *row, struct ir_value **written)
{
    struct ir_graph *graph = loop->body->graph;
    struct rule_draft draft = {0};
    draft_step_value(&draft, RULE_SELECT, 0, loop->body->params[0]);
    const struct rule *rule = rule_create(graph, draft.n_steps, draft.steps);
    TRY_ALLOC(rule);
    struct ir_op *assign =
        rule_assign_create(graph, param, row, rule, draft.n_operands, draft.operands);
    TRY_ALLOC(assign);
    assign->name = row->op->name;
    ir_op_insert_before(assign, loop->ret);
    *written = &assign->results[0];
    return ir_infer_op_lenient(assign);
}

/* The first stack, which is the first result behind what is carried: so it is carried in its
 * place. */
static tssa_status *carry(struct pass_context *pass, const struct loop *loop, const int64_t *dims)
{
    struct ir_op *op = loop->op;
    const uint32_t result = loop->n_carried;
    struct ir_value *zeros, *written, *param = ir_block_add_param(loop->body);
    TRY_ALLOC(param);
    param->type = op->results[result].type;
    TRY(make_zeros(loop, param->type->rank, dims, &zeros));
    TRY(make_assign(loop, param, ir_operand(loop->ret, result + 1), &written));
    ir_op_set_operand(loop->ret, result + 1, written);
    if (!ir_op_add_operand(op, zeros))
        return status_out_of_memory();
    TRY(ir_infer_op_lenient(op));
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, op,
                       "what it stacks as result %u is written row by row by the kernel that "
                       "computes it",
                       (unsigned)result);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    if (!ir_op_is(op, IR_OP_Loop))
        return NULL;
    for (struct loop loop = loop_of(op); loop.n_stacked > 0; loop = loop_of(op)) {
        int64_t dims[TSSA_MAX_RANK];
        if (!read_stack(&loop, loop.n_carried, dims))
            return NULL;
        TRY(carry(pass, &loop, dims));
    }
    return NULL;
}

tssa_status *pass_write_stacks(struct pass_context *pass)
{
    if (!pass->fusion || !pass->fusion->updates)
        return NULL;
    return ir_block_walk(pass->graph->body, visit, pass);
}
