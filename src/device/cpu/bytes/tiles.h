/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of products of bytes: rows of 16-bit integers times panels of columns. */
#ifndef TSSA_DEVICE_CPU_BYTES_TILES_H
#define TSSA_DEVICE_CPU_BYTES_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#define TILE_COLUMNS 16 /* of a panel */
#define TILE_ROWS 6     /* that are computed at a time */

/* A panel has, of each two neighbouring terms, both of each column side by side:
 * [terms / 2][TILE_COLUMNS][2]. */
struct tile_panel {
    int64_t rows, pairs; /* of terms */
    const int16_t *a;    /* rows, each `a_row` behind the one before */
    int64_t a_row;
    const int16_t *b; /* the panel, aligned */
    bool adds;        /* to the sums that are there */
    int32_t *sums;    /* [rows][TILE_COLUMNS], aligned */
};

void tile_multiply(const struct tile_panel *panel);

/* n signed bytes, a multiple of 32. */
void tile_widen(int64_t n, const int8_t *from, int16_t *to);
/* To a panel: `terms` rows of `columns` signed bytes less `zero`, `row` and `column` bytes apart.
 */
void tile_pack(int64_t terms, int64_t columns, const int8_t *from, int64_t row, int64_t column,
               int32_t zero, int16_t *to);

/* What becomes of sums (struct library_quantizer), of the columns of a panel. */
struct tile_quantizer {
    int32_t bias[TILE_COLUMNS];
    float factors[TILE_COLUMNS];
    int32_t zero;
    bool is_signed; /* the bytes are INT8 */
};

/* `rows` of sums to bytes, of all TILE_COLUMNS columns, `row` bytes apart. */
void tile_quantize(const struct tile_quantizer *quantizer, int64_t rows, const int32_t *sums,
                   uint8_t *to, int64_t row);

#endif
