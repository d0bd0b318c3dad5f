/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library of the device that computes nothing: it declines no problem, and counts calls.
 * Kernels of the ops that ask it.
 */
#ifndef TSSA_DEVICE_NULL_LIBRARY_H
#define TSSA_DEVICE_NULL_LIBRARY_H

#include "device/library.h"

struct kernel_args;
struct kernel_setup;

extern const struct device_library null_library;

/* What a step keeps: its attributes and its primitives. */
tssa_status *null_library_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                  const void **state);
void null_library_release(const void *state);
/* Makes the op's problem and calls the library; *done false: it is none. */
tssa_status *null_library_run(struct kernel_args *args, bool *done);

#endif
