/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that are being put together, and those that operators stand for: an op that only rearranges
 * its first operand is an access of it. Which, says the `rule` column of the op table; the
 * functions are in movement.c.
 *
 *     struct rule_draft draft = {0};
 *     if (rule_of_movement(op, &draft))
 *         rule = rule_create(graph, draft.n_steps, draft.steps);
 */
#ifndef TSSA_IR_RULE_DRAFT_H
#define TSSA_IR_RULE_DRAFT_H

#include "ir/rule.h"

/*
 * A rule that is being put together. Where its elements come from (RULE_ORIGINS) does not depend on
 * where a slice ends, and whether it can fail (RULE_AXES) on neither bound: what cannot be said of
 * them is as if it were the axis's beginning or end.
 */
struct rule_draft {
    uint32_t n_steps, n_params, n_operands;
    bool full;                                          /* something did not fit: no rule */
    enum { RULE_EXACT, RULE_ORIGINS, RULE_AXES } asked; /* what the rule is for */
    struct rule_step steps[RULE_MAX_STEPS];
    struct rule_param params[4 * RULE_MAX_STEPS];
    struct ir_value *operands[RULE_MAX_STEPS];
};

/* An empty one; its arrays are not set. */
static inline void draft_begin(struct rule_draft *draft, int asked)
{
    draft->n_steps = draft->n_params = draft->n_operands = 0;
    draft->full = false;
    draft->asked = asked;
}

/* Adds a step whose params are numbers. */
void draft_step(struct rule_draft *draft, enum rule_kind kind, uint32_t n, const int64_t *params);
/* Adds a step with an axis and one more param, which is `value`: select, gather, mask. */
void draft_step_value(struct rule_draft *draft, enum rule_kind kind, int64_t axis,
                      struct ir_value *value);
/* Adds a reshape or an expand to sizes: integers of rank 0, constants as numbers; where there is
 * none, the dim. */
void draft_sizes(struct rule_draft *draft, enum rule_kind kind, uint32_t n, const int64_t *dims,
                 struct ir_value *const *sizes);
void draft_select(struct rule_draft *draft, int64_t axis, int64_t index);
void draft_slice(struct rule_draft *draft, int64_t axis, int64_t start, int64_t end, int64_t step);
/* Adds the steps of another op's rule, and its operands. */
void draft_rule(struct rule_draft *draft, const struct ir_op *op);
/* A permutation; none when it changes nothing. */
void draft_permute(struct rule_draft *draft, int rank, const int64_t *perm);

/* The steps that the op stands for; false: it moves elements in another way, or at all, or to where
 * is not known. One op gives one step, where that is possible: lowering gives the same op back. */
bool rule_of_movement(const struct ir_op *op, struct rule_draft *draft);

/* The column of the op table. Operand 0 is a tensor of known rank. */
#define MOVEMENT_DECLARED(name)                                                                    \
    bool movement_##name(const struct ir_op *op, struct rule_draft *draft)
#define MOVEMENT(name)                                                                             \
    MOVEMENT_DECLARED(name);                                                                       \
    MOVEMENT_DECLARED(name)

#endif
