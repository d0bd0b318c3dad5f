/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For kernels that compute whole lines or planes of elements: a tensor seen as lines along one
 * axis, elements loaded as doubles and rounded once when stored, and parallel loops with scratch
 * memory.
 */
#ifndef TSSA_KERNELS_CPU_LIB_LINES_H
#define TSSA_KERNELS_CPU_LIB_LINES_H

#include "device/kernel.h"
#include "ir/promotion.h"
#include "kernels/cpu/lib/axes.h"
#include "kernels/cpu/lib/convert.h"

/* Input `index`, present and of an element type that the op's row allows for operand 0. */
tssa_status *typed_tensor(const struct kernel_args *args, uint32_t index,
                          const struct tensor **tensor);
/* The error for an operand that is not what `wanted` says. */
tssa_status *operand_error(uint32_t index, const struct tensor *tensor, const char *wanted);
/* Input `index`, one-dimensional with n elements of an allowed type; present, or NULL where
 * optional. */
tssa_status *typed_vector(const struct kernel_args *args, uint32_t index, int64_t n, bool optional,
                          const struct tensor **tensor);

/* Row-major dims [outer, n, inner]: outer * inner lines of n elements that lie `inner` apart. */
struct lines {
    int64_t outer, n, inner;
};

struct lines lines_along(const struct tensor *tensor, int axis);

static inline char *element_at(const struct tensor *tensor, int64_t index)
{
    return (char *)tensor->data + index * (int64_t)dtype_info(tensor->dtype)->size;
}

/* n elements from `offset` on, `step` apart, as doubles; and back, rounded once. */
static inline void load_doubles(const struct tensor *tensor, int64_t offset, int64_t step,
                                int64_t n, double *values)
{
    convert_elements(n, tensor->dtype, element_at(tensor, offset), step, TSSA_DOUBLE, values, 1,
                     &convert_default);
}

static inline void store_doubles(const struct tensor *tensor, int64_t offset, int64_t step,
                                 int64_t n, const double *values)
{
    convert_elements(n, TSSA_DOUBLE, values, 1, tensor->dtype, element_at(tensor, offset), step,
                     &convert_default);
}

/* As load_doubles and store_doubles, but as elements of another type, that of computed_in. */
static inline void load_elements(const struct tensor *tensor, int64_t offset, int64_t step,
                                 int64_t n, tssa_dtype dtype, void *values)
{
    convert_elements(n, tensor->dtype, element_at(tensor, offset), step, dtype, values, 1,
                     &convert_default);
}

static inline void store_elements(const struct tensor *tensor, int64_t offset, int64_t step,
                                  int64_t n, tssa_dtype dtype, const void *values)
{
    convert_elements(n, dtype, values, 1, tensor->dtype, element_at(tensor, offset), step,
                     &convert_default);
}

/* An operation of doubles that are floats, rounded again, is that of floats. */
static inline double rounded_to(tssa_dtype dtype, double value)
{
    return dtype == TSSA_DOUBLE ? value : (double)(float)value;
}

/* A tensor of any numeric type as elements of that type, in scratch memory; NULL stays NULL. */
tssa_status *elements_of(struct kernel_args *args, const struct tensor *tensor, tssa_dtype dtype,
                         struct buffer **buffer);
/* The same, but where the tensor is of that type, its own elements, and *buffer is NULL. */
tssa_status *elements_as(struct kernel_args *args, const struct tensor *tensor, tssa_dtype dtype,
                         const void **elements, struct buffer **buffer);

/* Computes indices begin <= i < end; `scratch` belongs to the calling part alone. */
typedef void (*parts_body)(void *context, void *scratch, int64_t begin, int64_t end);

/* Runs body over [0, count), in parallel where `cost`, the rough number of scalar steps per index,
 * makes that worthwhile. `scratch` bytes per part, TENSOR_ALIGNMENT-aligned. */
tssa_status *parts_for(struct kernel_args *args, int64_t count, int64_t cost, size_t scratch,
                       parts_body body, void *context);

#endif
