/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of 3x3 without strides by Winograd's algorithm (Lavin and Gray, "Fast Algorithms for
 * Convolutional Neural Networks", 2015: F(2x2, 3x3) and F(4x4, 3x3)), which multiplies 2.25 or 4
 * times less often. oneDNN computes it, of images in blocks of 16 channels without dilations, and
 * in 4x4 of any size with so much scratch memory that it is not in a cache. So images are
 * copied into such blocks, a strip of rows at a time, or several small ones, with their pads, and
 * strips of results back; of dilations d there are d * d images, of each d-th row and
 * column. Microseconds with that, in strips of up to 3,136 pixels, and those of brgconv for
 * channels last, which needs no copy; least of 6 to 12 runs on one thread of a Xeon with AVX-512,
 * weights in a cache:
 *
 *      64 to  64 channels,   56 x 56     745   1130
 *      64 to 128            112 x 112   5650   9330
 *     128 to 128             20 x 20     260    550
 *     256 to 256             14 x 14     850    990
 *     256 to 256             56 x 56    8060  19200
 *     256 to 256            100 x 100  26700  59600
 *     512 to 512             38 x 38   15300  34700
 *
 * In a network, where weights come from memory, those of 20 x 20 gain little and those of 14 x 14
 * take 1.5 times as long: they are left direct.
 */
#ifndef TSSA_DEVICE_CPU_ONEDNN_WINOGRAD_H
#define TSSA_DEVICE_CPU_ONEDNN_WINOGRAD_H

#include "device/cpu/onednn/conv_attrs.h"

/* NULL: the problem does not allow it (conv_problem.winograd), it is not worth it, or oneDNN cannot
 * do it on this processor. Between onednn_enter and onednn_leave. */
struct library_primitive *winograd_make(struct cpu_engine *engine,
                                        const struct library_problem *problem,
                                        const struct onednn_attrs *attrs);

#endif
