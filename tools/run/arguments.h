/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of tssa-run. */
#ifndef TSSA_RUN_ARGUMENTS_H
#define TSSA_RUN_ARGUMENTS_H

#include "tools/common/arguments.h"

enum output_format { OUTPUT_NPY, OUTPUT_PB };

/* --remarks: none, all but those on kernels, these. */
enum remark_choice { REMARKS_NONE, REMARKS_SESSION, REMARKS_GIR, REMARKS_LAYOUT };

struct arguments {
    struct common_arguments common;
    const char *model;
    const char *output_dir;
    enum output_format output_format;
    const char *compare_dir;
    int64_t repeat; /* timed runs; 0: none beside the one */
    const char *profile;
    const char *dump_stage; /* --dump-ir: a stage of tssa_session_options.dump, or DUMP_GRAPH */
    enum remark_choice remarks;
    bool inspect, boxes, poison;
};

#define DUMP_GRAPH "graph" /* the model's, optimized */

/* False, with a line on standard error, when the arguments are wrong. --help and --version end the
 * process. */
bool arguments_parse(int argc, char **argv, struct arguments *arguments);
void arguments_free(struct arguments *arguments);

#endif
