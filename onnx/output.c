/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with payloads; see output.h. */
#include "onnx/output.h"

#include <string.h>

#include "base/dtype.h"
#include "onnx/wire.h"

/* Elements below this size are copied into the buffer. */
#define PAYLOAD_MIN 1024
/* Elements that are packed on the way, at a time; a multiple of what a byte holds. */
#define PACKED_PIECE 4096

enum { WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

void output_init(struct output *output, const tssa_allocator *allocator)
{
    text_init(&output->bytes, allocator);
    vec_init(&output->payloads, allocator);
    output->payload_bytes = 0;
}

void output_free(struct output *output)
{
    text_free(&output->bytes);
    vec_free(&output->payloads);
}

bool output_failed(const struct output *output)
{
    return output->bytes.failed;
}

size_t output_size(const struct output *output)
{
    return output->bytes.size + output->payload_bytes;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

struct output_mark output_open(struct output *output, uint32_t field)
{
    wire_put_varint(&output->bytes, (uint64_t)field << 3 | WIRE_BYTES);
    return (struct output_mark){output->bytes.size, output->payloads.count, output->payload_bytes};
}

void output_close(struct output *output, struct output_mark mark)
{
    struct text *bytes = &output->bytes;
    size_t inside = bytes->size - mark.at;
    wire_put_varint(bytes, inside + (output->payload_bytes - mark.payload_bytes));
    if (bytes->failed)
        return;
    /* The length stands behind the content: it belongs before. */
    char length[10];
    size_t size = bytes->size - mark.at - inside;
    memcpy(length, bytes->data + mark.at + inside, size);
    memmove(bytes->data + mark.at + size, bytes->data + mark.at, inside);
    memcpy(bytes->data + mark.at, length, size);
    for (size_t i = mark.payload; i < output->payloads.count; i++)
        output->payloads.data[i].at += size;
}

void output_string(struct output *output, uint32_t field, const char *string)
{
    if (string && string[0])
        wire_put_bytes(&output->bytes, field, string, strlen(string));
}

void output_float(struct output *output, uint32_t field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                              (uint8_t)(bits >> 24)};
    wire_put_varint(&output->bytes, (uint64_t)field << 3 | WIRE_FIXED32);
    text_append(&output->bytes, bytes, sizeof bytes);
}

static tssa_status *append_bytes(void *context, const void *data, size_t size)
{
    text_append(context, data, size);
    return NULL;
}

void output_elements(struct output *output, uint32_t field, const struct tensor *tensor,
                     size_t size)
{
    struct output_mark mark = output_open(output, field);
    if (size < PAYLOAD_MIN) {
        const struct output_sink copy = {append_bytes, &output->bytes};
        tssa_status_free(output_write_elements(tensor, &copy)); /* the sink does not fail */
    } else {
        const struct output_payload payload = {output->bytes.size, tensor, size};
        if (!vec_push(&output->payloads, payload))
            output->bytes.failed = true;
        output->payload_bytes += size;
    }
    output_close(output, mark);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static tssa_status *write_packed(const struct tensor *tensor, const struct output_sink *sink)
{
    uint8_t packed[PACKED_PIECE];
    const uint8_t *elements = tensor->data;
    size_t count = tensor_count(tensor);
    for (size_t done = 0; done < count; done += PACKED_PIECE) {
        size_t piece = count - done < PACKED_PIECE ? count - done : PACKED_PIECE, size = 0;
        if (!dtype_file_bytes(tensor->dtype, piece, &size))
            return ERROR(TSSA_LIMIT, "a tensor is too large for a file");
        dtype_pack(tensor->dtype, elements + done, piece, packed);
        TRY(sink->write(sink->context, packed, size));
    }
    return NULL;
}

tssa_status *output_write_elements(const struct tensor *tensor, const struct output_sink *sink)
{
    if (dtype_info(tensor->dtype)->file_bits < 8)
        return write_packed(tensor, sink);
    size_t size = tensor_bytes(tensor);
    return size ? sink->write(sink->context, tensor->data, size) : NULL;
}

tssa_status *output_write(const struct output *output, const struct output_sink *sink)
{
    const char *bytes = output->bytes.data;
    size_t done = 0;
    for (size_t i = 0; i < output->payloads.count; i++) {
        const struct output_payload *payload = &output->payloads.data[i];
        if (payload->at > done)
            TRY(sink->write(sink->context, bytes + done, payload->at - done));
        TRY(output_write_elements(payload->tensor, sink));
        done = payload->at;
    }
    return done < output->bytes.size
               ? sink->write(sink->context, bytes + done, output->bytes.size - done)
               : NULL;
}
