/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 and libnvrtc.so.13 for tests of cuda_probe, so that what that does with the driver
 * runs (under the sanitizers too) where there is no card. Device memory is the host's; "machine
 * code" is the source itself, and a kernel is the function of its name in the table below. Streams
 * do their work at once, or capture it; a graph runs its nodes in a random order that its edges
 * allow, so that a missing edge shows.
 *
 * Environment: FAKE_CUDA_FAIL=FUNCTION:CODE makes a function return an error; with `crash` or
 * `hang` for the code it does that. With FAKE_CUDA_OLD defined, functions for conditional nodes are
 * missing.
 *
 * What it hands out lives until the process ends.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/fake.h"

#define OK FAKE_OK

enum {
    OUT_OF_MEMORY = 2,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900,
    MEMORY_LIMIT = 64 << 20,
    NODE_LIMIT = 256,
    BEFORE_LIMIT = 4,
    CONDITION_LIMIT = 64,
    ARGUMENT_LIMIT = 4,
    ARGUMENT_SIZE = 8,
    CONTEXT = 1
};

/* ---- Kernels --------------------------------------------------------------------------------- */

struct CUfunc_st {
    const char *name;
    unsigned sizes[ARGUMENT_LIMIT]; /* of its parameters, 0 at the end */
    void (*run)(void *const *arguments);
};

static unsigned condition_values[CONDITION_LIMIT], condition_defaults[CONDITION_LIMIT];

#define ARGUMENT(type, index) (*(type const *)arguments[index])

static void run_empty(void *const *arguments)
{
    (void)arguments;
}

static void run_step(void *const *arguments)
{
    *ARGUMENT(int *, 0) -= 1;
}

static void set_condition(cuda_condition handle, unsigned value)
{
    if (handle < CONDITION_LIMIT)
        condition_values[handle] = value;
}

static void run_loop_start(void *const *arguments)
{
    int count = ARGUMENT(int, 2);
    *ARGUMENT(int *, 1) = count;
    set_condition(ARGUMENT(cuda_condition, 0), count > 0);
}

static void run_loop_next(void *const *arguments)
{
    int *left = ARGUMENT(int *, 1);
    *left -= 1;
    set_condition(ARGUMENT(cuda_condition, 0), *left > 0);
}

static void run_branch(void *const *arguments)
{
    set_condition(ARGUMENT(cuda_condition, 0), *ARGUMENT(const int *, 1) % ARGUMENT(int, 2) != 0);
}

static float inverse_root(float x)
{
    return 1.0f / sqrtf(x);
}

/* One ulp off, so that the comparison has something to find. */
static float exp_off(float x)
{
    return nextafterf(expf(x), INFINITY);
}

#define UNARY(name, call)                                                                          \
    static void run_math_##name(void *const *arguments)                                            \
    {                                                                                              \
        for (int i = 0; i < ARGUMENT(int, 2); i++)                                                 \
            ARGUMENT(float *, 1)[i] = call(ARGUMENT(const float *, 0)[i]);                         \
    }
UNARY(expf, expf)
UNARY(exp_fast, exp_off)
UNARY(tanhf, tanhf)
UNARY(erff, erff)
UNARY(logf, logf)
UNARY(rsqrtf, inverse_root)
UNARY(sinf, sinf)
UNARY(sqrtf, sqrtf)

static struct CUfunc_st kernels[] = {
    {"empty", {0}, run_empty},
    {"step", {8}, run_step},
    {"loop_start", {8, 8, 4}, run_loop_start},
    {"loop_next", {8, 8}, run_loop_next},
    {"branch", {8, 8, 4}, run_branch},
    {"math_expf", {8, 8, 4}, run_math_expf},
    {"math_exp_fast", {8, 8, 4}, run_math_exp_fast},
    {"math_tanhf", {8, 8, 4}, run_math_tanhf},
    {"math_erff", {8, 8, 4}, run_math_erff},
    {"math_logf", {8, 8, 4}, run_math_logf},
    {"math_rsqrtf", {8, 8, 4}, run_math_rsqrtf},
    {"math_sinf", {8, 8, 4}, run_math_sinf},
    {"math_sqrtf", {8, 8, 4}, run_math_sqrtf},
};

/* ---- Failures on demand ---------------------------------------------------------------------- */

cuda_result fake_planned(const char *function)
{
    const char *plan = getenv("FAKE_CUDA_FAIL");
    size_t length = strlen(function);
    if (!plan || strncmp(plan, function, length) != 0 || plan[length] != ':')
        return OK;
    const char *what = plan + length + 1;
    if (strcmp(what, "crash") == 0)
        abort();
    while (strcmp(what, "hang") == 0)
        sleep(1);
    return (cuda_result)strtoul(what, NULL, 10);
}

/* ---- Memory of the fake's own: in a list, so that the leak checker sees that it is held ------ */

struct held {
    struct held *next;
};
static struct held *all_held;

void *fake_hold(size_t size)
{
    struct held *held = calloc(1, sizeof *held + 8 + size);
    if (!held)
        abort();
    held->next = all_held;
    all_held = held;
    return (char *)held + sizeof *held + 8;
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

struct CUgraphNode_st {
    unsigned type;
    cuda_node before[BEFORE_LIMIT]; /* what must have run */
    size_t before_count;
    cuda_function kernel;
    char arguments[ARGUMENT_LIMIT][ARGUMENT_SIZE]; /* copied at the launch, as the driver does */
    void *target;
    const void *source;
    size_t size;
    unsigned value;
    cuda_condition condition;
    unsigned condition_type;
    cuda_graph bodies[2];
    unsigned body_count;
};

struct CUgraph_st {
    cuda_node nodes[NODE_LIMIT];
    size_t count;
};

struct CUgraphExec_st {
    cuda_graph graph;
};

struct CUstream_st {
    cuda_graph capturing;
    cuda_node last[BEFORE_LIMIT];
    size_t last_count;
};

static struct CUstream_st *default_stream;

static cuda_stream stream_of(cuda_stream stream)
{
    if (!default_stream)
        default_stream = fake_hold(sizeof *default_stream);
    return stream ? stream : default_stream;
}

static void run_graph(cuda_graph graph);

static void run_condition(cuda_node node)
{
    const unsigned *value = &condition_values[node->condition];
    if (node->condition_type == CUDA_CONDITION_WHILE) {
        while (*value)
            run_graph(node->bodies[0]);
    } else if (*value || node->body_count > 1) {
        run_graph(node->bodies[*value ? 0 : 1]);
    }
}

static void run_kernel(cuda_node node)
{
    void *arguments[ARGUMENT_LIMIT];
    for (size_t i = 0; i < ARGUMENT_LIMIT; i++)
        arguments[i] = node->arguments[i];
    node->kernel->run(arguments);
}

static void run_node(cuda_node node)
{
    if (node->type == CUDA_NODE_KERNEL)
        run_kernel(node);
    else if (node->type == CUDA_NODE_MEMCPY)
        memmove(node->target, node->source, node->size);
    else if (node->type == CUDA_NODE_MEMSET)
        for (size_t i = 0; i < node->size; i++)
            ((unsigned *)node->target)[i] = node->value;
    else
        run_condition(node);
}

static size_t index_of(cuda_graph graph, cuda_node node)
{
    size_t i = 0;
    while (i < graph->count && graph->nodes[i] != node)
        i++;
    return i;
}

static int is_ready(cuda_graph graph, cuda_node node, const char *done)
{
    for (size_t i = 0; i < node->before_count; i++) {
        if (!done[index_of(graph, node->before[i])])
            return 0;
    }
    return 1;
}

static void run_graph(cuda_graph graph)
{
    char done[NODE_LIMIT + 1] = {0};
    for (size_t left = graph->count; left > 0;) {
        size_t i = (size_t)rand() % graph->count;
        if (done[i] || !is_ready(graph, graph->nodes[i], done))
            continue;
        run_node(graph->nodes[i]);
        done[i] = 1;
        left--;
    }
}

static cuda_result add_node(cuda_graph graph, cuda_node node, const cuda_node *before, size_t count)
{
    EXPECT(graph->count < NODE_LIMIT && count <= BEFORE_LIMIT);
    for (size_t i = 0; i < count; i++)
        EXPECT(index_of(graph, before[i]) < graph->count);
    if (count)
        memcpy(node->before, before, count * sizeof *before);
    node->before_count = count;
    graph->nodes[graph->count++] = node;
    return OK;
}

/* Captures a copy of the node, or runs it at once. */
static cuda_result push(cuda_stream stream, cuda_node node)
{
    stream = stream_of(stream);
    if (!stream->capturing) {
        run_node(node);
        return OK;
    }
    cuda_node kept = fake_hold(sizeof *kept);
    *kept = *node;
    cuda_result result = add_node(stream->capturing, kept, stream->last, stream->last_count);
    stream->last[0] = kept;
    stream->last_count = 1;
    return result;
}

FAKE(cuGraphDestroy, cuda_graph graph)
{
    (void)graph;
    PLANNED();
    return OK;
}

FAKE(cuGraphInstantiateWithFlags, cuda_graph_exec *exec, cuda_graph graph, unsigned long long flags)
{
    PLANNED();
    EXPECT(flags == 0);
    *exec = fake_hold(sizeof **exec);
    (*exec)->graph = graph;
    return OK;
}

FAKE(cuGraphLaunch, cuda_graph_exec exec, cuda_stream stream)
{
    (void)stream;
    PLANNED();
    memcpy(condition_values, condition_defaults, sizeof condition_values);
    run_graph(exec->graph);
    return OK;
}

FAKE(cuGraphExecDestroy, cuda_graph_exec exec)
{
    (void)exec;
    return OK;
}

FAKE(cuGraphGetNodes, cuda_graph graph, cuda_node *nodes, size_t *count)
{
    PLANNED();
    if (nodes) {
        EXPECT(*count >= graph->count);
        memcpy(nodes, graph->nodes, graph->count * sizeof *nodes);
    }
    *count = graph->count;
    return OK;
}

FAKE(cuGraphNodeGetType, cuda_node node, unsigned *type)
{
    *type = node->type;
    return OK;
}

FAKE(cuStreamBeginCapture_v2, cuda_stream stream, unsigned mode)
{
    (void)mode;
    PLANNED();
    EXPECT(!stream->capturing);
    stream->capturing = fake_hold(sizeof *stream->capturing);
    stream->last_count = 0;
    return OK;
}

FAKE(cuStreamEndCapture, cuda_stream stream, cuda_graph *graph)
{
    PLANNED();
    EXPECT(stream->capturing);
    *graph = stream->capturing;
    stream->capturing = NULL;
    return OK;
}

#ifndef FAKE_CUDA_OLD

FAKE(cuStreamBeginCaptureToGraph, cuda_stream stream, cuda_graph graph, const cuda_node *before,
     const void *edges, size_t count, unsigned mode)
{
    (void)before;
    (void)edges;
    (void)mode;
    PLANNED();
    EXPECT(!stream->capturing && count == 0);
    stream->capturing = graph;
    stream->last_count = 0;
    return OK;
}

FAKE(cuStreamGetCaptureInfo_v3, cuda_stream stream, unsigned *status, unsigned long long *id,
     cuda_graph *graph, const cuda_node **before, const void **edges, size_t *count)
{
    PLANNED();
    *status = stream->capturing ? CUDA_CAPTURE_ACTIVE : 0;
    if (id)
        *id = 1;
    if (graph)
        *graph = stream->capturing;
    if (before)
        *before = stream->last;
    if (edges)
        *edges = NULL;
    if (count)
        *count = stream->last_count;
    return OK;
}

FAKE(cuStreamUpdateCaptureDependencies_v2, cuda_stream stream, cuda_node *nodes, const void *edges,
     size_t count, unsigned flags)
{
    (void)edges;
    EXPECT(stream->capturing && flags == CUDA_DEPENDENCIES_SET && count <= BEFORE_LIMIT);
    memcpy(stream->last, nodes, count * sizeof *nodes);
    stream->last_count = count;
    return OK;
}

static unsigned condition_count;

FAKE(cuGraphConditionalHandleCreate, cuda_condition *handle, cuda_graph graph, cuda_context context,
     unsigned initial, unsigned flags)
{
    (void)flags;
    PLANNED();
    EXPECT(graph && context && condition_count < CONDITION_LIMIT);
    condition_defaults[condition_count] = initial;
    *handle = condition_count++;
    return OK;
}

FAKE(cuGraphAddNode_v2, cuda_node *node, cuda_graph graph, const cuda_node *before,
     const void *edges, size_t count, struct cuda_node_parameters *parameters)
{
    (void)edges;
    PLANNED();
    EXPECT(parameters->type == CUDA_NODE_CONDITIONAL);
    EXPECT(parameters->conditional.size >= 1 && parameters->conditional.size <= 2);
    cuda_node made = fake_hold(sizeof *made);
    made->type = CUDA_NODE_CONDITIONAL;
    made->condition = parameters->conditional.handle;
    made->condition_type = parameters->conditional.type;
    made->body_count = parameters->conditional.size;
    for (unsigned i = 0; i < made->body_count; i++)
        made->bodies[i] = fake_hold(sizeof *made->bodies[i]);
    parameters->conditional.bodies = made->bodies;
    *node = made;
    return add_node(graph, made, before, count);
}

#endif

/* ---- The device, its memory, copies, launches ------------------------------------------------ */

struct CUctx_st {
    int unused;
};
struct CUmod_st {
    const char *source;
};
static struct CUctx_st the_context;
static size_t memory_used;

FAKE(cuInit, unsigned flags)
{
    (void)flags;
    PLANNED();
    return OK;
}

FAKE(cuGetErrorName, cuda_result result, const char **name)
{
    *name = result == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return OK;
}

FAKE(cuGetErrorString, cuda_result result, const char **text)
{
    *text = result == OUT_OF_MEMORY ? "out of memory" : "made up";
    return OK;
}

FAKE(cuDriverGetVersion, int *version)
{
    *version = 13000;
    return OK;
}

FAKE(cuDeviceGet, int *device, int ordinal)
{
    PLANNED();
    *device = ordinal;
    return OK;
}

FAKE(cuDeviceGetName, char *name, int size, int device)
{
    (void)device;
    snprintf(name, (size_t)size, "Fake card");
    return OK;
}

FAKE(cuDeviceGetAttribute, int *value, unsigned attribute, int device)
{
    (void)device;
    PLANNED();
    *value = attribute == CUDA_ATTRIBUTE_CAPABILITY_MAJOR ? 9 : 0;
    return OK;
}

FAKE(cuDeviceTotalMem_v2, size_t *size, int device)
{
    (void)device;
    *size = MEMORY_LIMIT;
    return OK;
}

FAKE(cuDevicePrimaryCtxRetain, cuda_context *context, int device)
{
    (void)device;
    PLANNED();
    *context = &the_context;
    return OK;
}

FAKE(cuDevicePrimaryCtxRelease_v2, int device)
{
    (void)device;
    return OK;
}

FAKE(cuCtxSetCurrent, cuda_context context)
{
    EXPECT(context == &the_context);
    return OK;
}

FAKE(cuStreamCreate, cuda_stream *stream, unsigned flags)
{
    (void)flags;
    PLANNED();
    *stream = fake_hold(sizeof **stream);
    return OK;
}

FAKE(cuStreamSynchronize, cuda_stream stream)
{
    PLANNED();
    return stream_of(stream)->capturing ? CAPTURE_UNSUPPORTED : OK;
}

FAKE(cuModuleLoadData, cuda_module *module, const void *image)
{
    PLANNED();
    size_t size = strlen(image) + 1;
    char *source = fake_hold(size);
    memcpy(source, image, size);
    *module = fake_hold(sizeof **module);
    (*module)->source = source;
    return OK;
}

FAKE(cuModuleGetFunction, cuda_function *function, cuda_module module, const char *name)
{
    PLANNED();
    (void)module;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (strcmp(kernels[i].name, name) == 0) {
            *function = &kernels[i];
            return OK;
        }
    }
    return NOT_FOUND;
}

FAKE(cuLaunchKernel, cuda_function kernel, unsigned blocks, unsigned y, unsigned z,
     unsigned threads, unsigned ty, unsigned tz, unsigned shared, cuda_stream stream,
     void **parameters, void **extra)
{
    PLANNED();
    EXPECT(blocks && y && z && threads * ty * tz <= 1024 && !shared && !extra);
    struct CUgraphNode_st node = {.type = CUDA_NODE_KERNEL};
    node.kernel = kernel;
    for (size_t i = 0; i < ARGUMENT_LIMIT && kernel->sizes[i]; i++)
        memcpy(node.arguments[i], parameters[i], kernel->sizes[i]);
    return push(stream, &node);
}

/* In a list, for what is not given back. */
struct block {
    struct block *next;
    size_t size;
};
static struct block *blocks;

FAKE(cuMemAlloc_v2, cuda_address *memory, size_t size)
{
    PLANNED();
    EXPECT(size > 0);
    if (size > MEMORY_LIMIT - memory_used)
        return OUT_OF_MEMORY;
    struct block *block = malloc(sizeof *block + size);
    if (!block)
        return OUT_OF_MEMORY;
    *block = (struct block){blocks, size};
    blocks = block;
    memory_used += size;
    *memory = (cuda_address)(block + 1);
    return OK;
}

FAKE(cuMemFree_v2, cuda_address memory)
{
    struct block **at = &blocks, *block = (struct block *)memory - 1;
    while (*at && *at != block)
        at = &(*at)->next;
    EXPECT(*at);
    *at = block->next;
    memory_used -= block->size;
    free(block);
    return OK;
}

FAKE(cuMemAllocHost_v2, void **memory, size_t size)
{
    PLANNED();
    *memory = calloc(1, size);
    return *memory ? OK : OUT_OF_MEMORY;
}

FAKE(cuMemFreeHost, void *memory)
{
    free(memory);
    return OK;
}

static cuda_result copy(void *target, const void *source, size_t size, cuda_stream stream)
{
    struct CUgraphNode_st node = {.type = CUDA_NODE_MEMCPY};
    node.target = target;
    node.source = source;
    node.size = size;
    return push(stream, &node);
}

FAKE(cuMemcpyHtoDAsync_v2, cuda_address target, const void *source, size_t size, cuda_stream stream)
{
    PLANNED();
    return copy((void *)target, source, size, stream);
}

FAKE(cuMemcpyDtoHAsync_v2, void *target, cuda_address source, size_t size, cuda_stream stream)
{
    PLANNED();
    return copy(target, (const void *)source, size, stream);
}

FAKE(cuMemcpyDtoDAsync_v2, cuda_address target, cuda_address source, size_t size,
     cuda_stream stream)
{
    PLANNED();
    return copy((void *)target, (const void *)source, size, stream);
}

FAKE(cuMemsetD32Async, cuda_address target, unsigned value, size_t count, cuda_stream stream)
{
    struct CUgraphNode_st node = {.type = CUDA_NODE_MEMSET};
    node.target = (void *)target;
    node.value = value;
    node.size = count;
    return push(stream, &node);
}

/* ---- NVRTC: gives back what it is given ------------------------------------------------------ */

typedef struct {
    char *source;
} * fake_program;

static const char *source_of(fake_program program)
{
    return program->source;
}

EXPORT const char *nvrtcGetErrorString(unsigned result);
const char *nvrtcGetErrorString(unsigned result)
{
    return result ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS";
}

FAKE(nvrtcCreateProgram, fake_program *program, const char *source, const char *name, int count,
     const char *const *headers, const char *const *names)
{
    (void)name;
    (void)count;
    (void)headers;
    (void)names;
    *program = fake_hold(sizeof **program);
    (*program)->source = fake_hold(strlen(source) + 1);
    memcpy((*program)->source, source, strlen(source) + 1);
    return OK;
}

FAKE(nvrtcDestroyProgram, fake_program *program)
{
    *program = NULL;
    return OK;
}

FAKE(nvrtcCompileProgram, fake_program program, int count, const char *const *options)
{
    (void)program;
    (void)count;
    (void)options;
    PLANNED();
    return OK;
}

FAKE(nvrtcGetCUBINSize, fake_program program, size_t *size)
{
    *size = strlen(source_of(program)) + 1;
    return OK;
}

FAKE(nvrtcGetCUBIN, fake_program program, char *image)
{
    memcpy(image, source_of(program), strlen(source_of(program)) + 1);
    return OK;
}

FAKE(nvrtcGetPTXSize, fake_program program, size_t *size)
{
    return nvrtcGetCUBINSize(program, size);
}

FAKE(nvrtcGetPTX, fake_program program, char *image)
{
    return nvrtcGetCUBIN(program, image);
}

FAKE(nvrtcGetProgramLogSize, fake_program program, size_t *size)
{
    (void)program;
    *size = sizeof "basic.cu(1): error: made up";
    return OK;
}

FAKE(nvrtcGetProgramLog, fake_program program, char *log)
{
    (void)program;
    memcpy(log, "basic.cu(1): error: made up", sizeof "basic.cu(1): error: made up");
    return OK;
}
