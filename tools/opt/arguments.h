/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of tssa-opt. */
#ifndef TSSA_OPT_ARGUMENTS_H
#define TSSA_OPT_ARGUMENTS_H

#include "tools/common/arguments.h"

enum remark_format { REMARKS_NONE, REMARKS_TEXT, REMARKS_JSON };
enum listing { LISTING_NONE, LISTING_TEXT, LISTING_MARKDOWN };

/* Names of passes or hazards; they point into `texts`. */
struct name_list {
    const char **names;
    size_t count;
    char **texts; /* to be freed */
    size_t text_count;
};

struct opt_arguments {
    struct common_arguments common; /* `source`: what is fixed in the model, and the seed */
    const char *model, *output;     /* output NULL: look only */
    struct name_list passes, skipped, kept_hazards;
    bool passes_given;
    enum listing listing;  /* --print-passes */
    enum listing hazards;  /* --print-hazards */
    bool dump;             /* --dump-ir, whatever it dumps */
    const char *dump_pass; /* "all", a pass, or NULL: the result */
    const char *dump_dir;  /* NULL: to standard error */
    enum remark_format remarks;
    bool stats, verify_only, external_data;
    tssa_functions functions;
    int64_t opset;             /* 0: the model's */
    int64_t file_growth;       /* as in tssa_optimize_options */
    int64_t check;             /* sets of random inputs; 0: no check */
    const char *check_runtime; /* a command that checks, too; NULL: none */
};

/* False, with a line on standard error, when the arguments are wrong. --help and --version end the
 * process. */
bool opt_arguments_parse(int argc, char **argv, struct opt_arguments *arguments);
void opt_arguments_free(struct opt_arguments *arguments);

/* JSON is alone on standard output. */
bool opt_is_quiet(const struct opt_arguments *arguments);

#endif
