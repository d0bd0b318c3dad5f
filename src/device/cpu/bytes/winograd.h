/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's algorithm, F(4x4, 3x3), for bytes, and exact (Lavin and Gray, "Fast Algorithms for
 * Convolutional Neural Networks", 2016, is the one for floats). Tiles of 6x6 pixels, which overlap
 * by two, become 36 numbers of each channel; numbers of one kind are multiplied by a matrix of
 * weights each; and 36 sums of a channel become 4x4 pixels: 36 products in the place of 144.
 *
 * With the points 0, 1, -1, 2, -2 and infinity, and weights times what their fractions have below
 * the line, all of that is whole numbers. Those of an image are 17,340 at most, those of weights
 * less their zero point 12,495, which 16 bits hold, even one and the other added (tiles.h). Sums
 * wrap in 32 bits. In the end pixels are 9 * 2^n times what they should be, n up to 6: a
 * multiplication by the inverse of 9 modulo 2^32 and a shift make them right, if they fit into 26
 * bits, which is known of those that are quantized (library_quantizer.most).
 */
#ifndef TSSA_DEVICE_CPU_BYTES_WINOGRAD_H
#define TSSA_DEVICE_CPU_BYTES_WINOGRAD_H

#include "device/cpu/bytes/image.h"
#include "device/cpu/bytes/sink.h"

/* Products of a tile, for each channel and each one of its results. */
#define WINOGRAD_PRODUCTS 36
/* Threads share panels, not tiles, where there are not twice as many tiles for each. */
#define WINOGRAD_FEW_TILES 24

/* Is it possible, and does it pay? */
bool winograd_takes(const struct conv_problem *problem);

struct winograd {
    int64_t high, wide, tiles; /* of an image; of all images */
    int64_t in, out;           /* channels */
    int16_t w_zero;            /* of the weights */
    int64_t strip;             /* tiles that are computed at a time */
    int64_t stretch;           /* channels, too */
    int64_t width, pitch;      /* of a tile's numbers of one kind, of a strip's */
    int64_t apart;             /* from numbers of one kind of a panel's weights to the next */
    bool crosses;              /* tiles.h */
};

void winograd_open(const struct conv_problem *problem, struct winograd *winograd);

/* Memory of one thread. */
size_t winograd_scratch_bytes(const struct winograd *winograd);

struct winograd_part {
    const struct winograd *winograd;
    const struct image *image;
    const int8_t *packed; /* panels of bytes (tiles.h), of all taps */
    struct image_bytes bytes;
    const int32_t *bias; /* NULL: none */
    const struct sink *sink;
    int64_t first_tile, end_tile, first_panel, end_panel;
    void *scratch;
};

void winograd_run(const struct winograd_part *part);

#endif
