/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of Attention, by element type: FLOAT, which narrower types are computed in, and
 * DOUBLE. */
#ifndef TSSA_KERNELS_CPU_ATTENTION_ATTENTION_H
#define TSSA_KERNELS_CPU_ATTENTION_ATTENTION_H

#include "device/matmul.h"
#include "kernels/cpu/lib/gemm_fused.h"

/* All elements are of the type. */
struct attention_loops {
    tssa_dtype dtype;
    size_t width;
    /* In place: scores * factor. */
    void (*scale)(void *scores, int64_t n, double factor);
    /* In place: softcap * tanh(scores / softcap). */
    void (*cap)(void *scores, int64_t n, double softcap);
    /* In place: scores + biases, -infinity where the bias is; of truth values, -infinity where it
     * is false. */
    void (*add_bias)(void *scores, const void *biases, int64_t n, bool truths);
    void (*fill)(void *values, int64_t n, double value);
    bool (*all_masked)(const void *scores, int64_t n); /* all are -infinity */
    bool (*all_finite)(const void *values, int64_t n); /* false, too, where their sum is not */
    void (*multiply)(const struct gemm_fused *gemm);
    /* sums[i] + weights[0] * values[i] + weights[1] * values[n + i] + ..., products rounded each.
     */
    void (*weigh)(const void *values, const void *weights, int64_t rows, int64_t n, void *sums);
    /* The same by fused multiply-adds, without what has weight 0. */
    void (*weigh_some)(const void *values, const void *weights, int64_t rows, int64_t n,
                       void *sums);
};

extern const struct attention_loops attention_loops_f32, attention_loops_f64;

/* The sum of `rows` rows of n elements, each times its weight, as of an axis that is not the
 * innermost one, by weigh or, if it `skips`, weigh_some; in `memory`, of
 * reduce_levels_needed(rows) times n elements. */
const void *attention_weighed_sum(const struct attention_loops *loops, const void *values,
                                  const void *weights, int64_t rows, int64_t n, bool skips,
                                  void *memory);

#endif
