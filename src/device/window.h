/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The geometry of sliding windows, shared by convolutions and pooling: attributes decoded once,
 * resolved against the sizes of a run. Spatial axes only.
 */
#ifndef TSSA_DEVICE_WINDOW_H
#define TSSA_DEVICE_WINDOW_H

#include "device/kernel.h"

#define WINDOW_MAX_RANK (TSSA_MAX_RANK - 2)

enum auto_pad { AUTO_PAD_NOTSET, AUTO_PAD_SAME_UPPER, AUTO_PAD_SAME_LOWER, AUTO_PAD_VALID };

/* Attributes as given; absent ones have count 0 and mean 1 (strides, dilations) or 0 (pads). */
struct window_attrs {
    enum auto_pad auto_pad;
    bool ceil_mode;
    size_t n_kernel, n_strides, n_dilations, n_pads;
    int64_t kernel[WINDOW_MAX_RANK], strides[WINDOW_MAX_RANK], dilations[WINDOW_MAX_RANK];
    int64_t pads[2 * WINDOW_MAX_RANK]; /* all begins, then all ends */
};

struct window {
    int rank;
    int64_t in[WINDOW_MAX_RANK], out[WINDOW_MAX_RANK];
    int64_t kernel[WINDOW_MAX_RANK], stride[WINDOW_MAX_RANK], dilation[WINDOW_MAX_RANK];
    int64_t pad_begin[WINDOW_MAX_RANK], pad_end[WINDOW_MAX_RANK];
    int64_t in_count, out_count, kernel_count; /* products */
};

/* Reads kernel_shape, strides, dilations, pads, auto_pad, ceil_mode and checks their values. */
tssa_status *window_decode(const struct ir_op *op, struct window_attrs *attrs);

/*
 * Sizes and pads for an input with these spatial sizes. `kernel` NULL: kernel_shape. An output size
 * that would be negative is 0. Everything is bounded so that products of the sizes do not overflow.
 */
tssa_status *window_resolve(const struct window_attrs *attrs, int rank, const int64_t *in,
                            const int64_t *kernel, struct window *window);

/* The output indices o with 0 <= o * stride + offset < in: [*begin, *end). */
void window_valid_range(int64_t offset, int64_t stride, int64_t in, int64_t out, int64_t *begin,
                        int64_t *end);

/* The row (all axes but the last) of the input that row `out_row` of the output reads at row
 * `kernel_row` of the window; -1 in the padding. */
int64_t window_input_row(const struct window *window, int64_t out_row, int64_t kernel_row);

#endif
