/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/bytes/depthwise.h"

#include <string.h>

#include "base/clones.h"
#include "device/cpu/bytes/lines.h"

#ifdef VECTOR_V3
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

#define MOST_TAPS 64 /* of which a window's places are on the stack */
#define WINDOWS 16   /* that are computed together */
#define LANES 8

bool depthwise_takes(const struct conv_problem *problem)
{
    int64_t taps = 1;
    for (int i = 0; i < problem->rank; i++) {
        if (problem->kernel[i] > MOST_TAPS)
            return false;
        taps *= problem->kernel[i];
    }
    return problem->groups > 1 && problem->groups == problem->in_channels &&
           problem->groups == problem->out_channels && taps <= MOST_TAPS;
}

/* ---- Weights --------------------------------------------------------------------------------- */

static int64_t blocks_of(const struct image *image)
{
    return (image->channels + TILE_COLUMNS - 1) / TILE_COLUMNS;
}

static int64_t pairs_of(const struct image *image)
{
    return (image->taps + 1) / 2;
}

/* Terms of a panel, which has four at a time. */
static int64_t terms_of(const struct image *image)
{
    return tile_terms(image->taps);
}

/* In int16_t: a panel of all elements of the window for each block of channels. */
static int64_t panel_size(const struct image *image)
{
    return terms_of(image) * TILE_COLUMNS;
}

size_t depthwise_packed_bytes(const struct image *image)
{
    return (size_t)(blocks_of(image) * panel_size(image)) * sizeof(int16_t);
}

void depthwise_pack(const struct image *image, const int8_t *weights, int8_t zero, void *packed)
{
    int16_t *to = packed;
    if (lines_take(image)) {
        lines_pack(image, weights, zero, to);
        return;
    }
    for (int64_t c = 0; c < image->channels; c += TILE_COLUMNS, to += panel_size(image)) {
        const int64_t rest = image->channels - c;
        tile_pack(image->taps, rest < TILE_COLUMNS ? rest : TILE_COLUMNS, weights + c * image->taps,
                  1, image->taps, zero, to);
    }
}

/* ---- What all threads read ------------------------------------------------------------------- */

static int64_t padded(const struct image *image)
{
    return blocks_of(image) * TILE_COLUMNS;
}

size_t depthwise_scratch_bytes(const struct image *image)
{
    return (size_t)padded(image) * (sizeof(int32_t) + 1);
}

/* What sums of bytes that have not lost their zero point begin with. */
static int32_t *starts_of(const struct depthwise *work)
{
    return work->scratch;
}

/* Pixels around the image. */
static uint8_t *around_of(const struct depthwise *work)
{
    return (uint8_t *)work->scratch + (size_t)padded(work->image) * sizeof(int32_t);
}

void depthwise_open(const struct depthwise *work)
{
    const struct image *image = work->image;
    const int16_t *panel = work->packed;
    int32_t *starts = starts_of(work);
    const int64_t pairs = lines_take(image) ? LINES_TERMS / 2 : pairs_of(image);
    memset(around_of(work), image->zero, (size_t)padded(image));
    for (int64_t c = 0; c < padded(image); c += TILE_COLUMNS, panel += panel_size(image))
        for (int64_t i = 0; i < TILE_COLUMNS; i++) {
            int32_t sum = 0;
            for (int64_t p = 0; p < pairs; p++)
                sum += panel[(p * TILE_COLUMNS + i) * 2] + panel[(p * TILE_COLUMNS + i) * 2 + 1];
            starts[c + i] = -image->zero * sum +
                            (work->bias && c + i < image->channels ? work->bias[c + i] : 0);
        }
}

/* ---- Windows --------------------------------------------------------------------------------- */

/* Where the elements of windows are, the last one of an odd number with another that counts
 * nothing. */
struct places {
    int64_t rows, pairs;
    const uint8_t *at[WINDOWS][MOST_TAPS + 1];
};

INLINE bool is_inside(int64_t at, int64_t size)
{
    return at >= 0 && at < size;
}

/* Is all of the window in the image? */
INLINE bool is_within(const struct image *image, const int64_t *at)
{
    bool within = true;
    for (int i = 0; i < CONV_MAX_RANK; i++)
        within &= at[i] >= 0 && at[i] + (image->kernel[i] - 1) * image->dilation[i] < image->in[i];
    return within;
}

/* Bytes from a pixel to the one `element` of a window is at, if it is at that pixel. */
INLINE int64_t ahead(const struct image *image, int64_t i, int64_t j, int64_t k)
{
    return ((i * image->dilation[0] * image->in[1] + j * image->dilation[1]) * image->in[2] +
            k * image->dilation[2]) *
           image->channels;
}

static void find_aheads(const struct image *image, int64_t *aheads)
{
    for (int64_t i = 0; i < image->kernel[0]; i++)
        for (int64_t j = 0; j < image->kernel[1]; j++)
            for (int64_t k = 0; k < image->kernel[2]; k++)
                *aheads++ = ahead(image, i, j, k);
}

/* Of a window that is not all in the image. */
static void find_some_places(const struct image *image, const uint8_t *first, const uint8_t *around,
                             const int64_t *at, const uint8_t **places)
{
    for (int64_t i = 0; i < image->kernel[0]; i++)
        for (int64_t j = 0; j < image->kernel[1]; j++)
            for (int64_t k = 0; k < image->kernel[2]; k++) {
                const int64_t plane = at[0] + i * image->dilation[0],
                              line = at[1] + j * image->dilation[1],
                              pixel = at[2] + k * image->dilation[2];
                *places++ = is_inside(plane, image->in[0]) && is_inside(line, image->in[1]) &&
                                    is_inside(pixel, image->in[2])
                                ? first + ((plane * image->in[1] + line) * image->in[2] + pixel) *
                                              image->channels
                                : around;
            }
}

static void find_places(const struct depthwise *work, const int64_t *aheads,
                        const struct image_window *window, const uint8_t **places)
{
    const struct image *image = work->image;
    const uint8_t *first = work->bytes.first + window->batch * image->pixels * image->channels;
    const int64_t *at = window->at, taps = image->taps;
    if (is_within(image, at)) {
        first += ((at[0] * image->in[1] + at[1]) * image->in[2] + at[2]) * image->channels;
        for (int64_t t = 0; t < taps; t++)
            places[t] = first + aheads[t];
    } else {
        find_some_places(image, first, around_of(work), at, places);
    }
    if (taps % 2)
        places[taps] = around_of(work);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Of channels [c, c + n) of a window, n at most TILE_COLUMNS. */
struct sums {
    int64_t pairs, c;
    const int16_t *panel;
    const int32_t *starts;
    int32_t *to; /* TILE_COLUMNS */
};

INLINE void add_base(const struct sums *s, const uint8_t *const *places, bool is_signed, int n,
                     int32_t *to)
{
    for (int i = 0; i < n; i++) {
        int32_t sum = s->starts[i];
        for (int64_t p = 0; p < s->pairs; p++)
            for (int64_t t = 0; t < 2; t++) {
                const uint8_t byte = places[2 * p + t][s->c + i];
                sum += (is_signed ? (int8_t)byte : byte) * s->panel[(p * TILE_COLUMNS + i) * 2 + t];
            }
        to[i] = sum;
    }
}

#ifdef VECTOR_V3
/* `pairs` is a constant to the compiler for the usual windows. */
VECTOR_V3 INLINE void add_v3(const struct sums *s, const uint8_t *const *places, int64_t pairs,
                             bool is_signed, int32_t *to)
{
    __m256i left = _mm256_loadu_si256((const void *)s->starts),
            right = _mm256_loadu_si256((const void *)(s->starts + LANES));
    const __m256i *w = (const void *)s->panel;
#pragma GCC unroll 5
    for (int64_t p = 0; p < pairs; p++) {
        const __m128i one = _mm_loadu_si128((const void *)(places[2 * p] + s->c)),
                      two = _mm_loadu_si128((const void *)(places[2 * p + 1] + s->c)),
                      low = _mm_unpacklo_epi8(one, two), high = _mm_unpackhi_epi8(one, two);
        const __m256i a = is_signed ? _mm256_cvtepi8_epi16(low) : _mm256_cvtepu8_epi16(low),
                      b = is_signed ? _mm256_cvtepi8_epi16(high) : _mm256_cvtepu8_epi16(high);
        left = _mm256_add_epi32(left, _mm256_madd_epi16(a, w[2 * p]));
        right = _mm256_add_epi32(right, _mm256_madd_epi16(b, w[2 * p + 1]));
    }
    _mm256_store_si256((void *)to, left);
    _mm256_store_si256((void *)(to + LANES), right);
}

#define USUAL_PAIRS 5 /* of 3 x 3 elements */

VECTOR_V3 INLINE void add_windows_of(const struct places *places, const struct sums *s,
                                     bool is_signed)
{
    const struct sums own = *s;
    int32_t *to = s->to;
    for (int64_t r = 0; r < places->rows; r++, to += TILE_COLUMNS)
        if (own.pairs == USUAL_PAIRS)
            add_v3(&own, places->at[r], USUAL_PAIRS, is_signed, to);
        else
            add_v3(&own, places->at[r], own.pairs, is_signed, to);
}

VECTOR_V3 static void add_windows_v3(const struct places *places, const struct sums *s,
                                     bool is_signed)
{
    if (is_signed)
        add_windows_of(places, s, true);
    else
        add_windows_of(places, s, false);
}
#endif

/* Behind channels that are no whole block others do not follow, and may not be read. */
static void add_windows(const struct places *places, const struct sums *s, bool is_signed, int n)
{
#ifdef VECTOR_V3
    if (n == TILE_COLUMNS && isa_level() >= ISA_V3) {
        add_windows_v3(places, s, is_signed);
        return;
    }
#endif
    for (int64_t r = 0; r < places->rows; r++)
        if (is_signed)
            add_base(s, places->at[r], true, n, s->to + r * TILE_COLUMNS);
        else
            add_base(s, places->at[r], false, n, s->to + r * TILE_COLUMNS);
}

static void add_channels(const struct depthwise *work, const struct places *places, int64_t row)
{
    const struct image *image = work->image;
    _Alignas(LIBRARY_ALIGNMENT) int32_t to[WINDOWS * TILE_COLUMNS] = {0};
    const int16_t *panel = work->packed;
    for (int64_t c = 0; c < image->channels; c += TILE_COLUMNS, panel += panel_size(image)) {
        const int64_t rest = image->channels - c;
        const int n = rest < TILE_COLUMNS ? (int)rest : TILE_COLUMNS;
        const struct sums s = {.pairs = places->pairs,
                               .c = c,
                               .panel = panel,
                               .starts = starts_of(work) + c,
                               .to = to};
        add_windows(places, &s, image->is_signed, n);
        sink_store(work->sink, c, n, row, places->rows, to);
    }
}

void depthwise_run(const struct depthwise *work, int64_t begin, int64_t end)
{
    struct places places = {.pairs = pairs_of(work->image)};
    struct image_window window;
    int64_t aheads[MOST_TAPS];
    if (lines_take(work->image)) {
        lines_run(work, starts_of(work), around_of(work), begin, end);
        return;
    }
    find_aheads(work->image, aheads);
    image_window_of(work->image, begin, &window);
    for (int64_t row = begin; row < end; row += places.rows) {
        places.rows = end - row < WINDOWS ? end - row : WINDOWS;
        for (int64_t r = 0; r < places.rows; r++) {
            find_places(work, aheads, &window, places.at[r]);
            image_next_window(work->image, row + r, &window);
        }
        add_channels(work, &places, row);
    }
}
