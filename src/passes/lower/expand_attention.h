/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of expand_attention: an Attention whose place other ops take.
 *
 * Ops are made by a maker (maker.h), so that nothing needs to be looked at before the end.
 */
#ifndef TSSA_PASSES_LOWER_EXPAND_ATTENTION_H
#define TSSA_PASSES_LOWER_EXPAND_ATTENTION_H

#include "passes/maker.h"
#include "passes/pass.h"

enum attention_operand {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_MASK,
    ATTENTION_PAST_K,
    ATTENTION_PAST_V,
    ATTENTION_LENGTHS
};

enum attention_result {
    ATTENTION_Y,
    ATTENTION_PRESENT_K,
    ATTENTION_PRESENT_V,
    ATTENTION_SCORES,
    ATTENTION_RESULTS
};

/* Which scores the last result is: qk_matmul_output_mode. */
enum { SCORES_RAW, SCORES_CAPPED, SCORES_MASKED, SCORES_SOFTMAX };

/* Heads of queries, keys or values, packed in rows or not. */
struct heads {
    int64_t count, size;
    const struct dim *length;
};

struct attention {
    struct ir_op *op;
    struct pass_maker maker; /* before the op */
    struct heads q, k, v;
    const struct dim *total; /* positions, those of the past included */
    bool causal;
    double softcap;
    int64_t mode;
};

/* Makes what computes the results, and puts it in their places. (expand_scores.c) */
void expand_scores(struct attention *e);

#endif
