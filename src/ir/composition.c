/* SPDX-License-Identifier: Apache-2.0 */
/* The table of compositions, from the rows of composition.def, and graphs of its texts. */
#include "ir/composition.h"

#include <string.h>

#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/rebuild.h"
#include "ir/reduction.h"
#include "ir/row.h"

enum row_axes { ROW_AXES_NONE, ROW_AXES_ITS, ROW_AXES_LAST, ROW_AXES_FROM };

enum { IN_FLOAT = DTYPE_BIT(TSSA_FLOAT), IN_DOUBLE = DTYPE_BIT(TSSA_DOUBLE), IN_ALL = T_F32F64 };

struct composition {
    enum ir_op_id op;
    dtype_mask types; /* that it is computed in */
    enum row_axes axes;
    const char *text;
};

static const struct composition table[] = {
#define COMPOSITION(op_, types_, axes_, ...)                                                       \
    {IR_OP_##op_, IN_##types_, ROW_AXES_##axes_, #__VA_ARGS__},
#include "ir/composition.def"
#undef COMPOSITION
};

#define MAX_OPERANDS 8

/* A graph being made of the text of a row. */
struct maker {
    const struct ir_op *op;
    const struct composition *row;
    struct ir_graph *graph;
    tssa_dtype type; /* that is computed in */
    int rank, axis;  /* where the row has axes */
    bool flattens;
};

static const struct composition *find_row(enum ir_op_id id, tssa_dtype type)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == id && dtype_in(table[i].types, type))
            return &table[i];
    return NULL;
}

static bool find_axis(struct maker *m)
{
    const int64_t axis = ir_op_axis(m->op);
    if (m->row->axes == ROW_AXES_NONE)
        return true;
    m->rank = infer_rank(m->op, 0);
    m->flattens = ir_row_flattens(m->op);
    m->axis = m->rank;
    return m->rank >= 0 &&
           ((m->flattens && axis == m->rank) || infer_find_axis(axis, m->rank, &m->axis));
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static struct ir_op *make_op(struct maker *m, enum ir_op_id id, uint32_t n_operands)
{
    struct ir_op *op = ir_op_create(m->graph, ir_op_info(id), n_operands, 1);
    if (op)
        op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    return op;
}

static bool set_attr(struct maker *m, struct ir_op *op, const char *name, struct ir_attr attr)
{
    attr.name = intern_str(&m->graph->strings, name);
    return attr.name && ir_op_set_attr(m->graph, op, &attr);
}

static struct ir_op *make_cast(struct maker *m, tssa_dtype type)
{
    struct ir_op *op = make_op(m, IR_OP_Cast, 1);
    const struct ir_attr to = {.kind = IR_ATTR_INT, .i = type};
    return op && set_attr(m, op, "to", to) ? op : NULL;
}

/* Are all axes from the operator's on seen as one, the last one? */
static bool is_flattened(const struct maker *m)
{
    return m->flattens && (m->row->axes == ROW_AXES_ITS || m->row->axes == ROW_AXES_LAST);
}

/* Brings the axis to the end, or back. */
static struct ir_op *make_transpose(struct maker *m, bool back)
{
    struct ir_op *op = make_op(m, IR_OP_Transpose, 1);
    int64_t *perm = ARENA_ARRAY(&m->graph->arena, int64_t, (size_t)m->rank);
    if (!op || !perm)
        return NULL;
    for (int i = 0; i < m->rank; i++) {
        const int from = i < m->axis ? i : i + 1 < m->rank ? i + 1 : m->axis;
        perm[back ? from : i] = back ? i : from;
    }
    const struct ir_attr attr = {.kind = IR_ATTR_INTS, .count = (size_t)m->rank, .ints = perm};
    return set_attr(m, op, "perm", attr) ? op : NULL;
}

static struct ir_op *make_flatten(struct maker *m)
{
    struct ir_op *op = make_op(m, IR_OP_Flatten, 1);
    const struct ir_attr axis = {.kind = IR_ATTR_INT, .i = m->axis};
    return op && set_attr(m, op, "axis", axis) ? op : NULL;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* What reads the parameter reads what the op, which is NULL when memory ran out, makes of it. */
static tssa_status *put_behind(struct maker *m, struct ir_value *param, struct ir_op *op)
{
    TRY_ALLOC(op);
    ir_value_replace(param, &op->results[0]);
    ir_op_set_operand(op, 0, param);
    ir_op_insert_before(op, m->graph->body->first);
    return NULL;
}

/* Of the operand's element type, and of any shape of its rank. */
static const struct ir_type *find_type(struct maker *m, const struct ir_value *operand)
{
    const struct ir_type *type = operand->type;
    const struct dim *dims[TSSA_MAX_RANK];
    if (type->rank < 0)
        return type_unranked(&m->graph->types, type->dtype);
    for (int i = 0; i < type->rank; i++) {
        dims[i] = dim_fresh(&m->graph->dims, "n");
        if (!dims[i])
            return NULL;
    }
    return type_tensor(&m->graph->types, type->dtype, type->rank, dims);
}

static tssa_status *take_operand(struct maker *m, struct ir_value *param,
                                 const struct ir_value *operand)
{
    const tssa_dtype dtype = operand->type->dtype;
    param->type = find_type(m, operand);
    TRY_ALLOC(param->type);
    if (is_flattened(m))
        TRY(put_behind(m, param, make_flatten(m)));
    else if (m->row->axes == ROW_AXES_LAST && m->axis != m->rank - 1)
        TRY(put_behind(m, param, make_transpose(m, false)));
    return dtype == m->type || !dtype_is_float(dtype) ? NULL
                                                      : put_behind(m, param, make_cast(m, m->type));
}

/* What is computed element by element with an absent operand is its first one. */
static void drop_operand(const struct ir_value *param)
{
    while (param->uses) {
        struct ir_use *use = param->uses;
        struct ir_op *user = use->user;
        ir_op_set_operand(user, (uint32_t)(use - user->operands), NULL);
        if (!user->info->ew)
            continue;
        ir_value_replace(&user->results[0], ir_operand(user, 0));
        ir_op_remove(user);
    }
}

static tssa_status *take_constant(struct maker *m, struct ir_value *param, struct ir_op *op)
{
    TRY_ALLOC(op);
    ir_value_replace(param, &op->results[0]);
    ir_op_insert_before(op, m->graph->body->first);
    return NULL;
}

static tssa_status *take_number(struct maker *m, struct ir_value *param, double number)
{
    struct tensor *tensor = ARENA_NEW(&m->graph->arena, struct tensor);
    double *element = ARENA_NEW(&m->graph->arena, double); /* as wide as any */
    TRY_ALLOC(tensor);
    TRY_ALLOC(element);
    *tensor = (struct tensor){.dtype = m->type, .data = element};
    dtype_store_double(m->type, element, number);
    return take_constant(m, param, ir_constant_create(m->graph, tensor));
}

static tssa_status *take_string(struct maker *m, struct ir_value *param, const tssa_string *string)
{
    struct tensor *tensor = ARENA_NEW(&m->graph->arena, struct tensor);
    tssa_string *element = arena_copy(&m->graph->arena, string, sizeof *string);
    TRY_ALLOC(tensor);
    TRY_ALLOC(element);
    *tensor = (struct tensor){.dtype = TSSA_STRING, .data = element};
    return take_constant(m, param, ir_constant_create(m->graph, tensor));
}

static tssa_status *take_ints(struct maker *m, struct ir_value *param, size_t count,
                              const int64_t *values)
{
    const int rank = param->type->rank;
    return take_constant(m, param, ir_constant_ints(m->graph, rank, count, values));
}

/* The op's axis, or all from it on, counted from the end. */
static tssa_status *take_axes(struct maker *m, struct ir_value *param)
{
    int64_t axes[TSSA_MAX_RANK];
    const int64_t first = is_flattened(m) ? -1 : m->axis - m->rank;
    const size_t count = m->row->axes == ROW_AXES_ITS ? 1 : (size_t)(m->rank - m->axis);
    for (size_t i = 0; i < count; i++)
        axes[i] = first + (int64_t)i;
    return take_constant(m, param, ir_constant_ints(m->graph, 1, count, axes));
}

static tssa_status *take_default(struct maker *m, struct ir_value *param,
                                 const struct tensor *tensor)
{
    if (dtype_is_float(tensor->dtype))
        return take_number(m, param, dtype_load_double(tensor->dtype, tensor->data));
    return take_constant(m, param, ir_constant_create(m->graph, tensor));
}

static tssa_status *take_attribute(struct maker *m, struct ir_value *param,
                                   const struct tensor *fallback)
{
    const struct ir_attr *attr = ir_attr(m->op, param->name);
    const bool has_axes = m->row->axes == ROW_AXES_ITS || m->row->axes == ROW_AXES_FROM;
    if (has_axes && strcmp(param->name, "axes") == 0)
        return take_axes(m, param);
    if (attr && attr->kind == IR_ATTR_FLOAT)
        return take_number(m, param, (double)attr->f);
    if (attr && attr->kind == IR_ATTR_INT)
        return take_ints(m, param, 1, &attr->i);
    if (attr && attr->kind == IR_ATTR_INTS)
        return take_ints(m, param, attr->count, attr->ints);
    if (attr && attr->kind == IR_ATTR_STRING)
        return take_string(m, param, &attr->s);
    return take_default(m, param, fallback);
}

static tssa_status *take_params(struct maker *m)
{
    struct ir_graph *graph = m->graph;
    uint32_t from[MAX_OPERANDS], n = 0;
    for (uint32_t i = 0; i < graph->body->n_params; i++) {
        struct ir_value *param = graph->body->params[i];
        const bool is_operand = i < m->op->info->max_operands;
        const struct ir_value *operand = is_operand ? ir_operand(m->op, i) : NULL;
        const struct tensor *fallback = graph->input_defaults[i];
        if (operand) {
            from[n++] = i;
            TRY(take_operand(m, param, operand));
        } else if (!is_operand) {
            TRY(take_attribute(m, param, fallback));
        } else if (fallback) {
            TRY(take_default(m, param, fallback));
        } else {
            drop_operand(param);
        }
    }
    if (!ir_block_set_params(graph->body, n, from))
        return status_out_of_memory();
    graph->input_defaults = ARENA_ARRAY(&graph->arena, const struct tensor *, n);
    TRY_ALLOC(graph->input_defaults);
    return NULL;
}

/* ---- Results --------------------------------------------------------------------------------- */

/* What is returned is what the op makes of it. */
static tssa_status *put_before(struct ir_op *ret, uint32_t index, struct ir_op *op)
{
    TRY_ALLOC(op);
    ir_op_set_operand(op, 0, ir_operand(ret, index));
    ir_op_insert_before(op, ret);
    ir_op_set_operand(ret, index, &op->results[0]);
    return NULL;
}

/* In the shape of operand 0. */
static tssa_status *unflatten(struct maker *m, struct ir_op *ret)
{
    struct ir_op *shape = make_op(m, IR_OP_Shape, 1), *op = make_op(m, IR_OP_Reshape, 2);
    TRY_ALLOC(shape);
    TRY_ALLOC(op);
    ir_op_set_operand(shape, 0, m->graph->body->params[0]);
    ir_op_insert_before(shape, ret);
    ir_op_set_operand(op, 1, &shape->results[0]);
    return put_before(ret, 0, op);
}

static tssa_status *give_results(struct maker *m)
{
    struct ir_op *ret = ir_block_return(m->graph->body);
    if (is_flattened(m))
        TRY(unflatten(m, ret));
    else if (m->row->axes == ROW_AXES_LAST && m->axis != m->rank - 1)
        TRY(put_before(ret, 0, make_transpose(m, true)));
    for (uint32_t i = 0; i < ret->n_operands; i++) {
        const struct ir_value *result = ir_result(m->op, i);
        const tssa_dtype dtype = result ? result->type->dtype : TSSA_UNDEFINED;
        if (dtype != m->type && dtype_is_float(dtype))
            TRY(put_before(ret, i, make_cast(m, dtype)));
    }
    return NULL;
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

/* Compositions in the text have the op's attributes besides their own. */
static tssa_status *give_attributes(struct maker *m)
{
    for (struct ir_op *inner = m->graph->body->first; inner; inner = inner->next)
        for (uint32_t i = 0; find_row(inner->info->id, m->type) && i < m->op->n_attrs; i++)
            if (!ir_attr(inner, m->op->attrs[i].name) &&
                !set_attr(m, inner, m->op->attrs[i].name, m->op->attrs[i]))
                return status_out_of_memory();
    return NULL;
}

tssa_status *ir_composition_of(const struct ir_op *op, const tssa_allocator *allocator,
                               struct ir_graph **graph)
{
    const tssa_dtype dtype = infer_dtype(op, 0);
    struct maker m = {.op = op};
    *graph = NULL;
    if (op->opaque || !dtype_is_float(dtype))
        return NULL;
    m.type = reduction_type(REDUCTION_Sum, dtype);
    m.row = find_row(op->info->id, m.type);
    if (!m.row || !find_axis(&m))
        return NULL;
    TRY(ir_parse(allocator, m.row->text, strlen(m.row->text), &m.graph));
    tssa_status *status = take_params(&m);
    if (!status)
        status = give_results(&m);
    if (!status)
        status = give_attributes(&m);
    if (!status)
        status = ir_infer_graph(m.graph);
    if (status)
        ir_graph_free(m.graph);
    else
        *graph = m.graph;
    return status;
}
