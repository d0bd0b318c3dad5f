/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that are recorded: where the host decides nothing (steady.h), what a run asks of the device
 * is recorded once memory has settled, and replayed for as long as inputs have the same shapes and
 * results lie where they did. Then a run copies its inputs to where the recording reads them, asks
 * for one replay, and reads the results; of what the caller has on the device nothing is copied
 * that the recording is bound to (bound.h).
 *
 * A run state has recordings of the latest shapes alone, for addresses that take turns: they are to
 * be found in the slab and the pool of that state, which nobody else works in. A session keeps
 * several states for shapes that take turns (api/generation.h).
 */
#ifndef TSSA_RUNTIME_RECORDED_H
#define TSSA_RUNTIME_RECORDED_H

#include "runtime/executor.h"

/* Before a run, whether or not its body is executed here. */
void recorded_begin(struct run *run);
/* Executes the body, recorded or not, but for the copies of what it returns. */
tssa_status *recorded_run_body(struct run *run, const struct value *const *inputs);
/* Was the latest run a replay? */
bool recorded_replayed(const struct run *run);
/* Is the device's pool to stay as it is, since recordings lie in it? */
bool recorded_keeps_pool(const struct run *run);
/* Before the streams are closed. */
void recorded_free(struct run *run);

#endif
