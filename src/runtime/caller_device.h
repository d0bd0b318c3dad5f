/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs and outputs that the caller has in memory of the session's device. An input is the mirror
 * of its value there (crossing.h), and is copied to the host only if something of the host's reads
 * its elements; an output is copied to the caller's memory within the device, unless it was made
 * there.
 */
#ifndef TSSA_RUNTIME_CALLER_DEVICE_H
#define TSSA_RUNTIME_CALLER_DEVICE_H

#include "runtime/executor.h"

/* plan->host_reads. */
tssa_status *caller_device_find(struct plan *plan);
/* Before anything is asked of the device: the run comes after what was asked of the caller's
 * stream.
 */
tssa_status *caller_device_follow(struct run *run);
/* When all is asked: may the run return, since the caller's stream comes after it? */
bool caller_device_leads(struct run *run);
/* When inputs are bound and memory is laid out: their elements, of those that the host reads. */
tssa_status *caller_device_fetch(struct run *run);
/* The mirrors of inputs, when those of the run before are gone. */
void caller_device_set_mirrors(struct run *run);
/* Copies what lies in the slot, of the device's memory, to the caller's for each output that is in
 * slot `mirror` on the host; *wanted: some output is wanted there. */
tssa_status *caller_device_return(struct run *run, const struct value *value, uint32_t mirror,
                                  bool *wanted);
/* Output `index`, which the host has, to the caller's memory; or nothing, where it was returned. */
tssa_status *caller_device_take(struct run *run, uint32_t index, const struct value *value);

#endif
