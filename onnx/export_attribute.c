/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes, tensors, types and values; field numbers as in onnx.proto. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "onnx/export.h"
#include "onnx/wire.h"

/* Offsets of external data: pages for what is worth mapping, cache lines for the rest. */
#define PAGE 4096
#define PAGED_FROM ((size_t)1 << 20)

/* ---- Tensors --------------------------------------------------------------------------------- */

static tssa_status *place_external(struct export_external *external, const struct tensor *tensor,
                                   size_t size, uint64_t *offset)
{
    const struct external_tensor *placed =
        map_get(&external->offsets, &tensor->data, sizeof tensor->data);
    if (placed && placed->size == size) {
        *offset = placed->offset;
        return NULL;
    }
    uint64_t align = size >= PAGED_FROM ? PAGE : TENSOR_ALIGNMENT;
    const struct external_tensor made = {tensor, (external->size + align - 1) / align * align,
                                         size};
    if (!vec_push(&external->tensors, made))
        return status_out_of_memory();
    external->size = made.offset + size;
    *offset = made.offset;
    return NULL;
}

static tssa_status *put_external(struct export *export, const struct tensor *tensor, size_t size)
{
    struct output *out = &export->out;
    uint64_t offset;
    char text[32];
    TRY(place_external(&export->external, tensor, size, &offset));
    export_metadata(out, 13, "location", export->external.location);
    snprintf(text, sizeof text, "%" PRIu64, offset);
    export_metadata(out, 13, "offset", text);
    snprintf(text, sizeof text, "%zu", size);
    export_metadata(out, 13, "length", text);
    wire_put_int(&out->bytes, 14, 1);
    return NULL;
}

static void put_strings(struct output *out, const struct tensor *tensor)
{
    const tssa_string *strings = tensor->data;
    for (size_t i = 0; i < tensor_count(tensor); i++)
        wire_put_bytes(&out->bytes, 6, strings[i].data, strings[i].size);
}

tssa_status *export_tensor(struct export *export, uint32_t field, const struct tensor *tensor,
                           const char *name, const struct ir_notes *notes, bool external)
{
    struct output *out = &export->out;
    struct output_mark mark = output_open(out, field);
    size_t size = 0;
    for (int i = 0; i < tensor->rank; i++)
        wire_put_int(&out->bytes, 1, tensor->dims[i]);
    wire_put_int(&out->bytes, 2, tensor->dtype);
    output_string(out, 8, name);
    export_notes(out, notes, 12, 16);
    if (tensor->dtype == TSSA_STRING)
        put_strings(out, tensor);
    else if (!dtype_file_bytes(tensor->dtype, tensor_count(tensor), &size))
        return ERROR(TSSA_LIMIT, "tensor \"%s\" is too large for a file", name ? name : "");
    else if (external && export->external.location && size >= export->external.threshold)
        TRY(put_external(export, tensor, size));
    else
        output_elements(out, 9, tensor, size);
    output_close(out, mark);
    return NULL;
}

/* ---- Types ----------------------------------------------------------------------------------- */

static bool has_fresh(const struct dim *dim)
{
    if (dim->kind == DIM_SYMBOL)
        return dim_is_fresh(dim);
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (has_fresh(dim->terms[i]))
            return true;
    return false;
}

/* An expression is written as its text: equal texts are equal dims, which is what a dim_param says.
 * NULL: unknown. */
static tssa_status *put_dim(struct export *export, const struct dim *dim)
{
    struct output *out = &export->out;
    struct output_mark mark = output_open(out, 1);
    int64_t value;
    if (dim_is_const(dim, &value)) {
        if (value >= 0)
            wire_put_int(&out->bytes, 1, value);
    } else if (!dim) {
        /* nothing is said */
    } else if (dim->kind == DIM_SYMBOL) {
        if (!dim_is_fresh(dim))
            output_string(out, 2, dim->name);
    } else if (!has_fresh(dim)) {
        struct text text;
        text_init(&text, export->allocator);
        dim_print(dim, &text);
        const char *printed = text_string(&text);
        output_string(out, 2, printed);
        text_free(&text);
        TRY_ALLOC(printed);
    }
    output_close(out, mark);
    return NULL;
}

/* A tensor type, or a sparse one: only the field's number differs. */
static tssa_status *put_tensor_type(struct export *export, uint32_t field,
                                    const struct ir_type *type)
{
    struct output *out = &export->out;
    struct output_mark tensor = output_open(out, field);
    wire_put_int(&out->bytes, 1, type->dtype);
    if (type->rank >= 0) {
        struct output_mark shape = output_open(out, 2);
        for (int i = 0; i < type->rank; i++)
            TRY(put_dim(export, type->dims[i]));
        output_close(out, shape);
    }
    output_close(out, tensor);
    return NULL;
}

static tssa_status *put_opaque_type(struct export *export, const struct ir_type *type)
{
    struct output *out = &export->out;
    if (type->element)
        return put_tensor_type(export, 8, type->element);
    const char *domain = type->name ? type->name : "\n", *end = strchr(domain, '\n');
    struct output_mark mark = output_open(out, 7);
    if (end != domain)
        wire_put_bytes(&out->bytes, 1, domain, (size_t)(end - domain));
    output_string(out, 2, end + 1);
    output_close(out, mark);
    return NULL;
}

static tssa_status *put_type(struct export *export, const struct ir_type *type)
{
    static const uint8_t fields[] = {[TYPE_SEQUENCE] = 4, [TYPE_MAP] = 5, [TYPE_OPTIONAL] = 9};
    struct output *out = &export->out;
    if (type->kind == TYPE_TENSOR)
        return put_tensor_type(export, 1, type);
    if (type->kind == TYPE_OPAQUE)
        return put_opaque_type(export, type);
    if (type->kind == TYPE_UNKNOWN)
        return NULL;
    struct output_mark mark = output_open(out, fields[type->kind]);
    if (type->kind == TYPE_MAP)
        wire_put_int(&out->bytes, 1, type->dtype);
    if (export_type_known(type->element))
        TRY(export_type(export, type->kind == TYPE_MAP ? 2 : 1, type->element));
    output_close(out, mark);
    return NULL;
}

bool export_type_known(const struct ir_type *type)
{
    while (type->kind == TYPE_SEQUENCE || type->kind == TYPE_OPTIONAL)
        type = type->element;
    if (type->kind == TYPE_OPAQUE)
        return type->element || type->name;
    return type->kind == TYPE_MAP || (type->kind == TYPE_TENSOR && type->dtype != TSSA_UNDEFINED);
}

tssa_status *export_type(struct export *export, uint32_t field, const struct ir_type *type)
{
    struct output_mark mark = output_open(&export->out, field);
    TRY(put_type(export, type));
    output_close(&export->out, mark);
    return NULL;
}

/* ---- Values ---------------------------------------------------------------------------------- */

tssa_status *export_noted_info(struct export *export, uint32_t field, const char *name,
                               const struct ir_type *type, const struct ir_notes *notes)
{
    struct output *out = &export->out;
    struct output_mark mark = output_open(out, field);
    output_string(out, 1, name);
    if (type && export_type_known(type))
        TRY(export_type(export, 2, type));
    export_notes(out, notes, 3, 4);
    output_close(out, mark);
    return NULL;
}

tssa_status *export_value_info(struct export *export, uint32_t field, const char *name,
                               const struct ir_type *type)
{
    return export_noted_info(export, field, name, type, map_get_str(&export->value_notes, name));
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static tssa_status *put_float(struct export *export, const struct ir_attr *attr)
{
    output_float(&export->out, 2, attr->f);
    return NULL;
}

static tssa_status *put_int(struct export *export, const struct ir_attr *attr)
{
    wire_put_int(&export->out.bytes, 3, attr->i);
    return NULL;
}

static tssa_status *put_string(struct export *export, const struct ir_attr *attr)
{
    wire_put_bytes(&export->out.bytes, 4, attr->s.data, attr->s.size);
    return NULL;
}

static tssa_status *put_tensor(struct export *export, const struct ir_attr *attr)
{
    return export_tensor(export, 5, attr->tensor, NULL, NULL, false);
}

static tssa_status *put_type_attr(struct export *export, const struct ir_attr *attr)
{
    return export_type(export, 14, attr->type);
}

static tssa_status *put_floats(struct export *export, const struct ir_attr *attr)
{
    for (size_t i = 0; i < attr->count; i++)
        output_float(&export->out, 7, attr->floats[i]);
    return NULL;
}

static tssa_status *put_ints(struct export *export, const struct ir_attr *attr)
{
    for (size_t i = 0; i < attr->count; i++)
        wire_put_int(&export->out.bytes, 8, attr->ints[i]);
    return NULL;
}

static tssa_status *put_string_list(struct export *export, const struct ir_attr *attr)
{
    for (size_t i = 0; i < attr->count; i++)
        wire_put_bytes(&export->out.bytes, 9, attr->strings[i].data, attr->strings[i].size);
    return NULL;
}

static tssa_status *put_tensors(struct export *export, const struct ir_attr *attr)
{
    for (size_t i = 0; i < attr->count; i++)
        TRY(export_tensor(export, 10, &attr->tensors[i], NULL, NULL, false));
    return NULL;
}

static tssa_status *put_types(struct export *export, const struct ir_attr *attr)
{
    for (size_t i = 0; i < attr->count; i++)
        TRY(export_type(export, 15, attr->types[i]));
    return NULL;
}

static const struct {
    uint8_t type; /* AttributeType */
    tssa_status *(*put)(struct export *export, const struct ir_attr *attr);
} kinds[] = {
    [IR_ATTR_FLOAT] = {1, put_float},     [IR_ATTR_INT] = {2, put_int},
    [IR_ATTR_STRING] = {3, put_string},   [IR_ATTR_TENSOR] = {4, put_tensor},
    [IR_ATTR_FLOATS] = {6, put_floats},   [IR_ATTR_INTS] = {7, put_ints},
    [IR_ATTR_TENSORS] = {9, put_tensors}, [IR_ATTR_STRINGS] = {8, put_string_list},
    [IR_ATTR_TYPE] = {13, put_type_attr}, [IR_ATTR_TYPES] = {14, put_types},
};

tssa_status *export_attribute(struct export *export, uint32_t field, const struct ir_attr *attr)
{
    if ((size_t)attr->kind >= sizeof kinds / sizeof *kinds || !kinds[attr->kind].put)
        return ERROR(TSSA_UNSUPPORTED, "attribute \"%s\" is of a kind that ONNX does not have",
                     attr->name);
    struct output_mark mark = output_open(&export->out, field);
    output_string(&export->out, 1, attr->name);
    TRY(kinds[attr->kind].put(export, attr));
    wire_put_int(&export->out.bytes, 20, kinds[attr->kind].type);
    output_close(&export->out, mark);
    return NULL;
}
