/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles as Chrome trace events (chrome://tracing, Perfetto). One complete event ("ph": "X") per step;
 * the steps of a loop body appear once, inside their loop's event, with their total time and count.
 */
#ifndef TSSA_RUNTIME_PROFILE_H
#define TSSA_RUNTIME_PROFILE_H

#include "runtime/executor.h"

/* total += run, and empties `run`. */
void profile_add(const struct plan *plan, struct step_profile *total, struct step_profile *run);
tssa_status *profile_write(const struct plan *plan, const struct step_profile *profile,
                           void (*write)(void *user, const char *text, size_t size), void *user);

#endif
