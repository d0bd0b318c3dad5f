/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of tssa-run. */
#ifndef TSSA_RUN_ARGUMENTS_H
#define TSSA_RUN_ARGUMENTS_H

#include "tools/common/arguments.h"

struct arguments {
    const char *model;
    struct common_arguments common;
    const char *output_dir;
    bool output_pb;
    const char *compare_dir;
    long repeat; /* timed runs; 0: none beside the one */
    const char *profile;
    bool dump_ir, inspect, boxes, remarks;
};

/* False, with a line on standard error, when the arguments are wrong. --help and --version end the
 * process. */
bool arguments_parse(int argc, char **argv, struct arguments *arguments);
void arguments_free(struct arguments *arguments);

#endif
