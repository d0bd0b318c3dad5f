/* SPDX-License-Identifier: Apache-2.0 */
/* Models from files and from standard input. */
#ifndef TSSA_TOOLS_LOAD_H
#define TSSA_TOOLS_LOAD_H

#include "tssa.h"

/* A model that came from standard input; must outlive the models that were loaded from it. */
struct model_bytes {
    void *data;
    size_t size;
};

/* No file of ONNX is larger: protobuf ends here. */
#define MODEL_BYTES_MAX (((size_t)1 << 31) - 1)

/* Reads standard input when `path` is "-", up to `limit` bytes (0: MODEL_BYTES_MAX) and to what a
 * file can have, from pipes that never end too; else does nothing. */
tssa_status *model_bytes_read(const char *path, size_t limit, struct model_bytes *bytes);
/* What they leave of a context's memory_limit. */
size_t model_bytes_left(const struct model_bytes *bytes, size_t limit);
void model_bytes_free(struct model_bytes *bytes);

/* From the file, or from `bytes` when `path` is "-". */
tssa_status *model_load(tssa_context *context, const char *path, const struct model_bytes *bytes,
                        const tssa_load_options *options, tssa_model **model);

#endif
