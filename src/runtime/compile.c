/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/compile.h"

#include <stdio.h>
#include <string.h>

#include "ir/fuse.h"

struct compiling {
    struct ir_graph *graph;
    struct device_context *device;
    struct compile_report *report;
};

static tssa_status *compile_kernel(const struct compiling *c, struct ir_op *op,
                                   const struct gir_kernel *kernel, struct device_fused *fused)
{
    char message[160] = "";
    TRY(c->device->device->compile(c->device, kernel, &fused->code, message, sizeof message));
    if (fused->code) {
        fused->kernel = arena_copy(&c->graph->arena, kernel, kernel->size);
        TRY_ALLOC(fused->kernel);
        op->kernel = fused;
        c->report->compiled++;
    } else if (!c->report->refused++) {
        memcpy(c->report->why, message, sizeof message);
    }
    return NULL;
}

static tssa_status *compile_op(void *context, struct ir_op *op)
{
    const struct compiling *c = context;
    const tssa_allocator *allocator = c->graph->allocator;
    struct gir_kernel *kernel;
    const char *why;
    if (!ir_fuse_body(op))
        return NULL;
    struct device_fused *fused = ARENA_NEW(&c->graph->arena, struct device_fused);
    TRY_ALLOC(fused);
    TRY(gir_build(op, allocator, &kernel, &fused->space, &why));
    if (!kernel) {
        if (!c->report->refused++)
            snprintf(c->report->why, sizeof c->report->why, "%s", why);
        return NULL;
    }
    tssa_status *status = compile_kernel(c, op, kernel, fused);
    allocator_free(allocator, kernel);
    return status;
}

tssa_status *compile_fused(struct ir_graph *graph, struct device_context *context,
                           struct compile_report *report)
{
    struct compiling compiling = {graph, context, report};
    *report = (struct compile_report){0};
    return ir_block_walk(graph->body, compile_op, &compiling);
}
