/* SPDX-License-Identifier: Apache-2.0 */
/* What the command lines of the tools have in common. */
#ifndef TSSA_TOOLS_ARGUMENTS_H
#define TSSA_TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/common/random.h"
#include "tssa.h"

/* The exit statuses; the numbers are part of the interface (docs/tools.md). */
enum exit_code {
    EXIT_OK = 0,
    EXIT_DIFFERS = 1,      /* --compare or --check found a difference */
    EXIT_USAGE = 2,        /* a wrong argument, or inputs that the model does not take */
    EXIT_MODEL = 3,        /* the model cannot be loaded */
    EXIT_UNSUPPORTED = 4,  /* the model is valid, but needs what tssa does not have */
    EXIT_RUN = 5,          /* a run or a rewrite failed */
    EXIT_FILE = 6,         /* a file of inputs or outputs, or a model, cannot be read or written */
    EXIT_UNCHECKED = 7,    /* --check found no difference, for it could not compare anything */
    EXIT_INTERRUPTED = 130 /* Ctrl-C ended it; what there was until then was printed */
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

/* What the dims become that nothing fixes. */
struct size_guess {
    int64_t size;    /* of all; 0: 1 */
    uint64_t spread; /* not 0: `least` to `spread`, for each symbol another */
    uint64_t least;  /* 0: 1 */
    int rank;        /* of tensors whose rank nobody knows; 0: that is an error */
};

/* What says where inputs come from; see inputs.h. All zero: random ones of seed 0. */
struct input_source {
    struct input_argument *inputs;
    size_t input_count;
    struct shape_argument *shapes;
    size_t shape_count;
    struct dim_argument *dims;
    size_t dim_count;
    const char *data_set; /* a folder; NULL: none */
    size_t memory_limit;  /* as in common_arguments */
    uint64_t seed;
    struct random_style style;
    struct size_guess guess;
};

void input_source_free(struct input_source *source);

/* What the options of options.def say. */
struct common_arguments {
    struct input_source source;
    int level; /* of optimization */
    int threads;
    unsigned timeout;    /* seconds; 0: no limit */
    size_t memory_limit; /* bytes; 0: the machine's memory */
    double rtol, atol;
    const char *outputs;      /* names, with commas; NULL: all */
    const char *device;       /* NULL: the default one */
    unsigned precision;       /* a tssa_precision */
    unsigned compile;         /* a tssa_compile, or COMPILE_UNSAID while options are read */
    const char *kernel_cache; /* as it was given; NULL: not at all */
    bool quiet, external_links;
    bool allow_tf32, no_winograd; /* as tssa_session_options has them */
};

/* Every tool puts what it does by default in its place. */
#define COMPILE_UNSAID 3u

/* What they are when nothing is said. */
#define COMMON_ARGUMENTS                                                                           \
    {                                                                                              \
        .level = 2, .rtol = 1e-3, .atol = 1e-5, .compile = COMPILE_UNSAID                          \
    }

/* A line of the form "TOOL: ..." on standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For tssa_context_options.log: what could go better is a note on standard error, each once. */
void log_note(void *user, tssa_log_level level, const char *message);

/*
 * What options are given: 0, or an errno after a line on standard error (ENOMEM: without one).
 * `option` is the option's name, for that line.
 */
int argument_refuse(const char *option, const char *argument, const char *wanted);
int argument_integer(const char *option, const char *argument, int64_t low, int64_t high,
                     const char *wanted, int64_t *value);
int argument_tolerance(const char *option, const char *argument, double *value);
/* Each adds what one --dim, --shape (whatever its name is) or --input says. */
int argument_dim(struct input_source *source, const char *option, const char *argument);
int argument_shape(struct input_source *source, const char *option, const char *argument);
int argument_input(struct input_source *source, const char *argument);

#endif
