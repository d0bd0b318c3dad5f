/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a probe found, line by line in a file: it is written by the probe's process and read by the
 * program that started that, which so has what was found before a crash or a time limit.
 *
 *   figure NAME VALUE LEAST UNIT     separated by tabs; LEAST may be nan
 *   fact   NAME TEXT
 *   error  CODE TEXT
 *   done
 */
#ifndef TSSA_CUDA_PROBE_RECORD_H
#define TSSA_CUDA_PROBE_RECORD_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/cuda_probe/stopwatch.h"

void record_figure(FILE *out, double value, const char *unit, const char *name, ...)
    __attribute__((format(printf, 4, 5)));
void record_timing(FILE *out, struct timing timing, const char *name, ...)
    __attribute__((format(printf, 3, 4)));
void record_fact(FILE *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void record_error(FILE *out, const tssa_status *status);
void record_done(FILE *out);

typedef enum { RECORD_FIGURE, RECORD_FACT, RECORD_ERROR, RECORD_DONE } record_kind;

struct record {
    record_kind kind;
    const char *name, *text; /* text: of a fact or an error; the unit of a figure */
    double value, least;     /* value: also the code of an error */
};

/* The next record of the file, in a line that getline() made and that lives until the next call.
 * False at the end, and at a line that is not whole. */
struct record_reader {
    FILE *in;
    char *line;
    size_t capacity;
};
bool record_next(struct record_reader *reader, struct record *record);

#endif
