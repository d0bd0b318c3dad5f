/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

static tssa_status *read_stdin(struct model_bytes *bytes)
{
    size_t capacity = 1 << 16, used = 0;
    char *data = malloc(capacity);
    for (;;) {
        TRY_ALLOC(data);
        ssize_t n = read(STDIN_FILENO, data + used, capacity - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            free(data);
            return ERROR(TSSA_IO, "standard input: %s", strerror(errno));
        }
        used += (size_t)n;
        if (n == 0)
            break;
        if (used == capacity) {
            char *more = realloc(data, capacity *= 2);
            if (!more)
                free(data);
            data = more;
        }
    }
    *bytes = (struct model_bytes){data, used};
    return NULL;
}

tssa_status *model_bytes_read(const char *path, struct model_bytes *bytes)
{
    return strcmp(path, "-") == 0 ? read_stdin(bytes) : NULL;
}

void model_bytes_free(struct model_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct model_bytes){0};
}

tssa_status *model_load(tssa_context *context, const char *path, const struct model_bytes *bytes,
                        const tssa_load_options *options, tssa_model **model)
{
    if (strcmp(path, "-") != 0)
        return tssa_model_load_file(context, path, options, model);
    tssa_status *status = tssa_model_load_memory(context, bytes->data, bytes->size, options, model);
    return status_prefix(status, "standard input");
}
