/* SPDX-License-Identifier: Apache-2.0 */
/* Random rules that fit a shape, with constant params, scalars of the test's, index tensors and
 * masks. */
#ifndef TSSA_TESTS_COMMON_RANDOM_RULE_H
#define TSSA_TESTS_COMMON_RANDOM_RULE_H

#include "base/pool.h"
#include "common/op_run.h"
#include "kernels/cpu/mutation/rule_region.h"

#define RANDOM_RULE_STEPS 4
#define RANDOM_RULE_OPERANDS 24
#define RANDOM_RULE_ELEMENTS 64 /* of a region, at most */

/* What $k is: a scalar of the test's, or a tensor of the rule's own. */
struct random_operand {
    int scalar; /* -1: a tensor */
    struct tensor tensor;
    int64_t data[RANDOM_RULE_ELEMENTS];
};

struct random_rule {
    struct rule rule;
    struct rule_step steps[RANDOM_RULE_STEPS];
    struct rule_param params[RANDOM_RULE_STEPS][TSSA_MAX_RANK];
    uint32_t n_operands;
    struct random_operand operands[RANDOM_RULE_OPERANDS];
    int rank; /* the region's shape */
    int64_t dims[TSSA_MAX_RANK];
};

struct random_scalars {
    int n;
    const int64_t *values;
};

/* Kinds whose bit is set in `kinds` (1 << RULE_SELECT, ...). */
void random_rule(struct random *random, struct pool *pool, uint32_t kinds, int rank,
                 const int64_t *dims, const struct random_scalars *scalars,
                 struct random_rule *out);
/* The region with these values of the scalars; false when the run fails. To be released. */
bool random_rule_resolve(const struct random_rule *rule, struct pool *pool, int rank,
                         const int64_t *dims, const int64_t *scalars, struct rule_region *region);

#endif
