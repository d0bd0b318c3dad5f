/* SPDX-License-Identifier: Apache-2.0 */
#include "device/matmul.h"

#include <inttypes.h>
#include <string.h>

/* ---- MatMul ---------------------------------------------------------------------------------- */

static int promote(const struct tensor *tensor, bool left, int64_t *dims)
{
    if (tensor->rank != 1) {
        memcpy(dims, tensor->dims, (size_t)tensor->rank * sizeof *dims);
        return tensor->rank;
    }
    dims[left ? 1 : 0] = tensor->dims[0];
    dims[left ? 0 : 1] = 1;
    return 2;
}

static tssa_status *broadcast_batches(struct matmul *mm)
{
    int64_t a_stride = mm->a_dims[mm->a_rank - 2] * mm->a_dims[mm->a_rank - 1];
    int64_t b_stride = mm->b_dims[mm->b_rank - 2] * mm->b_dims[mm->b_rank - 1];
    mm->batch_rank = (mm->a_rank > mm->b_rank ? mm->a_rank : mm->b_rank) - 2;
    mm->batches = 1;
    for (int i = mm->batch_rank - 1; i >= 0; i--) {
        int ai = i - (mm->batch_rank - (mm->a_rank - 2)),
            bi = i - (mm->batch_rank - (mm->b_rank - 2));
        int64_t a = ai >= 0 ? mm->a_dims[ai] : 1, b = bi >= 0 ? mm->b_dims[bi] : 1;
        if (a != b && a != 1 && b != 1)
            return ERROR(TSSA_RUNTIME, "leading dims %" PRId64 " and %" PRId64 " do not broadcast",
                         a, b);
        mm->batch[i] = a == 1 ? b : a;
        mm->a_step[i] = a == 1 ? 0 : a_stride;
        mm->b_step[i] = b == 1 ? 0 : b_stride;
        a_stride *= a;
        b_stride *= b;
        if (!i64_mul(mm->batches, mm->batch[i], &mm->batches))
            return ERROR(TSSA_LIMIT, "there are more matrices than numbers of 64 bits count");
    }
    return NULL;
}

tssa_status *matmul_resolve(const struct tensor *a, const struct tensor *b, struct matmul *mm)
{
    if (a->rank < 1 || b->rank < 1)
        return ERROR(TSSA_RUNTIME, "the operands must be of rank 1 or more");
    mm->a_rank = promote(a, true, mm->a_dims);
    mm->b_rank = promote(b, false, mm->b_dims);
    if (mm->a_dims[mm->a_rank - 1] != mm->b_dims[mm->b_rank - 2])
        return ERROR(TSSA_RUNTIME, "%" PRId64 " columns times %" PRId64 " rows",
                     mm->a_dims[mm->a_rank - 1], mm->b_dims[mm->b_rank - 2]);
    return broadcast_batches(mm);
}

void matmul_dims(const struct matmul *mm, const struct tensor *a, const struct tensor *b, int *rank,
                 int64_t *dims)
{
    *rank = mm->batch_rank;
    memcpy(dims, mm->batch, (size_t)mm->batch_rank * sizeof *dims);
    if (a->rank > 1)
        dims[(*rank)++] = mm->a_dims[mm->a_rank - 2];
    if (b->rank > 1)
        dims[(*rank)++] = mm->b_dims[mm->b_rank - 1];
}

tssa_status *matmul_shape(const struct tensor *a, const struct tensor *b, int *rank, int64_t *dims)
{
    struct matmul mm;
    TRY(matmul_resolve(a, b, &mm));
    matmul_dims(&mm, a, b, rank, dims);
    return NULL;
}

void matmul_batch(const struct matmul *mm, int64_t i, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int axis = mm->batch_rank - 1; axis >= 0; axis--) {
        const int64_t at = axis == 0 ? i : i % mm->batch[axis];
        *a += at * mm->a_step[axis];
        *b += at * mm->b_step[axis];
        i = axis == 0 ? 0 : i / mm->batch[axis];
    }
}

struct matmul_problem matmul_of_batch(const struct matmul *mm)
{
    const int64_t k = mm->a_dims[mm->a_rank - 1], n = mm->b_dims[mm->b_rank - 1];
    return (struct matmul_problem){.batch = 1,
                                   .m = mm->a_dims[mm->a_rank - 2],
                                   .n = n,
                                   .k = k,
                                   .a_row = k,
                                   .a_column = 1,
                                   .b_row = n,
                                   .b_column = 1};
}

/* Neighbours that both operands go through in one step become one axis; those of one matrix none.
 */
static void join_axes(struct matmul *mm)
{
    int rank = 0;
    for (int i = 0; i < mm->batch_rank; i++) {
        const int64_t batch = mm->batch[i], a = mm->a_step[i], b = mm->b_step[i];
        int64_t joined;
        if (batch == 1)
            continue;
        if (rank > 0 && mm->a_step[rank - 1] == batch * a && mm->b_step[rank - 1] == batch * b &&
            i64_mul(mm->batch[rank - 1], batch, &joined))
            mm->batch[rank - 1] = joined;
        else
            mm->batch[rank++] = batch;
        mm->a_step[rank - 1] = a;
        mm->b_step[rank - 1] = b;
    }
    mm->batch_rank = rank;
}

void matmul_fold(struct matmul *mm)
{
    join_axes(mm);
    if (mm->batch_rank != 1 || mm->a_step[0] == 0 || mm->b_step[0] != 0)
        return;
    mm->a_dims[mm->a_rank - 2] *= mm->batches;
    mm->batches = 1;
    mm->batch_rank = 0;
}

tssa_status *matmul_problem(const struct tensor *a, const struct tensor *b,
                            struct matmul_problem *problem, bool *one)
{
    struct matmul mm;
    TRY(matmul_resolve(a, b, &mm));
    matmul_fold(&mm);
    *problem = matmul_of_batch(&mm);
    *one = mm.batch_rank <= 1;
    problem->batch = mm.batches;
    problem->a_batch = mm.batch_rank == 1 ? mm.a_step[0] : 0;
    problem->b_batch = mm.batch_rank == 1 ? mm.b_step[0] : 0;
    return NULL;
}

/* ---- Gemm ------------------------------------------------------------------------------------ */

struct gemm_transposed gemm_transposed_of(const struct ir_op *op)
{
    return (struct gemm_transposed){.a = ir_attr_int(op, "transA", 0) != 0,
                                    .b = ir_attr_int(op, "transB", 0) != 0};
}

tssa_status *gemm_problem(const struct tensor *a, const struct tensor *b,
                          struct gemm_transposed transposed, struct matmul_problem *problem)
{
    if (a->rank != 2 || b->rank != 2 || a->dtype != b->dtype)
        return ERROR(TSSA_RUNTIME, "the operands must be matrices of one type");
    *problem = (struct matmul_problem){.batch = 1,
                                       .m = a->dims[transposed.a],
                                       .k = a->dims[!transposed.a],
                                       .n = b->dims[!transposed.b]};
    if (b->dims[transposed.b] != problem->k)
        return ERROR(TSSA_RUNTIME, "%" PRId64 " columns times %" PRId64 " rows", problem->k,
                     b->dims[transposed.b]);
    *(transposed.a ? &problem->a_column : &problem->a_row) = a->dims[1];
    *(transposed.a ? &problem->a_row : &problem->a_column) = 1;
    *(transposed.b ? &problem->b_column : &problem->b_row) = b->dims[1];
    *(transposed.b ? &problem->b_row : &problem->b_column) = 1;
    return NULL;
}

tssa_status *gemm_bias_steps(const struct tensor *c, int64_t m, int64_t n, int64_t *row,
                             int64_t *column)
{
    int64_t rows = c->rank == 2 ? c->dims[0] : 1, columns = c->rank >= 1 ? c->dims[c->rank - 1] : 1;
    if (c->rank > 2 || (rows != 1 && rows != m) || (columns != 1 && columns != n))
        return ERROR(TSSA_RUNTIME, "C does not broadcast to [%" PRId64 ", %" PRId64 "]", m, n);
    *row = rows == 1 ? 0 : columns;
    *column = columns == 1 ? 0 : 1;
    return NULL;
}
