/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of `fuse` ops (ir/fuse.h) that hold accesses and assigns whose elements lie in steps: an
 * access is an argument with strides, and no copy.
 *
 * A value is computed where a result needs it: what reads a view of it evaluates it there
 * (gir/view.h). An assign is a choice of source for a slice of the result, made before a loop, not
 * in it, in one of two ways:
 *
 *   - along a last axis of a few columns (GIR_MAX_FIELDS): the axis is unrolled, and each column of
 *     the result has its own source; arguments with that axis are records of so many fields, or a
 *     strided one for each column;
 *   - else there is a part of the op for the whole results without what assigns write, and then one
 *     for the region of each assign in the order in which they are made, with its source.
 *
 * The axis is unrolled as well where nothing is assigned, but rows would be no longer than these
 * few columns, as they are part of longer rows, or are broadcast: what is a vector then are many
 * rows, and not one.
 *
 * Where reductions, or a softmax, of one other axis than the innermost one are (ir_column_axis), it
 * is a kernel of columns (gir.h): the space has that axis as well, and what is computed along it is
 * evaluated as a whole. Results are what columns come to, or have all of the space.
 *
 * So is it where sums run along another axis than the last one (ir_scan_axis): rows are the
 * elements that are summed up, one after the other, and sums are states.
 *
 * A loop of which an iteration is one kernel (ir_fuse_loop) is a kernel of columns, too, whose rows
 * are its iterations: what it carries is of the same dims, and each element of it depends on no
 * other one. The space has an axis before these dims, along which are what an iteration reads by
 * its number, and what is stacked.
 *
 * What a mask keeps (ir_fuse_keeps) is a kernel over the mask's elements. Rows of a few columns
 * that are computed for it are records; others are copied by who calls the kernel.
 *
 * What cannot be told in advance (an access of what an assign may or may not have written) makes it
 * no kernel.
 */
#ifndef TSSA_GIR_MAPS_H
#define TSSA_GIR_MAPS_H

#include "gir/gir.h"
#include "gir/view.h"

#define GIR_MAX_PARTS 16
#define GIR_COMPUTED (UINT64_C(1) << 63)
#define GIR_POSITIONS UINT32_MAX  /* 0, 1, ... along the axis that it has: no memory */
#define GIR_MASK (UINT32_MAX - 1) /* of rows that are copied: of neither, but written */

/* What tells how long a Range is, of one type: start, limit and delta. */
struct gir_range {
    tssa_dtype dtype;
    int32_t operands[3]; /* of the op; -1: a number */
    uint64_t numbers[3]; /* its bits */
};

/* An argument of a part. */
struct gir_map {
    uint32_t index; /* of an operand or result of the op; GIR_POSITIONS, GIR_MASK */
    int rank;       /* of it as a whole */
    uint32_t axes;  /* of the space, by bit: those along which it has more than one element */
    int32_t lookup; /* the axis of the part along which it is looked up in; -1: it is not */
    /* Then, where the numbers of rows are loaded: gir_bits(); or GIR_COMPUTED, and what tells them
     * from others. */
    uint64_t indices;
    /* which part of it; NULL: all. Its operands are the op's. It lives as long as the op. */
    const struct rule *rule;
    /* of positions along an axis that is as long as it says; NULL: others tell. It lives as long as
     * the op. */
    const struct gir_range *range;
    /* of the block, for messages: whose numbers may be wrong; NULL: the fuse op itself */
    const struct ir_op *op;
};

/* Is its axis as long as the argument says? */
static inline bool gir_tells_size(const struct gir_map *map)
{
    return map->index < GIR_MASK || map->range;
}

/* Over what a part goes, and what its results are as wholes. */
struct gir_part_space {
    int rank;
    int64_t dims[TSSA_MAX_RANK]; /* -1: told in the call, by whom has the axis */
    int column; /* of a kernel of columns: the axis that is reduced; -1: of others */
    bool keeps; /* results have an axis of one element in its place */
    /* of a loop's iterations: 1 + the operand that says how many there are; 0: who has the axis
     * does */
    uint32_t trips;
    int result_rank;
    int64_t result_dims[TSSA_MAX_RANK]; /* -1: told by the axis; the same in all parts */
};

/* Rows of an operand that a mask keeps, and nobody computes: who calls the kernel copies them. */
struct gir_copy {
    uint32_t operand, result; /* of the op */
    int axis;
    /* the argument in which the kernel has kept the numbers of the rows, where they are short and
     * others want these, or the one that is the mask */
    uint32_t told_by;
};

/* A kernel over a space of its own. The last axes of what a rule leaves, without that of a record's
 * fields, are the last ones of the space. */
struct gir_part {
    struct gir_kernel *kernel; /* of the allocator's memory */
    struct gir_part_space space;
    struct gir_map maps[GIR_MAX_ARGS];
    uint32_t n_copies;
    struct gir_copy copies[GIR_MAX_ARGS];
};

static inline bool gir_is_of_op(const struct gir_map *map)
{
    return map->index < GIR_MASK;
}

/* To be run in this order. The first part has all results, and tells their dims. */
struct gir_parts {
    const tssa_allocator *allocator;
    uint32_t n;
    struct gir_part parts[GIR_MAX_PARTS];
};

/* Has the fuse op's block accesses, assigns or Concats? */
bool gir_has_maps(const struct ir_op *fuse);

/* NULL in *parts where the op is no kernel, and *why then says why. */
tssa_status *gir_build_maps(const struct ir_op *fuse, const tssa_allocator *allocator,
                            struct gir_parts **parts, const char **why);
void gir_parts_free(struct gir_parts *parts);

#endif
