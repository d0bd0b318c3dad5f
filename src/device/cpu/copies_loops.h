/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copies of copies.h for one level of instructions: COPIES_IN and COPIES_OUT, the tables;
 * COPIES_V3, where they may have registers of 32 bytes.
 *
 *     where an element's values in the rows lie side by side (a plane, one element per row): line
 * by line where all rows are the same one: its elements, many times where the elements of a row lie
 * side by side: by squares; the last ones of a row or a column begin where others end, or before,
 * so that all are whole else, and of what is smaller than a square: one by one
 */
#include "device/cpu/copies.h"

#include <string.h>

#include "kernels/cpu/lib/squares.h"

#if defined(COPIES_V3) && defined(VECTOR_V3)
#define IS_WIDE
#define LEVEL VECTOR_V3
#else
#define LEVEL
#endif

/* Row r of `to` is element r of each row of `from`: n of them, of `length` elements. */
struct turn {
    char *to;
    const char *from;
    int64_t to_row, from_row; /* bytes */
    int64_t n, length;
};

static inline int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#define BY_SQUARES(t, size, side, square)                                                          \
    for (int64_t r = 0; r < (t)->n; r += (side)) {                                                 \
        const int64_t row = at_most(r, (t)->n - (side));                                           \
        for (int64_t c = 0; c < (t)->length; c += (side)) {                                        \
            const int64_t column = at_most(c, (t)->length - (side));                               \
            square((t)->to + row * (t)->to_row + column * (size), (t)->to_row,                     \
                   (t)->from + column * (t)->from_row + row * (size), (t)->from_row);              \
        }                                                                                          \
    }

static inline bool has(const struct turn *t, int64_t side)
{
    return t->n >= side && t->length >= side;
}

#define ONE_BY_ONE(t, size)                                                                        \
    for (int64_t r = 0; r < (t)->n; r++)                                                           \
        for (int64_t c = 0; c < (t)->length; c++)                                                  \
            memcpy((t)->to + r * (t)->to_row + c * (size),                                         \
                   (t)->from + c * (t)->from_row + r * (size), size);

LEVEL static inline void turn_1(const struct turn *t)
{
    if (has(t, 16))
        BY_SQUARES(t, 1, 16, square_of_sixteen)
    else
        ONE_BY_ONE(t, 1)
}

LEVEL static inline void turn_2(const struct turn *t)
{
    if (has(t, 8))
        BY_SQUARES(t, 2, 8, square_of_pairs)
    else
        ONE_BY_ONE(t, 2)
}

/* Rows of `to` that are few: four elements are one store. */
LEVEL static inline void gather_4(const struct turn *t)
{
    for (int64_t r = 0; r < t->n; r++) {
        const char *from = t->from + r * 4;
        char *to = t->to + r * t->to_row;
        int64_t c = 0;
        for (; c + 4 <= t->length; c += 4) {
            four_u32 four;
            for (int i = 0; i < 4; i++) {
                uint32_t one;
                memcpy(&one, from + (c + i) * t->from_row, sizeof one);
                four[i] = one;
            }
            memcpy(to + c * 4, &four, sizeof four);
        }
        for (; c < t->length; c++)
            memcpy(to + c * 4, from + c * t->from_row, 4);
    }
}

/* Rows of `from` that are: four are one load. */
LEVEL static inline void scatter_4(const struct turn *t)
{
    for (int64_t c = 0; c < t->length; c++) {
        const char *from = t->from + c * t->from_row;
        char *to = t->to + c * 4;
        int64_t r = 0;
        for (; r + 4 <= t->n; r += 4) {
            four_u32 four;
            memcpy(&four, from + r * 4, sizeof four);
            for (int i = 0; i < 4; i++) {
                const uint32_t one = four[i];
                memcpy(to + (r + i) * t->to_row, &one, sizeof one);
            }
        }
        for (; r < t->n; r++)
            memcpy(to + r * t->to_row, from + r * 4, 4);
    }
}

#ifdef IS_WIDE
/* How many of n are done by squares of eight: what is left is another square, or fewer than four.
 */
static inline int64_t in_eights(int64_t n)
{
    return n % 8 < 4 ? n - n % 8 : n;
}

LEVEL static inline void turn_eights(const struct turn *t)
{
    struct turn squares = *t, few = *t;
    squares.n = in_eights(t->n);
    squares.length = in_eights(t->length);
    BY_SQUARES(&squares, 4, 8, square_of_eight)
    few.to += squares.n * t->to_row;
    few.from += squares.n * 4;
    few.n -= squares.n;
    gather_4(&few);
    squares.to += squares.length * 4;
    squares.from += squares.length * t->from_row;
    squares.length = t->length - squares.length;
    scatter_4(&squares);
}
#endif

LEVEL static inline void turn_4(const struct turn *t)
{
    if (t->n < 4) {
        gather_4(t);
        return;
    }
    if (t->length < 4) {
        scatter_4(t);
        return;
    }
#ifdef IS_WIDE
    if (has(t, 8)) {
        turn_eights(t);
        return;
    }
#endif
    BY_SQUARES(t, 4, 4, square_4)
}

LEVEL static inline void turn_8(const struct turn *t)
{
#ifdef IS_WIDE
    if (has(t, 4)) {
        BY_SQUARES(t, 8, 4, square_of_four)
        return;
    }
#endif
    ONE_BY_ONE(t, 8)
}

/* n lines of `bytes` each; those of vectors are whole ones mostly, whose size the compiler knows.
 */
#define LINES(size, to, to_step, from, from_step, n, bytes)                                        \
    if ((bytes) == CODEGEN_ROWS * (size))                                                          \
        for (int64_t i = 0; i < (n); i++)                                                          \
            memcpy((to) + i * (to_step), (from) + i * (from_step), CODEGEN_ROWS * (size));         \
    else                                                                                           \
        for (int64_t i = 0; i < (n); i++)                                                          \
            memcpy((to) + i * (to_step), (from) + i * (from_step), (size_t)(bytes));

#define COPIES(size)                                                                               \
    LEVEL static void in_##size(void *rows, int64_t step, int64_t between, void *vectors,          \
                                int64_t elements, int64_t n)                                       \
    {                                                                                              \
        const char *from = rows;                                                                   \
        char *to = vectors;                                                                        \
        const int64_t vector = CODEGEN_ROWS * (size);                                              \
        if (step == (size)) {                                                                      \
            LINES(size, to, vector, from, between, elements, n *(size))                            \
        } else if (step == 0) {                                                                    \
            for (int64_t i = 0; i < elements; i++)                                                 \
                for (int64_t r = 0; r < CODEGEN_ROWS; r++)                                         \
                    memcpy(to + i * vector + r * (size), from + i * between, size);                \
        } else if (between == (size)) {                                                            \
            const struct turn turn = {to, from, vector, step, elements, n};                        \
            turn_##size(&turn);                                                                    \
        } else {                                                                                   \
            for (int64_t i = 0; i < elements; i++)                                                 \
                for (int64_t r = 0; r < n; r++)                                                    \
                    memcpy(to + i * vector + r * (size), from + i * between + r * step, size);     \
        }                                                                                          \
    }                                                                                              \
    LEVEL static void out_##size(void *rows, int64_t step, int64_t between, void *vectors,         \
                                 int64_t elements, int64_t n)                                      \
    {                                                                                              \
        char *to = rows;                                                                           \
        const char *from = vectors;                                                                \
        const int64_t vector = CODEGEN_ROWS * (size);                                              \
        if (step == (size)) {                                                                      \
            LINES(size, to, between, from, vector, elements, n *(size))                            \
        } else if (between == (size)) {                                                            \
            const struct turn turn = {to, from, step, vector, n, elements};                        \
            turn_##size(&turn);                                                                    \
        } else {                                                                                   \
            for (int64_t i = 0; i < elements; i++)                                                 \
                for (int64_t r = 0; r < n; r++)                                                    \
                    memcpy(to + i * between + r * step, from + i * vector + r * (size), size);     \
        }                                                                                          \
    }

COPIES(1)
COPIES(2)
COPIES(4)
COPIES(8)

const codegen_copy COPIES_IN[CODEGEN_SIZES] = {in_1, in_2, in_4, in_8},
                   COPIES_OUT[CODEGEN_SIZES] = {out_1, out_2, out_4, out_8};
