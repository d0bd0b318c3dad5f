/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grids: `fuse` ops (ir/fuse.h) as kernels for devices that have a thread for each element
 * (gir.h), to which it does not matter whether what they read lies in steps. So they are made of
 * what kernels of the CPU are not: of ops that only move elements, of what has sizes and places
 * that a run tells, of results of several shapes.
 *
 * An element of a result is computed where it is stored, from the coordinates that it has there:
 * backwards, an access says at which coordinates of its base it reads (grid_rule.c), a Concat of
 * which operand an element is, an assign whether it is one that it writes; and so on down to the
 * operands of the op, of which elements are looked up. What is chosen between is computed on both
 * sides; no number of an element is ever out of bounds for that (GIR_LOOKUP).
 *
 * Results of the same shape are a part of the op, a kernel; others are other parts. Parts do not
 * depend on each other, so that one launch may do them side by side. What is computed row by row
 * (ir/row.h) is a part in which a row is a warp's: then results are stored where an element of the
 * row goes, if it does. What is reduced along another axis is a part in which each thread has a
 * column. So is a loop of which an iteration is one kernel and computes elements (ir_fuse_loop):
 * its iterations are rows, which a thread walks, and what it carries are states (grid_loops.c).
 *
 * What products of matrices are computed of products is no part beside those, but a stage behind
 * theirs, if all of it is done by groups that do not need each other: a block has a group, and goes
 * through the stages, whose threads meet between them (grid_stages.c). What a stage has computed
 * for others lies in memory that the launch is given, or is a result. Of attention a group is a
 * head: of `softmax(q k) v`, with q and k of what products are, the products for q and k are the
 * first stage, those of all q and k the second, and what is summed of v by their softmax the third.
 * Of a loop whose iterations are made of such stages, a block does all iterations of its group, one
 * after the other: no group needs what another one carries (grid_trips.c).
 *
 * Ops that are none: what writes at places that data tells, masks.
 */
#ifndef TSSA_GIR_GRID_H
#define TSSA_GIR_GRID_H

#include "gir/gir.h"
#include "ir/ir.h"

/* Whose memory an argument of a part is. */
enum gir_owner {
    GIR_OF_OP,    /* an operand, or a result that is written */
    GIR_INNER,    /* what a stage computes for others: gir_grid.inner */
    GIR_OF_RESULT /* a result, which a stage before has written, and this one reads */
};

struct gir_whole {
    enum gir_owner owner;
    uint32_t index;
    /* Of a result, 1 + the operand whose memory it must be: what is not stored stays what it was,
     * and iterations of stages read it (ir_fuse_begins_as). 0: all of it is stored. */
    uint32_t updates;
    /* Elements that it must have, as `numbers` below, since nobody looks whether those are there
     * that are said to be (gir_code.inside); NULL: none are. */
    const struct dim *least;
};

struct gir_grid_part {
    struct gir_kernel *kernel; /* of the allocator's memory */
    struct gir_whole wholes[GIR_MAX_ARGS];
    /* What it goes over: as many rows as the product of all of these but the last `row` of them, of
     * the product of those; where columns are reduced (`column` is not -1), rows along this axis,
     * of the product of the others; else one row, of all. */
    int rank, row, column;
    /* Sums run along the rows: 1 from the first one on, -1 from the last one back; 0: they do not.
     */
    int scan;
    /* Each row is an element of what is stored, and what is along it are the terms of sums, which
     * are products of matrices. */
    bool sums;
    const struct dim *dims[TSSA_MAX_RANK];
    /* Along which axes, the last of which is before `turned_to`, what lookups that are turned read
     * lies side by side; 0: none is. */
    int turned_from, turned_to;
    /* Of a loop, whose iterations are the rows: 1 + the operand of which the one element is how
     * many there are, and dims[column] is NULL then; 0: that tells. None, where it is negative. */
    uint32_t trips;
    uint32_t stage; /* parts of one are in order; see gir_grid.groups */
};

struct gir_inner {
    tssa_dtype dtype;
    int64_t count; /* of elements */
};

#define GIR_GRID_MAX_PARTS 64
#define GIR_GRID_MAX_CLAIMS 64

/* What must be true of two sizes, else the op's error is the call's. */
enum gir_claims { GIR_SAME, GIR_SAME_OR_ONE, GIR_AT_MOST };

struct gir_claim {
    const struct ir_op *op;
    const struct dim *size, *wanted; /* as `numbers` below */
    enum gir_claims claims;
};

struct gir_grid {
    const tssa_allocator *allocator;
    /* What the numbers are that calls tell, of all parts: dims of the op's graph, which follow from
     * those of operands and results, and from what inference knows of operands' elements. */
    uint32_t n_numbers;
    const struct dim *numbers[GIR_MAX_NUMBERS];
    /* A thread does not see whether shapes fit: who makes the call looks, before anything else. */
    uint32_t n_claims;
    struct gir_claim claims[GIR_GRID_MAX_CLAIMS];
    uint32_t n;
    struct gir_grid_part parts[GIR_GRID_MAX_PARTS];
    /* Where there are stages, how many groups: each is as many rows of each part, or elements where
     * it has none, one behind the other. 0: there are no stages. */
    int64_t groups;
    /* Of a loop, each of whose iterations goes through the stages: how many there are, none where
     * it is negative; NULL: the one element of an operand, 1 + which, tells, or, where that is 0,
     * it is no loop. */
    const struct dim *trips;
    uint32_t trips_operand;
    uint32_t n_inner;
    struct gir_inner inner[GIR_MAX_STAGES];
};

/* Is there a grid for a fuse op that holds the op? NULL, or why there is none. */
const char *gir_grid_refuses(const struct ir_op *op);

/* NULL in *grid where the op is none, and *why then says why. It lives as long as the op. */
tssa_status *gir_build_grid(const struct ir_op *fuse, const tssa_allocator *allocator,
                            struct gir_grid **grid, const char **why);
/* The same of all of the op but the first op of its block, whose one result is given as operand
 * n_operands. */
tssa_status *gir_build_grid_behind(const struct ir_op *fuse, const tssa_allocator *allocator,
                                   struct gir_grid **grid, const char **why);
/* Is the size that of the first axis of all that the grid goes over, and does no element depend on
 * it? Then it may go over more of them. */
bool gir_grid_is_free_of(const struct gir_grid *grid, const struct dim *size);
/* Of a fuse op of which there is such a grid. */
bool gir_is_free_of(const struct ir_op *fuse, const struct dim *size);
void gir_grid_free(struct gir_grid *grid);

#endif
