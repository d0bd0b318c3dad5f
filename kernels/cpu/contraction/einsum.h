/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum's operands with their labels, and the two ways to sum them. */
#ifndef TSSA_KERNELS_CPU_CONTRACTION_EINSUM_H
#define TSSA_KERNELS_CPU_CONTRACTION_EINSUM_H

#include "device/library_cache.h"
#include "ir/einsum.h"

struct einsum_job {
    struct library_cache *library;
    int n_operands;
    const struct tensor *operands[EINSUM_MAX_OPERANDS];
    struct tensor *out;
    struct einsum_axes axes;
    int64_t sizes[EINSUM_MAX_LABELS];
    /* Per label, in elements; 0 where the operand lacks it or has size 1. */
    int64_t strides[EINSUM_MAX_OPERANDS][EINSUM_MAX_LABELS], out_strides[EINSUM_MAX_LABELS];
    bool kept[EINSUM_MAX_LABELS];
};

/*
 * The operands in pairs, from the left (einsum_pairs.c); a label has a size that is not 0. *done
 * stays false, and nothing has happened to the result, where more than TSSA_MAX_RANK labels are
 * kept on the way, or more elements than the operands and the result have.
 */
tssa_status *einsum_pairs(struct kernel_args *args, const struct einsum_job *job, bool *done);
/* Each element of the result by itself, as it is written (einsum_terms.c). */
tssa_status *einsum_terms(struct kernel_args *args, const struct einsum_job *job);

#endif
