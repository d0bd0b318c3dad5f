/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which elements of its data a Scatter or Gather with an index tensor addresses. Each axis of the
 * data that is indexed has an element function over the positions in the index tensor. Where every
 * axis depends on one coordinate of the position at most, and every coordinate moves one axis, the
 * places are a region of selects and slices.
 */
#ifndef TSSA_PASSES_RECOVER_RECOVER_PLACES_H
#define TSSA_PASSES_RECOVER_RECOVER_PLACES_H

#include "passes/recover/recover.h"

/* Which elements of the data an op addresses. */
struct places {
    struct element_space space; /* the positions in the index tensor */
    int n_axes;                 /* leading axes of the data that are indexed */
    struct element at[TSSA_MAX_RANK];
    int moves[TSSA_MAX_RANK]; /* the coordinate that an axis moves with; -1: none; -2: several */
    const struct ir_type *data;
    /* The region's axes among the leading ones, in order: the coordinates that they are. */
    int n_kept, kept[TSSA_MAX_RANK];
    char why[384]; /* when they are no region: the fact that is missing */
};

/*
 * The region of the places as steps of a rule; false: they are none, and places->why says why not.
 */
bool places_draft(struct ir_graph *graph, struct places *places, struct rule_draft *draft);
/* The same where no axis moves: a select of each. */
bool places_draft_fixed(struct ir_graph *graph, struct places *places, struct rule_draft *draft);
/* The step of one axis, which moves with this coordinate and is the region's axis `region_axis`. */
bool places_draft_moving(struct ir_graph *graph, struct places *places, int axis, int coordinate,
                         int64_t region_axis, struct rule_draft *draft);
/*
 * The places that the last axis of an index tensor lists; *n_proven columns from the first one on.
 */
tssa_status *places_read_tuples(struct pass_context *pass, const struct ir_op *op, int depth,
                                struct places *places, bool *proven, int *n_proven);
/* The places of ScatterElements and GatherElements: a position, but for one axis. */
tssa_status *places_read_elements(struct pass_context *pass, const struct ir_op *op, int axis,
                                  struct places *places, bool *proven);

#endif
