/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run of a plan has to hold at one time, told from liveness alone: how many bytes the values
 * have that are in slots when a step ends (its operands, its results, and whatever a later step
 * reads), what the step's kernel asked for on its way, and what loops around it have stacked,
 * counted at the length that it comes to. Nobody places anything: every value is the pool's, which
 * counts who has it. So nothing lies on an operand either, unless the step says so by taking it
 * (kernel_take) or sharing it.
 */
#ifndef TSSA_TESTS_LIVE_BYTES_H
#define TSSA_TESTS_LIVE_BYTES_H

#include "runtime/executor.h"

/*
 * The greatest sum; each stretch of memory counts in whole units of TENSOR_ALIGNMENT. Of the
 * caller's memory, that of inputs and of given outputs, nothing. `outputs` as in run_execute, NONE
 * or tensors, which are written. One thread.
 */
size_t live_bytes(const struct ir_graph *graph, struct device_context *device,
                  const struct value *const *inputs, struct value *outputs);

#endif
