/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a fuse op: where each begins and ends. */
#include <string.h>

#include "gir/mapper.h"

/* Axes that anything has. */
static uint32_t all_axes(const struct mapper *m)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < m->n_args; i++)
        all |= m->part->maps[i].axes;
    return all;
}

/* The innermost one, of elements. */
static uint32_t innermost(const struct mapper *m)
{
    const int column = m->part->space.column;
    const uint32_t all = all_axes(m) & ~(column < 0 ? 0 : 1u << column);
    uint32_t axis = 0;
    for (uint32_t bit = 1; bit <= all; bit <<= 1)
        if (all & bit)
            axis = bit;
    return axis;
}

bool mapper_has_short_rows(const struct mapper *m, int64_t columns)
{
    const uint32_t all = all_axes(m);
    const int last = m->part->space.rank - 1;
    int next = last - 1;
    while (next >= 0 && !(all >> next & 1))
        next--;
    if (next < 0 || !(all >> last & 1))
        return false;
    for (uint32_t i = 0; i < m->n_args; i++) {
        const bool has = m->part->maps[i].axes >> last & 1;
        if (has != (m->part->maps[i].axes >> next & 1) ||
            (has && m->apart[i][next] != m->apart[i][last] * columns))
            return true;
    }
    return false;
}

void mapper_finish_args(struct mapper *m)
{
    const uint32_t inner = innermost(m);
    uint32_t told = m->part->space.trips ? 1u << m->part->space.column : 0;
    for (int i = 0; i < m->part->space.rank; i++)
        told |= m->part->space.dims[i] >= 0 ? 1u << i : 0;
    for (uint32_t i = 0; i < m->n_args; i++) {
        struct gir_arg *arg = &m->args[i];
        const bool has = m->part->maps[i].axes & inner, close = m->side_by_side[i] & inner;
        arg->moves = has              ? close ? GIR_SIDE_BY_SIDE : GIR_STRIDED
                     : arg->is_result ? GIR_SIDE_BY_SIDE
                                      : GIR_STAYS;
        if (arg->fields > 1 && arg->moves == GIR_STRIDED)
            mapper_refuse(m, "records are not side by side");
        if (gir_tells_size(&m->part->maps[i]) && (!arg->is_result || m->parts->n > 0))
            told |= m->part->maps[i].axes;
    }
    for (uint32_t i = 0; i < m->n_args; i++)
        if (m->part->maps[i].axes & ~told)
            mapper_refuse(m, "how shapes are broadcast is not known");
}

tssa_status *mapper_finish_part(struct mapper *m)
{
    const size_t args = m->n_args * sizeof(struct gir_arg);
    gir_drop_dead(&m->maker, m->numbers);
    const size_t codes = m->maker.n * sizeof(struct gir_code);
    struct gir_kernel *made = allocator_alloc(m->allocator, sizeof *made + args + codes);
    TRY_ALLOC(made);
    *made = (struct gir_kernel){.magic = GIR_MAGIC,
                                .size = (uint32_t)(sizeof *made + args + codes),
                                .n_args = m->n_args,
                                .n_codes = m->maker.n,
                                .columns = m->part->space.column >= 0,
                                .checks = m->checks};
    memcpy(made + 1, m->args, args);
    memcpy((char *)(made + 1) + args, m->maker.codes, codes);
    m->part->kernel = made;
    m->parts->n++;
    return NULL;
}

void mapper_begin_part(struct mapper *m, int rank)
{
    m->part = &m->parts->parts[m->parts->n];
    *m->part =
        (struct gir_part){.space = {.rank = rank, .result_rank = m->like->rank, .column = -1}};
    for (int i = 0; i < TSSA_MAX_RANK; i++)
        m->part->space.dims[i] = m->part->space.result_dims[i] = -1;
    for (int i = 0; i < m->like->rank; i++)
        (void)dim_is_const(m->like->dims[i], &m->part->space.result_dims[i]);
    m->n_args = 0;
    m->checks = false;
    m->maker.n = 0;
    m->seen.count = 0;
    memset(m->heads, 0, m->n_values * sizeof *m->heads);
}

void mapper_begin_region(struct mapper *m, int rank)
{
    mapper_begin_part(m, rank);
    for (int i = 0; i < rank; i++)
        m->part->space.dims[i] = m->region.cut >> i & 1 ? m->region.end[i] - m->region.begin[i]
                                                        : m->part->space.result_dims[i];
}
