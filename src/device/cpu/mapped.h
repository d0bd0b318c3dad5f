/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a fuse op being set up for a call (mapped.c), and what may be wrong with its numbers.
 */
#ifndef TSSA_DEVICE_CPU_MAPPED_H
#define TSSA_DEVICE_CPU_MAPPED_H

#include "device/cpu/walk.h"

struct mapped_setup {
    struct kernel_args *args;
    const struct device_part *part;
    const struct tensor *inputs[GIR_MAX_ARGS];  /* NULL: absent */
    int64_t dims[TSSA_MAX_RANK];                /* of the space; -1: not told yet */
    int64_t steps[GIR_MAX_ARGS][TSSA_MAX_RANK]; /* along the space's axes, in bytes */
    char *data[GIR_MAX_ARGS];
    int64_t row_steps[GIR_MAX_ARGS], n_rows[GIR_MAX_ARGS]; /* of what is looked up in */
    int64_t n_iterations[GIR_MAX_ARGS]; /* for which there are rows; -1: for any number */
    bool is_empty;                      /* an argument along an axis that it has not */
    bool writes_none;                   /* the same of a result: of an axis of one element, none */
    bool is_bent;                       /* as that of a region, of any argument */
    struct buffer *masks[GIR_MAX_ARGS]; /* of rows that are copied */
    uint32_t n_masks;
};

/* The status with the name of who asked for what is not there. */
tssa_status *mapped_blame(tssa_status *status, const struct gir_map *map);

/* Does op `a` come before `b` in the block? */
bool mapped_is_before(const struct ir_op *a, const struct ir_op *b);
/* Of all operands of which a loop reads a row in each iteration: what the first one that has none
 * asks for first. */
tssa_status *mapped_check_iterations(const struct mapped_setup *s);
/* Numbers of rows that the kernel does not check, and of no elements, those that are there. As a
 * Gather does. */
tssa_status *mapped_check_lookups(const struct mapped_setup *s, bool is_empty);
/* Runs so many elements of a kernel that checks such numbers itself. */
tssa_status *mapped_run_checking(const struct mapped_setup *s, struct walk *walk, int64_t count);

#endif
