/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Det (ai.onnx 11, 22): determinants of square matrices, by elimination with row pivots, in double.
 */
#include <math.h>

#include "kernels/cpu/lib/lines.h"

struct det_job {
    const struct tensor *in;
    struct tensor *out;
    int64_t n;
};

static void swap_rows(double *m, int64_t n, int64_t a, int64_t b)
{
    for (int64_t k = 0; k < n; k++) {
        double kept = m[a * n + k];
        m[a * n + k] = m[b * n + k];
        m[b * n + k] = kept;
    }
}

/* Destroys m. */
static double determinant(double *m, int64_t n)
{
    double product = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t r = c + 1; r < n; r++)
            if (fabs(m[r * n + c]) > fabs(m[pivot * n + c]))
                pivot = r;
        if (pivot != c) {
            swap_rows(m, n, pivot, c);
            product = -product;
        }
        double head = m[c * n + c];
        product *= head;
        if (head == 0)
            return product;
        for (int64_t r = c + 1; r < n; r++) {
            double factor = m[r * n + c] / head;
            for (int64_t k = c + 1; k < n; k++)
                m[r * n + k] -= factor * m[c * n + k];
        }
    }
    return product;
}

static void compute(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct det_job *job = context;
    double *matrix = scratch;
    for (int64_t i = begin; i < end; i++) {
        load_doubles(job->in, i * job->n * job->n, 1, job->n * job->n, matrix);
        double result = determinant(matrix, job->n);
        store_doubles(job->out, i, 1, 1, &result);
    }
}

static tssa_status *run_Det(struct kernel_args *args)
{
    struct det_job job;
    size_t bytes;
    TRY(typed_tensor(args, 0, &job.in));
    int rank = job.in->rank;
    if (rank < 2 || job.in->dims[rank - 1] != job.in->dims[rank - 2])
        return operand_error(0, job.in, "square matrices");
    job.n = job.in->dims[rank - 1];
    TRY(kernel_output(args, 0, job.in->dtype, rank - 2, job.in->dims, &job.out));
    if (!job.out || tensor_count(job.out) == 0)
        return NULL;
    /* Not empty, so that the product is that of a tensor in memory. */
    if (!size_mul((size_t)(job.n * job.n), sizeof(double), &bytes))
        return ERROR(TSSA_LIMIT, "the matrices are too large");
    int64_t cost = job.n < 1024 ? job.n * job.n * job.n : INT64_C(1) << 30;
    return parts_for(args, (int64_t)tensor_count(job.out), cost, bytes, compute, &job);
}

const struct kernel cpu_kernel_Det = {.run = run_Det};
