/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/signal/fft.h"

#include <string.h>

#include "ir/scalar/f64_trig.h"

#define PI 3.14159265358979323846

/* Lengths beyond this would take tables larger than any memory. */
#define MAX_LENGTH (INT64_C(1) << 40)

static bool is_power_of_two(int64_t n)
{
    return (n & (n - 1)) == 0;
}

/* A cyclic convolution of this length holds the linear one of n elements with 2n - 1. */
static int64_t padded_length(int64_t n)
{
    int64_t padded = 1;
    while (padded < n || (!is_power_of_two(n) && padded < 2 * n - 1))
        padded *= 2;
    return padded;
}

bool fft_sizes(int64_t n, size_t *tables, size_t *scratch)
{
    if (n < 1 || n > MAX_LENGTH)
        return false;
    size_t padded = (size_t)padded_length(n), half = padded / 2 + 1;
    bool plain = is_power_of_two(n);
    *tables = 2 * half + (plain ? 0 : 2 * (size_t)n + 2 * padded);
    *scratch = plain ? 0 : 2 * padded;
    return true;
}

static void multiply(double *out, double a_re, double a_im, double b_re, double b_im)
{
    out[0] = a_re * b_re - a_im * b_im;
    out[1] = a_re * b_im + a_im * b_re;
}

/* Bit-reversed order. */
static void permute(double *x, int64_t n)
{
    for (int64_t i = 1, j = 0; i < n; i++) {
        int64_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        for (int k = 0; i < j && k < 2; k++) {
            double kept = x[2 * i + k];
            x[2 * i + k] = x[2 * j + k];
            x[2 * j + k] = kept;
        }
    }
}

/* n is a power of two; roots[k] = exp(-2 pi i k / n). */
static void radix2(double *x, int64_t n, const double *roots)
{
    permute(x, n);
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t start = 0; start < n; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                double *a = x + 2 * (start + k), *b = a + 2 * half, product[2];
                const double *root = roots + 2 * (k * (n / half / 2));
                multiply(product, b[0], b[1], root[0], root[1]);
                b[0] = a[0] - product[0];
                b[1] = a[1] - product[1];
                a[0] += product[0];
                a[1] += product[1];
            }
}

/* exp(-pi i k^2 / n); k^2 modulo 2n keeps the angle small. */
static void make_chirp(double *chirp, int64_t n)
{
    for (int64_t k = 0, square = 0; k < n; k++) {
        double angle = PI * (double)square / (double)n;
        chirp[2 * k] = f64_cos(angle);
        chirp[2 * k + 1] = -f64_sin(angle);
        square = (square + 2 * k + 1) % (2 * n);
    }
}

void fft_init(struct fft *fft, int64_t n, double *tables)
{
    int64_t padded = padded_length(n);
    double *roots = tables, *chirp = roots + 2 * (padded / 2 + 1), *transform = chirp + 2 * n;
    *fft = (struct fft){.n = n, .padded = padded, .roots = roots};
    for (int64_t k = 0; k <= padded / 2; k++) {
        double angle = 2 * PI * (double)k / (double)padded;
        roots[2 * k] = f64_cos(angle);
        roots[2 * k + 1] = -f64_sin(angle);
    }
    if (is_power_of_two(n))
        return;
    make_chirp(chirp, n);
    /* The chirp's conjugate, on both sides of 0. */
    memset(transform, 0, 2 * (size_t)padded * sizeof *transform);
    for (int64_t k = 0; k < n; k++)
        for (int side = 0; side < (k ? 2 : 1); side++) {
            double *to = transform + 2 * (side ? padded - k : k);
            to[0] = chirp[2 * k];
            to[1] = -chirp[2 * k + 1];
        }
    radix2(transform, padded, roots);
    fft->chirp = chirp;
    fft->chirp_transform = transform;
}

/* X[k] = chirp[k] * sum of (x[j] chirp[j]) conj(chirp[k - j]). */
static void bluestein(const struct fft *fft, double *x, double *work)
{
    int64_t n = fft->n, padded = fft->padded;
    memset(work, 0, 2 * (size_t)padded * sizeof *work);
    for (int64_t k = 0; k < n; k++)
        multiply(work + 2 * k, x[2 * k], x[2 * k + 1], fft->chirp[2 * k], fft->chirp[2 * k + 1]);
    radix2(work, padded, fft->roots);
    for (int64_t k = 0; k < padded; k++) {
        const double *c = fft->chirp_transform + 2 * k;
        double product[2];
        multiply(product, work[2 * k], work[2 * k + 1], c[0], c[1]);
        /* Real and imaginary parts trade places: the inverse is a forward transform. */
        work[2 * k] = product[1];
        work[2 * k + 1] = product[0];
    }
    radix2(work, padded, fft->roots);
    for (int64_t k = 0; k < n; k++)
        multiply(x + 2 * k, work[2 * k + 1] / (double)padded, work[2 * k] / (double)padded,
                 fft->chirp[2 * k], fft->chirp[2 * k + 1]);
}

static void swap_parts(double *x, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        double kept = x[2 * k];
        x[2 * k] = x[2 * k + 1];
        x[2 * k + 1] = kept;
    }
}

void fft_run(const struct fft *fft, double *values, double *scratch, bool inverse)
{
    if (inverse)
        swap_parts(values, fft->n);
    if (fft->chirp)
        bluestein(fft, values, scratch);
    else
        radix2(values, fft->n, fft->roots);
    if (!inverse)
        return;
    swap_parts(values, fft->n);
    for (int64_t k = 0; k < 2 * fft->n; k++)
        values[k] /= (double)fft->n;
}
