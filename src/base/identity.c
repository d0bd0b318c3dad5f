/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>

#include "base/file.h"

bool file_identify(const char *path, struct file_identity *identity)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    *identity = (struct file_identity){.device = (uint64_t)info.st_dev,
                                       .inode = (uint64_t)info.st_ino,
                                       .size = (uint64_t)info.st_size,
                                       .seconds = (uint64_t)info.st_ctim.tv_sec,
                                       .nanoseconds = (uint64_t)info.st_ctim.tv_nsec};
    return true;
}
