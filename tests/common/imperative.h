/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs imperative programs as docs/tensorssa.md says what they mean: a name is a tensor in some
 * storage, which other names may share. What conversion makes of a program must give the same, to
 * the bit.
 */
#ifndef TSSA_TESTS_COMMON_IMPERATIVE_H
#define TSSA_TESTS_COMMON_IMPERATIVE_H

#include "base/value.h"
#include "ir/ir.h"

/* Tensors only: sequences are refused, and so is control flow but Loop and If. The outputs own
 * their memory; on an error there are none. The graph's types must be inferred. */
tssa_status *imperative_run(const struct ir_graph *graph, const struct value *const *inputs,
                            struct value *outputs);

#endif
