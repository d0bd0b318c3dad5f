/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable array of one element type. Declare with VEC(type), e.g.
 *
 *     VEC(int64_t) sizes = VEC_INIT(allocator);
 *     if (!vec_push(&sizes, 4)) return status_out_of_memory();
 *     use sizes.data[i], sizes.count
 *     vec_free(&sizes);
 *
 * Not thread-safe.
 */
#ifndef TSSA_BASE_VEC_H
#define TSSA_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        const tssa_allocator *allocator;                                                           \
        type *data;                                                                                \
        size_t count, capacity;                                                                    \
    }

#define VEC_INIT(alloc)                                                                            \
    {                                                                                              \
        .allocator = (alloc), .data = NULL, .count = 0, .capacity = 0                              \
    }

#define vec_init(vec, alloc)                                                                       \
    ((vec)->allocator = (alloc), (vec)->data = NULL, (vec)->count = (vec)->capacity = 0)

/* Makes room for `extra` more elements; false when memory runs out (the vector is unchanged). */
#define vec_reserve(vec, extra)                                                                    \
    ((vec)->capacity - (vec)->count >= (size_t)(extra) ||                                          \
     vec_grow_((vec)->allocator, (void **)&(vec)->data, (vec)->count, &(vec)->capacity,            \
               (size_t)(extra), sizeof *(vec)->data))

/* Appends; false when memory runs out. */
#define vec_push(vec, element)                                                                     \
    (vec_reserve(vec, 1) && ((vec)->data[(vec)->count++] = (element), true))

#define vec_free(vec)                                                                              \
    (allocator_free((vec)->allocator, (vec)->data), (vec)->data = NULL,                            \
     (vec)->count = (vec)->capacity = 0)

bool vec_grow_(const tssa_allocator *allocator, void **data, size_t count, size_t *capacity,
               size_t extra, size_t element_size);

#endif
