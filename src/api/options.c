/* SPDX-License-Identifier: Apache-2.0 */
#include "api/options.h"

#include <stdbool.h>
#include <string.h>

/* Larger is no options struct: struct_size was not set. */
#define MAX_OPTIONS_SIZE 4096

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

tssa_status *options_read(const char *type, const void *given, size_t known, void *out)
{
    size_t size = known;
    memset(out, 0, known);
    if (given)
        memcpy(&size, given, sizeof size);
    if (size < sizeof size || size > MAX_OPTIONS_SIZE)
        return ERROR(TSSA_INVALID_ARGUMENT, "%s.struct_size is %zu where sizeof(%s) is wanted",
                     type, size, type);
    if (size > known && !is_zero((const unsigned char *)given + known, size - known))
        return ERROR(TSSA_INVALID_ARGUMENT,
                     "%s sets what tssa %s does not know: the program was compiled for a newer one",
                     type, TSSA_VERSION);
    if (given)
        memcpy(out, given, size < known ? size : known);
    memcpy(out, &known, sizeof known);
    return NULL;
}
