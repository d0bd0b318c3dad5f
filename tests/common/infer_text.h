/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference of a few ops written as IR text. What is checked is the value %y: its type and, where
 * they are tracked, its known elements ("?": an unknown one), as in "i64[2] [N, 4]". A fresh symbol
 * is written as its number in the order of appearance, "#1", whatever its hint.
 */
#ifndef TSSA_TESTS_COMMON_INFER_TEXT_H
#define TSSA_TESTS_COMMON_INFER_TEXT_H

#include "base/status.h"

/* Each fails the test, showing the ops, unless it holds. `inputs` are the graph's parameters,
 * without parentheses. */
void infer_gives(const char *inputs, const char *ops, const char *result);
/* An error of this code whose message contains `why`. */
void infer_refuses(const char *inputs, const char *ops, tssa_code code, const char *why);

#endif
