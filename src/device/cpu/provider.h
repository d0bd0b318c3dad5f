/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library behind matrix products and convolutions on the CPU. Problems are plain data. A provider's
 * function returns false where it declines, and the reference kernel (kernels/cpu) computes instead;
 * what it computes must agree with the reference within the rounding of float sums.
 */
#ifndef TSSA_DEVICE_CPU_PROVIDER_H
#define TSSA_DEVICE_CPU_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>

/* c[m][n] = a[m][k] * b[k][n]; strides in elements; c is dense, row-major. */
struct gemm {
    int64_t m, n, k;
    const void *a, *b;
    int64_t a_row, a_column, b_row, b_column;
    void *c;
};

#define CONV_MAX_RANK 3

/* y[batch][out_channels][out...] = bias + sum of x * w; everything dense, channels first. */
struct conv {
    int rank;                                         /* spatial axes, 1 to CONV_MAX_RANK */
    int64_t batch, groups, in_channels, out_channels; /* channels of all groups together */
    int64_t in[CONV_MAX_RANK], out[CONV_MAX_RANK], kernel[CONV_MAX_RANK];
    int64_t stride[CONV_MAX_RANK], dilation[CONV_MAX_RANK], pad_begin[CONV_MAX_RANK],
        pad_end[CONV_MAX_RANK];
    const void *x, *w, *bias; /* bias may be NULL */
    void *y;
};

/* `threads`: at most so many. Float32 only. */
struct cpu_provider {
    bool (*gemm_f32)(const struct gemm *gemm, int threads);
    bool (*conv_f32)(const struct conv *conv, int threads);
};

/* The plugin, and its symbol: const struct cpu_provider *(void). */
#define CPU_PROVIDER_PLUGIN "tssa-onednn"
#define CPU_PROVIDER_SYMBOL "tssa_plugin_provider"

/* NULL when there is no plugin. Opens it: call when a session is made, not when it runs. */
const struct cpu_provider *cpu_provider_open(void);

#endif
