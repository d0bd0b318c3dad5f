/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/bytes/winograd.h"

#include <string.h>

#include "base/clones.h"
#include "base/integers.h"

#define TAPS 3   /* of a kernel, along each axis */
#define PIXELS 4 /* of results of a tile, along each axis */
#define TILE (PIXELS + TAPS - 1)
#define NUMBERS (TILE * TILE)
#define LANES 16 /* numbers of a vector; channels are a multiple of it */
#define SUMS 8   /* of a vector */
#define LINE 32  /* numbers of a cache's line */

#if defined(__x86_64__)
#define FAST VECTOR_V3
#else
#define FAST
#endif

/* Fewer channels are not worth it. */
#define MIN_CHANNELS 32
/* What it takes to make numbers of a panel's weights, in rows that are multiplied by one of them.
 */
#define SPREAD_ROWS 60
/* About so many bytes of a second cache are a strip's numbers. */
#define STRIP_BYTES (1 << 18)
#define MIN_STRIP 16
#define ROUND 4     /* tiles of a strip are a multiple of it, as the inner loops like them */
#define STRETCH 128 /* channels whose weights' numbers stay in a second cache, too */

typedef int16_t numbers __attribute__((vector_size(LANES * sizeof(int16_t))));
typedef int16_t numbers_at
    __attribute__((vector_size(LANES * sizeof(int16_t)), aligned(sizeof(int16_t)), may_alias));
typedef uint8_t bytes __attribute__((vector_size(LANES)));
typedef uint8_t bytes_at __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef int8_t weights_at __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef uint32_t sums __attribute__((vector_size(SUMS * sizeof(uint32_t))));
typedef uint32_t sums_at
    __attribute__((vector_size(SUMS * sizeof(uint32_t)), aligned(sizeof(uint32_t)), may_alias));
typedef int32_t signed_sums __attribute__((vector_size(SUMS * sizeof(int32_t))));

static int64_t round_up(int64_t a, int64_t b)
{
    return divide_up(a, b) * b;
}

/* ---- Where it is worth it -------------------------------------------------------------------- */

static int64_t tiles_of(const struct conv_problem *c)
{
    return c->batch * divide_up(c->out[0], PIXELS) * divide_up(c->out[1], PIXELS);
}

/* What a pixel is times too large is, along each axis, 3 and so many times 2. */
static const int twos[PIXELS] = {3, 2, 1, 1};
#define INVERSE_OF_9 0x38E38E39U
#define MOST_SUM (INT64_C(1) << (31 - 2 * 3)) /* that it leaves room for */

/* Of what is quantized weights are constant. */
static bool is_possible(const struct conv_problem *c)
{
    const struct library_quantizer *quantizer = (const void *)(intptr_t)c->quantizer;
    bool possible = c->rank == 2 && c->groups == 1 && c->in_channels % LANES == 0 && quantizer &&
                    quantizer->most < MOST_SUM;
    for (int i = 0; i < c->rank; i++)
        possible &= c->kernel[i] == TAPS && c->stride[i] == 1 && c->dilation[i] == 1;
    return possible && isa_level() >= ISA_V3;
}

/* Tiles that are computed at a time. */
static int64_t strip_of(int64_t tiles, int64_t channels)
{
    const int64_t fit = STRIP_BYTES / (NUMBERS * channels * (int64_t)sizeof(int16_t)),
                  most = fit > MIN_STRIP ? fit : MIN_STRIP;
    return round_up(divide_up(tiles, divide_up(tiles, most)), ROUND);
}

bool winograd_takes(const struct conv_problem *problem)
{
    if (!is_possible(problem))
        return false;
    const int64_t tiles = tiles_of(problem),
                  strips = divide_up(tiles, strip_of(tiles, problem->in_channels)),
                  windows = problem->batch * problem->out[0] * problem->out[1];
    /* Transforms are a third of the products, or so. */
    return problem->in_channels >= MIN_CHANNELS && problem->out_channels >= MIN_CHANNELS &&
           4 * (tiles * NUMBERS + strips * SPREAD_ROWS) <= 3 * windows * TAPS * TAPS;
}

void winograd_open(const struct conv_problem *problem, struct winograd *winograd)
{
    struct winograd *w = winograd;
    *w = (struct winograd){.high = divide_up(problem->out[0], PIXELS),
                           .wide = divide_up(problem->out[1], PIXELS),
                           .tiles = tiles_of(problem),
                           .in = problem->in_channels,
                           .out = problem->out_channels,
                           .w_zero = (int16_t)problem->w_zero,
                           .crosses = tile_crosses(problem->in_channels, problem->out_channels)};
    w->strip = strip_of(w->tiles, w->in);
    /* What is written at the same time is no power of two apart. */
    w->width = w->in + (w->in % 256 == 0 ? LANES : 0);
    w->pitch = w->strip * w->width;
    w->stretch = round_up(divide_up(w->in, divide_up(w->in, STRETCH)), LANES);
    w->apart = w->stretch * TILE_COLUMNS + LINE;
}

/* ---- Transforms ------------------------------------------------------------------------------ */

/* Six numbers of six pixels, `step` apart. */
FAST static inline void forward(const numbers *d, int step, numbers *to, int to_step)
{
    const numbers even_1 = d[4 * step] - 4 * d[2 * step], odd_1 = d[3 * step] - 4 * d[step],
                  even_2 = d[4 * step] - d[2 * step], odd_2 = 2 * (d[3 * step] - d[step]);
    to[0] = 4 * (d[0] - d[2 * step]) + even_2;
    to[to_step] = even_1 + odd_1;
    to[2 * to_step] = even_1 - odd_1;
    to[3 * to_step] = even_2 + odd_2;
    to[4 * to_step] = even_2 - odd_2;
    to[5 * to_step] = 4 * (d[step] - d[3 * step]) - d[3 * step] + d[5 * step];
}

/* Four pixels of six sums. */
FAST static inline void backward(const sums *m, int step, sums *to, int to_step)
{
    const sums even_1 = m[step] + m[2 * step], odd_1 = m[step] - m[2 * step],
               even_2 = m[3 * step] + m[4 * step], odd_2 = m[3 * step] - m[4 * step];
    to[0] = m[0] - 4 * even_1 + even_2;
    to[to_step] = odd_2 - 2 * odd_1;
    to[2 * to_step] = even_2 - even_1;
    to[3 * to_step] = 2 * odd_2 - odd_1 + m[5 * step];
}

/* Six numbers of three weights. */
FAST static inline void spread(const numbers *g, int step, numbers *to, int to_step)
{
    const numbers even_1 = g[0] + g[2 * step], even_2 = g[0] + 4 * g[2 * step], odd = g[step];
    to[0] = 6 * g[0];
    to[to_step] = even_1 + odd;
    to[2 * to_step] = even_1 - odd;
    to[3 * to_step] = even_2 + 2 * odd;
    to[4 * to_step] = even_2 - 2 * odd;
    to[5 * to_step] = 6 * g[2 * step];
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* Numbers of a panel's weights of channels [begin, end): NUMBERS panels as tiles.h has them,
 * `apart` from each other. Its weights are as there, too, of TAPS * TAPS times all channels. */
FAST static void spread_weights(const struct winograd *w, const int8_t *weights, int64_t begin,
                                int64_t end, int16_t *to)
{
    const int64_t step = w->in * TILE_COLUMNS;
    const int16_t zero = w->w_zero;
    for (int64_t i = begin * TILE_COLUMNS; i < end * TILE_COLUMNS; i += LANES, to += LANES) {
        numbers kernel[TAPS * TAPS], down[TILE * TAPS], row[TILE];
        for (int t = 0; t < TAPS * TAPS; t++)
            kernel[t] =
                __builtin_convertvector(*(const weights_at *)(weights + t * step + i), numbers) -
                zero;
        for (int j = 0; j < TAPS; j++)
            spread(kernel + j, TAPS, down + j, TAPS);
        for (int j = 0; j < TILE; j++) {
            spread(down + (ptrdiff_t)j * TAPS, 1, row, 1);
            for (int n = 0; n < TILE; n++)
                *(numbers_at *)(to + (j * TILE + n) * w->apart) = row[n];
        }
    }
}

/* ---- Tiles ----------------------------------------------------------------------------------- */

/* Where tile `i` begins among the pixels of results. */
struct corner {
    int64_t batch, y, x;
};

static struct corner corner_of(const struct winograd *w, int64_t i)
{
    return (struct corner){i / (w->high * w->wide), i / w->wide % w->high * PIXELS,
                           i % w->wide * PIXELS};
}

/* Where its pixels are in the image; NULL: beside it. */
static void find_pixels(const struct winograd_part *part, int64_t tile, const uint8_t **pixels)
{
    const struct image *image = part->image;
    const struct corner corner = corner_of(part->winograd, tile);
    const int64_t high = image->in[1], wide = image->in[2];
    for (int i = 0; i < NUMBERS; i++) {
        const int64_t y = corner.y - image->pad[1] + i / TILE,
                      x = corner.x - image->pad[2] + i % TILE;
        const bool there = y >= 0 && y < high && x >= 0 && x < wide;
        pixels[i] =
            there ? part->bytes.first + ((corner.batch * high + y) * wide + x) * image->channels
                  : NULL;
    }
}

/* Numbers of one kind lie `pitch` behind those of the one before. */
FAST static void load_tile(const struct image *image, const uint8_t *const *pixels, int64_t pitch,
                           int16_t *to)
{
    const uint8_t flip = image->is_signed ? INT8_MAX + 1 : 0;
    const int16_t zero = (int16_t)(image->zero + flip);
    for (int64_t c = 0; c < image->channels; c += LANES) {
        numbers d[NUMBERS], t[NUMBERS], row[TILE];
        for (int i = 0; i < NUMBERS; i++) {
            d[i] = (numbers){0};
            if (pixels[i]) {
                const bytes x = *(const bytes_at *)(pixels[i] + c) ^ flip;
                d[i] = __builtin_convertvector(x, numbers) - zero;
            }
        }
        for (int j = 0; j < TILE; j++)
            forward(d + j, TILE, t + j, TILE);
        for (int i = 0; i < TILE; i++) {
            forward(t + (ptrdiff_t)i * TILE, 1, row, 1);
            for (int j = 0; j < TILE; j++)
                *(numbers_at *)(to + (i * TILE + j) * pitch + c) = row[j];
        }
    }
}

/* The pixels of a tile, [PIXELS * PIXELS][TILE_COLUMNS], of sums whose kinds lie `pitch` apart. */
FAST static void find_results(const int32_t *from, int64_t pitch, const int32_t *bias, int32_t *to)
{
    for (int c = 0; c < TILE_COLUMNS; c += SUMS) {
        sums m[NUMBERS], t[PIXELS * TILE], row[PIXELS];
        const sums more = *(const sums_at *)(bias + c);
        for (int i = 0; i < NUMBERS; i++)
            m[i] = *(const sums_at *)(from + i * pitch + c);
        for (int j = 0; j < TILE; j++)
            backward(m + j, TILE, t + j, TILE);
        for (int i = 0; i < PIXELS; i++) {
            backward(t + (ptrdiff_t)i * TILE, 1, row, 1);
            for (int j = 0; j < PIXELS; j++) {
                const signed_sums whole =
                    (signed_sums)(row[j] * INVERSE_OF_9) >> (twos[i] + twos[j]);
                *(sums_at *)(to + (ptrdiff_t)(i * PIXELS + j) * TILE_COLUMNS + c) =
                    (sums)whole + more;
            }
        }
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

/* What is in a thread's memory, one behind the other. */
static size_t numbers_bytes(const struct winograd *w)
{
    return aligned((size_t)(NUMBERS * w->pitch) * sizeof(int16_t), LIBRARY_ALIGNMENT);
}

static size_t matrices_bytes(const struct winograd *w)
{
    return aligned((size_t)(NUMBERS * w->apart) * sizeof(int16_t), LIBRARY_ALIGNMENT);
}

static size_t sums_bytes(const struct winograd *w)
{
    return aligned((size_t)(NUMBERS * w->strip * TILE_COLUMNS) * sizeof(int32_t),
                   LIBRARY_ALIGNMENT);
}

static size_t starts_bytes(const struct winograd *w)
{
    return aligned((size_t)((NUMBERS + 1) * w->strip) * sizeof(int32_t), LIBRARY_ALIGNMENT);
}

size_t winograd_scratch_bytes(const struct winograd *winograd)
{
    return numbers_bytes(winograd) + matrices_bytes(winograd) + sums_bytes(winograd) +
           starts_bytes(winograd);
}

struct strip {
    const struct winograd_part *part;
    int64_t first, end, rows; /* tiles; rounded up */
    int16_t *numbers;         /* [NUMBERS][strip][width] */
    int16_t *matrices;        /* of a panel's weights, NUMBERS panels of a stretch */
    int32_t *sums;            /* [NUMBERS][strip][TILE_COLUMNS] */
    int32_t *starts;          /* [NUMBERS][strip], where sums are crossed; [strip] of zeros */
};

/* Rows beyond the last tile are as that one. */
static void load_strip(const struct strip *s)
{
    const struct winograd *w = s->part->winograd;
    const uint8_t *pixels[NUMBERS];
    for (int64_t i = 0; i < s->rows; i++) {
        find_pixels(s->part, least(s->first + i, s->end - 1), pixels);
        load_tile(s->part->image, pixels, w->pitch, s->numbers + i * w->width);
    }
    for (int64_t n = 0; n < NUMBERS && w->crosses; n++)
        tile_row_starts(s->rows, w->in, s->numbers + n * w->pitch, w->width,
                        s->starts + n * w->strip);
}

/* Adds to sums of one kind those of channels [begin, end). What crossed sums of a row begin with is
 * of all channels at once. */
static void multiply(const struct strip *s, int64_t n, int64_t begin, int64_t end)
{
    const struct winograd *w = s->part->winograd;
    int32_t starts[TILE_COLUMNS] = {0};
    const int64_t row_starts = begin ? NUMBERS : n;
    const struct tile_panel tile = {.rows = s->rows,
                                    .terms = end - begin,
                                    .a = s->numbers + n * w->pitch + begin,
                                    .a_row = w->width,
                                    .b = s->matrices + n * w->apart,
                                    .starts = starts,
                                    .row_starts =
                                        w->crosses ? s->starts + row_starts * w->strip : NULL,
                                    .crosses = w->crosses,
                                    .adds = begin > 0,
                                    .sums = s->sums + n * w->strip * TILE_COLUMNS};
    if (w->crosses)
        tile_column_starts(tile.terms, tile.b, starts);
    tile_multiply(&tile);
}

/* Those of its pixels that there are. */
static void store_tile(const struct strip *s, int64_t tile, int64_t channel, int columns,
                       const int32_t *results)
{
    const int64_t *out = s->part->image->out;
    const struct corner corner = corner_of(s->part->winograd, tile);
    const int64_t n = least(out[2] - corner.x, PIXELS);
    for (int64_t i = 0; i < least(out[1] - corner.y, PIXELS); i++)
        sink_store(s->part->sink, channel, columns,
                   (corner.batch * out[1] + corner.y + i) * out[2] + corner.x, n,
                   results + i * PIXELS * TILE_COLUMNS);
}

static void store_panel(const struct strip *s, int64_t channel)
{
    const struct winograd *w = s->part->winograd;
    const int columns = (int)least(w->out - channel, TILE_COLUMNS);
    int32_t bias[TILE_COLUMNS] = {0};
    _Alignas(LIBRARY_ALIGNMENT) int32_t results[PIXELS * PIXELS * TILE_COLUMNS];
    if (s->part->bias)
        memcpy(bias, s->part->bias + channel, (size_t)columns * sizeof *bias);
    for (int64_t i = s->first; i < s->end; i++) {
        find_results(s->sums + (i - s->first) * TILE_COLUMNS, w->strip * TILE_COLUMNS, bias,
                     results);
        store_tile(s, i, channel, columns, results);
    }
}

static void compute_panel(const struct strip *s, int64_t panel)
{
    const struct winograd *w = s->part->winograd;
    const int8_t *weights = s->part->packed + panel * TAPS * TAPS * w->in * TILE_COLUMNS;
    for (int64_t begin = 0; begin < w->in; begin += w->stretch) {
        const int64_t end = least(begin + w->stretch, w->in);
        spread_weights(w, weights, begin, end, s->matrices);
        for (int64_t n = 0; n < NUMBERS; n++)
            multiply(s, n, begin, end);
    }
    store_panel(s, panel * TILE_COLUMNS);
}

void winograd_run(const struct winograd_part *part)
{
    const struct winograd *w = part->winograd;
    char *scratch = part->scratch;
    struct strip s = {.part = part, .numbers = (void *)scratch};
    s.matrices = (void *)(scratch += numbers_bytes(w));
    s.sums = (void *)(scratch += matrices_bytes(w));
    s.starts = (void *)(scratch + sums_bytes(w));
    memset(s.starts + NUMBERS * w->strip, 0, (size_t)w->strip * sizeof *s.starts);
    for (s.first = part->first_tile; s.first < part->end_tile; s.first = s.end) {
        s.end = least(s.first + w->strip, part->end_tile);
        s.rows = round_up(s.end - s.first, ROUND);
        load_strip(&s);
        for (int64_t panel = part->first_panel; panel < part->end_panel; panel++)
            compute_panel(&s, panel);
    }
}
