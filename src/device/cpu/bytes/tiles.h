/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of products of bytes: rows of 16-bit integers times panels of columns. */
#ifndef TSSA_DEVICE_CPU_BYTES_TILES_H
#define TSSA_DEVICE_CPU_BYTES_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#define TILE_COLUMNS 16 /* of a panel */
#define TILE_ROWS 12    /* whose multiples are full tiles */

/* What becomes of sums (struct library_quantizer), of the columns of a panel. */
struct tile_quantizer {
    float factors[TILE_COLUMNS];
    int32_t zero;
    bool is_signed; /* the bytes are INT8 */
};

/*
 * Terms are a multiple of four, some of them zeros. A panel has, of each two neighbouring terms,
 * both of each column side by side: [terms / 2][TILE_COLUMNS][2].
 */
#define TILE_TERMS 4

static inline int64_t tile_terms(int64_t n)
{
    return (n + TILE_TERMS - 1) / TILE_TERMS * TILE_TERMS;
}

struct tile_panel {
    int64_t rows, terms;
    const int16_t *a; /* rows, each `a_row` behind the one before */
    int64_t a_row;
    const int16_t *b;          /* the panel, aligned */
    const int8_t *narrow;      /* not NULL: the panel in bytes, in the place of b */
    const int32_t *starts;     /* what sums of each column begin with */
    const int32_t *row_starts; /* and of each row; NULL: nothing */
    bool crosses;              /* then there are starts of rows */
    bool adds;                 /* to the sums that are there */
    bool is_half;              /* the last TILE_COLUMNS / 2 columns are not wanted */
    int32_t *sums;             /* [rows][TILE_COLUMNS], aligned */
    /* Not NULL: what becomes of them goes to `bytes`, rows `step` apart. */
    const struct tile_quantizer *quantizer;
    uint8_t *bytes;
    int64_t step;
    const void *next; /* what is read behind it, and is fetched meanwhile; NULL: nothing */
    int64_t next_bytes;
};

void tile_multiply(const struct tile_panel *panel);

/* Are so few rows multiplied by bytes, which each row widens for itself? */
bool tile_is_narrow(int64_t rows);
/* What sums of rows begin with, where `zero` is to be taken from the bytes of a panel. */
void tile_narrow_starts(int64_t rows, int64_t terms, const int16_t *a, int64_t a_row, int32_t zero,
                        int32_t *starts);

/*
 * Crossed, a sum of x * w is, of each four terms,
 *
 *     (x0 + w2) * (x2 + w0) + (x1 + w3) * (x3 + w1) - (x0 * x2 + x1 * x3) - (w0 * w2 + w1 * w3)
 *
 * whose last two parts belong to a row and to a column, and are computed once. That is half of the
 * multiplications; there are as many additions more, of which processors do twice as many at a
 * time. Sums in between wrap. Is it worth that?
 */
bool tile_crosses(int64_t terms, int64_t columns);
/* What it takes from the sums of each row. */
void tile_row_starts(int64_t rows, int64_t terms, const int16_t *a, int64_t a_row, int32_t *starts);
/* Adds to `starts` what it takes from those of each column. */
void tile_column_starts(int64_t terms, const int16_t *b, int32_t *starts);

/* n signed bytes, a multiple of 32, less `zero`. */
void tile_widen(int64_t n, const int8_t *from, int32_t zero, int16_t *to);
/* To a panel: `terms` rows of `columns` signed bytes less `zero`, `row` and `column` bytes apart.
 */
void tile_pack(int64_t terms, int64_t columns, const int8_t *from, int64_t row, int64_t column,
               int32_t zero, int16_t *to);

/* `rows` of sums, aligned, to bytes, of all TILE_COLUMNS columns, `step` bytes apart. */
void tile_quantize(const struct tile_quantizer *quantizer, int64_t rows, const int32_t *sums,
                   uint8_t *to, int64_t step);

#endif
