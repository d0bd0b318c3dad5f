/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/contraction/conv_transpose_rows.h"

#include <string.h>

#include "base/clones.h"
#include "base/isa.h"
#include "device/cpu/provider.h"
#include "ir/reduction.h"
#include "kernels/cpu/lib/strided.h"

#define LANES 8
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* Of fewer there is little to win. */
#define MIN_CHANNELS 32
/* Of an image with more pixels, to add up by rows takes as long as it saves. */
#define MOST_PIXELS 512
/* Of scratch memory: more is in no cache any more when it is read again. */
#define MOST_BYTES ((size_t)8 << 20)
#define GRAIN 16384 /* additions */

/* With AVX-512 the library multiplies by weights that are turned as fast. */
bool conv_transpose_rows_packs(const struct tensor *w, int64_t groups)
{
    int64_t taps = 1;
    if (isa_level() != ISA_V3 || groups != 1 || !w || w->dtype != TSSA_FLOAT || w->rank < 3 ||
        w->dims[0] < MIN_CHANNELS || w->dims[0] % LANES || w->dims[1] % LANES)
        return false;
    for (int i = 2; i < w->rank; i++)
        taps *= w->dims[i];         /* of a tensor that is there */
    return taps <= REDUCTION_RADIX; /* sums are of one level */
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* Where in the rows the terms of each pixel of a result lie, in the order of the kernel's
 * positions: `at`, in rows of `out_channels`; those of pixel o are first[o] to first[o + 1] - 1. */
struct sources {
    int64_t *first, *at;
};

/* Calls `put` for each position of the kernel, and of these for each pixel of the input that gives
 * to a pixel of the result there. */
static void each_term(const struct window *w, void (*put)(const struct sources *, int64_t, int64_t),
                      const struct sources *sources)
{
    const int last = w->rank - 1;
    const int64_t length = w->out[last], rows = w->out_count / length;
    for (int64_t k = 0; k < w->kernel_count; k++) {
        const int64_t from = k % w->kernel[last] * w->dilation[last] - w->pad_begin[last];
        int64_t begin, end;
        window_valid_range(from, w->stride[last], w->in[last], length, &begin, &end);
        for (int64_t r = 0; r < rows && begin < end; r++) {
            const int64_t row = window_input_row(w, r, k / w->kernel[last]);
            for (int64_t i = begin; i < end && row >= 0; i++)
                put(sources, row * w->in[last] + from + i * w->stride[last],
                    (r * length + i) * w->kernel_count + k);
        }
    }
}

static void count_term(const struct sources *sources, int64_t pixel, int64_t at)
{
    (void)at;
    sources->first[pixel + 2]++;
}

/* first[o + 1] is where the next term of o goes. */
static void put_term(const struct sources *sources, int64_t pixel, int64_t at)
{
    sources->at[sources->first[pixel + 1]++] = at;
}

static void find_sources(const struct window *w, const struct sources *sources)
{
    memset(sources->first, 0, (size_t)(w->in_count + 2) * sizeof *sources->first);
    each_term(w, count_term, sources);
    for (int64_t o = 0; o < w->in_count; o++)
        sources->first[o + 2] += sources->first[o + 1];
    each_term(w, put_term, sources);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

struct sums {
    const struct conv_transpose_rows *job;
    struct sources sources;
    const float *rows; /* of an item */
    float *pixels;     /* of its result, channels last */
};

/* Of the pixels of a result: from 0 on, and then the bias. */
VECTOR_PROCEDURE(add_terms, (const struct sums *s, int64_t begin, int64_t end), (s, begin, end))
{
    const int64_t channels = s->job->out_channels;
    const float *bias = s->job->bias ? s->job->bias->data : NULL;
    for (int64_t o = begin; o < end; o++) {
        const int64_t *at = s->sources.at + s->sources.first[o];
        const int64_t n = s->sources.first[o + 1] - s->sources.first[o];
        float *to = s->pixels + o * channels;
        for (int64_t c = 0; c < channels; c += LANES) {
            lanes sum = {0}, term;
            for (int64_t k = 0; k < n; k++) {
                memcpy(&term, s->rows + at[k] * channels + c, sizeof term);
                sum += term;
            }
            if (bias) {
                memcpy(&term, bias + c, sizeof term);
                sum += term;
            }
            memcpy(to + c, &sum, sizeof sum);
        }
    }
}

static void add_pixels(void *context, int64_t begin, int64_t end)
{
    add_terms(context, begin, end);
}

/* ---- Products -------------------------------------------------------------------------------- */

static void turn(const struct team *team, int64_t rows, int64_t columns, const void *from, void *to)
{
    struct strided_box box = {.rank = 0};
    strided_push(&box, columns, rows, 1);
    strided_push(&box, rows, 1, columns);
    strided_copy(team, sizeof(float), &box, to, from);
}

/* [in][out][taps] become [in][taps][out]. */
static void put_taps_first(const struct tensor *w, void *to)
{
    const int64_t channels = w->dims[1], taps = (int64_t)tensor_count(w) / (w->dims[0] * channels),
                  plane = channels * taps;
    for (int64_t i = 0; i < w->dims[0]; i++)
        turn(NULL, channels, taps, (const float *)w->data + i * plane, (float *)to + i * plane);
}

static struct library_weights weights_of(const struct tensor *w)
{
    return (struct library_weights){
        .tensor = w, .widened_bytes = tensor_bytes(w), .widen = put_taps_first};
}

static bool find_problem(const struct kernel_args *args, const struct library_cache *cache,
                         const struct conv_transpose_rows *job, struct library_problem *problem)
{
    const int64_t rows = job->batch * job->window->out_count,
                  columns = job->out_channels * job->window->kernel_count;
    int64_t work;
    if ((job->bias && job->bias->dtype != TSSA_FLOAT) || !i64_mul(rows, columns, &work) ||
        !i64_mul(work, job->in_channels, &work))
        return false;
    *problem = (struct library_problem){.kind = LIBRARY_MATMUL, .dtype = TSSA_FLOAT};
    problem->matmul = (struct matmul_problem){.batch = 1,
                                              .m = rows,
                                              .n = columns,
                                              .k = job->in_channels,
                                              .a_row = job->in_channels,
                                              .a_column = 1,
                                              .b_row = columns,
                                              .b_column = 1,
                                              .b_constant = true};
    problem->threads = cpu_library_threads(cache->context, args->env->team, work);
    return problem->threads > 0;
}

/* Scratch memory, one behind the other: pixels of the input and what is made of them, of all items;
 * pixels of a result; and where these find their terms. */
struct places {
    float *x, *rows, *pixels;
    struct sources sources;
};

/* How many floats, and bytes of all. False: too many. */
static bool find_bytes(const struct conv_transpose_rows *job, size_t *floats, size_t *bytes)
{
    const struct window *w = job->window;
    const size_t pixels = (size_t)(job->batch * w->out_count), taps = (size_t)w->kernel_count;
    size_t row, result, terms;
    if (pixels == 0 || w->out_count > MOST_PIXELS ||
        !size_mul(taps, (size_t)job->out_channels, &row) ||
        !size_add(row, (size_t)job->in_channels, &row) || !size_mul(row, pixels, &row) ||
        !size_mul((size_t)w->in_count, (size_t)job->out_channels, &result) ||
        !size_add(row, result, floats) || !size_mul(*floats, sizeof(float), &result))
        return false;
    return size_mul((size_t)w->out_count, taps, &terms) &&
           size_add(terms, (size_t)w->in_count + 2, &terms) &&
           size_mul(terms, sizeof(int64_t), &terms) && size_add(terms, result, bytes) &&
           *bytes <= MOST_BYTES;
}

static struct places places_in(const struct conv_transpose_rows *job, size_t floats, char *memory)
{
    const struct window *w = job->window;
    const int64_t pixels = job->batch * w->out_count;
    struct places p = {.rows = (float *)(void *)memory}; /* where rows begin, lines of a cache do */
    p.x = p.rows + pixels * w->kernel_count * job->out_channels;
    p.pixels = p.x + pixels * job->in_channels;
    p.sources.first = (int64_t *)(void *)(memory + floats * sizeof(float));
    p.sources.at = p.sources.first + w->in_count + 2;
    return p;
}

static void sum_items(const struct team *team, const struct conv_transpose_rows *job,
                      const struct places *places)
{
    const struct window *w = job->window;
    const int64_t row = w->out_count * w->kernel_count * job->out_channels,
                  result = w->in_count * job->out_channels,
                  cost = w->out_count * w->kernel_count * job->out_channels / w->in_count;
    struct sums sums = {job, places->sources, places->rows, places->pixels};
    for (int64_t item = 0; item < job->batch; item++, sums.rows += row) {
        team_for(team, w->in_count, GRAIN / (cost + 1) + 1, add_pixels, &sums);
        turn(team, w->in_count, job->out_channels, sums.pixels, job->y + item * result);
    }
}

static tssa_status *compute(struct kernel_args *args, struct library_cache *cache,
                            const struct conv_transpose_rows *job,
                            const struct library_problem *problem, const struct places *places,
                            bool *done)
{
    const struct team *team = args->env->team;
    const struct library_weights weights = weights_of(job->w);
    const int64_t pixels = job->window->out_count, image = pixels * job->in_channels;
    struct library_call call = {.operands = {{places->x, 0}, {job->w->data, 0}},
                                .result = {places->rows, 0}};
    for (int64_t item = 0; item < job->batch; item++)
        turn(team, job->in_channels, pixels, job->x + item * image, places->x + item * image);
    TRY(library_compute(args, cache, problem, &weights, &call, done));
    if (*done) {
        find_sources(job->window, &places->sources);
        sum_items(team, job, places);
    }
    return NULL;
}

tssa_status *conv_transpose_rows(struct kernel_args *args, struct library_cache *cache,
                                 const struct conv_transpose_rows *job, bool *done)
{
    struct library_problem problem;
    struct buffer *buffer;
    size_t floats, bytes;
    *done = false;
    if (!find_bytes(job, &floats, &bytes) || !find_problem(args, cache, job, &problem))
        return NULL;
    TRY(kernel_scratch(args, bytes, &buffer));
    const struct places places = places_in(job, floats, buffer->data);
    tssa_status *status = compute(args, cache, job, &problem, &places, done);
    buffer_release(buffer);
    return status;
}

tssa_status *conv_transpose_rows_get_ready(struct kernel_args *args, struct library_cache *cache,
                                           const struct conv_transpose_rows *job, bool *made)
{
    const struct library_weights weights = weights_of(job->w);
    struct library_problem problem;
    size_t floats, bytes;
    *made = false;
    if (!find_bytes(job, &floats, &bytes) || !find_problem(args, cache, job, &problem))
        return NULL;
    return library_get_ready(args, cache, &problem, &weights, made);
}
