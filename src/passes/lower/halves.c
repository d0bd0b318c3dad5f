/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/halves.h"

#include "base/alloc.h"

bool half_is(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR &&
           (value->type->dtype == TSSA_FLOAT16 || value->type->dtype == TSSA_BFLOAT16);
}

bool half_is_cast(const struct ir_op *op)
{
    return op && ir_op_is(op, IR_OP_Cast);
}

struct ir_value *half_rounded_from(const struct ir_value *value)
{
    struct ir_value *from = half_is_cast(value->op) ? ir_operand(value->op, 0) : NULL;
    const bool single = from && from->type->kind == TYPE_TENSOR && from->type->dtype == TSSA_FLOAT;
    return single && half_is(value) ? from : NULL;
}

bool halves_were_rounded(const struct ir_op *op)
{
    bool any = false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (!half_is(value) || ir_value_constant(value))
            continue;
        if (!half_rounded_from(value))
            return false;
        any = true;
    }
    return any;
}

static struct ir_op *make_cast(struct ir_graph *graph, struct ir_value *value, tssa_dtype to)
{
    struct ir_op *cast = ir_op_create(graph, ir_op_info(IR_OP_Cast), 1, 1);
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, "to"), .kind = IR_ATTR_INT, .i = to};
    if (!cast || !attr.name || !ir_op_set_attr(graph, cast, &attr))
        return NULL;
    cast->version = ir_op_bind(cast->info, IR_NEWEST_OPSET);
    ir_op_set_operand(cast, 0, value);
    return cast;
}

/* Where what the value is made of begins to be there. */
static struct ir_op *behind(const struct ir_value *value)
{
    return value->op ? value->op->next : value->block->first;
}

/* Of a constant, a constant. */
static tssa_status *make_wide(struct pass_context *pass, struct ir_value *value,
                              struct ir_value **wide)
{
    struct ir_op *cast = make_cast(pass->graph, value, TSSA_FLOAT);
    struct tensor *folded = NULL;
    TRY_ALLOC(cast);
    TRY(pass_insert(cast, behind(value)));
    if (ir_value_constant(value) && pass->evaluate)
        TRY(pass->evaluate(pass->evaluate_user, pass->graph, cast, &folded));
    *wide = &cast->results[0];
    if (!folded)
        return NULL;
    const struct tensor *narrow = ir_value_constant(value);
    struct ir_op *constant = ir_constant_create(pass->graph, folded);
    TRY_ALLOC(constant);
    ir_graph_forget(pass->graph, narrow->data, tensor_bytes(narrow));
    TRY(pass_replace(pass, cast, constant));
    *wide = &constant->results[0];
    return NULL;
}

tssa_status *half_widened(struct halves *h, struct ir_value *value, struct ir_value **wide)
{
    struct ir_value **known = value->id < h->n_values ? &h->wide[value->id] : NULL;
    *wide = known ? *known : NULL;
    if (*wide)
        return NULL;
    TRY(make_wide(h->pass, value, wide));
    if (known)
        *known = *wide;
    return NULL;
}

tssa_status *half_round(struct pass_context *pass, struct ir_op *op, uint32_t k, tssa_dtype to)
{
    struct ir_value *result = &op->results[k];
    struct ir_op *cast = make_cast(pass->graph, NULL, to);
    TRY_ALLOC(cast);
    ir_value_replace(result, &cast->results[0]);
    ir_op_set_operand(cast, 0, result);
    TRY(pass_insert(cast, op->next));
    cast->name = op->name;
    cast->results[0].name = result->name;
    result->name = NULL;
    return NULL;
}

tssa_status *halves_open(struct pass_context *pass, struct halves *h)
{
    *h = (struct halves){.pass = pass, .n_values = pass->graph->n_values};
    h->wide = allocator_calloc(pass->graph->allocator, (size_t)h->n_values + 1,
                               sizeof(struct ir_value *));
    return h->wide ? NULL : status_out_of_memory();
}

void halves_close(struct halves *h)
{
    allocator_free(h->pass->graph->allocator, h->wide);
}
