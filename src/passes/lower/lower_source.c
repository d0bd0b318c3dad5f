/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a write in the shape of its region. */
#include <string.h>

#include "passes/lower/lower_writer.h"

bool lower_has_dims(const struct ir_value *value, int rank, const struct dim *const *dims)
{
    return lower_rank(value) == rank && rank >= 0 &&
           (rank == 0 || memcmp(value->type->dims, dims, (size_t)rank * sizeof *dims) == 0);
}

/* The number that a dim is, from a tensor that has it; false: none of the two has. */
static bool find_dim(struct writer *w, const struct dim *dim, struct lower_number *number)
{
    struct ir_value *const from[] = {w->s, w->x};
    *number = (struct lower_number){0};
    if (dim_is_const(dim, &number->number))
        return true;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < lower_rank(from[k]); i++)
            if (from[k]->type->dims[i] == dim) {
                *number = lower_dim(w->l, from[k], i);
                return true;
            }
    return false;
}

/* The region's shape as a list. */
static struct ir_value *region_shape(struct writer *w)
{
    struct lower_number numbers[TSSA_MAX_RANK];
    bool found = w->region.rank >= 0;
    for (int i = 0; i < w->region.rank && found; i++)
        found = find_dim(w, w->region.dims[i], &numbers[i]);
    if (found)
        return lower_numbers(w->l, w->region.rank, numbers);
    struct ir_value *there = lower_access(w->l, w->x, w->rule, w->params);
    return there ? lower_emit(w->l, IR_OP_Shape, 1, &there) : NULL;
}

struct ir_value *lower_full_source(struct writer *w)
{
    if (lower_has_dims(w->s, w->region.rank, w->region.dims))
        return w->s;
    struct ir_value *const operands[] = {w->s, region_shape(w)};
    return operands[1] ? lower_emit(w->l, IR_OP_Expand, 2, operands) : NULL;
}
