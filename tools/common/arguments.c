/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

void log_note(void *user, tssa_log_level level, const char *message)
{
    static char said[2048]; /* several contexts say the same; those that make one share a thread */
    size_t used = strlen(said);
    (void)user;
    if (level != TSSA_LOG_WARNING || strstr(said, message))
        return;
    snprintf(said + used, sizeof said - used, "%s\n", message);
    complain("note: %s", message);
}

/* ---- Parsing the values of options ----------------------------------------------------------- */

int argument_refuse(const char *option, const char *argument, const char *wanted)
{
    complain("--%s %s: %s is wanted", option, argument, wanted);
    return EINVAL;
}

static bool parse_integer(const char *text, int64_t low, int64_t high, int64_t *value)
{
    char *end;
    errno = 0;
    intmax_t number = strtoimax(text, &end, 10);
    if (end == text || *end || errno || number < low || number > high)
        return false;
    *value = number;
    return true;
}

int argument_integer(const char *option, const char *argument, int64_t low, int64_t high,
                     const char *wanted, int64_t *value)
{
    return parse_integer(argument, low, high, value) ? 0
                                                     : argument_refuse(option, argument, wanted);
}

int argument_tolerance(const char *option, const char *argument, double *value)
{
    char *end;
    *value = strtod(argument, &end);
    if (end == argument || *end || !(*value >= 0) || isinf(*value))
        return argument_refuse(option, argument, "a number of at least 0");
    return 0;
}

/* Makes room for one more; NULL when memory runs out. */
static void *grow(void *array, size_t count, size_t size)
{
    return reallocarray(array, count + 1, size);
}

/* What an option says of one of several, a dim or a shape, is said once. */
static int refuse_twice(const char *option, const char *argument, const char *name)
{
    complain("--%s %s: %s is given twice", option, argument, name);
    return EINVAL;
}

int argument_dim(struct input_source *source, const char *option, const char *argument)
{
    const char *split = strrchr(argument, '=');
    if (!split)
        split = strrchr(argument, ':');
    struct dim_argument dim;
    if (!split || split == argument || !parse_integer(split + 1, 0, INT64_MAX, &dim.value))
        return argument_refuse(option, argument, "NAME=SIZE");
    struct dim_argument *more = grow(source->dims, source->dim_count, sizeof *more);
    if (!more)
        return ENOMEM;
    source->dims = more;
    dim.name = strndup(argument, (size_t)(split - argument));
    if (!dim.name)
        return ENOMEM;
    more[source->dim_count++] = dim;
    for (size_t i = 0; i + 1 < source->dim_count; i++)
        if (strcmp(more[i].name, dim.name) == 0)
            return refuse_twice(option, argument, dim.name);
    return 0;
}

/* "1x3x4", "1,3,4", "[1,3,4]", and "" for a scalar. */
static bool parse_dims(const char *text, struct shape_argument *shape)
{
    bool brackets = *text == '[';
    text += brackets;
    for (shape->rank = 0; *text && *text != ']';) {
        char *end;
        errno = 0;
        intmax_t dim = strtoimax(text, &end, 10);
        if (end == text || errno || dim < 0 || *text == '+' || shape->rank == TSSA_MAX_RANK)
            return false;
        shape->dims[shape->rank++] = dim;
        text = end;
        if (*text == 'x' || *text == 'X' || *text == ',') {
            text++;
            if (!*text || *text == ']')
                return false;
        } else if (*text && *text != ']') {
            return false;
        }
    }
    return brackets ? text[0] == ']' && !text[1] : !*text;
}

int argument_shape(struct input_source *source, const char *option, const char *argument)
{
    const char *split = strrchr(argument, ':'); /* names such as input:0 are common */
    struct shape_argument shape = {.used = false};
    if (!split || split == argument || !parse_dims(split + 1, &shape))
        return argument_refuse(option, argument, "NAME:1x3x4 or NAME:1,3,4");
    struct shape_argument *more = grow(source->shapes, source->shape_count, sizeof *more);
    if (!more)
        return ENOMEM;
    source->shapes = more;
    shape.name = strndup(argument, (size_t)(split - argument));
    if (!shape.name)
        return ENOMEM;
    more[source->shape_count++] = shape;
    for (size_t i = 0; i + 1 < source->shape_count; i++)
        if (strcmp(more[i].name, shape.name) == 0)
            return refuse_twice(option, argument, shape.name);
    return 0;
}

int argument_input(struct input_source *source, const char *argument)
{
    struct input_argument *more = grow(source->inputs, source->input_count, sizeof *more);
    if (!more)
        return ENOMEM;
    source->inputs = more;
    more[source->input_count++] = (struct input_argument){.text = argument};
    return 0;
}

void input_source_free(struct input_source *source)
{
    for (size_t i = 0; i < source->shape_count; i++)
        free(source->shapes[i].name);
    for (size_t i = 0; i < source->dim_count; i++)
        free(source->dims[i].name);
    free(source->shapes);
    free(source->dims);
    free(source->inputs);
    *source = (struct input_source){0};
}
