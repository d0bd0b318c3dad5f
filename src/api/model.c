/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_model: loading, and fixing dims. What a model says of itself is in model_info.c. */
#include "api/handles.h"
#include "ir/infer.h"
#include "onnx/importer.h"

/* ---- Life ----------------------------------------------------------------------------------------- */

void model_retain(struct tssa_model *model)
{
    atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
}

void model_release(struct tssa_model *model)
{
    if (atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) != 1)
        return;
    ir_graph_free(model->graph);
    allocator_free(&model->context->allocator, model);
}

void tssa_model_free(tssa_model *model)
{
    if (model)
        model_release(model);
}

static tssa_status *model_create(tssa_context *context, struct ir_graph *graph, tssa_model **out)
{
    struct tssa_model *model = allocator_calloc(&context->allocator, 1, sizeof *model);
    if (!model) {
        ir_graph_free(graph);
        return status_out_of_memory();
    }
    model->context = context;
    model->graph = graph;
    atomic_init(&model->references, 1);
    *out = model;
    return NULL;
}

static struct onnx_import_options import_options(const tssa_load_options *options)
{
    struct onnx_import_options import = {0};
    if (options) {
        import.allow_external_links = options->allow_external_links != 0;
        import.external_data_folder = options->external_data_folder;
    }
    return import;
}

tssa_status *tssa_model_load_file(tssa_context *context, const char *path,
                                  const tssa_load_options *options, tssa_model **out)
{
    if (!context || !path || !out)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_load_file: an argument is NULL");
    struct ir_graph *graph;
    struct onnx_import_options import = import_options(options);
    TRY(onnx_import_file(&context->allocator, path, &import, &graph));
    return model_create(context, graph, out);
}

tssa_status *tssa_model_load_memory(tssa_context *context, const void *data, size_t size,
                                    const tssa_load_options *options, tssa_model **out)
{
    if (!context || (!data && size) || !out)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_load_memory: an argument is NULL");
    struct ir_graph *graph;
    struct onnx_import_options import = import_options(options);
    TRY(onnx_import(&context->allocator, data, size, &import, &graph));
    return model_create(context, graph, out);
}

/* ---- Changing ------------------------------------------------------------------------------------- */

tssa_status *tssa_model_set_dim(tssa_model *model, const char *symbol, int64_t value)
{
    if (!model || !symbol || value < 0)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_set_dim: an argument is NULL or negative");
    struct ir_graph *graph = model->graph;
    const struct dim *from = dim_symbol(&graph->dims, symbol), *to = dim_const(&graph->dims, value);
    bool found = false;
    if (!from || !to)
        return status_out_of_memory();
    for (uint32_t i = 0; i < graph->body->n_params; i++) {
        struct ir_value *param = graph->body->params[i];
        const struct dim *dims[TSSA_MAX_RANK];
        bool changed = false;
        for (int d = 0; param->type->kind == TYPE_TENSOR && d < param->type->rank; d++) {
            dims[d] = dim_substitute(&graph->dims, param->type->dims[d], from, to);
            TRY_ALLOC(dims[d]);
            changed |= dims[d] != param->type->dims[d];
        }
        if (changed) {
            found = true;
            param->type = type_tensor(&graph->types, param->type->dtype, param->type->rank, dims);
            TRY_ALLOC(param->type);
        }
    }
    if (!found)
        return ERROR(TSSA_INVALID_ARGUMENT, "no input of the model has a dim named \"%s\"", symbol);
    return ir_infer_graph(graph);
}
