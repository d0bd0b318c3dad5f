/* SPDX-License-Identifier: Apache-2.0 */
/* Whole models; see exporter.h. */
#include "onnx/exporter.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/file.h"
#include "ir/fuse.h"
#include "onnx/export.h"
#include "onnx/wire.h"

/* Readers of protobuf take no message above this. */
#define MESSAGE_LIMIT ((size_t)INT32_MAX)
#define EXTERNAL_THRESHOLD 1024

enum model_field {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER_NAME = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_DOMAIN = 4,
    MODEL_VERSION = 5,
    MODEL_DOC = 6,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14,
    MODEL_FUNCTION = 25
};

/* ---- The model around the graph -------------------------------------------------------------- */

static void put_opset(struct output *out, const char *domain, int64_t version)
{
    struct output_mark mark = output_open(out, MODEL_OPSET);
    wire_put_bytes(&out->bytes, 1, domain, strlen(domain));
    wire_put_int(&out->bytes, 2, version);
    output_close(out, mark);
}

static void put_opsets(struct export *export)
{
    const struct ir_graph *graph = export->graph;
    bool found = false;
    for (size_t i = 0; i < graph->n_opsets; i++) {
        bool own = !graph->opsets[i].domain[0];
        found |= own;
        put_opset(&export->out, graph->opsets[i].domain,
                  own ? export->opset : graph->opsets[i].version);
    }
    for (size_t i = 0; i < export->opsets.count; i++)
        put_opset(&export->out, export->opsets.data[i].domain, export->opsets.data[i].version);
    if (!found && export->uses_onnx)
        put_opset(&export->out, "", export->opset);
}

static tssa_status *put_model(struct export *export)
{
    const struct ir_graph *graph = export->graph;
    struct output *out = &export->out;
    wire_put_int(&out->bytes, MODEL_IR_VERSION, export->ir_version);
    output_string(out, MODEL_PRODUCER_NAME, graph->producer_name);
    output_string(out, MODEL_PRODUCER_VERSION, graph->producer_version);
    output_string(out, MODEL_DOMAIN, graph->domain);
    wire_put_int(&out->bytes, MODEL_VERSION, graph->model_version);
    output_string(out, MODEL_DOC, graph->doc);
    for (size_t i = 0; i < graph->n_metadata; i++)
        export_metadata(out, MODEL_METADATA, graph->metadata[i].key, graph->metadata[i].value);
    TRY(export_block(export, MODEL_GRAPH, graph->body));
    put_opsets(export);
    export_put_functions(export, MODEL_FUNCTION);
    return NULL;
}

/* ---- The export ------------------------------------------------------------------------------ */

/* export_free in every case. */
static tssa_status *export_init(struct export *export, const struct ir_graph *graph,
                                const struct onnx_export_options *options)
{
    *export = (struct export){.allocator = graph->allocator};
    if (options)
        export->options = *options;
    arena_init(&export->scratch, graph->allocator);
    output_init(&export->out, graph->allocator);
    vec_init(&export->external.tensors, graph->allocator);
    map_init(&export->external.offsets, graph->allocator);
    map_init(&export->used_names, graph->allocator);
    map_init(&export->name_counts, graph->allocator);
    map_init(&export->value_notes, graph->allocator);
    map_init(&export->rewritten, graph->allocator);
    vec_init(&export->opsets, graph->allocator);
    vec_init(&export->operands, graph->allocator);
    vec_init(&export->node_attrs, graph->allocator);
    export->external.threshold = export->options.external_threshold
                                     ? export->options.external_threshold
                                     : EXTERNAL_THRESHOLD;
    TRY(ir_fuse_unfused(graph, &export->unfused, &export->graph));
    graph = export->graph;
    export->empty =
        (struct ir_value){.id = graph->n_values, .type = graph->types.unknown, .wanted = true};
    export->n_values = (size_t)graph->n_values + 1;
    return NULL;
}

static void export_free(struct export *export)
{
    vec_free(&export->node_attrs);
    vec_free(&export->operands);
    vec_free(&export->opsets);
    map_free(&export->rewritten);
    map_free(&export->value_notes);
    map_free(&export->name_counts);
    map_free(&export->used_names);
    map_free(&export->external.offsets);
    vec_free(&export->external.tensors);
    output_free(&export->out);
    arena_clear(&export->scratch);
    ir_graph_free(export->unfused);
}

/* Fills in export->out. */
static tssa_status *build(struct export *export)
{
    export->ir_version = export->graph->ir_version < 3 ? 3 : export->graph->ir_version;
    TRY(export_avoid_hazards(export));
    TRY(export_choose_opset(export));
    TRY(export_assign_names(export));
    TRY(export_collect_notes(export));
    TRY(put_model(export));
    return output_failed(&export->out) ? status_out_of_memory() : NULL;
}

tssa_status *onnx_export(const struct ir_graph *graph, const struct onnx_export_options *options,
                         const struct output_sink *sink)
{
    struct export export;
    if (options && options->external_data)
        return ERROR(TSSA_INVALID_ARGUMENT, "a model in memory has no external data");
    tssa_status *status = export_init(&export, graph, options);
    if (!status)
        status = build(&export);
    if (!status && output_size(&export.out) > MESSAGE_LIMIT)
        status = ERROR(TSSA_LIMIT, "the model has %zu bytes: above 2 GiB it needs external data",
                       output_size(&export.out));
    if (!status)
        status = output_write(&export.out, sink);
    export_free(&export);
    return status;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static tssa_status *write_file(void *context, const void *data, size_t size)
{
    return file_writer_write(context, data, size);
}

static tssa_status *write_model(const struct export *export, const char *path,
                                struct file_writer *writer)
{
    const struct output_sink sink = {write_file, writer};
    TRY(file_writer_open(export->allocator, path, writer));
    tssa_status *status = output_write(&export->out, &sink);
    if (status)
        file_writer_abort(writer);
    return status;
}

static tssa_status *write_zeros(struct file_writer *writer, uint64_t count)
{
    static const char zeros[4096];
    for (; count > 0; count -= count < sizeof zeros ? count : sizeof zeros)
        TRY(file_writer_write(writer, zeros, count < sizeof zeros ? count : sizeof zeros));
    return NULL;
}

static tssa_status *write_tensors(const struct export_external *external,
                                  struct file_writer *writer)
{
    const struct output_sink sink = {write_file, writer};
    uint64_t at = 0;
    for (size_t i = 0; i < external->tensors.count; i++) {
        const struct external_tensor *tensor = &external->tensors.data[i];
        TRY(write_zeros(writer, tensor->offset - at));
        TRY(output_write_elements(tensor->tensor, &sink));
        at = tensor->offset + tensor->size;
    }
    return NULL;
}

/* "a/b.onnx" -> "b.onnx" */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static tssa_status *use_external(struct export *export, const char *path)
{
    const char *name = export->options.external_name;
    if (!name)
        name = arena_printf(&export->scratch, "%s.data", file_name(path));
    TRY_ALLOC(name);
    if (!name[0] || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return ERROR(TSSA_INVALID_ARGUMENT, "\"%s\" is no name of a file beside the model", name);
    if (strcmp(name, file_name(path)) == 0)
        return ERROR(TSSA_INVALID_ARGUMENT, "the model itself is named \"%s\"", name);
    export->external.location = name;
    return NULL;
}

/* Both files are complete on the disk before the first of them gets its name. */
static tssa_status *write_both(struct export *export, const char *path)
{
    struct file_writer model, data;
    int folder = (int)(file_name(path) - path);
    const char *data_path =
        arena_printf(&export->scratch, "%.*s%s", folder, path, export->external.location);
    TRY_ALLOC(data_path);
    TRY(file_writer_open(export->allocator, data_path, &data));
    tssa_status *status = write_tensors(&export->external, &data);
    if (!status)
        status = write_model(export, path, &model);
    if (status) {
        file_writer_abort(&data);
        return status;
    }
    status = file_writer_sync(&data);
    if (!status)
        status = file_writer_sync(&model);
    if (!status)
        status = file_writer_commit(&data);
    if (status) {
        file_writer_abort(&data);
        file_writer_abort(&model);
        return status;
    }
    return file_writer_commit(&model);
}

static tssa_status *write_files(struct export *export, const char *path)
{
    if (export->external.tensors.count)
        return write_both(export, path);
    struct file_writer writer = {0};
    TRY(write_model(export, path, &writer));
    return file_writer_commit(&writer);
}

static tssa_status *export_file(const struct ir_graph *graph, const char *path,
                                const struct onnx_export_options *options, bool external,
                                bool *too_large)
{
    struct export export;
    tssa_status *status = export_init(&export, graph, options);
    if (!status && external)
        status = use_external(&export, path);
    if (!status)
        status = build(&export);
    *too_large = !status && output_size(&export.out) > MESSAGE_LIMIT;
    if (*too_large && external)
        status = ERROR(TSSA_LIMIT, "without its tensors the model has %zu bytes: 2 GiB are allowed",
                       output_size(&export.out));
    else if (!status && !*too_large)
        status = write_files(&export, path);
    export_free(&export);
    return status;
}

tssa_status *onnx_export_file(const struct ir_graph *graph, const char *path,
                              const struct onnx_export_options *options)
{
    bool external = options && options->external_data, too_large;
    TRY(export_file(graph, path, options, external, &too_large));
    return too_large && !external ? export_file(graph, path, options, true, &too_large) : NULL;
}
