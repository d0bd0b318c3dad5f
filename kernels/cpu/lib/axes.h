/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splitting a tensor's axes in two groups: those that a kernel keeps and those that it walks along
 * (reduces, scans). Each group is a small loop nest with strides; neighbours merge where they can,
 * and axes of one element are left out.
 */
#ifndef TSSA_KERNELS_CPU_LIB_AXES_H
#define TSSA_KERNELS_CPU_LIB_AXES_H

#include "base/value.h"

struct axis_nest {
    int rank;
    int64_t count; /* product of the sizes; 1 when the rank is 0 */
    int64_t sizes[TSSA_MAX_RANK], strides[TSSA_MAX_RANK]; /* in elements */
};

/* The axes where marked[i] == which, outermost first. */
void axis_nest_init(struct axis_nest *nest, const struct tensor *tensor, const bool *marked,
                    bool which);
/* The offset of the nest's i-th position in row-major order, in elements. */
int64_t axis_nest_offset(const struct axis_nest *nest, int64_t i);

/* [outer][size][inner] around one axis. */
struct axis_split {
    int64_t outer, size, inner;
};
struct axis_split axis_split(const struct tensor *tensor, int axis);

/*
 * Product of dims [begin, end). Wraps where the tensor has no elements and the part would overflow.
 */
static inline int64_t dims_product(const int64_t *dims, int begin, int end)
{
    uint64_t product = 1;
    for (int i = begin; i < end; i++)
        product *= (uint64_t)dims[i];
    return (int64_t)product;
}

#endif
