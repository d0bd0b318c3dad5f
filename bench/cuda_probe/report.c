/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/report.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static void print_record(const struct record *record)
{
    if (record->kind == RECORD_FACT)
        printf("    %-48s %s\n", record->name, record->text);
    if (record->kind != RECORD_FIGURE)
        return;
    printf("    %-48s %10.5g %s", record->name, record->value, record->text);
    if (!isnan(record->least))
        printf("   (least %.5g)", record->least);
    printf("\n");
}

void report_print(struct answer *answer)
{
    struct record_reader reader = {.in = answer->records};
    struct record record;
    printf("%s: %s\n", answer->probe->name, answer->probe->question);
    rewind(answer->records);
    while (record_next(&reader, &record))
        print_record(&record);
    free(reader.line);
    if (answer->failure)
        printf("    no answer: %s\n", answer->failure);
    fflush(stdout);
}

static void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void json_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "%.9g", value);
    else
        fputs("null", out);
}

static void json_figure(FILE *out, const struct record *record)
{
    fputs("{\"name\": ", out);
    json_string(out, record->name);
    fputs(", \"value\": ", out);
    json_number(out, record->value);
    fputs(", \"least\": ", out);
    json_number(out, record->least);
    fputs(", \"unit\": ", out);
    json_string(out, record->text);
    fputc('}', out);
}

static void json_fact(FILE *out, const struct record *record)
{
    json_string(out, record->name);
    fputs(": ", out);
    json_string(out, record->text);
}

static void json_records(FILE *out, FILE *in, record_kind kind,
                         void (*write)(FILE *, const struct record *))
{
    struct record_reader reader = {.in = in};
    struct record record;
    const char *comma = "";
    rewind(in);
    while (record_next(&reader, &record)) {
        if (record.kind != kind)
            continue;
        fprintf(out, "%s\n     ", comma);
        write(out, &record);
        comma = ",";
    }
    free(reader.line);
}

void report_json_begin(FILE *out)
{
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    fprintf(out,
            "{\"program\": \"cuda_probe\", \"version\": \"%s\", \"date\": \"%s\", \"probes\": [",
            TSSA_VERSION, date);
}

void report_json(FILE *out, struct answer *answer, bool first)
{
    fprintf(out, "%s\n  {\"name\": ", first ? "" : ",");
    json_string(out, answer->probe->name);
    fputs(", \"question\": ", out);
    json_string(out, answer->probe->question);
    fprintf(out, ", \"seconds\": %.3f, \"failure\": ", answer->seconds);
    if (answer->failure)
        json_string(out, answer->failure);
    else
        fputs("null", out);
    fputs(",\n   \"figures\": [", out);
    json_records(out, answer->records, RECORD_FIGURE, json_figure);
    fputs("],\n   \"facts\": {", out);
    json_records(out, answer->records, RECORD_FACT, json_fact);
    fputs("}}", out);
}

void report_json_end(FILE *out)
{
    fputs("\n]}\n", out);
}
