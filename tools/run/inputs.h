/* SPDX-License-Identifier: Apache-2.0 */
/* Where the inputs of a run come from: --input, the data set, or random numbers. */
#ifndef TSSA_RUN_INPUTS_H
#define TSSA_RUN_INPUTS_H

#include "tools/run/arguments.h"

struct run_inputs {
    size_t count;
    tssa_value **values; /* NULL: the model's default */
};

/* inputs_free it in any case. TSSA_INVALID_ARGUMENT when the arguments do not fit the model. */
tssa_status *inputs_make(tssa_context *context, const tssa_model *model,
                         struct arguments *arguments, struct run_inputs *inputs);
void inputs_free(struct run_inputs *inputs);

#endif
