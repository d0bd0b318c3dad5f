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

/* Reads standard input when `path` is "-"; else does nothing. */
tssa_status *model_bytes_read(const char *path, struct model_bytes *bytes);
void model_bytes_free(struct model_bytes *bytes);

/* From the file, or from `bytes` when `path` is "-". */
tssa_status *model_load(tssa_context *context, const char *path, const struct model_bytes *bytes,
                        const tssa_load_options *options, tssa_model **model);

#endif
