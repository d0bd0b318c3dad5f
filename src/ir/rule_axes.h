/* SPDX-License-Identifier: Apache-2.0 */
/* Which axis of the base each axis is that the steps of a rule have left so far. */
#ifndef TSSA_IR_RULE_AXES_H
#define TSSA_IR_RULE_AXES_H

#include "ir/rule.h"

struct rule_axes {
    int n;
    int of[TSSA_MAX_RANK]; /* -1: none, it was inserted */
};

/* Before the first step. */
void rule_axes_begin(struct rule_axes *axes, int rank);
/* The axis goes: a select took it. */
void rule_axes_remove(struct rule_axes *axes, int64_t at);
/* After a step that only rearranges axes (permute, squeeze, unsqueeze). False: it does something
 * else, or there are too many. */
bool rule_axes_rearrange(struct rule_axes *axes, const struct rule_step *step);

#endif
