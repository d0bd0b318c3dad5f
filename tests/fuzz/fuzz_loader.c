/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a model or give one line; what is a model passes inference and the verifier. Seeds:
 * the models under models/. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/importer.h"
#include "onnx/tensor_proto.h"

/*
 * An internal error is a bug: the importer must refuse what the verifier would. So is running out
 * of memory: sizes are bounded by the file's, and what the scan lets through protobuf-c must read.
 */
static void check(tssa_status *status)
{
    tssa_code code = tssa_status_code(status);
    if (code == TSSA_INTERNAL || code == TSSA_OUT_OF_MEMORY ||
        (status && strchr(tssa_status_message(status), '\n')))
        abort();
    tssa_status_free(status);
}

static void read_value(const uint8_t *data, size_t size, tssa_kind kind, bool is_optional)
{
    const struct onnx_value_type type = {.kind = kind, .is_optional = is_optional};
    struct value value;
    tssa_status *status = onnx_read_value(&allocator_default, data, size, &type, &value);
    if (!status)
        value_release(&value);
    check(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = onnx_import(&allocator_default, data, size, NULL, &graph);
    if (!status)
        ir_graph_free(graph);
    check(status);
    read_value(data, size, TSSA_KIND_TENSOR, false);
    read_value(data, size, TSSA_KIND_SEQUENCE, false);
    read_value(data, size, TSSA_KIND_SEQUENCE, true);
    read_value(data, size, TSSA_KIND_MAP, false);
    return 0;
}
