/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files that a killed process left beside a target. Their names tell the process; it
 * holds a lock on the file as long as it lives, which also tells of processes whose numbers mean
 * nothing here (another container's).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* The number of the process that made "BASE.tmpPID-N"; 0 when the name is another. */
static pid_t maker_of(const char *name, const char *base)
{
    size_t size = strlen(base);
    char *end;
    if (strncmp(name, base, size) != 0 || strncmp(name + size, ".tmp", 4) != 0 ||
        !isdigit((unsigned char)name[size + 4]))
        return 0;
    long pid = strtol(name + size + 4, &end, 10);
    if (pid <= 0 || pid > INT32_MAX || *end != '-' || !isdigit((unsigned char)end[1]))
        return 0;
    for (end++; isdigit((unsigned char)*end); end++)
        ;
    return *end ? 0 : (pid_t)pid;
}

static bool is_locked(int folder, const char *name)
{
    struct stat info;
    int descriptor =
        openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return true; /* or not ours to judge */
    bool locked = fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) ||
                  flock(descriptor, LOCK_EX | LOCK_NB) != 0;
    close(descriptor);
    return locked;
}

void file_remove_stale(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t length = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    char *folder = length ? strndup(path, length) : strdup(".");
    DIR *entries = folder && *base ? opendir(folder) : NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        pid_t pid = maker_of(entry->d_name, base);
        if (pid && kill(pid, 0) != 0 && errno == ESRCH && !is_locked(dirfd(entries), entry->d_name))
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries)
        closedir(entries);
    free(folder);
}
