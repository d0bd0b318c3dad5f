/* SPDX-License-Identifier: Apache-2.0 */
#include "device/expand.h"

tssa_status *expand_resolve(const struct tensor *x, const int64_t *shape, int count, int *rank,
                            int64_t *dims, int64_t *steps)
{
    int64_t strides[TSSA_MAX_RANK];
    *rank = x->rank > count ? x->rank : count;
    tensor_strides(x->rank, x->dims, strides);
    for (int i = 0; i < *rank; i++) {
        const int xi = i - (*rank - x->rank), si = i - (*rank - count);
        const int64_t dim = xi >= 0 ? x->dims[xi] : 1, wanted = si >= 0 ? shape[si] : 1;
        if (wanted < 0 || (dim != wanted && dim != 1 && wanted != 1)) {
            char text[160];
            tensor_describe(x, text, sizeof text);
            return ERROR(TSSA_RUNTIME, "cannot expand %s: dim %d would become %lld", text, xi,
                         (long long)wanted);
        }
        dims[i] = dim == 1 ? wanted : dim;
        steps[i] = dim == 1 ? 0 : strides[xi];
    }
    return NULL;
}
