/* SPDX-License-Identifier: Apache-2.0 */
/* External data; see external.h for the rule. */
#include "onnx/external.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

struct external_file {
    struct ir_resource resource;
};

/* The entries of TensorProto.external_data. */
struct reference {
    const char *location;
    bool has_offset, has_length;
    uint64_t offset, length;
};

void external_init(struct external *external, struct ir_graph *graph, const char *folder,
                   bool allow_links)
{
    *external = (struct external){
        .folder = folder, .allow_links = allow_links, .graph = graph, .descriptor = -1};
    map_init(&external->files, graph->allocator);
}

void external_free(struct external *external)
{
    map_free(&external->files);
    if (external->descriptor >= 0)
        close(external->descriptor);
    external->descriptor = -1;
}

/* ---- The reference --------------------------------------------------------------------------- */

static tssa_status *parse_number(const char *key, const char *text, uint64_t *number)
{
    uint64_t value = 0;
    bool good = *text != '\0';
    for (const char *c = text; *c && good; c++)
        good = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, (uint64_t)(*c - '0'), &value);
    if (!good)
        return ERROR(TSSA_MALFORMED, "%s \"%s\" of its external data is not a size", key, text);
    *number = value;
    return NULL;
}

static tssa_status *parse_entry(const char *key, const char *value, struct reference *reference)
{
    bool again = false;
    tssa_status *status = NULL;
    if (strcmp(key, "location") == 0) {
        again = reference->location != NULL;
        reference->location = value;
    } else if (strcmp(key, "offset") == 0) {
        again = reference->has_offset;
        reference->has_offset = true;
        status = parse_number(key, value, &reference->offset);
    } else if (strcmp(key, "length") == 0) {
        again = reference->has_length;
        reference->has_length = true;
        status = parse_number(key, value, &reference->length);
    } else if (strcmp(key, "checksum") != 0 && strcmp(key, "basepath") != 0) {
        return ERROR(TSSA_MALFORMED, "\"%s\" is no key of external data", key);
    }
    if (!status && again)
        return ERROR(TSSA_MALFORMED, "its external data has two entries \"%s\"", key);
    return status;
}

static tssa_status *check_location(const char *location)
{
    if (!location || !location[0])
        return ERROR(TSSA_MALFORMED, "its external data has no location");
    if (location[0] == '/')
        return ERROR(TSSA_MALFORMED, "external data \"%s\" is not below the model's folder",
                     location);
    for (const char *part = location; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '\0' || part[2] == '/'))
            return ERROR(TSSA_MALFORMED, "external data \"%s\" leads out of the model's folder",
                         location);
    }
    return NULL;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static tssa_status *cannot_open(const char *location, int error)
{
    char text[128];
    const char *why = error == ELOOP || error == EXDEV ? "it is reached through a link"
                                                       : strerror_r(error, text, sizeof text);
    return ERROR(TSSA_IO, "cannot open external data \"%s\": %s", location, why);
}

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* Component by component, for kernels (and sandboxes) without openat2. */
static int open_stepwise(int folder, const char *location)
{
    char part[NAME_MAX + 1];
    int at = folder;
    for (;;) {
        location += strspn(location, "/");
        size_t length = strcspn(location, "/");
        const char *rest = location + length + strspn(location + length, "/");
        if (length > NAME_MAX) {
            errno = ENAMETOOLONG;
            length = 0;
        }
        memcpy(part, location, length);
        part[length] = '\0';
        int flags = OPEN_FLAGS | O_NOFOLLOW | (*rest ? O_DIRECTORY : 0);
        int next = length ? openat(at, part, flags) : -1;
        int error = next < 0 ? errno : 0;
        if (at != folder)
            close(at);
        errno = error;
        if (next < 0 || !*rest)
            return next;
        at = next;
        location = rest;
    }
}

static int open_beneath(int folder, const char *location)
{
#ifdef SYS_openat2
    struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    int descriptor = (int)syscall(SYS_openat2, folder, location, &how, sizeof how);
    if (descriptor >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN))
        return descriptor;
#endif
    return open_stepwise(folder, location);
}

static tssa_status *map_file(const struct external *external, const char *location,
                             struct file_map *map)
{
    int descriptor = external->allow_links ? openat(external->descriptor, location, OPEN_FLAGS)
                                           : open_beneath(external->descriptor, location);
    if (descriptor < 0)
        return cannot_open(location, errno);
    struct stat info;
    tssa_status *status = NULL;
    if (fstat(descriptor, &info) != 0)
        status = cannot_open(location, errno);
    else if (!external->allow_links && S_ISREG(info.st_mode) && info.st_nlink != 1)
        status = ERROR(TSSA_IO, "external data \"%s\" has %llu hard links, which may lead anywhere",
                       location, (unsigned long long)info.st_nlink);
    else
        status = file_map_descriptor(descriptor, location, map);
    close(descriptor);
    return status;
}

static void release_file(struct ir_resource *resource)
{
    file_map_close(&resource->file);
}

static tssa_status *open_folder(struct external *external)
{
    if (external->descriptor >= 0)
        return NULL;
    external->descriptor = open(external->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (external->descriptor < 0)
        return cannot_open(external->folder, errno);
    return NULL;
}

static tssa_status *open_file(struct external *external, const char *location,
                              struct external_file **file)
{
    *file = map_get_str(&external->files, location);
    if (*file)
        return NULL;
    TRY(open_folder(external));
    struct external_file *opened = ARENA_NEW(&external->graph->arena, struct external_file);
    TRY_ALLOC(opened);
    TRY(map_file(external, location, &opened->resource.file));
    opened->resource.release = release_file;
    ir_graph_attach(external->graph, &opened->resource);
    if (!map_put_str(&external->files, location, opened))
        return status_out_of_memory();
    *file = opened;
    return NULL;
}

tssa_status *external_data(struct external *external, const Onnx__TensorProto *proto, size_t size,
                           const void **data)
{
    struct reference reference = {0};
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = proto->external_data[i];
        TRY(parse_entry(entry->key ? entry->key : "", entry->value ? entry->value : "",
                        &reference));
    }
    TRY(check_location(reference.location));
    if (!external->folder)
        return ERROR(TSSA_MALFORMED, "it has external data, but the model has no folder");
    if (reference.has_length && reference.length != size)
        return ERROR(TSSA_MALFORMED, "it takes %zu bytes of external data, not %llu", size,
                     (unsigned long long)reference.length);
    struct external_file *file;
    TRY(open_file(external, reference.location, &file));
    if (reference.offset > file->resource.file.size ||
        size > file->resource.file.size - reference.offset)
        return ERROR(TSSA_MALFORMED,
                     "it takes %zu bytes at %llu of external data \"%s\", which has %zu", size,
                     (unsigned long long)reference.offset, reference.location,
                     file->resource.file.size);
    *data = (const char *)file->resource.file.data + reference.offset;
    return NULL;
}
