/* SPDX-License-Identifier: Apache-2.0 */
/* Which numbers are surely those of an element, so that no thread looks; see grid_maker.h. */
#include "gir/grid_maker.h"

/* Are they the same size in each call that is made? */
static bool is_same(struct grid_maker *m, const struct dim *a, const struct dim *b)
{
    if (a == b)
        return true;
    a = grid_told(m, a);
    b = grid_told(m, b);
    bool same = a && a == b;
    for (uint32_t i = 0; a && b && !same && i < m->grid->n_claims; i++) {
        const struct gir_claim *claim = &m->grid->claims[i];
        same = claim->claims == GIR_SAME && ((claim->size == a && claim->wanted == b) ||
                                             (claim->size == b && claim->wanted == a));
    }
    return same;
}

void grid_know_below(struct grid_maker *m, uint32_t number, const struct dim *size)
{
    if (m->maker.why || !size || grid_is_below(m, number, size))
        return;
    const struct grid_below below = {number, size};
    if (!vec_push(&m->below, below))
        grid_refuse(m, "memory ran out");
}

bool grid_is_below(struct grid_maker *m, uint32_t number, const struct dim *size)
{
    int64_t value, most;
    if (m->maker.why || !size)
        return false;
    if (grid_is_constant(m, number, &value))
        return value >= 0 && dim_is_const(size, &most) && value < most;
    for (size_t i = 0; i < m->below.count; i++)
        if (m->below.data[i].number == number && is_same(m, m->below.data[i].size, size))
            return true;
    return false;
}

bool grid_is_inside(struct grid_maker *m, const struct grid_place *place,
                    const struct dim *const *dims)
{
    bool inside = true;
    for (int i = 0; inside && i < place->rank; i++)
        inside = grid_is_below(m, place->at[i], dims[i]);
    return inside;
}

void grid_know_inside(struct grid_maker *m, const struct grid_place *place,
                      const struct dim *const *dims)
{
    for (int i = 0; i < place->rank; i++)
        grid_know_below(m, place->at[i], dims[i]);
}

const struct dim *grid_count(struct grid_maker *m, const struct dim *const *dims, int rank)
{
    struct dim_table *table = &m->body->graph->dims;
    const struct dim *count = dim_const(table, 1);
    for (int i = 0; count && i < rank; i++)
        count = dim_mul(table, count, dims[i]);
    return count;
}

bool grid_is_sure(struct grid_maker *m, uint32_t arg, uint32_t number,
                  const struct dim *const *dims, int rank)
{
    const struct dim *count = grid_count(m, dims, rank), *told = count ? grid_told(m, count) : NULL;
    if (m->maker.why || !told || !grid_is_below(m, number, count))
        return false;
    struct gir_whole *whole = &m->part->wholes[arg];
    if (!whole->least)
        whole->least = told;
    return whole->least == told;
}

bool grid_known_count(const struct dim *const *dims, int n, int64_t *product)
{
    int64_t size;
    *product = 1;
    for (int i = 0; i < n; i++)
        if (!dim_is_const(dims[i], &size) || __builtin_mul_overflow(*product, size, product))
            return false;
    return true;
}
