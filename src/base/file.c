/* SPDX-License-Identifier: Apache-2.0 */
/* Files, on POSIX calls. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)1 << 16)
/* Linux writes a little less than 2 GiB per call, and some systems refuse more. */
#define WRITE_LIMIT ((size_t)1 << 30)

/* `error` is an errno value. */
static tssa_status *io_error(const char *what, const char *path, int error)
{
    char text[128];
    /* GNU's strerror_r, which returns the text. */
    return ERROR(TSSA_IO, "cannot %s %s: %s", what, path, strerror_r(error, text, sizeof text));
}

/* ---- Reading --------------------------------------------------------------------------------- */

tssa_status *file_map_descriptor(int descriptor, const char *path, struct file_map *map)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return io_error("read", path, errno);
    if (S_ISDIR(info.st_mode))
        return io_error("read", path, EISDIR);
    if (!S_ISREG(info.st_mode))
        return ERROR(TSSA_IO, "cannot read %s: not a regular file", path);
    if (info.st_size == 0) {
        *map = (struct file_map){"", 0};
        return NULL;
    }
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED)
        return io_error("map", path, errno);
    *map = (struct file_map){data, (size_t)info.st_size};
    return NULL;
}

tssa_status *file_map_open(const char *path, struct file_map *map)
{
    /* Opening a pipe would wait for its writer without O_NONBLOCK. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return io_error("open", path, errno);
    tssa_status *status = file_map_descriptor(descriptor, path, map);
    close(descriptor);
    return status;
}

void file_map_close(struct file_map *map)
{
    if (map->size)
        munmap((void *)map->data, map->size);
    *map = (struct file_map){NULL, 0};
}

void file_map_forget(const void *data, size_t size)
{
    pages_give_back(data, size);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void writer_free(struct file_writer *writer)
{
    if (writer->descriptor >= 0)
        close(writer->descriptor);
    allocator_free(writer->allocator, writer->path);
    allocator_free(writer->allocator, writer->temporary);
    allocator_free(writer->allocator, writer->buffer);
    *writer = (struct file_writer){.allocator = writer->allocator, .descriptor = -1};
}

static tssa_status *copy_path(const tssa_allocator *allocator, const char *path, char **copy)
{
    size_t size = strlen(path) + 1;
    *copy = allocator_alloc(allocator, size);
    TRY_ALLOC(*copy);
    memcpy(*copy, path, size);
    return NULL;
}

/* The target's path with links resolved, so that a rename replaces the file and not the link. */
static tssa_status *resolve(const tssa_allocator *allocator, const char *path, char **resolved)
{
    if (!*path)
        return io_error("write", "''", ENOENT); /* not a name that a temporary file may extend */
    char *real = realpath(path, NULL);
    if (!real && errno != ENOENT)
        return io_error("write", path, errno);
    tssa_status *status = copy_path(allocator, real ? real : path, resolved);
    free(real);
    return status;
}

/* Creates "<path>.tmp<pid>-<n>" with the first n that is free. */
static tssa_status *create_temporary(struct file_writer *writer, mode_t mode)
{
    size_t size;
    if (!size_add(strlen(writer->path), 64, &size))
        return status_out_of_memory();
    writer->temporary = allocator_alloc(writer->allocator, size);
    TRY_ALLOC(writer->temporary);
    file_remove_stale(writer->path);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    for (int n = 0; n < 1000 && writer->descriptor < 0; n++) {
        snprintf(writer->temporary, size, "%s.tmp%ld-%d", writer->path, (long)getpid(), n);
        writer->descriptor = open(writer->temporary, flags, mode);
        if (writer->descriptor < 0 && errno != EEXIST)
            break;
    }
    if (writer->descriptor >= 0) {
        /* It says that we live, where that can be said; file_remove_stale asks. */
        if (flock(writer->descriptor, LOCK_EX | LOCK_NB) != 0)
            errno = 0;
        return NULL;
    }
    tssa_status *status = io_error("write", writer->path, errno);
    allocator_free(writer->allocator, writer->temporary);
    writer->temporary = NULL; /* nothing to remove */
    return status;
}

static tssa_status *open_target(struct file_writer *writer)
{
    struct stat info;
    if (stat(writer->path, &info) != 0) {
        if (errno != ENOENT)
            return io_error("write", writer->path, errno);
        return create_temporary(writer, 0666);
    }
    if (S_ISREG(info.st_mode)) {
        TRY(create_temporary(writer, 0600));
        /* Best effort: the file is written either way. */
        if (fchmod(writer->descriptor, info.st_mode & 0777) != 0)
            errno = 0;
        return NULL;
    }
    writer->descriptor = open(writer->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return writer->descriptor < 0 ? io_error("write", writer->path, errno) : NULL;
}

tssa_status *file_writer_open(const tssa_allocator *allocator, const char *path,
                              struct file_writer *writer)
{
    struct file_writer made = {.allocator = allocator, .descriptor = -1};
    tssa_status *status;
    made.buffer = allocator_alloc(allocator, BUFFER_SIZE);
    if (!made.buffer) {
        status = status_out_of_memory();
        goto fail;
    }
    TRY_GOTO(status, resolve(allocator, path, &made.path), fail);
    TRY_GOTO(status, open_target(&made), fail);
    *writer = made;
    return NULL;
fail:
    file_writer_abort(&made);
    return status;
}

static tssa_status *write_all(struct file_writer *writer, const char *data, size_t size)
{
    while (size) {
        ssize_t n = write(writer->descriptor, data, size < WRITE_LIMIT ? size : WRITE_LIMIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return io_error("write", writer->path, n ? errno : EIO);
        data += n;
        size -= (size_t)n;
    }
    return NULL;
}

static tssa_status *flush(struct file_writer *writer)
{
    size_t used = writer->used;
    writer->used = 0;
    return write_all(writer, writer->buffer, used);
}

tssa_status *file_writer_write(struct file_writer *writer, const void *data, size_t size)
{
    if (size > BUFFER_SIZE - writer->used)
        TRY(flush(writer));
    if (size >= BUFFER_SIZE)
        return write_all(writer, data, size);
    if (size)
        memcpy(writer->buffer + writer->used, data, size);
    writer->used += size;
    return NULL;
}

/* Makes the rename itself durable. Folders that cannot be synced do not fail the write. */
static void sync_folder(struct file_writer *writer)
{
    char *slash = strrchr(writer->path, '/');
    const char *folder = ".";
    if (slash) {
        slash[slash == writer->path] = '\0'; /* "/name" lies in "/" */
        folder = writer->path;
    }
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    if (fsync(descriptor) != 0)
        errno = 0;
    close(descriptor);
}

tssa_status *file_writer_sync(struct file_writer *writer)
{
    TRY(flush(writer));
    /* Pipes and terminals cannot be synced. */
    if (writer->temporary && fsync(writer->descriptor) != 0)
        return io_error("write", writer->path, errno);
    return NULL;
}

static tssa_status *finish(struct file_writer *writer)
{
    TRY(file_writer_sync(writer));
    int closed = close(writer->descriptor);
    writer->descriptor = -1;
    if (closed != 0)
        return io_error("write", writer->path, errno);
    if (writer->temporary && rename(writer->temporary, writer->path) != 0)
        return io_error("write", writer->path, errno);
    return NULL;
}

tssa_status *file_writer_commit(struct file_writer *writer)
{
    tssa_status *status = finish(writer);
    if (status) {
        file_writer_abort(writer);
        return status;
    }
    if (writer->temporary)
        sync_folder(writer);
    writer_free(writer);
    return NULL;
}

void file_writer_abort(struct file_writer *writer)
{
    if (writer->temporary)
        unlink(writer->temporary);
    writer_free(writer);
}

tssa_status *file_write(const tssa_allocator *allocator, const char *path, const void *data,
                        size_t size)
{
    struct file_writer writer;
    TRY(file_writer_open(allocator, path, &writer));
    tssa_status *status = file_writer_write(&writer, data, size);
    if (status) {
        file_writer_abort(&writer);
        return status;
    }
    return file_writer_commit(&writer);
}
