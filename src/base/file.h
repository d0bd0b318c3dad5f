/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading whole files through a mapping, and writing files that are never seen half-written. Errors
 * are TSSA_IO and name the path. Different maps and writers may be used from different threads.
 */
#ifndef TSSA_BASE_FILE_H
#define TSSA_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"

struct file_map {
    const void *data; /* page-aligned; a valid pointer for an empty file too */
    size_t size;
};

/* Maps a regular file, links followed. The map shows later changes of the file: a file that
 * somebody truncates faults when read. */
tssa_status *file_map_open(const char *path, struct file_map *map);
/* The same for a descriptor, which stays open; `path` is for messages. */
tssa_status *file_map_descriptor(int descriptor, const char *path, struct file_map *map);
void file_map_close(struct file_map *map);
/* Gives the whole pages of a part of a map back to the system. They are read again when needed, so
 * who reads them meanwhile sees nothing of it. */
void file_map_forget(const void *data, size_t size);

/*
 * Writes into a temporary file in the target's folder that replaces the target when it is complete:
 * readers see the old file or the new one. The target's permissions are kept. A target that is a
 * link stays one; one that is not a regular file (/dev/stdout, a pipe) is written to directly. What
 * a process that was killed left behind is removed by the next that writes the same file.
 */
struct file_writer {
    const tssa_allocator *allocator;
    int descriptor;  /* -1: closed */
    char *path;      /* links resolved */
    char *temporary; /* NULL: writing directly */
    char *buffer;
    size_t used;
};

tssa_status *file_writer_open(const tssa_allocator *allocator, const char *path,
                              struct file_writer *writer);
tssa_status *file_writer_write(struct file_writer *writer, const void *data, size_t size);
/* Brings all that was written to the disk: what may still fail is the rename. */
tssa_status *file_writer_sync(struct file_writer *writer);
/* Flushes, syncs and renames. The writer is closed, whatever is returned. */
tssa_status *file_writer_commit(struct file_writer *writer);
/* Drops what was written. A closed writer is accepted. */
void file_writer_abort(struct file_writer *writer);

/*
 * Removes the temporary files of `path` whose process has ended; nothing is said when that fails.
 */
void file_remove_stale(const char *path);

tssa_status *file_write(const tssa_allocator *allocator, const char *path, const void *data,
                        size_t size);

/* What another file in the same place, or the same after a change, does not have. */
struct file_identity {
    uint64_t device, inode, size, seconds, nanoseconds; /* of the last change of anything in it */
};

/* False: there is no such file. Links are followed. */
bool file_identify(const char *path, struct file_identity *identity);

#endif
