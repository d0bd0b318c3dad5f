/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the algebra of rules: lists of steps that grow at the end and are merged
 * there (rule_algebra.c), the shapes that steps meet (rule_shape.c), and which two steps are one
 * (rule_merge.c).
 */
#ifndef TSSA_IR_RULE_STEPS_H
#define TSSA_IR_RULE_STEPS_H

#include "ir/region.h"

/* A bound of a slice as far as that means the end, or the front going backwards. */
#define RULE_FAR INT32_MAX

/* The shape that a step meets; dims are NULL where they are not known. */
struct rule_shape {
    int rank; /* -1: unknown */
    const struct dim *dims[TSSA_MAX_RANK];
};

/* Steps that grow at the end and are merged there. */
struct rule_steps {
    struct ir_graph *graph;
    size_t n, capacity;
    struct rule_step *steps;
    struct rule_shape *before; /* the shape that each of them meets */
    struct rule_shape now;     /* after the last one */
};

static inline bool rule_is_constant(const struct rule_step *step, uint32_t i)
{
    return !step->params[i].is_operand;
}

static inline bool rule_all_constant(const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (step->params[i].is_operand)
            return false;
    return true;
}

static inline int64_t rule_number(const struct rule_step *step, uint32_t i)
{
    return step->params[i].value;
}

/* NULL when memory runs out. Rules keep params that they did not write. */
static inline struct rule_param *rule_new_params(struct rule_steps *steps, uint32_t n)
{
    return ARENA_ARRAY(&steps->graph->arena, struct rule_param, n + 1);
}

/* steps->now becomes what the step makes of it; false: that is not known. */
bool rule_shape_after(struct rule_steps *steps, const struct rule_step *step);
bool rule_does_nothing(const struct rule_step *step, const struct rule_shape *shape);

/* One step, or none, for two: MERGED puts it into *out. FAILED: memory ran out. */
enum rule_merge { APART, MERGED, CANCELLED, FAILED };
enum rule_merge rule_merge(struct rule_steps *steps, const struct rule_step *a,
                           const struct rule_step *b, struct rule_step *out);

#endif
