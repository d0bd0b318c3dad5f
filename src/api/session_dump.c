/* SPDX-License-Identifier: Apache-2.0 */
#include "api/session_dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "codegen/clike/clike.h"
#include "gir/fuse.h"
#include "gir/grid.h"
#include "ir/fuse.h"
#include "ir/printer.h"

static tssa_status *hand_over(const char *stage, struct text *text,
                              const tssa_session_options *options)
{
    const char *string = text_string(text);
    TRY_ALLOC(string);
    options->dump(options->dump_user, stage, string, text->size);
    return NULL;
}

tssa_status *session_dump_graph(const struct ir_graph *graph, const tssa_session_options *options)
{
    struct text text;
    text_init(&text, graph->allocator);
    ir_print_graph(graph, false, &text);
    tssa_status *status = hand_over("session", &text, options);
    text_free(&text);
    return status;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

/* Kernels of a grid, by number. */
struct launch {
    uint32_t n;
    size_t kernels[GIR_GRID_MAX_PARTS];
};

/* What is dumped so far. Kernels with the same bytes are one, as they are when they are compiled;
 * each is called by its number. */
struct dump {
    const tssa_allocator *allocator;
    bool grids;                       /* as in struct device */
    VEC(struct gir_kernel *) kernels; /* owned */
    VEC(struct launch) launches;      /* of grids */
    struct text gir;
};

static size_t number_of(const struct dump *d, const struct gir_kernel *kernel)
{
    size_t i = 0;
    while (i < d->kernels.count && (d->kernels.data[i]->size != kernel->size ||
                                    memcmp(d->kernels.data[i], kernel, kernel->size) != 0))
        i++;
    return i;
}

/* Part `part` of `n` of the fuse op. */
static tssa_status *add_kernel(struct dump *d, const struct ir_op *fuse, uint32_t part, uint32_t n,
                               const struct gir_kernel *kernel)
{
    const size_t number = number_of(d, kernel);
    char name[256];
    ir_op_describe(fuse, name, sizeof name);
    text_printf(&d->gir, "kernel %zu: %s", number, name);
    if (n > 1)
        text_printf(&d->gir, ", part %" PRIu32 " of %" PRIu32, part + 1, n);
    if (number < d->kernels.count) {
        text_puts(&d->gir, ", as above\n\n");
        return NULL;
    }
    text_puts(&d->gir, "\n");
    if (!gir_print(kernel, &d->gir))
        return status_out_of_memory();
    text_puts(&d->gir, "\n");
    struct gir_kernel *copy = allocator_alloc(d->allocator, kernel->size);
    TRY_ALLOC(copy);
    memcpy(copy, kernel, kernel->size);
    if (vec_push(&d->kernels, copy))
        return NULL;
    allocator_free(d->allocator, copy);
    return status_out_of_memory();
}

static tssa_status *add_built(struct dump *d, const struct ir_op *fuse,
                              const struct gir_fused *built)
{
    if (built->kernel)
        return add_kernel(d, fuse, 0, 1, built->kernel);
    for (uint32_t i = 0; i < built->parts->n; i++)
        TRY(add_kernel(d, fuse, i, built->parts->n, built->parts->parts[i].kernel));
    return NULL;
}

static void print_refused(struct dump *d, const struct ir_op *fuse, const char *why)
{
    char name[256];
    ir_op_describe(fuse, name, sizeof name);
    text_printf(&d->gir, "no kernel: %s: %s\n\n", name, why);
}

static tssa_status *add_fuse(struct dump *d, const struct ir_op *fuse)
{
    struct gir_fused built;
    const char *why;
    tssa_status *status = gir_build_fuse(fuse, d->allocator, &built, &why);
    if (!status && why)
        print_refused(d, fuse, why);
    else if (!status)
        status = add_built(d, fuse, &built);
    gir_fused_free(&built);
    return status;
}

/* What a call of it is told, by number. */
static void print_numbers(struct dump *d, const struct gir_grid *grid)
{
    for (uint32_t i = 0; i < grid->n_numbers; i++) {
        text_printf(&d->gir, "number %" PRIu32 ": ", i);
        dim_print(grid->numbers[i], &d->gir);
        text_puts(&d->gir, "\n");
    }
}

static bool is_there(const struct dump *d, const struct launch *launch)
{
    for (size_t i = 0; i < d->launches.count; i++)
        if (d->launches.data[i].n == launch->n &&
            memcmp(d->launches.data[i].kernels, launch->kernels,
                   launch->n * sizeof *launch->kernels) == 0)
            return true;
    return false;
}

static tssa_status *add_grid(struct dump *d, const struct ir_op *fuse)
{
    struct gir_grid *grid;
    const char *why;
    tssa_status *status = (ir_fuse_boxes(fuse) ? gir_build_grid_behind
                                               : gir_build_grid)(fuse, d->allocator, &grid, &why);
    if (!status && !grid)
        print_refused(d, fuse,
                      ir_fuse_lists(ir_fuse_body(fuse)->first)
                          ? "ops on lists have a kernel that is written as text"
                          : why);
    if (grid)
        print_numbers(d, grid);
    struct launch launch = {0};
    for (uint32_t i = 0; grid && i < grid->n && !status; i++) {
        launch.kernels[launch.n++] = number_of(d, grid->parts[i].kernel);
        status = add_kernel(d, fuse, i, grid->n, grid->parts[i].kernel);
    }
    if (grid && !status && !is_there(d, &launch) && !vec_push(&d->launches, launch))
        status = status_out_of_memory();
    gir_grid_free(grid);
    return status;
}

static tssa_status *add_op(void *dump, struct ir_op *op)
{
    struct dump *d = dump;
    if (!ir_fuse_body(op) || ir_fuse_is_inside(op))
        return NULL;
    return d->grids ? add_grid(d, op) : add_fuse(d, op);
}

/* Called by the number of its first kernel. */
static bool print_launch(const struct dump *d, const struct launch *launch,
                         enum clike_dialect dialect, struct text *text)
{
    const struct gir_kernel *kernels[GIR_GRID_MAX_PARTS];
    char name[32];
    for (uint32_t i = 0; i < launch->n; i++)
        kernels[i] = d->kernels.data[launch->kernels[i]];
    snprintf(name, sizeof name, "launch_%zu", launch->kernels[0]);
    return clike_print_launch(kernels, launch->n, dialect, CLIKE_NARROW, name, text);
}

/* A file that a compiler of the dialect takes. */
static tssa_status *print_c(const struct dump *d, enum clike_dialect dialect, struct text *text)
{
    dtype_mask types = 0;
    for (size_t i = 0; i < d->kernels.count; i++)
        types |= clike_types(d->kernels.data[i]);
    if (d->kernels.count && !clike_print_prelude(dialect, types, text))
        return status_out_of_memory();
    for (size_t i = 0; i < d->launches.count; i++)
        if (!print_launch(d, &d->launches.data[i], dialect, text))
            return status_out_of_memory();
    for (size_t i = 0; i < d->kernels.count && !d->grids; i++) {
        const char *why = clike_refuses(d->kernels.data[i]);
        char name[32];
        snprintf(name, sizeof name, "kernel_%zu", i);
        if (why)
            text_printf(text, "/* %s: %s */\n", name, why);
        else if (!clike_print(d->kernels.data[i], dialect, name, text))
            return status_out_of_memory();
    }
    return NULL;
}

static tssa_status *dump_c(struct dump *d, enum clike_dialect dialect, const char *stage,
                           const tssa_session_options *options)
{
    struct text text;
    text_init(&text, d->allocator);
    tssa_status *status = print_c(d, dialect, &text);
    if (!status)
        status = hand_over(stage, &text, options);
    text_free(&text);
    return status;
}

static tssa_status *dump_all(struct dump *d, const struct ir_graph *graph,
                             const tssa_session_options *options)
{
    TRY(ir_block_walk(graph->body, add_op, d));
    TRY(hand_over("gir", &d->gir, options));
    TRY(dump_c(d, CLIKE_CUDA, "cuda", options));
    return d->grids ? dump_c(d, CLIKE_OPENCL, "opencl", options) : NULL;
}

tssa_status *session_dump_kernels(const struct ir_graph *graph, const struct device *device,
                                  const tssa_session_options *options)
{
    struct dump d = {.allocator = graph->allocator,
                     .grids = device->grids,
                     .kernels = VEC_INIT(graph->allocator),
                     .launches = VEC_INIT(graph->allocator)};
    text_init(&d.gir, graph->allocator);
    tssa_status *status = dump_all(&d, graph, options);
    for (size_t i = 0; i < d.kernels.count; i++)
        allocator_free(d.allocator, d.kernels.data[i]);
    vec_free(&d.kernels);
    vec_free(&d.launches);
    text_free(&d.gir);
    return status;
}
