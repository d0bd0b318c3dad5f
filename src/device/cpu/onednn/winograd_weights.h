/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of a convolution of 3x3 for Winograd's algorithm (winograd_tiles.h), kept as they are and
 * spread in each run: 36 numbers of each pair of channels take four times the memory of its 9
 * weights. A piece of the results' channels is spread at a time, and used while a cache has it.
 */
#ifndef TSSA_DEVICE_CPU_ONEDNN_WINOGRAD_WEIGHTS_H
#define TSSA_DEVICE_CPU_ONEDNN_WINOGRAD_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

/* As oneDNN wants matrices [out][in] of a convolution of 1x1 with AVX2 (OIhw8i8o), and so the
 * weights: [out / 8][in][9][8]. */
#define WINOGRAD_LANES 8

size_t winograd_weights_bytes(int64_t in, int64_t out);
/* Of [there][in][9], filled up with zeros to `out`; both channels are multiples of WINOGRAD_LANES,
 * but for `there`. `threads`: of OpenMP. */
void winograd_weights_pack(const float *weights, int64_t in, int64_t there, int64_t out,
                           int threads, float *packed);
/* The numbers of channels first to first + count, multiples of WINOGRAD_LANES, as 36 matrices,
 * `pitch` floats from one to the next. */
void winograd_weights_spread(const float *packed, int64_t in, int64_t first, int64_t count,
                             int64_t pitch, float *matrices);

#endif
