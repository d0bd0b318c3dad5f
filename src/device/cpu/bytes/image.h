/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image of bytes with its channels last, and the windows over it. Each is a row of a matrix,
 * whose columns are the channels of each element of the window; what is around the image are zero
 * points. The left operand of a product is an image of one line, whose windows are of one pixel.
 */
#ifndef TSSA_DEVICE_CPU_BYTES_IMAGE_H
#define TSSA_DEVICE_CPU_BYTES_IMAGE_H

#include "device/library.h"

struct image {
    /* Of three axes, the first ones of one element where there are fewer. */
    int64_t in[CONV_MAX_RANK], out[CONV_MAX_RANK], kernel[CONV_MAX_RANK], stride[CONV_MAX_RANK],
        dilation[CONV_MAX_RANK], pad[CONV_MAX_RANK];
    int64_t channels, used;  /* of all groups, of one */
    int64_t pixels, windows; /* of one image */
    int64_t taps;            /* elements of a window */
    int32_t zero;
    bool is_signed;
};

void image_open(const struct conv_problem *problem, bool is_signed, struct image *image);

/* Of a window: where its first element is; outside of the image, too. */
struct image_window {
    int64_t batch, at[CONV_MAX_RANK];
};

void image_window_of(const struct image *image, int64_t row, struct image_window *window);
/* The window after it. */
void image_next_window(const struct image *image, int64_t row, struct image_window *window);

/* Bytes that may be read and are no part of the image: none. */
struct image_bytes {
    const uint8_t *first, *end;
};

/* Columns [begin, end) of rows [row, row + rows), of a group, less the zero point, to rows `width`
 * elements apart, which is end - begin at least; behind are zeros up to a multiple of `whole`. Up
 * to IMAGE_SLACK elements behind the last row are overwritten. */
#define IMAGE_SLACK 32
struct image_part {
    struct image_bytes bytes;
    int64_t group, row, rows, begin, end, width, whole;
    int16_t *to;
};

void image_gather(const struct image *image, const struct image_part *part);

#endif
