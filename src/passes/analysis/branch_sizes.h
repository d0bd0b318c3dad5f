/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the branches around a block tell of sizes: in the then_branch of an If that asks whether a
 * size is less than 1024, it is.
 *
 *     const struct branch_sizes asked = {symbols, n_symbols, &sizes};
 *     if (branch_sizes_exclude(&asked, block)) ...     no run comes to the block with these sizes
 */
#ifndef TSSA_PASSES_ANALYSIS_BRANCH_SIZES_H
#define TSSA_PASSES_ANALYSIS_BRANCH_SIZES_H

#include "ir/cost.h"

/* Sizes of these symbols; nothing is said of others, and of what is made of them. */
struct branch_sizes {
    const struct dim *const *symbols;
    int n_symbols;
    const struct cost_sizes *sizes;
};

/* Conditions are comparisons of known elements, and And, Or and Not of them; what others say is not
 * known. */
bool branch_sizes_exclude(const struct branch_sizes *asked, const struct ir_block *block);

#endif
