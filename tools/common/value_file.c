/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/value_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tools/common/npy.h"

struct onnx_value_type value_file_type(const tssa_value_info *info)
{
    return (struct onnx_value_type){
        .kind = info->kind, .is_optional = info->is_optional != 0, .dtype = info->dtype};
}

static tssa_status *read_npy(const tssa_allocator *allocator, const struct file_map *map,
                             const struct onnx_value_type *type, struct value *value)
{
    TRY(npy_read(allocator, map->data, map->size, value));
    npy_reinterpret(&value->tensor, type->dtype);
    return NULL;
}

tssa_status *value_file_read(const tssa_allocator *allocator, const char *path,
                             const struct onnx_value_type *type, struct value *value)
{
    struct file_map map;
    const char *dot = strrchr(path, '.');
    bool npy = dot && strcmp(dot, ".npy") == 0;
    if (!npy && !(dot && strcmp(dot, ".pb") == 0))
        return ERROR(TSSA_INVALID_ARGUMENT, "%s: the name ends neither in .pb nor in .npy", path);
    TRY(file_map_open(path, &map));
    tssa_status *status = npy ? read_npy(allocator, &map, type, value)
                              : onnx_read_value(allocator, map.data, map.size, type, value);
    file_map_close(&map);
    return status_prefix(status, "%s", path);
}

tssa_status *value_file_write(const tssa_allocator *allocator, const char *path,
                              const struct value *value, const tssa_value_info *info)
{
    struct text text;
    text_init(&text, allocator);
    tssa_status *status = onnx_write_value(value, info->is_optional != 0, info->name, &text);
    if (!status && text.failed)
        status = status_out_of_memory();
    status = status ? status_prefix(status, "%s", path)
                    : file_write(allocator, path, text.data, text.size);
    text_free(&text);
    return status;
}

/* FOLDER/PREFIX_K_I.npy for I from 0 on. */
static tssa_status *read_elements(const tssa_allocator *allocator, const char *folder,
                                  const char *prefix, size_t index,
                                  const struct onnx_value_type *type, bool *found,
                                  struct value *value)
{
    struct value sequence, element, longer;
    tssa_status *status = NULL;
    TRY(sequence_create(allocator, type->dtype, &sequence));
    for (size_t i = 0; !status; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s_%zu_%zu.npy", folder, prefix, index, i) < 0) {
            status = status_out_of_memory();
            break;
        }
        bool exists = access(path, F_OK) == 0;
        if (exists)
            status = value_file_read(allocator, path, type, &element);
        if (exists && !status) {
            status = status_prefix(sequence_insert(&sequence, i, &element, &longer), "%s", path);
            value_release(&element);
            if (!status) {
                value_release(&sequence);
                sequence = longer;
            }
        }
        free(path);
        *found |= exists;
        if (!exists)
            break;
    }
    if (status || !*found)
        value_release(&sequence);
    else
        *value = sequence;
    return status;
}

tssa_status *data_set_read(const tssa_allocator *allocator, const char *folder, const char *prefix,
                           size_t index, const struct onnx_value_type *type, bool *found,
                           struct value *value)
{
    static const char *const extensions[] = {"pb", "npy"};
    tssa_status *status = NULL;
    *found = false;
    for (int i = 0; i < 2 && !*found && !status; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s_%zu.%s", folder, prefix, index, extensions[i]) < 0)
            return status_out_of_memory();
        *found = access(path, F_OK) == 0;
        if (*found)
            status = value_file_read(allocator, path, type, value);
        free(path);
    }
    if (!*found && !status)
        status = read_elements(allocator, folder, prefix, index, type, found, value);
    return status;
}
