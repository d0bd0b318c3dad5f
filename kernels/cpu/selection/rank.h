/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of any numeric type in order: keys that compare as unsigned numbers, and a heap of them.
 */
#ifndef TSSA_KERNELS_CPU_SELECTION_RANK_H
#define TSSA_KERNELS_CPU_SELECTION_RANK_H

#include "base/dtype.h"

struct ranked {
    uint64_t key;
    int64_t index;
};

/*
 * A key that is smaller for smaller elements (`descending`: for larger ones), and the same for
 * elements that are equal: -0 and 0. NaN counts as larger than everything, as in numpy.
 */
uint64_t rank_key(tssa_dtype dtype, const void *element, bool descending);

/* Makes a heap of n entries; rank_pop then takes them out, smallest key first, of equal keys the
 * one with the lowest index. */
void rank_heapify(struct ranked *heap, int64_t n);
struct ranked rank_pop(struct ranked *heap, int64_t *n);

#endif
