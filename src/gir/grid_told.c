/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes that a call of a grid can be told: what follows from the shapes of the op's operands and
 * results, and from the elements of operands that inference has names for. Who makes the call knows
 * these. Other sizes are those that broadcasting makes of told ones.
 */
#include "gir/grid_maker.h"
#include "ir/fuse.h"

static bool is_of_type(const struct ir_type *type, const struct dim *dim)
{
    bool found = false;
    for (int i = 0; type->kind == TYPE_TENSOR && i < type->rank; i++)
        found |= type->dims[i] == dim;
    return found;
}

static bool is_known_element(const struct ir_value *value, const struct dim *dim)
{
    bool found = false;
    for (size_t i = 0; value->known && i < value->known->count; i++)
        found |= value->known->elements[i] == dim;
    return found;
}

static bool is_of_op(const struct ir_op *fuse, const struct dim *dim)
{
    for (uint32_t i = 0; i < fuse->n_operands; i++)
        if (is_of_type(ir_operand(fuse, i)->type, dim) ||
            is_known_element(ir_operand(fuse, i), dim))
            return true;
    for (uint32_t i = 0; i < fuse->n_results; i++)
        if (fuse->results[i].wanted && is_of_type(fuse->results[i].type, dim))
            return true;
    return false;
}

/* As dim_eval asks for them. */
static bool has_told_symbols(const struct ir_op *fuse, const struct dim *dim)
{
    if (dim->kind == DIM_CONST || dim->kind == DIM_SYMBOL)
        return dim->kind == DIM_CONST || is_of_op(fuse, dim);
    bool all = true;
    for (uint32_t i = 0; all && i < dim->n_terms; i++)
        all = has_told_symbols(fuse, dim->terms[i]);
    return all;
}

static bool is_told(const struct grid_maker *m, const struct dim *dim)
{
    return is_of_op(m->fuse, dim) || has_told_symbols(m->fuse, dim);
}

/* The op of the block that such a size comes from, and along which axis: the first one. */
static const struct ir_op *find_source(const struct grid_maker *m, const struct dim *dim, int *axis)
{
    for (const struct ir_op *op = m->body->first; op->n_results; op = op->next) {
        const struct ir_type *type = op->results[0].type;
        for (*axis = 0; type->kind == TYPE_TENSOR && *axis < type->rank; ++*axis)
            if (type->dims[*axis] == dim)
                return op;
    }
    return NULL;
}

/* What two sizes are broadcast to: the other one of 1, and 0 where one is 0. */
static const struct dim *broadcast(struct dim_table *table, const struct dim *a,
                                   const struct dim *b)
{
    const struct dim *one = dim_const(table, 1);
    const struct dim *any = dim_mul(table, dim_min(table, a, one), dim_min(table, b, one));
    return dim_mul(table, dim_max(table, a, b), any);
}

const struct dim *grid_told(struct grid_maker *m, const struct dim *dim)
{
    struct dim_table *table = &m->body->graph->dims;
    const struct dim *size = NULL;
    int axis;
    if (is_told(m, dim))
        return dim;
    const struct ir_op *op = find_source(m, dim, &axis);
    for (uint32_t i = 0; op && op->info->ew && i < op->n_operands; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        const int at = operand ? axis - (op->results[0].type->rank - operand->type->rank) : -1;
        if (at < 0 || operand->type->dims[at] == dim)
            continue;
        const struct dim *other = grid_told(m, operand->type->dims[at]);
        if (!other)
            return NULL;
        size = size ? broadcast(table, size, other) : other;
    }
    return size && has_told_symbols(m->fuse, size) ? size : NULL;
}
