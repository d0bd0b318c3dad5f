/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/record.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[] = {
    [RECORD_FIGURE] = "figure",
    [RECORD_FACT] = "fact",
    [RECORD_ERROR] = "error",
    [RECORD_DONE] = "done",
};

/* Tabs and ends of lines are the file's own. */
static void put_text(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
}

void record_figure(FILE *out, double value, const char *unit, const char *name, ...)
{
    va_list arguments;
    va_start(arguments, name);
    fprintf(out, "%s\t", words[RECORD_FIGURE]);
    vfprintf(out, name, arguments);
    fprintf(out, "\t%.9g\tnan\t%s\n", value, unit);
    fflush(out);
    va_end(arguments);
}

void record_timing(FILE *out, struct timing timing, const char *name, ...)
{
    va_list arguments;
    va_start(arguments, name);
    fprintf(out, "%s\t", words[RECORD_FIGURE]);
    vfprintf(out, name, arguments);
    fprintf(out, "\t%.9g\t%.9g\tus\n", timing.median, timing.least);
    fflush(out);
    va_end(arguments);
}

void record_fact(FILE *out, const char *name, const char *format, ...)
{
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(out, "%s\t%s\t", words[RECORD_FACT], name);
    put_text(out, text);
    fputc('\n', out);
    fflush(out);
}

void record_error(FILE *out, const tssa_status *status)
{
    fprintf(out, "%s\t%d\t", words[RECORD_ERROR], (int)tssa_status_code(status));
    put_text(out, tssa_status_message(status));
    fputc('\n', out);
    fflush(out);
}

void record_done(FILE *out)
{
    fprintf(out, "%s\n", words[RECORD_DONE]);
    fflush(out);
}

static bool parse(char *line, struct record *record)
{
    char *word = strsep(&line, "\t");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0)
            record->kind = (record_kind)i;
    }
    record->name = strsep(&line, "\t");
    if (record->kind == RECORD_FIGURE) {
        const char *value = strsep(&line, "\t"), *least = strsep(&line, "\t");
        record->value = value ? strtod(value, NULL) : NAN;
        record->least = least ? strtod(least, NULL) : NAN;
    } else if (record->kind == RECORD_ERROR && record->name) {
        record->value = strtod(record->name, NULL);
    }
    record->text = line;
    return record->kind == RECORD_DONE || record->text;
}

bool record_next(struct record_reader *reader, struct record *record)
{
    ssize_t size = getline(&reader->line, &reader->capacity, reader->in);
    if (size <= 0 || reader->line[size - 1] != '\n')
        return false;
    reader->line[size - 1] = '\0';
    *record = (struct record){.kind = RECORD_DONE, .value = NAN, .least = NAN};
    return parse(reader->line, record);
}
