/* SPDX-License-Identifier: Apache-2.0 */
/* Scores that are compared with a threshold, and what stands in their place: bound_scores.c says
 * why. */
#ifndef TSSA_PASSES_SIMPLIFY_BOUND_SCORES_H
#define TSSA_PASSES_SIMPLIFY_BOUND_SCORES_H

#include "ir/clone.h"

struct scores {
    struct ir_op *compare, *score;
    struct ir_op *slice;            /* what is compared of the scores; NULL: all of them */
    struct ir_op *turns, *flattens; /* accesses, the second one of the first: what is scored */
    bool is_by_element;             /* Sigmoid; else Softmax, by rows */
    int64_t from, to;               /* which columns are compared */
    float bound;                    /* what an element, or the largest of a row, must exceed */
    /* What is scored is planes[r % groups, c, r / groups] in row r, column c, where `planes` has
     * the shape [groups, columns, cells]. */
    struct ir_value *planes;
    int64_t groups, columns, cells, elements;
};

/* In the place of the places where the comparison is true (NonZero), and of what is compared
 * there, in their order. */
struct passed {
    struct ir_op *branch; /* which makes them */
    struct ir_value *places, *scores;
};

/* Before the comparison. */
tssa_status *bound_scores_make(const struct scores *scores, struct ir_cloner *cloner,
                               struct passed *passed);

#endif
