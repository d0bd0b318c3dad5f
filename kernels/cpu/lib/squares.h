/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Squares of elements that are transposed in registers: rows of `to` are columns of `from`. Strides
 * in bytes.
 */
#ifndef TSSA_KERNELS_CPU_LIB_SQUARES_H
#define TSSA_KERNELS_CPU_LIB_SQUARES_H

#include <stdint.h>
#include <string.h>

#include "base/clones.h"

typedef uint8_t sixteen_u8 __attribute__((vector_size(16)));
typedef uint16_t eight_u16 __attribute__((vector_size(16)));
typedef uint32_t four_u32 __attribute__((vector_size(16)));

/* 4 x 4 elements of four bytes. */
static inline void square_4(char *to, int64_t to_row, const char *from, int64_t from_row)
{
    four_u32 row[4], low[2], high[2];
    for (int i = 0; i < 4; i++)
        memcpy(&row[i], from + i * from_row, sizeof row[i]);
    for (int i = 0; i < 2; i++) {
        low[i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 0, 4, 1, 5);
        high[i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 2, 6, 3, 7);
    }
    row[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
    row[1] = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
    row[2] = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
    row[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
    for (int i = 0; i < 4; i++)
        memcpy(to + i * to_row, &row[i], sizeof row[i]);
}

/* Rows i and i + 8 element by element, for each i: four times that, and rows are columns. */
static inline void interleave(const sixteen_u8 *from, sixteen_u8 *to)
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        to[2 * i] = __builtin_shufflevector(from[i], from[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
                                            5, 21, 6, 22, 7, 23);
        to[2 * i + 1] = __builtin_shufflevector(from[i], from[i + 8], 8, 24, 9, 25, 10, 26, 11, 27,
                                                12, 28, 13, 29, 14, 30, 15, 31);
    }
}

/* 16 x 16 bytes. */
static inline void square_of_sixteen(char *to, int64_t to_row, const char *from, int64_t from_row)
{
    sixteen_u8 a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        memcpy(&a[i], from + i * from_row, sizeof a[i]);
    interleave(a, b);
    interleave(b, a);
    interleave(a, b);
    interleave(b, a);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        memcpy(to + i * to_row, &a[i], sizeof a[i]);
}

/* The same of elements of two bytes, i and i + 4: three times. */
static inline void interleave_pairs(const eight_u16 *from, eight_u16 *to)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        to[2 * i] = __builtin_shufflevector(from[i], from[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        to[2 * i + 1] = __builtin_shufflevector(from[i], from[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
}

/* 8 x 8 elements of two bytes. */
static inline void square_of_pairs(char *to, int64_t to_row, const char *from, int64_t from_row)
{
    eight_u16 a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        memcpy(&a[i], from + i * from_row, sizeof a[i]);
    interleave_pairs(a, b);
    interleave_pairs(b, a);
    interleave_pairs(a, b);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        memcpy(to + i * to_row, &b[i], sizeof b[i]);
}

#ifdef VECTOR_V3
#define INLINE_V3 VECTOR_V3 static inline __attribute__((always_inline))

typedef uint32_t eight_u32 __attribute__((vector_size(32)));
typedef uint64_t four_u64 __attribute__((vector_size(32)));

INLINE_V3 eight_u32 load_eight(const char *from)
{
    eight_u32 row;
    memcpy(&row, from, sizeof row);
    return row;
}

/* Four rows: element r of each half of out[r] is element r of the same half of these. */
INLINE_V3 void transpose_quarters(const char *from, int64_t step, eight_u32 *out)
{
    const eight_u32 a = load_eight(from), b = load_eight(from + step),
                    c = load_eight(from + 2 * step), d = load_eight(from + 3 * step),
                    low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13),
                    high = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15),
                    low2 = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13),
                    high2 = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
    out[0] = __builtin_shufflevector(low, low2, 0, 1, 8, 9, 4, 5, 12, 13);
    out[1] = __builtin_shufflevector(low, low2, 2, 3, 10, 11, 6, 7, 14, 15);
    out[2] = __builtin_shufflevector(high, high2, 0, 1, 8, 9, 4, 5, 12, 13);
    out[3] = __builtin_shufflevector(high, high2, 2, 3, 10, 11, 6, 7, 14, 15);
}

/* 8 x 8 elements of four bytes. */
INLINE_V3 void square_of_eight(char *to, int64_t to_row, const char *from, int64_t from_row)
{
    eight_u32 low[4], high[4];
    transpose_quarters(from, from_row, low);
    transpose_quarters(from + 4 * from_row, from_row, high);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const eight_u32 left = __builtin_shufflevector(low[i], high[i], 0, 1, 2, 3, 8, 9, 10, 11),
                        right =
                            __builtin_shufflevector(low[i], high[i], 4, 5, 6, 7, 12, 13, 14, 15);
        memcpy(to + i * to_row, &left, sizeof left);
        memcpy(to + (i + 4) * to_row, &right, sizeof right);
    }
}

/* 4 x 4 elements of eight bytes. */
INLINE_V3 void square_of_four(char *to, int64_t to_row, const char *from, int64_t from_row)
{
    four_u64 row[4], low[2], high[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        memcpy(&row[i], from + i * from_row, sizeof row[i]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        low[i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 0, 4, 2, 6);
        high[i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 1, 5, 3, 7);
    }
    row[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
    row[1] = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
    row[2] = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
    row[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        memcpy(to + i * to_row, &row[i], sizeof row[i]);
}
#endif

#endif
