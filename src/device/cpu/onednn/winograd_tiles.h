/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's algorithm, F(4x4, 3x3) (winograd.h), where oneDNN has none: without AVX-512. Tiles of
 * 6x6 pixels, which overlap by two, become 36 numbers of each channel; numbers of one kind are
 * multiplied by a matrix of weights each, which is oneDNN's, a convolution of 1x1; and 36 sums of a
 * channel become 4x4 pixels. A strip of tiles at a time, so that its numbers stay in a cache; each
 * thread has strips of its own. Images have their channels last. Microseconds with that and direct,
 * in networks, least of some 80 runs on one thread of an EPYC with AVX2:
 *
 *      64 to  64 channels,   56 x 56    1020   2500
 *      64 to  64            300 x 300  31600 102000
 *     128 to 128             28 x 28     900   2640
 *     256 to 256             14 x 14    1280   2680
 *     512 to 512             38 x 38   25500  80600
 *
 * Numbers of weights take four times the memory of these. Where that is much, and numbers of images
 * take less, threads share the latter, and each has pieces of the results' channels, whose weights
 * are spread in each run (winograd_weights.h): that takes 0.5 of the 7 ms of 512 to 512 channels
 * and 19 x 19 pixels, of 14 x 14 pixels a tenth of the time or more.
 */
#ifndef TSSA_DEVICE_CPU_ONEDNN_WINOGRAD_TILES_H
#define TSSA_DEVICE_CPU_ONEDNN_WINOGRAD_TILES_H

#include "device/library.h"

struct cpu_engine;

/* NULL: the problem does not allow it (conv_problem.winograd), or it is not worth it. Between
 * onednn_enter and onednn_leave. */
struct library_primitive *winograd_tiles_make(struct cpu_engine *engine,
                                              const struct library_problem *problem);

#endif
