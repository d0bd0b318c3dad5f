/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/npz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "tools/common/npy.h"

/* The entry NAME.npy, the only entry, or -1. */
static zip_int64_t find_entry(zip_t *archive, const char *name)
{
    char *entry = NULL;
    if (asprintf(&entry, "%s.npy", name) < 0)
        return -1;
    zip_int64_t index = zip_name_locate(archive, entry, 0);
    free(entry);
    if (index < 0 && zip_get_num_entries(archive, 0) == 1)
        return 0;
    return index;
}

/* The size that the archive states is checked as the bytes arrive: it may be a lie. */
static tssa_status *read_entry(const tssa_allocator *allocator, zip_t *archive, zip_int64_t index,
                               size_t most, struct value *value)
{
    zip_stat_t about;
    tssa_status *status = NULL;
    if (zip_stat_index(archive, (zip_uint64_t)index, 0, &about) != 0 ||
        !(about.valid & ZIP_STAT_SIZE))
        return ERROR(TSSA_MALFORMED, "the archive does not tell the size of its array");
    /* Deflate packs at most about 1032 to 1. */
    if ((about.valid & ZIP_STAT_COMP_SIZE) && about.size / 1100 > about.comp_size)
        return ERROR(TSSA_MALFORMED, "the archive states an impossible size of its array");
    if (about.size > most)
        return ERROR(TSSA_LIMIT,
                     "an array takes %" PRIu64 " MiB unpacked, and %zu are allowed: see "
                     "--memory-limit, or give it as a .npy file",
                     about.size >> 20, most >> 20);
    zip_file_t *file = zip_fopen_index(archive, (zip_uint64_t)index, 0);
    if (!file)
        return ERROR(TSSA_MALFORMED, "%s", zip_strerror(archive));
    void *bytes = allocator_alloc(allocator, about.size);
    zip_int64_t got = -1;
    if (bytes)
        got = zip_fread(file, bytes, about.size);
    if (!bytes)
        status = status_out_of_memory();
    else if (got < 0 || (zip_uint64_t)got != about.size)
        status = ERROR(TSSA_MALFORMED, "the archive is damaged: %s", zip_file_strerror(file));
    else
        status = npy_read(allocator, bytes, about.size, value);
    allocator_free(allocator, bytes);
    zip_fclose(file);
    return status;
}

tssa_status *npz_read(const tssa_allocator *allocator, const char *path, const char *name,
                      size_t most, bool *found, struct value *value)
{
    int code = 0;
    tssa_status *status = NULL;
    zip_t *archive = zip_open(path, ZIP_RDONLY, &code);
    *found = false;
    if (!archive) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        status = ERROR(code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS ? TSSA_MALFORMED : TSSA_IO,
                       "%s: %s", path, zip_error_strerror(&error));
        zip_error_fini(&error);
        return status;
    }
    zip_int64_t index = find_entry(archive, name);
    if (index >= 0) {
        *found = true;
        status = status_prefix(read_entry(allocator, archive, index, most, value), "%s", path);
    }
    zip_discard(archive);
    return status;
}
