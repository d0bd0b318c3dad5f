/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of cuDNN: what engines cost and lose, in a WHILE's body, and the card as cuDNN sees
 * it. */
#include <math.h>
#include <stdlib.h>

#include "bench/cuda_probe/body.h"
#include "bench/cuda_probe/numbers.h"
#include "bench/cuda_probe/probe.h"
#include "device/cuda/cudnn.h"

static tssa_status *open_on_card(struct cudnn *cudnn, FILE *out)
{
    TRY(cudnn_open(cudnn));
    if (cudnn->cudnnGetVersion)
        record_fact(out, "cuDNN", "%zu", cudnn->cudnnGetVersion());
    return cudnn_use_card(cudnn);
}

tssa_status *probe_device_json(struct card *card, FILE *out)
{
    char json[4096];
    struct cudnn cudnn;
    (void)card;
    TRY(open_on_card(&cudnn, out));
    TRY(cudnn_describe_card(&cudnn, json, sizeof json));
    record_fact(out, "device properties", "%s", json);
    return NULL;
}

/* ---- A convolution and its operands ---------------------------------------------------------- */

struct convolution {
    int64_t batch, channels, height, width, filters, kernel; /* padded to keep height and width */
};

struct work {
    struct cudnn *cudnn;
    struct convolution shape;
    char name[64];
    float *x, *w; /* on the host too, to compute from */
    cuda_address on_x, on_w, on_y, workspace;
    size_t y_count;
    struct cudnn_plan plan;
    cudnn_descriptor pack;
};

static tssa_status *prepare(struct card *card, struct work *work)
{
    const struct convolution *c = &work->shape;
    size_t x_count = (size_t)(c->batch * c->channels * c->height * c->width);
    size_t w_count = (size_t)(c->filters * c->channels * c->kernel * c->kernel);
    work->y_count = (size_t)(c->batch * c->filters * c->height * c->width);
    snprintf(work->name, sizeof work->name, "%dx%d, %d to %d, %dx%d", (int)c->kernel,
             (int)c->kernel, (int)c->channels, (int)c->filters, (int)c->height, (int)c->width);
    TRY(numbers_make(x_count, 1, &work->x));
    TRY(numbers_make(w_count, 2, &work->w));
    TRY(card_upload(card, work->x, x_count * sizeof(float), &work->on_x));
    TRY(card_upload(card, work->w, w_count * sizeof(float), &work->on_w));
    return card_zeros(card, work->y_count * sizeof(float), &work->on_y);
}

static struct library_problem problem_of(const struct convolution *c)
{
    return (struct library_problem){.kind = LIBRARY_CONV,
                                    .dtype = TSSA_FLOAT,
                                    .conv = {.rank = 2,
                                             .batch = c->batch,
                                             .groups = 1,
                                             .in_channels = c->channels,
                                             .out_channels = c->filters,
                                             .in = {c->height, c->width},
                                             .out = {c->height, c->width},
                                             .kernel = {c->kernel, c->kernel},
                                             .stride = {1, 1},
                                             .dilation = {1, 1},
                                             .pad_begin = {c->kernel / 2, c->kernel / 2},
                                             .pad_end = {c->kernel / 2, c->kernel / 2}}};
}

static tssa_status *engines_of(const struct work *work, struct engine *engines, size_t *count)
{
    const struct library_problem problem = problem_of(&work->shape);
    return cudnn_engines(work->cudnn, &problem, engines, count);
}

static void release(struct card *card, struct work *work)
{
    const cuda_address memory[] = {work->on_x, work->on_w, work->on_y};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        if (memory[i])
            tssa_status_free(CARD(card, cuMemFree_v2, memory[i]));
    }
    free(work->x);
    free(work->w);
}

static tssa_status *choose(struct card *card, struct work *work, const struct engine *engine)
{
    TRY(cudnn_plan_make(work->cudnn, engine, &work->plan));
    TRY(card_zeros(card, (size_t)work->plan.workspace + 16, &work->workspace));
    const struct cudnn_places places = {
        .x = work->on_x, .w = work->on_w, .y = work->on_y, .workspace = work->workspace};
    return cudnn_pack(work->cudnn, &places, &work->pack);
}

static tssa_status *fill(struct card *card, cuda_stream stream, void *data)
{
    struct work *work = data;
    (void)card;
    return cudnn_run(work->cudnn, &work->plan, work->pack, stream);
}

/* ---- Time and error -------------------------------------------------------------------------- */

enum { REPEATS = 20, SAMPLES = 2000, ENGINES_OF_A_KIND = 4 };

static tssa_status *repeat(struct card *card, void *data)
{
    for (int i = 0; i < REPEATS; i++)
        TRY(fill(card, card->stream, data));
    return card_sync(card);
}

/* One element of the result, in double. */
static double exact(const struct work *work, size_t index)
{
    const struct convolution *c = &work->shape;
    int64_t i = (int64_t)index, column = i % c->width, row = i / c->width % c->height;
    int64_t filter = i / (c->width * c->height) % c->filters;
    int64_t image = i / (c->width * c->height * c->filters), taps = c->kernel * c->kernel;
    double sum = 0;
    for (int64_t k = 0; k < c->channels * taps; k++) {
        int64_t y = row + k % taps / c->kernel - c->kernel / 2;
        int64_t x = column + k % c->kernel - c->kernel / 2;
        if (y < 0 || y >= c->height || x < 0 || x >= c->width)
            continue;
        int64_t plane = image * c->channels + k / taps;
        sum += (double)work->w[filter * c->channels * taps + k] *
               (double)work->x[(plane * c->height + y) * c->width + x];
    }
    return sum;
}

/* The largest error of some elements, as a part of the largest of them. */
static tssa_status *find_error(struct card *card, const struct work *work, double *error)
{
    float *y = calloc(work->y_count, sizeof *y);
    double largest = 0, worst = 0;
    TRY_ALLOC(y);
    tssa_status *status = card_download(card, work->on_y, work->y_count * sizeof *y, y);
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t index = i * 7919 % work->y_count;
        double wanted = exact(work, index);
        largest = fmax(largest, fabs(wanted));
        worst = fmax(worst, fabs((double)y[index] - wanted));
    }
    free(y);
    *error = worst / largest;
    return status;
}

static tssa_status *measure(struct card *card, FILE *out, struct work *work,
                            const struct engine *engine)
{
    const char *kind = engine->tensor_core ? "tensor cores" : "strict";
    struct timing timing;
    double error;
    TRY(choose(card, work, engine));
    TRY(CARD(card, cuMemsetD32Async, work->on_y, 0, work->y_count, card->stream));
    TRY(stopwatch_time(card, repeat, work, REPEATS, &timing));
    TRY(find_error(card, work, &error));
    TRY(CARD(card, cuMemFree_v2, work->workspace));
    record_timing(out, timing, "%s, %s, engine %d", work->name, kind, (int)engine->index);
    record_figure(out, error, "of the largest", "%s, %s, engine %d, error", work->name, kind,
                  (int)engine->index);
    return NULL;
}

/* The first engines with tensor cores, and the first without, that have a plan here. */
static tssa_status *measure_engines(struct card *card, FILE *out, struct work *work)
{
    struct engine engines[ENGINE_LIMIT];
    size_t count, taken[2] = {0, 0};
    TRY(prepare(card, work));
    TRY(engines_of(work, engines, &count));
    record_figure(out, (double)count, "", "%s, engines proposed", work->name);
    for (size_t i = 0; i < count; i++) {
        if (engines[i].compiled || taken[engines[i].tensor_core] >= ENGINES_OF_A_KIND)
            continue;
        tssa_status *status = measure(card, out, work, &engines[i]);
        taken[engines[i].tensor_core] += status == NULL;
        tssa_status_free(status); /* engines that refuse are no news: the next one is asked */
    }
    if (taken[0] + taken[1] == 0)
        return ERROR(TSSA_UNSUPPORTED, "%s: none of %zu engines runs", work->name, count);
    return NULL;
}

static const struct convolution shapes[] = {
    {1, 64, 56, 56, 64, 3},
    {1, 256, 28, 28, 256, 1},
    {1, 3, 224, 224, 32, 7},
};

tssa_status *probe_cudnn_f32(struct card *card, FILE *out)
{
    struct cudnn cudnn;
    tssa_status *status = open_on_card(&cudnn, out);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !status; i++) {
        struct work work = {.cudnn = &cudnn, .shape = shapes[i]};
        status = measure_engines(card, out, &work);
        release(card, &work);
    }
    return status;
}

/* ---- In a WHILE's body ----------------------------------------------------------------------- */

static tssa_status *capture_first(struct card *card, FILE *out, struct work *work, bool tensor_core)
{
    struct engine engines[ENGINE_LIMIT];
    char name[128];
    size_t count;
    tssa_status *status = NULL;
    TRY(engines_of(work, engines, &count));
    for (size_t i = 0; i < count; i++) {
        if (engines[i].compiled || engines[i].tensor_core != tensor_core)
            continue;
        tssa_status_free(status);
        status = choose(card, work, &engines[i]);
        if (status)
            continue;
        snprintf(name, sizeof name, "%s, %s, engine %d", work->name,
                 tensor_core ? "tensor cores" : "strict", (int)engines[i].index);
        struct body_call call = {name, fill, work, work->on_y, work->y_count * sizeof(float)};
        return body_ask(card, out, &call);
    }
    return status;
}

static tssa_status *capture_both(struct card *card, FILE *out, struct work *work)
{
    TRY(prepare(card, work));
    TRY(capture_first(card, out, work, true));
    return capture_first(card, out, work, false);
}

tssa_status *probe_cudnn_capture(struct card *card, FILE *out)
{
    struct cudnn cudnn;
    TRY(open_on_card(&cudnn, out));
    struct work work = {.cudnn = &cudnn, .shape = shapes[0]};
    tssa_status *status = capture_both(card, out, &work);
    release(card, &work);
    return status;
}
