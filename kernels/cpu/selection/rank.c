/* SPDX-License-Identifier: Apache-2.0 */
/* Order keys and the heap; see rank.h. */
#include "kernels/cpu/selection/rank.h"

#include <math.h>
#include <string.h>

static uint64_t double_key(double v)
{
    if (isnan(v))
        return UINT64_MAX - 1;
    uint64_t bits;
    v += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

uint64_t rank_key(tssa_dtype dtype, const void *element, bool descending)
{
    uint64_t key;
    float f;
    if (dtype == TSSA_FLOAT) {
        memcpy(&f, element, sizeof f);
        key = double_key((double)f);
    } else if (dtype_is_float(dtype)) {
        key = double_key(dtype_load_double(dtype, element));
    } else {
        uint64_t flip = dtype == TSSA_UINT64 ? 0 : UINT64_C(1) << 63;
        key = (uint64_t)dtype_load_int64(dtype, element) ^ flip;
    }
    return descending ? ~key : key;
}

static bool before(const struct ranked *a, const struct ranked *b)
{
    return a->key < b->key || (a->key == b->key && a->index < b->index);
}

static void sift_down(struct ranked *heap, int64_t n, int64_t at)
{
    struct ranked moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

void rank_heapify(struct ranked *heap, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift_down(heap, n, i);
}

struct ranked rank_pop(struct ranked *heap, int64_t *n)
{
    struct ranked first = heap[0];
    heap[0] = heap[--*n];
    if (*n > 0)
        sift_down(heap, *n, 0);
    return first;
}
