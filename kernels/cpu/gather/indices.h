/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index tensors of the gather and scatter operators, checked and turned into offsets; n-d counting.
 */
#ifndef TSSA_KERNELS_CPU_GATHER_INDICES_H
#define TSSA_KERNELS_CPU_GATHER_INDICES_H

#include "device/kernel.h"

/* Offsets that an index tensor stands for, perhaps its own elements. Zero-initialise;
 * indices_release in every case. */
struct indices {
    int64_t *data;
    size_t count;
    struct buffer *scratch;
    int64_t few[32]; /* so that a Gather of one element in a loop body needs no buffer */
};

/*
 * Reads operand `index` as `count` tuples of `n` indices (an i32 or i64 tensor of count * n
 * elements). Element i of a tuple is checked to be within -limits[i] and limits[i] - 1, and counts
 * from the end when negative; the tuple's offset is the sum of its elements times strides[i].
 */
tssa_status *indices_read(struct kernel_args *args, uint32_t index, size_t count, int n,
                          const int64_t *limits, const int64_t *strides, struct indices *indices);
/* The same of single indices, all of the operand. The offsets may be the operand's elements, so
 * that the kernel must not write where that lies. */
tssa_status *indices_find(struct kernel_args *args, uint32_t index, int64_t limit, int64_t stride,
                          struct indices *indices);
/* Whether none counts from the end or is wrong. */
bool indices_all_inside(const int64_t *data, size_t count, int64_t limit);
void indices_release(struct indices *indices);

/* How many of `count` offsets, of which there is one at least, count up by one from the first. */
static inline size_t indices_in_row(const int64_t *offsets, size_t count)
{
    size_t n = 1;
    while (n < count && offsets[n] == offsets[n - 1] + 1)
        n++;
    return n;
}

/* Counts through the coordinates of a box and keeps the offset of the current ones. */
struct grid {
    int rank;
    int64_t dims[TSSA_MAX_RANK], strides[TSSA_MAX_RANK], index[TSSA_MAX_RANK];
    int64_t offset;
};

/* Goes to the element with this row-major number. */
static inline void grid_seek(struct grid *grid, int64_t number)
{
    grid->offset = 0;
    for (int i = grid->rank - 1; i >= 0; i--) {
        grid->index[i] = number % grid->dims[i];
        number /= grid->dims[i];
        grid->offset += grid->index[i] * grid->strides[i];
    }
}

static inline void grid_next(struct grid *grid)
{
    for (int i = grid->rank - 1; i >= 0; i--) {
        grid->offset += grid->strides[i];
        if (++grid->index[i] < grid->dims[i])
            return;
        grid->offset -= grid->index[i] * grid->strides[i];
        grid->index[i] = 0;
    }
}

#endif
