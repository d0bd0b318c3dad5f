/* SPDX-License-Identifier: Apache-2.0 */
/*
 * y[rows][out] = x[rows][in] * w, of float32, as oneDNN's convolution of 1x1 over a row of pixels
 * whose channels are the last axis: of weights that are packed once.
 */
#ifndef TSSA_DEVICE_CPU_ONEDNN_POINTWISE_H
#define TSSA_DEVICE_CPU_ONEDNN_POINTWISE_H

#include "device/cpu/onednn/unit.h"

/* Numbers of channels are multiples of it: oneDNN would fill up others, whenever it is told where
 * packed weights are. */
#define POINTWISE_BLOCK 16

struct pointwise {
    struct conv_unit product;
    struct onednn_unit packing;
    dnnl_memory_desc_t plain; /* weights */
    size_t packed_bytes;
    int packing_threads;
};

/* w is [out][in] or, turned, [in][out]. False: oneDNN has nothing for it. What has been made is the
 * caller's to drop, on failure, too. */
bool pointwise_make(struct pointwise *pointwise, const struct onednn_engine *engine, int threads,
                    int64_t rows, int64_t in, int64_t out, bool turned);
void pointwise_drop(struct pointwise *pointwise);

/* Scratch memory of packing.scratch_bytes. */
bool pointwise_pack(const struct pointwise *pointwise, const void *weights, void *packed,
                    void *scratch);
/* Scratch memory of product.unit.scratch_bytes. Any thread; between onednn_enter and
 * onednn_leave. */
bool pointwise_run(struct pointwise *pointwise, const float *x, const void *packed, float *y,
                   void *scratch);

/*
 * A product of matrices by a constant one, as this: without AVX-512 oneDNN's sgemm packs nothing
 * beforehand, and takes up to 1.5 times as long. Microseconds of sgemm and of this, least of 9
 * blocks on one thread of an EPYC with AVX2:
 *
 *       16 x  768 x 3072    1220    780
 *       64 x  768 x  768     870    760
 *      128 x 3072 x  768    7440   6460
 *      197 x  768 x 3072   10570  10010
 *     1500 x  384 x  384    4750   4520
 *     3136 x   96 x  384    2450   2430
 *
 * NULL: it is none, it is not worth it, or oneDNN has nothing for it.
 */
struct library_primitive *pointwise_make_matmul(struct cpu_engine *engine,
                                                const struct library_problem *problem);

#endif
