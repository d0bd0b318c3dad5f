/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strided-copy engine: moves a box of elements between two layouts. Every data movement
 * operator (Transpose, Slice, Concat, Tile, ...) is a way of choosing dims and strides for it.
 */
#ifndef TSSA_KERNELS_CPU_LIB_STRIDED_H
#define TSSA_KERNELS_CPU_LIB_STRIDED_H

#include "device/kernel.h"
#include "kernels/cpu/lib/axes.h"

/* Tile doubles the rank of its operand. */
#define STRIDED_MAX_RANK (2 * TSSA_MAX_RANK)

/* A box of elements and how it lies in the two arrays. */
struct strided_box {
    int rank;
    int64_t dims[STRIDED_MAX_RANK];
    int64_t to[STRIDED_MAX_RANK];   /* strides in elements; negative ones reverse */
    int64_t from[STRIDED_MAX_RANK]; /* the same; 0 repeats an element */
};

/* Adds a dim at the end of the box. */
static inline void strided_push(struct strided_box *box, int64_t dim, int64_t to, int64_t from)
{
    box->dims[box->rank] = dim;
    box->to[box->rank] = to;
    box->from[box->rank] = from;
    box->rank++;
}

/*
 * Copies the box. `to` and `from` are the addresses of its element (0, 0, ...); they may not
 * overlap. `size` is that of an element: 1, 2, 4, 8 or 16 bytes. No element may be written twice.
 */
void strided_copy(const struct team *team, size_t size, const struct strided_box *box, void *to,
                  const void *from);
/* Writes one value to every element of the box; its `from` strides are not read. */
void strided_fill(const struct team *team, size_t size, const struct strided_box *box, void *to,
                  const void *value);

/* Makes output 0 input 0, to be changed in part: in its place where that can be, else a copy. The
 * output is NULL when it is not wanted. */
tssa_status *update_input(struct kernel_args *args, struct tensor **output);

/* Both arrays without gaps. */
void contiguous_copy(const struct team *team, void *to, const void *from, size_t bytes);
void contiguous_fill(const struct team *team, size_t size, int64_t count, void *to,
                     const void *value);

/* An element as it lies in memory; zero: 0, false or "". */
union stored_element {
    unsigned char bytes[16];
    tssa_string string;
};
void stored_element_zero(tssa_dtype dtype, union stored_element *element);

#endif
