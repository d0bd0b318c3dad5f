/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor data in files beside the model.
 *
 * A location may only lead to a plain file below the model's folder: relative, without "..",
 * without links on the way (RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS), and with a single name (no
 * hard links). That is the rule of ONNX 1.22.0's checker; see CVE-2022-25882, CVE-2024-27318,
 * CVE-2026-27489 and CVE-2026-34446 for what each part is there for. The file is opened once and
 * everything is asked of the descriptor. Files are mapped; the graph owns the mappings.
 */
#ifndef TSSA_ONNX_EXTERNAL_H
#define TSSA_ONNX_EXTERNAL_H

#include "ir/ir.h"
#include "onnx/wire.h"

struct external {
    const char *folder; /* NULL: none allowed */
    bool allow_links;
    struct ir_graph *graph;
    int descriptor;   /* of the folder; -1 until it is needed */
    struct map files; /* location -> struct external_file */
};

void external_init(struct external *external, struct ir_graph *graph, const char *folder,
                   bool allow_links);
/* Mappings stay: they are the graph's. */
void external_free(struct external *external);

/* Where the bytes of the tensor are; `size` is what its dims take. */
tssa_status *external_data(struct external *external, const Onnx__TensorProto *proto, size_t size,
                           const void **data);

#endif
