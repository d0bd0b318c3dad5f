/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over a rule's steps that makes a region: what its steps share. Each step takes the
 * region from what it is before it to what it is after it, or gives up: then nothing is known of
 * the region.
 */
#ifndef TSSA_IR_REGION_WALK_H
#define TSSA_IR_REGION_WALK_H

#include "ir/region.h"

/* One axis of the region on its way. */
struct region_walk_axis {
    const struct dim *dim, *stride; /* stride: of the row-major base, while the region is strided */
    int id;      /* base axes whose `result` this is are walked along it; none: a broadcast */
    bool opaque; /* what it walks along is not a plain progression */
};

struct region_walk {
    struct region_space *space;
    struct dim_table *table;
    struct region *region;
    int rank; /* -1: nothing is known any more */
    struct region_walk_axis axes[2 * TSSA_MAX_RANK];
    int n_ids;
};

typedef tssa_status *(*step_fn)(struct region_walk *walk, const struct rule_step *step);

/* No tensor that a run can have is as long: a bound beyond it means "the end". */
#define WALK_FAR INT32_MAX
#define WALK_LOST (-2) /* the `result` of a base axis that some opaque axis moves along */

const struct dim *walk_constant(const struct region_walk *walk, int64_t value);
const struct dim *walk_param(const struct region_walk *walk, const struct rule_step *step,
                             uint32_t i);
bool walk_give_up(struct region_walk *walk);
bool walk_has_axis(struct region_walk *walk, int64_t axis);
void walk_remove_axis(struct region_walk *walk, int64_t axis);
void walk_insert_axis(struct region_walk *walk, int64_t axis, struct region_walk_axis new);
/* An axis that moves along nothing. */
struct region_walk_axis walk_broadcast_axis(struct region_walk *walk, const struct dim *dim);
/* What was walked along the axis stands still, or is not a plain walk. */
void walk_detach(struct region_walk *walk, int id, int result);
bool walk_is_broadcast(const struct region_walk *walk, const struct region_walk_axis *axis);
/* Each element is there `count` times as often. */
void walk_repeated(struct region_walk *walk, const struct dim *count);
/* The axis is about to be no plain one: what it repeats must be told now. */
void walk_account(struct region_walk *walk, const struct region_walk_axis *axis);
void walk_make_opaque(struct region_walk *walk, struct region_walk_axis *axis);
/* Coordinates of the base axes along `axis` become start + by * ...; the offset follows. */
void walk_move_start(struct region_walk *walk, const struct region_walk_axis *axis,
                     const struct dim *by);
/* Some elements of the region may be gone: of an opaque axis it is not known which. */
void walk_narrowed(struct region_walk *walk, const struct region_walk_axis *axis);

/* Takes an axis of one element away. */
void walk_squeeze_axis(struct region_walk *walk, int64_t at);

/* A row of rule.def each. */
#define RULE(id, text, ...)                                                                        \
    tssa_status *region_step_##text(struct region_walk *walk, const struct rule_step *step);
#include "ir/rule.def"
#undef RULE

#endif
