/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/compile.h"

#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "ir/fuse.h"

/* A fuse op for which there is a kernel. */
struct candidate {
    struct ir_op *op;
    struct device_fused *fused;
    struct gir_kernel *kernel;
};

struct compiling {
    struct ir_graph *graph;
    struct device_context *device;
    struct compile_report *report;
    VEC(struct candidate) candidates;
};

static void refuse(struct compile_report *report, const char *why)
{
    if (!report->refused++)
        snprintf(report->why, sizeof report->why, "%s", why);
}

/* ---- Kernels -------------------------------------------------------------------------------------- */

static tssa_status *build(void *context, struct ir_op *op)
{
    struct compiling *c = context;
    struct gir_kernel *kernel;
    const char *why;
    if (!ir_fuse_body(op))
        return NULL;
    struct device_fused *fused = ARENA_NEW(&c->graph->arena, struct device_fused);
    TRY_ALLOC(fused);
    TRY(gir_build(op, c->graph->allocator, &kernel, &fused->space, &why));
    if (!kernel) {
        refuse(c->report, why);
        return NULL;
    }
    const struct candidate candidate = {op, fused, kernel};
    if (vec_push(&c->candidates, candidate))
        return NULL;
    allocator_free(c->graph->allocator, kernel);
    return status_out_of_memory();
}

static tssa_status *take(const struct compiling *c, const struct candidate *candidate,
                         const struct device_kernel *made)
{
    if (!made->code) {
        refuse(c->report, made->message);
        return NULL;
    }
    struct device_fused *fused = candidate->fused;
    fused->code = made->code;
    fused->kernel = arena_copy(&c->graph->arena, made->kernel, made->kernel->size);
    TRY_ALLOC(fused->kernel);
    candidate->op->kernel = fused;
    c->report->compiled++;
    c->report->cached += made->cached;
    return NULL;
}

/* ---- Code ----------------------------------------------------------------------------------------- */

static tssa_status *compile(const struct compiling *c, struct device_compiling *asked)
{
    TRY(c->device->device->compile(c->device, asked));
    c->report->stopped = asked->stopped;
    memcpy(c->report->cache_problem, asked->cache_problem, sizeof asked->cache_problem);
    for (uint32_t i = 0; i < asked->n && !asked->stopped; i++)
        TRY(take(c, &c->candidates.data[i], &asked->kernels[i]));
    return NULL;
}

static tssa_status *compile_all(const struct compiling *c, int stop)
{
    const tssa_allocator *allocator = c->graph->allocator;
    struct device_compiling asked = {.n = (uint32_t)c->candidates.count, .stop = stop};
    asked.kernels = allocator_calloc(allocator, asked.n + 1u, sizeof *asked.kernels);
    TRY_ALLOC(asked.kernels);
    for (uint32_t i = 0; i < asked.n; i++)
        asked.kernels[i].kernel = c->candidates.data[i].kernel;
    tssa_status *status = asked.n ? compile(c, &asked) : NULL;
    allocator_free(allocator, asked.kernels);
    return status;
}

tssa_status *compile_fused(struct ir_graph *graph, struct device_context *context, int stop,
                           struct compile_report *report)
{
    struct compiling c = {.graph = graph, .device = context, .report = report};
    *report = (struct compile_report){0};
    vec_init(&c.candidates, graph->allocator);
    tssa_status *status = ir_block_walk(graph->body, build, &c);
    if (!status)
        status = compile_all(&c, stop);
    for (size_t i = 0; i < c.candidates.count; i++)
        allocator_free(graph->allocator, c.candidates.data[i].kernel);
    vec_free(&c.candidates);
    return status;
}
