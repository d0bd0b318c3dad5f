/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run does because its plan has two spaces (spaces.h): a stream and a pool of the device's,
 * copies into mirrors, steps of the device. Where there is one space, the functions that are called
 * once per run do nothing, and nothing is called per step.
 */
#ifndef TSSA_RUNTIME_CROSSING_H
#define TSSA_RUNTIME_CROSSING_H

#include "runtime/executor.h"

/* ---- While a plan of two spaces is made: crossing_plan.c ------------------------------------- */

/* Does the value that this slot is of have a mirror? Of none where there is one space. */
static inline bool crossing_mirrored(const struct plan *plan, uint32_t slot)
{
    return plan->spaces.mirrored && plan->spaces.mirrored[slot];
}
/* Completes a step, of which the bindings are known, and a block. */
tssa_status *crossing_plan_step(struct plan *plan, const struct ir_op *op, struct step *step);
tssa_status *crossing_plan_block(struct plan *plan, struct block_plan *block);
/* Makes a constant's mirror, another constant: copies it to the device. */
tssa_status *crossing_plan_constant(struct plan *plan, const struct plan_constant *constant,
                                    struct plan_constant *mirror);
/* What these hold outside of the plan's arena. */
void crossing_plan_free(struct plan *plan);

/* ---- While it runs --------------------------------------------------------------------------- */

tssa_status *crossing_open(struct run *run);
void crossing_close(struct run *run); /* after crossing_open, failed or not called yet as well */
/* Around a run. In between, when all steps are done or one has failed, waits for the device, which
 * may tell of an error only then; returns the first error. */
void crossing_begin(struct run *run);
tssa_status *crossing_wait(struct run *run, tssa_status *status);
void crossing_end(struct run *run);
/* Around a block whose parameters are bound. */
tssa_status *crossing_enter(struct run *run, const struct plan_crossing *crossing);
tssa_status *crossing_leave(struct run *run, const struct plan_crossing *crossing);

/* A kernel of the device's. */
tssa_status *crossing_run_kernel(struct run *run, const struct step *step);
/* Any step of such a plan: copies, what it computes, and the symbols that it tells. */
tssa_status *crossing_run_step(struct run *run, const struct step *step);

#endif
