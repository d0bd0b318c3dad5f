/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcudnn.so.9 for tests, of graphs of one convolution and what may follow it: something that is
 * added, a bias, and a Relu. It is computed by a kernel
 * that the stream runs, whose operands must be memory of the card then; where an item takes too
 * long for that, as of those that cuda_probe times, the first elements of the result become ones.
 * Two engines are proposed, the first of which uses tensor cores, and reads float32 as TF32; none
 * for a bias behind a convolution that is turned, and for what follows one without a bias, or in
 * another order, as of the real one.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/library.h"
#include "ir/scalar/convert.h"
#include "tests/cuda/fake.h"

enum { ONE = 0x3f800000, FAKE_WORKSPACE = 1000, ENGINES = 2 };

enum {
#define CUDNN_VALUE(ours, theirs, value) DNN_##ours = (value),
#include "device/cuda/cudnn_values.def"
#undef CUDNN_VALUE
};

struct attribute {
    unsigned name, type;
    int64_t count;
    void *values;
    struct attribute *next;
};

struct descriptor {
    unsigned kind;
    bool finalized, destroyed;
    int64_t index;                  /* of a config or an engine */
    const struct descriptor *graph; /* of a config */
    struct attribute *attributes;
};

struct handle {
    cuda_stream stream;
};

EXPORT size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void)
{
    return 91900;
}

EXPORT const char *cudnnGetErrorString(unsigned result);
const char *cudnnGetErrorString(unsigned result)
{
    return result ? "CUDNN_STATUS_FAKE" : "CUDNN_STATUS_SUCCESS";
}

FAKE(cudnnCreate, struct handle **handle)
{
    PLANNED();
    *handle = fake_hold(sizeof **handle);
    fake_count(1);
    return FAKE_OK;
}

FAKE(cudnnDestroy, struct handle *handle)
{
    ENTER();
    EXPECT(handle);
    fake_count(-1);
    return planned_;
}

FAKE(cudnnSetStream, struct handle *handle, cuda_stream stream)
{
    PLANNED();
    handle->stream = stream;
    return FAKE_OK;
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

FAKE(cudnnBackendCreateDescriptor, unsigned kind, struct descriptor **descriptor)
{
    PLANNED();
    *descriptor = fake_hold(sizeof **descriptor);
    (*descriptor)->kind = kind;
    fake_count(1);
    return FAKE_OK;
}

FAKE(cudnnBackendDestroyDescriptor, struct descriptor *descriptor)
{
    ENTER();
    EXPECT(descriptor && !descriptor->destroyed);
    descriptor->destroyed = true;
    fake_count(-1);
    return planned_;
}

static size_t size_of(unsigned type)
{
    switch (type) {
    case DNN_TYPE_CHAR:
    case DNN_TYPE_BOOLEAN:
        return 1;
    case DNN_TYPE_HANDLE:
    case DNN_TYPE_INT64:
    case DNN_TYPE_DOUBLE:
    case DNN_TYPE_VOID_PTR:
    case DNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

FAKE(cudnnBackendSetAttribute, struct descriptor *descriptor, unsigned name, unsigned type,
     int64_t count, const void *values)
{
    PLANNED();
    EXPECT(!descriptor->finalized && !descriptor->destroyed && count > 0 && values);
    struct attribute *attribute = fake_hold(sizeof *attribute);
    *attribute = (struct attribute){.name = name,
                                    .type = type,
                                    .count = count,
                                    .values = fake_hold((size_t)count * size_of(type)),
                                    .next = descriptor->attributes};
    memcpy(attribute->values, values, (size_t)count * size_of(type));
    descriptor->attributes = attribute;
    return FAKE_OK;
}

/* NULL: there is none, or not so many. */
static const void *values_of(const struct descriptor *descriptor, unsigned name, int64_t count)
{
    const struct attribute *a = descriptor->attributes;
    while (a && a->name != name)
        a = a->next;
    return a && a->count >= count ? a->values : NULL;
}

static int64_t count_of(const struct descriptor *descriptor, unsigned name)
{
    const struct attribute *a = descriptor->attributes;
    while (a && a->name != name)
        a = a->next;
    return a ? a->count : 0;
}

/* One that another names, finalized; NULL: it is not. */
static const struct descriptor *named_by(const struct descriptor *descriptor, unsigned name,
                                         int64_t i)
{
    const struct descriptor *const *values = values_of(descriptor, name, i + 1);
    return values && values[i]->finalized && !values[i]->destroyed ? values[i] : NULL;
}

/* ---- What a graph computes ------------------------------------------------------------------- */

static bool is_virtual(const struct descriptor *tensor)
{
    const bool *is = values_of(tensor, DNN_TENSOR_IS_VIRTUAL, 1);
    return is && *is;
}

/* Of a dense tensor with so many axes; NULL: it is not. */
static const int64_t *dims_of(const struct descriptor *tensor, int64_t rank)
{
    const int64_t *dims = values_of(tensor, DNN_TENSOR_DIMENSIONS, rank),
                  *strides = values_of(tensor, DNN_TENSOR_STRIDES, rank);
    bool dense = dims && strides && count_of(tensor, DNN_TENSOR_DIMENSIONS) == rank;
    for (int64_t i = rank - 1, step = 1; dense && i >= 0; step *= dims[i], i--)
        dense = strides[i] == step;
    return dense ? dims : NULL;
}

static bool read_window(const struct descriptor *window, struct conv_problem *c)
{
    const int64_t *rank = values_of(window, DNN_CONVOLUTION_SPATIAL_DIMS, 1);
    if (!rank || *rank < 1 || *rank > CONV_MAX_RANK)
        return false;
    const struct {
        unsigned name;
        int64_t *to;
    } all[] = {{DNN_CONVOLUTION_DILATIONS, c->dilation},
               {DNN_CONVOLUTION_FILTER_STRIDES, c->stride},
               {DNN_CONVOLUTION_PRE_PADDINGS, c->pad_begin},
               {DNN_CONVOLUTION_POST_PADDINGS, c->pad_end}};
    c->rank = *rank;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int64_t *values = values_of(window, all[i].name, *rank);
        if (!values)
            return false;
        memcpy(all[i].to, values, (size_t)*rank * sizeof *values);
    }
    return true;
}

static bool fits(const struct conv_problem *c)
{
    bool fit = c->groups > 0 && c->in_channels % c->groups == 0 && c->out_channels % c->groups == 0;
    for (int64_t i = 0; i < c->rank; i++) {
        const int64_t large = c->turned ? c->out[i] : c->in[i],
                      small = c->turned ? c->in[i] : c->out[i],
                      room = large + c->pad_begin[i] + c->pad_end[i] -
                             (c->kernel[i] - 1) * c->dilation[i] - 1;
        fit &= room >= 0 && room / c->stride[i] + 1 == small;
    }
    return fit;
}

static bool read_tensors(const struct descriptor *x, const struct descriptor *w,
                         const struct descriptor *y, struct conv_problem *c)
{
    const int64_t axes = c->rank + 2, *of_x = x ? dims_of(x, axes) : NULL,
                  *of_w = w ? dims_of(w, axes) : NULL, *of_y = y ? dims_of(y, axes) : NULL;
    if (!of_x || !of_w || !of_y || of_x[0] != of_y[0] || of_w[1] == 0)
        return false;
    c->batch = of_x[0];
    c->in_channels = of_x[1];
    c->out_channels = of_y[1];
    c->groups = (c->turned ? c->out_channels : c->in_channels) / of_w[1];
    memcpy(c->in, of_x + 2, (size_t)c->rank * sizeof *of_x);
    memcpy(c->out, of_y + 2, (size_t)c->rank * sizeof *of_y);
    memcpy(c->kernel, of_w + 2, (size_t)c->rank * sizeof *of_w);
    return of_w[0] == (c->turned ? c->in_channels : c->out_channels) && fits(c);
}

enum { MOST_OPERATIONS = 4 };

/* Has it as many elements in each channel as the result, or one? */
static bool is_whole(const struct descriptor *tensor, const struct conv_problem *c)
{
    const int64_t *dims = dims_of(tensor, c->rank + 2);
    return dims && dims[0] == c->batch && dims[1] == c->out_channels &&
           memcmp(dims + 2, c->out, (size_t)c->rank * sizeof *dims) == 0;
}

static bool is_bias(const struct descriptor *tensor, const struct conv_problem *c)
{
    const int64_t *dims = dims_of(tensor, c->rank + 2);
    bool is = dims && dims[0] == 1 && dims[1] == c->out_channels;
    for (int64_t i = 0; is && i < c->rank; i++)
        is = dims[2 + i] == 1;
    return is;
}

/* Values between operations are nobody's memory, and float32 or double. */
static bool is_inner(const struct descriptor *tensor)
{
    const unsigned *type = values_of(tensor, DNN_TENSOR_DATA_TYPE, 1);
    return is_virtual(tensor) && type && (*type == DNN_DATA_FLOAT || *type == DNN_DATA_DOUBLE);
}

/* An operation on *value, which becomes what it gives. */
static bool read_elementwise(const struct descriptor *operation, const struct descriptor **value,
                             struct conv_problem *c)
{
    const struct descriptor *how = named_by(operation, DNN_ELEMENTWISE_DESC, 0),
                            *a = named_by(operation, DNN_ELEMENTWISE_A, 0),
                            *other = named_by(operation, DNN_ELEMENTWISE_B, 0);
    const unsigned *mode = how ? values_of(how, DNN_POINTWISE_MODE, 1) : NULL,
                   *nan = how ? values_of(how, DNN_POINTWISE_NAN, 1) : NULL;
    if (!mode || a != *value || !is_inner(a) || c->clips)
        return false;
    *value = named_by(operation, DNN_ELEMENTWISE_Y, 0);
    if (*mode == DNN_POINTWISE_RELU) {
        c->clips = 1;
        return *value && !other && nan && *nan == DNN_KEEPS_NAN;
    }
    if (*mode != DNN_POINTWISE_ADD || !other || !*value || c->biased)
        return false;
    if (is_bias(other, c))
        c->biased = 1;
    else if (!c->adds && is_whole(other, c))
        c->adds = 1;
    else
        return false;
    return true;
}

static unsigned type_of(const struct descriptor *descriptor, unsigned name)
{
    const unsigned *type = values_of(descriptor, name, 1);
    return type ? *type : UINT_MAX;
}

/* Sums of two-byte floats are float32. */
static bool read_types(const struct descriptor *x, const struct descriptor *w,
                       const struct descriptor *window, struct library_problem *problem)
{
    static const struct {
        unsigned type, computed_in;
        tssa_dtype dtype;
    } all[] = {{DNN_DATA_FLOAT, DNN_DATA_FLOAT, TSSA_FLOAT},
               {DNN_DATA_DOUBLE, DNN_DATA_DOUBLE, TSSA_DOUBLE},
               {DNN_DATA_HALF, DNN_DATA_FLOAT, TSSA_FLOAT16},
               {DNN_DATA_BFLOAT16, DNN_DATA_FLOAT, TSSA_BFLOAT16}};
    const unsigned type = type_of(x, DNN_TENSOR_DATA_TYPE);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].type == type) {
            problem->dtype = all[i].dtype;
            return type_of(w, DNN_TENSOR_DATA_TYPE) == type &&
                   type_of(window, DNN_CONVOLUTION_COMP_TYPE) == all[i].computed_in;
        }
    return false;
}

static bool read_graph(const struct descriptor *graph, struct library_problem *problem)
{
    const int64_t count = count_of(graph, DNN_GRAPH_OPS);
    const struct descriptor *operation = named_by(graph, DNN_GRAPH_OPS, 0), *window, *x, *w, *y;
    struct conv_problem *c = &problem->conv;
    memset(problem, 0, sizeof *problem);
    if (!operation || count > MOST_OPERATIONS)
        return false;
    c->turned = operation->kind == DNN_BACKWARD;
    window = named_by(operation, c->turned ? DNN_BACKWARD_CONV_DESC : DNN_FORWARD_CONV_DESC, 0);
    x = named_by(operation, c->turned ? DNN_BACKWARD_X : DNN_FORWARD_X, 0);
    w = named_by(operation, c->turned ? DNN_BACKWARD_W : DNN_FORWARD_W, 0);
    y = named_by(operation, c->turned ? DNN_BACKWARD_Y : DNN_FORWARD_Y, 0);
    if (!window || !read_window(window, c) || !read_tensors(x, w, y, c))
        return false;
    if (!read_types(x, w, window, problem))
        return false;
    for (int64_t i = 1; i < count; i++) {
        operation = named_by(graph, DNN_GRAPH_OPS, i);
        if (!operation || operation->kind != DNN_ELEMENTWISE || !read_elementwise(operation, &y, c))
            return false;
    }
    return !is_virtual(y);
}

FAKE(cudnnBackendFinalize, struct descriptor *descriptor)
{
    struct library_problem problem;
    PLANNED();
    EXPECT(!descriptor->finalized && !descriptor->destroyed);
    EXPECT(descriptor->kind != DNN_GRAPH || read_graph(descriptor, &problem));
    EXPECT(descriptor->kind != DNN_PLAN || named_by(descriptor, DNN_PLAN_CONFIG, 0));
    descriptor->finalized = true;
    return FAKE_OK;
}

/* ---- Engines --------------------------------------------------------------------------------- */

/* What is proposed, for as many as there is room. */
static int64_t propose(const struct descriptor *heuristic, int64_t room,
                       struct descriptor **configs)
{
    const struct descriptor *graph = named_by(heuristic, DNN_HEURISTIC_GRAPH, 0);
    struct library_problem problem;
    if (!graph || !read_graph(graph, &problem) || (problem.conv.turned && problem.conv.biased) ||
        ((problem.conv.adds || problem.conv.clips) && !problem.conv.biased))
        return 0;
    int64_t n = 0;
    for (; n < ENGINES && n < room; n++) {
        configs[n]->index = n;
        configs[n]->graph = graph;
        configs[n]->finalized = true;
    }
    return n;
}

/* The values of an attribute: how many there are, and those for which there is room. */
static int64_t get(const struct descriptor *descriptor, unsigned name, int64_t room, void *values)
{
    static const char json[] = "{\"deviceName\": \"Fake card\"}";
    struct descriptor **descriptors = values;
    switch (name) {
    case DNN_HEURISTIC_RESULTS:
        return propose(descriptor, room, descriptors);
    case DNN_CONFIG_ENGINE:
        descriptors[0]->index = descriptor->index;
        return 1;
    case DNN_ENGINE_INDEX:
        *(int64_t *)values = descriptor->index;
        return 1;
    case DNN_ENGINE_NUMERICAL_NOTE:
        *(unsigned *)values = DNN_NOTE_TENSOR_CORE;
        return descriptor->index == 0;
    case DNN_PLAN_WORKSPACE:
        *(int64_t *)values = FAKE_WORKSPACE;
        return 1;
    case DNN_DEVICEPROP_JSON:
        snprintf(values, (size_t)room, "%s", json);
        return sizeof json;
    default:
        return 0;
    }
}

FAKE(cudnnBackendGetAttribute, const struct descriptor *descriptor, unsigned name, unsigned type,
     int64_t room, int64_t *count, void *values)
{
    (void)type;
    PLANNED();
    EXPECT(!descriptor->destroyed);
    *count = get(descriptor, name, room, values);
    return FAKE_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* What a convolution is, when it is computed. */
struct given {
    int64_t x, w, bias, added, y, workspace;
    int64_t engine;
    struct library_problem problem;
};

static int64_t product(const int64_t *sizes, int64_t rank)
{
    int64_t all = 1;
    for (int64_t i = 0; i < rank; i++)
        all *= sizes[i];
    return all;
}

static int64_t weights_of(const struct conv_problem *c)
{
    return c->in_channels / c->groups * c->out_channels * product(c->kernel, c->rank);
}

static double load(const void *from, const struct given *g, int64_t at)
{
    switch (g->problem.dtype) {
    case TSSA_DOUBLE:
        return ((const double *)from)[at];
    case TSSA_FLOAT16:
        return (double)f32_of_f16(((const uint16_t *)from)[at]);
    case TSSA_BFLOAT16:
        return (double)f32_of_bf16(((const uint16_t *)from)[at]);
    default:
        return (double)((const float *)from)[at];
    }
}

static void store(void *to, const struct given *g, int64_t at, double value)
{
    if (g->problem.dtype == TSSA_DOUBLE)
        ((double *)to)[at] = value;
    else if (g->problem.dtype == TSSA_FLOAT)
        ((float *)to)[at] = (float)value;
    else
        ((uint16_t *)to)[at] =
            g->problem.dtype == TSSA_FLOAT16 ? f16_of_f32((float)value) : bf16_of_f32((float)value);
}

static int64_t size_of_element(int64_t dtype)
{
    return dtype == TSSA_DOUBLE ? 8 : dtype == TSSA_FLOAT ? 4 : 2;
}

/* So many operands, float32 in TF32 where the engine has tensor cores. */
static double *load_all(const void *from, const struct given *g, int64_t count)
{
    double *all = malloc((size_t)(count + 1) * sizeof *all);
    if (!all)
        abort();
    for (int64_t i = 0; i < count; i++) {
        all[i] = load(from, g, i);
        if (g->engine == 0 && g->problem.dtype == TSSA_FLOAT)
            all[i] = (double)fake_tf32((float)all[i]);
    }
    return all;
}

/*
 * The row of the large tensor that row number `row` of the small one's windows meets with its tap
 * `tap`, along all axes but the last one; -1: none.
 */
static int64_t row_met(const struct conv_problem *c, int64_t row, int64_t tap)
{
    const int64_t *large_dims = c->turned ? c->out : c->in,
                  *small_dims = c->turned ? c->in : c->out;
    int64_t at = 0, step = 1;
    tap /= c->kernel[c->rank - 1];
    for (int64_t i = c->rank - 2; i >= 0; i--) {
        const int64_t place = row % small_dims[i] * c->stride[i] +
                              tap % c->kernel[i] * c->dilation[i] - c->pad_begin[i];
        if (place < 0 || place >= large_dims[i])
            return -1;
        at += place * step;
        step *= large_dims[i];
        row /= small_dims[i];
        tap /= c->kernel[i];
    }
    return at;
}

/* What a tap makes of a row, of which elements lie in the large tensor from `at` on. */
static void add_row(const struct conv_problem *c, const double *x, double weight, int64_t at,
                    double *sums)
{
    const int64_t last = c->rank - 1, large = c->turned ? c->out[last] : c->in[last],
                  small = c->turned ? c->in[last] : c->out[last], stride = c->stride[last];
    for (int64_t i = 0; i < small; i++, at += stride) {
        if (at < 0 || at >= large)
            continue;
        if (c->turned)
            sums[at] += weight * x[i];
        else
            sums[i] += weight * x[at];
    }
}

/* A plane of x's is added to a plane of y's. */
static void add_plane(const struct conv_problem *c, const double *x, const double *weights,
                      double *sums)
{
    const int64_t last = c->rank - 1, taps = product(c->kernel, c->rank),
                  rows = product(c->turned ? c->in : c->out, last);
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t row = 0; row < rows; row++) {
            const int64_t met = row_met(c, row, tap), of_x = c->turned ? row : met,
                          of_y = c->turned ? met : row;
            if (met >= 0)
                add_row(c, x + of_x * c->in[last], weights[tap],
                        tap % c->kernel[last] * c->dilation[last] - c->pad_begin[last],
                        sums + of_y * c->out[last]);
        }
}

/* What follows a sum. */
static double follow(const struct given *g, double sum, double bias, const void *added, int64_t at)
{
    const double value = sum + (added ? load(added, g, at) : 0) + bias;
    return g->problem.conv.clips && value < 0 ? 0 : value;
}

static void compute(const struct given *g, const void *x, const void *w, const void *bias,
                    const void *added, void *y)
{
    const struct conv_problem *c = &g->problem.conv;
    const int64_t channels = c->in_channels / c->groups, filters = c->out_channels / c->groups,
                  taps = product(c->kernel, c->rank), out = product(c->out, c->rank);
    const int64_t in = product(c->in, c->rank);
    double *of_x = load_all(x, g, c->batch * c->in_channels * in),
           *of_w = load_all(w, g, weights_of(c)), *sums = calloc((size_t)out + 1, sizeof *sums);
    if (!sums)
        abort();
    for (int64_t plane = 0; plane < c->batch * c->out_channels; plane++) {
        const int64_t item = plane / c->out_channels, filter = plane % c->out_channels,
                      first = filter / filters * channels;
        for (int64_t i = 0; i < out; i++)
            sums[i] = 0;
        for (int64_t k = 0; k < channels; k++) {
            const int64_t weight =
                c->turned ? (first + k) * filters + filter % filters : filter * channels + k;
            add_plane(c, of_x + (item * c->in_channels + first + k) * in, of_w + weight * taps,
                      sums);
        }
        for (int64_t i = 0; i < out; i++)
            store(y, g, plane * out + i,
                  follow(g, sums[i], bias ? load(bias, g, filter) : 0, added, plane * out + i));
    }
    free(sums);
    free(of_w);
    free(of_x);
}

static void run_convolution(const int64_t *arguments)
{
    struct given g;
    memcpy(&g, arguments, sizeof g);
    const struct conv_problem *c = &g.problem.conv;
    const int64_t size = size_of_element(g.problem.dtype);
    const size_t of_x = (size_t)(c->batch * c->in_channels * product(c->in, c->rank) * size),
                 of_w = (size_t)(weights_of(c) * size), of_bias = (size_t)(c->out_channels * size),
                 of_y = (size_t)(c->batch * c->out_channels * product(c->out, c->rank) * size);
    const void *x = fake_bytes((cuda_address)g.x, of_x), *w = fake_bytes((cuda_address)g.w, of_w),
               *bias = c->biased ? fake_bytes((cuda_address)g.bias, of_bias) : NULL,
               *added = c->adds ? fake_bytes((cuda_address)g.added, of_y) : NULL;
    void *y = fake_bytes((cuda_address)g.y, of_y),
         *workspace = fake_bytes((cuda_address)g.workspace, FAKE_WORKSPACE);
    if (!x || !w || !y || !workspace || (c->biased && !bias) || (c->adds && !added)) {
        fake_break(FAKE_ILLEGAL_ADDRESS);
        return;
    }
    memset(workspace, 0x5a, FAKE_WORKSPACE);
    compute(&g, x, w, bias, added, y);
}

/* The id of an operation's tensor, by which it is found in a pack; 0: nothing is. */
static int64_t place_of(const struct descriptor *pack, const struct descriptor *operation,
                        unsigned name)
{
    const struct descriptor *tensor = named_by(operation, name, 0);
    const int64_t *id = values_of(tensor, DNN_TENSOR_UNIQUE_ID, 1),
                  count = count_of(pack, DNN_PACK_IDS), *ids = values_of(pack, DNN_PACK_IDS, count),
                  *pointers = values_of(pack, DNN_PACK_POINTERS, count);
    for (int64_t i = 0; id && ids && pointers && i < count; i++)
        if (ids[i] == *id)
            return pointers[i];
    return 0;
}

static void find_places(const struct descriptor *graph, const struct descriptor *pack,
                        struct given *g)
{
    const struct conv_problem *c = &g->problem.conv;
    const int64_t count = count_of(graph, DNN_GRAPH_OPS);
    const struct descriptor *sum = named_by(graph, DNN_GRAPH_OPS, 0);
    const int64_t *workspace = values_of(pack, DNN_PACK_WORKSPACE, 1);
    g->x = place_of(pack, sum, c->turned ? DNN_BACKWARD_X : DNN_FORWARD_X);
    g->w = place_of(pack, sum, c->turned ? DNN_BACKWARD_W : DNN_FORWARD_W);
    g->y = place_of(pack, sum, c->turned ? DNN_BACKWARD_Y : DNN_FORWARD_Y);
    g->workspace = workspace ? *workspace : 0;
    for (int64_t i = 1; i < count; i++) {
        const struct descriptor *operation = named_by(graph, DNN_GRAPH_OPS, i),
                                *other = named_by(operation, DNN_ELEMENTWISE_B, 0);
        if (other)
            *(is_bias(other, c) ? &g->bias : &g->added) =
                place_of(pack, operation, DNN_ELEMENTWISE_B);
        g->y = place_of(pack, operation, DNN_ELEMENTWISE_Y);
    }
}

FAKE(cudnnBackendExecute, struct handle *handle, const struct descriptor *plan,
     const struct descriptor *pack)
{
    static struct CUfunc_st kernel = {.name = "convolution", .run = run_convolution};
    struct given given = {0};
    PLANNED();
    EXPECT(plan->kind == DNN_PLAN && plan->finalized && !plan->destroyed);
    EXPECT(pack->kind == DNN_PACK && pack->finalized && !pack->destroyed);
    const struct descriptor *config = named_by(plan, DNN_PLAN_CONFIG, 0);
    EXPECT(config && config->graph && read_graph(config->graph, &given.problem));
    given.engine = config->index;
    find_places(config->graph, pack, &given);
    EXPECT(given.x && given.w && given.y && given.workspace);
    EXPECT(!given.problem.conv.adds || given.added);
    if (!fake_number("FAKE_CUDA_COMPUTES", 1))
        return cuMemsetD32Async((cuda_address)given.y, ONE, 16, handle->stream);
    struct fake_work work = {.kind = FAKE_LAUNCH, .kernel = &kernel};
    work.arguments = malloc(sizeof given);
    if (!work.arguments)
        abort();
    memcpy(work.arguments, &given, sizeof given);
    return fake_push(handle->stream, &work);
}
