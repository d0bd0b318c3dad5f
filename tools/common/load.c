/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/load.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

static tssa_status *refuse_size(size_t most)
{
    if (most == MODEL_BYTES_MAX)
        return ERROR(TSSA_LIMIT, "standard input: more than 2 GiB, which no ONNX file has");
    return ERROR(TSSA_LIMIT, "standard input: more than the %zu MiB of --memory-limit", most >> 20);
}

/* Room for more; what there was is kept or, when there is no memory, freed. */
static void *grow(void *data, size_t used, size_t *capacity, size_t most)
{
    *capacity =
        used > most / 2 ? most + 1 : used * 2; /* one more than may come, to see that it does */
    void *more = realloc(data, *capacity);
    if (!more)
        free(data);
    return more;
}

static tssa_status *read_stdin(size_t most, struct model_bytes *bytes)
{
    size_t capacity = 1 << 16, used = 0;
    char *data = malloc(capacity);
    for (;;) {
        TRY_ALLOC(data);
        ssize_t n = read(STDIN_FILENO, data + used, capacity - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || used + (size_t)n > most) {
            free(data);
            return n < 0 ? ERROR(TSSA_IO, "standard input: %s", strerror(errno))
                         : refuse_size(most);
        }
        used += (size_t)n;
        if (n == 0)
            break;
        if (used == capacity)
            data = grow(data, used, &capacity, most);
    }
    *bytes = (struct model_bytes){data, used};
    return NULL;
}

tssa_status *model_bytes_read(const char *path, size_t limit, struct model_bytes *bytes)
{
    bool limited = limit && limit < MODEL_BYTES_MAX;
    return strcmp(path, "-") == 0 ? read_stdin(limited ? limit : MODEL_BYTES_MAX, bytes) : NULL;
}

size_t model_bytes_left(const struct model_bytes *bytes, size_t limit)
{
    if (!limit)
        return 0;
    return bytes->size < limit ? limit - bytes->size : 1;
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
