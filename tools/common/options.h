/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of the tools: a row each, which says what --help tells of it and where its value
 * goes. Those of several tools are listed once, in options.def; a tool has a table of its own for
 * what no other one has. There is one reader of both, so that an option is a row, and nothing else.
 */
#ifndef TSSA_TOOLS_OPTIONS_H
#define TSSA_TOOLS_OPTIONS_H

#include <argp.h>
#include <stddef.h>

#include "tools/common/arguments.h"

/* The columns of options.def. */
enum tool { TOOL_RUN, TOOL_OPT, TOOL_BENCH, TOOL_COUNT };

/* A word that an option takes, and what it is stored as. */
struct option_word {
    const char *word; /* NULL: no word is given */
    unsigned value;
};

struct tool_option;

/* Stores what an option was given (NULL: nothing) in `place`: 0, or an errno after a line on
 * standard error (ENOMEM: without one). */
typedef int (*option_reader)(const struct tool_option *option, const char *argument, void *place);

struct option_value {
    option_reader read; /* NULL: a headline of --help, or another name of the option before it */
    size_t place;       /* in the tool's struct of arguments, which begins with the common ones */
    int64_t low, high;  /* of a number */
    const struct option_word *words; /* one of these; the last one has neither word nor value */
    const char *wanted;              /* what it must be, for a line that refuses it */
};

struct tool_option {
    const char *name;     /* without its dashes; NULL: the letter is all */
    char letter;          /* 0: none */
    const char *argument; /* what help calls it; NULL: it has none */
    int flags;            /* OPTION_AGAIN, and argp's */
    const char *help;
    int group; /* of the lines of --help */
    struct option_value value;
};

/* The option may be given again. argp does not look at this bit of its flags. */
#define OPTION_AGAIN 0x1000

/* ---- Values: columns of rows, after OPTIONS_OF is defined as the struct that `field` is in --- */

#define OPTION_PLACE(field) offsetof(OPTIONS_OF, field)
/* Which reader a field of its type has; a field of another type is refused by the compiler. */
#define OPTION_BY_TYPE(field, ...) _Generic(((OPTIONS_OF *)NULL)->field, __VA_ARGS__)

#define READ(reader, field)                                                                        \
    {                                                                                              \
        .read = reader, .place = OPTION_PLACE(field)                                               \
    }
/* By a function of the tool, which gets all arguments. */
#define READ_ALL(reader)                                                                           \
    {                                                                                              \
        .read = reader                                                                             \
    }
#define SWITCH(field) READ(OPTION_BY_TYPE(field, bool : option_switch), field)
#define TEXT(field) READ(OPTION_BY_TYPE(field, const char * : option_text), field)
#define AMOUNT(field) READ(OPTION_BY_TYPE(field, double : option_amount), field)
#define NUMBER(field, low_, high_, wanted_)                                                        \
    {                                                                                              \
        .read = OPTION_BY_TYPE(field, int                                                          \
                               : option_int, unsigned                                              \
                               : option_int, int64_t                                               \
                               : option_int64, uint64_t                                            \
                               : option_int64),                                                    \
        .place = OPTION_PLACE(field), .low = low_, .high = high_, .wanted = wanted_                \
    }
/* Of a field that is an enum. */
#define WORD(field, words_, wanted_)                                                               \
    {                                                                                              \
        .read = OPTION_BY_TYPE(field, unsigned                                                     \
                               : option_word, int                                                  \
                               : option_word),                                                     \
        .place = OPTION_PLACE(field), .words = words_, .wanted = wanted_                           \
    }

#define HEADLINE(group, text)                                                                      \
    {                                                                                              \
        NULL, 0, NULL, 0, text, group,                                                             \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

int option_switch(const struct tool_option *option, const char *argument, void *place);
int option_text(const struct tool_option *option, const char *argument, void *place);
/* A number of at least 0, with a fraction. */
int option_amount(const struct tool_option *option, const char *argument, void *place);
int option_int(const struct tool_option *option, const char *argument, void *place);
int option_int64(const struct tool_option *option, const char *argument, void *place);
int option_word(const struct tool_option *option, const char *argument, void *place);
/* Into a struct input_source: what one --dim, --shape or --input says. */
int option_dim(const struct tool_option *option, const char *argument, void *source);
int option_shape(const struct tool_option *option, const char *argument, void *source);
int option_input(const struct tool_option *option, const char *argument, void *source);

/* ---- Reading a command line ------------------------------------------------------------------ */

struct tool_command {
    enum tool tool;
    const char *version;  /* what --version prints */
    const char *operands; /* for --help */
    const char *documentation;
    const struct tool_option *options; /* of this tool alone; the last one is all zero */
    int (*operand)(void *arguments, const char *argument);
    int (*complete)(void *arguments); /* when all was read */
};

/*
 * False, with a line on standard error, when the arguments are wrong. --help and --version end the
 * process. `arguments` is the tool's struct, with what holds where nothing is said; it begins with
 * struct common_arguments.
 */
bool tool_arguments_parse(const struct tool_command *command, int argc, char **argv,
                          void *arguments);

#endif
