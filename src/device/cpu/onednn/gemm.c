/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of two matrices: oneDNN's sgemm, and of bytes its gemm of these, of which nothing is
 * made beforehand. With AVX2 it may read an operand where it is, a few neighbours of every row at a
 * time. Where rows are a multiple of 2 KiB apart these fall into the same few sets of the cache,
 * and it takes up to 2.7 times as long. Such an operand is copied, some columns of it at a time, to
 * rows that are a bit further apart; a constant of up to 4 MiB all at once, and never again.
 *
 * With AVX-512 it packs what it reads, and takes as long anyhow, but for few rows by a matrix whose
 * rows are a multiple of 4 KiB apart. Such a matrix is copied if it is a constant; to copy others
 * takes as long as it saves. Microseconds without and with that, least of interleaved runs on
 * matrices of 64 MiB together, one thread:
 *
 *     rows  64 x 1024  256 x 1024   512 x 2048   1024 x 1024   768 x 3072
 *       32    37  53    249  216    1114   776    1081   925
 *       48    48  56    265  199    1176   676    1371   851   2947  1844
 *       64                          1042   801    1357   888   2963  1926
 *       96                                                     4813  3030
 *      128    99 104    467  409    1866  1562    1903  1656   3848  3633
 *      256   199 200    786  769    3540  3244    3418  3130
 */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/onednn/flush.h"
#include "device/cpu/onednn/onednn.h"

struct product {
    struct library_primitive base;
    int threads;
    char a, b;               /* 'T': read transposed */
    bool copies_a, copies_b; /* only given scratch memory */
    dnnl_dim_t m, n, k, lda, ldb;
    int64_t dtype, a_zero, b_zero;
};

#define PANEL 512 /* columns that are copied together */
#define PANEL_ROW (PANEL + LIBRARY_FURTHER)
/* An element that is used less often is not worth a copy, which one thread makes. */
#define COPY_MIN_USES 8
#define COPY_MAX_THREADS 8
#define COPY_MAX_ROWS 16384 /* of a panel */
/* Elements of a constant: 4 MiB. To copy more in each run takes a small part of it. */
#define COPY_MAX_KEPT (INT64_C(1) << 20)

/* With AVX-512, of constants. */
#define CONSTANT_ALIASED 1024 /* elements */
#define CONSTANT_MIN_ROWS 256
/* More gain too little for the memory. */
#define CONSTANT_MOST_USES 96

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

static bool multiply(const struct product *p, const float *a, const float *b, float *c)
{
    return dnnl_sgemm(p->a, p->b, p->m, p->n, p->k, 1.0f, a, p->lda, b, p->ldb, 0.0f, c, p->n) ==
           dnnl_success;
}

static bool multiply_bytes(const struct product *p, const void *a, const int8_t *b, int32_t *c)
{
    const int32_t none = 0;
    const int8_t b_zero = (int8_t)p->b_zero;
    return (p->dtype == TSSA_UINT8
                ? dnnl_gemm_u8s8s32(p->a, p->b, 'F', p->m, p->n, p->k, 1.0f, a, p->lda,
                                    (uint8_t)p->a_zero, b, p->ldb, b_zero, 0.0f, c, p->n, &none)
                : dnnl_gemm_s8s8s32(p->a, p->b, 'F', p->m, p->n, p->k, 1.0f, a, p->lda,
                                    (int8_t)p->a_zero, b, p->ldb, b_zero, 0.0f, c, p->n, &none)) ==
           dnnl_success;
}

/* k rows of some columns of a turned A, or of B, from `at` on; returns the copy. */
static const float *copy_panel(const struct product *p, const float *from, dnnl_dim_t step,
                               dnnl_dim_t width, float *panel)
{
    for (dnnl_dim_t row = 0; row < p->k; row++)
        memcpy(panel + row * PANEL_ROW, from + row * step, (size_t)width * sizeof *panel);
    return panel;
}

static dnnl_dim_t panel_width(bool copies, dnnl_dim_t rest)
{
    return copies && rest > PANEL ? PANEL : rest;
}

/* Of each operand that is copied a panel at a time; the other one is a panel. */
static bool multiply_panels(const struct product *p, const float *a, const float *b, float *panels,
                            float *c)
{
    const dnnl_dim_t lda = p->copies_a ? PANEL_ROW : p->lda, ldb = p->copies_b ? PANEL_ROW : p->ldb;
    float *b_panel = panels + (p->copies_a ? p->k * PANEL_ROW : 0);
    bool done = true;
    for (dnnl_dim_t i = 0, m; i < p->m && done; i += m) {
        m = panel_width(p->copies_a, p->m - i);
        const float *rows = p->copies_a ? copy_panel(p, a + i, p->lda, m, panels) : a;
        for (dnnl_dim_t j = 0, n; j < p->n && done; j += n) {
            n = panel_width(p->copies_b, p->n - j);
            const float *columns = p->copies_b ? copy_panel(p, b + j, p->ldb, n, b_panel) : b;
            done = dnnl_sgemm(p->a, p->b, m, n, p->k, 1.0f, rows, lda, columns, ldb, 0.0f,
                              c + i * p->n + j, p->n) == dnnl_success;
        }
    }
    return done;
}

static bool same_packing(const struct library_primitive *a, const struct library_primitive *b)
{
    const struct product *p = (const struct product *)a, *q = (const struct product *)b;
    return a->packed_bytes && b->packed_bytes && p->k == q->k && p->n == q->n;
}

static bool pack(const struct library_primitive *base, const void *weights, void *packed,
                 void *scratch)
{
    const struct product *p = (const struct product *)base;
    (void)scratch;
    for (dnnl_dim_t row = 0; row < p->k; row++)
        memcpy((float *)packed + row * p->ldb, (const float *)weights + row * p->n,
               (size_t)p->n * sizeof(float));
    return true;
}

static bool run(const struct library_primitive *base, struct device_stream *stream,
                const struct library_call *call)
{
    const struct product *p = (const struct product *)base;
    const float *a = device_place_at(call->operands[0]), *b = device_place_at(call->operands[1]);
    float *c = device_place_at(call->result);
    const bool copies = (p->copies_a || p->copies_b) && call->scratch.memory;
    struct onednn_setting before = onednn_enter(p->threads);
    struct flush_setting modes;
    flush_enter(&modes, p->threads);
    const bool done =
        copies ? multiply_panels(p, a, b, device_place_at(call->scratch), c) : multiply(p, a, b, c);
    (void)stream;
    flush_leave(&modes);
    onednn_leave(before);
    return done;
}

static bool run_bytes(const struct library_primitive *base, struct device_stream *stream,
                      const struct library_call *call)
{
    const struct product *p = (const struct product *)base;
    struct onednn_setting before = onednn_enter(p->threads);
    const bool done =
        multiply_bytes(p, device_place_at(call->operands[0]), device_place_at(call->operands[1]),
                       device_place_at(call->result));
    (void)stream;
    onednn_leave(before);
    return done;
}

/* Whether an operand is to be copied, whose elements are used so often. */
static bool is_aliased(const struct product *p, dnnl_dim_t leading, dnnl_dim_t uses)
{
    return leading % LIBRARY_ALIASED == 0 && uses >= COPY_MIN_USES && p->k <= COPY_MAX_ROWS &&
           p->threads <= COPY_MAX_THREADS && onednn_has_isa(dnnl_cpu_isa_avx2) &&
           !onednn_has_isa(dnnl_cpu_isa_avx512_core);
}

/* Whether B, a constant of dense rows, is copied once, after is_aliased has been asked. */
static bool keeps_copy(const struct product *p)
{
    if (p->copies_b)
        return p->k * p->n <= COPY_MAX_KEPT;
    return p->b == 'N' && p->ldb % CONSTANT_ALIASED == 0 && p->k >= CONSTANT_MIN_ROWS && p->m > 1 &&
           p->m <= CONSTANT_MOST_USES && onednn_has_isa(dnnl_cpu_isa_avx512_core);
}

static void release(struct library_primitive *base)
{
    free(base);
}

/* Where rows are a multiple of 2 KiB apart. */
static void choose_copies(struct product *p, const struct matmul_problem *m)
{
    p->copies_a = p->a == 'T' && is_aliased(p, p->lda, p->n);
    p->copies_b = p->b == 'N' && is_aliased(p, p->ldb, p->m);
    if (m->b_constant && p->ldb == p->n && keeps_copy(p)) {
        p->copies_b = false;
        p->ldb += LIBRARY_FURTHER;
        p->base.packed_bytes = (size_t)p->k * (size_t)p->ldb * sizeof(float);
    }
    p->base.scratch_bytes =
        (size_t)(p->copies_a + p->copies_b) * (size_t)p->k * PANEL_ROW * sizeof(float);
}

struct library_primitive *onednn_make_matmul(const struct library_problem *problem)
{
    static const struct primitive_table table = {.same_packing = same_packing,
                                                 .pack = pack,
                                                 .run = run,
                                                 .release = release},
                                        of_bytes = {.run = run_bytes, .release = release};
    const struct matmul_problem *m = &problem->matmul;
    const bool bytes = problem->dtype != TSSA_FLOAT;
    struct product p = {
        .base = {.table = bytes ? &of_bytes : &table, .name = bytes ? "gemm of bytes" : "sgemm"},
        .threads = (int)problem->threads,
        .m = m->m,
        .n = m->n,
        .k = m->k,
        .dtype = problem->dtype,
        .a_zero = m->a_zero,
        .b_zero = m->b_zero};
    if (m->batch != 1 || m->k == 0 || (bytes && !onednn_sums_bytes()) ||
        !describe(m->m, m->k, m->a_row, m->a_column, &p.a, &p.lda) ||
        !describe(m->k, m->n, m->b_row, m->b_column, &p.b, &p.ldb))
        return NULL;
    if (!bytes)
        choose_copies(&p, m);
    struct product *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    *made = p;
    return &made->base;
}
