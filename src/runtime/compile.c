/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/compile.h"

#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "gir/fuse.h"
#include "gir/triangle.h"
#include "ir/fuse.h"

/* A fuse op for which there is a kernel. */
struct candidate {
    struct ir_op *op;
    struct device_fused *fused;
    struct device_part *part; /* NULL: the op has none */
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

/* ---- Kernels --------------------------------------------------------------------------------- */

/* The kernel goes with the candidate, and at once where there is no room for it. */
static tssa_status *add(struct compiling *c, const struct candidate *candidate)
{
    if (vec_push(&c->candidates, *candidate))
        return NULL;
    allocator_free(c->graph->allocator, candidate->kernel);
    return status_out_of_memory();
}

static tssa_status *add_part(struct compiling *c, struct ir_op *op, struct device_fused *fused,
                             struct gir_part *part, struct device_part *made)
{
    const struct candidate candidate = {op, fused, made, part->kernel};
    made->space = part->space;
    made->maps =
        arena_copy(&c->graph->arena, part->maps, part->kernel->n_args * sizeof *part->maps);
    TRY_ALLOC(made->maps);
    made->n_copies = part->n_copies;
    made->copies =
        arena_copy(&c->graph->arena, part->copies, part->n_copies * sizeof *part->copies);
    if (part->n_copies)
        TRY_ALLOC(made->copies);
    made->is_triangle = gir_find_triangle(part->kernel, part->maps, &part->space, &made->diagonal);
    part->kernel = NULL;
    return add(c, &candidate);
}

static tssa_status *add_parts(struct compiling *c, struct ir_op *op, struct device_fused *fused,
                              struct gir_parts *parts)
{
    struct device_part *made = ARENA_ARRAY(&c->graph->arena, struct device_part, parts->n);
    TRY_ALLOC(made);
    fused->parts = made;
    fused->n_parts = parts->n;
    for (uint32_t i = 0; i < parts->n; i++)
        TRY(add_part(c, op, fused, &parts->parts[i], &made[i]));
    return NULL;
}

static tssa_status *add_built(struct compiling *c, struct ir_op *op, struct gir_fused *built)
{
    struct device_fused *fused = ARENA_NEW(&c->graph->arena, struct device_fused);
    TRY_ALLOC(fused);
    if (built->parts)
        return add_parts(c, op, fused, built->parts);
    const struct candidate candidate = {op, fused, NULL, built->kernel};
    fused->space = built->space;
    built->kernel = NULL;
    return add(c, &candidate);
}

static tssa_status *build(void *context, struct ir_op *op)
{
    struct compiling *c = context;
    struct gir_fused built;
    const char *why;
    if (!ir_fuse_body(op) || ir_fuse_is_inside(op))
        return NULL;
    tssa_status *status = gir_build_fuse(op, c->graph->allocator, &built, &why);
    if (!status && why)
        refuse(c->report, why);
    else if (!status)
        status = add_built(c, op, &built);
    gir_fused_free(&built);
    return status;
}

/* ---- Code ------------------------------------------------------------------------------------ */

static tssa_status *take_one(const struct compiling *c, const struct candidate *candidate,
                             const struct device_kernel *made)
{
    struct device_fused *fused = candidate->fused;
    const struct gir_kernel *kernel =
        arena_copy(&c->graph->arena, made->kernel, made->kernel->size);
    TRY_ALLOC(kernel);
    if (!fused->kernel) {
        fused->kernel = kernel;
        fused->code = made->code;
    }
    if (candidate->part) {
        candidate->part->kernel = kernel;
        candidate->part->code = made->code;
    }
    return NULL;
}

/* Those of one op: all, or none. */
static tssa_status *take(const struct compiling *c, const struct candidate *candidates,
                         const struct device_kernel *made, uint32_t n)
{
    bool cached = true;
    for (uint32_t i = 0; i < n; i++) {
        if (!made[i].code) {
            refuse(c->report, made[i].message);
            return NULL;
        }
        cached &= made[i].cached;
    }
    for (uint32_t i = 0; i < n; i++)
        TRY(take_one(c, &candidates[i], &made[i]));
    candidates->op->kernel = candidates->fused;
    c->report->compiled++;
    c->report->cached += cached;
    return NULL;
}

static tssa_status *compile(const struct compiling *c, struct device_compiling *asked)
{
    const struct candidate *candidates = c->candidates.data;
    TRY(c->device->device->compile(c->device, asked));
    c->report->stopped = asked->stopped;
    memcpy(c->report->cache_problem, asked->cache_problem, sizeof asked->cache_problem);
    for (uint32_t i = 0, end; i < asked->n && !asked->stopped; i = end) {
        for (end = i + 1; end < asked->n && candidates[end].op == candidates[i].op;)
            end++;
        TRY(take(c, &candidates[i], &asked->kernels[i], end - i));
    }
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
