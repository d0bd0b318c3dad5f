/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels (gir.h) of `fuse` ops (ir/fuse.h) that hold element-wise ops, and ops that have rows
 * (ir/row.h), all the same ones: their scalar programs, one after the other, over the iteration
 * space of the results, or of what has rows. What is the same twice is computed once, and nothing
 * that no result needs. An operand is there as a whole along each axis of the space, or broadcast
 * along it, and which of the two is told from types: dims that are the same in every run, or 1.
 *
 * What accesses permute may be read as well, of operands: from planes (gir/planes.h).
 */
#ifndef TSSA_GIR_BUILD_H
#define TSSA_GIR_BUILD_H

#include "gir/gir.h"
#include "gir/planes.h"

/* An argument of the kernel: which operand or result of the op it is, and which axes of the space
 * it has, by bit. */
struct gir_place {
    uint32_t index;
    int rank, first; /* dim 0 is along this axis of the space */
    uint32_t axes;
    /* how it lies, as an access sees it, whose rank that is; NULL: as its dims say */
    const struct gir_planes *planes;
};

/* The iteration space: the dims of the results, or of what has rows. An axis that no argument has
 * is of length 1. */
struct gir_space {
    int rank;
    /* so many of the last axes are a row, which is whole; 0: any axes may be rows, and these
     * come in parts */
    int row;
    struct gir_place places[GIR_MAX_ARGS]; /* per argument of the kernel */
};

/* Does the block read planes, and is there no other access or assign in it? */
bool gir_reads_planes(const struct ir_op *fuse);

/* Does an argument lie in planes? */
bool gir_has_planes(const struct gir_kernel *kernel, const struct gir_space *space);

/*
 * The axes along which a kernel with planes walks, in results of these dims: how many elements, and
 * bytes from one to the next one of each argument. Axis 0 is a row; axis 1, of its rows, that of
 * which most arguments have the elements side by side. False: arguments' subaxes do not fit each
 * other, or there are too many.
 */
bool gir_walk_planes(const struct gir_kernel *kernel, const struct gir_space *space,
                     const int64_t *dims, int *n_axes, int64_t *sizes,
                     int64_t (*steps)[GIR_MAX_ARGS]);

/* Is there a kernel for a fuse op that holds the op? NULL, or why there is none. */
const char *gir_refuses(const struct ir_op *op);

/*
 * The kernel of a fuse op, of the allocator's memory, which the caller frees. It is NULL where the
 * op is more than a kernel can be, and *why then says how.
 */
tssa_status *gir_build(const struct ir_op *fuse, const tssa_allocator *allocator,
                       struct gir_kernel **kernel, struct gir_space *space, const char **why);

#endif
