/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 64 bytes of a mask are a word of 64 bits. Words of 0 are passed over; of others, registers of
 * elements are permuted, by a table of what bytes of bits keep, and stored as a whole, so that the
 * position moves on by what is kept and nothing branches. Where there is no room for as many as a
 * word may keep, or there is no such code, it goes from bit to bit, as it does for longer rows:
 * that takes as long as there is something kept. (Instructions of AVX-512 that compress take
 * longer on the machine that this was measured on, also in registers: of 10,000 floats of which
 * half are kept 1.3 us in place of 1.2, of as many numbers 2.1 in place of 1.5.)
 */
#include "kernels/cpu/lib/keep.h"

#include <stdbool.h>
#include <string.h>

#include "base/clones.h"
#ifdef VECTOR_V3
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define WORD 64

/* ---- Words ----------------------------------------------------------------------------------- */

/* Bit i: byte i of eight is not zero. */
INLINE uint64_t flags_of_eight(const uint8_t *x)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t bytes;
    memcpy(&bytes, x, sizeof bytes);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    bytes = (((bytes & low) + low) | bytes) & ~low; /* the highest bit of each says it */
    return (bytes >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

INLINE uint64_t word_base(const uint8_t *mask)
{
    uint64_t word = 0;
    for (int i = 0; i < WORD; i += 8)
        word |= flags_of_eight(mask + i) << i;
    return word;
}

#ifdef VECTOR_V3
#define INLINE_V3 VECTOR_V3 INLINE

INLINE_V3 uint64_t word_v3(const uint8_t *mask)
{
    const __m256i zero = _mm256_setzero_si256(),
                  low = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)mask), zero),
                  high = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)(mask + 32)), zero);
    const uint32_t a = (uint32_t)_mm256_movemask_epi8(low),
                   b = (uint32_t)_mm256_movemask_epi8(high);
    return ~(a | (uint64_t)b << 32);
}
#endif

/* Of fewer than 64. */
INLINE uint64_t word_of_rest(const uint8_t *mask, int64_t n)
{
    uint8_t bytes[WORD] = {0};
    memcpy(bytes, mask, (size_t)n);
    return word_base(bytes);
}

VECTOR_FUNCTION(int64_t, count, (const uint8_t *mask, int64_t n), (mask, n))
{
    int64_t found = 0, i = 0;
    while (n - i >= WORD) {
        uint8_t counts[WORD] = {0};
        for (int k = 0; k < UINT8_MAX && n - i >= WORD; k++, i += WORD)
            for (int at = 0; at < WORD; at++)
                counts[at] += mask[i + at] != 0;
        for (int at = 0; at < WORD; at++)
            found += counts[at];
    }
    for (; i < n; i++)
        found += mask[i] != 0;
    return found;
}

int64_t keep_count(const uint8_t *mask, int64_t n)
{
    return count(mask, n);
}

/* ---- Bits ------------------------------------------------------------------------------------ */

#define PLACED(b, n)                                                                               \
    ((b) >> (n)&1 ? (uint64_t)(n) << 8 * __builtin_popcount((b) & ((1 << (n)) - 1)) : 0)
#define ENTRY(b)                                                                                   \
    (PLACED(b, 1) | PLACED(b, 2) | PLACED(b, 3) | PLACED(b, 4) | PLACED(b, 5) | PLACED(b, 6) |     \
     PLACED(b, 7))
#define ENTRIES_4(b) ENTRY(b), ENTRY((b) + 1), ENTRY((b) + 2), ENTRY((b) + 3)
#define ENTRIES_16(b) ENTRIES_4(b), ENTRIES_4((b) + 4), ENTRIES_4((b) + 8), ENTRIES_4((b) + 12)
#define ENTRIES_64(b)                                                                              \
    ENTRIES_16(b), ENTRIES_16((b) + 16), ENTRIES_16((b) + 32), ENTRIES_16((b) + 48)
const uint64_t keep_bits[256] = {ENTRIES_64(0), ENTRIES_64(64), ENTRIES_64(128), ENTRIES_64(192)};

/* ---- From bit to bit ------------------------------------------------------------------------- */

/* Rows of a size that the compiler knows. */
INLINE char *copy_bits(uint64_t word, const char *from, size_t size, char *to)
{
    for (; word; word &= word - 1, to += size)
        memcpy(to, from + (size_t)__builtin_ctzll(word) * size, size);
    return to;
}

/* Of any size: rows side by side at once. */
INLINE char *copy_stretches(uint64_t word, const char *from, size_t size, char *to)
{
    while (word) {
        const int first = __builtin_ctzll(word);
        const uint64_t gaps = ~(word >> first);
        const int n = gaps ? __builtin_ctzll(gaps) : WORD; /* first is 0 then */
        memcpy(to, from + (size_t)first * size, (size_t)n * size);
        to += (size_t)n * size;
        word = first + n < WORD ? word >> (first + n) << (first + n) : 0;
    }
    return to;
}

INLINE char *copy_word(uint64_t word, const char *from, size_t size, char *to)
{
    switch (size) {
    case 1:
        return copy_bits(word, from, 1, to);
    case 2:
        return copy_bits(word, from, 2, to);
    case 4:
        return copy_bits(word, from, 4, to);
    case 8:
        return copy_bits(word, from, 8, to);
    case 16:
        return copy_bits(word, from, 16, to);
    case 32:
        return copy_bits(word, from, 32, to);
    default:
        return copy_stretches(word, from, size, to);
    }
}

INLINE int64_t *number_bits(uint64_t word, int64_t first, int64_t *to)
{
    for (; word; word &= word - 1)
        *to++ = first + __builtin_ctzll(word);
    return to;
}

/* ---- Vectors --------------------------------------------------------------------------------- */

/* What is done for a word where there is room for all that it may keep, of elements of some sizes
 * that the compiler knows. */
#define has_vectors_base(size) false
#define compress_base copy_bits
#define number_base number_bits

#ifdef VECTOR_V3

/* Each bit of four twice. */
static const uint8_t twice[16] = {0x00, 0x03, 0x0c, 0x0f, 0x30, 0x33, 0x3c, 0x3f,
                                  0xc0, 0xc3, 0xcc, 0xcf, 0xf0, 0xf3, 0xfc, 0xff};

INLINE_V3 __m128i table_v3(uint32_t bits)
{
    return _mm_loadl_epi64((const void *)&keep_bits[bits]);
}

/* `bits`: which of the elements in a register are kept. */
INLINE_V3 void compress_step_v3(uint32_t bits, const char *from, size_t size, char *to)
{
    const __m128i numbers = table_v3(size == 8 ? twice[bits] : bits);
    if (size == 1) {
        const __m128i x = _mm_loadl_epi64((const void *)from);
        _mm_storel_epi64((void *)to, _mm_shuffle_epi8(x, numbers));
    } else if (size == 2) {
        const __m128i x = _mm_loadu_si128((const void *)from),
                      first = _mm_add_epi8(numbers, numbers),
                      second = _mm_add_epi8(first, _mm_set1_epi8(1));
        _mm_storeu_si128((void *)to, _mm_shuffle_epi8(x, _mm_unpacklo_epi8(first, second)));
    } else {
        const __m256i x = _mm256_loadu_si256((const void *)from);
        _mm256_storeu_si256((void *)to,
                            _mm256_permutevar8x32_epi32(x, _mm256_cvtepu8_epi32(numbers)));
    }
}

#define has_vectors_v3(size) ((size) == 1 || (size) == 2 || (size) == 4 || (size) == 8)

INLINE_V3 char *compress_v3(uint64_t word, const char *from, size_t size, char *to)
{
    const int lanes = size == 8 ? 4 : 8;
    for (int i = 0; i < WORD; i += lanes) {
        const uint32_t bits = (uint32_t)(word >> i) & ((1u << lanes) - 1);
        compress_step_v3(bits, from + (size_t)i * size, size, to);
        to += (size_t)__builtin_popcount(bits) * size;
    }
    return to;
}

INLINE_V3 int64_t *number_v3(uint64_t word, int64_t first, int64_t *to)
{
    for (int i = 0; i < WORD; i += 8) {
        const uint32_t bits = (uint32_t)(word >> i) & 0xff;
        const __m128i numbers = table_v3(bits);
        const __m256i before = _mm256_set1_epi64x(first + i);
        _mm256_storeu_si256((void *)to, _mm256_add_epi64(before, _mm256_cvtepu8_epi64(numbers)));
        _mm256_storeu_si256(
            (void *)(to + 4),
            _mm256_add_epi64(before, _mm256_cvtepu8_epi64(_mm_srli_si128(numbers, 4))));
        to += __builtin_popcount(bits);
    }
    return to;
}
#endif

/* ---- Masks ----------------------------------------------------------------------------------- */

#define KEEP_ROWS(target, level)                                                                   \
    target INLINE void rows_of_size_##level(const uint8_t *mask, int64_t n, const char *from,      \
                                            size_t size, char *to, int64_t kept)                   \
    {                                                                                              \
        const char *const room = to + (size_t)kept * size;                                         \
        int64_t i = 0;                                                                             \
        for (; n - i >= WORD && to < room; i += WORD) {                                            \
            const uint64_t word = word_##level(mask + i);                                          \
            const char *at = from + (size_t)i * size;                                              \
            if (has_vectors_##level(size) && word && (size_t)(room - to) >= WORD * size)           \
                to = compress_##level(word, at, size, to);                                         \
            else                                                                                   \
                to = copy_word(word, at, size, to);                                                \
        }                                                                                          \
        if (to < room)                                                                             \
            copy_word(word_of_rest(mask + i, n - i), from + (size_t)i * size, size, to);           \
    }                                                                                              \
    target static void rows_##level(const uint8_t *mask, int64_t n, const char *from, size_t size, \
                                    char *to, int64_t kept)                                        \
    {                                                                                              \
        switch (size) {                                                                            \
        case 1:                                                                                    \
            rows_of_size_##level(mask, n, from, 1, to, kept);                                      \
            break;                                                                                 \
        case 2:                                                                                    \
            rows_of_size_##level(mask, n, from, 2, to, kept);                                      \
            break;                                                                                 \
        case 4:                                                                                    \
            rows_of_size_##level(mask, n, from, 4, to, kept);                                      \
            break;                                                                                 \
        case 8:                                                                                    \
            rows_of_size_##level(mask, n, from, 8, to, kept);                                      \
            break;                                                                                 \
        case 16:                                                                                   \
            rows_of_size_##level(mask, n, from, 16, to, kept);                                     \
            break;                                                                                 \
        case 32:                                                                                   \
            rows_of_size_##level(mask, n, from, 32, to, kept);                                     \
            break;                                                                                 \
        default:                                                                                   \
            rows_of_size_##level(mask, n, from, size, to, kept);                                   \
        }                                                                                          \
    }

#define KEEP_NUMBERS(target, level)                                                                \
    target static int64_t numbers_##level(const uint8_t *mask, int64_t n, int64_t first,           \
                                          int64_t *to, int64_t room)                               \
    {                                                                                              \
        int64_t *const begin = to, *const end = to + room;                                         \
        int64_t i = 0;                                                                             \
        for (; n - i >= WORD && to < end; i += WORD) {                                             \
            const uint64_t word = word_##level(mask + i);                                          \
            if (word && end - to >= WORD)                                                          \
                to = number_##level(word, first + i, to);                                          \
            else                                                                                   \
                to = number_bits(word, first + i, to);                                             \
        }                                                                                          \
        if (to < end)                                                                              \
            to = number_bits(word_of_rest(mask + i, n - i), first + i, to);                        \
        return to - begin;                                                                         \
    }

KEEP_ROWS(, base)
KEEP_NUMBERS(, base)
#ifdef VECTOR_V3
KEEP_ROWS(VECTOR_V3, v3)
KEEP_NUMBERS(VECTOR_V3, v3)
#endif

void keep_rows(const uint8_t *mask, int64_t n, const char *from, size_t size, char *to,
               int64_t kept)
{
#ifdef VECTOR_V3
    if (isa_level() >= ISA_V3) {
        rows_v3(mask, n, from, size, to, kept);
        return;
    }
#endif
    rows_base(mask, n, from, size, to, kept);
}

int64_t keep_numbers(const uint8_t *mask, int64_t n, int64_t first, int64_t *to, int64_t room)
{
#ifdef VECTOR_V3
    if (isa_level() >= ISA_V3)
        return numbers_v3(mask, n, first, to, room);
#endif
    return numbers_base(mask, n, first, to, room);
}
