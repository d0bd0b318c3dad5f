/* SPDX-License-Identifier: Apache-2.0 */
/* A committed model with a plan and a run of its own, where a test looks into them; model_run.h has
 * a session instead. */
#ifndef TSSA_TESTS_MODEL_PLAN_H
#define TSSA_TESTS_MODEL_PLAN_H

#include "common/model_run.h"
#include "runtime/executor.h"

struct model_plan {
    struct model_run model;
    struct plan *plan;
    struct run *run;
    const struct value **inputs; /* the model's test data */
    struct value *outputs;
};

/* All of it, on the CPU, without threads; the test fails where it cannot be. */
void model_plan_open(struct model_plan *p, const char *path, int level, tssa_target target);
/* Outputs that are there already are written to, where they fit. */
void model_plan_execute(struct model_plan *p);
void model_plan_release_outputs(struct model_plan *p);
/* Those that no run can be given: all but tensors of numbers. */
void model_plan_release_others(struct model_plan *p);
void model_plan_close(struct model_plan *p);

#endif
