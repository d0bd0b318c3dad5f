/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/kernel_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *in_folder(const char *folder, const char *rest, char *room, size_t size)
{
    int length = -1;
    if (folder && folder[0] == '/') /* what is relative is not valid, the specification says */
        length = snprintf(room, size, "%s%s", folder, rest);
    return length > 0 && (size_t)length < size ? room : NULL;
}

const char *kernel_cache_folder(const char *given, char *room, size_t size)
{
    if (given)
        return strcmp(given, "off") == 0 ? NULL : given;
    const char *folder = in_folder(getenv("XDG_CACHE_HOME"), "/tssa", room, size);
    return folder ? folder : in_folder(getenv("HOME"), "/.cache/tssa", room, size);
}
