/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that are recorded: where the host decides nothing (steady.h), what a run asks of the device
 * is recorded once memory has settled, and replayed for as long as inputs have the same shapes and
 * results lie where they did. Then a run copies its inputs to where the recording reads them, asks
 * for one replay, and reads the results.
 *
 * A run state has one recording at most, of the latest shapes: it is to be found in the slab and
 * the pool of that state, which nobody else works in. A session keeps several states for shapes
 * that take turns (api/generation.h).
 */
#ifndef TSSA_RUNTIME_RECORDED_H
#define TSSA_RUNTIME_RECORDED_H

#include "runtime/executor.h"

/* Executes the body, recorded or not, but for the copies of what it returns. */
tssa_status *recorded_run_body(struct run *run, const struct value *const *inputs);
/* Was the latest run a replay? Then it has taken nothing from the device's pool, which is to stay
 * as it is. */
bool recorded_replayed(const struct run *run);
/* Before the streams are closed. */
void recorded_free(struct run *run);

#endif
