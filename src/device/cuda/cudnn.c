/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/cudnn.h"

#include <string.h>

enum {
#define CUDNN_VALUE(ours, theirs, value) DNN_##ours = (value),
#include "device/cuda/cudnn_values.def"
#undef CUDNN_VALUE
};

static const struct shared_names names = {"cuDNN", {"libcudnn.so.9", "libcudnn.so"}, NULL};

static tssa_status *status_of(const struct cudnn *cudnn, cudnn_result result, const char *function)
{
    if (result == 0)
        return NULL;
    return ERROR(TSSA_RUNTIME, "%s: %s, error %u", function,
                 cudnn->cudnnGetErrorString ? cudnn->cudnnGetErrorString(result) : "unknown",
                 result);
}

#define DNN(cudnn, function, ...) SHARED_CALL(status_of, cudnn, function, __VA_ARGS__)

tssa_status *cudnn_open(struct cudnn *cudnn)
{
    void *library;
    TRY(shared_open(&names, &library));
    *cudnn = (struct cudnn){0};
#define LOAD(result, name, parameters) shared_function(library, #name, &cudnn->name);
    CUDNN_FUNCTIONS(LOAD)
#undef LOAD
    return NULL;
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

struct attribute {
    unsigned name, type;
    int64_t count;
    const void *values;
};

/* Makes a descriptor with attributes; those without a count are left out. */
static tssa_status *make(struct cudnn *cudnn, unsigned kind, const struct attribute *attributes,
                         size_t count, cudnn_descriptor *descriptor)
{
    TRY(DNN(cudnn, cudnnBackendCreateDescriptor, kind, descriptor));
    for (size_t i = 0; i < count; i++) {
        const struct attribute *a = &attributes[i];
        if (a->count)
            TRY(DNN(cudnn, cudnnBackendSetAttribute, *descriptor, a->name, a->type, a->count,
                    a->values));
    }
    return DNN(cudnn, cudnnBackendFinalize, *descriptor);
}

#define MAKE(cudnn, kind, descriptor, ...)                                                         \
    make(cudnn, kind, (const struct attribute[]){__VA_ARGS__},                                     \
         sizeof((const struct attribute[]){__VA_ARGS__}) / sizeof(struct attribute), descriptor)

tssa_status *cudnn_use_card(struct cudnn *cudnn)
{
    return DNN(cudnn, cudnnCreate, &cudnn->handle);
}

tssa_status *cudnn_use_properties(struct cudnn *cudnn, const char *json)
{
    int64_t size = (int64_t)strlen(json) + 1;
    return MAKE(cudnn, DNN_DEVICEPROP, &cudnn->properties,
                {DNN_DEVICEPROP_JSON, DNN_TYPE_CHAR, size, json});
}

tssa_status *cudnn_describe_card(struct cudnn *cudnn, char *json, size_t size)
{
    cudnn_descriptor properties;
    int64_t count = 0;
    memset(json, 0, size);
    TRY(MAKE(cudnn, DNN_DEVICEPROP, &properties,
             {DNN_DEVICEPROP_HANDLE, DNN_TYPE_HANDLE, 1, &cudnn->handle}));
    return DNN(cudnn, cudnnBackendGetAttribute, properties, DNN_DEVICEPROP_JSON, DNN_TYPE_CHAR,
               (int64_t)size - 1, &count, json);
}

/* ---- A graph of one convolution -------------------------------------------------------------- */

static tssa_status *make_tensor(struct cudnn *cudnn, int64_t id, const int64_t *dims,
                                cudnn_descriptor *tensor)
{
    const unsigned type = DNN_DATA_FLOAT;
    const int64_t alignment = 16;
    const int64_t strides[4] = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
    return MAKE(cudnn, DNN_TENSOR, tensor, {DNN_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &type},
                {DNN_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 4, dims},
                {DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 4, strides},
                {DNN_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1, &id},
                {DNN_TENSOR_BYTE_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment});
}

static tssa_status *make_window(struct cudnn *cudnn, const struct convolution *c,
                                cudnn_descriptor *window)
{
    const unsigned type = DNN_DATA_FLOAT, mode = DNN_CROSS_CORRELATION;
    const int64_t dims = 2, ones[2] = {1, 1}, padding[2] = {c->kernel / 2, c->kernel / 2};
    return MAKE(cudnn, DNN_CONVOLUTION, window,
                {DNN_CONVOLUTION_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &type},
                {DNN_CONVOLUTION_CONV_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, &mode},
                {DNN_CONVOLUTION_SPATIAL_DIMS, DNN_TYPE_INT64, 1, &dims},
                {DNN_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, 2, ones},
                {DNN_CONVOLUTION_FILTER_STRIDES, DNN_TYPE_INT64, 2, ones},
                {DNN_CONVOLUTION_PRE_PADDINGS, DNN_TYPE_INT64, 2, padding},
                {DNN_CONVOLUTION_POST_PADDINGS, DNN_TYPE_INT64, 2, padding});
}

enum { X_ID = 1, W_ID, Y_ID };

static tssa_status *make_graph(struct cudnn *cudnn, const struct convolution *c,
                               cudnn_descriptor *graph)
{
    cudnn_descriptor x, w, y, window, operation;
    const float alpha = 1, beta = 0;
    TRY(make_tensor(cudnn, X_ID, (const int64_t[]){c->batch, c->channels, c->height, c->width},
                    &x));
    TRY(make_tensor(cudnn, W_ID, (const int64_t[]){c->filters, c->channels, c->kernel, c->kernel},
                    &w));
    TRY(make_tensor(cudnn, Y_ID, (const int64_t[]){c->batch, c->filters, c->height, c->width}, &y));
    TRY(make_window(cudnn, c, &window));
    TRY(MAKE(cudnn, DNN_FORWARD, &operation,
             {DNN_FORWARD_CONV_DESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &window},
             {DNN_FORWARD_X, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
             {DNN_FORWARD_W, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &w},
             {DNN_FORWARD_Y, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
             {DNN_FORWARD_ALPHA, DNN_TYPE_FLOAT, 1, &alpha},
             {DNN_FORWARD_BETA, DNN_TYPE_FLOAT, 1, &beta}));
    return MAKE(cudnn, DNN_GRAPH, graph,
                {DNN_GRAPH_OPS, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation},
                {DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, cudnn->handle != NULL, &cudnn->handle});
}

/* ---- Engines --------------------------------------------------------------------------------- */

static tssa_status *has_note(struct cudnn *cudnn, cudnn_descriptor engine, unsigned name,
                             unsigned type, unsigned wanted, bool *has)
{
    enum { ROOM = 32 };
    unsigned notes[ROOM];
    int64_t count = 0;
    TRY(DNN(cudnn, cudnnBackendGetAttribute, engine, name, type, ROOM, &count, notes));
    *has = false;
    for (int64_t i = 0; i < count && i < ROOM; i++)
        *has = *has || notes[i] == wanted;
    return NULL;
}

static tssa_status *read_engine(struct cudnn *cudnn, struct engine *engine)
{
    cudnn_descriptor descriptor;
    int64_t count;
    TRY(DNN(cudnn, cudnnBackendCreateDescriptor, DNN_ENGINE, &descriptor));
    TRY(DNN(cudnn, cudnnBackendGetAttribute, engine->config, DNN_CONFIG_ENGINE,
            DNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &descriptor));
    TRY(DNN(cudnn, cudnnBackendGetAttribute, descriptor, DNN_ENGINE_INDEX, DNN_TYPE_INT64, 1,
            &count, &engine->index));
    TRY(has_note(cudnn, descriptor, DNN_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE,
                 DNN_NOTE_TENSOR_CORE, &engine->tensor_core));
    return has_note(cudnn, descriptor, DNN_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE,
                    DNN_NOTE_RUNTIME_COMPILATION, &engine->compiled);
}

/* Appends what one mode of the heuristic proposes. */
static tssa_status *propose(struct cudnn *cudnn, cudnn_descriptor graph, unsigned mode,
                            struct engine *engines, size_t *count)
{
    cudnn_descriptor heuristic, configs[ENGINE_LIMIT];
    int64_t room = ENGINE_LIMIT - (int64_t)*count, found = 0;
    TRY(MAKE(cudnn, DNN_HEURISTIC, &heuristic,
             {DNN_HEURISTIC_GRAPH, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph},
             {DNN_HEURISTIC_MODE, DNN_TYPE_HEUR_MODE, 1, &mode},
             {DNN_HEURISTIC_DEVICEPROP, DNN_TYPE_BACKEND_DESCRIPTOR, cudnn->properties != NULL,
              &cudnn->properties}));
    for (int64_t i = 0; i < room; i++)
        TRY(DNN(cudnn, cudnnBackendCreateDescriptor, DNN_CONFIG, &configs[i]));
    TRY(DNN(cudnn, cudnnBackendGetAttribute, heuristic, DNN_HEURISTIC_RESULTS,
            DNN_TYPE_BACKEND_DESCRIPTOR, room, &found, configs));
    for (int64_t i = 0; i < found && i < room; i++) {
        engines[*count] = (struct engine){.config = configs[i]};
        TRY(read_engine(cudnn, &engines[*count]));
        ++*count;
    }
    return NULL;
}

tssa_status *cudnn_engines(struct cudnn *cudnn, const struct convolution *convolution,
                           struct engine *engines, size_t *count)
{
    cudnn_descriptor graph;
    *count = 0;
    TRY(make_graph(cudnn, convolution, &graph));
    TRY(propose(cudnn, graph, DNN_MODE_A, engines, count));
    return propose(cudnn, graph, DNN_MODE_FALLBACK, engines, count);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

tssa_status *cudnn_plan_make(struct cudnn *cudnn, const struct engine *engine,
                             struct cudnn_plan *plan)
{
    int64_t count;
    TRY(MAKE(cudnn, DNN_PLAN, &plan->plan,
             {DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, cudnn->handle != NULL, &cudnn->handle},
             {DNN_PLAN_DEVICEPROP, DNN_TYPE_BACKEND_DESCRIPTOR, cudnn->properties != NULL,
              &cudnn->properties},
             {DNN_PLAN_CONFIG, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine->config}));
    return DNN(cudnn, cudnnBackendGetAttribute, plan->plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1,
               &count, &plan->workspace);
}

tssa_status *cudnn_pack(struct cudnn *cudnn, cuda_address x, cuda_address w, cuda_address y,
                        cuda_address workspace, cudnn_descriptor *pack)
{
    const int64_t ids[] = {X_ID, W_ID, Y_ID};
    void *const places[] = {(void *)x, (void *)w, (void *)y};
    void *const room = (void *)workspace;
    return MAKE(cudnn, DNN_PACK, pack, {DNN_PACK_IDS, DNN_TYPE_INT64, 3, ids},
                {DNN_PACK_POINTERS, DNN_TYPE_VOID_PTR, 3, places},
                {DNN_PACK_WORKSPACE, DNN_TYPE_VOID_PTR, 1, &room});
}

tssa_status *cudnn_run(struct cudnn *cudnn, const struct cudnn_plan *plan, cudnn_descriptor pack,
                       cuda_stream stream)
{
    TRY(DNN(cudnn, cudnnSetStream, cudnn->handle, stream));
    return DNN(cudnn, cudnnBackendExecute, cudnn->handle, plan->plan, pack);
}
