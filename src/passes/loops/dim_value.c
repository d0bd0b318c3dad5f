/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/dim_value.h"

#include "passes/analysis/recurrence.h"

/* A value outside of the loop that has the dim, or is it. */
struct source {
    const struct loop *loop;
    const struct dim *dim;
    struct ir_value *value;
    int axis; /* -1: the value is the dim itself */
};

static bool is_source(struct source *source, struct ir_value *value)
{
    const struct ir_type *type = value->type;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    if (type->rank == 0 && type->dtype == TSSA_INT64 && value->known && value->known->count == 1 &&
        value->known->elements[0] == source->dim) {
        source->value = value;
        source->axis = -1;
        return true;
    }
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] == source->dim) {
            source->value = value;
            source->axis = i;
            return true;
        }
    return false;
}

static bool visit_source(void *context, struct ir_value *value)
{
    struct source *source = context;
    return loop_makes(source->loop, value) || !is_source(source, value);
}

static struct ir_value *find_symbol(struct batch *batch, const struct loop *loop,
                                    const struct dim *dim)
{
    struct source source = {.loop = loop, .dim = dim};
    for (uint32_t k = 0; k < loop->n_carried && !source.value; k++)
        (void)is_source(&source, loop_initial(loop, k));
    for (const struct ir_op *op = loop->body->first; op && !source.value; op = op->next)
        (void)recurrence_visit_operands(op, visit_source, &source);
    const struct ir_block *inputs = batch->graph->body;
    for (uint32_t i = 0; i < inputs->n_params && !source.value; i++)
        (void)is_source(&source, inputs->params[i]);
    if (!source.value || source.axis < 0)
        return source.value;
    struct ir_op *shape = batch_make(batch, NULL, IR_OP_Shape, 1, &source.value);
    struct ir_value *axis = batch_number(batch, source.axis);
    return shape ? batch_binary(batch, IR_OP_Gather, &shape->results[0], axis) : NULL;
}

/* `a` may be absent. */
static struct ir_value *join(struct batch *batch, enum ir_op_id id, struct ir_value *a,
                             struct ir_value *term)
{
    return a ? batch_binary(batch, id, a, term) : term;
}

/* The sum of the terms, or their product; of a sum, those that take something away are left out. */
static struct ir_value *combine(struct batch *batch, const struct loop *loop, const struct dim *dim)
{
    enum ir_op_id id = dim->kind == DIM_PRODUCT ? IR_OP_Mul : IR_OP_Add;
    struct ir_value *result = NULL;
    if (dim->kind == DIM_SUM && dim->value > 0)
        result = batch_number(batch, dim->value);
    for (uint32_t i = 0; i < dim->n_terms; i++) {
        int64_t factor = dim->kind == DIM_SUM ? dim->coefficients[i] : 1;
        if (factor < 0)
            continue;
        struct ir_value *term = dim_value_bound(batch, loop, dim->terms[i]);
        if (factor != 1)
            term = batch_binary(batch, IR_OP_Mul, term, batch_number(batch, factor));
        result = join(batch, id, result, term);
        if (!term || !result)
            return NULL;
    }
    return result;
}

struct ir_value *dim_value_bound(struct batch *batch, const struct loop *loop,
                                 const struct dim *dim)
{
    int64_t value;
    if (dim_is_const(dim, &value))
        return batch_number(batch, value);
    if (dim == batch->n_trips)
        return batch->trips;
    switch (dim->kind) {
    case DIM_SYMBOL:
        return find_symbol(batch, loop, dim);
    case DIM_SUM:
    case DIM_PRODUCT:
    case DIM_MAX:
        return combine(batch, loop, dim);
    case DIM_MIN: /* any of them is a bound */
        for (uint32_t i = 0; i < dim->n_terms; i++) {
            struct ir_value *bound = dim_value_bound(batch, loop, dim->terms[i]);
            if (bound || batch->status)
                return bound;
        }
        return NULL;
    case DIM_MOD:
        return dim_value_bound(batch, loop, dim->terms[1]);
    default: /* quotients are no more than what is divided */
        return dim_value_bound(batch, loop, dim->terms[0]);
    }
}
