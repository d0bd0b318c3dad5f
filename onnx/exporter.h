/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs to ONNX models: the inverse of importer.h.
 *
 * Operators are written in the interface that they have at the model's opset, or at another one
 * that is asked for (downgrade.def); what that opset cannot say raises it to the smallest one that
 * can, unless the caller fixed it. Names, signature, metadata and opsets of other domains are the
 * graph's. Opaque ops go out as they came. tssa's own ops are refused: they are lowered before; but
 * a fuse op is written as what it holds.
 *
 * Weights are written from where they are, without a copy. A file is never seen half-written: it is
 * written beside its target, synced and renamed, external data before the model.
 */
#ifndef TSSA_ONNX_EXPORTER_H
#define TSSA_ONNX_EXPORTER_H

#include "ir/ir.h"
#include "onnx/output.h"

/* No older opset of ai.onnx is written. */
#define ONNX_OLDEST_OPSET 7

struct onnx_export_options {
    int64_t opset;      /* of ai.onnx; 0: the model's, or a newer one where the graph needs it */
    bool external_data; /* large tensors go to a file of their own */
    const char *external_name; /* of that file, which lies beside the model; NULL: "<model>.data" */
    size_t external_threshold; /* tensors of this many bytes and more; 0: 1024 */
    uint64_t kept_hazards;     /* bit i: hazard i is not gone around (hazards.def) */
    uint64_t *met_hazards; /* bit i is set when hazard i was to be, and no opset that the model can
                                  have says how: the op is written as it is; may be NULL */
};

/* What the exporter goes around, for the sake of the runtimes that read the file. */
size_t onnx_hazard_count(void);
tssa_hazard_info onnx_hazard(size_t index);

/* options may be NULL. External data is refused here: there is no folder to put it in. */
tssa_status *onnx_export(const struct ir_graph *graph, const struct onnx_export_options *options,
                         const struct output_sink *sink);

/* A model above protobuf's limit of 2 GiB gets external data, asked for or not. */
tssa_status *onnx_export_file(const struct ir_graph *graph, const char *path,
                              const struct onnx_export_options *options);

#endif
