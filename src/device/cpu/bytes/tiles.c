/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/bytes/tiles.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"

#ifdef VECTOR_V3
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* ---- Products -------------------------------------------------------------------------------- */

static void multiply_base(const struct tile_panel *p)
{
    for (int64_t r = 0; r < p->rows; r++) {
        const int16_t *a = p->a + r * p->a_row, *b = p->b;
        int32_t sums[TILE_COLUMNS] = {0};
        for (int64_t i = 0; i < p->pairs; i++, a += 2, b += 2 * (ptrdiff_t)TILE_COLUMNS)
            for (int c = 0; c < TILE_COLUMNS; c++)
                sums[c] += a[0] * b[2 * c] + a[1] * b[2 * c + 1];
        for (int c = 0; c < TILE_COLUMNS; c++)
            p->sums[r * TILE_COLUMNS + c] = sums[c] + (p->adds ? p->sums[r * TILE_COLUMNS + c] : 0);
    }
}

#ifdef VECTOR_V3
#define LANES 8

/* `rows` is a constant to the compiler. */
VECTOR_V3 INLINE void tile_v3(const struct tile_panel *p, int64_t row, int rows)
{
    const int16_t *a = p->a + row * p->a_row;
    const __m256i *b = (const void *)p->b;
    __m256i *to = (void *)(p->sums + row * TILE_COLUMNS), left[TILE_ROWS], right[TILE_ROWS];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        left[r] = p->adds ? to[2 * r] : _mm256_setzero_si256();
        right[r] = p->adds ? to[2 * r + 1] : _mm256_setzero_si256();
    }
    for (int64_t i = 0; i < p->pairs; i++, a += 2, b += 2) {
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            int32_t pair;
            memcpy(&pair, a + r * p->a_row, sizeof pair);
            const __m256i both = _mm256_set1_epi32(pair);
            left[r] = _mm256_add_epi32(left[r], _mm256_madd_epi16(both, b[0]));
            right[r] = _mm256_add_epi32(right[r], _mm256_madd_epi16(both, b[1]));
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        to[2 * r] = left[r];
        to[2 * r + 1] = right[r];
    }
}

VECTOR_V3 static void rest_v3(const struct tile_panel *p, int64_t row)
{
    switch (p->rows - row) {
    case 5:
        tile_v3(p, row, 5);
        break;
    case 4:
        tile_v3(p, row, 4);
        break;
    case 3:
        tile_v3(p, row, 3);
        break;
    case 2:
        tile_v3(p, row, 2);
        break;
    case 1:
        tile_v3(p, row, 1);
        break;
    default:
        break;
    }
}

VECTOR_V3 static void multiply_v3(const struct tile_panel *p)
{
    int64_t row = 0;
    for (; row + TILE_ROWS <= p->rows; row += TILE_ROWS)
        tile_v3(p, row, TILE_ROWS);
    rest_v3(p, row);
}
#endif

void tile_multiply(const struct tile_panel *panel)
{
#ifdef VECTOR_V3
    if (isa_level() >= ISA_V3) {
        multiply_v3(panel);
        return;
    }
#endif
    multiply_base(panel);
}

/* ---- Panels ---------------------------------------------------------------------------------- */

VECTOR_PROCEDURE(widen, (int64_t n, const int8_t *from, int16_t *restrict to), (n, from, to))
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i];
}

void tile_widen(int64_t n, const int8_t *from, int16_t *to)
{
    widen(n, from, to);
}

/* Two terms of all columns that lie side by side. */
VECTOR_PROCEDURE(pack_full,
                 (int64_t terms, const int8_t *from, int64_t row, int32_t zero,
                  int16_t *restrict to),
                 (terms, from, row, zero, to))
{
    for (int64_t k = 0; k + 2 <= terms; k += 2, from += 2 * row, to += 2 * (ptrdiff_t)TILE_COLUMNS)
        for (int c = 0; c < TILE_COLUMNS; c++) {
            to[2 * c] = (int16_t)(from[c] - zero);
            to[2 * c + 1] = (int16_t)(from[row + c] - zero);
        }
}

void tile_pack(int64_t terms, int64_t columns, const int8_t *from, int64_t row, int64_t column,
               int32_t zero, int16_t *to)
{
    const bool full = column == 1 && columns == TILE_COLUMNS;
    const int64_t packed = full ? terms - terms % 2 : 0;
    if (full)
        pack_full(packed, from, row, zero, to);
    if (packed == terms)
        return;
    const int64_t pairs = (terms + 1) / 2;
    memset(to + packed * TILE_COLUMNS, 0, (size_t)(pairs * 2 - packed) * TILE_COLUMNS * sizeof *to);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t k = packed; k < terms; k++)
            to[(k / 2 * TILE_COLUMNS + c) * 2 + k % 2] =
                (int16_t)(from[k * row + c * column] - zero);
}

/* ---- Quantizing ------------------------------------------------------------------------------ */

static void quantize_base(const struct tile_quantizer *q, int64_t rows, const int32_t *sums,
                          uint8_t *to, int64_t row)
{
    const float zero = (float)q->zero, low = q->is_signed ? INT8_MIN : 0,
                high = q->is_signed ? INT8_MAX : UINT8_MAX;
    for (int64_t r = 0; r < rows; r++, sums += TILE_COLUMNS, to += row)
        for (int c = 0; c < TILE_COLUMNS; c++) {
            float value = rintf((float)(sums[c] + q->bias[c]) * q->factors[c]) + zero;
            value = value > low ? value : low;
            to[c] = (uint8_t)(int32_t)(value < high ? value : high);
        }
}

#ifdef VECTOR_V3
/* Beyond INT16, and within INT32: larger ones would become negative. What is below does not. */
#define LARGE 1e9F

VECTOR_V3 INLINE void scale_v3(const struct tile_quantizer *q, int at, const int32_t *sums,
                               __m256i *scaled)
{
    const __m256i bias = _mm256_loadu_si256((const void *)(q->bias + at)),
                  sum = _mm256_loadu_si256((const void *)(sums + at));
    const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(sum, bias)),
                                         _mm256_loadu_ps(q->factors + at));
    *scaled = _mm256_cvtps_epi32(_mm256_min_ps(product, _mm256_set1_ps(LARGE)));
}

/* What saturates in 16 bits does so in 8, with whatever zero point. */
VECTOR_V3 INLINE void quantize_row_v3(const struct tile_quantizer *q, bool is_signed,
                                      const int32_t *sums, uint8_t *to)
{
    __m256i left, right;
    scale_v3(q, 0, sums, &left);
    scale_v3(q, LANES, sums, &right);
    const __m256i mixed = _mm256_packs_epi32(left, right),
                  shifted = _mm256_adds_epi16(_mm256_permute4x64_epi64(mixed, 0xD8),
                                              _mm256_set1_epi16((int16_t)q->zero));
    const __m128i low = _mm256_castsi256_si128(shifted),
                  high = _mm256_extracti128_si256(shifted, 1);
    _mm_storeu_si128((void *)to,
                     is_signed ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high));
}

VECTOR_V3 static void quantize_v3(const struct tile_quantizer *q, int64_t rows, const int32_t *sums,
                                  uint8_t *to, int64_t row)
{
    const struct tile_quantizer own = *q; /* which no byte that is written can change */
    if (own.is_signed)
        for (int64_t r = 0; r < rows; r++)
            quantize_row_v3(&own, true, sums + r * TILE_COLUMNS, to + r * row);
    else
        for (int64_t r = 0; r < rows; r++)
            quantize_row_v3(&own, false, sums + r * TILE_COLUMNS, to + r * row);
}
#endif

void tile_quantize(const struct tile_quantizer *quantizer, int64_t rows, const int32_t *sums,
                   uint8_t *to, int64_t row)
{
#ifdef VECTOR_V3
    if (isa_level() >= ISA_V3) {
        quantize_v3(quantizer, rows, sums, to, row);
        return;
    }
#endif
    quantize_base(quantizer, rows, sums, to, row);
}
