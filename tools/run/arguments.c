/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/run/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/options.h"

enum { KEY_FORMAT = KEY_OWN, KEY_PROFILE, KEY_DUMP_IR, KEY_INSPECT, KEY_BOXES, KEY_REMARKS };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Inputs:", 1},
    OPTION_INPUT(1),
    OPTION_SHAPE(1),
    OPTION_DIM(1),
    OPTION_SEED(1),

    {NULL, 0, NULL, 0, "Outputs:", 2},
    {"outputs", KEY_OUTPUTS, "NAME,NAME", 0,
     "Compute these outputs only; files keep the numbers that the model gives them", 2},
    {"output-dir", 'o', "DIR", 0, "Write the outputs to DIR/output_K.npy", 2},
    {"output-format", KEY_FORMAT, "npy|pb", 0, "Format of these files (default npy)", 2},
    {"compare", 'c', "DIR", 0,
     "Compare with DIR/output_K.pb or .npy; the exit status is 1 when an output differs", 2},
    OPTION_RTOL(2),
    OPTION_ATOL(2),
    {"boxes", KEY_BOXES, NULL, 0, "Print detections (K,5) and labels (K) as a table", 2},
    {"quiet", 'q', NULL, 0, "Print no summary of the outputs", 2},

    {NULL, 0, NULL, 0, "Running:", 3},
    {"threads", 't', "N", 0, "Threads per kernel (default: one per core)", 3},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0, "End the run when it takes longer", 3},
    OPTION_MEMORY(3),
    OPTION_LEVEL(3),
    OPTION_DEVICE(3),
    OPTION_COMPILE(3),
    OPTION_KERNEL_CACHE(3),
    OPTION_POISON(3),
    {"repeat", 'r', "N", 0, "Run N more times and print min, median and P99", 3},
    {"profile", KEY_PROFILE, "FILE", 0,
     "Write a Chrome trace of the steps, loop bodies added up; -: print a table of operators", 3},
    {"remarks", KEY_REMARKS, NULL, 0,
     "Print which operators the session computes in one kernel, and why others are not in one", 3},

    {NULL, 0, NULL, 0, "Looking, without running:", 4},
    {"inspect", KEY_INSPECT, NULL, 0, "Print inputs, outputs, opset and operators", 4},
    {"dump-ir", KEY_DUMP_IR, NULL, 0, "Print the graph as IR text, optimized as -O says", 4},

    {NULL, 0, NULL, 0, "Other:", -1},
    OPTION_LINKS(-1),
    {0},
};

static const char documentation[] =
    "Runs an ONNX model and prints what comes out.\n\nWithout DATA_SET (a folder with input_K.pb "
    "or "
    "input_K.npy files, such as test_data_set_0) and without --input, inputs are random.\v"
    "Examples:\n"
    "  tssa-run model.onnx --inspect\n"
    "      what goes in, what comes out, which operators it takes\n"
    "  tssa-run model.onnx\n"
    "      run on random inputs\n"
    "  tssa-run model.onnx --shape x:1x3x640x640 --dim N=6300 --seed 7\n"
    "      the same, with chosen shapes\n"
    "  tssa-run model.onnx test_data_set_0 --compare test_data_set_0\n"
    "      run on recorded inputs and check against recorded outputs\n"
    "  tssa-run model.onnx --input image=cat.npy --output-dir out\n"
    "      from and to numpy files\n"
    "  tssa-run model.onnx test_data_set_0 --repeat 100 --profile trace.json\n"
    "      time it; open trace.json in https://ui.perfetto.dev\n"
    "  tssa-run model.onnx test_data_set_0 --repeat 100 --profile=-\n"
    "      which operators take the time; tssa-bench measures more\n"
    "\n"
    "Exit status: 0 done, 1 --compare found a difference, 2 wrong arguments or inputs, 3 the model "
    "cannot be loaded, 4 the model needs what tssa does not have, 5 the run failed, 6 a file of "
    "inputs or "
    "outputs cannot be read or written, 130 Ctrl-C ended the run.\n";

static error_t parse_positional(struct arguments *arguments, const char *argument)
{
    if (!arguments->model) {
        arguments->model = argument;
    } else if (!arguments->common.source.data_set) {
        arguments->common.source.data_set = argument;
    } else {
        complain("%s: a model and a data set are all that is wanted", argument);
        return EINVAL;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------ */

static error_t parse_running(int key, const char *argument, struct arguments *arguments)
{
    int64_t number = 0;
    error_t error = 0;
    switch (key) {
    case 'r':
        error =
            argument_integer("--repeat", argument, 1, 100000000, "a number of at least 1", &number);
        arguments->repeat = (long)number;
        return error;
    case KEY_PROFILE:
        arguments->profile = argument;
        return 0;
    case KEY_INSPECT:
        arguments->inspect = true;
        return 0;
    case KEY_REMARKS:
        arguments->remarks = true;
        return 0;
    case KEY_DUMP_IR:
        arguments->dump_ir = true;
        return 0;
    default:
        return argument_common(key, argument, &arguments->common);
    }
}

static error_t parse_values(int key, const char *argument, struct arguments *arguments)
{
    switch (key) {
    case 'i':
        return argument_input(&arguments->common.source, argument);
    case 's':
        return argument_shape(&arguments->common.source, "--shape", argument);
    case 'o':
        arguments->output_dir = argument;
        return 0;
    case 'c':
        arguments->compare_dir = argument;
        return 0;
    case KEY_BOXES:
        arguments->boxes = true;
        return 0;
    case KEY_FORMAT:
        arguments->output_pb = strcmp(argument, "pb") == 0;
        return arguments->output_pb || strcmp(argument, "npy") == 0
                   ? 0
                   : argument_refuse("--output-format", argument, "npy or pb");
    default:
        return parse_running(key, argument, arguments);
    }
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct arguments *arguments = state->input;
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
        if (arguments->model)
            return 0;
        complain("which model? See tssa-run --help");
        return EINVAL;
    default:
        return parse_values(key, argument, arguments);
    }
}

bool arguments_parse(int argc, char **argv, struct arguments *arguments)
{
    static const struct argp argp = {options, parse, "MODEL [DATA_SET]", documentation, NULL,
                                     NULL,    NULL};
    *arguments = (struct arguments){.common = COMMON_ARGUMENTS};
    argp_program_version = "tssa-run " TSSA_VERSION;
    argv[0] = program_invocation_short_name; /* getopt's messages start with it */
    error_t error = argp_parse(&argp, argc, argv, 0, NULL, arguments);
    if (error == ENOMEM)
        complain("out of memory");
    return error == 0;
}

void arguments_free(struct arguments *arguments)
{
    input_source_free(&arguments->common.source);
}
