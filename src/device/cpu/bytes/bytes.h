/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products and convolutions of bytes whose sums are exact, where the provider declines them: no
 * library does that for processors without VNNI. oneDNN 2 adds products of bytes in pairs of 16
 * bits there, which saturate. Here bytes less their zero point are widened to 16 bits, in stretches
 * that stay in a cache, since what multiplies pairs of these (pmaddwd) adds them in 32 bits: with
 * AVX2 twice as many products at a time as of floats. Where there is no AVX2, vectors of 16 bytes
 * or plain loops do the same.
 */
#ifndef TSSA_DEVICE_CPU_BYTES_BYTES_H
#define TSSA_DEVICE_CPU_BYTES_BYTES_H

#include "device/library.h"

/* Of UINT8 and INT8, products one at a time, of what is dense in one of two axes. NULL: declined,
 * or out of memory. */
struct library_primitive *bytes_make(const struct library_problem *problem);

#endif
