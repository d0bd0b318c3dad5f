/* SPDX-License-Identifier: Apache-2.0 */
/* Products of two matrices: oneDNN's sgemm, of which nothing is made beforehand. */
#include <stdlib.h>

#include "device/cpu/onednn/onednn.h"

struct product {
    struct library_primitive base;
    int threads;
    char a, b; /* 'T': read transposed */
    dnnl_dim_t m, n, k, lda, ldb;
};

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

static const float *at(struct device_place place)
{
    return (const float *)(const void *)((const char *)place.memory + place.offset);
}

static bool run(const struct library_primitive *base, struct device_stream *stream,
                const struct library_call *call)
{
    const struct product *p = (const struct product *)base;
    struct onednn_setting before = onednn_enter(p->threads);
    dnnl_status_t status =
        dnnl_sgemm(p->a, p->b, p->m, p->n, p->k, 1.0f, at(call->operands[0]), p->lda,
                   at(call->operands[1]), p->ldb, 0.0f, (float *)at(call->result), p->n);
    (void)stream;
    onednn_leave(before);
    return status == dnnl_success;
}

static void release(struct library_primitive *base)
{
    free(base);
}

struct library_primitive *onednn_make_matmul(const struct library_problem *problem)
{
    static const struct primitive_table table = {.run = run, .release = release};
    const struct matmul_problem *m = &problem->matmul;
    struct product p = {.base = {.table = &table, .name = "sgemm"},
                        .threads = (int)problem->threads,
                        .m = m->m,
                        .n = m->n,
                        .k = m->k};
    if (m->batch != 1 || m->k == 0 || !describe(m->m, m->k, m->a_row, m->a_column, &p.a, &p.lda) ||
        !describe(m->k, m->n, m->b_row, m->b_column, &p.b, &p.ldb))
        return NULL;
    struct product *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    *made = p;
    return &made->base;
}
