/* SPDX-License-Identifier: Apache-2.0 */
#include "gir/fuse.h"

tssa_status *gir_build_fuse(const struct ir_op *fuse, const tssa_allocator *allocator,
                            struct gir_fused *fused, const char **why)
{
    const bool maps = gir_has_maps(fuse);
    const char *of_whole = NULL;
    *fused = (struct gir_fused){.allocator = allocator};
    *why = NULL;
    if (!maps || gir_reads_planes(fuse))
        TRY(gir_build(fuse, allocator, &fused->kernel, &fused->space, &of_whole));
    if (fused->kernel)
        return NULL;
    if (maps)
        TRY(gir_build_maps(fuse, allocator, &fused->parts, why));
    if (!fused->parts && of_whole)
        *why = of_whole;
    return NULL;
}

void gir_fused_free(struct gir_fused *fused)
{
    allocator_free(fused->allocator, fused->kernel);
    gir_parts_free(fused->parts);
    fused->kernel = NULL;
    fused->parts = NULL;
}
