/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan outputs: equal-shaped tensors collected one after another into one tensor with a new axis.
 * The memory doubles as it grows, since the number of iterations is not known ahead; unless the
 * plan has a place for the result that is large enough.
 */
#ifndef TSSA_RUNTIME_STACK_H
#define TSSA_RUNTIME_STACK_H

#include "base/pool.h"
#include "base/value.h"
#include "device/device.h"

struct stack {
    struct pool *pool;
    struct device_stream *stream; /* of a device's memory; NULL: the host's */
    struct kernel_place place;    /* of the result; data NULL: none */
    void *data;                   /* NULL: nothing pushed yet */
    size_t offset;                /* as in struct tensor */
    struct buffer *owner;         /* of the data; NULL: it is in the place */
    size_t capacity;              /* bytes */
    struct tensor element;        /* dtype and shape of the elements; its data is not used */
    size_t element_bytes, count;
};

/* `env`: where the tensors lie, and their pool. `place`: of the host's memory; NULL: none. */
void stack_init(struct stack *stack, const struct kernel_env *env,
                const struct kernel_place *place);
void stack_free(struct stack *stack);
/* Copies the tensor's elements; the shape must be that of the ones before. `hint` > 0: how many
 * there will be in all. */
tssa_status *stack_push(struct stack *stack, const struct value *value, int64_t hint);
/*
 * The stacked tensor, with the new axis at `axis`, reversed when `reverse` (on a device: 0, and
 * not); empties the stack. With nothing pushed, `empty` gives the dtype and dims of what would have
 * been pushed.
 */
tssa_status *stack_finish(struct stack *stack, const struct tensor *empty, int64_t axis,
                          bool reverse, struct value *out);

/* The i-th slice of `tensor` along `axis`, without that axis; shares storage where it is
 * contiguous. */
tssa_status *slice_along(struct pool *pool, const struct tensor *tensor, int axis, int64_t i,
                         struct value *out);

#endif
