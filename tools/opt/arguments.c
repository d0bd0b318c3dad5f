/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/opt/arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/exporter.h"
#include "tools/common/command.h"
#include "tools/common/options.h"

#define OPTIONS_OF struct opt_arguments
#define TEXT_OF(number) #number
#define TEXT_FROM(number) TEXT_OF(number)

/* ---- Lists of names -------------------------------------------------------------------------- */

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
        complain("--%s: no %s is named%s", option, kind->word,
                 kind == &pass_names ? "; -O 0 runs none" : "");
        return EINVAL;
    }
    for (char *name = strtok_r(text, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        if (!kind->is_one(name)) {
            complain("--%s %s: there is no such %s; %s lists them", option, name, kind->word,
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

static int read_passes(const struct tool_option *option, const char *argument, void *all)
{
    struct opt_arguments *arguments = all;
    arguments->passes_given = true;
    return add_names(&arguments->passes, &pass_names, option->name, argument);
}

static int read_pass_names(const struct tool_option *option, const char *argument, void *list)
{
    return add_names(list, &pass_names, option->name, argument);
}

static int read_hazard_names(const struct tool_option *option, const char *argument, void *list)
{
    return add_names(list, &hazard_names, option->name, argument);
}

/* ---- Where the model goes, and other values -------------------------------------------------- */

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

static int read_operand(void *all, const char *argument)
{
    struct opt_arguments *arguments = all;
    if (arguments->model)
        return parse_output(arguments, argument);
    if (!argument[0]) {
        complain("the name of a file is empty");
        return EINVAL;
    }
    arguments->model = argument;
    return 0;
}

static int read_output(const struct tool_option *option, const char *argument, void *all)
{
    (void)option;
    return parse_output(all, argument);
}

/* KiB become what tssa_optimize_options has. */
static int read_growth(const struct tool_option *option, const char *argument, void *place)
{
    int64_t *bytes = place;
    error_t error = argument_integer(option->name, argument, 0, INT64_C(1) << 40,
                                     "a number of KiB, or 0", bytes);
    *bytes = *bytes ? *bytes << 10 : -1;
    return error;
}

static int read_dump(const struct tool_option *option, const char *argument, void *all)
{
    struct opt_arguments *arguments = all;
    if (argument && strcmp(argument, "all") != 0 && !is_pass(argument))
        return argument_refuse(option->name, argument, "a pass, all, or nothing");
    arguments->dump = true;
    arguments->dump_pass = argument;
    return 0;
}

/* ---- Options --------------------------------------------------------------------------------- */

static const struct option_word listings[] = {
    {NULL, LISTING_TEXT}, {"markdown", LISTING_MARKDOWN}, {NULL, 0}};
static const struct option_word remark_formats[] = {
    {NULL, REMARKS_TEXT}, {"json", REMARKS_JSON}, {NULL, 0}};
static const struct option_word functions[] = {
    {NULL, TSSA_FUNCTIONS_KEEP}, {"none", TSSA_FUNCTIONS_INLINE}, {NULL, 0}};

static const struct tool_option options[] = {
    HEADLINE(1, "What is done:"),
    {"passes", 0, "A,B,C", 0, "Run these passes, in this order, instead of a level", 1,
     READ_ALL(read_passes)},
    {"skip-pass", 0, "P", OPTION_AGAIN, "Leave a pass out; may be given again", 1,
     READ(read_pass_names, skipped)},
    {"print-passes", 0, "markdown", OPTION_ARG_OPTIONAL,
     "List the passes and what each level runs, and end", 1,
     WORD(listing, listings, "markdown, or nothing,")},
    {"input-shape", 0, "NAME:DIMS", OPTION_AGAIN,
     "Fix the shape of an input: x:1,3,224,224 or x:1x3x4 (also: --overwrite-input-shape)", 1,
     READ(option_shape, common.source)},
    {"input-shapes", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 1, {0}},
    {"overwrite-input-shape", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 1, {0}},

    HEADLINE(2, "What is written:"),
    {NULL, 'o', "OUT", 0, "Another way to say where", 2, READ_ALL(read_output)},
    {"file-growth", 0, "KIB", 0,
     "Constants computed in advance, and second versions of loops, may make the file so much "
     "larger in all (default 64, and up to a quarter of all constants for products of tables)",
     2, READ(read_growth, file_growth)},
    {"opset", 0, "N", 0,
     "Write operators as of this opset (default: the model's, or what a rewrite needs)", 2,
     NUMBER(opset, ONNX_OLDEST_OPSET, IR_NEWEST_OPSET,
            "an opset from " TEXT_FROM(ONNX_OLDEST_OPSET) " to " TEXT_FROM(IR_NEWEST_OPSET))},
    {"keep-functions", 0, "none", OPTION_ARG_OPTIONAL,
     "Keep every function and its calls; none: inline every call (default: calls of functions that "
     "hold an operator unknown to tssa stay)",
     2, WORD(functions, functions, "none, or nothing,")},
    {"save-as-external-data", 0, NULL, 0,
     "Put large weights into OUT.data; models above 2 GiB always do", 2, SWITCH(external_data)},
    {"keep-hazard", 0, "A,B,C", OPTION_AGAIN,
     "Write as it is what some runtime has trouble with, for others; may be given again", 2,
     READ(read_hazard_names, kept_hazards)},
    {"print-hazards", 0, "markdown", OPTION_ARG_OPTIONAL,
     "List what is not written as it is, for which runtimes' sake, and end", 2,
     WORD(hazards, listings, "markdown, or nothing,")},

    HEADLINE(3, "What is checked:"),
    {"check", 0, "N", 0,
     "Run the old and the new model on N sets of random inputs, and on the model's own "
     "test_data_set_* first; when an output differs, or the new model takes more than twice the "
     "memory, nothing is written and the exit status is 1",
     3, NUMBER(check, 1, 1000000, "a number of at least 1")},
    {"check-runtime", 0, "COMMAND", 0,
     "With --check: compare them as `COMMAND model.onnx in_dir out_dir` runs them, too; "
     "ort_runner.py is one for ONNX Runtime: in scripts of the sources, in share/tssa of what is "
     "installed",
     3, TEXT(check_runtime)},
    {"verify-only", 0, NULL, 0, "Check the model, and the graph after each pass, and write nothing",
     3, SWITCH(verify_only)},

    HEADLINE(4, "What is shown:"),
    {"remarks", 0, "json", OPTION_ARG_OPTIONAL,
     "Say what was rewritten, and why the rest was not; json: nothing else on standard output", 4,
     WORD(remarks, remark_formats, "json, or nothing,")},
    {"stats", 0, NULL, 0, "Time and operators per pass, and peak memory", 4, SWITCH(stats)},
    {"dump-ir", 0, "PASS|all", OPTION_ARG_OPTIONAL,
     "Print the graph as IR text: at the end, after a pass, or after all that changed it", 4,
     READ_ALL(read_dump)},
    {"dump-dir", 0, "DIR", 0, "Write what --dump-ir prints to files in DIR", 4, TEXT(dump_dir)},

    HEADLINE(-1, "Other:"),
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
static int check_together(void *all)
{
    const struct opt_arguments *arguments = all;
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

bool opt_arguments_parse(int argc, char **argv, struct opt_arguments *arguments)
{
    static const struct tool_command command = {.tool = TOOL_OPT,
                                                .version = "tssa-opt " TSSA_VERSION,
                                                .operands = "MODEL [OUT]",
                                                .documentation = documentation,
                                                .options = options,
                                                .operand = read_operand,
                                                .complete = check_together};
    *arguments = (struct opt_arguments){.common = COMMON_ARGUMENTS};
    return tool_arguments_parse(&command, argc, argv, arguments);
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
