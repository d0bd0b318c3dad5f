/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench/arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/options.h"

#define OPTIONS_OF struct bench_arguments

/* ---- Lists ----------------------------------------------------------------------------------- */

/* Calls `add` for each of "a,b,c". */
static error_t parse_list(const char *argument, struct bench_arguments *arguments,
                          error_t (*add)(struct bench_arguments *arguments, const char *item))
{
    char *text = strdup(argument), *rest = text;
    error_t error = text ? 0 : ENOMEM;
    for (char *item; !error && (item = strsep(&rest, ","));)
        error = add(arguments, item);
    free(text);
    return error;
}

static error_t check_room(const char *option, const char *item, size_t count)
{
    return count < BENCH_MAX_LIST ? 0 : argument_refuse(option, item, "a list of at most 64");
}

static error_t add_percentile(struct bench_arguments *arguments, const char *item)
{
    double value;
    error_t error = check_room("percentile", item, arguments->percentile_count);
    if (!error)
        error = argument_tolerance("percentile", item, &value);
    if (!error && value > 100)
        error = argument_refuse("percentile", item, "a number of at most 100");
    if (!error)
        arguments->percentiles[arguments->percentile_count++] = value;
    return error;
}

static error_t add_concurrency(struct bench_arguments *arguments, const char *item)
{
    error_t error = check_room("concurrency", item, arguments->concurrency_count);
    if (!error)
        error = argument_integer("concurrency", item, 1, 1024, "a number from 1 to 1024",
                                 &arguments->concurrency[arguments->concurrency_count]);
    arguments->concurrency_count += !error;
    return error;
}

static error_t add_size(struct bench_arguments *arguments, const char *item)
{
    const char *option = arguments->sweep_batch ? "batch-sweep" : "dim";
    error_t error = check_room(option, item, arguments->size_count);
    if (!error)
        error = argument_integer(option, item, 0, INT64_MAX, "a list of sizes",
                                 &arguments->sizes[arguments->size_count]);
    arguments->size_count += !error;
    return error;
}

static int read_percentiles(const struct tool_option *option, const char *argument, void *all)
{
    struct bench_arguments *arguments = all;
    (void)option;
    arguments->percentile_count = 0;
    return parse_list(argument, arguments, add_percentile);
}

static int read_concurrency(const struct tool_option *option, const char *argument, void *all)
{
    struct bench_arguments *arguments = all;
    (void)option;
    arguments->concurrency_count = 0;
    return parse_list(argument, arguments, add_concurrency);
}

/* ---- Sweeps ---------------------------------------------------------------------------------- */

static error_t refuse_second_sweep(const struct tool_option *option, const char *argument)
{
    return argument_refuse(option->name, argument, "at most one dim with several sizes");
}

/* --dim NAME=SIZE fixes it; NAME=A,B,... sweeps through it. */
static int read_dim(const struct tool_option *option, const char *argument, void *all)
{
    struct bench_arguments *arguments = all;
    const char *split = strrchr(argument, '=');
    if (!split || split == argument || !strchr(split, ','))
        return option_dim(option, argument, &arguments->common.source);
    if (arguments->size_count)
        return refuse_second_sweep(option, argument);
    arguments->sweep = strndup(argument, (size_t)(split - argument));
    return arguments->sweep ? parse_list(split + 1, arguments, add_size) : ENOMEM;
}

static int read_batch_sweep(const struct tool_option *option, const char *argument, void *all)
{
    struct bench_arguments *arguments = all;
    if (arguments->size_count)
        return refuse_second_sweep(option, argument ? argument : "");
    arguments->sweep_batch = true;
    return parse_list(argument ? argument : "1,2,4,8,16,32", arguments, add_size);
}

static int read_share(const struct tool_option *option, const char *argument, void *place)
{
    double *share = place;
    char *end;
    *share = strtod(argument, &end);
    if (end == argument || *end || !(*share > 0 && *share <= 1))
        return argument_refuse(option->name, argument, "a number above 0 and up to 1");
    return 0;
}

/* ---- Options --------------------------------------------------------------------------------- */

static const struct tool_option options[] = {
    HEADLINE(1, "How much is measured:"),
    {"warmup", 'w', "MS", 0, "Run for so long before anything counts (default 200)", 1,
     AMOUNT(warmup_ms)},
    {"duration", 'd', "SECONDS", 0, "Measure for so long (default 3, without --iterations)", 1,
     AMOUNT(duration)},
    {"iterations", 'n', "N", 0, "Measure N runs; with --duration: until both are reached", 1,
     NUMBER(iterations, 1, 100000000, "a number from 1 to 100000000")},
    {"concurrency", 0, "N,M,...", 0, "Run N threads on one session; several numbers make a table",
     1, READ_ALL(read_concurrency)},
    {"dim", 0, "NAME=SIZE,...", OPTION_AGAIN,
     "Fix a symbolic dim of the model; several sizes make a table", 1, READ_ALL(read_dim)},
    {"batch-sweep", 0, "N,M,...", OPTION_ARG_OPTIONAL,
     "A table over the first dim of the first input that has a symbolic one (default "
     "1,2,4,8,16,32)",
     1, READ_ALL(read_batch_sweep)},
    {"baseline", 0, "MODEL", 0,
     "What the others are compared with (default: the first model); O0, O1 or O2: the first model "
     "at this level",
     1, TEXT(baseline)},

    HEADLINE(2, "Inputs:"),
    {"sets", 0, "N", 0, "How many sets of random inputs take turns (default 4)", 2,
     NUMBER(sets, 1, 1000, "a number from 1 to 1000")},

    HEADLINE(3, "What is shown:"),
    {"percentile", 0, "P,Q,...", 0, "Which percentiles (default 90,95,99)", 3,
     READ_ALL(read_percentiles)},
    {"layers", 0, NULL, 0, "The time of each node in place of each operator", 3, SWITCH(layers)},
    {"json", 0, "FILE", 0, "Write all figures as JSON; -: to standard output, alone", 3,
     TEXT(json)},
    {"export-times", 0, "FILE", 0, "Write the time of every run as CSV", 3, TEXT(times)},

    HEADLINE(4, "Running:"),
    {"share", 0, "X", 0,
     "On the device null: sizes that only data tells are this share of their bounds (default 1)", 4,
     READ(read_share, share)},

    HEADLINE(-1, "Other:"),
    {0},
};

static const char documentation[] =
    "Measures how fast ONNX models run.\n\nDATA_SET is a folder with input_K.pb or input_K.npy "
    "files; several take turns, and without one random inputs do. A folder with a model.onnx "
    "stands for it and the test_data_set_* in it. Several models are run in turn and compared "
    "with the first.\v"
    "Examples, with detection post-processing:\n"
    "  tssa-bench ssd_loop/model.onnx ssd_loop/test_data_set_0\n"
    "      latency, throughput, memory, and which operators take the time\n"
    "  tssa-bench ssd_loop\n"
    "      the same, all data sets of the folder in turn\n"
    "  tssa-opt ssd_loop/model.onnx fast.onnx && tssa-bench ssd_loop fast.onnx -O 0\n"
    "      a rewritten file against its original, both as they are in the file\n"
    "  tssa-bench ssd_loop --baseline O0\n"
    "      what the optimizations are worth here\n"
    "  tssa-bench ssd_loop yolov3_loop --iterations 500 --json both.json\n"
    "      two models; the figures also go to a file\n"
    "  tssa-bench ssd_loop --concurrency 1,2,4\n"
    "      so many threads on one session\n"
    "  tssa-bench ssd_loop --device null\n"
    "      launches, library calls and bytes of a run on a device with memory of its own\n"
    "  tssa-bench model.onnx --dim N=100,1000,10000\n"
    "      how time grows with a dim\n"
    "\n"
    "Exit status: 0 done, 2 wrong arguments or inputs, 3 a model cannot be loaded, 4 a model needs "
    "what tssa does not have, 5 a run failed or --timeout ended it, 6 a file cannot be read or "
    "written, 130 Ctrl-C ended it: what was measured until then is printed and written.\n";

static int read_operand(void *all, const char *name)
{
    struct bench_arguments *arguments = all;
    const char **more = reallocarray(arguments->names, arguments->name_count + 1, sizeof *more);
    if (!more)
        return ENOMEM;
    arguments->names = more;
    more[arguments->name_count++] = name;
    return 0;
}

/* What must not be asked for together, and what was not asked for. */
static int complete(void *all)
{
    struct bench_arguments *arguments = all;
    if (!arguments->name_count) {
        complain("which model? See tssa-bench --help");
        return EINVAL;
    }
    if (arguments->duration < 0) /* not given */
        arguments->duration = arguments->iterations ? 0 : 3;
    if (arguments->duration == 0 && !arguments->iterations) {
        complain("--duration 0: then --iterations must say how much is measured");
        return EINVAL;
    }
    if (arguments->json && arguments->times && strcmp(arguments->json, "-") == 0 &&
        strcmp(arguments->times, "-") == 0) {
        complain("--export-times -: --json is on standard output already");
        return EINVAL;
    }
    bool concurrent = false;
    for (size_t i = 0; i < arguments->concurrency_count; i++)
        concurrent |= arguments->concurrency[i] > 1;
    if (!arguments->common.threads && concurrent)
        arguments->common.threads = 1;
    if (arguments->common.compile == COMPILE_UNSAID)
        arguments->common.compile = TSSA_COMPILE_WAIT;
    return 0;
}

bool bench_arguments_parse(int argc, char **argv, struct bench_arguments *arguments)
{
    static const struct tool_command command = {.tool = TOOL_BENCH,
                                                .version = "tssa-bench " TSSA_VERSION,
                                                .operands = "MODEL [DATA_SET...] [MODEL...]",
                                                .documentation = documentation,
                                                .options = options,
                                                .operand = read_operand,
                                                .complete = complete};
    *arguments = (struct bench_arguments){.common = COMMON_ARGUMENTS,
                                          .warmup_ms = 200,
                                          .duration = -1,
                                          .percentiles = {90, 95, 99},
                                          .percentile_count = 3,
                                          .sets = 4,
                                          .concurrency = {1},
                                          .concurrency_count = 1};
    return tool_arguments_parse(&command, argc, argv, arguments);
}

void bench_arguments_free(struct bench_arguments *arguments)
{
    input_source_free(&arguments->common.source);
    free((void *)arguments->names);
    free(arguments->sweep);
}
