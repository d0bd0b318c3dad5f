/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: values, and references in function bodies. */
#include <string.h>

#include "onnx/import.h"

enum {
    FLOAT = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
    INT = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
    STRING = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING,
    TENSOR = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR,
    GRAPH = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH,
    FLOATS = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS,
    INTS = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
    STRINGS = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS,
    TENSORS = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSORS,
    GRAPHS = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS,
    SPARSE = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR,
    SPARSES = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSORS,
    TYPE = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTO,
    TYPES = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTOS
};

struct bound_attr attribute_resolve(struct scope *scope, const Onnx__AttributeProto *proto)
{
    if (!proto->ref_attr_name || !proto->ref_attr_name[0])
        return (struct bound_attr){proto, scope};
    const struct bound_attr *bound = map_get_str(&scope->frame->attrs, proto->ref_attr_name);
    return bound ? *bound : (struct bound_attr){NULL, scope};
}

int attribute_type(const Onnx__AttributeProto *p)
{
    if (p->has_type && p->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return (int)p->type;
    return p->has_f              ? FLOAT
           : p->has_i            ? INT
           : p->has_s            ? STRING
           : p->t                ? TENSOR
           : p->g                ? GRAPH
           : p->n_floats         ? FLOATS
           : p->n_ints           ? INTS
           : p->n_strings        ? STRINGS
           : p->n_tensors        ? TENSORS
           : p->n_graphs         ? GRAPHS
           : p->sparse_tensor    ? SPARSE
           : p->n_sparse_tensors ? SPARSES
           : p->tp               ? TYPE
           : p->n_type_protos    ? TYPES
                                 : 0;
}

/* Terminated, for those who compare it with strcmp. */
static tssa_status *copy_string(struct import *import, const ProtobufCBinaryData *from,
                                tssa_string *to)
{
    to->size = from->len;
    to->data = arena_string(&import->graph->arena, (const char *)from->data, from->len);
    TRY_ALLOC(to->data);
    return NULL;
}

static tssa_status *copy_strings(struct import *import, const Onnx__AttributeProto *proto,
                                 struct ir_attr *attr)
{
    tssa_string *strings = ARENA_ARRAY(&import->graph->arena, tssa_string, proto->n_strings);
    TRY_ALLOC(strings);
    for (size_t i = 0; i < proto->n_strings; i++)
        TRY(copy_string(import, &proto->strings[i], &strings[i]));
    attr->strings = strings;
    attr->count = proto->n_strings;
    return NULL;
}

static tssa_status *copy_array(struct import *import, const void *from, size_t count, size_t size,
                               const void **to)
{
    *to = arena_copy(&import->graph->arena, from, count * size);
    TRY_ALLOC(*to);
    return NULL;
}

static tssa_status *copy_tensors(struct import *import, const Onnx__AttributeProto *proto,
                                 struct ir_attr *attr)
{
    bool sparse = attribute_type(proto) == SPARSES;
    size_t count = sparse ? proto->n_sparse_tensors : proto->n_tensors;
    struct tensor *tensors = ARENA_ARRAY(&import->graph->arena, struct tensor, count);
    TRY_ALLOC(tensors);
    for (size_t i = 0; i < count; i++) {
        const struct tensor *one;
        if (sparse)
            TRY(import_sparse(import, proto->sparse_tensors[i], &one));
        else
            TRY(import_tensor(import, proto->tensors[i], &one));
        tensors[i] = *one;
    }
    attr->tensors = tensors;
    attr->count = count;
    return NULL;
}

static tssa_status *copy_types(struct import *import, const Onnx__AttributeProto *proto,
                               struct ir_attr *attr)
{
    const struct ir_type **types =
        ARENA_ARRAY(&import->graph->arena, const struct ir_type *, proto->n_type_protos);
    TRY_ALLOC(types);
    for (size_t i = 0; i < proto->n_type_protos; i++)
        TRY(import_type(import, proto->type_protos[i], &types[i]));
    attr->types = types;
    attr->count = proto->n_type_protos;
    return NULL;
}

static tssa_status *import_value(struct import *import, const Onnx__AttributeProto *proto,
                                 struct ir_attr *attr)
{
    switch (attribute_type(proto)) {
    case FLOAT:
        attr->kind = IR_ATTR_FLOAT;
        attr->f = proto->f;
        return NULL;
    case INT:
        attr->kind = IR_ATTR_INT;
        attr->i = proto->i;
        return NULL;
    case STRING:
        attr->kind = IR_ATTR_STRING;
        return copy_string(import, &proto->s, &attr->s);
    case TENSOR:
        attr->kind = IR_ATTR_TENSOR;
        return proto->t ? import_tensor(import, proto->t, &attr->tensor)
                        : ERROR(TSSA_MALFORMED, "there is no tensor");
    case SPARSE:
        attr->kind = IR_ATTR_TENSOR;
        return proto->sparse_tensor ? import_sparse(import, proto->sparse_tensor, &attr->tensor)
                                    : ERROR(TSSA_MALFORMED, "there is no sparse tensor");
    case TYPE:
        attr->kind = IR_ATTR_TYPE;
        return import_type(import, proto->tp, &attr->type);
    case FLOATS:
        attr->kind = IR_ATTR_FLOATS;
        attr->count = proto->n_floats;
        return copy_array(import, proto->floats, proto->n_floats, sizeof(float),
                          (const void **)&attr->floats);
    case INTS:
        attr->kind = IR_ATTR_INTS;
        attr->count = proto->n_ints;
        return copy_array(import, proto->ints, proto->n_ints, sizeof(int64_t),
                          (const void **)&attr->ints);
    case STRINGS:
        attr->kind = IR_ATTR_STRINGS;
        return copy_strings(import, proto, attr);
    case TENSORS:
    case SPARSES:
        attr->kind = IR_ATTR_TENSORS;
        return copy_tensors(import, proto, attr);
    case TYPES:
        attr->kind = IR_ATTR_TYPES;
        return copy_types(import, proto, attr);
    case 0:
        return ERROR(TSSA_MALFORMED, "it has no value");
    default:
        return ERROR(TSSA_MALFORMED, "its type %d is unknown", attribute_type(proto));
    }
}

/* What a function's attribute became when the function was inlined before. */
struct cached_attr {
    const Onnx__AttributeProto *key;
    struct ir_attr attr;
};

static tssa_status *remember(struct import *import, const Onnx__AttributeProto *proto,
                             const struct ir_attr *attr)
{
    struct cached_attr *cached = ARENA_NEW(&import->scratch, struct cached_attr);
    TRY_ALLOC(cached);
    *cached = (struct cached_attr){proto, *attr};
    if (!map_put(&import->attrs, &cached->key, sizeof cached->key, cached))
        return status_out_of_memory();
    return NULL;
}

tssa_status *attribute_import(struct scope *scope, const Onnx__AttributeProto *proto,
                              struct ir_attr *attr)
{
    struct import *import = scope->import;
    bool shared = scope->frame->function != NULL;
    const struct cached_attr *cached =
        shared ? map_get(&import->attrs, &proto, sizeof proto) : NULL;
    if (cached) {
        *attr = cached->attr;
        return NULL;
    }
    *attr = (struct ir_attr){0};
    TRY(import_value(import, proto, attr));
    return shared ? remember(import, proto, attr) : NULL;
}
