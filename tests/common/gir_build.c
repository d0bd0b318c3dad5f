/* SPDX-License-Identifier: Apache-2.0 */
#include "common/gir_build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/verifier.h"

void gir_expect_wrong(const void *bytes, size_t size, const char *message)
{
    tssa_status *status = gir_check(bytes, size);
    assert_non_null(status);
    assert_string_equal(tssa_status_message(status), message);
    tssa_status_free(status);
}

struct ir_graph *gir_parse_graph(const char *text)
{
    struct ir_graph *graph;
    no_error(ir_parse(&allocator_default, text, strlen(text), &graph));
    no_error(ir_infer_graph(graph));
    no_error(ir_verify(graph));
    return graph;
}

struct gir_kernel *gir_build_kernel(struct ir_graph *graph, struct gir_space *space,
                                    const char **why)
{
    struct gir_kernel *kernel;
    no_error(gir_build(graph->body->first, &allocator_default, &kernel, space, why));
    if (kernel)
        no_error(gir_check(kernel, kernel->size));
    return kernel;
}

struct gir_parts *gir_build_parts(struct ir_graph *graph, const char **why)
{
    struct gir_parts *parts;
    no_error(gir_build_maps(ir_block_return(graph->body)->prev, &allocator_default, &parts, why));
    for (uint32_t i = 0; parts && i < parts->n; i++)
        no_error(gir_check(parts->parts[i].kernel, parts->parts[i].kernel->size));
    return parts;
}

struct gir_grid *gir_build_whole_grid(struct ir_graph *graph, const char **why)
{
    struct gir_grid *grid;
    no_error(gir_build_grid(ir_block_return(graph->body)->prev, &allocator_default, &grid, why));
    for (uint32_t i = 0; grid && i < grid->n; i++)
        no_error(gir_check(grid->parts[i].kernel, grid->parts[i].kernel->size));
    return grid;
}
