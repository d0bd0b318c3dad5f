/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/isa.h"
#include "base/plugin.h"
#include "base/vec.h"

#define MAGIC "tssakc01"
#define SUFFIX ".kernel"
#define TEMPORARY ".tmp"
#define NAME_SIZE 64
/* An entry whose time is older than that is given a new one when it is read. */
#define FRESH_SECONDS 3600

/* What a file begins with. The subject and the object are behind it. */
struct head {
    char magic[8];
    uint64_t sum; /* of all behind it */
    uint64_t subject_size, object_size;
    struct cache_key key;
    struct codegen_maker maker;
};

/* ---- The folder ------------------------------------------------------------------------------ */

static bool say(char *message, size_t size, const char *what, const char *path, int error)
{
    char text[64];
    snprintf(message, size, "%s %.100s%s%s", what, path, error ? ": " : "",
             error ? strerror_r(error, text, sizeof text) : "");
    return false;
}

/* Root makes no folders in those of others: they could not use them. */
static bool may_make(const char *parent)
{
    struct stat info;
    return geteuid() != 0 || (stat(parent, &info) == 0 && info.st_uid == 0);
}

/* With the folders around it. Whether it is there is seen when it is opened. */
static void make_folder(const char *path)
{
    char parent[PATH_MAX];
    struct stat info;
    const char *slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof parent)
        return;
    memcpy(parent, path, length);
    memcpy(parent + length, "", 1);
    if (length && stat(parent, &info) != 0 && errno == ENOENT)
        make_folder(parent);
    if (may_make(length ? parent : slash ? "/" : "."))
        mkdir(path, 0700);
}

static bool is_ours(const struct stat *info)
{
    return info->st_uid == geteuid() && !(info->st_mode & (S_IRWXG | S_IRWXO));
}

static bool open_folder(struct cache *cache, const char *path, char *message, size_t size)
{
    struct stat info;
    if (getauxval(AT_SECURE) || geteuid() != getuid() || getegid() != getgid())
        return say(message, size, "who is privileged keeps no kernels in", path, 0);
    cache->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (cache->folder < 0 && errno == ENOENT) {
        make_folder(path);
        cache->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (cache->folder < 0)
        return say(message, size, "cannot keep kernels in", path, errno);
    if (fstat(cache->folder, &info) == 0 && is_ours(&info))
        return true;
    close(cache->folder);
    cache->folder = -1;
    return say(message, size, "kernels are not kept where others may write, or is not ours:", path,
               0);
}

bool cache_open_as(struct cache *cache, const char *path, const struct cache_key *key,
                   char *message, size_t size)
{
    *cache = (struct cache){.folder = -1, .key = *key};
    snprintf(cache->key.version, sizeof cache->key.version, "%s", TSSA_VERSION);
    return open_folder(cache, path, message, size);
}

bool cache_open(struct cache *cache, const char *path, enum codegen_level level, char *message,
                size_t size)
{
    char plugin[PATH_MAX];
    struct cache_key key = {.level = level};
    isa_describe(key.processor, sizeof key.processor);
    *cache = (struct cache){.folder = -1};
    if (!plugin_file(CODEGEN_PLUGIN ".so", plugin, sizeof plugin) ||
        !file_identify(plugin, &key.generator))
        return true; /* nothing is compiled, which is said anyhow */
    return cache_open_as(cache, path, &key, message, size);
}

void cache_close(struct cache *cache)
{
    if (cache->folder >= 0)
        close(cache->folder);
    cache->folder = -1;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static void name_of(const struct cache *cache, struct cache_subject subject, char *name)
{
    const uint64_t a = hash_bytes(&cache->key, sizeof cache->key, 0),
                   b = hash_bytes(subject.bytes, subject.size, a),
                   c = hash_bytes(subject.bytes, subject.size, ~a);
    snprintf(name, NAME_SIZE, "%016" PRIx64 "%016" PRIx64 SUFFIX, b, c);
}

static uint64_t sum_of(const void *file, size_t size)
{
    const size_t from = offsetof(struct head, subject_size);
    return hash_bytes((const char *)file + from, size - from, 0);
}

/* The same LLVM as then, in the same place, where it was one. */
static bool is_maker_there(const struct codegen_maker *maker)
{
    static const struct codegen_maker none;
    struct file_identity now;
    if (memcmp(maker, &none, sizeof none) == 0)
        return true;
    return maker->library[0] && memchr(maker->library, '\0', sizeof maker->library) &&
           file_identify(maker->library, &now) && memcmp(&now, &maker->identity, sizeof now) == 0;
}

static bool is_right(const struct cache *cache, struct cache_subject subject, const void *file,
                     size_t size)
{
    const struct head *head = file;
    return memcmp(head->magic, MAGIC, sizeof head->magic) == 0 &&
           head->subject_size == subject.size &&
           head->object_size == size - sizeof *head - subject.size &&
           head->sum == sum_of(file, size) &&
           memcmp(&head->key, &cache->key, sizeof head->key) == 0 &&
           memcmp(head + 1, subject.bytes, subject.size) == 0 && is_maker_there(&head->maker);
}

static bool read_all(int file, void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = read(file, (char *)data + done, size - done);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* So that it is not among those that go. */
static void touch(int file, const struct stat *info)
{
    if (time(NULL) - info->st_mtim.tv_sec > FRESH_SECONDS)
        futimens(file, NULL);
}

/* The object alone, moved to the front of what was read. */
static void *read_entry(const struct cache *cache, const tssa_allocator *allocator, int file,
                        struct cache_subject subject, size_t *object_size)
{
    struct stat info;
    if (fstat(file, &info) || !S_ISREG(info.st_mode) || !is_ours(&info) ||
        info.st_size < (off_t)(sizeof(struct head) + subject.size) ||
        info.st_size > (off_t)CODEGEN_MAX_SIZE)
        return NULL;
    const size_t size = (size_t)info.st_size, before = sizeof(struct head) + subject.size;
    char *bytes = allocator_alloc(allocator, size);
    if (!bytes || !read_all(file, bytes, size) || !is_right(cache, subject, bytes, size)) {
        allocator_free(allocator, bytes);
        return NULL;
    }
    touch(file, &info);
    memmove(bytes, bytes + before, size - before);
    *object_size = size - before;
    return bytes;
}

void *cache_read(const struct cache *cache, const tssa_allocator *allocator,
                 struct cache_subject subject, size_t *size)
{
    char name[NAME_SIZE];
    if (cache->folder < 0)
        return NULL;
    name_of(cache, subject, name);
    const int file =
        openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    void *object = read_entry(cache, allocator, file, subject, size);
    close(file);
    return object;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int write_all(int file, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(file, (const char *)data + done, size - done);
        if (n < 0 && errno != EINTR)
            return errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* An errno. What was cut by a crash does not have the sum. */
static int write_entry(const struct cache *cache, const char *temporary, const char *name,
                       const void *bytes, size_t size)
{
    const int file = openat(cache->folder, temporary,
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return errno;
    int error = write_all(file, bytes, size);
    if (close(file) && !error)
        error = errno;
    if (!error && renameat(cache->folder, temporary, cache->folder, name))
        error = errno;
    if (error)
        unlinkat(cache->folder, temporary, 0);
    return error;
}

bool cache_write(const struct cache *cache, const tssa_allocator *allocator,
                 struct cache_subject subject, const struct codegen_maker *maker,
                 const void *object, size_t object_size, char *message, size_t size)
{
    char name[NAME_SIZE], temporary[2 * NAME_SIZE];
    const size_t total = sizeof(struct head) + subject.size + object_size;
    if (cache->folder < 0 || total > CODEGEN_MAX_SIZE)
        return true;
    struct head *head = allocator_calloc(allocator, 1, total);
    if (!head)
        return say(message, size, "memory ran out where a kernel was to be", "kept", 0);
    memcpy(head->magic, MAGIC, sizeof head->magic);
    head->subject_size = subject.size;
    head->object_size = object_size;
    head->key = cache->key;
    if (maker)
        head->maker = *maker;
    memcpy(head + 1, subject.bytes, subject.size);
    memcpy((char *)(head + 1) + subject.size, object, object_size);
    head->sum = sum_of(head, total);
    name_of(cache, subject, name);
    snprintf(temporary, sizeof temporary, "%s" TEMPORARY "%ld-%" PRIu64, name, (long)getpid(),
             clock_monotonic());
    const int error = write_entry(cache, temporary, name, head, total);
    allocator_free(allocator, head);
    return !error || say(message, size, "cannot keep kernels in", "the cache", error);
}

/* ---- Trimming -------------------------------------------------------------------------------- */

struct old {
    char name[NAME_SIZE];
    struct timespec time;
    uint64_t size;
};

struct old_list {
    VEC(struct old) entries;
};

static int compare_old(const void *a, const void *b)
{
    const struct timespec *x = &((const struct old *)a)->time, *y = &((const struct old *)b)->time;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static bool is_entry(const char *name)
{
    const size_t length = strlen(name), suffix = strlen(SUFFIX);
    return length > suffix && length < NAME_SIZE && strcmp(name + length - suffix, SUFFIX) == 0;
}

/* What is on the list, and its size in all. False: memory ran out. */
static bool find_entries(const struct cache *cache, DIR *folder, struct old_list *found,
                         uint64_t *total)
{
    struct stat info;
    for (const struct dirent *item; (item = readdir(folder)) != NULL;) {
        if (fstatat(cache->folder, item->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(info.st_mode))
            continue;
        if (strstr(item->d_name, SUFFIX TEMPORARY) &&
            time(NULL) - info.st_mtim.tv_sec > FRESH_SECONDS)
            unlinkat(cache->folder, item->d_name, 0);
        if (!is_entry(item->d_name))
            continue;
        struct old entry = {.time = info.st_mtim, .size = (uint64_t)info.st_size};
        memcpy(entry.name, item->d_name, strlen(item->d_name) + 1);
        *total += entry.size;
        if (!vec_push(&found->entries, entry))
            return false;
    }
    return true;
}

void cache_trim(const struct cache *cache, const tssa_allocator *allocator, uint64_t most)
{
    const int copy =
        cache->folder < 0 ? -1 : openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);
    struct old_list old;
    uint64_t total = 0;
    if (!folder) {
        if (copy >= 0)
            close(copy);
        return;
    }
    vec_init(&old.entries, allocator);
    if (find_entries(cache, folder, &old, &total) && total > most) {
        qsort(old.entries.data, old.entries.count, sizeof(struct old), compare_old);
        for (size_t i = 0; i < old.entries.count && total > most / 4 * 3; i++) {
            unlinkat(cache->folder, old.entries.data[i].name, 0);
            total -= old.entries.data[i].size;
        }
    }
    vec_free(&old.entries);
    closedir(folder);
}
