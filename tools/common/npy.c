/* SPDX-License-Identifier: Apache-2.0 */
/* The header is a Python dict literal in a fixed style; this reads any order of its three keys. */
#include "tools/common/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/text.h"

static const char magic[6] = "\x93NUMPY";

struct npy_header {
    char descr[16]; /* "<f4" */
    bool fortran;
    int rank;
    int64_t dims[TSSA_MAX_RANK];
};

/* ---- Parsing the header ---------------------------------------------------------------------- */

struct cursor {
    const char *at, *end;
};

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
}

static bool take(struct cursor *c, const char *word)
{
    size_t size = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0)
        return false;
    c->at += size;
    return true;
}

static bool take_string(struct cursor *c, char *text, size_t size)
{
    size_t used = 0;
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    char quote = *c->at++;
    while (c->at < c->end && *c->at != quote) {
        if (used + 1 == size)
            return false;
        text[used++] = *c->at++;
    }
    text[used] = '\0';
    return c->at < c->end && c->at++;
}

static bool take_dim(struct cursor *c, int64_t *dim)
{
    skip_space(c);
    if (c->at == c->end || *c->at < '0' || *c->at > '9')
        return false;
    *dim = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (!i64_mul(*dim, 10, dim) || !i64_add(*dim, *c->at - '0', dim))
            return false;
    }
    if (c->at < c->end && *c->at == 'L') /* written by Python 2 */
        c->at++;
    return true;
}

static tssa_status *take_shape(struct cursor *c, struct npy_header *header)
{
    if (!take(c, "("))
        return ERROR(TSSA_MALFORMED, "no valid .npy file: its shape is no tuple");
    for (header->rank = 0; !take(c, ")");) {
        if (header->rank == TSSA_MAX_RANK)
            return ERROR(TSSA_LIMIT, "the array has more than %d dimensions", TSSA_MAX_RANK);
        if (!take_dim(c, &header->dims[header->rank++]))
            return ERROR(TSSA_MALFORMED, "no valid .npy file: its shape holds no number");
        if (!take(c, ",") && !(c->at < c->end && *c->at == ')'))
            return ERROR(TSSA_MALFORMED, "no valid .npy file: its shape does not end");
    }
    return NULL;
}

static tssa_status *parse_dict(struct cursor *c, struct npy_header *header)
{
    bool descr = false, order = false, shape = false;
    char key[16];
    if (!take(c, "{"))
        return ERROR(TSSA_MALFORMED, "no valid .npy file: its header is no dict");
    while (!take(c, "}")) {
        if (!take_string(c, key, sizeof key) || !take(c, ":"))
            return ERROR(TSSA_MALFORMED, "no valid .npy file: its header is cut off or damaged");
        if (strcmp(key, "descr") == 0) {
            if (take(c, "["))
                return ERROR(TSSA_UNSUPPORTED, "structured arrays have no ONNX type");
            descr = take_string(c, header->descr, sizeof header->descr);
        } else if (strcmp(key, "fortran_order") == 0) {
            header->fortran = take(c, "True");
            order = header->fortran || take(c, "False");
        } else if (strcmp(key, "shape") == 0) {
            TRY(take_shape(c, header));
            shape = true;
        } else {
            return ERROR(TSSA_MALFORMED, "no valid .npy file: unknown key '%s' in its header", key);
        }
        take(c, ",");
    }
    if (!descr || !order || !shape)
        return ERROR(TSSA_MALFORMED,
                     "no valid .npy file: its header lacks descr, fortran_order or shape");
    return NULL;
}

/* Leaves the elements in `c`. */
static tssa_status *parse_header(struct cursor *c, struct npy_header *header)
{
    const unsigned char *bytes = (const unsigned char *)c->at;
    size_t size = (size_t)(c->end - c->at);
    if (size < 10 || memcmp(bytes, magic, sizeof magic) != 0)
        return ERROR(TSSA_MALFORMED, "no .npy file: it does not start as one");
    if (bytes[6] < 1 || bytes[6] > 3)
        return ERROR(TSSA_UNSUPPORTED, "version %d of the .npy format is not known", bytes[6]);
    size_t start = bytes[6] == 1 ? 10 : 12, length = bytes[8] | (size_t)bytes[9] << 8;
    if (start == 12 && size >= 12)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (size < start || length > size - start)
        return ERROR(TSSA_MALFORMED, "no valid .npy file: it ends inside its header");
    struct cursor dict = {c->at + start, c->at + start + length};
    c->at = dict.end;
    return parse_dict(&dict, header);
}

/* ---- Reading elements ------------------------------------------------------------------------ */

/* numpy's spelling of an element type; UNDEFINED for one that ONNX lacks. */
static tssa_dtype dtype_from_descr(const char *kind)
{
    if (strcmp(kind, "V1") == 0) /* what ml_dtypes' float8 and int4 arrays are saved as */
        return TSSA_UINT8;
    if (strcmp(kind, "V2") == 0) /* bfloat16 */
        return TSSA_UINT16;
    for (int i = 1; i < TSSA_DTYPE_COUNT; i++) {
        const char *numpy = dtype_info((tssa_dtype)i)->numpy;
        if (numpy && strcmp(numpy, kind) == 0)
            return (tssa_dtype)i;
    }
    return TSSA_UNDEFINED;
}

/* The position in the file of element `i`, counted row by row, of a column-major array. */
static size_t fortran_index(const struct npy_header *header, size_t i)
{
    size_t index = 0, weight = 1;
    int64_t coordinates[TSSA_MAX_RANK] = {0};
    for (int axis = header->rank - 1; axis >= 0; axis--) {
        coordinates[axis] = (int64_t)(i % (size_t)header->dims[axis]);
        i /= (size_t)header->dims[axis];
    }
    for (int axis = 0; axis < header->rank; axis++) {
        index += weight * (size_t)coordinates[axis];
        weight *= (size_t)header->dims[axis];
    }
    return index;
}

/* The tensor has elements, and `c` as many bytes as they need. */
static void read_elements(struct cursor *c, const struct npy_header *header, struct tensor *tensor)
{
    size_t size = dtype_info(tensor->dtype)->size, count = tensor_count(tensor);
    if (!header->fortran || header->rank < 2)
        memcpy(tensor->data, c->at, count * size);
    for (size_t i = 0; header->fortran && header->rank >= 2 && i < count; i++)
        memcpy((char *)tensor->data + i * size, c->at + fortran_index(header, i) * size, size);
    if (tensor->dtype == TSSA_BOOL) {
        for (size_t i = 0; i < count; i++)
            ((uint8_t *)tensor->data)[i] = ((uint8_t *)tensor->data)[i] != 0;
    }
}

/* Appends a character as UTF-8; false for what is no character. */
static bool put_utf8(struct text *text, uint32_t c)
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return false;
    if (c < 0x80) {
        text_putc(text, (char)c);
    } else if (c < 0x800) {
        text_putc(text, (char)(0xc0 | c >> 6));
        text_putc(text, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        text_putc(text, (char)(0xe0 | c >> 12));
        text_putc(text, (char)(0x80 | (c >> 6 & 0x3f)));
        text_putc(text, (char)(0x80 | (c & 0x3f)));
    } else {
        text_putc(text, (char)(0xf0 | c >> 18));
        text_putc(text, (char)(0x80 | (c >> 12 & 0x3f)));
        text_putc(text, (char)(0x80 | (c >> 6 & 0x3f)));
        text_putc(text, (char)(0x80 | (c & 0x3f)));
    }
    return true;
}

/* Elements of `width` UCS-4 characters, padded with zeros. `strings` gets sizes first and, once the
 * text no longer moves, pointers. */
static tssa_status *decode_strings(struct cursor *c, const struct npy_header *header, size_t width,
                                   size_t count, struct text *text, tssa_string *strings)
{
    for (size_t i = 0; i < count; i++) {
        size_t start = text->size, length = width;
        const char *element = c->at + (header->fortran ? fortran_index(header, i) : i) * width * 4;
        uint32_t character;
        for (; length > 0; length--) {
            memcpy(&character, element + (length - 1) * 4, 4);
            if (character)
                break;
        }
        for (size_t k = 0; k < length; k++) {
            memcpy(&character, element + k * 4, 4);
            if (!put_utf8(text, character))
                return ERROR(TSSA_MALFORMED, "element %zu holds no valid character", i);
        }
        strings[i].size = text->size - start;
    }
    if (text->failed)
        return status_out_of_memory();
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        strings[i].data = strings[i].size ? text->data + offset : "";
        offset += strings[i].size;
    }
    return NULL;
}

static tssa_status *read_strings(const tssa_allocator *allocator, struct cursor *c,
                                 const struct npy_header *header, struct value *value)
{
    uint64_t width = 0;
    size_t count, bytes, needed;
    if (sscanf(header->descr + 2, "%9" SCNu64, &width) != 1)
        return ERROR(TSSA_MALFORMED, "no valid .npy file: its strings have no width");
    TRY(tensor_layout(TSSA_STRING, header->rank, header->dims, &count, &bytes));
    if (!size_mul(count, (size_t)width * 4, &needed) || needed > (size_t)(c->end - c->at))
        return ERROR(TSSA_MALFORMED, "the file is too short for its shape");
    struct value borrowed = {.kind = TSSA_KIND_TENSOR};
    TRY(tensor_create(allocator, TSSA_STRING, header->rank, header->dims, &borrowed.tensor));
    struct text text;
    text_init(&text, allocator);
    tssa_status *status =
        decode_strings(c, header, (size_t)width, count, &text, borrowed.tensor.data);
    if (!status) {
        /* Without an owner nothing is shared: the copy gets strings of its own. */
        struct value copied = borrowed;
        copied.tensor.owner = NULL;
        status = value_detach(allocator, &copied, value);
    }
    text_free(&text);
    value_release(&borrowed);
    return status;
}

tssa_status *npy_read(const tssa_allocator *allocator, const void *data, size_t size,
                      struct value *value)
{
    struct npy_header header = {.rank = 0};
    struct cursor c = {data, (const char *)data + size};
    size_t count, bytes;
    TRY(parse_header(&c, &header));
    if (header.descr[0] == '>' && strcmp(header.descr, ">i1") != 0 &&
        strcmp(header.descr, ">u1") != 0)
        return ERROR(TSSA_UNSUPPORTED, "big-endian arrays (%s) are not read", header.descr);
    if (header.descr[0] == '<' && header.descr[1] == 'U')
        return read_strings(allocator, &c, &header, value);
    if (strchr(header.descr, 'O'))
        return ERROR(TSSA_UNSUPPORTED, "arrays of Python objects are not read");
    tssa_dtype dtype = header.descr[0] ? dtype_from_descr(header.descr + 1) : TSSA_UNDEFINED;
    if (dtype == TSSA_UNDEFINED)
        return ERROR(TSSA_UNSUPPORTED, "numpy type '%s' has no ONNX type", header.descr);
    TRY(tensor_layout(dtype, header.rank, header.dims, &count, &bytes));
    if (bytes > (size_t)(c.end - c.at))
        return ERROR(TSSA_MALFORMED, "the file has %zu bytes of elements, its shape needs %zu",
                     (size_t)(c.end - c.at), bytes);
    *value = (struct value){.kind = TSSA_KIND_TENSOR};
    TRY(tensor_create(allocator, dtype, header.rank, header.dims, &value->tensor));
    if (count)
        read_elements(&c, &header, &value->tensor);
    return NULL;
}

/* The low bits of each byte, the sign of the signed types extended. */
static void cut_to_bits(struct tensor *tensor, unsigned bits, bool is_signed)
{
    uint8_t *elements = tensor->data, sign = (uint8_t)(1u << (bits - 1));
    size_t count = tensor_count(tensor);
    for (size_t i = 0; i < count; i++) {
        unsigned low = elements[i] & ((1u << bits) - 1);
        elements[i] = (uint8_t)(is_signed ? (low ^ sign) - sign : low);
    }
}

void npy_reinterpret(struct tensor *tensor, tssa_dtype dtype)
{
    const struct dtype_info *from = dtype_info(tensor->dtype), *to = dtype_info(dtype);
    bool raw =
        tensor->dtype == TSSA_UINT8 || tensor->dtype == TSSA_UINT16 || tensor->dtype == TSSA_INT8;
    if (!raw || to->numpy || to->size != from->size || to->cls == DTYPE_CLASS_NONE)
        return;
    tensor->dtype = dtype;
    if (to->file_bits < 8)
        cut_to_bits(tensor, to->file_bits, to->cls == DTYPE_CLASS_SIGNED);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static tssa_status *write_header(const struct tensor *tensor, const char *descr,
                                 struct file_writer *writer)
{
    char dict[640];
    size_t used = (size_t)snprintf(dict, sizeof dict,
                                   "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < tensor->rank; i++)
        used += (size_t)snprintf(dict + used, sizeof dict - used, "%s%" PRId64, i ? ", " : "",
                                 tensor->dims[i]);
    used += (size_t)snprintf(dict + used, sizeof dict - used, tensor->rank == 1 ? ",), }" : "), }");
    while ((sizeof magic + 4 + used + 1) % 64 != 0)
        dict[used++] = ' ';
    dict[used++] = '\n';
    unsigned char version[4] = {1, 0, (unsigned char)used, (unsigned char)(used >> 8)};
    TRY(file_writer_write(writer, magic, sizeof magic));
    TRY(file_writer_write(writer, version, sizeof version));
    return file_writer_write(writer, dict, used);
}

static uint32_t get_utf8(const unsigned char *s, size_t length)
{
    static const unsigned char first[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = s[0] & first[length];
    for (size_t i = 1; i < length; i++)
        c = c << 6 | (s[i] & 0x3f);
    return c;
}

/* Characters of a string; SIZE_MAX when it is not UTF-8. */
static size_t count_characters(const tssa_string *s)
{
    size_t count = 0;
    for (size_t at = 0; at < s->size; count++) {
        size_t length = utf8_length(s->data + at, s->size - at);
        if (!length)
            return SIZE_MAX;
        at += length;
    }
    return count;
}

static tssa_status *write_strings(const struct tensor *tensor, struct file_writer *writer)
{
    const tssa_string *strings = tensor->data;
    size_t width = 1, count = tensor_count(tensor);
    char descr[32];
    for (size_t i = 0; i < count; i++) {
        size_t characters = count_characters(&strings[i]);
        if (characters == SIZE_MAX)
            return ERROR(TSSA_UNSUPPORTED,
                         "string %zu is not UTF-8: it fits into no .npy file, write .pb", i);
        if (characters > width)
            width = characters;
    }
    snprintf(descr, sizeof descr, "<U%zu", width);
    TRY(write_header(tensor, descr, writer));
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        for (size_t k = 0; k < width; k++) {
            uint32_t c = 0;
            if (at < strings[i].size) {
                size_t length = utf8_length(strings[i].data + at, strings[i].size - at);
                c = get_utf8((const unsigned char *)strings[i].data + at, length);
                at += length;
            }
            TRY(file_writer_write(writer, &c, sizeof c));
        }
    }
    return NULL;
}

tssa_status *npy_write(const struct tensor *tensor, struct file_writer *writer)
{
    const struct dtype_info *info = dtype_info(tensor->dtype);
    char descr[8];
    if (tensor->dtype == TSSA_STRING)
        return write_strings(tensor, writer);
    if (info->numpy)
        snprintf(descr, sizeof descr, "%c%s", info->size == 1 ? '|' : '<', info->numpy);
    else if (info->cls == DTYPE_CLASS_SIGNED)
        snprintf(descr, sizeof descr, "|i1");
    else
        snprintf(descr, sizeof descr, info->size == 1 ? "|u1" : "<u2");
    TRY(write_header(tensor, descr, writer));
    size_t bytes = tensor_bytes(tensor);
    return bytes ? file_writer_write(writer, tensor->data, bytes) : NULL;
}
