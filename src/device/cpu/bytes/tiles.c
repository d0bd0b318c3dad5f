/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/bytes/tiles.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"

#ifdef VECTOR_V3
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* ---- Quantizing ------------------------------------------------------------------------------ */

static void quantize_base(const struct tile_quantizer *q, const int32_t *sums, uint8_t *to)
{
    const float zero = (float)q->zero, low = q->is_signed ? INT8_MIN : 0,
                high = q->is_signed ? INT8_MAX : UINT8_MAX;
    for (int c = 0; c < TILE_COLUMNS; c++) {
        float value = rintf((float)sums[c] * q->factors[c]) + zero;
        value = value > low ? value : low;
        to[c] = (uint8_t)(int32_t)(value < high ? value : high);
    }
}

#ifdef VECTOR_V3
#define LANES 8
/* Beyond INT16, and within INT32: larger ones would become negative. What is below does not. */
#define LARGE 1e9F

VECTOR_V3 INLINE void scale_v3(const float *factors, const __m256i *sums, __m256i *scaled)
{
    const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(*sums), _mm256_loadu_ps(factors));
    *scaled = _mm256_cvtps_epi32(_mm256_min_ps(product, _mm256_set1_ps(LARGE)));
}

/* In 16 bits, of 16 columns of a row: 0 to 3, 8 to 11, 4 to 7, 12 to 15. What saturates there does
 * so in 8 bits, with whatever zero point. */
VECTOR_V3 INLINE void halve_v3(const struct tile_quantizer *q, const __m256i *sums, __m256i *mixed)
{
    __m256i left, right;
    scale_v3(q->factors, sums, &left);
    scale_v3(q->factors + LANES, sums + 1, &right);
    *mixed =
        _mm256_adds_epi16(_mm256_packs_epi32(left, right), _mm256_set1_epi16((int16_t)q->zero));
}

/* Of two rows, `step` apart. */
VECTOR_V3 INLINE void quantize_two_v3(const struct tile_quantizer *q, const __m256i *sums,
                                      uint8_t *to, int64_t step)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i one, two;
    halve_v3(q, sums, &one);
    halve_v3(q, sums + 2, &two);
    const __m256i mixed =
                      q->is_signed ? _mm256_packs_epi16(one, two) : _mm256_packus_epi16(one, two),
                  rows = _mm256_permutevar8x32_epi32(mixed, order);
    _mm_storeu_si128((void *)to, _mm256_castsi256_si128(rows));
    _mm_storeu_si128((void *)(to + step), _mm256_extracti128_si256(rows, 1));
}

VECTOR_V3 INLINE void quantize_v3(const struct tile_quantizer *q, const __m256i *sums, uint8_t *to)
{
    const __m256i twice[4] = {sums[0], sums[1], sums[0], sums[1]};
    quantize_two_v3(q, twice, to, 0);
}

VECTOR_V3 static void quantize_rows_v3(const struct tile_quantizer *q, int64_t rows,
                                       const int32_t *sums, uint8_t *to, int64_t step)
{
    const struct tile_quantizer own = *q; /* which no byte that is written can change */
    const __m256i *from = (const void *)sums;
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2)
        quantize_two_v3(&own, from + 2 * r, to + r * step, step);
    if (r < rows)
        quantize_v3(&own, from + 2 * r, to + r * step);
}
#endif

void tile_quantize(const struct tile_quantizer *quantizer, int64_t rows, const int32_t *sums,
                   uint8_t *to, int64_t step)
{
#ifdef VECTOR_V3
    if (isa_level() >= ISA_V3) {
        quantize_rows_v3(quantizer, rows, sums, to, step);
        return;
    }
#endif
    for (int64_t r = 0; r < rows; r++)
        quantize_base(quantizer, sums + r * TILE_COLUMNS, to + r * step);
}

/* ---- Products -------------------------------------------------------------------------------- */

/* Of a row. All x86-64 processors have vectors of 16 bytes. */
static void add_terms(int64_t terms, const int16_t *a, const int16_t *b, int32_t *sums)
{
#ifdef VECTOR_V3
    __m128i added[TILE_COLUMNS / 4];
    memcpy(added, sums, sizeof added);
    for (int64_t i = 0; i < terms; i += 2, a += 2, b += 2 * (ptrdiff_t)TILE_COLUMNS) {
        int32_t pair;
        memcpy(&pair, a, sizeof pair);
#pragma GCC unroll 4
        for (int v = 0; v < TILE_COLUMNS / 4; v++)
            added[v] = _mm_add_epi32(
                added[v], _mm_madd_epi16(_mm_set1_epi32(pair),
                                         _mm_loadu_si128((const void *)(b + (ptrdiff_t)v * 8))));
    }
    memcpy(sums, added, sizeof added);
#else
    for (int64_t i = 0; i < terms; i += 2, a += 2, b += 2 * (ptrdiff_t)TILE_COLUMNS)
        for (int c = 0; c < TILE_COLUMNS; c++)
            sums[c] += a[0] * b[2 * c] + a[1] * b[2 * c + 1];
#endif
}

static void multiply_base(const struct tile_panel *p)
{
    for (int64_t r = 0; r < p->rows; r++) {
        const int16_t *a = p->a + r * p->a_row, *b = p->b;
        int32_t sums[TILE_COLUMNS], *to = p->sums + r * TILE_COLUMNS;
        for (int c = 0; c < TILE_COLUMNS; c++)
            sums[c] = p->starts[c] + (p->adds ? to[c] : 0);
        add_terms(p->terms, a, b, sums);
        if (p->quantizer)
            quantize_base(p->quantizer, sums, p->bytes + r * p->step);
        else
            memcpy(to, sums, sizeof sums);
    }
}

#ifdef VECTOR_V3
#define ROWS 6         /* that are computed at a time */
#define CROSSED_ROWS 4 /* and crossed, where terms take more registers */

typedef __m256i row_sums[2];

VECTOR_V3 INLINE void begin_rows(const struct tile_panel *p, int64_t row, int rows, int vectors,
                                 row_sums *sums)
{
    const __m256i *from = (const void *)(p->sums + row * TILE_COLUMNS);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            sums[r][v] = _mm256_loadu_si256((const void *)(p->starts + v * LANES));
            if (p->row_starts)
                sums[r][v] =
                    _mm256_add_epi32(sums[r][v], _mm256_set1_epi32(p->row_starts[row + r]));
            if (p->adds)
                sums[r][v] = _mm256_add_epi32(sums[r][v], from[2 * r + v]);
        }
}

VECTOR_V3 INLINE void end_rows(const struct tile_panel *p, int64_t row, int rows, row_sums *sums)
{
    __m256i *to = (void *)(p->sums + row * TILE_COLUMNS);
    if (p->quantizer) {
        const struct tile_quantizer *q = p->quantizer;
        uint8_t *bytes = p->bytes + row * p->step;
#pragma GCC unroll 3
        for (int r = 0; r + 2 <= rows; r += 2)
            quantize_two_v3(q, sums[r], bytes + r * p->step, p->step);
        if (rows % 2)
            quantize_v3(q, sums[rows - 1], bytes + (rows - 1) * p->step);
        return;
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        to[2 * r] = sums[r][0];
        to[2 * r + 1] = sums[r][1];
    }
}

VECTOR_V3 INLINE void load_pair(const int16_t *at, __m256i *pair)
{
    int32_t bits;
    memcpy(&bits, at, sizeof bits);
    *pair = _mm256_set1_epi32(bits);
}

/* `rows` and `vectors` are constants to the compiler here and below. */
VECTOR_V3 INLINE void plain_tile(const struct tile_panel *p, int64_t row, int rows, int vectors)
{
    const int16_t *a = p->a + row * p->a_row;
    const __m256i *b = (const void *)p->b;
    row_sums sums[ROWS] = {{_mm256_setzero_si256(), _mm256_setzero_si256()}};
    begin_rows(p, row, rows, vectors, sums);
    for (int64_t i = 0; i < p->terms; i += 2, a += 2, b += 2) {
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            __m256i x;
            load_pair(a + r * p->a_row, &x);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(x, b[v]));
        }
    }
    end_rows(p, row, rows, sums);
}

VECTOR_V3 INLINE void crossed_tile(const struct tile_panel *p, int64_t row, int rows)
{
    const int16_t *a = p->a + row * p->a_row;
    const __m256i *b = (const void *)p->b;
    row_sums sums[CROSSED_ROWS];
    begin_rows(p, row, rows, 2, sums);
#pragma GCC unroll 2
    for (int64_t i = 0; i < p->terms; i += TILE_TERMS, a += TILE_TERMS, b += TILE_TERMS) {
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            __m256i x, y;
            load_pair(a + r * p->a_row, &x);
            load_pair(a + r * p->a_row + 2, &y);
#pragma GCC unroll 2
            for (int v = 0; v < 2; v++)
                sums[r][v] =
                    _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(_mm256_add_epi16(x, b[2 + v]),
                                                                   _mm256_add_epi16(y, b[v])));
        }
    }
    end_rows(p, row, rows, sums);
}

#define LINE 64 /* bytes, of a cache */

/* What is read next, of which each tile fetches so many lines, to the second cache. */
struct fetching {
    const char *at, *end;
    int64_t lines;
};

static struct fetching begin_fetching(const struct tile_panel *p, int rows)
{
    const int64_t tiles = (p->rows + rows - 1) / rows, lines = (p->next_bytes + LINE - 1) / LINE;
    const char *next = p->next;
    return (struct fetching){next, next ? next + p->next_bytes : next, (lines + tiles - 1) / tiles};
}

INLINE void fetch_some(struct fetching *f)
{
    for (int64_t i = 0; i < f->lines && f->at < f->end; i++, f->at += LINE)
        __builtin_prefetch(f->at, 0, 2);
}

VECTOR_V3 INLINE void multiply_vectors(const struct tile_panel *p, int vectors)
{
    struct fetching fetching = begin_fetching(p, ROWS);
    int64_t row = 0;
    for (; row + ROWS <= p->rows; row += ROWS) {
        fetch_some(&fetching);
        plain_tile(p, row, ROWS, vectors);
    }
    for (; row + 2 <= p->rows; row += 2)
        plain_tile(p, row, 2, vectors);
    if (row < p->rows)
        plain_tile(p, row, 1, vectors);
}

VECTOR_V3 static void multiply_plain(const struct tile_panel *p)
{
    if (p->is_half)
        multiply_vectors(p, 1);
    else
        multiply_vectors(p, 2);
}

VECTOR_V3 static void multiply_crossed(const struct tile_panel *p)
{
    struct fetching fetching = begin_fetching(p, CROSSED_ROWS);
    int64_t row = 0;
    for (; row + CROSSED_ROWS <= p->rows; row += CROSSED_ROWS) {
        fetch_some(&fetching);
        crossed_tile(p, row, CROSSED_ROWS);
    }
    for (; row < p->rows; row++)
        crossed_tile(p, row, 1);
}

#define AHEAD 1024 /* bytes, of what is read next: the next panel lies behind this one */

VECTOR_V3 INLINE void narrow_row(const struct tile_panel *p, int64_t row)
{
    const int16_t *a = p->a + row * p->a_row;
    const int8_t *b = p->narrow;
    row_sums sums[1];
    begin_rows(p, row, 1, 2, sums);
    for (int64_t i = 0; i < p->terms; i += TILE_TERMS) {
        __builtin_prefetch(b + AHEAD);
#pragma GCC unroll 4
        for (int v = 0; v < TILE_TERMS; v++, b += TILE_COLUMNS) {
            const __m256i w = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)b));
            __m256i x;
            load_pair(a + i + (v & ~1), &x);
            sums[0][v & 1] = _mm256_add_epi32(sums[0][v & 1], _mm256_madd_epi16(x, w));
        }
    }
    end_rows(p, row, 1, sums);
}

VECTOR_V3 static void multiply_narrow(const struct tile_panel *p)
{
    for (int64_t row = 0; row < p->rows; row++)
        narrow_row(p, row);
}
#endif

void tile_multiply(const struct tile_panel *panel)
{
#ifdef VECTOR_V3
    if (isa_level() >= ISA_V3) {
        if (panel->narrow)
            multiply_narrow(panel);
        else if (panel->crosses)
            multiply_crossed(panel);
        else
            multiply_plain(panel);
        return;
    }
#endif
    multiply_base(panel);
}

/* ---- Narrow ---------------------------------------------------------------------------------- */

#define NARROW_ROWS 3 /* of more, a panel is widened once */

bool tile_is_narrow(int64_t rows)
{
#ifdef VECTOR_V3
    return isa_level() >= ISA_V3 && rows <= NARROW_ROWS;
#else
    (void)rows;
    return false;
#endif
}

void tile_narrow_starts(int64_t rows, int64_t terms, const int16_t *a, int64_t a_row, int32_t zero,
                        int32_t *starts)
{
    for (int64_t r = 0; r < rows; r++, a += a_row) {
        int32_t sum = 0;
        for (int64_t i = 0; i < terms; i++)
            sum += a[i];
        starts[r] = -zero * sum;
    }
}

/* ---- Crossed --------------------------------------------------------------------------------- */

/* Terms of rows that are worth their own sums, and columns that share these. */
#define CROSSED_TERMS 64
#define CROSSED_COLUMNS 48

bool tile_crosses(int64_t terms, int64_t columns)
{
#ifdef VECTOR_V3
    return isa_level() >= ISA_V3 && terms >= CROSSED_TERMS && columns >= CROSSED_COLUMNS;
#else
    return false;
#endif
}

static int32_t crossed_terms(int64_t terms, const int16_t *a)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < terms; i += TILE_TERMS)
        sum += a[i] * a[i + 2] + a[i + 1] * a[i + 3];
    return sum;
}

#ifdef VECTOR_V3
/* Each pair times the other one of its four terms: twice what is asked for. */
VECTOR_V3 static int32_t crossed_vectors(int64_t terms, const int16_t *a)
{
    __m256i sums = _mm256_setzero_si256();
    for (int64_t i = 0; i < terms; i += 2 * LANES) {
        const __m256i x = _mm256_loadu_si256((const void *)(a + i));
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(x, _mm256_shuffle_epi32(x, 0xB1)));
    }
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sums),
                                       _mm256_extracti128_si256(sums, 1)),
                  two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(two);
}

VECTOR_V3 static void column_starts_v3(int64_t terms, const int16_t *panel, int32_t *starts)
{
    const __m256i *b = (const void *)panel;
    __m256i left = _mm256_loadu_si256((const void *)starts),
            right = _mm256_loadu_si256((const void *)(starts + LANES));
    for (int64_t i = 0; i < terms; i += TILE_TERMS, b += TILE_TERMS) {
        left = _mm256_sub_epi32(left, _mm256_madd_epi16(b[0], b[2]));
        right = _mm256_sub_epi32(right, _mm256_madd_epi16(b[1], b[3]));
    }
    _mm256_storeu_si256((void *)starts, left);
    _mm256_storeu_si256((void *)(starts + LANES), right);
}
#endif

void tile_row_starts(int64_t rows, int64_t terms, const int16_t *a, int64_t a_row, int32_t *starts)
{
    int64_t done = 0;
#ifdef VECTOR_V3
    done = terms - terms % (2 * LANES);
#endif
    for (int64_t r = 0; r < rows; r++, a += a_row) {
        starts[r] = -crossed_terms(terms - done, a + done);
#ifdef VECTOR_V3
        starts[r] -= crossed_vectors(done, a);
#endif
    }
}

void tile_column_starts(int64_t terms, const int16_t *b, int32_t *starts)
{
#ifdef VECTOR_V3
    column_starts_v3(terms, b, starts);
#else
    (void)terms;
    (void)b;
    (void)starts;
#endif
}

/* ---- Panels ---------------------------------------------------------------------------------- */

VECTOR_PROCEDURE(widen, (int64_t n, const int8_t *from, int32_t zero, int16_t *restrict to),
                 (n, from, zero, to))
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (int16_t)(from[i] - zero);
}

void tile_widen(int64_t n, const int8_t *from, int32_t zero, int16_t *to)
{
    widen(n, from, zero, to);
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
    const int64_t pairs = (terms + 1) / 2;
    memset(to + packed * TILE_COLUMNS, 0, (size_t)(pairs * 2 - packed) * TILE_COLUMNS * sizeof *to);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t k = packed; k < terms; k++)
            to[(k / 2 * TILE_COLUMNS + c) * 2 + k % 2] =
                (int16_t)(from[k * row + c * column] - zero);
}
