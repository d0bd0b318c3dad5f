/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuse op as a whole becomes: one kernel (build.h), or parts (maps.h). */
#ifndef TSSA_GIR_FUSE_H
#define TSSA_GIR_FUSE_H

#include "gir/build.h"
#include "gir/maps.h"

/* One of both, or neither. Owned by who asked. */
struct gir_fused {
    const tssa_allocator *allocator;
    struct gir_kernel *kernel;
    struct gir_space space; /* of the kernel */
    struct gir_parts *parts;
};

/* NULL in *why: there is a kernel, or there are parts. Errors: out of memory. */
tssa_status *gir_build_fuse(const struct ir_op *fuse, const tssa_allocator *allocator,
                            struct gir_fused *fused, const char **why);
/* Also of what failed; what was taken out, and is NULL, is not touched. */
void gir_fused_free(struct gir_fused *fused);

#endif
