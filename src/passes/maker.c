/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/maker.h"

#include "passes/pass.h"

struct ir_value *pass_put(struct pass_maker *m, struct ir_op *op)
{
    if (!m->status)
        m->status = pass_insert(op, m->at);
    return m->status ? NULL : &op->results[0];
}

struct ir_op *pass_new_op(struct pass_maker *m, enum ir_op_id id, uint32_t n, struct ir_value *a,
                          struct ir_value *b, struct ir_value *c)
{
    const struct ir_op_info *info = ir_op_info(id);
    struct ir_value *const operands[] = {a, b, c};
    struct ir_op *op = m->status ? NULL : ir_op_create(m->graph, info, n, 1);
    if (!op)
        return NULL;
    op->version = ir_op_bind(info, IR_NEWEST_OPSET);
    for (uint32_t i = 0; i < n; i++)
        ir_op_set_operand(op, i, operands[i]);
    return op;
}

struct ir_value *pass_make(struct pass_maker *m, enum ir_op_id id, uint32_t n, struct ir_value *a,
                           struct ir_value *b)
{
    return pass_put(m, pass_new_op(m, id, n, a, b, NULL));
}

struct ir_value *pass_make_with(struct pass_maker *m, enum ir_op_id id, struct ir_value *a,
                                struct ir_value *b, const char *name, int64_t number)
{
    struct ir_op *op = pass_new_op(m, id, 2, a, b, NULL);
    const struct ir_attr attr = {
        .name = intern_str(&m->graph->strings, name), .kind = IR_ATTR_INT, .i = number};
    return pass_put(m, op && attr.name && ir_op_set_attr(m->graph, op, &attr) ? op : NULL);
}

struct ir_value *pass_make_where(struct pass_maker *m, struct ir_value *condition,
                                 struct ir_value *a, struct ir_value *b)
{
    return pass_put(m, pass_new_op(m, IR_OP_Where, 3, condition, a, b));
}

struct ir_value *pass_make_int(struct pass_maker *m, int rank, int64_t number)
{
    return m->status ? NULL : pass_put(m, ir_constant_ints(m->graph, rank, 1, &number));
}

struct ir_value *pass_make_number(struct pass_maker *m, tssa_dtype dtype, double number)
{
    struct tensor *tensor = ARENA_NEW(&m->graph->arena, struct tensor);
    void *data = arena_alloc_aligned(&m->graph->arena, sizeof number, TENSOR_ALIGNMENT);
    if (m->status || !tensor || !data)
        return pass_put(m, NULL);
    *tensor = (struct tensor){.dtype = dtype, .data = data};
    dtype_store_double(dtype, data, number);
    return pass_put(m, ir_constant_create(m->graph, tensor));
}

struct ir_value *pass_make_float(struct pass_maker *m, float number)
{
    return pass_make_number(m, TSSA_FLOAT, (double)number);
}

struct ir_value *pass_make_cast(struct pass_maker *m, struct ir_value *x, tssa_dtype to)
{
    struct ir_op *op = pass_new_op(m, IR_OP_Cast, 1, x, NULL, NULL);
    const struct ir_attr attr = {
        .name = intern_str(&m->graph->strings, "to"), .kind = IR_ATTR_INT, .i = to};
    return pass_put(m, op && attr.name && ir_op_set_attr(m->graph, op, &attr) ? op : NULL);
}

/* Of a Gather inference knows what it finds. */
struct ir_value *pass_make_size(struct pass_maker *m, struct ir_value *x, int axis)
{
    int64_t size;
    if (m->status)
        return NULL;
    if (dim_is_const(x->type->dims[axis], &size))
        return pass_make_int(m, 0, size);
    struct ir_value *shape = pass_make(m, IR_OP_Shape, 1, x, NULL);
    return pass_make(m, IR_OP_Gather, 2, shape, pass_make_int(m, 0, axis));
}

struct ir_value *pass_make_access(struct pass_maker *m, struct ir_value *x, enum rule_kind kind,
                                  uint32_t n, const int64_t *numbers, struct ir_value *param)
{
    struct rule_param params[TSSA_MAX_RANK];
    const struct rule_step step = {kind, n, params};
    if (m->status)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        params[i] = param && i == 1 ? rule_operand(0) : rule_constant(numbers[i]);
    const struct rule *rule = rule_create(m->graph, 1, &step);
    return pass_put(m, rule ? rule_access_create(m->graph, x, rule, param ? 1 : 0, &param) : NULL);
}

struct ir_value *pass_make_rule(struct pass_maker *m, struct ir_value *x,
                                const struct rule_draft *draft)
{
    if (m->status || draft->n_steps == 0)
        return x;
    const struct rule *rule = rule_create(m->graph, draft->n_steps, draft->steps);
    return pass_put(
        m, rule ? rule_access_create(m->graph, x, rule, draft->n_operands, draft->operands) : NULL);
}

void pass_put_result(struct pass_maker *m, struct ir_value *result, struct ir_value *made)
{
    if (m->status)
        return;
    made->name = result->name;
    result->name = NULL;
    ir_value_replace(result, made);
}
