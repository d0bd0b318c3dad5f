/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the regions of two ops with rules (view, access, assign) on bases of one shape lie to each
 * other, and what is left of a rule inside another. Answers hold in every run; "unknown" is always
 * allowed.
 */
#ifndef TSSA_PASSES_ANALYSIS_REGIONS_H
#define TSSA_PASSES_ANALYSIS_REGIONS_H

#include "ir/region.h"

enum region_relation {
    RELATION_UNKNOWN,
    RELATION_EQUAL,    /* the same elements in the same order, none of them twice */
    RELATION_DISJOINT, /* no element in common */
    RELATION_INSIDE    /* the second lies in the first, and rule_inside can say where */
};

/* The bases have one type, or nothing is known. */
tssa_status *regions_relate(struct region_space *space, const struct ir_op *outer,
                            const struct ir_op *inner, enum region_relation *relation);
/* The same rule; elements may occur twice. */
bool regions_identical(struct region_space *space, const struct ir_op *a, const struct ir_op *b);

/*
 * The steps of `inner` as a rule on the region of `outer`, when regions_relate says
 * RELATION_INSIDE. Its operands are numbered as in `inner`. NULL when memory runs out.
 */
const struct rule *rule_inside(struct region_space *space, const struct ir_op *outer,
                               const struct ir_op *inner);

/*
 * No run fails because of this rule, whatever the elements: indices in range, axes of size one, ...
 */
bool region_never_fails(const struct ir_op *op);
/* The same in all iterations that the loops around the op make: an index may be counted by one. */
bool region_never_fails_in_loops(const struct ir_op *op);
/* Does each element of the region stand for another element of the base? */
bool rule_step_is_injective(const struct rule_step *step);
/* All params are constants. */
bool rule_is_constant(const struct rule *rule);

#endif
