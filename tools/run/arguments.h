/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of tssa-run. */
#ifndef TSSA_RUN_ARGUMENTS_H
#define TSSA_RUN_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tssa.h"

/* The exit statuses; the numbers are part of the interface (docs/tools.md). */
enum exit_code {
    EXIT_OK = 0,
    EXIT_DIFFERS = 1,     /* --compare found a difference */
    EXIT_USAGE = 2,       /* a wrong argument, or inputs that the model does not take */
    EXIT_MODEL = 3,       /* the model cannot be loaded */
    EXIT_UNSUPPORTED = 4, /* the model is valid, but tssa cannot run it */
    EXIT_RUN = 5,         /* the run failed */
    EXIT_FILE = 6         /* a file of inputs or outputs cannot be read or written */
};

/* --input NAME=FILE; name NULL: an archive whose arrays go to the inputs of their names. */
struct input_argument {
    const char *text;
    bool used;
};

/* --shape NAME:1x3x4 */
struct shape_argument {
    char *name;
    int rank;
    int64_t dims[TSSA_MAX_RANK];
    bool used;
};

/* --dim N=6300 */
struct dim_argument {
    char *name;
    int64_t value;
};

struct arguments {
    const char *model, *data_set;
    struct input_argument *inputs;
    size_t input_count;
    struct shape_argument *shapes;
    size_t shape_count;
    struct dim_argument *dims;
    size_t dim_count;
    uint64_t seed;
    const char *output_dir;
    bool output_pb;
    const char *compare_dir;
    double rtol, atol;
    long repeat; /* timed runs; 0: none beside the one */
    const char *profile;
    const char *device;
    int threads;
    unsigned timeout;    /* seconds that all runs together may take; 0: no limit */
    size_t memory_limit; /* bytes; 0: the machine's memory */
    int level;           /* of optimization */
    bool dump_ir, inspect, boxes, quiet, external_links;
};

/* False, with a line on standard error, when the arguments are wrong. --help and --version end the
 * process. */
bool arguments_parse(int argc, char **argv, struct arguments *arguments);
void arguments_free(struct arguments *arguments);

/* A line of the form "tssa-run: ..." on standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
