/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a run ask the same of the device whenever its inputs have the same shapes? Then it can be
 * recorded once and replayed (recorded.h): launches, and what they are given, follow from shapes
 * and constants, and the host waits for nothing before the results.
 *
 * What the host computes of an input's elements varies, and so does what follows from that: nothing
 * may be given to the device, decide over control flow, or be returned, that does. What a kernel
 * asks the device for while it runs shows when it is recorded.
 */
#ifndef TSSA_RUNTIME_STEADY_H
#define TSSA_RUNTIME_STEADY_H

#include "runtime/plan.h"

/* plan->driven, of a plan whose steps are all there. */
tssa_status *steady_find(struct plan *plan);

#endif
