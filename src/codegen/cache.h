/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled kernels in a folder, a file each, and what was measured of the machine that they are
 * for. They are code that will be run: the folder and what is
 * in it is believed only where it is this user's and nobody else may write to it, links are not
 * followed, and whoever is privileged has no cache.
 *
 * The name of an entry is a hash; what is in it says of which kernel it is, for which processor, of
 * which generator and of which LLVM, and all of that is compared. What was cut or changed is no
 * entry, and is compiled again. Entries are written under another name and renamed, so any number
 * of processes may share a folder. Those that nobody has read for longest go first when there is
 * more than CACHE_MOST_BYTES.
 */
#ifndef TSSA_CODEGEN_CACHE_H
#define TSSA_CODEGEN_CACHE_H

#include "base/alloc.h"
#include "codegen/codegen.h"
#include "codegen/protocol.h"

#define CACHE_MOST_BYTES ((uint64_t)64 << 20)

/* What code is made by and for, besides the kernel. Every byte counts. */
struct cache_key {
    char version[32];               /* of tssa */
    char processor[192];            /* or what else runs it */
    struct file_identity generator; /* the plugin, where there is one */
    uint64_t level;
};

struct cache {
    int folder; /* a descriptor; -1: it is not open, and everything misses */
    struct cache_key key;
};

/* For code of the plugin for this machine. Makes the folder where there is none. False: it cannot
 * be used, and why is in `message`. Close it in any case. */
bool cache_open(struct cache *cache, const char *path, enum codegen_level level, char *message,
                size_t size);
/* The same for code of another kind, with a key that is not of this machine's; its version is
 * filled in. */
bool cache_open_as(struct cache *cache, const char *path, const struct cache_key *key,
                   char *message, size_t size);
void cache_close(struct cache *cache);

/* What an entry is found by: the bytes of a kernel, or of what else it is. */
struct cache_subject {
    const void *bytes;
    size_t size;
};

static inline struct cache_subject cache_subject_of(const struct gir_kernel *kernel)
{
    return (struct cache_subject){kernel, kernel->size};
}

/* The object file of a kernel, or what else was kept, of the allocator; NULL: it is not there. */
void *cache_read(const struct cache *cache, const tssa_allocator *allocator,
                 struct cache_subject subject, size_t *size);
/* `maker`: NULL where it was no library that made it. False: it could not be written, and why is in
 * `message`. */
bool cache_write(const struct cache *cache, const tssa_allocator *allocator,
                 struct cache_subject subject, const struct codegen_maker *maker,
                 const void *object, size_t object_size, char *message, size_t size);
/* Removes the oldest entries until no more than `most` bytes are left, if there are more; and what
 * was left of entries that nobody finished. */
void cache_trim(const struct cache *cache, const tssa_allocator *allocator, uint64_t most);

#endif
