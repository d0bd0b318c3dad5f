/* SPDX-License-Identifier: Apache-2.0 */
/* What an op with blocks computes, by the interpreter: for devices of the tests that have a kernel
 * of it. */
#ifndef TSSA_TESTS_COMMON_INTERPRET_OP_H
#define TSSA_TESTS_COMMON_INTERPRET_OP_H

#include "device/kernel.h"

/* In a graph of its own, whose dims are those of the operands at hand. */
tssa_status *interpret_op(struct kernel_args *args);

#endif
