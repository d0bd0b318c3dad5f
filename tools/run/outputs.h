/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with the outputs of a run beside printing them. */
#ifndef TSSA_RUN_OUTPUTS_H
#define TSSA_RUN_OUTPUTS_H

#include "tools/run/arguments.h"

struct run_outputs {
    size_t count, all;     /* that were computed; of the model as it is in its file */
    const size_t *numbers; /* there */
    tssa_value *const *values;
};

/* DIR/output_K.npy, DIR/output_K_I.npy for sequences, or DIR/output_K.pb. The folder is made when
 * there is none. */
tssa_status *outputs_write(tssa_context *context, const tssa_model *model,
                           const struct arguments *arguments, const struct run_outputs *outputs);

/* A line per output. *same is false when one differs; an error is an expected output that cannot be
 * read. */
tssa_status *outputs_compare(tssa_context *context, const tssa_model *model,
                             const struct arguments *arguments, const struct run_outputs *outputs,
                             bool *same);

#endif
