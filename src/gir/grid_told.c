/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes that a call of a grid can be told: what follows from the shapes of the op's operands and
 * results, and from the elements of operands that inference has names for. Who makes the call knows
 * these. Other sizes are computed in the kernel, of what broadcasting makes of told ones.
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

bool grid_is_told(const struct grid_maker *m, const struct dim *dim)
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

uint32_t grid_untold(struct grid_maker *m, const struct dim *dim)
{
    int axis;
    const struct ir_op *op = find_source(m, dim, &axis);
    if (!op || !op->info->ew)
        return grid_refuse(m, "nobody tells how much there is of what it computes");
    uint32_t size = grid_constant(m, 1);
    for (uint32_t i = 0; i < op->n_operands && !m->maker.why; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        const int at = operand ? axis - (op->results[0].type->rank - operand->type->rank) : -1;
        if (at < 0 || operand->type->dims[at] == dim)
            continue;
        const uint32_t other = grid_dim(m, operand->type->dims[at]);
        size = grid_choose(m, grid_test(m, SCALAR_EQ, size, grid_constant(m, 1)), other, size);
    }
    return size;
}
