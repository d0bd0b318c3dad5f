/* SPDX-License-Identifier: Apache-2.0 */
#include "common/xmalloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory)
{
    if (!memory) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

void *xcalloc(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *memory, size_t size)
{
    return checked(realloc(memory, size ? size : 1));
}

char *xstrdup(const char *string)
{
    return checked(strdup(string));
}

char *xprintf(const char *format, ...)
{
    char *string = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&string, format, arguments);
    va_end(arguments);
    return checked(length < 0 ? NULL : string);
}
