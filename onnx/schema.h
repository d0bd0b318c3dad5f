/* SPDX-License-Identifier: Apache-2.0 */
/* What operators of ai.onnx take, version by version: schema.def. */
#ifndef TSSA_ONNX_SCHEMA_H
#define TSSA_ONNX_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types beside element types; see schema.def. */
#define SCHEMA_SEQUENCE ((uint32_t)1 << 27)
#define SCHEMA_OPTIONAL ((uint32_t)1 << 28)
/* And of an input: it may be absent. */
#define SCHEMA_ABSENT ((uint32_t)1 << 29)
#define SCHEMA_VARIADIC 255

struct schema {
    const char *op;
    uint8_t version, min_inputs, max_inputs, min_outputs, max_outputs;
    uint8_t n_input_types, n_output_types; /* at least 1 */
    const char *attributes;
    const uint32_t *input_types, *output_types;
};

/* The row of a version; NULL when there is none. */
const struct schema *schema_find(const char *op, int version);
/* The version that an import of `opset` binds to; 0: unknown, or younger. */
int schema_bind(const char *op, int64_t opset);
bool schema_has_attribute(const struct schema *schema, const char *name);

#endif
