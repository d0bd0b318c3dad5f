/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/node_attrs.h"

#include <string.h>

struct ir_attr *node_attrs_find(const node_attrs *attrs, const char *name)
{
    for (size_t i = 0; i < attrs->count; i++)
        if (strcmp(attrs->data[i].name, name) == 0)
            return &attrs->data[i];
    return NULL;
}

void node_attrs_drop(node_attrs *attrs, const char *name)
{
    struct ir_attr *attr = node_attrs_find(attrs, name);
    if (!attr)
        return;
    size_t after = attrs->count - 1 - (size_t)(attr - attrs->data);
    memmove(attr, attr + 1, after * sizeof *attr);
    attrs->count--;
}

int64_t node_attrs_int(const node_attrs *attrs, const char *name, int64_t fallback)
{
    const struct ir_attr *attr = node_attrs_find(attrs, name);
    return attr && attr->kind == IR_ATTR_INT ? attr->i : fallback;
}

static bool is_bytes(const struct ir_attr *attr, const char *text, size_t size)
{
    return attr && attr->kind == IR_ATTR_STRING && attr->s.size == size &&
           memcmp(attr->s.data, text, size) == 0;
}

bool attr_is_string(const struct ir_attr *attr, const char *text)
{
    return is_bytes(attr, text, strlen(text));
}

const char *attr_respelled(const struct ir_attr *attr, const char *pair)
{
    const char *there = strchr(pair, '=') + 1;
    return is_bytes(attr, pair, (size_t)(there - pair) - 1) ? there : NULL;
}

bool scales_shrink(const struct tensor *scales)
{
    const float *data = scales && scales->dtype == TSSA_FLOAT ? scales->data : NULL;
    for (size_t i = 0; data && i < tensor_count(scales); i++)
        if (data[i] < 1)
            return true;
    return false;
}

int node_operand_rank(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR ? value->type->rank : -1;
}
