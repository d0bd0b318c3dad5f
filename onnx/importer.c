/* SPDX-License-Identifier: Apache-2.0 */
/* Whole models; see importer.h. */
#include "onnx/importer.h"

#include <string.h>

#include "base/file.h"
#include "ir/infer.h"
#include "ir/verifier.h"
#include "onnx/import.h"

/* Sparse tensors may grow to this many bytes together, and to so many times the file's size. */
#define DENSE_FREE ((uint64_t)64 << 20)
#define DENSE_FACTOR 64

/* ---- Around the graph ------------------------------------------------------------------------ */

static tssa_status *copy_text(struct ir_graph *graph, const char *text, const char **copy)
{
    *copy = intern_str(&graph->strings, text ? text : "");
    TRY_ALLOC(*copy);
    return NULL;
}

/* "" is what proto3 writers mean by nothing. */
static tssa_status *copy_optional(struct ir_graph *graph, const char *text, const char **copy)
{
    *copy = NULL;
    return text && text[0] ? copy_text(graph, text, copy) : NULL;
}

static tssa_status *copy_metadata(struct ir_graph *graph, const Onnx__ModelProto *model)
{
    graph->metadata = ARENA_ARRAY(&graph->arena, struct ir_string_pair, model->n_metadata_props);
    TRY_ALLOC(graph->metadata);
    graph->n_metadata = model->n_metadata_props;
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *entry = model->metadata_props[i];
        TRY(copy_text(graph, entry->key, &graph->metadata[i].key));
        TRY(copy_text(graph, entry->value, &graph->metadata[i].value));
    }
    return NULL;
}

static tssa_status *copy_opsets(struct ir_graph *graph, const struct opset_list *opsets)
{
    graph->opsets = ARENA_ARRAY(&graph->arena, struct ir_opset, opsets->count);
    TRY_ALLOC(graph->opsets);
    graph->n_opsets = opsets->count;
    for (size_t i = 0; i < opsets->count; i++) {
        TRY(copy_text(graph, opsets->data[i].domain, &graph->opsets[i].domain));
        graph->opsets[i].version = opsets->data[i].version;
    }
    return NULL;
}

static tssa_status *copy_model_fields(struct import *import, const struct opset_list *opsets)
{
    const Onnx__ModelProto *model = import->model;
    struct ir_graph *graph = import->graph;
    TRY(copy_optional(graph, model->graph->name, &graph->name));
    TRY(copy_optional(graph, model->doc_string, &graph->doc));
    TRY(copy_optional(graph, model->producer_name, &graph->producer_name));
    TRY(copy_optional(graph, model->producer_version, &graph->producer_version));
    TRY(copy_optional(graph, model->domain, &graph->domain));
    graph->ir_version = model->ir_version;
    graph->model_version = model->model_version;
    TRY(copy_opsets(graph, opsets));
    return copy_metadata(graph, model);
}

static tssa_status *check_model(const Onnx__ModelProto *model)
{
    if (!model->has_ir_version || model->ir_version < 1)
        return ERROR(TSSA_MALFORMED, "not an ONNX model: it has no IR version");
    if (model->ir_version > IR_NEWEST_IR_VERSION)
        return ERROR(TSSA_UNSUPPORTED, "IR version %lld is newer than %d, the newest that is known",
                     (long long)model->ir_version, IR_NEWEST_IR_VERSION);
    if (!model->graph)
        return ERROR(TSSA_MALFORMED, "the model has no graph");
    return NULL;
}

/* NULL where everything that the file holds is in the graph. */
static tssa_status *name_dropped(const struct import *import)
{
    struct ir_graph *graph = import->graph;
    size_t index = 0;
    for (const char *name = wire_dropped(&import->file, &index); name;
         name = wire_dropped(&import->file, &index)) {
        const char *before = graph->dropped;
        graph->dropped =
            arena_printf(&graph->arena, "%s%s%s", before ? before : "", before ? ", " : "", name);
        TRY_ALLOC(graph->dropped);
    }
    return NULL;
}

/* ---- The import ------------------------------------------------------------------------------ */

static tssa_status *import_model(struct import *import)
{
    const Onnx__ModelProto *model = import->model;
    struct frame frame = {.function = NULL};
    const uint32_t *order;
    TRY(check_model(model));
    TRY(import_opsets(import, model->opset_import, model->n_opset_import, &frame.opsets));
    if (model->ir_version < 3)
        import->eager = true;
    TRY(copy_model_fields(import, &frame.opsets));
    TRY(functions_init(import, &order));
    TRY(functions_describe(import, order));
    map_init(&frame.attrs, import->allocator);
    map_init(&frame.call_names, import->allocator);
    tssa_status *status = import_main_graph(import, &frame);
    map_free(&frame.attrs);
    map_free(&frame.call_names);
    return status;
}

static tssa_status *import_bytes(struct import *import, const void *data, size_t size)
{
    ProtobufCMessage *message;
    if (size == 0)
        return ERROR(TSSA_MALFORMED, "not an ONNX model: it is empty");
    tssa_status *status =
        wire_unpack(&import->file, &onnx__model_proto__descriptor, data, size, &message);
    if (status)
        return tssa_status_code(status) == TSSA_MALFORMED
                   ? status_prefix(status, "not an ONNX model")
                   : status;
    import->model = (const Onnx__ModelProto *)message;
    TRY(name_dropped(import));
    return import_model(import);
}

static void import_init(struct import *import, const tssa_allocator *allocator, size_t size,
                        const struct onnx_import_options *options, bool mapped)
{
    *import = (struct import){.allocator = allocator, .mapped = mapped};
    if (options)
        import->options = *options;
    import->expansion_left = IMPORT_MAX_EXPANSION;
    import->dense_left = DENSE_FREE + DENSE_FACTOR * (uint64_t)size;
    wire_init(&import->file, allocator);
    arena_init(&import->scratch, allocator);
    map_init(&import->functions, allocator);
    map_init(&import->used_names, allocator);
    map_init(&import->operators, allocator);
    map_init(&import->attrs, allocator);
    map_init(&import->tensors, allocator);
    vec_init(&import->operands, allocator);
    vec_init(&import->node_attrs, allocator);
    vec_init(&import->value_notes, allocator);
    vec_init(&import->annotations, allocator);
}

static void import_free(struct import *import)
{
    vec_free(&import->annotations);
    vec_free(&import->value_notes);
    vec_free(&import->node_attrs);
    vec_free(&import->operands);
    map_free(&import->tensors);
    map_free(&import->attrs);
    map_free(&import->operators);
    map_free(&import->used_names);
    map_free(&import->functions);
    arena_clear(&import->scratch);
    wire_free(&import->file);
}

/* ---- The outputs as they are declared -------------------------------------------------------- */

static tssa_status *type_text(const struct ir_graph *graph, const struct ir_type *type,
                              struct text *text)
{
    text_init(text, graph->allocator);
    type_print(type, text);
    return text_string(text) ? NULL : status_out_of_memory();
}

/* An element type that the value does not have: no runtime takes the model. */
static tssa_status *refuse_output(struct ir_graph *graph, uint32_t index, const char *declared)
{
    const struct ir_value *value = ir_operand(ir_block_return(graph->body), index);
    struct text text;
    char op[256] = "an input";
    if (value->op)
        ir_op_describe(value->op, op, sizeof op);
    tssa_status *status = type_text(graph, value->type, &text);
    if (!status)
        status = ERROR(TSSA_MALFORMED, "output \"%s\" is declared %s, but %s makes it %s",
                       graph->output_names[index], declared, op, text_string(&text));
    text_free(&text);
    return status;
}

/* A shape that the value does not have is what it is in fact, which is noted. */
static tssa_status *correct_output(struct ir_graph *graph, uint32_t index, const char *declared)
{
    const char *before = graph->dropped;
    graph->output_types[index] = ir_operand(ir_block_return(graph->body), index)->type;
    graph->dropped = arena_printf(&graph->arena, "%s%sthe shape declared of output \"%s\" (%s)",
                                  before ? before : "", before ? ", " : "",
                                  graph->output_names[index], declared);
    TRY_ALLOC(graph->dropped);
    return NULL;
}

static bool same_elements(const struct ir_type *a, const struct ir_type *b)
{
    return a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->dtype == b->dtype;
}

static tssa_status *check_outputs(struct ir_graph *graph)
{
    const struct ir_op *results = ir_block_return(graph->body);
    for (uint32_t i = 0; i < results->n_operands && graph->output_types; i++) {
        const struct ir_type *declared = graph->output_types[i],
                             *type = ir_operand(results, i)->type;
        struct text text;
        if (!declared || type_compatible(declared, type))
            continue;
        tssa_status *status = type_text(graph, declared, &text);
        if (!status)
            status = (same_elements(declared, type) ? correct_output
                                                    : refuse_output)(graph, i, text_string(&text));
        text_free(&text);
        TRY(status);
    }
    return NULL;
}

/*
 * What an import that succeeded leaves is checked after its own memory is gone: that is the peak.
 */
static tssa_status *finish(struct ir_graph *graph)
{
    graph->infer_steps = 0;
    TRY(ir_infer_graph(graph));
    TRY(check_outputs(graph));
    return ir_verify(graph);
}

static tssa_status *import_into(struct ir_graph *made, const void *data, size_t size,
                                const struct onnx_import_options *options, bool mapped);

static bool has_calls(const struct ir_graph *graph)
{
    for (size_t i = 0; i < graph->n_functions; i++)
        if (graph->functions[i].stays)
            return true;
    return false;
}

/* A function that is called is well-formed, whether its calls stay or not: what is wrong with it is
 * found by inlining it elsewhere. That it cannot be inlined for other reasons matters no more. */
static tssa_status *check_kept(const struct ir_graph *graph, const void *data, size_t size,
                               const struct onnx_import_options *options, bool mapped)
{
    if (!has_calls(graph))
        return NULL;
    struct onnx_import_options own = options ? *options : (struct onnx_import_options){0};
    own.functions = TSSA_FUNCTIONS_INLINE;
    struct ir_graph *inlined = ir_graph_create(graph->allocator);
    TRY_ALLOC(inlined);
    tssa_status *status = import_into(inlined, data, size, &own, mapped);
    ir_graph_free(inlined);
    tssa_code code = tssa_status_code(status);
    if (code != TSSA_LIMIT && code != TSSA_UNSUPPORTED)
        return status;
    tssa_status_free(status);
    return NULL;
}

static tssa_status *import_into(struct ir_graph *made, const void *data, size_t size,
                                const struct onnx_import_options *options, bool mapped)
{
    struct import import;
    import_init(&import, made->allocator, size, options, mapped);
    import.graph = made;
    external_init(&import.external, made, import.options.external_data_folder,
                  import.options.allow_external_links);
    tssa_status *status = import_bytes(&import, data, size);
    external_free(&import.external);
    import_free(&import);
    TRY(status);
    TRY(finish(made));
    ir_graph_forget_files(made); /* what was copied is not read again, and all else not soon */
    return check_kept(made, data, size, options, mapped);
}

tssa_status *onnx_import(const tssa_allocator *allocator, const void *data, size_t size,
                         const struct onnx_import_options *options, struct ir_graph **graph)
{
    struct ir_graph *made = ir_graph_create(allocator);
    TRY_ALLOC(made);
    tssa_status *status = import_into(made, data, size, options, false);
    if (status) {
        ir_graph_free(made);
        return status;
    }
    *graph = made;
    return NULL;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* The mapped file, owned by the graph. */
struct model_file {
    struct ir_resource resource;
};

static void release_model_file(struct ir_resource *resource)
{
    file_map_close(&resource->file);
}

static tssa_status *map_model(struct ir_graph *graph, const char *path, struct file_map *map)
{
    struct model_file *file = ARENA_NEW(&graph->arena, struct model_file);
    TRY_ALLOC(file);
    TRY(file_map_open(path, &file->resource.file));
    file->resource.release = release_model_file;
    ir_graph_attach(graph, &file->resource);
    *map = file->resource.file;
    return NULL;
}

/* The folder of a path: "a/b.onnx" -> "a", "b.onnx" -> ".", "/b.onnx" -> "/". */
static const char *folder_of(struct ir_graph *graph, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return arena_string(&graph->arena, path, slash == path ? 1 : (size_t)(slash - path));
}

static tssa_status *import_file(struct ir_graph *graph, const char *path,
                                const struct onnx_import_options *options)
{
    struct onnx_import_options own = {0};
    struct file_map map;
    if (options)
        own = *options;
    TRY(map_model(graph, path, &map));
    if (!own.external_data_folder) {
        own.external_data_folder = folder_of(graph, path);
        TRY_ALLOC(own.external_data_folder);
    }
    return status_prefix(import_into(graph, map.data, map.size, &own, true), "%s", path);
}

tssa_status *onnx_import_file(const tssa_allocator *allocator, const char *path,
                              const struct onnx_import_options *options, struct ir_graph **graph)
{
    struct ir_graph *made = ir_graph_create(allocator);
    TRY_ALLOC(made);
    tssa_status *status = import_file(made, path, options);
    if (status) {
        ir_graph_free(made);
        return status;
    }
    *graph = made;
    return NULL;
}
