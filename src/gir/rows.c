/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that have rows as steps; see rows.h. */
#include "gir/rows.h"

#include <string.h>

#include "ir/composition.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/row.h"

static uint32_t refuse(struct gir_maker *maker, const char *why)
{
    if (!maker->why)
        maker->why = why;
    return 0;
}

/* ---- Compositions ---------------------------------------------------------------------------- */

/* Steps per value of a composition; GIR_NONE: there is none yet, or it is not computed. */
struct composition {
    struct gir_maker *maker;
    uint32_t *steps;
};

static uint32_t make_constant(struct gir_maker *maker, const struct tensor *tensor)
{
    if (tensor_count(tensor) != 1 || !dtype_in(T_FLOAT | T_INT, tensor->dtype))
        return GIR_NONE;
    struct gir_code code = {.op = GIR_CONSTANT, .type = (uint8_t)tensor->dtype};
    memcpy(&code.bits, tensor->data, dtype_info(tensor->dtype)->size);
    return gir_make(maker, code);
}

/* Numbers are made where they are first needed. */
static uint32_t step_of(const struct composition *c, const struct ir_value *value)
{
    const struct tensor *tensor = value ? ir_value_constant(value) : NULL;
    if (tensor)
        return make_constant(c->maker, tensor);
    return value ? c->steps[value->id] : GIR_NONE;
}

/* Over which axes is reduced was asked of the op. What tells shapes, and what is made of that, is
 * no step. */
static uint32_t make_part(const struct composition *c, const struct ir_op *op)
{
    uint32_t operands[3] = {GIR_NONE, GIR_NONE, GIR_NONE};
    const bool is_cast = ir_op_is(op, IR_OP_Cast) || ir_op_is(op, IR_OP_CastLike);
    const bool is_one = op->info->ew || is_cast;
    const uint32_t n = is_one ? op->n_operands : 1;
    tssa_dtype type;
    if (op->results[0].known || n > 3)
        return GIR_NONE;
    for (uint32_t i = 0; i < n && ir_fuse_reads(op, i); i++) {
        operands[i] = step_of(c, ir_operand(op, i));
        if (operands[i] == GIR_NONE && ir_operand(op, i))
            return GIR_NONE;
    }
    if (op->info->reduction)
        return gir_make_reduction(c->maker, op->info->reduction->row, operands[0], &type);
    if (ir_op_keeps_order(op))
        return operands[0];
    return is_one ? gir_make_op(c->maker, op, operands) : GIR_NONE;
}

static void make_block(const struct composition *c, const struct ir_block *block);

/* An attribute tells which branch it is. */
static void make_branch(const struct composition *c, const struct ir_op *op)
{
    const struct ir_known *known = infer_known(op, 0);
    int64_t holds;
    if (!known || !known->elements[0] || !dim_is_const(known->elements[0], &holds))
        return;
    const struct ir_block *block = ir_op_block(op, holds ? "then_branch" : "else_branch");
    make_block(c, block);
    for (uint32_t i = 0; i < op->n_results; i++)
        c->steps[op->results[i].id] = step_of(c, ir_operand(block->last, i));
}

static void make_block(const struct composition *c, const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op != block->last; op = op->next)
        if (ir_op_is(op, IR_OP_If))
            make_branch(c, op);
        else if (!ir_op_is(op, IR_OP_Constant))
            c->steps[op->results[0].id] = make_part(c, op);
}

static uint32_t make_parts(struct composition *c, const struct ir_graph *graph,
                           const struct ir_op *op, const uint32_t *operands)
{
    for (uint32_t i = 0; i < graph->n_values; i++)
        c->steps[i] = GIR_NONE;
    for (uint32_t i = 0, n = 0; i < op->n_operands; i++)
        if (operands[i] != GIR_NONE)
            c->steps[graph->body->params[n++]->id] = operands[i];
    make_block(c, graph->body);
    const uint32_t result = step_of(c, ir_operand(graph->body->last, 0));
    return result == GIR_NONE ? refuse(c->maker, "kernels do not compute it") : result;
}

/* As ir/composition.def has it. */
static uint32_t make_composition(struct gir_maker *maker, const struct ir_op *op,
                                 const uint32_t *operands)
{
    const tssa_allocator *allocator = op->parent->graph->allocator;
    struct composition c = {.maker = maker};
    struct ir_graph *graph;
    tssa_status *status = ir_composition_of(op, allocator, &graph);
    if (!status && !graph)
        return refuse(maker, "kernels do not compute it");
    if (!status)
        c.steps = allocator_alloc(allocator, graph->n_values * sizeof *c.steps);
    const uint32_t value =
        c.steps ? make_parts(&c, graph, op, operands) : refuse(maker, "memory ran out");
    allocator_free(allocator, c.steps);
    if (!status)
        ir_graph_free(graph);
    tssa_status_free(status);
    return value;
}

/* ---- Where an extreme is --------------------------------------------------------------------- */

static bool is_arg(const struct ir_op *op)
{
    return (ir_op_is(op, IR_OP_ArgMax) || ir_op_is(op, IR_OP_ArgMin)) &&
           (ir_row_axes(op) == 1 || ir_column_axis(op) >= 0);
}

/* Where the extreme is: the first or the last position of an element that is equal to it. NaN is
 * beyond all: where there is one, so is the extreme, which none is equal to, and else none is. */
static uint32_t make_arg(struct gir_maker *maker, const struct ir_op *op, uint32_t value)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    const bool last = ir_attr_int(op, "select_last_index", 0) != 0;
    const int column = ir_column_axis(op);
    const struct dim *length = type->dims[column >= 0 ? column : type->rank - 1];
    if (!dim_at_least(length, 1))
        return refuse(maker, "there may be no element to choose");
    tssa_dtype of = reduction_type(REDUCTION_Max, type->dtype);
    const uint32_t x = gir_make_as(maker, value, of);
    const enum reduction_row row = ir_op_is(op, IR_OP_ArgMin) ? REDUCTION_Min : REDUCTION_Max;
    const uint32_t most = gir_make_reduction(maker, row, value, &of);
    uint32_t equal = gir_make_scalar(maker, SCALAR_EQ, TSSA_BOOL, (uint32_t[]){x, most});
    if (dtype_is_float(of)) {
        const uint32_t no_number = gir_make_scalar(maker, SCALAR_ISNAN, TSSA_BOOL, &x);
        equal = gir_make_scalar(maker, SCALAR_OR, TSSA_BOOL, (uint32_t[]){equal, no_number});
    }
    const bool narrow = length->high <= INT32_MAX;
    const tssa_dtype as = narrow ? TSSA_INT32 : TSSA_INT64;
    const uint32_t at = gir_make(
        maker, (struct gir_code){.op = column >= 0 ? GIR_ROW : GIR_POSITION, .type = (uint8_t)as});
    const uint32_t none = gir_make_number(maker, as, last ? -1 : narrow ? INT32_MAX : 0x1p62);
    const uint32_t found = gir_make_scalar(maker, SCALAR_SEL, as, (uint32_t[]){equal, at, none});
    return maker->why ? 0
                      : gir_make(maker, (struct gir_code){.op = GIR_REDUCE,
                                                          .scalar = last ? SCALAR_MAX : SCALAR_MIN,
                                                          .type = (uint8_t)as,
                                                          .operands = {found},
                                                          .bits = maker->codes[none].bits});
}

uint32_t gir_make_row_op(struct gir_maker *maker, const struct ir_op *op, const uint32_t *operands)
{
    const tssa_dtype dtype = ir_operand(op, 0)->type->dtype, result = op->results[0].type->dtype;
    tssa_dtype type;
    uint32_t value;
    if (maker->why)
        return 0;
    if (!dtype_in(T_FLOAT | T_INT, dtype) || !dtype_in(T_FLOAT | T_INT, result))
        return refuse(maker, "kernels have no such elements");
    if (op->info->reduction)
        value = gir_make_reduction(maker, op->info->reduction->row, operands[0], &type);
    else if (is_arg(op))
        value = make_arg(maker, op, operands[0]);
    else
        value = make_composition(maker, op, operands);
    return gir_make_as(maker, value, result);
}

/* ---- Running sums ---------------------------------------------------------------------------- */

/* What nothing has been added to: -0 is, of all numbers, what leaves any other as it is. */
static double start_of(const struct ir_op *op, tssa_dtype type, bool exclusive)
{
    if (ir_op_is(op, IR_OP_CumProd))
        return 1;
    return exclusive || !dtype_is_float(type) ? 0 : -0.0;
}

/* States are numbered. */
static uint64_t count_states(const struct gir_maker *maker)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < maker->n; i++)
        n += maker->codes[i].op == GIR_STATE;
    return n;
}

uint32_t gir_make_scan(struct gir_maker *maker, const struct ir_op *op, uint32_t value)
{
    const bool exclusive = ir_attr_int(op, "exclusive", 0) != 0;
    const tssa_dtype dtype = op->results[0].type->dtype,
                     type = dtype_is_float(dtype) && dtype != TSSA_DOUBLE ? TSSA_FLOAT : dtype;
    const enum scalar_id id = ir_op_is(op, IR_OP_CumProd) ? SCALAR_MUL : SCALAR_ADD;
    const uint32_t x = gir_make_as(maker, value, type),
                   begin = gir_make_number(maker, type, start_of(op, type, exclusive));
    if (maker->why)
        return 0;
    const uint32_t state = gir_make(maker, (struct gir_code){.op = GIR_STATE,
                                                             .type = (uint8_t)type,
                                                             .operands = {begin},
                                                             .bits = count_states(maker)});
    const uint32_t next = gir_make_scalar(maker, id, type, (uint32_t[]){state, x});
    gir_make(maker,
             (struct gir_code){.op = GIR_NEXT, .type = (uint8_t)type, .operands = {state, next}});
    return gir_make_as(maker, exclusive ? state : next, dtype);
}
