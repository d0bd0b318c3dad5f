/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs to blocks: inputs, initializers, nodes, outputs (ONNX 1.22.0, docs/IR.md). */
#include <string.h>

#include "onnx/import.h"

static const char *sparse_name(const Onnx__SparseTensorProto *proto)
{
    return proto->values && proto->values->name ? proto->values->name : "";
}

static tssa_status *collect_initial(const Onnx__GraphProto *graph, struct map *initial)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const char *name = graph->initializer[i]->name;
        if (name && !map_put_str(initial, name, graph->initializer[i]))
            return status_out_of_memory();
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++)
        if (!map_put_str(initial, sparse_name(graph->sparse_initializer[i]),
                         graph->sparse_initializer[i]))
            return status_out_of_memory();
    return NULL;
}

/* The iteration number is a scalar, and runtimes that find it declared as a tensor of one element
 * hand over such a tensor. The condition has the rank that the loop is given. */
static bool is_loop_list(const struct scope *scope, const struct ir_type *type)
{
    const struct ir_block *block = scope->block;
    int64_t size;
    return block->owner && ir_op_is(block->owner, IR_OP_Loop) && block->n_params == 0 &&
           type->kind == TYPE_TENSOR && type->rank == 1 &&
           (!dim_is_const(type->dims[0], &size) || size == 1);
}

/* The name is that of the scalar with an axis more. */
static tssa_status *import_loop_list(struct scope *scope, const Onnx__ValueInfoProto *info,
                                     const struct ir_type *type)
{
    static const int64_t front = 0;
    struct ir_graph *graph = scope->import->graph;
    const struct ir_op_info *unsqueeze = ir_op_info(IR_OP_Unsqueeze);
    struct ir_value *param = ir_block_add_param(scope->block);
    struct ir_op *axes = ir_constant_ints(graph, 1, 1, &front);
    struct ir_op *op = ir_op_create(graph, unsqueeze, 2, 1);
    TRY_ALLOC(param);
    TRY_ALLOC(axes);
    TRY_ALLOC(op);
    param->type = param->declared = type_scalar(&graph->types, type->dtype);
    TRY_ALLOC(param->type);
    op->version = ir_op_bind(unsqueeze, IR_NEWEST_OPSET);
    ir_op_set_operand(op, 0, param);
    ir_op_set_operand(op, 1, &axes->results[0]);
    TRY(scope_define(scope, info->name, &op->results[0]));
    op->results[0].declared = type;
    TRY(scope_append(scope, axes));
    TRY(scope_append(scope, op));
    return notes_of_value(scope->import, info, &op->results[0]);
}

/*
 * `is_initial`: an initializer has the input's name. Before IR 4 every initializer had to be an
 * input too, and it is a constant none the less; since then such an input of the model has a
 * default.
 */
static tssa_status *import_input(struct scope *scope, const Onnx__ValueInfoProto *info,
                                 bool is_initial)
{
    bool is_main = scope->block->owner == NULL;
    if (!info->name || !info->name[0])
        return ERROR(TSSA_MALFORMED, "a graph input has no name");
    if (is_initial && scope->import->model->ir_version < 4)
        return NULL;
    if (is_initial && !is_main)
        return ERROR(TSSA_MALFORMED, "input \"%s\" of a subgraph is an initializer too",
                     info->name);
    const struct ir_type *type;
    tssa_status *status = import_type(scope->import, info->type, &type);
    if (status)
        return status_prefix(status, "input \"%s\"", info->name);
    if (is_loop_list(scope, type))
        return import_loop_list(scope, info, type);
    struct ir_value *param = ir_block_add_param(scope->block);
    TRY_ALLOC(param);
    TRY(scope_define(scope, info->name, param));
    param->type = type;
    param->declared = info->type ? type : NULL;
    return is_main ? NULL : notes_of_value(scope->import, info, param);
}

static tssa_status *import_inputs(struct scope *scope, const Onnx__GraphProto *graph)
{
    struct map initial;
    map_init(&initial, scope->import->allocator);
    tssa_status *status = collect_initial(graph, &initial);
    for (size_t i = 0; i < graph->n_input && !status; i++) {
        const char *name = graph->input[i]->name;
        status = import_input(scope, graph->input[i], name && map_get_str(&initial, name));
    }
    map_free(&initial);
    return status;
}

/* The default of an input of the model. */
static tssa_status *set_default(struct scope *scope, const struct ir_value *param,
                                const struct tensor *tensor, const struct ir_notes *notes)
{
    struct ir_graph *graph = scope->import->graph;
    const struct ir_type *type =
        type_tensor_const(&graph->types, tensor->dtype, tensor->rank, tensor->dims);
    TRY_ALLOC(type);
    if (!type_compatible(param->type, type)) {
        char text[128];
        tensor_describe(tensor, text, sizeof text);
        return ERROR(TSSA_MALFORMED, "input \"%s\" has a default of another type, %s", param->name,
                     text);
    }
    if (graph->input_defaults[param->index])
        return ERROR(TSSA_MALFORMED, "\"%s\" is initialized twice", param->name);
    graph->input_defaults[param->index] = tensor;
    graph->default_notes[param->index] = notes;
    return NULL;
}

static tssa_status *import_initializer(struct scope *scope, const char *name,
                                       const Onnx__TensorProto *proto, const struct tensor *tensor)
{
    if (!name || !name[0])
        return ERROR(TSSA_MALFORMED, "an initializer has no name");
    struct ir_value *input = map_get_str(&scope->values, name);
    const struct ir_notes *notes;
    TRY(import_notes(scope->import, proto->doc_string, proto->metadata_props,
                     proto->n_metadata_props, &notes));
    if (input && input->block && !scope->block->owner)
        return set_default(scope, input, tensor, notes);
    struct ir_op *op = ir_constant_create(scope->import->graph, tensor);
    TRY_ALLOC(op);
    op->origin = IR_ORIGIN_INITIALIZER;
    op->notes = notes;
    TRY(scope_define(scope, name, &op->results[0]));
    return scope_append(scope, op);
}

static tssa_status *import_initializers(struct scope *scope, const Onnx__GraphProto *graph)
{
    const struct tensor *tensor;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        TRY(import_tensor(scope->import, graph->initializer[i], &tensor));
        TRY(import_initializer(scope, graph->initializer[i]->name, graph->initializer[i], tensor));
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        TRY(import_sparse(scope->import, graph->sparse_initializer[i], &tensor));
        TRY(import_initializer(scope, sparse_name(graph->sparse_initializer[i]),
                               graph->sparse_initializer[i]->values, tensor));
    }
    return NULL;
}

static tssa_status *import_outputs(struct scope *scope, const Onnx__GraphProto *graph)
{
    struct import *import = scope->import;
    if (graph->n_output > INT32_MAX)
        return ERROR(TSSA_LIMIT, "the graph has too many outputs");
    struct ir_op *op =
        ir_op_create(import->graph, ir_op_info(IR_OP_return), (uint32_t)graph->n_output, 0);
    TRY_ALLOC(op);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const char *name = graph->output[i]->name;
        struct ir_value *value = name && name[0] ? scope_find(scope, name) : NULL;
        if (!value)
            return ERROR(TSSA_MALFORMED, "graph output %u, \"%s\", is defined nowhere", (unsigned)i,
                         name ? name : "");
        if (value == &import->absent)
            return ERROR(TSSA_MALFORMED,
                         "graph output %u, \"%s\", is an input that the function's call leaves out",
                         (unsigned)i, name);
        ir_op_set_operand(op, i, value);
    }
    ir_op_append(scope->block, op);
    return NULL;
}

static tssa_status *import_graph_notes(struct scope *scope, const Onnx__GraphProto *graph)
{
    struct import *import = scope->import;
    struct ir_block *block = scope->block;
    if (block->owner && graph->name && graph->name[0]) {
        block->name = intern_str(&import->graph->strings, graph->name);
        TRY_ALLOC(block->name);
    }
    return import_notes(import, graph->doc_string, graph->metadata_props, graph->n_metadata_props,
                        &block->notes);
}

static tssa_status *import_graph(struct scope *scope, const Onnx__GraphProto *graph)
{
    struct ir_graph *ir = scope->import->graph;
    TRY(import_graph_notes(scope, graph));
    TRY(scope_spend(scope, (uint64_t)graph->n_input + graph->n_output + graph->n_value_info +
                               graph->n_initializer + graph->n_sparse_initializer));
    TRY(scope_collect_hints(scope, graph->output, graph->n_output));
    TRY(scope_collect_hints(scope, graph->value_info, graph->n_value_info));
    TRY(import_inputs(scope, graph));
    if (!scope->block->owner) {
        ir->input_defaults = ARENA_ARRAY(&ir->arena, const struct tensor *, ir->body->n_params);
        ir->default_notes = ARENA_ARRAY(&ir->arena, const struct ir_notes *, ir->body->n_params);
        if (!ir->input_defaults || !ir->default_notes)
            return status_out_of_memory();
    }
    TRY(import_initializers(scope, graph));
    TRY(import_nodes(scope, graph->node, graph->n_node));
    TRY(import_annotations(scope, graph));
    return import_outputs(scope, graph);
}

tssa_status *import_block(struct scope *outside, struct scope *names, const Onnx__GraphProto *graph,
                          struct ir_op *op, struct ir_block **block)
{
    struct import *import = outside->import;
    *block = ir_block_create(import->graph, op, 0);
    TRY_ALLOC(*block);
    struct scope scope;
    tssa_status *status =
        scope_init(&scope, import, names, names->frame, *block, outside->depth + 1);
    if (!status)
        status = import_graph(&scope, graph);
    scope_free(&scope);
    return status;
}

/* Ranks above TSSA_MAX_RANK are not refused: the value itself may never be made. */
static tssa_status *declared_type(struct import *import, const Onnx__ValueInfoProto *info,
                                  const struct ir_type **type)
{
    tssa_status *status = info->type ? import_type(import, info->type, type) : NULL;
    if (tssa_status_code(status) != TSSA_LIMIT)
        return status_prefix(status, "output \"%s\"", info->name);
    tssa_status_free(status);
    *type = NULL;
    return NULL;
}

static tssa_status *signature_notes(struct import *import, Onnx__ValueInfoProto *const *infos,
                                    size_t count, const struct ir_notes ***notes)
{
    *notes = ARENA_ARRAY(&import->graph->arena, const struct ir_notes *, count);
    TRY_ALLOC(*notes);
    for (size_t i = 0; i < count; i++)
        TRY(import_notes(import, infos[i]->doc_string, infos[i]->metadata_props,
                         infos[i]->n_metadata_props, &(*notes)[i]));
    return NULL;
}

/* Inputs that are constants have no parameter: their notes are passed over. */
static tssa_status *input_notes(struct import *import, const Onnx__GraphProto *graph)
{
    struct ir_graph *ir = import->graph;
    const struct ir_notes **all;
    uint32_t n = 0;
    TRY(signature_notes(import, graph->input, graph->n_input, &all));
    for (size_t i = 0; i < graph->n_input && n < ir->body->n_params; i++)
        if (strcmp(graph->input[i]->name, ir->body->params[n]->name) == 0)
            all[n++] = all[i];
    ir->input_notes = n == ir->body->n_params ? all : NULL;
    return NULL;
}

static tssa_status *name_outputs(struct import *import, const Onnx__GraphProto *graph)
{
    struct ir_graph *ir = import->graph;
    TRY(input_notes(import, graph));
    TRY(signature_notes(import, graph->output, graph->n_output, &ir->output_notes));
    ir->output_names = ARENA_ARRAY(&ir->arena, const char *, graph->n_output);
    ir->output_types = ARENA_ARRAY(&ir->arena, const struct ir_type *, graph->n_output);
    if (!ir->output_names || !ir->output_types)
        return status_out_of_memory();
    for (size_t i = 0; i < graph->n_output; i++) {
        ir->output_names[i] = intern_str(&ir->strings, graph->output[i]->name);
        TRY_ALLOC(ir->output_names[i]);
        TRY(declared_type(import, graph->output[i], &ir->output_types[i]));
    }
    return NULL;
}

tssa_status *import_main_graph(struct import *import, struct frame *frame)
{
    struct scope scope;
    tssa_status *status = scope_init(&scope, import, NULL, frame, import->graph->body, 0);
    if (!status)
        status = import_graph(&scope, import->model->graph);
    scope_free(&scope);
    TRY(status);
    TRY(name_outputs(import, import->model->graph));
    return notes_finish(import);
}
