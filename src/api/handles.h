/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind the opaque handles of tssa.h. */
#ifndef TSSA_API_HANDLES_H
#define TSSA_API_HANDLES_H

#include <stdatomic.h>

#include "base/team.h"
#include "base/value.h"
#include "ir/ir.h"

struct tssa_context {
    tssa_allocator source; /* the caller's */
    tssa_allocator
        allocator; /* counts against the limit, then asks `source`; what everything uses */
    size_t memory_limit;
    atomic_size_t memory_used, memory_peak;
    struct team team;
};

struct tssa_value {
    const tssa_allocator *allocator;
    struct value value;
};

struct tssa_model {
    struct tssa_context *context;
    atomic_uint references; /* the caller's and one per session */
    struct ir_graph *graph;
};

void model_retain(struct tssa_model *model);
void model_release(struct tssa_model *model);

/* Is there a kernel for it, or is it control flow? What is in its blocks is not looked at. */
bool op_is_supported(const struct ir_op *op);

/* A new handle that takes ownership of `value`, also on failure. */
tssa_status *value_handle(const tssa_allocator *allocator, struct value *value,
                          tssa_value **handle);

#endif
