/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMul and Gemm as any device computes them: which axes of the operands are rows, columns and
 * batches, checked against each other. Of tensors, types and dims alone are read.
 */
#ifndef TSSA_DEVICE_MATMUL_H
#define TSSA_DEVICE_MATMUL_H

#include "device/kernel.h"
#include "device/library.h"

/* A vector is a matrix of one row (left) or one column (right) whose axis the result drops. */
struct matmul {
    int64_t a_dims[TSSA_MAX_RANK], b_dims[TSSA_MAX_RANK]; /* promoted */
    int a_rank, b_rank;
    int batch_rank;
    int64_t batch[TSSA_MAX_RANK], a_step[TSSA_MAX_RANK],
        b_step[TSSA_MAX_RANK]; /* steps in elements */
    int64_t batches;
};

/* numpy's matmul, with broadcasting of the leading axes. */
tssa_status *matmul_resolve(const struct tensor *a, const struct tensor *b, struct matmul *mm);
/* The result's, of what was resolved so. */
void matmul_dims(const struct matmul *mm, const struct tensor *a, const struct tensor *b, int *rank,
                 int64_t *dims);
/* To as few axes of batches as compute the same; matmul_dims does not know them any more. With one
 * right matrix for all batches, these are just more rows of the left one. */
void matmul_fold(struct matmul *mm);

/* Where the matrices of batch i begin, in elements. */
void matmul_batch(const struct matmul *mm, int64_t i, int64_t *a, int64_t *b);
/* The product of one batch: both matrices row-major, one row behind the other. */
struct matmul_problem matmul_of_batch(const struct matmul *mm);

/* Both at once. */
tssa_status *matmul_shape(const struct tensor *a, const struct tensor *b, int *rank, int64_t *dims);
/* The operands as one problem; *one is false where their leading axes are more than one axis of
 * matrices. */
tssa_status *matmul_problem(const struct tensor *a, const struct tensor *b,
                            struct matmul_problem *problem, bool *one);

struct gemm_transposed {
    bool a, b;
};
struct gemm_transposed gemm_transposed_of(const struct ir_op *op);
/* Gemm's matrices, which are checked. */
tssa_status *gemm_problem(const struct tensor *a, const struct tensor *b,
                          struct gemm_transposed transposed, struct matmul_problem *problem);
/* Steps with which C is read as [m][n]; it broadcasts in one direction. */
tssa_status *gemm_bias_steps(const struct tensor *c, int64_t m, int64_t n, int64_t *row,
                             int64_t *column);

#endif
