/* SPDX-License-Identifier: Apache-2.0 */
/* TypeProto to ir_type. */
#include "onnx/import.h"

static tssa_status *import_dim(struct import *import,
                               const Onnx__TensorShapeProto__Dimension *proto,
                               const struct dim **dim)
{
    struct dim_table *dims = &import->graph->dims;
    *dim = NULL;
    if (proto->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        if (proto->dim_value < -1)
            return ERROR(TSSA_MALFORMED, "a dim is %lld", (long long)proto->dim_value);
        if (proto->dim_value >= 0) /* -1 is how some exporters say unknown */
            *dim = dim_const(dims, proto->dim_value);
    } else if (proto->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
               proto->dim_param[0]) {
        *dim = dim_symbol(dims, proto->dim_param);
    }
    if (!*dim)
        *dim = dim_fresh(dims, "dim");
    TRY_ALLOC(*dim);
    return NULL;
}

static tssa_status *import_dtype(int32_t number, tssa_dtype *dtype)
{
    if (number < 0 || number >= TSSA_DTYPE_COUNT)
        return ERROR(TSSA_MALFORMED, "element type %d is unknown", (int)number);
    *dtype = (tssa_dtype)number;
    return NULL;
}

static tssa_status *tensor_type(struct import *import, const Onnx__TypeProto__Tensor *proto,
                                const struct ir_type **type)
{
    tssa_dtype dtype;
    TRY(import_dtype(proto->elem_type, &dtype));
    if (!proto->shape) {
        *type = type_unranked(&import->graph->types, dtype);
        return NULL;
    }
    if (proto->shape->n_dim > TSSA_MAX_RANK)
        return ERROR(TSSA_LIMIT, "rank %zu is above %d", proto->shape->n_dim, TSSA_MAX_RANK);
    const struct dim *dims[TSSA_MAX_RANK];
    for (size_t i = 0; i < proto->shape->n_dim; i++)
        TRY(import_dim(import, proto->shape->dim[i], &dims[i]));
    *type = type_tensor(&import->graph->types, dtype, (int)proto->shape->n_dim, dims);
    return NULL;
}

static tssa_status *map_type(struct import *import, const Onnx__TypeProto__Map *proto,
                             const struct ir_type **type)
{
    tssa_dtype key;
    const struct ir_type *value;
    TRY(import_dtype(proto->key_type, &key));
    TRY(import_type(import, proto->value_type, &value));
    *type = type_map(&import->graph->types, key, value);
    return NULL;
}

static tssa_status *sparse_type(struct import *import, const Onnx__TypeProto__SparseTensor *proto,
                                const struct ir_type **type)
{
    Onnx__TypeProto__Tensor dense = ONNX__TYPE_PROTO__TENSOR__INIT;
    const struct ir_type *element;
    dense.elem_type = proto->elem_type;
    dense.shape = proto->shape;
    TRY(tensor_type(import, &dense, &element));
    TRY_ALLOC(element);
    *type = type_opaque(&import->graph->types, element, NULL);
    return NULL;
}

static tssa_status *custom_type(struct import *import, const Onnx__TypeProto__Opaque *proto,
                                const struct ir_type **type)
{
    const char *name = arena_printf(&import->scratch, "%s\n%s", proto->domain ? proto->domain : "",
                                    proto->name ? proto->name : "");
    name = name ? intern_str(&import->graph->strings, name) : NULL;
    TRY_ALLOC(name);
    *type = type_opaque(&import->graph->types, NULL, name);
    return NULL;
}

static tssa_status *known_type(struct import *import, const Onnx__TypeProto *proto,
                               const struct ir_type **type)
{
    struct type_table *types = &import->graph->types;
    const struct ir_type *element;
    switch (proto->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        return tensor_type(import, proto->tensor_type, type);
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        TRY(import_type(import, proto->sequence_type->elem_type, &element));
        *type = type_sequence(types, element);
        return NULL;
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        TRY(import_type(import, proto->optional_type->elem_type, &element));
        *type = type_optional(types, element);
        return NULL;
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        return map_type(import, proto->map_type, type);
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        return sparse_type(import, proto->sparse_tensor_type, type);
    case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE:
        return custom_type(import, proto->opaque_type, type);
    default:
        *type = types->unknown;
        return NULL;
    }
}

tssa_status *import_type(struct import *import, const Onnx__TypeProto *proto,
                         const struct ir_type **type)
{
    *type = import->graph->types.unknown;
    if (proto)
        TRY(known_type(import, proto, type));
    TRY_ALLOC(*type);
    return NULL;
}
