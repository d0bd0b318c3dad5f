/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/axes.h"

void axis_nest_init(struct axis_nest *nest, const struct tensor *tensor, const bool *marked,
                    bool which)
{
    int64_t strides[TSSA_MAX_RANK];
    tensor_strides(tensor->rank, tensor->dims, strides);
    nest->rank = 0;
    nest->count = 1;
    for (int i = 0; i < tensor->rank; i++) {
        int last = nest->rank - 1;
        if (marked[i] != which)
            continue;
        nest->count *= tensor->dims[i];
        if (tensor->dims[i] == 1)
            continue;
        if (last >= 0 && nest->strides[last] == strides[i] * tensor->dims[i]) {
            nest->sizes[last] *= tensor->dims[i];
            nest->strides[last] = strides[i];
            continue;
        }
        nest->sizes[nest->rank] = tensor->dims[i];
        nest->strides[nest->rank++] = strides[i];
    }
}

int64_t axis_nest_offset(const struct axis_nest *nest, int64_t i)
{
    int64_t offset = 0;
    for (int d = nest->rank - 1; d >= 0; d--) {
        offset += i % nest->sizes[d] * nest->strides[d];
        i /= nest->sizes[d];
    }
    return offset;
}

struct axis_split axis_split(const struct tensor *tensor, int axis)
{
    struct axis_split split = {1, tensor->dims[axis], 1};
    for (int i = 0; i < tensor->rank; i++)
        if (i != axis)
            *(i < axis ? &split.outer : &split.inner) *= tensor->dims[i];
    return split;
}
