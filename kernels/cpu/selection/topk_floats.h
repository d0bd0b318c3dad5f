/* SPDX-License-Identifier: Apache-2.0 */
/* The first k of a line of float32, in the order of rank.h. */
#ifndef TSSA_KERNELS_CPU_SELECTION_TOPK_FLOATS_H
#define TSSA_KERNELS_CPU_SELECTION_TOPK_FLOATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct float_line {
    const float *x;
    int64_t n, step; /* elements, that are so far apart */
    bool descending;
};

/* False: the line is too long for topk_floats. *bytes is the scratch memory that it needs. */
bool topk_floats_scratch(int64_t n, int64_t k, size_t *bytes);

/* Where the first k are, 0 < k <= n, in order: the lower 32 bits of the result's first k numbers,
 * which lie in scratch memory. Time grows with n + k log k, whatever the elements are. */
const uint64_t *topk_floats(const struct float_line *line, int64_t k, void *scratch);

#endif
