/* SPDX-License-Identifier: Apache-2.0 */
#include "common/onnx_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/printer.h"

#define NEW(model, type, init) ((type *)new_message((model), sizeof(type), init))

static void *new_message(struct onnx_model *model, size_t size, void (*init)(void *))
{
    void *message = arena_alloc(&model->arena, size);
    assert_non_null(message);
    init(message);
    return message;
}

#define MAKER(name, type, prefix)                                                                  \
    static type *name(struct onnx_model *model)                                                    \
    {                                                                                              \
        type *message = arena_alloc(&model->arena, sizeof *message);                               \
        assert_non_null(message);                                                                  \
        prefix##__init(message);                                                                   \
        return message;                                                                            \
    }

MAKER(new_model, Onnx__ModelProto, onnx__model_proto)
MAKER(new_opset, Onnx__OperatorSetIdProto, onnx__operator_set_id_proto)
MAKER(new_graph, Onnx__GraphProto, onnx__graph_proto)
MAKER(new_node, Onnx__NodeProto, onnx__node_proto)
MAKER(new_attribute, Onnx__AttributeProto, onnx__attribute_proto)
MAKER(new_tensor, Onnx__TensorProto, onnx__tensor_proto)
MAKER(new_value, Onnx__ValueInfoProto, onnx__value_info_proto)
MAKER(new_function, Onnx__FunctionProto, onnx__function_proto)

static void type_init(void *m)
{
    onnx__type_proto__init(m);
}
static void tensor_type_init(void *m)
{
    onnx__type_proto__tensor__init(m);
}
static void shape_init(void *m)
{
    onnx__tensor_shape_proto__init(m);
}
static void dimension_init(void *m)
{
    onnx__tensor_shape_proto__dimension__init(m);
}

void model_init(struct onnx_model *model, int64_t ir_version, int64_t opset)
{
    arena_init(&model->arena, &allocator_default);
    model->proto = new_model(model);
    model->proto->has_ir_version = 1;
    model->proto->ir_version = ir_version;
    model->graph = model->proto->graph = model_graph(model, "g");
    if (opset)
        model_opset(model, "", opset);
}

void model_free(struct onnx_model *model)
{
    arena_clear(&model->arena);
}

char *model_string(struct onnx_model *model, const char *text)
{
    char *copy = arena_string(&model->arena, text, strlen(text));
    assert_non_null(copy);
    return copy;
}

void model_append(struct onnx_model *model, void *array, size_t *count, void *item)
{
    void **old;
    memcpy(&old, array, sizeof old);
    void **grown = arena_alloc_array(&model->arena, *count + 1, sizeof *grown);
    assert_non_null(grown);
    if (*count)
        memcpy(grown, old, *count * sizeof *grown);
    grown[(*count)++] = item;
    memcpy(array, &grown, sizeof grown);
}

/* Every comma-separated part of `list`, "" included; an empty list has none. */
static void append_names(struct onnx_model *model, const char *list, char ***names, size_t *count)
{
    while (list && *list) {
        size_t length = strcspn(list, ",");
        model_append(model, names, count, arena_string(&model->arena, list, length));
        if (list[length] == ',' && !list[length + 1])
            model_append(model, names, count, model_string(model, ""));
        list += length + (list[length] == ',');
    }
}

void model_opset(struct onnx_model *model, const char *domain, int64_t version)
{
    Onnx__OperatorSetIdProto *opset = new_opset(model);
    opset->domain = model_string(model, domain);
    opset->has_version = 1;
    opset->version = version;
    model_append(model, &model->proto->opset_import, &model->proto->n_opset_import, opset);
}

Onnx__GraphProto *model_graph(struct onnx_model *model, const char *name)
{
    Onnx__GraphProto *graph = new_graph(model);
    graph->name = model_string(model, name);
    return graph;
}

static Onnx__TensorShapeProto *make_shape(struct onnx_model *model, const char *dims)
{
    Onnx__TensorShapeProto *shape = NEW(model, Onnx__TensorShapeProto, shape_init);
    char **parts = NULL;
    size_t count = 0;
    append_names(model, dims, &parts, &count);
    for (size_t i = 0; i < count; i++) {
        Onnx__TensorShapeProto__Dimension *dim =
            NEW(model, Onnx__TensorShapeProto__Dimension, dimension_init);
        char *end;
        long long value = strtoll(parts[i], &end, 10);
        if (*parts[i] && !*end) {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            dim->dim_value = value;
        } else if (strcmp(parts[i], "?") != 0) {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dim->dim_param = parts[i];
        }
        model_append(model, &shape->dim, &shape->n_dim, dim);
    }
    return shape;
}

Onnx__ValueInfoProto *model_value(struct onnx_model *model, const char *name, int dtype,
                                  const char *dims)
{
    Onnx__ValueInfoProto *value = new_value(model);
    value->name = model_string(model, name);
    if (dtype < 0)
        return value;
    value->type = NEW(model, Onnx__TypeProto, type_init);
    value->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    value->type->tensor_type = NEW(model, Onnx__TypeProto__Tensor, tensor_type_init);
    value->type->tensor_type->has_elem_type = 1;
    value->type->tensor_type->elem_type = dtype;
    if (strcmp(dims, "*") != 0)
        value->type->tensor_type->shape = make_shape(model, dims);
    return value;
}

void model_input(struct onnx_model *model, Onnx__GraphProto *graph, const char *name, int dtype,
                 const char *dims)
{
    model_append(model, &graph->input, &graph->n_input, model_value(model, name, dtype, dims));
}

void model_output(struct onnx_model *model, Onnx__GraphProto *graph, const char *name, int dtype,
                  const char *dims)
{
    model_append(model, &graph->output, &graph->n_output, model_value(model, name, dtype, dims));
}

int64_t *model_dims(struct onnx_model *model, const char *dims, size_t *count)
{
    char **parts = NULL;
    *count = 0;
    append_names(model, dims, &parts, count);
    int64_t *values = arena_alloc_array(&model->arena, *count, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < *count; i++)
        values[i] = strtoll(parts[i], NULL, 10);
    return values;
}

Onnx__TensorProto *model_tensor(struct onnx_model *model, const char *name, int dtype,
                                const char *dims, const void *raw, size_t size)
{
    Onnx__TensorProto *tensor = new_tensor(model);
    tensor->name = model_string(model, name);
    tensor->has_data_type = 1;
    tensor->data_type = dtype;
    tensor->dims = model_dims(model, dims, &tensor->n_dims);
    if (raw) {
        tensor->has_raw_data = 1;
        tensor->raw_data.len = size;
        tensor->raw_data.data = arena_copy(&model->arena, raw, size);
        assert_non_null(tensor->raw_data.data);
    }
    return tensor;
}

void model_initializer(struct onnx_model *model, Onnx__GraphProto *graph, Onnx__TensorProto *tensor)
{
    model_append(model, &graph->initializer, &graph->n_initializer, tensor);
}

static Onnx__NodeProto *make_node(struct onnx_model *model, const char *op, const char *inputs,
                                  const char *outputs)
{
    Onnx__NodeProto *node = new_node(model);
    const char *colon = strrchr(op, ':');
    if (colon)
        node->domain = arena_string(&model->arena, op, (size_t)(colon - op));
    node->op_type = model_string(model, colon ? colon + 1 : op);
    append_names(model, inputs, &node->input, &node->n_input);
    append_names(model, outputs, &node->output, &node->n_output);
    return node;
}

Onnx__NodeProto *model_node(struct onnx_model *model, Onnx__GraphProto *graph, const char *op,
                            const char *inputs, const char *outputs)
{
    Onnx__NodeProto *node = make_node(model, op, inputs, outputs);
    model_append(model, &graph->node, &graph->n_node, node);
    return node;
}

Onnx__AttributeProto *model_attr(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                                 int type)
{
    Onnx__AttributeProto *attr = new_attribute(model);
    attr->name = model_string(model, name);
    attr->has_type = 1;
    attr->type = (Onnx__AttributeProto__AttributeType)type;
    if (node)
        model_append(model, &node->attribute, &node->n_attribute, attr);
    return attr;
}

void model_attr_int(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                    int64_t value)
{
    Onnx__AttributeProto *attr =
        model_attr(model, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    attr->has_i = 1;
    attr->i = value;
}

void model_attr_float(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                      float value)
{
    Onnx__AttributeProto *attr =
        model_attr(model, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    attr->has_f = 1;
    attr->f = value;
}

void model_attr_string(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                       const char *value)
{
    Onnx__AttributeProto *attr =
        model_attr(model, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    attr->has_s = 1;
    attr->s.len = strlen(value);
    attr->s.data = (uint8_t *)model_string(model, value);
}

void model_attr_ints(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                     const char *values)
{
    Onnx__AttributeProto *attr =
        model_attr(model, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    attr->ints = model_dims(model, values, &attr->n_ints);
}

void model_attr_tensor(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                       Onnx__TensorProto *tensor)
{
    model_attr(model, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t = tensor;
}

void model_attr_graph(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                      Onnx__GraphProto *graph)
{
    model_attr(model, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = graph;
}

void model_attr_ref(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                    const char *ref)
{
    Onnx__AttributeProto *attr = model_attr(model, node, name, 0);
    attr->has_type = 0;
    attr->ref_attr_name = model_string(model, ref);
}

Onnx__FunctionProto *model_function(struct onnx_model *model, const char *domain, const char *name,
                                    const char *inputs, const char *outputs, int64_t opset)
{
    Onnx__FunctionProto *function = new_function(model);
    Onnx__OperatorSetIdProto *import = new_opset(model);
    import->has_version = 1;
    import->version = opset;
    function->domain = model_string(model, domain);
    function->name = model_string(model, name);
    append_names(model, inputs, &function->input, &function->n_input);
    append_names(model, outputs, &function->output, &function->n_output);
    model_append(model, &function->opset_import, &function->n_opset_import, import);
    model_append(model, &model->proto->functions, &model->proto->n_functions, function);
    return function;
}

Onnx__NodeProto *function_node(struct onnx_model *model, Onnx__FunctionProto *function,
                               const char *op, const char *inputs, const char *outputs)
{
    Onnx__NodeProto *node = make_node(model, op, inputs, outputs);
    model_append(model, &function->node, &function->n_node, node);
    return node;
}

const void *model_pack(struct onnx_model *model, size_t *size)
{
    *size = onnx__model_proto__get_packed_size(model->proto);
    uint8_t *bytes = arena_alloc(&model->arena, *size);
    assert_non_null(bytes);
    onnx__model_proto__pack(model->proto, bytes);
    return bytes;
}

tssa_status *model_import(struct onnx_model *model, struct ir_graph **graph)
{
    size_t size;
    const void *bytes = model_pack(model, &size);
    return onnx_import(&allocator_default, bytes, size, NULL, graph);
}

void expect_body(struct onnx_model *model, const char *body)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = model_import(model, &graph);
    if (status)
        print_error("%s\n", tssa_status_message(status));
    assert_null(status);
    struct text text;
    text_init(&text, &allocator_default);
    ir_print_graph(graph, false, &text);
    const char *printed = text_string(&text);
    assert_non_null(printed);
    printed = strstr(printed, " {\n");
    assert_non_null(printed);
    if (strcmp(printed + 3, body) != 0)
        print_error("expected:\n%s\ngot:\n%s\n", body, printed + 3);
    assert_string_equal(printed + 3, body);
    text_free(&text);
    ir_graph_free(graph);
    model_free(model);
}

/* What is malformed is so whether functions are inlined or not. */
static void expect_refused_with_calls(struct onnx_model *model)
{
    const struct onnx_import_options options = {.functions = TSSA_FUNCTIONS_KEEP};
    struct ir_graph *graph = NULL;
    size_t size;
    const void *bytes = model_pack(model, &size);
    tssa_status *status = onnx_import(&allocator_default, bytes, size, &options, &graph);
    assert_int_equal(tssa_status_code(status), TSSA_MALFORMED);
    tssa_status_free(status);
}

void expect_refused(struct onnx_model *model, tssa_code code, const char *message)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = model_import(model, &graph);
    assert_non_null(status);
    if (!strstr(tssa_status_message(status), message))
        print_error("expected: %s\ngot: %s\n", message, tssa_status_message(status));
    assert_non_null(strstr(tssa_status_message(status), message));
    assert_null(strchr(tssa_status_message(status), '\n'));
    assert_int_equal(tssa_status_code(status), code);
    assert_null(graph);
    tssa_status_free(status);
    if (code == TSSA_MALFORMED)
        expect_refused_with_calls(model);
    model_free(model);
}
