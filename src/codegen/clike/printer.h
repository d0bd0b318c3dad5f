/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel being printed: what its parameters (params.c), its function
 * (print.c), its steps (steps.c) and launches of it (launch.c) share. */
#ifndef TSSA_CODEGEN_CLIKE_PRINTER_H
#define TSSA_CODEGEN_CLIKE_PRINTER_H

#include "codegen/clike/clike.h"

struct printer {
    const struct gir_kernel *kernel;
    uint32_t part;        /* of a launch */
    uint32_t args, steps; /* where it begins in what NAME_run is given */
    struct text *text;
    enum clike_form form;
    enum clike_dialect dialect;
    enum clike_width width;
    int depth; /* of blocks */
    uint32_t n_passes, pass;
    struct gir_when when[GIR_MAX_CODES];
    bool needed[GIR_MAX_CODES]; /* in the pass, for each element */
    /* Where it is narrow (indices.c): steps of type index_t, and those that are not negative. */
    bool indices[GIR_MAX_CODES], natural[GIR_MAX_CODES];
};

/* Of a kernel; text and depth stay. */
void clike_begin(struct printer *p, const struct gir_kernel *kernel);
/* The kernel's function, from its brace on. */
void clike_print_function(struct printer *p);
/* Does a thread of elements read several at a time (ahead.c)? Then, in the place of `first`, those
 * that are left are from there on. */
bool clike_reads_ahead(const struct printer *p);
void clike_print_ahead(struct printer *p);
/* What threads do of a kernel of which lookups are turned; what is computed once is there. */
void clike_print_turned(struct printer *p);
/* 64-bit words of memory of the block that this takes; 0: nothing is turned. */
uint32_t clike_turned_words(const struct gir_kernel *kernel);
/* Of rows that blocks have (rows_of_blocks.c). */
void clike_print_rows_of_blocks(struct printer *p);
/* How many reductions come before step i, in whatever pass. */
uint32_t clike_reductions_before(const struct printer *p, uint32_t i);

/* The type of numbers of rows and elements. */
const char *clike_index_type(const struct printer *p);
/* What a launch of a width has of a kernel. Tiles have 64 bits in each: with 32, NVIDIA's compiler
 * may have threads wait for one term before they read the next. */
enum clike_width clike_width_of(const struct gir_kernel *kernel, enum clike_width width);
/* Fills p->indices, of a kernel. */
void clike_begin_indices(struct printer *p);
/* Of a kernel: which steps a narrow launch has in 32 bits, indices[n_codes]. */
void clike_find_indices(const struct gir_kernel *kernel, bool *indices);
/* Of a grid: is it divided by a size, which is not negative, and 0 only where there is nothing? */
bool clike_is_by_size(const struct gir_kernel *kernel, const struct gir_code *code);
bool clike_compares_indices(const struct gir_code *code, const bool *indices);
/* A step that is an index, but for a choice or what is divided by a size, or that compares two. */
void clike_print_of_indices(const struct printer *p, const struct gir_code *code);

/* Begins a line. */
void clike_indent(const struct printer *p);
void clike_line(const struct printer *p, const char *text);
/* The head's line, and a brace. */
void clike_open_block(struct printer *p, const char *head);
void clike_close_block(struct printer *p);

typedef void (*clike_print_param_fn)(const struct printer *p, const struct clike_param *param);
/* As the function declares it. */
void clike_print_param(const struct printer *p, const struct clike_param *param);
/* All, in a list, `first` of which is there: on a line of its own for each argument. */
void clike_print_params(const struct printer *p, bool first, clike_print_param_fn print);
/* Of rows, length and what follows these, which are the call's. */
const char *clike_name_of_call(enum clike_param_kind kind);

/* Step i, which is no reduction: a constant of the function, v0, v1, ...; or a store. */
void clike_print_step(const struct printer *p, uint32_t i);
/* An element of a type, by its bits. */
void clike_print_number(const struct printer *p, tssa_dtype type, uint64_t bits);

#endif
