/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/run/arguments.h"

#include <errno.h>
#include <string.h>

#include "tools/common/options.h"

#define OPTIONS_OF struct arguments

static const struct option_word formats[] = {{"npy", OUTPUT_NPY}, {"pb", OUTPUT_PB}, {NULL, 0}};

static int read_stage(const struct tool_option *option, const char *argument, void *all)
{
    static const char *const stages[] = {DUMP_GRAPH, "session", "gir", "cuda", "opencl"};
    struct arguments *arguments = all;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (strcmp(argument ? argument : DUMP_GRAPH, stages[i]) == 0) {
            arguments->dump_stage = stages[i];
            return 0;
        }
    return argument_refuse(option->name, argument, "graph, session, gir, cuda or opencl");
}

static int read_remarks(const struct tool_option *option, const char *argument, void *all)
{
    struct arguments *arguments = all;
    if (!argument)
        arguments->remarks = REMARKS_SESSION;
    else if (strcmp(argument, "gir") == 0)
        arguments->remarks = REMARKS_GIR;
    else if (strcmp(argument, "layout") == 0)
        arguments->remarks = REMARKS_LAYOUT;
    else
        return argument_refuse(option->name, argument, "gir, layout, or nothing,");
    return 0;
}

static const struct tool_option options[] = {
    HEADLINE(1, "Inputs:"),

    HEADLINE(2, "Outputs:"),
    {"output-dir", 'o', "DIR", 0, "Write the outputs to DIR/output_K.npy", 2, TEXT(output_dir)},
    {"output-format", 0, "npy|pb", 0, "Format of these files (default npy)", 2,
     WORD(output_format, formats, "npy or pb")},
    {"compare", 'c', "DIR", 0,
     "Compare with DIR/output_K.pb or .npy; the exit status is 1 when an output differs", 2,
     TEXT(compare_dir)},
    {"boxes", 0, NULL, 0, "Print detections (K,5) and labels (K) as a table", 2, SWITCH(boxes)},

    HEADLINE(3, "Running:"),
    {"poison", 0, NULL, 0,
     "Write over memory that nothing reads any more, to find what does; the bits are the same", 3,
     SWITCH(poison)},
    {"repeat", 'r', "N", 0, "Run N more times and print min, median and P99", 3,
     NUMBER(repeat, 1, 100000000, "a number of at least 1")},
    {"profile", 0, "FILE", 0,
     "Write a Chrome trace of the steps, loop bodies added up; -: print a table of operators", 3,
     TEXT(profile)},
    {"remarks", 0, "gir|layout", OPTION_ARG_OPTIONAL,
     "Print which operators the session computes in one kernel, why others are not in one, and "
     "which the device lacks; gir: what each kernel is, what else there was, and what it is "
     "estimated to move and to take; layout: how images of convolutions lie, what that moves, and "
     "what the library does with them",
     3, READ_ALL(read_remarks)},

    HEADLINE(4, "Looking, without running:"),
    {"inspect", 0, NULL, 0, "Print inputs, outputs, opset and operators", 4, SWITCH(inspect)},
    {"dump-ir", 0, "STAGE", OPTION_ARG_OPTIONAL,
     "Print the graph as IR text, optimized as -O says; session: the graph that runs are made "
     "from, with kernels; gir: these kernels; cuda, opencl: the same in CUDA C, and grids in "
     "OpenCL C",
     4, READ_ALL(read_stage)},

    HEADLINE(-1, "Other:"),
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
    "  tssa-run model.onnx --dump-ir=gir\n"
    "      which kernels a session compiles for it, and what is in them\n"
    "\n"
    "Exit status: 0 done, 1 --compare found a difference, 2 wrong arguments or inputs, 3 the model "
    "cannot be loaded, 4 the model needs what tssa does not have, 5 the run failed, 6 a file of "
    "inputs or "
    "outputs cannot be read or written, 130 Ctrl-C ended the run.\n";

static int read_operand(void *all, const char *argument)
{
    struct arguments *arguments = all;
    if (!argument[0]) {
        complain("the name of a file is empty");
        return EINVAL;
    }
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

static int complete(void *all)
{
    struct arguments *arguments = all;
    if (!arguments->model) {
        complain("which model? See tssa-run --help");
        return EINVAL;
    }
    if (arguments->common.compile == COMPILE_UNSAID) /* one run takes less than compiling for it */
        arguments->common.compile = arguments->repeat || arguments->remarks == REMARKS_GIR
                                        ? TSSA_COMPILE_WAIT
                                        : TSSA_COMPILE_OFF;
    return 0;
}

bool arguments_parse(int argc, char **argv, struct arguments *arguments)
{
    static const struct tool_command command = {.tool = TOOL_RUN,
                                                .version = "tssa-run " TSSA_VERSION,
                                                .operands = "MODEL [DATA_SET]",
                                                .documentation = documentation,
                                                .options = options,
                                                .operand = read_operand,
                                                .complete = complete};
    *arguments = (struct arguments){.common = COMMON_ARGUMENTS};
    return tool_arguments_parse(&command, argc, argv, arguments);
}

void arguments_free(struct arguments *arguments)
{
    input_source_free(&arguments->common.source);
}
