/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What flows through a run: tensors, sequences, maps, empty optionals.
 *
 * A `struct value` is a small handle. Copying one (value_copy) shares storage and counts a
 * reference; value_release ends it. Tensors are row-major and contiguous. A tensor's `owner` is the
 * counted buffer that holds its memory, or NULL when the memory is somebody else's and outlives the
 * handle (the caller's, a mapped file's, the run's slab).
 *
 * The bytes of STRING elements are not counted: they live in the arena of the run, of the model, or
 * at the end of an owning buffer (value_detach makes such a one).
 *
 * Threads: reference counts are atomic, contents are not guarded. A sequence's append shares its
 * backing array (see sequence_append).
 */
#ifndef TSSA_BASE_VALUE_H
#define TSSA_BASE_VALUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/status.h"

struct pool;

/* Where a buffer's memory lies that is not the host's: a device's, which gives handles. Outlives
 * its buffers. */
struct buffer_space {
    void *user;
    void *(*allocate)(void *user, size_t size); /* NULL: there is not so much */
    void (*release)(void *user, void *memory, size_t size);
};

/* A header, which lies beside the memory, in the host's whatever the space. */
struct buffer {
    atomic_uint references;
    uint32_t take;                    /* the pool's: which of a run's buffers it is */
    void *data;                       /* the memory, or the handle of what it is a part of */
    size_t offset;                    /* in what has that handle; 0 in the host's memory */
    size_t size;                      /* usable bytes */
    const tssa_allocator *allocator;  /* of the header, and of the host's memory */
    const struct buffer_space *space; /* NULL: the host's */
    struct pool *pool;                /* takes the buffer back at count 0; NULL: it is freed */
};

struct tensor {
    tssa_dtype dtype;
    int rank;
    int64_t dims[TSSA_MAX_RANK];
    void *data;
    size_t offset; /* of the elements, where `data` is a device's handle; 0 in the host's memory */
    struct buffer *owner;
};

struct sequence;
struct value_map;

struct value {
    tssa_kind kind;
    union {
        struct tensor tensor;
        struct sequence *sequence;
        struct value_map *map;
    };
};

/* ---- Buffers --------------------------------------------------------------------------------- */

/* In the host's memory: one reference, TENSOR_ALIGNMENT-aligned, not zeroed; NULL when memory runs
 * out. */
struct buffer *buffer_create(const tssa_allocator *allocator, size_t size);
static inline void buffer_retain(struct buffer *buffer)
{
    if (buffer)
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
}
void buffer_release(struct buffer *buffer); /* NULL is accepted */
/* For pools: memory of `size` bytes for a header, and given back without it. */
bool buffer_take_memory(struct buffer *buffer, const tssa_allocator *allocator,
                        const struct buffer_space *space, size_t size);
void buffer_free_memory(struct buffer *buffer);

/* ---- Tensors --------------------------------------------------------------------------------- */

/* The number of elements: the product of the dims, which were checked when the tensor was made. */
size_t tensor_count(const struct tensor *tensor);
size_t tensor_bytes(const struct tensor *tensor);
/* Checks type, rank, signs and overflow, and returns the byte count; the first error names the
 * dims. TSSA_LIMIT when the size overflows, else TSSA_INVALID_ARGUMENT. */
tssa_status *tensor_layout(tssa_dtype dtype, int rank, const int64_t *dims, size_t *count,
                           size_t *bytes);
/* A tensor with a buffer of its own, not zeroed (but STRING elements are empty strings). */
tssa_status *tensor_create(const tssa_allocator *allocator, tssa_dtype dtype, int rank,
                           const int64_t *dims, struct tensor *tensor);
bool tensor_same_shape(const struct tensor *a, const struct tensor *b);
/* "f32[2, 3]" into text; always terminated. */
void tensor_describe(const struct tensor *tensor, char *text, size_t size);

/* Row-major strides in elements. */
static inline void tensor_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* `from` and `to` may not alias; `to`'s old contents are not released. */
void value_copy(struct value *to, const struct value *from);
void value_release(struct value *value); /* leaves TSSA_KIND_NONE */
static inline void value_move(struct value *to, struct value *from)
{
    *to = *from;
    from->kind = TSSA_KIND_NONE;
}
/* "f32[2, 3]", "seq<f32>(4)", "map" or "none" into text; always terminated. */
void value_describe(const struct value *value, char *text, size_t size);
/* A deep copy whose every byte is owned, strings included: what may leave a run. Buffers that are
 * already owned and not of a pool are shared, not copied. */
tssa_status *value_detach(const tssa_allocator *allocator, const struct value *from,
                          struct value *to);

/* ---- Sequences ------------------------------------------------------------------------------- */

/* An empty sequence; `dtype` is that of its tensors, or UNDEFINED to take the first tensor's. */
tssa_status *sequence_create(const tssa_allocator *allocator, tssa_dtype dtype, struct value *out);
/* One that is about to have so many elements: they are appended without a larger array. */
tssa_status *sequence_create_for(const tssa_allocator *allocator, tssa_dtype dtype, size_t length,
                                 struct value *out);
size_t sequence_length(const struct sequence *sequence);
tssa_dtype sequence_dtype(const struct sequence *sequence);
/* Borrowed; index < length. */
const struct value *sequence_element(const struct sequence *sequence, size_t index);
/*
 * out = in with `element` inserted before `position` (== length: append). The old sequence stays
 * valid. Appending to the newest sequence of a backing array is O(1) amortised: the array is shared
 * and grows behind the older handles' backs, which never look past their own length. Other
 * positions copy handles. Sequences of a frozen backing array (sequence_freeze) are copied first. A
 * tensor of another element type and a position outside the sequence are TSSA_RUNTIME errors.
 * Results use the allocator of `in`.
 */
tssa_status *sequence_insert(const struct value *in, size_t position, const struct value *element,
                             struct value *out);
tssa_status *sequence_erase(const struct value *in, size_t position, struct value *out);
/*
 * From now on the backing array is never appended to: the sequence may be shared between threads.
 * Nested sequences freeze too; other kinds of values are left alone. value_detach gives frozen
 * ones.
 */
void sequence_freeze(struct value *value);

/* ---- Maps ------------------------------------------------------------------------------------ */

/* Keys: a 1-D integer or STRING tensor; values: a tensor or sequence with one entry per key.
 * Handles are copied. */
tssa_status *value_map_create(const tssa_allocator *allocator, const struct value *keys,
                              const struct value *values, struct value *out);
const struct value *value_map_keys(const struct value_map *map);
const struct value *value_map_values(const struct value_map *map);

#endif
