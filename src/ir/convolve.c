/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/convolve.h"

#include <string.h>

static const char *const names[AFTER_COUNT] = {
    "",
#define AFTER(name, expression) #name,
#include "ir/after.def"
#undef AFTER
};

const char *convolve_after_name(enum convolve_after after)
{
    return names[after];
}

enum convolve_after convolve_after_find(const char *name)
{
    int i = 0;
    while (i < AFTER_COUNT && strcmp(names[i], name) != 0)
        i++;
    return (enum convolve_after)i;
}
