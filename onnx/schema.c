/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/schema.h"

#include <string.h>

#define TYPES(...) ((const uint32_t[]){__VA_ARGS__})
#define COUNT(types) (sizeof(types) / sizeof(uint32_t))

static const struct schema schemas[] = {
#define SCHEMA(op_, version_, min_in, max_in, min_out, max_out, attributes_, in_types, out_types)  \
    {#op_,        version_, min_in,   max_in, min_out, max_out, COUNT(in_types), COUNT(out_types), \
     attributes_, in_types, out_types},
#include "onnx/schema.def"
#undef SCHEMA
};

#define N_SCHEMAS (sizeof schemas / sizeof *schemas)

/* The first row that is not before (op, version). */
static size_t lower_bound(const char *op, int version)
{
    size_t low = 0, high = N_SCHEMAS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(schemas[middle].op, op);
        if (order < 0 || (order == 0 && schemas[middle].version < version))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct schema *schema_find(const char *op, int version)
{
    size_t at = lower_bound(op, version);
    bool found =
        at < N_SCHEMAS && schemas[at].version == version && strcmp(schemas[at].op, op) == 0;
    return found ? &schemas[at] : NULL;
}

int schema_bind(const char *op, int64_t opset)
{
    size_t at = lower_bound(op, opset < UINT8_MAX ? (int)opset + 1 : UINT8_MAX + 1);
    return at > 0 && strcmp(schemas[at - 1].op, op) == 0 ? schemas[at - 1].version : 0;
}

bool schema_has_attribute(const struct schema *schema, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = schema->attributes; (at = strstr(at, name)) != NULL; at++)
        if (at[-1] == ' ' && (at[size] == ' ' || at[size] == '='))
            return true;
    return false;
}
