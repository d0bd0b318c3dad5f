/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library behind matrix products and convolutions on the CPU. Problems are plain data. Where a
 * provider declines, the reference kernel (kernels/cpu) computes instead; what it computes must agree with
 * the reference within the rounding of float sums. A convolution is made into a primitive once, which
 * compiles code, and its weights are packed once.
 */
#ifndef TSSA_DEVICE_CPU_PROVIDER_H
#define TSSA_DEVICE_CPU_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* c[m][n] = a[m][k] * b[k][n]; strides in elements; c is dense, row-major. */
struct gemm {
    int64_t m, n, k;
    const void *a, *b;
    int64_t a_row, a_column, b_row, b_column;
    void *c;
};

#define CONV_MAX_RANK 3

/*
 * y[batch][out_channels][out...] = bias + sum of x * w; everything dense, channels first. A problem without
 * its data, and nothing but int64_t, so that equal problems have equal bytes.
 */
struct conv {
    int64_t rank;                                     /* spatial axes, 1 to CONV_MAX_RANK */
    int64_t batch, groups, in_channels, out_channels; /* channels of all groups together */
    int64_t in[CONV_MAX_RANK], out[CONV_MAX_RANK], kernel[CONV_MAX_RANK];
    int64_t stride[CONV_MAX_RANK], dilation[CONV_MAX_RANK], pad_begin[CONV_MAX_RANK],
        pad_end[CONV_MAX_RANK];
    int64_t biased;  /* 0 or 1 */
    int64_t threads; /* that compute it, as cpu_provider.threads says */
};

/* Alignment of packed weights and of scratch memory. */
#define PROVIDER_ALIGNMENT 64

/* Made once for a problem; immutable, and run by many threads at once. */
struct conv_primitive {
    const char *name;    /* the library's, for humans */
    size_t packed_bytes; /* of the weights in its own layout; 0: it takes them row-major */
    size_t scratch_bytes;
};

struct conv_data {
    const void *x, *weights,
        *bias; /* weights: packed where that is wanted; bias: where there is one */
    void *y, *scratch;
};

/* What the primitives of a context share. */
struct cpu_engine {
    const struct cpu_provider *provider;
};

/* `threads`: at most so many. Float32 only. False and NULL: declined, or out of memory. */
struct cpu_provider {
    struct cpu_engine *(*open)(void);
    void (*close)(struct cpu_engine *engine);
    /* How many threads compute where so many are allowed: fewer inside of a parallel region. */
    int (*threads)(int threads);
    bool (*gemm_f32)(const struct gemm *gemm, int threads);

    struct conv_primitive *(*conv_make)(struct cpu_engine *engine, const struct conv *conv);
    /* Do both want weights in one layout? */
    bool (*conv_same_packing)(const struct conv_primitive *a, const struct conv_primitive *b);
    /* Row-major weights into `packed`, with scratch memory as for conv_run. */
    bool (*conv_pack)(const struct conv_primitive *conv, const void *w, void *packed,
                      void *scratch);
    bool (*conv_run)(const struct conv_primitive *conv, const struct conv_data *data);
    void (*conv_release)(struct conv_primitive *conv);
};

/* The plugin, and its symbol: const struct cpu_provider *(void). Its number is that of the tables above: a
 * plugin that has others is not taken. */
#define CPU_PROVIDER_PLUGIN "tssa-onednn"
#define CPU_PROVIDER_SYMBOL "tssa_plugin_provider_2"

/* NULL when there is no plugin. Opens it. */
const struct cpu_provider *cpu_provider_open(void);

struct device_context;
/* The engine of a context of the CPU, opened when first asked for; NULL when there is no provider. */
struct cpu_engine *cpu_engine(struct device_context *context);
void cpu_engine_close(struct device_context *context);

#endif
