/* SPDX-License-Identifier: Apache-2.0 */
/* A model with two sessions, with kernels and without, of which the results have the same bits. */
#ifndef TSSA_TESTS_COMMON_SESSION_PAIR_H
#define TSSA_TESTS_COMMON_SESSION_PAIR_H

#include <stdbool.h>

#include "tssa.h"

#define SESSION_PAIR_VALUES 6 /* outputs, at most */

#define SESSION_MODEL(inputs, outputs, ops)                                                        \
    "graph @g opset(\"\": 21) ir_version(10) (" inputs ") -> (" outputs ") {\n" ops                \
    "return(" outputs ")\n}\n"

struct session_pair {
    tssa_context *context;
    tssa_model *model;
    tssa_session *kernels, *plain;
    tssa_compile_info info;
};

/* Of the text of a model, optimized for sessions: all but the one with kernels, which is the
 * caller's to make. */
void session_pair_load(struct session_pair *p, const char *text, int threads);
/* Both; the one with kernels is profiled. */
void session_pair_open(struct session_pair *p, const char *text, int threads);
void session_pair_close(struct session_pair *p);
/* Numbers of [-1, 1), or as many of which one in 100 is more than 0.9. */
tssa_value *session_pair_floats(const struct session_pair *p, int rank, const int64_t *dims,
                                bool few);
/* Runs both. */
void session_pair_run(const struct session_pair *p, size_t n, tssa_value *const *inputs,
                      size_t n_outputs);

#endif
