/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/exporter.h"
#include "tools/common/check.h"
#include "tools/common/command.h"
#include "tools/common/options.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

enum {
    KEY_PASSES = KEY_OWN,
    KEY_SKIP,
    KEY_LIST,
    KEY_DUMP,
    KEY_DUMP_DIR,
    KEY_REMARKS,
    KEY_SHAPE,
    KEY_OPSET,
    KEY_GROWTH,
    KEY_CHECK,
    KEY_RUNTIME,
    KEY_VERIFY,
    KEY_STATS,
    KEY_EXTERNAL,
    KEY_FUNCTIONS,
    KEY_KEEP_HAZARD,
    KEY_HAZARDS
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "What is done:", 1},
    {"optimize", 'O', "LEVEL", 0, "0: nothing; 1: quick passes; 2: all of them (default 2)", 1},
    {"passes", KEY_PASSES, "A,B,C", 0, "Run these passes, in this order, instead of a level", 1},
    {"skip-pass", KEY_SKIP, "P", OPTION_AGAIN, "Leave a pass out; may be given again", 1},
    {"print-passes", KEY_LIST, "markdown", OPTION_ARG_OPTIONAL,
     "List the passes and what each level runs, and end", 1},
    {"input-shape", KEY_SHAPE, "NAME:DIMS", OPTION_AGAIN,
     "Fix the shape of an input: x:1,3,224,224 or x:1x3x4 (also: --overwrite-input-shape)", 1},
    {"input-shapes", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 1},
    {"overwrite-input-shape", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 1},
    OPTION_DIM(1),

    {NULL, 0, NULL, 0, "What is written:", 2},
    {"outputs", KEY_OUTPUTS, "NAME,NAME", 0,
     "Write a model with these outputs only, and what they need; inputs stay", 2},
    {NULL, 'o', "OUT", 0, "Another way to say where", 2},
    {"file-growth", KEY_GROWTH, "KIB", 0,
     "Constants computed in advance, and second versions of loops, may make the file so much "
     "larger in all (default 64, and up to a quarter of all constants for products of tables)",
     2},
    {"opset", KEY_OPSET, "N", 0,
     "Write operators as of this opset (default: the model's, or what a rewrite needs)", 2},
    {"keep-functions", KEY_FUNCTIONS, "none", OPTION_ARG_OPTIONAL,
     "Keep every function and its calls; none: inline every call (default: calls of functions that "
     "hold an operator unknown to tssa stay)",
     2},
    {"save-as-external-data", KEY_EXTERNAL, NULL, 0,
     "Put large weights into OUT.data; models above 2 GiB always do", 2},
    {"keep-hazard", KEY_KEEP_HAZARD, "A,B,C", OPTION_AGAIN,
     "Write as it is what some runtime has trouble with, for others; may be given again", 2},
    {"print-hazards", KEY_HAZARDS, "markdown", OPTION_ARG_OPTIONAL,
     "List what is not written as it is, for which runtimes' sake, and end", 2},

    {NULL, 0, NULL, 0, "What is checked:", 3},
    {"check", KEY_CHECK, "N", 0,
     "Run the old and the new model on N sets of random inputs, and on the model's own "
     "test_data_set_* first; when an output differs, or the new model takes more than twice the "
     "memory, nothing is written and the exit status is 1",
     3},
    {"check-runtime", KEY_RUNTIME, "COMMAND", 0,
     "With --check: compare them as `COMMAND model.onnx in_dir out_dir` runs them, too; "
     "ort_runner.py is one for ONNX Runtime: in scripts of the sources, in share/tssa of what is "
     "installed",
     3},
    OPTION_SEED(3),
    OPTION_RTOL(3),
    OPTION_ATOL(3),
    {"timeout", KEY_TIMEOUT, "SECONDS", 0,
     "End --check after so long, and say what was not reached (default " TEXT(CHECK_TIMEOUT) ")",
     3},
    {"verify-only", KEY_VERIFY, NULL, 0,
     "Check the model, and the graph after each pass, and write nothing", 3},

    {NULL, 0, NULL, 0, "What is shown:", 4},
    {"remarks", KEY_REMARKS, "json", OPTION_ARG_OPTIONAL,
     "Say what was rewritten, and why the rest was not; json: nothing else on standard output", 4},
    {"stats", KEY_STATS, NULL, 0, "Time and operators per pass, and peak memory", 4},
    {"dump-ir", KEY_DUMP, "PASS|all", OPTION_ARG_OPTIONAL,
     "Print the graph as IR text: at the end, after a pass, or after all that changed it", 4},
    {"dump-dir", KEY_DUMP_DIR, "DIR", 0, "Write what --dump-ir prints to files in DIR", 4},
    {"quiet", 'q', NULL, 0, "Print no tables", 4},

    {NULL, 0, NULL, 0, "Other:", -1},
    {"threads", 't', "N", 0, "Threads per kernel of --check (default: one per core)", -1},
    OPTION_MEMORY(-1),
    OPTION_LINKS(-1),
    {0},
};

static const char documentation[] =
    "Optimizes an ONNX model and writes it as standard ONNX.\n\nWithout OUT it only looks: which "
    "operators there are, and why each loop and branch is what it is. `-` as MODEL is standard "
    "input.\v"
    "Examples:\n"
    "  tssa-opt model.onnx\n"
    "      what it consists of, which loops it has, and what would become of them\n"
    "  tssa-opt model.onnx fast.onnx --check 3\n"
    "      optimize, compare old and new on three sets of random inputs, write\n"
    "  tssa-opt model.onnx fast.onnx --check 3 --check-runtime 'python scripts/ort_runner.py'\n"
    "      the same, and once more in ONNX Runtime\n"
    "  tssa-opt model.onnx fast.onnx --input-shape x:1,3,640,640 --dim N=6300\n"
    "      with fixed shapes, which more can be done with\n"
    "  tssa-opt model.onnx part.onnx --outputs boxes,scores\n"
    "      two of its outputs, and only what they need\n"
    "  tssa-opt model.onnx fast.onnx --remarks --stats\n"
    "      what each pass did, what it could not do and why, and how long it took\n"
    "  tssa-opt model.onnx --dump-ir=all --dump-dir steps\n"
    "      the graph after each pass that changed it, as text\n"
    "  tssa-opt model.onnx fast.onnx --passes fold_shapes,dead_code\n"
    "      these passes only; tssa-opt --print-passes lists them\n"
    "  tssa-opt model.onnx --verify-only\n"
    "      is tssa sound on this model? The status tells\n"
    "\n"
    "Exit status: 0 done, 1 --check found a difference (nothing was written), 2 wrong arguments, 3 "
    "the model cannot be loaded, 4 it cannot be written as asked, 5 a rewrite failed, 6 a file "
    "cannot be written, 7 --check could not compare anything (the model was written).\n";

/* ---- Lists of names --------------------------------------------------------------------------------- */

static error_t add_name(struct name_list *list, const char *name)
{
    const char **more = reallocarray(list->names, list->count + 1, sizeof *more);
    if (!more)
        return ENOMEM;
    list->names = more;
    more[list->count++] = name;
    return 0;
}

static bool is_pass(const char *name)
{
    tssa_pass_info info;
    for (size_t i = 0; i < tssa_pass_count(); i++)
        if (!tssa_pass(i, &info) && strcmp(info.name, name) == 0)
            return true;
    return false;
}

static bool is_hazard(const char *name)
{
    tssa_hazard_info info;
    for (size_t i = 0; i < tssa_hazard_count(); i++)
        if (!tssa_hazard(i, &info) && strcmp(info.name, name) == 0)
            return true;
    return false;
}

/* What may be in a list. */
struct name_kind {
    const char *word, *listed_by;
    bool (*is_one)(const char *name);
};

static const struct name_kind pass_names = {"pass", "--print-passes", is_pass};
static const struct name_kind hazard_names = {"hazard", "--print-hazards", is_hazard};

/* "a,b,c" */
static error_t add_names(struct name_list *list, const struct name_kind *kind, const char *option,
                         const char *argument)
{
    char **more = reallocarray(list->texts, list->text_count + 1, sizeof *more);
    if (!more)
        return ENOMEM;
    list->texts = more;
    char *text = more[list->text_count] = strdup(argument), *rest = NULL;
    if (!text)
        return ENOMEM;
    list->text_count++;
    if (!text[strspn(text, ", ")]) {
        complain("%s: no %s is named%s", option, kind->word,
                 kind == &pass_names ? "; -O 0 runs none" : "");
        return EINVAL;
    }
    for (char *name = strtok_r(text, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        if (!kind->is_one(name)) {
            complain("%s %s: there is no such %s; %s lists them", option, name, kind->word,
                     kind->listed_by);
            return EINVAL;
        }
        error_t error = add_name(list, name);
        if (error)
            return error;
    }
    return 0;
}

static void free_names(struct name_list *list)
{
    for (size_t i = 0; i < list->text_count; i++)
        free(list->texts[i]);
    free(list->texts);
    free(list->names);
}

/* ---- Options ---------------------------------------------------------------------------------------- */

static error_t parse_output(struct opt_arguments *arguments, const char *argument)
{
    if (arguments->output)
        complain("%s: a model and where to write it are all that is wanted", argument);
    else if (strcmp(argument, "-") == 0)
        complain("-: a model goes to standard output as /dev/stdout, with --quiet");
    else if (!argument[0])
        complain("the name of a file is empty");
    else
        arguments->output = argument;
    return arguments->output == argument ? 0 : EINVAL;
}

static error_t parse_positional(struct opt_arguments *arguments, const char *argument)
{
    if (arguments->model)
        return parse_output(arguments, argument);
    if (!argument[0]) {
        complain("the name of a file is empty");
        return EINVAL;
    }
    arguments->model = argument;
    return 0;
}

static error_t parse_listing(const char *option, const char *argument, enum listing *listing)
{
    if (argument && strcmp(argument, "markdown") != 0)
        return argument_refuse(option, argument, "markdown, or nothing,");
    *listing = argument ? LISTING_MARKDOWN : LISTING_TEXT;
    return 0;
}

/* KiB become what tssa_optimize_options has. */
static error_t parse_growth(const char *argument, int64_t *bytes)
{
    error_t error = argument_integer("--file-growth", argument, 0, INT64_C(1) << 40,
                                     "a number of KiB, or 0", bytes);
    *bytes = *bytes ? *bytes << 10 : -1;
    return error;
}

/* Options that may have one word as their argument. */
static error_t parse_word(int key, const char *argument, struct opt_arguments *arguments)
{
    switch (key) {
    case KEY_LIST:
        return parse_listing("--print-passes", argument, &arguments->listing);
    case KEY_HAZARDS:
        return parse_listing("--print-hazards", argument, &arguments->hazards);
    case KEY_REMARKS:
        if (argument && strcmp(argument, "json") != 0)
            return argument_refuse("--remarks", argument, "json, or nothing,");
        arguments->remarks = argument ? REMARKS_JSON : REMARKS_TEXT;
        return 0;
    case KEY_FUNCTIONS:
        if (argument && strcmp(argument, "none") != 0)
            return argument_refuse("--keep-functions", argument, "none, or nothing,");
        arguments->functions = argument ? TSSA_FUNCTIONS_INLINE : TSSA_FUNCTIONS_KEEP;
        return 0;
    case KEY_DUMP:
        if (argument && strcmp(argument, "all") != 0 && !is_pass(argument))
            return argument_refuse("--dump-ir", argument, "a pass, all, or nothing");
        arguments->dump = true;
        arguments->dump_pass = argument;
        return 0;
    case KEY_DUMP_DIR:
        arguments->dump_dir = argument;
        return 0;
    default:
        return argument_common(key, argument, &arguments->common);
    }
}

static error_t parse_option(int key, const char *argument, struct opt_arguments *arguments)
{
    switch (key) {
    case 'o':
        return parse_output(arguments, argument);
    case KEY_PASSES:
        arguments->passes_given = true;
        return add_names(&arguments->passes, &pass_names, "--passes", argument);
    case KEY_SKIP:
        return add_names(&arguments->skipped, &pass_names, "--skip-pass", argument);
    case KEY_KEEP_HAZARD:
        return add_names(&arguments->kept_hazards, &hazard_names, "--keep-hazard", argument);
    case KEY_SHAPE:
        return argument_shape(&arguments->common.source, "--input-shape", argument);
    case KEY_EXTERNAL:
        arguments->external_data = true;
        return 0;
    case KEY_VERIFY:
        arguments->verify_only = true;
        return 0;
    case KEY_STATS:
        arguments->stats = true;
        return 0;
    case KEY_GROWTH:
        return parse_growth(argument, &arguments->file_growth);
    case KEY_OPSET:
        return argument_integer(
            "--opset", argument, ONNX_OLDEST_OPSET, IR_NEWEST_OPSET,
            "an opset from " TEXT(ONNX_OLDEST_OPSET) " to " TEXT(IR_NEWEST_OPSET),
            &arguments->opset);
    case KEY_CHECK:
        return argument_integer("--check", argument, 1, 1000000, "a number of at least 1",
                                &arguments->check);
    case KEY_RUNTIME:
        arguments->check_runtime = argument;
        return 0;
    default:
        return parse_word(key, argument, arguments);
    }
}

/* Whether there is such a command is known before minutes of work. */
static error_t check_command(const char *command)
{
    char **words = NULL;
    tssa_status *status = command_split(command, &words);
    if (!status)
        status = command_find(words[0]);
    command_free(words);
    if (!status)
        return 0;
    complain("--check-runtime: %s", tssa_status_message(status));
    tssa_status_free(status);
    return EINVAL;
}

/* What must not be asked for together. */
static error_t check_together(const struct opt_arguments *arguments)
{
    if (arguments->listing || arguments->hazards)
        return 0;
    if (!arguments->model)
        complain("which model? See tssa-opt --help");
    else if (arguments->dump_dir && !arguments->dump)
        complain("--dump-dir %s: nothing is dumped without --dump-ir", arguments->dump_dir);
    else if (arguments->verify_only && arguments->output)
        complain("%s: --verify-only writes nothing", arguments->output);
    else if (arguments->check_runtime && !arguments->check)
        complain("--check-runtime %s: nothing is checked without --check N",
                 arguments->check_runtime);
    else
        return arguments->check_runtime ? check_command(arguments->check_runtime) : 0;
    return EINVAL;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct opt_arguments *arguments = state->input;
    int error = argument_once(options, key, &arguments->common);
    if (error)
        return error;
    switch (key) {
    case ARGP_KEY_INIT:
        state->err_stream = NULL; /* one line per error is enough: no "Try --help" after it */
        return 0;
    case ARGP_KEY_ARG:
        return parse_positional(arguments, argument);
    case ARGP_KEY_END:
        return check_together(arguments);
    default:
        return parse_option(key, argument, arguments);
    }
}

bool opt_arguments_parse(int argc, char **argv, struct opt_arguments *arguments)
{
    static const struct argp argp = {options, parse, "MODEL [OUT]", documentation,
                                     NULL,    NULL,  NULL};
    *arguments = (struct opt_arguments){.common = COMMON_ARGUMENTS};
    argp_program_version = "tssa-opt " TSSA_VERSION;
    argv[0] = program_invocation_short_name; /* getopt's messages start with it */
    error_t error = argp_parse(&argp, argc, argv, 0, NULL, arguments);
    if (error == ENOMEM)
        complain("out of memory");
    return error == 0;
}

void opt_arguments_free(struct opt_arguments *arguments)
{
    input_source_free(&arguments->common.source);
    free_names(&arguments->passes);
    free_names(&arguments->skipped);
    free_names(&arguments->kept_hazards);
}

bool opt_is_quiet(const struct opt_arguments *arguments)
{
    return arguments->common.quiet || arguments->remarks == REMARKS_JSON;
}
