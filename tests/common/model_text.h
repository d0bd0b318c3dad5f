/* SPDX-License-Identifier: Apache-2.0 */
/* Models that are written as text, by way of a file, as users load them. */
#ifndef TSSA_TESTS_COMMON_MODEL_TEXT_H
#define TSSA_TESTS_COMMON_MODEL_TEXT_H

#include <stddef.h>

#include "tssa.h"

/* The file is gone then. */
tssa_status *model_text_load(tssa_context *context, const char *text, tssa_model **model);

/* A model at level 0, whose session interprets it, and at level 2, whose is compiled as told and
 * profiled. */
struct level_pair {
    tssa_context *context;
    tssa_model *models[2];
    tssa_session *sessions[2];
};

void level_pair_open(struct level_pair *p, const char *text, tssa_compile compile, int threads);
/* How many steps of this operator the session of level 2 has run. */
size_t level_pair_steps(const struct level_pair *p, const char *op);
void level_pair_close(struct level_pair *p);

#endif
