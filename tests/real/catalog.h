/* SPDX-License-Identifier: Apache-2.0 */
/* The real models in a folder: NAME/meta.json, NAME/model.onnx, NAME/SET/; and
 * micro-loops/NAME.onnx. */
#ifndef TSSA_REAL_CATALOG_H
#define TSSA_REAL_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

struct real_case {
    char *model; /* "silero_vad_v3_piper"; "micro-loops/scan_add" */
    char *set;   /* "chunk1536"; NULL: a model without data, which must only not fail */
    char *path;  /* of the .onnx file */
    char *folder;
    bool quantized;      /* has QuantizeLinear: reference outputs lie on a grid */
    char **inputs;       /* names of the inputs that in_0, in_1, ... are for; ends with NULL */
    double reference_ms; /* ONNX Runtime with one thread; 0: unknown */
};

struct catalog {
    struct real_case *cases; /* by model */
    size_t count;
};

/* False, with a message on standard error, when a meta.json cannot be read. */
bool catalog_read(const char *folder, struct catalog *catalog);
void catalog_free(struct catalog *catalog);

#endif
