/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization annotations. */
#include "onnx/import.h"

static const char *name_of(const struct scope *scope, const char *name)
{
    const struct ir_value *value = name && name[0] ? scope_find(scope, name) : NULL;
    return value ? value->name : NULL;
}

/* Of an annotation that names what there is not, nothing is kept. */
static tssa_status *import_parts(const struct scope *scope, const Onnx__TensorAnnotation *proto,
                                 struct ir_annotation *annotation)
{
    struct import *import = scope->import;
    size_t count = proto->n_quant_parameter_tensor_names;
    struct ir_annotation_part *parts =
        ARENA_ARRAY(&import->graph->arena, struct ir_annotation_part, count);
    TRY_ALLOC(parts);
    for (size_t i = 0; i < count; i++) {
        const Onnx__StringStringEntryProto *entry = proto->quant_parameter_tensor_names[i];
        const char *name = name_of(scope, entry->value);
        if (!name)
            return NULL;
        parts[i].name = name;
        parts[i].constant = ir_value_constant(scope_find(scope, entry->value));
        parts[i].key = intern_str(&import->graph->strings, entry->key ? entry->key : "");
        TRY_ALLOC(parts[i].key);
    }
    annotation->parts = parts;
    annotation->n_parts = count;
    return vec_push(&import->annotations, *annotation) ? NULL : status_out_of_memory();
}

tssa_status *import_annotations(struct scope *scope, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_quantization_annotation; i++) {
        const Onnx__TensorAnnotation *proto = graph->quantization_annotation[i];
        struct ir_annotation annotation = {.name = name_of(scope, proto->tensor_name)};
        if (annotation.name)
            TRY(import_parts(scope, proto, &annotation));
    }
    return NULL;
}
