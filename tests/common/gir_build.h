/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the one fuse op of a graph in text; the test fails where there can be neither a kernel
 * nor a reason. */
#ifndef TSSA_TESTS_GIR_BUILD_H
#define TSSA_TESTS_GIR_BUILD_H

#include "gir/build.h"
#include "gir/grid.h"
#include "gir/maps.h"

/* A graph of one fuse op: its inputs, the op's operands, the block without its end, the results. */
#define FUSED_GRAPH(params, operands, body, results)                                               \
    "graph @g opset(\"\": 21) ir_version(10) (" params ") -> (" results ") {\n  " results          \
    " = fuse(" operands ") { body(" body " } }\n  return(" results ")\n}\n"

/* The same of a loop: its block's head and all but the end of that, and what it makes. */
#define LOOPED_GRAPH(params, operands, block, loop, inner, returned, results)                      \
    "graph @g opset(\"\": 21) ir_version(10) (" params ") -> (" results ") {\n" results            \
    " = fuse(" operands ") { body(" block ") {\n" loop " {\n" inner " } }\nreturn(" returned       \
    ") } }\nreturn(" results ")\n}\n"

/* What gir_check says of bytes that are no kernel. */
void gir_expect_wrong(const void *bytes, size_t size, const char *message);

/* Inferred and verified. */
struct ir_graph *gir_parse_graph(const char *text);
/* Checked; NULL: *why says so. Planes of the space go with the graph. */
struct gir_kernel *gir_build_kernel(struct ir_graph *graph, struct gir_space *space,
                                    const char **why);
/* The same of the graph's last op. */
struct gir_parts *gir_build_parts(struct ir_graph *graph, const char **why);
/* The same as a grid. */
struct gir_grid *gir_build_whole_grid(struct ir_graph *graph, const char **why);

#endif
