/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/bytes/lines.h"

#include <string.h>

#include "base/clones.h"

#ifdef VECTOR_V3
#include <immintrin.h>
#endif

#define TAPS 3     /* along each axis */
#define WINDOWS 16 /* of a line, that are computed together */
#define LANES 8

bool lines_take(const struct image *image)
{
    return isa_level() >= ISA_V3 && image->kernel[0] == 1 && image->kernel[1] == TAPS &&
           image->kernel[2] == TAPS && image->stride[2] == 1 && image->dilation[2] == 1 &&
           image->channels % TILE_COLUMNS == 0;
}

void lines_pack(const struct image *image, const int8_t *weights, int8_t zero, int16_t *packed)
{
    for (int64_t c = 0; c < image->channels; c += TILE_COLUMNS) {
        int8_t terms[TILE_COLUMNS][LINES_TERMS];
        memset(terms, zero, sizeof terms);
        for (int64_t i = 0; i < TILE_COLUMNS; i++)
            for (int64_t t = 0; t < TAPS * TAPS; t++)
                terms[i][t % TAPS * (TAPS + 1) + t / TAPS] = weights[(c + i) * TAPS * TAPS + t];
        tile_pack(LINES_TERMS, TILE_COLUMNS, terms[0], 1, LINES_TERMS, zero, packed);
        packed += LINES_TERMS * TILE_COLUMNS;
    }
}

/* The pixels of windows side by side, column by column. */
struct columns {
    int64_t count;
    const uint8_t *at[WINDOWS + TAPS - 1][TAPS];
};

static void find_columns(const struct depthwise *work, const struct image_window *window,
                         const uint8_t *around, struct columns *columns)
{
    const struct image *image = work->image;
    const int64_t high = image->in[1], wide = image->in[2];
    const uint8_t *first = work->bytes.first + window->batch * image->pixels * image->channels;
    for (int64_t i = 0; i < TAPS; i++) {
        const int64_t y = window->at[1] + i * image->dilation[1];
        const bool there = window->at[0] >= 0 && window->at[0] < image->in[0] && y >= 0 && y < high;
        const uint8_t *line = first + (window->at[0] * high + y) * wide * image->channels;
        for (int64_t j = 0; j < columns->count; j++) {
            const int64_t x = window->at[2] + j;
            columns->at[j][i] = there && x >= 0 && x < wide ? line + x * image->channels : around;
        }
    }
}

#ifdef VECTOR_V3
/* Of 16 channels, two vectors of each: pairs of the first two pixels, and the last one alone. */
struct column {
    __m256i two[2], last[2];
};

VECTOR_V3 static inline __attribute__((always_inline)) void
load_column(const uint8_t *const *at, int64_t c, bool is_signed, struct column *column)
{
    const __m128i one = _mm_loadu_si128((const void *)(at[0] + c)),
                  two = _mm_loadu_si128((const void *)(at[1] + c)),
                  last = _mm_loadu_si128((const void *)(at[2] + c)),
                  low = _mm_unpacklo_epi8(one, two), high = _mm_unpackhi_epi8(one, two),
                  behind = _mm_unpackhi_epi64(last, last);
    column->two[0] = is_signed ? _mm256_cvtepi8_epi16(low) : _mm256_cvtepu8_epi16(low);
    column->two[1] = is_signed ? _mm256_cvtepi8_epi16(high) : _mm256_cvtepu8_epi16(high);
    column->last[0] = is_signed ? _mm256_cvtepi8_epi32(last) : _mm256_cvtepu8_epi32(last);
    column->last[1] = is_signed ? _mm256_cvtepi8_epi32(behind) : _mm256_cvtepu8_epi32(behind);
}

/* Adds a column times its weights. What is above 16 bits of a last pixel is its sign, and is
 * multiplied by 0. */
VECTOR_V3 static inline __attribute__((always_inline)) void
add_column(const struct column *column, const __m256i *w, __m256i *sums)
{
#pragma GCC unroll 2
    for (int v = 0; v < 2; v++) {
        sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(column->two[v], w[v]));
        sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(column->last[v], w[2 + v]));
    }
}

/* Channels [c, c + TILE_COLUMNS) of all windows. Of each column those are done whose last one it
 * is. */
VECTOR_V3 static inline __attribute__((always_inline)) void
add_columns_of(const struct columns *columns, int64_t c, bool is_signed, const int16_t *panel,
               const int32_t *starts, int32_t *to)
{
    const __m256i *w = (const void *)panel, left = _mm256_loadu_si256((const void *)starts),
                  right = _mm256_loadu_si256((const void *)(starts + LANES));
    __m256i third[2] = {left, right}, second[2] = {left, right};
    for (int64_t j = 0; j < columns->count; j++) {
        __m256i first[2] = {left, right};
        struct column column;
        load_column(columns->at[j], c, is_signed, &column);
        add_column(&column, w, first);
        add_column(&column, w + 4, second);
        add_column(&column, w + 8, third);
        if (j >= TAPS - 1) {
            __m256i *sums = (void *)(to + (j - (TAPS - 1)) * TILE_COLUMNS);
            sums[0] = third[0];
            sums[1] = third[1];
        }
        third[0] = second[0];
        third[1] = second[1];
        second[0] = first[0];
        second[1] = first[1];
    }
}

VECTOR_V3 static void add_columns(const struct columns *columns, int64_t c, bool is_signed,
                                  const int16_t *panel, const int32_t *starts, int32_t *to)
{
    if (is_signed)
        add_columns_of(columns, c, true, panel, starts, to);
    else
        add_columns_of(columns, c, false, panel, starts, to);
}
#else
static void add_columns(const struct columns *columns, int64_t c, bool is_signed,
                        const int16_t *panel, const int32_t *starts, int32_t *to)
{
    for (int64_t j = 0; j + TAPS <= columns->count; j++, to += TILE_COLUMNS)
        for (int i = 0; i < TILE_COLUMNS; i++) {
            to[i] = starts[i];
            for (int t = 0; t < TAPS * TAPS; t++) {
                const uint8_t byte = columns->at[j + t / TAPS][t % TAPS][c + i];
                const int term = t / TAPS * (TAPS + 1) + t % TAPS;
                to[i] += (is_signed ? (int8_t)byte : byte) *
                         panel[(term / 2 * TILE_COLUMNS + i) * 2 + term % 2];
            }
        }
}
#endif

void lines_run(const struct depthwise *work, const int32_t *starts, const uint8_t *around,
               int64_t begin, int64_t end)
{
    const struct image *image = work->image;
    _Alignas(LIBRARY_ALIGNMENT) int32_t sums[WINDOWS * TILE_COLUMNS];
    for (int64_t row = begin, n; row < end; row += n) {
        struct image_window window;
        struct columns columns;
        const int16_t *panel = work->packed;
        const int64_t rest = image->out[2] - row % image->out[2],
                      most = end - row < WINDOWS ? end - row : WINDOWS;
        n = rest < most ? rest : most;
        columns.count = n + TAPS - 1;
        image_window_of(image, row, &window);
        find_columns(work, &window, around, &columns);
        for (int64_t c = 0; c < image->channels; c += TILE_COLUMNS) {
            add_columns(&columns, c, image->is_signed, panel, starts + c, sums);
            sink_store(work->sink, c, TILE_COLUMNS, row, n, sums);
            panel += LINES_TERMS * TILE_COLUMNS;
        }
    }
}
