/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions (depthwise.h) of 3x3 whose windows go along a line pixel by pixel: what a
 * column of three pixels is made into is used by all three windows that it is in. */
#ifndef TSSA_DEVICE_CPU_BYTES_LINES_H
#define TSSA_DEVICE_CPU_BYTES_LINES_H

#include "device/cpu/bytes/depthwise.h"

bool lines_take(const struct image *image);

/* In int16_t: a panel of each block of TILE_COLUMNS channels, whose terms are, for each column of
 * the kernel, its first two weights, its last one and 0. */
#define LINES_TERMS 12 /* as depthwise.c gives room for */
void lines_pack(const struct image *image, const int8_t *weights, int8_t zero, int16_t *packed);

/* As depthwise_run; sums begin with `starts`, and pixels beside the image are `around`. */
void lines_run(const struct depthwise *work, const int32_t *starts, const uint8_t *around,
               int64_t begin, int64_t end);

#endif
