/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/conditions.h"

#include "base/text.h"
#include "codegen/clike/clike.h"
#include "device/cuda/nvrtc.h"
#include "device/cuda/recording.h"

/* CUDA's versions that bring them: IF with an else, and all else. */
enum { WHILE_SINCE = 12040, ELSE_SINCE = 12080 };

/* Of a launch of the kernel; as its text says. */
enum { MOVES = 8, WARP = 32, WARPS = 8, THREADS = WARP * WARPS, PARAMS = 8 + 4 * MOVES };
/* What one block moves beside deciding; more is moved by many before. */
#define FEW_BYTES ((size_t)16 << 10)
#define MOST_BLOCKS 1024
/* A loop of more iterations may be stopped: it looks now and then whether somebody wants that. */
#define FEW_TRIPS (1 << 16)

/* A body that is being captured. */
struct cuda_body {
    struct cuda_body *outer;
    cuda_stream stream; /* that it is a body in */
    cuda_condition condition;
    cuda_graph otherwise; /* of an IF: the other body */
};

/* ---- The kernel ------------------------------------------------------------------------------ */

static const char *const lines_of_decide[] = {
#include "kernels/cuda/decide.inc"
    NULL};

static const char head[] =
    "extern \"C\" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned "
    "value);\n"
    "#define SET_CONDITION(handle, value) \\\n"
    "    cudaGraphSetConditional((unsigned long long)(handle), (unsigned)(value))\n"
    "#define MEMORY_AT(address) ((char *)(address))\n";

static const char numbers[] =
    "#define THREADS (WARP_COUNT * LANE_COUNT)\n"
    "#define THREAD (BLOCK * THREADS + WARP * LANE_COUNT + LANE)\n"
    "#define ALL_THREADS (BLOCKS * THREADS)\n"
    "#define AXES(d) int64_t d##0, int64_t d##1, int64_t d##2, int64_t d##3, int64_t d##4, "
    "int64_t d##5, int64_t d##6, int64_t d##7\n";

bool cuda_conditions_print(struct text *text)
{
    text_puts(text, head);
    clike_print_prelude(CLIKE_CUDA, 0, text);
    text_printf(text, "#define WARP_COUNT %d\n", (int)WARPS);
    text_puts(text, numbers);
    for (const char *const *line = lines_of_decide; *line; line++)
        text_puts(text, *line);
    return text_string(text) != NULL;
}

static tssa_status *load(const struct cuda_card *card, const char *image, cuda_module *module,
                         cuda_function *function)
{
    TRY(CUDA(&card->api, cuModuleLoadData, module, image));
    tssa_status *status = CUDA(&card->api, cuModuleGetFunction, function, *module, "k0");
    if (status)
        tssa_status_free(CUDA(&card->api, cuModuleUnload, *module));
    return status;
}

static tssa_status *build(const struct device_context *context, struct cuda_card *card)
{
    struct text text;
    struct image image;
    cuda_module module;
    text_init(&text, context->allocator);
    if (!cuda_conditions_print(&text)) {
        text_free(&text);
        return status_out_of_memory();
    }
    const struct nvrtc_source source = {
        text_string(&text), "decide.cu", {CLIKE_CUDA_OPTIONS}, false};
    tssa_status *status =
        nvrtc_compile(context->allocator, &source, card->architecture, IMAGE_CUBIN, &image);
    text_free(&text);
    TRY(status);
    status = load(card, image.data, &module, &card->decide);
    allocator_free(context->allocator, image.data);
    if (!status)
        card->conditions = module;
    return status;
}

/* Once per context; compiled when it is first wanted. */
static tssa_status *find_kernel(struct device_context *context, cuda_function *function)
{
    struct cuda_card *card = context->connected;
    pthread_mutex_lock(&context->lock);
    tssa_status *status = card->conditions ? NULL : build(context, card);
    *function = card->decide;
    pthread_mutex_unlock(&context->lock);
    return status;
}

void cuda_conditions_close(struct device_context *context)
{
    struct cuda_card *card = context->connected;
    if (card->conditions)
        tssa_status_free(CUDA(&card->api, cuModuleUnload, card->conditions));
    card->conditions = NULL;
}

/* ---- Launches of it -------------------------------------------------------------------------- */

struct decision {
    bool decides, begins;
    cuda_condition handle;
    struct device_place count, go;
    int64_t trips;
};

static int64_t address_of(struct device_place place)
{
    return (int64_t)((intptr_t)place.memory + (intptr_t)place.offset);
}

static tssa_status *launch(struct device_stream *stream, const struct decision *decision,
                           const struct device_move *moves, uint32_t n_moves, unsigned blocks)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    int64_t values[PARAMS] = {decision->decides,
                              (int64_t)decision->handle,
                              decision->begins,
                              address_of(decision->count),
                              address_of(decision->go),
                              decision->trips,
                              decision->trips > FEW_TRIPS ? (int64_t)(intptr_t)queue->halts : 0,
                              n_moves};
    void *params[PARAMS];
    const struct cuda_card *card;
    cuda_function function;
    cuda_stream own;
    for (uint32_t i = 0; i < n_moves; i++) {
        const struct device_move *move = &moves[i];
        const int64_t of_move[] = {address_of(move->to), address_of(move->from),
                                   (int64_t)move->size, (int64_t)move->step};
        for (uint32_t k = 0; k < 4; k++)
            values[PARAMS - 4 * MOVES + k * MOVES + i] = of_move[k];
    }
    for (uint32_t i = 0; i < PARAMS; i++)
        params[i] = &values[i];
    queue->endless |= decision->trips > FEW_TRIPS;
    TRY(find_kernel(stream->context, &function));
    TRY(cuda_enter_stream(stream, &card, &own));
    stream->counts.launches++;
    return CUDA(&card->api, cuLaunchKernel, function, blocks, 1, 1, WARP, WARPS, 1, 0, own, params,
                NULL);
}

static size_t count_bytes(const struct device_move *moves, uint32_t n_moves)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n_moves; i++)
        bytes += moves[i].size;
    return bytes;
}

static unsigned count_blocks(size_t bytes)
{
    const size_t blocks = bytes / 4 / THREADS + 1;
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

/* Launches of many blocks, until no more are left than `few`, of no more than `few_bytes`. */
static tssa_status *move_many(struct device_stream *stream, const struct decision *decision,
                              const struct device_move **moves, uint32_t *n_moves, uint32_t few,
                              size_t few_bytes)
{
    struct decision none = *decision;
    none.decides = false;
    while (*n_moves > few || count_bytes(*moves, *n_moves) > few_bytes) {
        const uint32_t n = *n_moves < MOVES ? *n_moves : MOVES;
        TRY(launch(stream, &none, *moves, n, count_blocks(count_bytes(*moves, n))));
        *moves += n;
        *n_moves -= n;
    }
    return NULL;
}

static tssa_status *decide(struct device_stream *stream, const struct decision *decision,
                           const struct device_move *moves, uint32_t n_moves)
{
    TRY(move_many(stream, decision, &moves, &n_moves, MOVES, FEW_BYTES));
    return launch(stream, decision, moves, n_moves, 1);
}

static tssa_status *move_all(struct device_stream *stream, const struct device_move *moves,
                             uint32_t n_moves)
{
    const struct decision none = {.begins = true};
    return move_many(stream, &none, &moves, &n_moves, 0, 0);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

/* Where a stream's capture is: its graph, and what the next node has to wait for. */
struct frontier {
    cuda_graph graph;
    const cuda_node *nodes;
    const void *edges;
    size_t count;
};

static tssa_status *find_frontier(const struct cuda_card *card, cuda_stream stream,
                                  struct frontier *frontier)
{
    unsigned state;
    TRY(CUDA(&card->api, cuStreamGetCaptureInfo_v3, stream, &state, NULL, &frontier->graph,
             &frontier->nodes, &frontier->edges, &frontier->count));
    return state == CUDA_CAPTURE_ACTIVE ? NULL
                                        : ERROR(TSSA_RUNTIME, "the capture has ended by itself");
}

static tssa_status *make_condition(struct device_stream *stream, cuda_condition *condition)
{
    const struct cuda_card *card;
    struct frontier frontier;
    cuda_stream own;
    TRY(cuda_enter_stream(stream, &card, &own));
    TRY(find_frontier(card, own, &frontier));
    return CUDA(&card->api, cuGraphConditionalHandleCreate, condition, frontier.graph,
                card->context, 0, CUDA_CONDITION_ASSIGN_DEFAULT);
}

static tssa_status *add_node(const struct cuda_card *card, cuda_stream stream,
                             struct cuda_node_parameters *parameters)
{
    struct frontier frontier;
    cuda_node node;
    TRY(find_frontier(card, stream, &frontier));
    TRY(CUDA(&card->api, cuGraphAddNode_v2, &node, frontier.graph, frontier.nodes, frontier.edges,
             frontier.count, parameters));
    return CUDA(&card->api, cuStreamUpdateCaptureDependencies_v2, stream, &node, NULL, 1,
                CUDA_DEPENDENCIES_SET);
}

/* What is asked of the queue goes into this graph. */
static tssa_status *capture(const struct cuda_card *card, struct cuda_queue *queue,
                            cuda_graph graph)
{
    cuda_stream inner;
    TRY(CUDA(&card->api, cuStreamCreate, &inner, CUDA_STREAM_NON_BLOCKING));
    tssa_status *status = CUDA(&card->api, cuStreamBeginCaptureToGraph, inner, graph, NULL, NULL, 0,
                               CUDA_CAPTURE_RELAXED);
    if (status)
        tssa_status_free(CUDA(&card->api, cuStreamDestroy_v2, inner));
    else
        queue->stream = inner;
    return status;
}

static tssa_status *end_capture(const struct cuda_card *card, struct cuda_queue *queue)
{
    cuda_graph same;
    tssa_status *status = CUDA(&card->api, cuStreamEndCapture, queue->stream, &same);
    tssa_status_free(CUDA(&card->api, cuStreamDestroy_v2, queue->stream));
    queue->stream = queue->body->stream;
    return status;
}

static void leave(struct cuda_queue *queue)
{
    struct cuda_body *body = queue->body;
    queue->body = body->outer;
    queue->behind_node = true;
    allocator_free(queue->base.stream.context->allocator, body);
}

/* A node behind what was recorded, whose first body is captured from now on. */
static tssa_status *enter(struct device_stream *stream, unsigned type, cuda_condition condition)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    struct cuda_node_parameters parameters = {.type = CUDA_NODE_CONDITIONAL};
    const struct cuda_card *card;
    cuda_stream own;
    TRY(cuda_enter_stream(stream, &card, &own));
    parameters.conditional.handle = condition;
    parameters.conditional.type = type;
    parameters.conditional.size = type == CUDA_CONDITION_IF ? 2 : 1;
    parameters.conditional.context = card->context;
    TRY(add_node(card, own, &parameters));
    struct cuda_body *body = allocator_alloc(stream->context->allocator, sizeof *body);
    TRY_ALLOC(body);
    *body = (struct cuda_body){.outer = queue->body, .stream = own, .condition = condition};
    if (type == CUDA_CONDITION_IF)
        body->otherwise = parameters.conditional.bodies[1];
    tssa_status *status = capture(card, queue, parameters.conditional.bodies[0]);
    if (status)
        allocator_free(stream->context->allocator, body);
    else
        queue->body = body;
    return status;
}

static tssa_status *end_node(struct device_stream *stream)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    const struct cuda_card *card;
    TRY(cuda_enter(stream->context, &card));
    tssa_status *status = end_capture(card, queue);
    leave(queue);
    return status;
}

void cuda_conditions_unwind(struct cuda_queue *queue)
{
    const struct cuda_card *card = cuda_enter_anyway(queue->base.stream.context);
    while (queue->body) {
        tssa_status_free(end_capture(card, queue));
        leave(queue);
    }
    queue->behind_node = false;
}

/* ---- Loops and branches ---------------------------------------------------------------------- */

static bool has_nodes(const struct cuda_card *card)
{
    const struct cuda_api *api = &card->api;
    return card->driver >= WHILE_SINCE && api->cuGraphConditionalHandleCreate &&
           api->cuGraphAddNode_v2 && api->cuStreamBeginCaptureToGraph &&
           api->cuStreamGetCaptureInfo_v3 && api->cuStreamUpdateCaptureDependencies_v2;
}

bool cuda_records_while(const struct device_context *context)
{
    return has_nodes(context->connected);
}

bool cuda_records_if(const struct device_context *context)
{
    const struct cuda_card *card = context->connected;
    return has_nodes(card) && card->driver >= ELSE_SINCE;
}

tssa_status *cuda_record_while_begin(struct device_stream *stream, const struct device_while *loop,
                                     const struct device_move *moves, uint32_t n_moves)
{
    struct decision decision = {.decides = true,
                                .begins = true,
                                .count = loop->count,
                                .go = loop->go,
                                .trips = loop->trips};
    TRY(make_condition(stream, &decision.handle));
    TRY(decide(stream, &decision, moves, n_moves));
    return enter(stream, CUDA_CONDITION_WHILE, decision.handle);
}

tssa_status *cuda_record_while_end(struct device_stream *stream, const struct device_while *loop,
                                   struct device_place go, const struct device_move *moves,
                                   uint32_t n_moves)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    const struct decision decision = {.decides = true,
                                      .handle = queue->body->condition,
                                      .count = loop->count,
                                      .go = go,
                                      .trips = loop->trips};
    TRY(decide(stream, &decision, moves, n_moves));
    return end_node(stream);
}

tssa_status *cuda_record_if_begin(struct device_stream *stream, struct device_place condition)
{
    struct decision decision = {.decides = true, .begins = true, .go = condition, .trips = 1};
    TRY(make_condition(stream, &decision.handle));
    TRY(decide(stream, &decision, NULL, 0));
    return enter(stream, CUDA_CONDITION_IF, decision.handle);
}

tssa_status *cuda_record_if_else(struct device_stream *stream, const struct device_move *moves,
                                 uint32_t n_moves)
{
    struct cuda_queue *queue = (struct cuda_queue *)stream;
    const struct cuda_card *card;
    TRY(move_all(stream, moves, n_moves));
    TRY(cuda_enter(stream->context, &card));
    tssa_status *status = end_capture(card, queue);
    if (!status)
        status = capture(card, queue, queue->body->otherwise);
    if (status)
        leave(queue);
    return status;
}

tssa_status *cuda_record_if_end(struct device_stream *stream, const struct device_move *moves,
                                uint32_t n_moves)
{
    TRY(move_all(stream, moves, n_moves));
    return end_node(stream);
}
