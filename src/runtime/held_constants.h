/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants that steps of a plan read where they lie: those that are copies (ir/copies.h) are held
 * while the plan lives. Not held are weights of which kernels take care themselves
 * (kernel.packs), and of what nobody reads any more.
 */
#ifndef TSSA_RUNTIME_HELD_CONSTANTS_H
#define TSSA_RUNTIME_HELD_CONSTANTS_H

#include "runtime/plan.h"

/* Of all in the plan's graph; what was held when it fails is dropped with the rest. */
tssa_status *held_constants_hold(struct plan *plan);
void held_constants_drop(struct plan *plan);

#endif
