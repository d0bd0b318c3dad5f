/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded model with a session and its values, for programs that run one after the other. */
#ifndef TSSA_TESTS_MODEL_RUN_H
#define TSSA_TESTS_MODEL_RUN_H

#include "base/text.h"
#include "base/value.h"
#include "onnx/tensor_proto.h"
#include "tssa.h"

struct model_run {
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    size_t input_count, output_count;
    tssa_value **inputs, **outputs; /* NULL: absent */
    struct text bytes;              /* of a rewritten model, which points into them */
};

/* How a model is made ready to be run. */
enum model_way {
    MODEL_AS_LOADED,
    MODEL_OPTIMIZED, /* at level 1 */
    MODEL_REWRITTEN, /* at level 2, written as ONNX, and loaded again */
    MODEL_WAY_COUNT
};
extern const char *const model_way_names[MODEL_WAY_COUNT];

/* Context, model and signature; no session yet. Zero the struct before; close it in any case.
 * `memory_limit` as in tssa_context_options. */
tssa_status *model_run_open(struct model_run *run, const char *path, size_t memory_limit);
/* The same in a context that is there. */
tssa_status *model_run_load(struct model_run *run, const char *path);
/* With the verifier after every pass. */
tssa_status *model_run_prepare(struct model_run *run, enum model_way way);
void model_run_close(struct model_run *run);

struct onnx_value_type model_run_input_type(const struct model_run *run, size_t index);
struct onnx_value_type model_run_output_type(const struct model_run *run, size_t index);
/* Takes `value`, also on failure; replaces what was there. */
tssa_status *model_run_set_input(struct model_run *run, size_t index, struct value *value);
/* Those of the model's test data, the first set beside the file; the others have a default. */
tssa_status *model_run_read_inputs(struct model_run *run, const char *path);
/* Drops inputs and outputs. */
void model_run_clear(struct model_run *run);
/* Makes the session when there is none, and runs it. */
tssa_status *model_run_execute(struct model_run *run);
/* Borrowed. */
const struct value *model_run_output(const struct model_run *run, size_t index);

#endif
