/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking protobuf messages from bytes that nobody vouches for.
 *
 * protobuf-c has no limit on nesting, copies every bytes field and checks no text. So a scan of the
 * wire format comes first: it checks every length, limits nesting and the number of messages,
 * demands UTF-8 without NULs in names, and writes a canonical copy of the message in which the
 * payloads of tensors (raw_data, and packed typed data) from WIRE_SPAN_MIN bytes on are replaced by
 * a reference to where they lie in the original. protobuf-c then unpacks the copy into an arena.
 * Unknown fields, and known ones that carry nothing tssa keeps (training information, denotations),
 * are dropped.
 *
 * Wire format: https://protobuf.dev/programming-guides/encoding/. Field types come from the
 * descriptors that protoc-c makes from onnx.proto.
 */
#ifndef TSSA_ONNX_WIRE_H
#define TSSA_ONNX_WIRE_H

#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"
#include "base/vec.h"
#include "onnx/onnx.pb-c.h"

/* Levels of messages below the outermost one: Google's parsers stop there too. */
#define WIRE_MAX_DEPTH 100
/* A message of 2 bytes in a file becomes a struct of 200: this keeps a hostile file's memory in
 * bounds, at several times what a graph of 500,000 nodes needs. */
#define WIRE_MAX_MESSAGES 8000000
/* Payloads below this size are copied. */
#define WIRE_SPAN_MIN 1024

/* A payload that stayed where it was. */
struct wire_span {
    uint32_t field; /* of TensorProto */
    const uint8_t *data;
    size_t size;
};

struct wire_file {
    struct arena arena; /* everything that was unpacked */
    VEC(struct wire_span) spans;
    VEC(struct wire_span) functions; /* the definitions, as they lie in the original */
    uint32_t dropped;                /* fields that were there: see wire_dropped */
};

void wire_init(struct wire_file *file, const tssa_allocator *allocator);
void wire_free(struct wire_file *file);

/* `data` must outlive the file's spans. *message lives in the file's arena; it is of the type that
 * the descriptor says. May be called several times. */
tssa_status *wire_unpack(struct wire_file *file, const ProtobufCMessageDescriptor *descriptor,
                         const void *data, size_t size, ProtobufCMessage **message);

/* What the file held and is not unpacked, for people: *index is 0 at first. NULL: nothing more. */
const char *wire_dropped(const struct wire_file *file, size_t *index);

/* Where the payload of this field of the tensor lies in the original bytes; NULL when protobuf-c
 * holds it (or nothing does). */
const struct wire_span *wire_tensor_span(const struct wire_file *file,
                                         const Onnx__TensorProto *tensor, uint32_t field);

/*
 * Reads a varint from [*at, end) and advances *at; false when it is cut off or longer than 64 bits.
 */
bool wire_read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value);

/* Writing, for files that are simple enough to need no structs. */
void wire_put_varint(struct text *out, uint64_t value);
void wire_put_int(struct text *out, uint32_t field, int64_t value);
/* Bytes, a string, or a message that is already encoded. */
void wire_put_bytes(struct text *out, uint32_t field, const void *data, size_t size);

#endif
