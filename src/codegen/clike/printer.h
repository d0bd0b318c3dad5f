/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel being printed: what its function (print.c) and its steps (steps.c) share. */
#ifndef TSSA_CODEGEN_CLIKE_PRINTER_H
#define TSSA_CODEGEN_CLIKE_PRINTER_H

#include "codegen/clike/clike.h"

struct printer {
    const struct gir_kernel *kernel;
    uint32_t part;        /* of a launch */
    uint32_t args, steps; /* where it begins in what NAME_run is given */
    struct text *text;
    enum clike_form form;
    int depth; /* of blocks */
    uint32_t n_passes, pass;
    struct gir_when when[GIR_MAX_CODES];
    bool needed[GIR_MAX_CODES]; /* in the pass, for each element */
};

/* Begins a line. */
void clike_indent(const struct printer *p);
/* Step i, which is no reduction: a constant of the function, v0, v1, ...; or a store. */
void clike_print_step(const struct printer *p, uint32_t i);
/* An element of a type, by its bits. */
void clike_print_number(const struct printer *p, tssa_dtype type, uint64_t bits);

#endif
