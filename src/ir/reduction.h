/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of ir/reduction.def as data: what a code generator or a kernel needs to know of a
 * reduction. Its expressions are programs (ir/scalar.h); the order in which elements are combined
 * is in reduction.def. The table is constant: any thread may read it.
 */
#ifndef TSSA_IR_REDUCTION_H
#define TSSA_IR_REDUCTION_H

#include "ir/scalar.h"

#define REDUCTION_LANES 32 /* neighbours that are a step */
#define REDUCTION_RADIX 64 /* steps, and results of that, that are combined one after the other */

enum reduction_row {
#define REDUCTION(row, types, shift, identity, before, combine, after) REDUCTION_##row,
#include "ir/reduction.def"
#undef REDUCTION
    REDUCTION_ROWS
};

/* What S is, where it is no row. */
enum { REDUCTION_SHIFT_NONE = -1, REDUCTION_SHIFT_GIVEN = -2 };

struct reduction_info {
    enum reduction_row row;
    const char *name;
    dtype_mask types; /* computed as such; others in double */
    int shift;        /* the row whose result S is, or as above */
    enum scalar_id combine;
    /* Leaves: none; X and S; A, S and COUNT. */
    const struct scalar_code *identity, *before, *after;
};

extern const struct reduction_info reduction_table[REDUCTION_ROWS];
/* The type in which a row computes elements of `dtype`: FLOAT, DOUBLE, INT32, INT64 or UINT64. */
tssa_dtype reduction_type(enum reduction_row row, tssa_dtype dtype);

#endif
