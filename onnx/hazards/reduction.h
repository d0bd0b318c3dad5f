/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of integers that a runtime computes in double: what is known of one. */
#ifndef TSSA_ONNX_HAZARDS_REDUCTION_H
#define TSSA_ONNX_HAZARDS_REDUCTION_H

#include "onnx/hazard.h"

struct reduction {
    tssa_dtype dtype;
    int n_axes;                  /* at least one */
    int64_t axes[TSSA_MAX_RANK]; /* from the front, in rising order */
    bool keepdims;
    double length;    /* how many elements are one at most */
    double magnitude; /* no element is larger, its sign aside */
    double exact;     /* no sum up to here is rounded or saturates */
};

/* Of int32 and int64 alone, over axes that are known; of an exact op (ir.h), whose axes are never
 * empty. */
bool reduction_read(const struct ir_op *op, struct reduction *reduction);
/* Writes a ReduceSum, of which there is one element at least, as the last element of a CumSum. */
void reduction_write_sum(struct hazard_rewrite *rewrite, const struct ir_op *op,
                         const struct reduction *reduction);

#endif
