/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors, sequences, maps and optionals between ONNX's files and values in memory.
 *
 * Which field of a TensorProto holds the data follows from its element type (ONNX 1.22.0,
 * onnx.proto): raw_data for any type but STRING, else one typed field, in which the small types
 * share int32_data. Sizes are checked against the dims before memory is taken.
 */
#ifndef TSSA_ONNX_TENSOR_PROTO_H
#define TSSA_ONNX_TENSOR_PROTO_H

#include "base/text.h"
#include "base/value.h"
#include "onnx/wire.h"

/* ---- Values in files of their own (test data) ------------------------------------------------ */

/* What a file is expected to hold; it does not say itself whether it is a tensor or a sequence. */
struct onnx_value_type {
    tssa_kind kind;   /* of the value, or of what the optional may hold; NONE reads as TENSOR */
    bool is_optional; /* the file is an OptionalProto */
    tssa_dtype dtype; /* of an empty sequence, which does not tell; may be UNDEFINED */
};

/* The value owns all of its memory. */
tssa_status *onnx_read_value(const tssa_allocator *allocator, const void *data, size_t size,
                             const struct onnx_value_type *expected, struct value *value);

/* Appends the file form of a value. `name` may be NULL. With `is_optional` it is an OptionalProto,
 * which is the only form that an empty optional (TSSA_KIND_NONE) has. */
tssa_status *onnx_write_value(const struct value *value, bool is_optional, const char *name,
                              struct text *out);

/* ---- For the importer ------------------------------------------------------------------------ */

/* Where the elements of a tensor are. */
struct tensor_source {
    enum tensor_source_kind {
        TENSOR_SOURCE_NONE,    /* no elements */
        TENSOR_SOURCE_BYTES,   /* as in raw_data */
        TENSOR_SOURCE_INT32,   /* one entry per element, or per byte of packed elements */
        TENSOR_SOURCE_UINT64,  /* the same, wider */
        TENSOR_SOURCE_VARINTS, /* the same, still encoded */
        TENSOR_SOURCE_STRINGS
    } kind;
    const void *data;
    size_t size;        /* bytes (BYTES, VARINTS), or entries */
    bool in_file;       /* `data` points into the bytes that were given to wire_unpack */
    size_t string_size; /* of all strings together */
};

/* Element type and dims, checked, without data: tensor->data is NULL. */
tssa_status *onnx_tensor_header(const Onnx__TensorProto *proto, struct tensor *tensor);
/* Finds the data and checks its size. External data is an error: see onnx/external.h. */
tssa_status *onnx_tensor_locate(const struct wire_file *file, const Onnx__TensorProto *proto,
                                const struct tensor *tensor, struct tensor_source *source);
/* The same for bytes in the form of raw_data. */
tssa_status *onnx_tensor_locate_bytes(const struct tensor *tensor, const void *data, size_t size,
                                      struct tensor_source *source);
/* The name of a field that holds data, NULL when there is none. */
const char *onnx_tensor_data_field(const struct wire_file *file, const Onnx__TensorProto *proto);
/* Whether `source` already is what memory would hold, so that a tensor may point to it. */
bool onnx_tensor_can_borrow(const struct tensor *tensor, const struct tensor_source *source);
/* Fills `elements` (tensor_bytes of them, aligned); the text of strings goes to `text`
 * (source->string_size bytes). */
void onnx_tensor_read(const struct tensor *tensor, const struct tensor_source *source,
                      void *elements, char *text);

#endif
