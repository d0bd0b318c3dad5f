/* SPDX-License-Identifier: Apache-2.0 */
/* Models back to ONNX. */
#include <string.h>

#include "api/handles.h"
#include "api/options.h"
#include "base/float_mode.h"
#include "onnx/exporter.h"

size_t tssa_hazard_count(void)
{
    return onnx_hazard_count();
}

tssa_status *tssa_hazard(size_t index, tssa_hazard_info *info)
{
    if (!info || index >= onnx_hazard_count())
        return ERROR(TSSA_INVALID_ARGUMENT, "there is no hazard %zu", index);
    *info = onnx_hazard(index);
    return NULL;
}

static tssa_status *keep_hazard(const char *name, uint64_t *kept)
{
    for (size_t i = 0; name && i < onnx_hazard_count(); i++)
        if (strcmp(onnx_hazard(i).name, name) == 0) {
            *kept |= UINT64_C(1) << i;
            return NULL;
        }
    return ERROR(TSSA_INVALID_ARGUMENT, "there is no hazard \"%s\"", name ? name : "");
}

static tssa_status *export_options(const tssa_save_options *given, struct onnx_export_options *out)
{
    tssa_save_options options;
    TRY(OPTIONS_READ(tssa_save_options, given, &options));
    *out = (struct onnx_export_options){.opset = options.opset,
                                        .external_data = options.save_as_external_data != 0,
                                        .external_name = options.external_data_name,
                                        .external_threshold = options.external_data_threshold};
    for (size_t i = 0; i < options.n_kept_hazards; i++)
        TRY(keep_hazard(options.kept_hazards[i], &out->kept_hazards));
    return NULL;
}

/* What was to be gone around, and could not be. */
static void tell_met(const tssa_model *model, uint64_t met)
{
    for (size_t i = 0; i < onnx_hazard_count(); i++)
        if (met >> i & 1)
            context_log(model->context, TSSA_LOG_WARNING,
                        "hazard %s is in the file, whose opset cannot say the way around it",
                        onnx_hazard(i).name);
}

tssa_status *tssa_model_save_file(const tssa_model *model, const char *path,
                                  const tssa_save_options *options)
{
    FLOAT_MODE_ENTER();
    if (!model || !path)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_save_file: an argument is NULL");
    struct onnx_export_options export;
    uint64_t met = 0;
    TRY(export_options(options, &export));
    export.met_hazards = &met;
    TRY(onnx_export_file(model->graph, path, &export));
    tell_met(model, met);
    return NULL;
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
    FLOAT_MODE_ENTER();
    if (!model || !write)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_save_memory: an argument is NULL");
    struct onnx_export_options export;
    uint64_t met = 0;
    TRY(export_options(options, &export));
    export.met_hazards = &met;
    struct receiver receiver = {write, user};
    const struct output_sink sink = {receive, &receiver};
    TRY(onnx_export(model->graph, &export, &sink));
    tell_met(model, met);
    return NULL;
}
