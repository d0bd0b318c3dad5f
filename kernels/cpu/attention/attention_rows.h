/* SPDX-License-Identifier: Apache-2.0 */
/* Attention once its operands are open: what each row of scores, a query's, takes. */
#ifndef TSSA_KERNELS_CPU_ATTENTION_ATTENTION_ROWS_H
#define TSSA_KERNELS_CPU_ATTENTION_ATTENTION_ROWS_H

#include "device/kernel.h"
#include "kernels/cpu/attention/attention.h"

enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES, RESULTS };
enum scores_mode { SCORES_RAW, SCORES_CAPPED, SCORES_MASKED, SCORES_SOFTMAX };

struct attention_attrs {
    int64_t q_heads, kv_heads; /* 0: not given */
    enum scores_mode scores;
    bool causal, scaled;
    double scale, softcap;
};

/* [batch][heads][length][size] wherever the elements are; strides in elements. */
struct heads {
    const struct tensor *tensor;
    int64_t batch, heads, length, size;
    int64_t batch_step, head_step, length_step;
};

/* A mask laid over [batch][heads][query][position]; positions beyond its own are masked. */
struct mask {
    const struct tensor *tensor;
    int64_t steps[3], length;
};

struct attention {
    const struct attention_attrs *attrs;
    struct heads q, k, v;
    const struct tensor *past_key, *past_value, *lengths; /* may be NULL */
    struct mask mask;
    int64_t past, total; /* positions */
    double scale;
    const struct attention_loops *loops;
    const char *keys, *values; /* of their type: [batch][kv heads][total][size] */
    struct tensor *out[RESULTS];
};

/* Queries [begin, end) of `context`, a struct attention; they are counted across heads and items.
 * `memory`: attention_rows_bytes of it. */
void attention_rows(void *context, void *memory, int64_t begin, int64_t end);
/* False: too many for a size_t. */
bool attention_rows_bytes(const struct attention *a, size_t *bytes);

#endif
