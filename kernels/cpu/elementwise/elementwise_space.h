/* SPDX-License-Identifier: Apache-2.0 */
/* Index spaces of broadcast operands: dims that all operands walk alike are merged into one. */
#ifndef TSSA_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_SPACE_H
#define TSSA_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_SPACE_H

#include "kernels/cpu/elementwise/elementwise.h"

struct ew_space {
    int rank; /* of the result */
    int64_t shape[TSSA_MAX_RANK];
    int64_t count;

    /* The inner loop: `inner` elements, steps in elements (0: broadcast). */
    int64_t inner;
    int64_t out_step, in_step[EW_MAX_OPERANDS];
    /* What surrounds it, innermost first. */
    int n_outer;
    uint32_t n_in;
    int64_t outer[TSSA_MAX_RANK];
    int64_t outer_out[TSSA_MAX_RANK];
    int64_t outer_in[TSSA_MAX_RANK][EW_MAX_OPERANDS];
};

/* Widens a shape by an operand's (numpy's rule); an error when they do not fit. */
tssa_status *ew_broadcast(int *rank, int64_t *shape, const struct tensor *operand);
/* Absent operands (NULL) and those with one element get step 0. */
tssa_status *ew_space_make(struct ew_space *space, uint32_t n,
                           const struct tensor *const *operands);

/* A walk over the elements [begin, end) of a space, one stretch of the inner loop at a time. */
struct ew_cursor {
    const struct ew_space *space;
    int64_t remaining;
    int64_t position; /* in the inner loop */
    int64_t stretch;  /* what the last call gave */
    int64_t index[TSSA_MAX_RANK];
    int64_t out_offset, in_offset[EW_MAX_OPERANDS]; /* in elements */
};

void ew_cursor_start(struct ew_cursor *cursor, const struct ew_space *space, int64_t begin,
                     int64_t end);
/* The number of elements from the offsets on; 0 at the end. */
int64_t ew_cursor_next(struct ew_cursor *cursor);

#endif
