/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/gather/indices.h"

#include "base/clones.h"

static tssa_status *out_of_range(size_t tuple, int n, int i, int64_t value, int64_t limit)
{
    return ERROR(TSSA_RUNTIME, "index %lld (number %zu) is outside a dim of %lld", (long long)value,
                 tuple * (size_t)n + (size_t)i, (long long)limit);
}

/* `wide`: i64, else i32. */
static inline tssa_status *read_all(const void *data, bool wide, int n, const int64_t *limits,
                                    const int64_t *strides, struct indices *indices)
{
    size_t at = 0;
    for (size_t t = 0; t < indices->count; t++) {
        int64_t offset = 0;
        for (int i = 0; i < n; i++, at++) {
            int64_t value = wide ? ((const int64_t *)data)[at] : ((const int32_t *)data)[at];
            int64_t checked = value < 0 ? value + limits[i] : value;
            if (checked < 0 || checked >= limits[i])
                return out_of_range(t, n, i, value, limits[i]);
            offset += checked * strides[i];
        }
        indices->data[t] = offset;
    }
    return NULL;
}

/* Tuples of one: false when one of them is outside, and which one must be found. */
#define READ_SINGLES(name, type)                                                                   \
    VECTOR_FUNCTION(bool, name,                                                                    \
                    (const type *restrict data, size_t count, int64_t limit, int64_t stride,       \
                     int64_t *restrict offsets),                                                   \
                    (data, count, limit, stride, offsets))                                         \
    {                                                                                              \
        int64_t outside = 0;                                                                       \
        for (size_t i = 0; i < count; i++) {                                                       \
            int64_t value = data[i], checked = value < 0 ? value + limit : value;                  \
            outside |= (checked < 0) | (checked >= limit);                                         \
            offsets[i] = (int64_t)((uint64_t)checked * (uint64_t)stride);                          \
        }                                                                                          \
        return outside == 0;                                                                       \
    }
READ_SINGLES(read_wide, int64_t)
READ_SINGLES(read_narrow, int32_t)

tssa_status *indices_read(struct kernel_args *args, uint32_t index, size_t count, int n,
                          const int64_t *limits, const int64_t *strides, struct indices *indices)
{
    const struct tensor *x;
    TRY(kernel_tensor(args, index, &x));
    if (x->dtype != TSSA_INT64 && x->dtype != TSSA_INT32)
        return ERROR(TSSA_RUNTIME, "operand %u must hold i32 or i64 indices, not %s", index,
                     dtype_info(x->dtype)->ir_name);
    size_t elements;
    if (!size_mul(count, (size_t)n, &elements) || elements != tensor_count(x))
        return ERROR(TSSA_RUNTIME, "operand %u has %zu elements, not %zu tuples of %d indices",
                     index, tensor_count(x), count, n);
    indices->count = count;
    indices->data = indices->few;
    if (count > sizeof indices->few / sizeof *indices->few) {
        size_t bytes;
        if (!size_mul(count, sizeof *indices->data, &bytes))
            return status_out_of_memory();
        TRY(kernel_scratch(args, bytes, &indices->scratch));
        indices->data = indices->scratch->data;
    }
    if (n == 1 &&
        (x->dtype == TSSA_INT64 ? read_wide(x->data, count, *limits, *strides, indices->data)
                                : read_narrow(x->data, count, *limits, *strides, indices->data)))
        return NULL;
    if (x->dtype == TSSA_INT64)
        return read_all(x->data, true, n, limits, strides, indices);
    return read_all(x->data, false, n, limits, strides, indices);
}

VECTOR_FUNCTION(bool, all_inside, (const int64_t *data, size_t count, int64_t limit),
                (data, count, limit))
{
    uint64_t outside = 0; /* its sign: limits are not negative */
    for (size_t i = 0; i < count; i++)
        outside |= (uint64_t)data[i] | ((uint64_t)limit - 1 - (uint64_t)data[i]);
    return outside >> 63 == 0;
}

bool indices_all_inside(const int64_t *data, size_t count, int64_t limit)
{
    return all_inside(data, count, limit);
}

tssa_status *indices_find(struct kernel_args *args, uint32_t index, int64_t limit, int64_t stride,
                          struct indices *indices)
{
    const struct tensor *x;
    TRY(kernel_tensor(args, index, &x));
    const size_t count = tensor_count(x);
    if (stride != 1 || x->dtype != TSSA_INT64 || !all_inside(x->data, count, limit))
        return indices_read(args, index, count, 1, &limit, &stride, indices);
    indices->count = count;
    indices->data = x->data;
    return NULL;
}

void indices_release(struct indices *indices)
{
    buffer_release(indices->scratch);
    indices->scratch = NULL;
}
