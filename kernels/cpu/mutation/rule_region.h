/* SPDX-License-Identifier: Apache-2.0 */
/* The region of a rule in a concrete tensor: the offset of each of its elements. */
#ifndef TSSA_KERNELS_CPU_MUTATION_RULE_REGION_H
#define TSSA_KERNELS_CPU_MUTATION_RULE_REGION_H

#include "device/kernel.h"
#include "ir/rule.h"

/*
 * A strided view of the base's elements, or, after steps that no strides describe (a tile, a
 * gather, a mask, most reshapes), of a table of their offsets. Zero-initialise; rule_region_release
 * in every case.
 */
struct rule_region {
    int rank;
    int64_t dims[TSSA_MAX_RANK], strides[TSSA_MAX_RANK];
    int64_t offset;
    struct buffer *table; /* of int64_t; NULL: the strides are those of the base */
    /* an operand's number was counted from the end, or bounded by the dim, or is a step: the offset
     * is no affine function of such numbers */
    bool is_bent;
};

/*
 * The region of `rule` in a tensor of these dims. params[k] is $k; the pool gives the table. Checks
 * what a run must check: indices, sizes, ranks.
 */
tssa_status *rule_region_resolve(struct pool *pool, const struct rule *rule,
                                 const struct tensor *const *params, int rank, const int64_t *dims,
                                 struct rule_region *region);
void rule_region_release(struct rule_region *region);

/* Calls visit(context, n, offset) for each element n of the region, in row-major order. */
void rule_region_walk(const struct rule_region *region,
                      void (*visit)(void *context, int64_t n, int64_t offset), void *context);
int64_t rule_region_count(const struct rule_region *region);

#endif
