/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/check.h"

#define NUMERAL_OF(number) #number
#define NUMERAL(number) NUMERAL_OF(number)

/* ---- Values ---------------------------------------------------------------------------------- */

int option_switch(const struct tool_option *option, const char *argument, void *place)
{
    (void)option;
    (void)argument;
    *(bool *)place = true;
    return 0;
}

int option_text(const struct tool_option *option, const char *argument, void *place)
{
    (void)option;
    *(const char **)place = argument;
    return 0;
}

int option_amount(const struct tool_option *option, const char *argument, void *place)
{
    return argument_tolerance(option->name, argument, place);
}

int option_int64(const struct tool_option *option, const char *argument, void *place)
{
    const struct option_value *value = &option->value;
    return argument_integer(option->name, argument, value->low, value->high, value->wanted, place);
}

int option_int(const struct tool_option *option, const char *argument, void *place)
{
    int64_t number = 0;
    int error = option_int64(option, argument, &number);
    *(int *)place = (int)number;
    return error;
}

int option_word(const struct tool_option *option, const char *argument, void *place)
{
    const struct option_word *word = option->value.words;
    for (; word->word || word->value; word++)
        if (argument && word->word ? strcmp(argument, word->word) == 0 : argument == word->word) {
            *(unsigned *)place = word->value;
            return 0;
        }
    return argument_refuse(option->name, argument, option->value.wanted);
}

int option_dim(const struct tool_option *option, const char *argument, void *source)
{
    return argument_dim(source, option->name, argument);
}

int option_shape(const struct tool_option *option, const char *argument, void *source)
{
    return argument_shape(source, option->name, argument);
}

int option_input(const struct tool_option *option, const char *argument, void *source)
{
    (void)option;
    return argument_input(source, argument);
}

/* NAME or NAME:N. Whether that has numbers, and so many, a session tells. */
static bool is_device(const char *argument, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 &&
           (argument[length] == '\0' || argument[length] == ':');
}

/* The name of a device that this build has. */
static int read_device(const struct tool_option *option, const char *argument, void *place)
{
    char names[256] = "";
    *(const char **)place = argument;
    for (size_t i = 0, used = 0; tssa_device_name(i) && used < sizeof names; i++) {
        if (is_device(argument, tssa_device_name(i)))
            return 0;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                 i == 0                    ? ""
                                 : tssa_device_name(i + 1) ? ", "
                                                           : " or ",
                                 tssa_device_name(i));
    }
    return argument_refuse(option->name, argument, names);
}

static int read_memory(const struct tool_option *option, const char *argument, void *arguments)
{
    struct common_arguments *common = arguments;
    int64_t number = 0;
    int error =
        argument_integer(option->name, argument, 1, INT64_C(1) << 40, "a number of MiB", &number);
    common->memory_limit = common->source.memory_limit = (size_t)number << 20;
    return error;
}

static const struct option_word compile_words[] = {{"off", TSSA_COMPILE_OFF},
                                                   {"wait", TSSA_COMPILE_WAIT},
                                                   {"background", TSSA_COMPILE_BACKGROUND},
                                                   {NULL, 0}};
static const struct option_word precision_words[] = {
    {"exact", TSSA_PRECISION_EXACT}, {"relaxed", TSSA_PRECISION_RELAXED}, {NULL, 0}};

/* ---- The table ------------------------------------------------------------------------------- */

/* How a tool has an option of options.def. */
struct option_use {
    bool is_in;
    int group;
    const char *help; /* NULL: that of the row */
};

#define OPTIONS_OF struct common_arguments
#define IN(group)                                                                                  \
    {                                                                                              \
        true, group, NULL                                                                          \
    }
#define AS(group, help)                                                                            \
    {                                                                                              \
        true, group, help                                                                          \
    }
#define OUT                                                                                        \
    {                                                                                              \
        false, 0, NULL                                                                             \
    }

static const struct {
    struct tool_option option;
    struct option_use uses[TOOL_COUNT];
} shared_options[] = {
#define OPTION(name, letter, argument, flags, value, run, opt, bench, help)                        \
    {{name, letter, argument, flags, help, 0, value}, {run, opt, bench}},
#include "tools/common/options.def"
#undef OPTION
};

#define N_SHARED (sizeof shared_options / sizeof *shared_options)
#define MAX_OPTIONS 64 /* of a tool */

/* ---- Reading --------------------------------------------------------------------------------- */

struct reading {
    const struct tool_command *command;
    void *arguments;
    struct tool_option options[MAX_OPTIONS];
    bool given[MAX_OPTIONS];
    size_t count;
    struct argp_option rows[MAX_OPTIONS + 1]; /* the same for argp; the last one is all zero */
};

/* argp's key of an option that is one: its letter, or a number that is none. */
#define FIRST_KEY 256

static void add_option(struct reading *reading, const struct tool_option *option)
{
    size_t i = reading->count++;
    bool is_one = option->value.read != NULL;
    reading->options[i] = *option;
    reading->rows[i] = (struct argp_option){
        .name = option->name,
        .key = option->letter ? option->letter : (is_one ? FIRST_KEY + (int)i : 0),
        .arg = option->argument,
        .flags = option->flags,
        .doc = option->help,
        .group = option->group};
}

/* Those of the table that the tool has, then its own. False: they are too many. */
static bool collect(struct reading *reading)
{
    const struct tool_command *command = reading->command;
    for (size_t i = 0; i < N_SHARED && reading->count < MAX_OPTIONS; i++) {
        const struct option_use *use = &shared_options[i].uses[command->tool];
        struct tool_option option = shared_options[i].option;
        option.group = use->group;
        option.help = use->help ? use->help : option.help;
        if (use->is_in)
            add_option(reading, &option);
    }
    const struct tool_option *own = command->options;
    for (; (own->name || own->letter || own->help) && reading->count < MAX_OPTIONS; own++)
        add_option(reading, own);
    return reading->count < MAX_OPTIONS;
}

static error_t read_option(struct reading *reading, size_t i, const char *argument)
{
    const struct tool_option *option = &reading->options[i];
    bool once = option->name && option->argument && !(option->flags & OPTION_AGAIN);
    if (once && reading->given[i]) {
        complain("--%s: it is given twice", option->name);
        return EINVAL;
    }
    reading->given[i] = true;
    return option->value.read(option, argument, (char *)reading->arguments + option->value.place);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct reading *reading = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->err_stream = NULL; /* one line per error is enough: no "Try --help" after it */
        return 0;
    case ARGP_KEY_ARG:
        return reading->command->operand(reading->arguments, argument);
    case ARGP_KEY_END:
        return reading->command->complete(reading->arguments);
    default:
        break;
    }
    for (size_t i = 0; i < reading->count; i++)
        if (reading->options[i].value.read && reading->rows[i].key == key)
            return read_option(reading, i, argument);
    return ARGP_ERR_UNKNOWN;
}

bool tool_arguments_parse(const struct tool_command *command, int argc, char **argv,
                          void *arguments)
{
    struct reading reading = {.command = command, .arguments = arguments};
    if (!collect(&reading)) {
        complain("it has more options than %d", MAX_OPTIONS);
        return false;
    }
    const struct argp argp = {.options = reading.rows,
                              .parser = parse,
                              .args_doc = command->operands,
                              .doc = command->documentation};
    argp_program_version = command->version;
    argv[0] = program_invocation_short_name; /* getopt's messages start with it */
    error_t error = argp_parse(&argp, argc, argv, 0, NULL, &reading);
    if (error == ENOMEM)
        complain("out of memory");
    return error == 0;
}
