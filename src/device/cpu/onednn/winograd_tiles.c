/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/onednn/winograd_tiles.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clones.h"
#include "base/integers.h"
#include "device/cpu/onednn/conv_attrs.h"
#include "device/cpu/onednn/pointwise.h"
#include "device/cpu/onednn/winograd_points.h"
#include "device/cpu/onednn/winograd_weights.h"
#include "ir/convolve.h"

#define LANES WINOGRAD_LANES
#if defined(__x86_64__)
#define FAST VECTOR_V3
#else
#define FAST
#endif
#define BLOCK POINTWISE_BLOCK /* that channels are a multiple of, or filled up to */

/* Of 14x14 pixels weights are read from memory about as quickly as they are used; of fewer there
 * are too few tiles for that. */
#define MIN_CHANNELS 32
#define MIN_PIXELS 190
#define MIN_SIDE 8
/* About so many bytes are a strip's numbers and sums. */
#define STRIP_BYTES (1 << 22)
#define MIN_TILES 48 /* of a strip: fewer read weights more often than it pays */

/* Weights whose numbers take so many bytes, and more than numbers of images do, are spread in each
 * run, in pieces of about so many bytes; but for so few tiles that it takes a tenth longer. */
#define LARGE_WEIGHTS (12 << 20)
#define PIECE_BYTES (5 << 20)
#define PIECE_TILES 20
/* Between matrices and numbers, whose sizes are often powers of two, which a cache has few places
 * for. */
#define APART 16

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t mask __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef float lanes_at
    __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

/* Pixels of an image with channels last: floats from one to the next. */
struct image {
    int64_t channels, high, wide;
};

struct tiles {
    struct library_primitive base;
    const struct onednn_engine *engine;
    int threads;
    struct image x, y;
    int64_t in, out;              /* channels; of results with those that fill a block */
    int64_t step[2], before[2];   /* dilations; pads */
    int64_t pictures, high, wide; /* of all images: each d-th row and column; of results */
    int64_t rows, columns;        /* of a picture's tiles */
    int64_t count, strip, strips; /* tiles; of a strip */
    bool biased, added;
    enum convolve_after after;
    float a, b;
    struct pointwise product;  /* of a strip's numbers of one kind */
    size_t matrix_bytes;       /* packed */
    int64_t piece;             /* channels of results whose weights are spread in a run; 0: all are
                                  spread when they are packed */
    struct onednn_unit later;  /* what is done to all results in the end; NULL: nothing */
    dnnl_memory_desc_t all;    /* results */
    dnnl_memory_desc_t spread; /* weights of a piece */
    size_t threads_at;         /* scratch memory of threads, behind what they share */
    size_t sums_at, product_at, thread_bytes; /* of a thread's scratch memory */
};

/* ---- Transforms ------------------------------------------------------------------------------ */

/* Six numbers of six pixels, `step` apart. */
FAST static inline void forward(const lanes *d, int step, lanes *to, int to_step)
{
    const lanes even_p = d[4 * step] - QQ * d[2 * step], odd_p = P * (d[3 * step] - QQ * d[step]),
                even_q = d[4 * step] - PP * d[2 * step], odd_q = Q * (d[3 * step] - PP * d[step]);
    to[0] = PP * QQ * d[0] - (PP + QQ) * d[2 * step] + d[4 * step];
    to[to_step] = even_p + odd_p;
    to[2 * to_step] = even_p - odd_p;
    to[3 * to_step] = even_q + odd_q;
    to[4 * to_step] = even_q - odd_q;
    to[5 * to_step] = PP * QQ * d[step] - (PP + QQ) * d[3 * step] + d[5 * step];
}

/* Four pixels of six sums. */
FAST static inline void backward(const lanes *m, int step, lanes *to, int to_step)
{
    const lanes even_p = m[step] + m[2 * step], odd_p = P * (m[step] - m[2 * step]),
                even_q = m[3 * step] + m[4 * step], odd_q = Q * (m[3 * step] - m[4 * step]);
    to[0] = m[0] + even_p + even_q;
    to[to_step] = odd_p + odd_q;
    to[2 * to_step] = PP * even_p + QQ * even_q;
    to[3 * to_step] = PP * odd_p + QQ * odd_q + m[5 * step];
}

/* The same of three weights, into six. */
static inline void spread(const float *g, int step, float *to)
{
    SPREAD(float, g, step, to, 1);
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* Where pixels of a tile are in an image, in floats; -1: beside it. */
struct window {
    int64_t at[NUMBERS];
};

/* Of a tile's n pixels along each axis, of which the first is so many before the tile's own. */
static void find_window(const struct tiles *p, const struct image *image, int64_t tile, int n,
                        const int64_t *before, struct window *window)
{
    const int64_t picture = tile / (p->rows * p->columns), row = tile / p->columns % p->rows,
                  column = tile % p->columns, phases = p->step[0] * p->step[1],
                  phase = picture % phases, first = picture / phases * image->high * image->wide;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const int64_t y = (row * PIXELS + i) * p->step[0] + phase / p->step[1] - before[0],
                          x = (column * PIXELS + j) * p->step[1] + phase % p->step[1] - before[1];
            const bool there = y >= 0 && y < image->high && x >= 0 && x < image->wide;
            window->at[i * n + j] = there ? (first + y * image->wide + x) * image->channels : -1;
        }
}

/* Numbers of one kind lie `pitch` after those of the one before. */
FAST static void load_tile(const float *image, const struct window *window, int64_t channels,
                           int64_t pitch, float *numbers)
{
    for (int64_t c = 0; c < channels; c += LANES) {
        lanes d[NUMBERS], t[NUMBERS], of_row[TILE];
        for (int i = 0; i < NUMBERS; i++) {
            d[i] = (lanes){0};
            if (window->at[i] >= 0)
                d[i] = *(const lanes_at *)(image + window->at[i] + c);
        }
        for (int j = 0; j < TILE; j++)
            forward(d + j, TILE, t + j, TILE);
        for (int i = 0; i < TILE; i++) {
            forward(t + i * TILE, 1, of_row, 1);
            for (int j = 0; j < TILE; j++)
                *(lanes_at *)(numbers + (i * TILE + j) * pitch + c) = of_row[j];
        }
    }
}

/* The first n lanes. */
FAST static inline void get(lanes *x, int64_t n, const float *from)
{
    *x = (lanes){0};
    if (n == LANES)
        *x = *(const lanes_at *)from;
    else
        memcpy(x, from, (size_t)n * sizeof *from);
}

FAST static inline void put(const lanes *x, int64_t n, float *to)
{
    if (n == LANES)
        *(lanes_at *)to = *x;
    else
        memcpy(to, x, (size_t)n * sizeof *to);
}

/* To a tile's sums its bias, if there is one, and what is in the image, if that is added. */
FAST static inline void add(const struct tiles *p, const float *bias, const struct window *window,
                            const float *image, int64_t n, lanes *sums)
{
    lanes more = {0};
    if (p->biased)
        get(&more, n, bias);
    for (int i = 0; i < PIXELS * PIXELS; i++) {
        sums[i] += more;
        if (p->added && window->at[i] >= 0) {
            lanes before;
            get(&before, n, image + window->at[i]);
            sums[i] += before;
        }
    }
}

/* `to` of the lanes that a comparison found. */
#define REPLACE(x, found, to) (x) = (lanes)(((found) & (mask)(to)) | (~(found) & (mask)(x)))

/* What is done to sums then, but for what is left for later. */
FAST static inline void finish(const struct tiles *p, lanes *x)
{
    const lanes zero = {0}, one = zero + 1, a = zero + p->a, b = zero + p->b;
    for (int i = 0; i < PIXELS * PIXELS; i++) {
        if (p->after == AFTER_relu)
            REPLACE(x[i], x[i] < 0, zero);
        else if (p->after == AFTER_leaky_relu)
            REPLACE(x[i], x[i] < 0, a * x[i]);
        else if (p->after == AFTER_clip) {
            REPLACE(x[i], x[i] < a, a);
            REPLACE(x[i], x[i] > b, b);
        } else if (p->after == AFTER_hard_swish) {
            lanes factor = x[i] * (1.0F / 6) + 0.5F;
            REPLACE(factor, factor > 1, one);
            REPLACE(factor, factor < 0, zero);
            x[i] *= factor;
        }
    }
}

/* Of channels first to end, those that there are. */
FAST static void store_tile(const struct tiles *p, const float *sums, int64_t pitch, int64_t first,
                            int64_t end, const float *bias, const struct window *window,
                            float *image)
{
    for (int64_t c = first; c < least(end, p->y.channels); c += LANES) {
        const int64_t n = least(p->y.channels - c, LANES);
        lanes m[NUMBERS], t[PIXELS * TILE], y[PIXELS * PIXELS];
        for (int i = 0; i < NUMBERS; i++)
            m[i] = *(const lanes_at *)(sums + i * pitch + c - first);
        for (int j = 0; j < TILE; j++)
            backward(m + j, TILE, t + j, TILE);
        for (int i = 0; i < PIXELS; i++)
            backward(t + i * TILE, 1, y + i * PIXELS, 1);
        add(p, p->biased ? bias + c : NULL, window, image + c, n, y);
        finish(p, y);
        for (int i = 0; i < PIXELS * PIXELS; i++)
            if (window->at[i] >= 0)
                put(&y[i], n, image + window->at[i] + c);
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool multiply(struct tiles *p, const struct library_call *call, float *numbers, float *sums,
                     char *scratch)
{
    bool done = true;
    for (int i = 0; i < NUMBERS && done; i++) {
        const char *packed = device_place_at(call->operands[WEIGHTS]);
        done = pointwise_run(&p->product, numbers + i * p->strip * p->in,
                             packed + (size_t)i * p->matrix_bytes, sums + i * p->strip * p->out,
                             scratch);
    }
    return done;
}

/* In this thread's scratch memory. What tiles beyond the last one would be is 0. */
static bool compute_strip(struct tiles *p, const struct library_call *call, int64_t first,
                          char *scratch)
{
    static const int64_t none[2];
    const int64_t n = least(p->strip, p->count - first), x_pitch = p->strip * p->in,
                  y_pitch = p->strip * p->out;
    float *numbers = (float *)(void *)scratch, *sums = (float *)(void *)(scratch + p->sums_at);
    struct window window;
    for (int64_t i = 0; i < n; i++) {
        find_window(p, &p->x, first + i, TILE, p->before, &window);
        load_tile(device_place_at(call->operands[SRC]), &window, p->in, x_pitch,
                  numbers + i * p->in);
    }
    for (int i = 0; i < NUMBERS && n < p->strip; i++)
        memset(numbers + i * x_pitch + n * p->in, 0,
               (size_t)((p->strip - n) * p->in) * sizeof *numbers);
    if (!multiply(p, call, numbers, sums, scratch + p->product_at))
        return false;
    for (int64_t i = 0; i < n; i++) {
        find_window(p, &p->y, first + i, PIXELS, none, &window);
        store_tile(p, sums + i * p->out, y_pitch, 0, p->out, device_place_at(call->operands[BIAS]),
                   &window, device_place_at(call->result));
    }
    return true;
}

static int compute_strips(struct tiles *p, const struct library_call *call)
{
    int failed = 0;
#pragma omp parallel for schedule(static) reduction(+ : failed) if (p->threads > 1)
    for (int64_t i = 0; i < p->strips; i++)
        failed += !compute_strip(p, call, i * p->strip,
                                 (char *)device_place_at(call->scratch) +
                                     (size_t)omp_get_thread_num() * p->thread_bytes);
    return failed;
}

/* ---- In pieces ------------------------------------------------------------------------------- */

/* Floats from numbers of one kind to those of the next, and so of sums and matrices. */
static int64_t numbers_apart(const struct tiles *p)
{
    return p->count * p->in + APART;
}

static int64_t sums_apart(const struct tiles *p)
{
    return p->count * p->piece + APART;
}

static int64_t matrices_apart(const struct tiles *p)
{
    return p->in * p->piece + APART;
}

/* Of those channels of results, in this thread's scratch memory. */
static bool compute_piece(struct tiles *p, const struct library_call *call, int64_t first,
                          const float *numbers, char *scratch)
{
    static const int64_t none[2];
    float *matrices = (float *)(void *)scratch, *sums = (float *)(void *)(scratch + p->sums_at);
    bool done = true;
    struct window window;
    winograd_weights_spread(device_place_at(call->operands[WEIGHTS]), p->in, first, p->piece,
                            matrices_apart(p), matrices);
    for (int i = 0; i < NUMBERS && done; i++)
        done = pointwise_run(&p->product, numbers + i * numbers_apart(p),
                             matrices + i * matrices_apart(p), sums + i * sums_apart(p),
                             scratch + p->product_at);
    for (int64_t i = 0; i < p->count && done; i++) {
        find_window(p, &p->y, i, PIXELS, none, &window);
        store_tile(p, sums + i * p->piece, sums_apart(p), first, first + p->piece,
                   device_place_at(call->operands[BIAS]), &window, device_place_at(call->result));
    }
    return done;
}

/* Threads share numbers of all tiles. */
static int compute_pieces(struct tiles *p, const struct library_call *call)
{
    char *scratch = device_place_at(call->scratch);
    float *numbers = (float *)(void *)scratch;
    int failed = 0;
#pragma omp parallel for schedule(static) if (p->threads > 1)
    for (int64_t i = 0; i < p->count; i++) {
        struct window window;
        find_window(p, &p->x, i, TILE, p->before, &window);
        load_tile(device_place_at(call->operands[SRC]), &window, p->in, numbers_apart(p),
                  numbers + i * p->in);
    }
#pragma omp parallel for schedule(static) reduction(+ : failed) if (p->threads > 1)
    for (int64_t i = 0; i < p->out; i += p->piece)
        failed += !compute_piece(p, call, i, numbers,
                                 scratch + p->threads_at +
                                     (size_t)omp_get_thread_num() * p->thread_bytes);
    return failed;
}

static bool run(const struct library_primitive *base, struct device_stream *stream,
                const struct library_call *call)
{
    struct tiles *p = (struct tiles *)(void *)base; /* but for what is kept, unchanged */
    struct onednn_setting before = onednn_enter(p->threads);
    (void)stream;
    const int failed = p->piece ? compute_pieces(p, call) : compute_strips(p, call);
    const bool done = failed == 0 && (!p->later.primitive ||
                                      onednn_reorder(&p->later, p->engine, DESC(p->all),
                                                     device_place_at(call->result), DESC(p->all),
                                                     device_place_at(call->result),
                                                     device_place_at(call->scratch)));
    onednn_leave(before);
    return done;
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* Row `row` of numbers of the weights of a pair of channels, `step` apart. */
static void spread_pair(const float *weights, int row, int64_t step, float *to)
{
    float down[TILE], kernel[TAPS], across[TILE];
    for (int j = 0; j < TAPS; j++) {
        spread(weights + j, TAPS, down);
        kernel[j] = down[row];
    }
    spread(kernel, 1, across);
    for (int j = 0; j < TILE; j++)
        to[j * step] = across[j];
}

/* Of row `row` of numbers: TILE matrices [out][in]. */
static void spread_weights(const struct tiles *p, const float *weights, int row, float *matrices)
{
    const int64_t there = p->in * p->y.channels, pairs = p->in * p->out;
#pragma omp parallel for if (p->threads > 1)
    for (int64_t k = 0; k < there; k++)
        spread_pair(weights + k * TAPS * TAPS, row, pairs, matrices + k);
    for (int j = 0; j < TILE; j++)
        memset(matrices + j * pairs + there, 0, (size_t)(pairs - there) * sizeof *matrices);
}

static int packing_threads(const struct tiles *p)
{
    return onednn_packing_threads(p->base.packed_bytes, p->threads);
}

/* Spread, a row at a time, which lie in the scratch memory. */
static bool pack_spread(const struct library_primitive *base, const void *weights, void *packed,
                        void *scratch)
{
    const struct tiles *p = (const struct tiles *)(const void *)base;
    const int64_t pairs = p->in * p->out;
    float *matrices = scratch;
    char *behind = (char *)scratch + onednn_aligned((size_t)(TILE * pairs) * sizeof *matrices);
    struct onednn_setting before = onednn_enter(packing_threads(p));
    bool done = true;
    for (int i = 0; i < NUMBERS && done; i++) {
        if (i % TILE == 0)
            spread_weights(p, weights, i / TILE, matrices);
        done = pointwise_pack(&p->product, matrices + i % TILE * pairs,
                              (char *)packed + (size_t)i * p->matrix_bytes, behind);
    }
    onednn_leave(before);
    return done;
}

static bool pack(const struct library_primitive *base, const void *weights, void *packed,
                 void *scratch)
{
    const struct tiles *p = (const struct tiles *)(const void *)base;
    if (!p->piece)
        return pack_spread(base, weights, packed, scratch);
    const int threads = packing_threads(p);
    struct onednn_setting before = onednn_enter(threads);
    winograd_weights_pack(weights, p->in, p->y.channels, p->out, threads, packed);
    onednn_leave(before);
    return true;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static bool is_worth_it(const struct library_problem *problem)
{
    const struct conv_problem *c = &problem->conv;
    bool suits = problem->dtype == TSSA_FLOAT && c->winograd && c->rank == 2 && c->groups == 1 &&
                 c->x_last && c->y_last && isa_level() == ISA_V3;
    for (int i = 0; suits && i < 2; i++)
        suits = c->kernel[i] == TAPS && c->stride[i] == 1;
    return suits && c->in_channels % BLOCK == 0 &&
           least(c->in_channels, c->out_channels) >= MIN_CHANNELS &&
           least(c->out[0] / c->dilation[0], c->out[1] / c->dilation[1]) >= MIN_SIDE &&
           c->batch * c->out[0] * c->out[1] >= MIN_PIXELS;
}

/* As many for each thread, of about STRIP_BYTES. */
static void choose_strips(struct tiles *p, const struct conv_problem *c)
{
    p->pictures = c->batch * c->dilation[0] * c->dilation[1];
    p->high = divide_up(c->out[0], c->dilation[0]);
    p->wide = divide_up(c->out[1], c->dilation[1]);
    p->rows = divide_up(p->high, PIXELS);
    p->columns = divide_up(p->wide, PIXELS);
    p->count = p->pictures * p->rows * p->columns;
    const int64_t of_tile = NUMBERS * (p->in + p->out) * (int64_t)sizeof(float),
                  most = STRIP_BYTES / of_tile > MIN_TILES ? STRIP_BYTES / of_tile : MIN_TILES,
                  rounds = divide_up(divide_up(p->count, most), p->threads);
    p->strip = divide_up(p->count, rounds * p->threads);
    p->strips = divide_up(p->count, p->strip);
}

/* Nothing is done where what images take would be more than what it saves. */
static void choose_pieces(struct tiles *p)
{
    const int64_t of_channel = NUMBERS * p->in * (int64_t)sizeof(float),
                  bytes = p->out * of_channel;
    if (bytes < LARGE_WEIGHTS || p->count < PIECE_TILES || p->count >= p->out)
        return;
    p->piece = divide_up(divide_up(p->out, divide_up(bytes, PIECE_BYTES)), BLOCK) * BLOCK;
    p->out = divide_up(p->out, p->piece) * p->piece;
    p->strip = p->count;
    p->strips = 1;
}

/* Where it takes an exponential, which is oneDNN's. */
static bool make_later(struct tiles *p, const struct conv_problem *c)
{
    const dnnl_dims_t count = {c->batch * c->out[0] * c->out[1] * c->out_channels};
    if (c->after != AFTER_swish)
        return true;
    dnnl_primitive_desc_t desc = desc_make(&p->all, 1, count, dnnl_f32, dnnl_a)
                                     ? onednn_after_desc(p->engine, c, DESC(p->all))
                                     : NULL;
    return desc && onednn_unit_make(&p->later, desc);
}

/* Where parts of the scratch memory begin, and how much it is: what is shared, and a thread's
 * matrices, sums and what the library needs. */
static void lay_out_pieces(struct tiles *p)
{
    const size_t each = NUMBERS * sizeof(float);
    p->threads_at = onednn_aligned((size_t)numbers_apart(p) * each);
    p->sums_at = onednn_aligned((size_t)matrices_apart(p) * each);
    p->product_at = p->sums_at + onednn_aligned((size_t)sums_apart(p) * each);
    p->thread_bytes = p->product_at + onednn_aligned(p->product.product.unit.scratch_bytes);
    p->base.scratch_bytes = p->threads_at + p->thread_bytes * (size_t)p->threads;
    p->base.packed_bytes = winograd_weights_bytes(p->in, p->out);
}

/* The same of strips: a thread's numbers, sums and what the library needs. */
static void lay_out_strips(struct tiles *p)
{
    const size_t of_tile = NUMBERS * sizeof(float), strip = (size_t)p->strip * of_tile,
                 pairs = (size_t)(p->in * p->out);
    p->sums_at = onednn_aligned(strip * (size_t)p->in);
    p->product_at = p->sums_at + onednn_aligned(strip * (size_t)p->out);
    p->thread_bytes = p->product_at + onednn_aligned(p->product.product.unit.scratch_bytes);
    p->base.scratch_bytes = p->thread_bytes * (size_t)p->threads;
    p->base.pack_scratch_bytes = onednn_aligned(TILE * pairs * sizeof(float)) +
                                 onednn_aligned(p->product.packing.scratch_bytes);
    p->matrix_bytes = onednn_aligned(p->product.packed_bytes);
    p->base.packed_bytes = NUMBERS * p->matrix_bytes;
}

/* ---- A primitive ----------------------------------------------------------------------------- */

static void release(struct library_primitive *base)
{
    struct tiles *p = (struct tiles *)(void *)base;
    pointwise_drop(&p->product);
    onednn_unit_drop(&p->later);
    desc_drop(&p->all);
    desc_drop(&p->spread);
    free(p);
}

static bool same_packing(const struct library_primitive *a, const struct library_primitive *b)
{
    const struct tiles *p = (const struct tiles *)(const void *)a,
                       *q = (const struct tiles *)(const void *)b;
    return p->piece == q->piece && conv_unit_same_packing(&p->product.product, &q->product.product);
}

/* On one thread, as strips and pieces are shared. */
static bool make_product(struct tiles *p)
{
    return pointwise_make(&p->product, p->engine, 1, p->strip, p->in, p->piece ? p->piece : p->out,
                          false);
}

/* False: the library wants matrices in another layout than winograd_weights_spread makes. */
static bool pieces_suit(struct tiles *p)
{
    const dnnl_dims_t dims = {p->piece, p->in, 1, 1};
    return desc_make(&p->spread, 4, dims, dnnl_f32, dnnl_ABcd8b8a) &&
           dnnl_memory_desc_equal(DESC(p->spread), DESC(p->product.product.used[WEIGHTS]));
}

static bool make_all(struct tiles *p, const struct conv_problem *c)
{
    choose_strips(p, c);
    choose_pieces(p);
    if (!make_product(p))
        return false;
    if (p->piece && !pieces_suit(p)) {
        pointwise_drop(&p->product);
        p->product = (struct pointwise){0};
        p->piece = 0;
        p->out = divide_up(c->out_channels, BLOCK) * BLOCK;
        choose_strips(p, c);
        if (!make_product(p))
            return false;
    }
    return make_later(p, c);
}

struct library_primitive *winograd_tiles_make(struct cpu_engine *engine,
                                              const struct library_problem *problem)
{
    static const struct primitive_table table = {
        .same_packing = same_packing, .pack = pack, .run = run, .release = release};
    const struct conv_problem *c = &problem->conv;
    struct tiles *p = is_worth_it(problem) ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    p->base.table = &table;
    p->base.name = "wino:tiles";
    p->engine = (const struct onednn_engine *)engine;
    p->threads = (int)problem->threads;
    p->x = (struct image){c->in_channels, c->in[0], c->in[1]};
    p->y = (struct image){c->out_channels, c->out[0], c->out[1]};
    p->in = c->in_channels;
    p->out = divide_up(c->out_channels, BLOCK) * BLOCK;
    for (int i = 0; i < 2; i++) {
        p->step[i] = c->dilation[i];
        p->before[i] = c->pad_begin[i];
    }
    p->biased = c->biased != 0;
    p->added = c->added != 0;
    p->after = (enum convolve_after)c->after;
    p->a = onednn_number_of(c->a);
    p->b = onednn_number_of(c->b);
    if (make_all(p, c)) {
        if (p->piece)
            lay_out_pieces(p);
        else
            lay_out_strips(p);
        return &p->base;
    }
    release(&p->base);
    return NULL;
}
