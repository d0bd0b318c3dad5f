/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf messages on their way out, whose large payloads stay where they are.
 *
 * The bytes of a message are in one buffer; the elements of large tensors are left out of it and
 * only noted, with the place where they belong. So a model is written with little more memory than
 * it takes without its weights.
 *
 * Failure is sticky, as of struct text: memory that ran out is told by output_failed, once, at the
 * end.
 */
#ifndef TSSA_ONNX_OUTPUT_H
#define TSSA_ONNX_OUTPUT_H

#include "base/text.h"
#include "base/value.h"
#include "base/vec.h"

/* Takes the next bytes of a file. */
struct output_sink {
    tssa_status *(*write)(void *context, const void *data, size_t size);
    void *context;
};

/* A tensor whose elements stand before byte `at` of the buffer. */
struct output_payload {
    size_t at;
    const struct tensor *tensor;
    size_t size; /* in the file */
};

struct output {
    struct text bytes;
    VEC(struct output_payload) payloads;
    size_t payload_bytes;
};

/* A message or bytes field whose length is not known yet. */
struct output_mark {
    size_t at, payload, payload_bytes;
};

void output_init(struct output *output, const tssa_allocator *allocator);
void output_free(struct output *output);
bool output_failed(const struct output *output);

/* What is written in between becomes the field's content. */
struct output_mark output_open(struct output *output, uint32_t field);
void output_close(struct output *output, struct output_mark mark);

/* NULL and "" are left out. */
void output_string(struct output *output, uint32_t field, const char *string);
void output_float(struct output *output, uint32_t field, float value);
/* raw_data: a field with the elements of a tensor that is not of strings; `size`: see
 * dtype_file_bytes. */
void output_elements(struct output *output, uint32_t field, const struct tensor *tensor,
                     size_t size);

/* The bytes that output_write gives. */
size_t output_size(const struct output *output);
tssa_status *output_write(const struct output *output, const struct output_sink *sink);
/* The elements of a tensor as raw_data holds them. */
tssa_status *output_write_elements(const struct tensor *tensor, const struct output_sink *sink);

#endif
