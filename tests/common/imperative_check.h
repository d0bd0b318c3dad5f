/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a program give the same bits when it is run with real aliasing (common/imperative.h), after
 * TensorSSA conversion, and after all of level 2?
 */
#ifndef TSSA_TESTS_COMMON_IMPERATIVE_CHECK_H
#define TSSA_TESTS_COMMON_IMPERATIVE_CHECK_H

#include "base/text.h"
#include "base/value.h"
#include "ir/ir.h"

#define IMPERATIVE_MAX_OUTPUTS 256

enum imperative_outcome {
    IMPERATIVE_SAME,
    IMPERATIVE_REFUSED, /* conversion left views or writes */
    IMPERATIVE_FAILED
};

/* Parsed, verified, inferred; the graph may be there on an error, too. */
tssa_status *imperative_read(const char *text, struct ir_graph **graph);

struct ir_fusion;
/* The same after level 2 for sessions, with ops fused as it is lent. */
tssa_status *imperative_fused(const char *text, const struct ir_fusion *fusion,
                              struct ir_graph **graph);

/* Runs the text on each of the lists of inputs. What differs or fails is told in the message. */
enum imperative_outcome imperative_check(const char *text, const struct value *const *const *inputs,
                                         size_t n_runs, struct text *message);

#endif
