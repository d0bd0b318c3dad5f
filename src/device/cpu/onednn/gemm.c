/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/onednn/onednn.h"

/* The letter and the leading dimension of a row-major matrix, or of one that is read transposed. */
static bool describe(int64_t rows, int64_t columns, int64_t row, int64_t column, char *letter,
                     dnnl_dim_t *leading)
{
    if (column == 1 && row >= columns) {
        *letter = 'N';
        *leading = row > 0 ? row : 1;
        return true;
    }
    if (row == 1 && column >= rows) {
        *letter = 'T';
        *leading = column > 0 ? column : 1;
        return true;
    }
    return false;
}

bool onednn_gemm_f32(const struct gemm *g, int threads)
{
    char a, b;
    dnnl_dim_t lda, ldb;
    if (!describe(g->m, g->k, g->a_row, g->a_column, &a, &lda) ||
        !describe(g->k, g->n, g->b_row, g->b_column, &b, &ldb) || g->k == 0)
        return false;
    struct onednn_setting before = onednn_enter(threads);
    dnnl_status_t status =
        dnnl_sgemm(a, b, g->m, g->n, g->k, 1.0f, g->a, lda, g->b, ldb, 0.0f, g->c, g->n);
    onednn_leave(before);
    return status == dnnl_success;
}
