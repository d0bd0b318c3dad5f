/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX models to graphs.
 *
 * The graph that comes out is in the form that ir/ir.h describes: nodes are bound to their opset
 * and brought to the newest interface of their operator (upgrade.def), functions are inlined or,
 * where the options say so, their calls are opaque ops (graph->functions has the definitions),
 * initializers are Constants, names are unique, types are inferred, and the verifier has passed it.
 * Operators that tssa has no row for, and those of opsets newer than it knows, are carried as
 * opaque ops.
 *
 * Models of IR 1 to 13 are read (ONNX 1.22.0, docs/IR.md). Any bytes may be given: what is no valid
 * model ends in a status that names the node or tensor: TSSA_MALFORMED, TSSA_UNSUPPORTED (a newer
 * IR, an element type, what an upgrade cannot express), TSSA_LIMIT or TSSA_IO. *graph is written on
 * success only, and the caller frees it (ir_graph_free). Imports have nothing in common: any
 * threads may import at once.
 */
#ifndef TSSA_ONNX_IMPORTER_H
#define TSSA_ONNX_IMPORTER_H

#include <stdbool.h>

#include "ir/ir.h"

struct onnx_import_options {
    /* Where external data lies; NULL: there may be none. onnx_import_file sets it. */
    const char *external_data_folder;
    /* Follow links to external data, which the ONNX checker refuses. */
    bool allow_external_links;
    tssa_functions functions;
};

/* `data` is borrowed by the graph's large tensors and functions. options may be NULL. */
tssa_status *onnx_import(const tssa_allocator *allocator, const void *data, size_t size,
                         const struct onnx_import_options *options, struct ir_graph **graph);

/* Maps the file; the graph owns the mapping. External data is taken from the file's folder unless
 * options name another one. */
tssa_status *onnx_import_file(const tssa_allocator *allocator, const char *path,
                              const struct onnx_import_options *options, struct ir_graph **graph);

#endif
