/* SPDX-License-Identifier: Apache-2.0 */
/* What runs the two models of a check (check.h). */
#ifndef TSSA_TOOLS_CHECK_ENGINE_H
#define TSSA_TOOLS_CHECK_ENGINE_H

#include <stdbool.h>

#include "tools/common/inputs.h"

enum check_side { CHECK_OLD, CHECK_NEW };

/* What a run may take. */
struct engine_limits {
    double seconds; /* more than 0 */
    /* bytes beyond what is held already; 0: no limit. An engine may not be able to keep this one */
    size_t memory;
};

/* What a run took. */
struct engine_cost {
    double seconds;
    size_t memory; /* bytes, at most at one time; what loading the model took may be among them */
};

struct check_engine {
    const char *name; /* as people read it: NULL for tssa itself */
    /*
     * One run; `outputs` are all NULL before, and the caller's afterwards. *cost is set in any
     * case. TSSA_LIMIT: out of time. TSSA_OUT_OF_MEMORY: more than the limit, or more than there
     * is. TSSA_UNSUPPORTED: the model cannot be run, whatever the inputs are. TSSA_IO: nothing can
     * be run at all any more. Others: the model refuses these inputs.
     */
    tssa_status *(*run)(struct check_engine *engine, enum check_side side,
                        const struct run_inputs *inputs, const struct engine_limits *limits,
                        tssa_value **outputs, struct engine_cost *cost);
};

/* ---- Sessions of this library ---------------------------------------------------------------- */

struct session_engine {
    struct check_engine engine;
    tssa_context *context;
    tssa_model *models[2];
};

/* Neither model is optimized by it. TSSA_UNSUPPORTED when a session cannot be made of one. */
tssa_status *session_engine_init(struct session_engine *engine, tssa_context *context,
                                 tssa_model *original, tssa_model *rewritten);

/* ---- A command ------------------------------------------------------------------------------- */

/*
 * `COMMAND model.onnx in_dir out_dir`: reads in_dir/input_K.pb (an input that is left to its
 * default has no file) and writes out_dir/output_K.pb. Models, inputs and outputs lie in a
 * temporary folder.
 */
struct command_engine {
    struct check_engine engine;
    tssa_context *context;
    const tssa_model *model; /* says which inputs and outputs there are */
    char **words;            /* of the command */
    char *folder;            /* temporary */
    char *paths[2]; /* of the models, of malloc; the caller sets them before the first run */
};

/* The folder is made, and nothing in it yet. `text` is COMMAND, split at blanks; quotes ('...',
 * "...") and \ keep what they do in a shell, and nothing else has a meaning. */
tssa_status *command_engine_init(struct command_engine *engine, const char *text,
                                 tssa_context *context, const tssa_model *model);
/* Removes the folder. An engine that is all zero is accepted. */
void command_engine_free(struct command_engine *engine);

#endif
