/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carried integers that every iteration moves by the same step are computed from the iteration's
 * number: init + step * i. What they index is then affine in the counter, and the loop carries a
 * value less.
 *
 *     Loop(...init...) { (i, c, k): ... use(k) ... k1 = k + step; return(..., k1) }
 *     Loop(...)        { (i, c):    ... use(init + step * i) ... }
 *
 * The last value is init + step * trips, where every run makes as many iterations as the trip count
 * says. Elsewhere the value is carried on when it is used behind the loop.
 *
 *   needs   types; identities removed (identity)
 *   keeps   what wraps: integer arithmetic is modulo 2^n whichever way it is computed
 *   breaks  the value may be carried without being used (carried_values)
 */
#include "ir/infer.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"

struct variable {
    struct ir_value *param, *init, *step;
    bool minus; /* the step is subtracted */
};

/* One element of a type whose arithmetic wraps. */
static bool is_counter_type(const struct ir_type *type)
{
    return (type->dtype == TSSA_INT64 || type->dtype == TSSA_INT32) && type->rank <= 1 &&
           type_has_one_element(type);
}

/* A constant in the body is as good as a value from outside. */
static bool is_step(const struct loop *loop, const struct ir_value *step,
                    const struct ir_value *param)
{
    return step && is_counter_type(step->type) && step->type->dtype == param->type->dtype &&
           step->type->rank <= param->type->rank &&
           (ir_value_constant(step) || !loop_makes(loop, step));
}

static bool read_variable(const struct loop *loop, uint32_t k, struct variable *variable)
{
    struct ir_value *param = loop_param(loop, k), *init = loop_initial(loop, k);
    struct ir_value *next = loop_next(loop, k);
    const struct ir_op *op = next ? next->op : NULL;
    if (!init || !op || !is_counter_type(param->type) || init->type != param->type ||
        next->type != param->type)
        return false;
    bool minus = ir_op_is(op, IR_OP_Sub);
    if (!minus && !ir_op_is(op, IR_OP_Add))
        return false;
    uint32_t at = ir_operand(op, 0) == param ? 0 : 1;
    struct ir_value *step = ir_operand(op, 1 - at);
    if (ir_operand(op, at) != param || (minus && at != 0) || !is_step(loop, step, param))
        return false;
    *variable = (struct variable){param, init, step, minus};
    return true;
}

/* ---- init + step * count --------------------------------------------------------------------- */

static tssa_status *make_cast(struct ir_op *at, tssa_dtype dtype, struct ir_value **value)
{
    struct ir_graph *graph = at->parent->graph;
    struct ir_op *op = loop_make_op(at, IR_OP_Cast, 1);
    TRY_ALLOC(op);
    const struct ir_attr to = {
        .name = intern_str(&graph->strings, "to"), .kind = IR_ATTR_INT, .i = dtype};
    if (!to.name || !ir_op_set_attr(graph, op, &to))
        return status_out_of_memory();
    ir_op_set_operand(op, 0, *value);
    *value = &op->results[0];
    return ir_infer_op_lenient(op);
}

/* `count` is an INT64 scalar; the result has the variable's type. */
static tssa_status *value_after(struct ir_op *at, const struct variable *variable,
                                struct ir_value *count, struct ir_value **result)
{
    int64_t number;
    const struct ir_type *type = variable->param->type;
    bool unit = loop_known_int(variable->step, &number) && number == 1;
    bool from_zero = loop_known_int(variable->init, &number) && number == 0;
    struct ir_value *offset = count;
    if (type->dtype != TSSA_INT64)
        TRY(make_cast(at, type->dtype, &offset));
    if (!unit)
        TRY(loop_make_binary(at, IR_OP_Mul, offset, variable->step, &offset));
    *result = offset;
    if (from_zero && !variable->minus && offset->type == type)
        return NULL;
    return loop_make_binary(at, variable->minus ? IR_OP_Sub : IR_OP_Add, variable->init, offset,
                            result);
}

/* A constant step in the body must be there before its first use, and again behind the loop. */
static tssa_status *copy_step(struct ir_op *at, struct variable *variable)
{
    const struct tensor *tensor = ir_value_constant(variable->step);
    if (!tensor)
        return NULL;
    struct ir_op *copy = ir_constant_create(at->parent->graph, tensor);
    TRY_ALLOC(copy);
    copy->name = variable->step->op->name;
    ir_op_insert_before(copy, at);
    variable->step = &copy->results[0];
    return ir_infer_op_lenient(copy);
}

/* ---- The pass -------------------------------------------------------------------------------- */

/* The number of iterations as a value in front of the loop; NULL when a run may make fewer. */
static tssa_status *trip_count(const struct loop *loop, struct ir_value **count)
{
    int64_t trips;
    struct ir_value *limit = ir_operand(loop->op, 0), *zero;
    *count = NULL;
    if (loop_trips(loop, &trips))
        return trips == INT64_MAX ? NULL : loop_make_int(loop->op, 0, trips, count);
    if (!limit || loop_enters(loop) != LOOP_TRUE || loop_stays(loop) != LOOP_TRUE ||
        limit->type->kind != TYPE_TENSOR || limit->type->rank != 0)
        return NULL;
    TRY(loop_make_int(loop->op, 0, 0, &zero));
    return loop_make_binary(loop->op, IR_OP_Max, limit, zero, count);
}

static tssa_status *replace_final(const struct loop *loop, uint32_t k, struct variable variable)
{
    struct ir_value *result = loop_final(loop, k), *count, *value;
    if (!result->uses)
        return NULL;
    TRY(trip_count(loop, &count));
    if (!count)
        return NULL;
    TRY(copy_step(loop->op, &variable));
    TRY(value_after(loop->op, &variable, count, &value));
    if (value->type == result->type)
        loop_replace(result, value);
    return NULL;
}

/* Uses of the parameter but for that by the step: those that are worth a replacement. */
static bool is_used(const struct loop *loop, const struct variable *variable, uint32_t k)
{
    for (const struct ir_use *use = variable->param->uses; use; use = use->next)
        if (use->user != loop_next(loop, k)->op)
            return true;
    return false;
}

static tssa_status *replace_variable(struct pass_context *pass, const struct loop *loop, uint32_t k,
                                     struct variable variable)
{
    struct ir_op *step_op = loop_next(loop, k)->op, *first = loop->body->first;
    struct ir_value *value;
    TRY(replace_final(loop, k, variable));
    bool carried = loop_final(loop, k)->uses != NULL;
    if (carried && !is_used(loop, &variable, k))
        return NULL;
    pass->changed = true;
    TRY(copy_step(first, &variable));
    TRY(value_after(first, &variable, loop->body->params[0], &value));
    ir_value_replace(variable.param, value);
    if (carried) /* the step itself goes on from what is carried */
        ir_op_set_operand(step_op, ir_operand(step_op, 0) == value ? 0 : 1, variable.param);
    else
        ir_op_set_operand(loop->ret, k + 1,
                          variable.param); /* carried_values sees it is unchanged */
    return pass_remark(pass, TSSA_REMARK_APPLIED, loop->op,
                       "carried value %u is computed from the iteration's number", (unsigned)k);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_Loop))
        return NULL;
    struct loop loop = loop_of(op);
    for (uint32_t k = 0; k < loop.n_carried; k++) {
        struct variable variable;
        if (read_variable(&loop, k, &variable) &&
            (is_used(&loop, &variable, k) || loop_final(&loop, k)->uses))
            TRY(replace_variable(context, &loop, k, variable));
    }
    return NULL;
}

tssa_status *pass_induction(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
