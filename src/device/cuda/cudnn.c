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
    *cudnn = (struct cudnn){0};
    TRY(shared_open(&names, &library));
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

static tssa_status *create(struct cudnn *cudnn, unsigned kind, cudnn_descriptor *descriptor)
{
    struct cudnn_made *made = cudnn->made;
    if (made && made->n == CUDNN_MOST_MADE)
        return ERROR(TSSA_LIMIT, "cuDNN: more than %d descriptors", CUDNN_MOST_MADE);
    TRY(DNN(cudnn, cudnnBackendCreateDescriptor, kind, descriptor));
    if (made)
        made->all[made->n++] = *descriptor;
    return NULL;
}

void cudnn_drop(const struct cudnn *cudnn, struct cudnn_made *made)
{
    while (made->n)
        tssa_status_free(DNN(cudnn, cudnnBackendDestroyDescriptor, made->all[--made->n]));
}

/* Makes a descriptor with attributes; those without a count are left out. */
static tssa_status *make(struct cudnn *cudnn, unsigned kind, const struct attribute *attributes,
                         size_t count, cudnn_descriptor *descriptor)
{
    TRY(create(cudnn, kind, descriptor));
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

void cudnn_close(struct cudnn *cudnn)
{
    if (cudnn->handle)
        tssa_status_free(DNN(cudnn, cudnnDestroy, cudnn->handle));
    cudnn->handle = NULL;
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

/* Of tensors; those from INNER_ID on are nobody's memory. */
enum { X_ID = 1, W_ID, Y_ID, BIAS_ID, ADDED_ID, INNER_ID, MOST_AXES = CONV_MAX_RANK + 2 };
/* The convolution, what is added to it, a bias, and a Relu. */
enum { MOST_OPERATIONS = 4 };

/* What a graph is made of. */
struct parts {
    const struct conv_problem *conv;
    unsigned type, computed_in; /* DNN_DATA_* */
    unsigned factors_type;      /* of the factors of a sum, and of what is there */
    cudnn_descriptor x, w, y, bias, added;
    cudnn_descriptor operations[MOST_OPERATIONS], value; /* what the last of them gives */
    int64_t n_operations, all_operations;
};

/* `sizes` NULL: one each. */
static tssa_status *make_tensor(struct cudnn *cudnn, const struct parts *parts, int64_t id,
                                int64_t first, int64_t second, const int64_t *sizes,
                                cudnn_descriptor *tensor)
{
    const int64_t alignment = 16, rank = parts->conv->rank + 2;
    const bool inner = id >= INNER_ID;
    int64_t dims[MOST_AXES] = {first, second}, strides[MOST_AXES];
    for (int64_t i = rank - 1, step = 1; i >= 0; i--) {
        if (i >= 2)
            dims[i] = sizes ? sizes[i - 2] : 1;
        strides[i] = step;
        step *= dims[i];
    }
    return MAKE(
        cudnn, DNN_TENSOR, tensor,
        {DNN_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, inner ? &parts->computed_in : &parts->type},
        {DNN_TENSOR_DIMENSIONS, DNN_TYPE_INT64, rank, dims},
        {DNN_TENSOR_STRIDES, DNN_TYPE_INT64, rank, strides},
        {DNN_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1, &id},
        {DNN_TENSOR_BYTE_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment},
        {DNN_TENSOR_IS_VIRTUAL, DNN_TYPE_BOOLEAN, inner, &inner});
}

static tssa_status *make_tensors(struct cudnn *cudnn, struct parts *p)
{
    const struct conv_problem *c = p->conv;
    const int64_t rows = c->turned ? c->in_channels : c->out_channels,
                  columns = (c->turned ? c->out_channels : c->in_channels) / c->groups;
    TRY(make_tensor(cudnn, p, X_ID, c->batch, c->in_channels, c->in, &p->x));
    TRY(make_tensor(cudnn, p, W_ID, rows, columns, c->kernel, &p->w));
    TRY(make_tensor(cudnn, p, Y_ID, c->batch, c->out_channels, c->out, &p->y));
    if (c->biased)
        TRY(make_tensor(cudnn, p, BIAS_ID, 1, c->out_channels, NULL, &p->bias));
    return c->adds ? make_tensor(cudnn, p, ADDED_ID, c->batch, c->out_channels, c->out, &p->added)
                   : NULL;
}

/* What the next operation gives: the last one the result. */
static tssa_status *make_value(struct cudnn *cudnn, struct parts *p)
{
    const struct conv_problem *c = p->conv;
    p->value = p->y;
    return p->n_operations + 1 < p->all_operations
               ? make_tensor(cudnn, p, INNER_ID + p->n_operations, c->batch, c->out_channels,
                             c->out, &p->value)
               : NULL;
}

static tssa_status *make_window(struct cudnn *cudnn, const struct parts *p,
                                cudnn_descriptor *window)
{
    const unsigned mode = DNN_CROSS_CORRELATION;
    const struct conv_problem *c = p->conv;
    return MAKE(cudnn, DNN_CONVOLUTION, window,
                {DNN_CONVOLUTION_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &p->computed_in},
                {DNN_CONVOLUTION_CONV_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, &mode},
                {DNN_CONVOLUTION_SPATIAL_DIMS, DNN_TYPE_INT64, 1, &c->rank},
                {DNN_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, c->rank, c->dilation},
                {DNN_CONVOLUTION_FILTER_STRIDES, DNN_TYPE_INT64, c->rank, c->stride},
                {DNN_CONVOLUTION_PRE_PADDINGS, DNN_TYPE_INT64, c->rank, c->pad_begin},
                {DNN_CONVOLUTION_POST_PADDINGS, DNN_TYPE_INT64, c->rank, c->pad_end});
}

/* The convolution, whose operands have other names where it is turned. */
static tssa_status *make_sum(struct cudnn *cudnn, struct parts *p)
{
    static const double doubles[] = {0, 1};
    static const float floats[] = {0, 1};
    const bool wide = p->factors_type == DNN_TYPE_DOUBLE;
    const void *zero = wide ? (const void *)&doubles[0] : &floats[0],
               *one = wide ? (const void *)&doubles[1] : &floats[1];
    cudnn_descriptor window, *operation = &p->operations[p->n_operations];
    TRY(make_value(cudnn, p));
    TRY(make_window(cudnn, p, &window));
    p->n_operations++;
    if (p->conv->turned)
        return MAKE(cudnn, DNN_BACKWARD, operation,
                    {DNN_BACKWARD_CONV_DESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &window},
                    {DNN_BACKWARD_X, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->x},
                    {DNN_BACKWARD_W, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->w},
                    {DNN_BACKWARD_Y, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->value},
                    {DNN_BACKWARD_ALPHA, p->factors_type, 1, one},
                    {DNN_BACKWARD_BETA, p->factors_type, 1, zero});
    return MAKE(cudnn, DNN_FORWARD, operation,
                {DNN_FORWARD_CONV_DESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &window},
                {DNN_FORWARD_X, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->x},
                {DNN_FORWARD_W, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->w},
                {DNN_FORWARD_Y, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->value},
                {DNN_FORWARD_ALPHA, p->factors_type, 1, one},
                {DNN_FORWARD_BETA, p->factors_type, 1, zero});
}

/* Of the value, and of another one, NULL where there is none. */
static tssa_status *make_elementwise(struct cudnn *cudnn, struct parts *p, unsigned mode,
                                     const cudnn_descriptor *other)
{
    const unsigned keeps_nan = DNN_KEEPS_NAN;
    cudnn_descriptor value = p->value, what, *operation = &p->operations[p->n_operations];
    TRY(make_value(cudnn, p));
    p->n_operations++;
    TRY(MAKE(cudnn, DNN_POINTWISE, &what, {DNN_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, 1, &mode},
             {DNN_POINTWISE_PRECISION, DNN_TYPE_DATA_TYPE, 1, &p->computed_in},
             {DNN_POINTWISE_NAN, DNN_TYPE_NAN, mode == DNN_POINTWISE_RELU, &keeps_nan}));
    return MAKE(cudnn, DNN_ELEMENTWISE, operation,
                {DNN_ELEMENTWISE_DESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &what},
                {DNN_ELEMENTWISE_A, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &value},
                {DNN_ELEMENTWISE_B, DNN_TYPE_BACKEND_DESCRIPTOR, other != NULL, other},
                {DNN_ELEMENTWISE_Y, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->value});
}

/* What follows the convolution, in the order of which there is machine code: the bias comes after
 * what is added. */
static tssa_status *make_following(struct cudnn *cudnn, struct parts *p)
{
    if (p->conv->adds)
        TRY(make_elementwise(cudnn, p, DNN_POINTWISE_ADD, &p->added));
    if (p->conv->biased)
        TRY(make_elementwise(cudnn, p, DNN_POINTWISE_ADD, &p->bias));
    return p->conv->clips ? make_elementwise(cudnn, p, DNN_POINTWISE_RELU, NULL) : NULL;
}

static unsigned type_of(tssa_dtype dtype)
{
    switch (dtype) {
    case TSSA_DOUBLE:
        return DNN_DATA_DOUBLE;
    case TSSA_FLOAT16:
        return DNN_DATA_HALF;
    case TSSA_BFLOAT16:
        return DNN_DATA_BFLOAT16;
    default:
        return DNN_DATA_FLOAT;
    }
}

static tssa_status *make_graph(struct cudnn *cudnn, const struct library_problem *problem,
                               cudnn_descriptor *graph)
{
    const bool wide = problem->dtype == TSSA_DOUBLE;
    struct parts parts = {.conv = &problem->conv,
                          .type = type_of((tssa_dtype)problem->dtype),
                          .computed_in = wide ? DNN_DATA_DOUBLE : DNN_DATA_FLOAT,
                          .factors_type = wide ? DNN_TYPE_DOUBLE : DNN_TYPE_FLOAT};
    const struct conv_problem *c = &problem->conv;
    parts.all_operations = 1 + (c->adds != 0) + (c->biased != 0) + (c->clips != 0);
    TRY(make_tensors(cudnn, &parts));
    TRY(make_sum(cudnn, &parts));
    TRY(make_following(cudnn, &parts));
    return MAKE(cudnn, DNN_GRAPH, graph,
                {DNN_GRAPH_OPS, DNN_TYPE_BACKEND_DESCRIPTOR, parts.n_operations, parts.operations},
                {DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, cudnn->handle != NULL, &cudnn->handle});
}

/* ---- Engines --------------------------------------------------------------------------------- */

/* An engine's notes of one kind, a bit each. */
static tssa_status *read_notes(struct cudnn *cudnn, cudnn_descriptor engine, unsigned name,
                               unsigned type, uint64_t *bits)
{
    enum { ROOM = 32 };
    unsigned notes[ROOM];
    int64_t count = 0;
    TRY(DNN(cudnn, cudnnBackendGetAttribute, engine, name, type, ROOM, &count, notes));
    *bits = 0;
    for (int64_t i = 0; i < count && i < ROOM; i++)
        *bits |= notes[i] < 64 ? UINT64_C(1) << notes[i] : 0;
    return NULL;
}

#define NOTE(name) (UINT64_C(1) << DNN_NOTE_##name)

static tssa_status *read_engine(struct cudnn *cudnn, struct engine *engine)
{
    cudnn_descriptor descriptor;
    int64_t count;
    uint64_t numerical, behavior;
    TRY(create(cudnn, DNN_ENGINE, &descriptor));
    TRY(DNN(cudnn, cudnnBackendGetAttribute, engine->config, DNN_CONFIG_ENGINE,
            DNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &descriptor));
    TRY(DNN(cudnn, cudnnBackendGetAttribute, descriptor, DNN_ENGINE_INDEX, DNN_TYPE_INT64, 1,
            &count, &engine->index));
    TRY(read_notes(cudnn, descriptor, DNN_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE,
                   &numerical));
    TRY(read_notes(cudnn, descriptor, DNN_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE, &behavior));
    engine->tensor_core = (numerical & NOTE(TENSOR_CORE)) != 0;
    engine->narrows = (numerical & (NOTE(DOWN_CONVERT_INPUTS) | NOTE(REDUCED_PRECISION))) != 0;
    engine->transforms = (numerical & NOTE(WINOGRAD)) != 0;
    engine->varies = (numerical & NOTE(NONDETERMINISTIC)) != 0;
    engine->compiled = (behavior & NOTE(RUNTIME_COMPILATION)) != 0;
    return NULL;
}

bool cudnn_engine_suits(const struct engine *engine, const struct library_problem *problem,
                        bool allow_tf32)
{
    const tssa_dtype dtype = (tssa_dtype)problem->dtype;
    const bool in_tf32 = engine->tensor_core && dtype == TSSA_FLOAT;
    /* In what others than tensor cores add up two-byte floats no note tells: the one for turned
     * convolutions with groups was off by ten roundings on an H200, the others by none. */
    const bool untold = problem->conv.turned && !engine->tensor_core;
    const bool rounds = tssa_dtype_size(dtype) == 2 && (engine->transforms || untold);
    return !engine->narrows && !engine->varies && !rounds && (allow_tf32 || !in_tf32);
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
        TRY(create(cudnn, DNN_CONFIG, &configs[i]));
    TRY(DNN(cudnn, cudnnBackendGetAttribute, heuristic, DNN_HEURISTIC_RESULTS,
            DNN_TYPE_BACKEND_DESCRIPTOR, room, &found, configs));
    for (int64_t i = 0; i < found && i < room; i++) {
        engines[*count] = (struct engine){.config = configs[i]};
        TRY(read_engine(cudnn, &engines[*count]));
        ++*count;
    }
    return NULL;
}

tssa_status *cudnn_engines(struct cudnn *cudnn, const struct library_problem *problem,
                           struct engine *engines, size_t *count)
{
    cudnn_descriptor graph;
    *count = 0;
    TRY(make_graph(cudnn, problem, &graph));
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

tssa_status *cudnn_pack(struct cudnn *cudnn, const struct cudnn_places *places,
                        cudnn_descriptor *pack)
{
    const struct {
        int64_t id;
        cuda_address place;
    } all[] = {{X_ID, places->x},
               {W_ID, places->w},
               {Y_ID, places->y},
               {BIAS_ID, places->bias},
               {ADDED_ID, places->added}};
    int64_t ids[sizeof all / sizeof *all], count = 0;
    void *pointers[sizeof all / sizeof *all];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].place) {
            ids[count] = all[i].id;
            pointers[count++] = (void *)all[i].place;
        }
    void *const room = (void *)places->workspace;
    return MAKE(cudnn, DNN_PACK, pack, {DNN_PACK_IDS, DNN_TYPE_INT64, count, ids},
                {DNN_PACK_POINTERS, DNN_TYPE_VOID_PTR, count, pointers},
                {DNN_PACK_WORKSPACE, DNN_TYPE_VOID_PTR, 1, &room});
}

tssa_status *cudnn_run(struct cudnn *cudnn, const struct cudnn_plan *plan, cudnn_descriptor pack,
                       cuda_stream stream)
{
    TRY(DNN(cudnn, cudnnSetStream, cudnn->handle, stream));
    return DNN(cudnn, cudnnBackendExecute, cudnn->handle, plan->plan, pack);
}
