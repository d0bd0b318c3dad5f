/* SPDX-License-Identifier: Apache-2.0 */
/* --outputs NAME,NAME: a model with some of its outputs. */
#ifndef TSSA_TOOLS_KEEP_H
#define TSSA_TOOLS_KEEP_H

#include "tssa.h"

/*
 * Leaves the outputs of the list, NULL: all of them. A name with a comma in it is a list by itself.
 * The error says which option it is about. *numbers, to be freed, is what number each output had
 * among all, *count of them; both may be NULL.
 */
tssa_status *keep_outputs(tssa_model *model, const char *list, size_t **numbers, size_t *count);

#endif
