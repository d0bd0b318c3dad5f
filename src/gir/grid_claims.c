/* SPDX-License-Identifier: Apache-2.0 */
/* What must be true of a call's sizes; see grid.h. */
#include "gir/grid_maker.h"

static bool is_known(const struct dim *size, const struct dim *wanted, enum gir_claims claims)
{
    int64_t a, b;
    if (dim_is_const(size, &a) && dim_is_const(wanted, &b))
        return claims == GIR_AT_MOST ? a <= b : a == b || (claims == GIR_SAME_OR_ONE && a == 1);
    return size == wanted || (claims == GIR_SAME_OR_ONE && dim_broadcasts(size, wanted));
}

static void add(struct grid_maker *m, const struct dim *size, const struct dim *wanted,
                enum gir_claims claims)
{
    struct gir_grid *grid = m->grid;
    for (uint32_t i = 0; i < grid->n_claims; i++) {
        const struct gir_claim *claim = &grid->claims[i];
        if (claim->size == size && claim->wanted == wanted && claim->claims == claims)
            return;
    }
    if (grid->n_claims == GIR_GRID_MAX_CLAIMS) {
        grid_refuse(m, "it depends on more sizes than calls are asked for");
        return;
    }
    grid->claims[grid->n_claims++] =
        (struct gir_claim){m->op ? m->op : m->fuse, size, wanted, claims};
}

void grid_claim(struct grid_maker *m, const struct dim *size, const struct dim *wanted,
                enum gir_claims claims)
{
    if (m->maker.why || is_known(size, wanted, claims))
        return;
    const struct dim *own = grid_told(m, size), *other = grid_told(m, wanted);
    if (!own || !other)
        grid_refuse(m, "whether shapes fit is not known before it is computed");
    else if (!is_known(own, other, claims) && m->loop) /* of which there may be no iteration */
        grid_refuse(m, "whether shapes of an iteration fit is not known");
    else if (!is_known(own, other, claims))
        add(m, own, other, claims);
}

void grid_claim_count(struct grid_maker *m, const struct dim *const *dims, int rank,
                      const struct dim *const *wanted, int wanted_rank)
{
    const struct dim *count = grid_count(m, dims, rank),
                     *other = grid_count(m, wanted, wanted_rank);
    if (count && other)
        grid_claim(m, count, other, GIR_SAME);
    else
        grid_refuse(m, "memory ran out");
}
