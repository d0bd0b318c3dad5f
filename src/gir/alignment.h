/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How values of a block with rows lie in its space: along its last axes, as what is broadcast, or,
 * where a reduction has dropped its axes, along the axes of the rows.
 */
#ifndef TSSA_GIR_ALIGNMENT_H
#define TSSA_GIR_ALIGNMENT_H

#include "ir/ir.h"

/* What all ops of a block with rows have in common. */
struct gir_rows {
    const struct ir_type *like; /* its dims are the space; NULL: no op has rows */
    int n;                      /* so many of its last axes are a row */
};

/* Finds the rows. False: they are not the same. */
bool gir_rows_of(const struct ir_block *body, struct gir_rows *rows);
/* Marks the values without the row's axes, by id less `first`; all false at first. False: one is
 * both with and without. */
bool gir_align(const struct ir_block *body, const struct gir_rows *rows, uint32_t first,
               bool *dropped);

#endif
