/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_model: loading, and fixing dims. What a model says of itself is in model_info.c. */
#include <inttypes.h>
#include <string.h>

#include "api/handles.h"
#include "api/options.h"
#include "base/file.h"
#include "base/float_mode.h"
#include "ir/clone.h"
#include "ir/copies.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "onnx/importer.h"

/* ---- Life ------------------------------------------------------------------------------------ */

void model_retain(struct tssa_model *model)
{
    atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
    atomic_store_explicit(&model->shared, true, memory_order_relaxed);
}

void model_release(struct tssa_model *model)
{
    if (atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) != 1)
        return;
    ir_graph_free(model->raised); /* first: it shares what is in the other */
    ir_graph_free(model->graph);
    while (model->before.count)
        ir_graph_free(model->before.data[--model->before.count]);
    vec_free(&model->before);
    allocator_free(&model->context->allocator, model);
}

static tssa_status *leave_graph(struct tssa_model *model)
{
    struct ir_graph *copy;
    TRY(ir_clone_graph(model->graph, &copy));
    (void)vec_push(&model->before, model->graph);
    model->graph = copy;
    atomic_store_explicit(&model->shared, false, memory_order_relaxed);
    return NULL;
}

tssa_status *model_change(struct tssa_model *model, bool raised)
{
    const bool sessions = atomic_load_explicit(&model->references, memory_order_acquire) > 1;
    if (!vec_reserve(&model->before, 2))
        return status_out_of_memory();
    if (sessions && atomic_load_explicit(&model->shared, memory_order_relaxed))
        TRY(leave_graph(model));
    if (raised || !model->raised)
        return NULL;
    if (sessions)
        (void)vec_push(&model->before, model->raised);
    else
        ir_graph_free(model->raised);
    model->raised = NULL;
    return NULL;
}

void tssa_model_free(tssa_model *model)
{
    if (!model)
        return;
    if (atomic_load_explicit(&model->references, memory_order_acquire) > 1)
        ir_copies_leave(model->graph); /* sessions remain, which hold what they need */
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
    atomic_init(&model->shared, false);
    vec_init(&model->before, &context->allocator);
    *out = model;
    return NULL;
}

static tssa_status *import_options(const tssa_load_options *given, struct onnx_import_options *out)
{
    tssa_load_options options;
    TRY(OPTIONS_READ(tssa_load_options, given, &options));
    *out = (struct onnx_import_options){.allow_external_links = options.allow_external_links != 0,
                                        .external_data_folder = options.external_data_folder,
                                        .functions = options.functions};
    return NULL;
}

static bool is_text(const char *path)
{
    size_t size = strlen(path);
    return size > 4 && strcmp(path + size - 4, ".tir") == 0;
}

static tssa_status *verify_and_infer(struct ir_graph *graph)
{
    TRY(ir_verify(graph));
    TRY(ir_infer_graph(graph));
    return ir_verify(graph);
}

static tssa_status *read_text(const tssa_allocator *allocator, const char *path,
                              struct ir_graph **out)
{
    struct file_map map;
    struct ir_graph *graph = NULL;
    TRY(file_map_open(path, &map));
    tssa_status *status = ir_parse(allocator, map.data, map.size, &graph);
    file_map_close(&map);
    if (!status)
        status = verify_and_infer(graph);
    if (status) {
        ir_graph_free(graph);
        return status_prefix(status, "%s", path);
    }
    *out = graph;
    return NULL;
}

tssa_status *tssa_model_load_file(tssa_context *context, const char *path,
                                  const tssa_load_options *options, tssa_model **out)
{
    FLOAT_MODE_ENTER();
    if (!context || !path || !out)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_load_file: an argument is NULL");
    struct ir_graph *graph;
    struct onnx_import_options import;
    TRY(import_options(options, &import));
    if (is_text(path))
        TRY(read_text(&context->allocator, path, &graph));
    else
        TRY(onnx_import_file(&context->allocator, path, &import, &graph));
    TRY(model_create(context, graph, out));
    context_log(context, TSSA_LOG_INFO, "loaded %s", path);
    return NULL;
}

tssa_status *tssa_model_load_memory(tssa_context *context, const void *data, size_t size,
                                    const tssa_load_options *options, tssa_model **out)
{
    FLOAT_MODE_ENTER();
    if (!context || (!data && size) || !out)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_load_memory: an argument is NULL");
    struct ir_graph *graph;
    struct onnx_import_options import;
    TRY(import_options(options, &import));
    TRY(onnx_import(&context->allocator, data, size, &import, &graph));
    TRY(model_create(context, graph, out));
    context_log(context, TSSA_LOG_INFO, "loaded a model of %zu bytes", size);
    return NULL;
}

/* ---- Changing -------------------------------------------------------------------------------- */

/* *type with the symbol replaced; *found when it is there. */
static tssa_status *substitute_in(struct ir_graph *graph, const struct dim *from,
                                  const struct dim *to, const struct ir_type **type, bool *found)
{
    const struct dim *dims[TSSA_MAX_RANK];
    bool changed = false;
    for (int d = 0; (*type)->kind == TYPE_TENSOR && d < (*type)->rank; d++) {
        dims[d] = dim_substitute(&graph->dims, (*type)->dims[d], from, to);
        TRY_ALLOC(dims[d]);
        changed |= dims[d] != (*type)->dims[d];
    }
    if (!changed)
        return NULL;
    *found = true;
    *type = type_tensor(&graph->types, (*type)->dtype, (*type)->rank, dims);
    TRY_ALLOC(*type);
    return NULL;
}

/* In the types of all inputs, and in those that the model declares of its outputs; *found when any
 * input has the symbol. */
static tssa_status *substitute(struct ir_graph *graph, const struct dim *from, const struct dim *to,
                               bool *found)
{
    bool in_output;
    for (uint32_t i = 0; i < graph->body->n_params; i++)
        TRY(substitute_in(graph, from, to, &graph->body->params[i]->type, found));
    const struct ir_op *results = ir_block_return(graph->body);
    for (uint32_t i = 0; i < results->n_operands && graph->output_types; i++)
        if (graph->output_types[i])
            TRY(substitute_in(graph, from, to, &graph->output_types[i], &in_output));
    return NULL;
}

/* *found when an input has the symbol. */
static tssa_status *set_dim(struct ir_graph *graph, const char *symbol, int64_t value, bool *found)
{
    const struct dim *from = dim_symbol(&graph->dims, symbol), *to = dim_const(&graph->dims, value);
    if (!from || !to)
        return status_out_of_memory();
    *found = false;
    TRY(substitute(graph, from, to, found));
    return *found ? ir_infer_graph(graph) : NULL;
}

tssa_status *tssa_model_set_dim(tssa_model *model, const char *symbol, int64_t value)
{
    FLOAT_MODE_ENTER();
    if (!model || !symbol || value < 0)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_set_dim: an argument is NULL or negative");
    bool found;
    TRY(model_change(model, true));
    TRY(set_dim(model->graph, symbol, value, &found));
    if (!found)
        return ERROR(TSSA_INVALID_ARGUMENT, "no input of the model has a dim named \"%s\"", symbol);
    return model->raised ? set_dim(model->raised, symbol, value, &found) : NULL;
}

static struct ir_value *find_input(const struct ir_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->body->n_params; i++) {
        struct ir_value *param = graph->body->params[i];
        if (param->name && strcmp(param->name, name) == 0)
            return param;
    }
    return NULL;
}

/* One dim of an input; the type is read anew, since a symbol may have got its value before. */
static tssa_status *set_input_dim(struct ir_graph *graph, struct ir_value *input, int axis,
                                  int64_t size)
{
    const struct dim *old = input->type->dims[axis], *new = dim_const(&graph->dims, size);
    const struct dim *dims[TSSA_MAX_RANK];
    bool found;
    TRY_ALLOC(new);
    if (old->kind == DIM_SYMBOL)
        return substitute(graph, old, new, &found);
    memcpy(dims, input->type->dims, (size_t)input->type->rank * sizeof(const struct dim *));
    dims[axis] = new;
    input->type = type_tensor(&graph->types, input->type->dtype, input->type->rank, dims);
    TRY_ALLOC(input->type);
    return NULL;
}

static tssa_status *give_rank(struct ir_graph *graph, struct ir_value *input, int rank)
{
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < rank; i++)
        TRY_ALLOC(dims[i] = dim_fresh(&graph->dims, "size"));
    input->type = type_tensor(&graph->types, input->type->dtype, rank, dims);
    TRY_ALLOC(input->type);
    return NULL;
}

/* Sizes that contradict each other: a symbol that stands for two of them. */
static tssa_status *check_symbols(const struct ir_type *type, const int64_t *sizes)
{
    for (int i = 0; i < type->rank; i++)
        for (int k = 0; k < i; k++)
            if (type->dims[i] == type->dims[k] && type->dims[i]->kind == DIM_SYMBOL &&
                sizes[i] != sizes[k] && sizes[i] >= 0 && sizes[k] >= 0)
                return ERROR(TSSA_INVALID_ARGUMENT,
                             "dims %d and %d are the same, \"%s\", and cannot be %" PRId64
                             " and %" PRId64,
                             k, i, type->dims[i]->name, sizes[k], sizes[i]);
    return NULL;
}

static tssa_status *set_shape(struct ir_graph *graph, const char *name, int rank,
                              const int64_t *dims)
{
    struct ir_value *input = find_input(graph, name);
    if (!input)
        return ERROR(TSSA_INVALID_ARGUMENT, "the model has no input named \"%s\"", name);
    if (input->type->kind != TYPE_TENSOR)
        return ERROR(TSSA_INVALID_ARGUMENT, "the input %s is no tensor", name);
    for (int i = 0; i < rank; i++)
        if (dims[i] < -1)
            return ERROR(TSSA_INVALID_ARGUMENT, "the input %s cannot have a dim of %" PRId64, name,
                         dims[i]);
    if (input->type->rank < 0)
        TRY(give_rank(graph, input, rank));
    if (input->type->rank != rank)
        return ERROR(TSSA_INVALID_ARGUMENT, "the input %s has %d dims, not %d", name,
                     input->type->rank, rank);
    TRY(status_prefix(check_symbols(input->type, dims), "the input %s", name));
    for (int i = 0; i < rank; i++)
        if (dims[i] >= 0)
            TRY(set_input_dim(graph, input, i, dims[i]));
    return ir_infer_graph(graph);
}

tssa_status *tssa_model_set_input_shape(tssa_model *model, const char *name, int rank,
                                        const int64_t *dims)
{
    FLOAT_MODE_ENTER();
    if (!model || !name || rank < 0 || rank > TSSA_MAX_RANK || (rank && !dims))
        return ERROR(TSSA_INVALID_ARGUMENT,
                     "tssa_model_set_input_shape: an argument is NULL or out of range");
    TRY(model_change(model, true));
    TRY(set_shape(model->graph, name, rank, dims));
    return model->raised ? set_shape(model->raised, name, rank, dims) : NULL;
}

tssa_status *tssa_model_verify(tssa_model *model)
{
    FLOAT_MODE_ENTER();
    if (!model)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_verify: model is NULL");
    TRY(model_change(model, true));
    return verify_and_infer(model->graph);
}
