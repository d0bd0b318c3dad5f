/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discrete Fourier transforms of any length, in double: radix 2 for powers of two, else Bluestein's
 * convolution with a chirp. Complex numbers are pairs of doubles.
 */
#ifndef TSSA_KERNELS_CPU_SIGNAL_FFT_H
#define TSSA_KERNELS_CPU_SIGNAL_FFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fft {
    int64_t n, padded; /* padded: the power of two that the work is done in */
    const double *roots, *chirp, *chirp_transform;
};

/* How many doubles the tables for length n take, and the scratch of each fft_run; false on
 * overflow. */
bool fft_sizes(int64_t n, size_t *tables, size_t *scratch);
void fft_init(struct fft *fft, int64_t n, double *tables);
/* Transforms n complex numbers in place; the inverse divides by n. */
void fft_run(const struct fft *fft, double *values, double *scratch, bool inverse);

#endif
