/* SPDX-License-Identifier: Apache-2.0 */
/* Where the inputs of a run come from: files, a data set, or random numbers. */
#ifndef TSSA_TOOLS_INPUTS_H
#define TSSA_TOOLS_INPUTS_H

#include "tools/common/arguments.h"

struct run_inputs {
    size_t count;
    tssa_value **values; /* NULL: the model's default */
    char *guesses; /* the dims that nothing fixed, as people read them; may be empty or NULL */
};

/* inputs_free it in any case. TSSA_INVALID_ARGUMENT when the source does not fit the model. */
tssa_status *inputs_make(tssa_context *context, const tssa_model *model,
                         struct input_source *source, struct run_inputs *inputs);
void inputs_free(struct run_inputs *inputs);

#endif
