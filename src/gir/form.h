/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms that the machine code of a kernel has, and where it has which: what the generator
 * emits, and what estimates are made of.
 *
 *     elements       vectors along a row, any part of which may be a call
 *     rows along     whole rows, one after the other: vectors along each
 *     rows across    whole rows, 32 at a time: a vector is the same element of all of them
 *     columns        vectors of columns, row by row
 *     iterations     the same, where a row needs what the one before has come to
 *
 * Code for whole rows has both forms, where there is room on the stack for rows as lanes; which one
 * runs is told by how many there are in a call, and how long they are.
 */
#ifndef TSSA_GIR_FORM_H
#define TSSA_GIR_FORM_H

#include "gir/gir.h"

enum gir_form {
    GIR_FORM_ELEMENTS,
    GIR_FORM_ROWS_ALONG,
    GIR_FORM_ROWS_ACROSS,
    GIR_FORM_COLUMNS,
    GIR_FORM_ITERATIONS,
    GIR_FORM_ROW_OF_BLOCK, /* of grids alone: gir_kernel.form */
    GIR_FORM_COUNT
};

#define GIR_FORM_LANES 32 /* rows that are across at a time, elements of a vector of long ones */
/* Elements of a long row that a block reduces at a time: 64 steps of its lanes. */
#define GIR_FORM_STRETCH 2048
/* Elements of the longest rows that are across, but for those of planes. */
#define GIR_FORM_LONGEST_ROW 64
#define GIR_FORM_TILE 16 /* elements of a row that are moved together where it becomes lanes */

/* Of whole rows. */
struct gir_across {
    uint64_t room;    /* elements of a row that there is memory for; 0: rows are never across */
    uint64_t longest; /* elements of a row, up to which they are */
    uint64_t but;     /* elements of a row that fill a vector, which is as good */
    uint64_t fewest;  /* rows of a call, from which on they are, */
    uint64_t times;   /* where so many times that is no less than the elements of a row */
    bool planes;      /* elements of rows are apart, and rows side by side */
};

/* How many elements, rows or columns are computed with at a time. Of whole rows it is
 * GIR_FORM_LANES, or a part of these, piece by piece, so that not all values of all lanes are
 * wanted in registers at once. `register_bytes`: of a vector register. */
unsigned gir_lanes_of(const struct gir_kernel *kernel, unsigned register_bytes);
/* `when`: as gir_find_passes fills it. */
struct gir_across gir_find_across(const struct gir_kernel *kernel, const struct gir_when *when,
                                  unsigned register_bytes);
/* The form in which a call of so many rows of so many elements is run. */
enum gir_form gir_form_of(const struct gir_kernel *kernel, const struct gir_across *across,
                          double rows, double length);

/* Is the step the highest or the lowest of floats? Where NaNs are among them is found out apart: it
 * is one instruction then. */
bool gir_finds_extreme(const struct gir_code *code);
/* Bytes of an element of memory, of the types that kernels have. */
unsigned gir_width(tssa_dtype dtype);

#endif
