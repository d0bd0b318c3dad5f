/* SPDX-License-Identifier: Apache-2.0 */
/* What a grid stores: which value of the block a result of the fuse op is, of a loop as well; see
 * grid_maker.h. */
#include "gir/grid_maker.h"
#include "gir/iteration.h"
#include "ir/fuse.h"
#include "ir/update.h"

/* Which result of m->own it is, whose block is computed; GIR_NONE: none. */
static uint32_t own_result(const struct grid_maker *m, uint32_t result)
{
    if (!m->loop)
        return result;
    const uint32_t of_loop = grid_result_of_loop(m, result);
    const struct ir_value *next = of_loop == GIR_NONE ? NULL : gir_loop_next(m->loop, of_loop);
    return next && next->op == m->own ? next->index : GIR_NONE;
}

const struct ir_value *grid_result_value(const struct grid_maker *m, uint32_t result)
{
    const uint32_t own = own_result(m, result);
    return own == GIR_NONE ? NULL : ir_operand(ir_block_return(m->body), own);
}

const struct ir_value *grid_returned(const struct grid_maker *m, uint32_t result)
{
    const uint32_t own = own_result(m, result);
    return own == GIR_NONE ? NULL : ir_fuse_returned(m->own, own);
}

bool grid_updates(const struct grid_maker *m, uint32_t result)
{
    uint32_t operand;
    const uint32_t own = own_result(m, result);
    return own != GIR_NONE && ir_fuse_updates(m->own, own, &operand);
}

bool grid_begins_as(const struct grid_maker *m, uint32_t result, uint32_t *operand)
{
    return !m->walks && ir_fuse_begins_as(m->fuse, result, operand);
}

const struct grid_cut *grid_inner_cut(const struct grid_maker *m, uint32_t stored)
{
    if (stored < m->fuse->n_results)
        return NULL;
    const struct grid_cut *cut = m->cuts;
    while (cut->result != GIR_NONE || cut->inner != stored - m->fuse->n_results)
        cut++;
    return cut;
}

const struct ir_value *grid_stored_value(const struct grid_maker *m, uint32_t stored)
{
    const struct grid_cut *inner = grid_inner_cut(m, stored);
    if (inner)
        return inner->value;
    const struct ir_value *value = grid_result_value(m, stored);
    return grid_updates(m, stored) ? ir_operand(value->op, 1) : value;
}
