/* SPDX-License-Identifier: Apache-2.0 */
/* Models back to ONNX. */
#include "api/handles.h"
#include "api/options.h"
#include "onnx/exporter.h"

static tssa_status *export_options(const tssa_save_options *given, struct onnx_export_options *out)
{
    tssa_save_options options;
    TRY(OPTIONS_READ(tssa_save_options, given, &options));
    *out = (struct onnx_export_options){.opset = options.opset,
                                        .external_data = options.save_as_external_data != 0,
                                        .external_name = options.external_data_name,
                                        .external_threshold = options.external_data_threshold};
    return NULL;
}

tssa_status *tssa_model_save_file(const tssa_model *model, const char *path,
                                  const tssa_save_options *options)
{
    if (!model || !path)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_save_file: an argument is NULL");
    struct onnx_export_options export;
    TRY(export_options(options, &export));
    return onnx_export_file(model->graph, path, &export);
}

/* The caller's function, which cannot fail. */
struct receiver {
    void (*write)(void *user, const void *data, size_t size);
    void *user;
};

static tssa_status *receive(void *context, const void *data, size_t size)
{
    const struct receiver *receiver = context;
    receiver->write(receiver->user, data, size);
    return NULL;
}

tssa_status *tssa_model_save_memory(const tssa_model *model, const tssa_save_options *options,
                                    void (*write)(void *user, const void *data, size_t size),
                                    void *user)
{
    if (!model || !write)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_save_memory: an argument is NULL");
    struct onnx_export_options export;
    TRY(export_options(options, &export));
    struct receiver receiver = {write, user};
    const struct output_sink sink = {receive, &receiver};
    return onnx_export(model->graph, &export, &sink);
}
