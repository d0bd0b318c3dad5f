/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether something can be put beside what is at `path`. */
static bool can_write_beside(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        slash[1] = '\0';
    return access(slash ? path : ".", W_OK | X_OK) == 0;
}

enum exit_code place_check_file(const char *path)
{
    struct stat about;
    bool exists = path && stat(path, &about) == 0;
    if (!path || (exists && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)))
        return EXIT_OK;
    if (exists && S_ISDIR(about.st_mode)) {
        complain("%s: it is a folder, no place for a file", path);
        return EXIT_FILE;
    }
    /* A file is replaced where it is, which may be elsewhere than a link to it. */
    char *place = exists ? realpath(path, NULL) : strdup(path);
    bool good = !place || can_write_beside(place);
    if (!good)
        complain("cannot write %s: %s", path, strerror(errno));
    free(place);
    return good ? EXIT_OK : EXIT_FILE;
}

enum exit_code place_check_folder(const char *path)
{
    struct stat about;
    if (!path)
        return EXIT_OK;
    bool exists = stat(path, &about) == 0, good;
    if (exists && !S_ISDIR(about.st_mode)) {
        complain("%s: it is no folder", path);
        return EXIT_FILE;
    }
    if (exists) {
        good = access(path, W_OK | X_OK) == 0;
    } else {
        char *place = strdup(path);
        size_t end = place ? strlen(place) : 0;
        while (end > 1 && place[end - 1] == '/')
            place[--end] = '\0';
        good = !place || can_write_beside(place);
        free(place);
    }
    if (!good)
        complain("cannot %s the folder %s: %s", exists ? "write to" : "make", path,
                 strerror(errno));
    return good ? EXIT_OK : EXIT_FILE;
}
