/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/made_names.h"

#include <string.h>

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

bool made_value_name(const char *name)
{
    size_t size = strlen(MADE_VALUE);
    return strncmp(name, MADE_VALUE, size) == 0 && name[size] == '_' && is_number(name + size + 1);
}

size_t made_node_base(const char *name)
{
    size_t size = strlen(name), digits = size, suffix = strlen(MADE_NODE_SUFFIX);
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
        digits--;
    if (digits == size || digits <= suffix ||
        memcmp(name + digits - suffix, MADE_NODE_SUFFIX, suffix) != 0)
        return size;
    return digits - suffix;
}
