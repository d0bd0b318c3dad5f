/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm (ai.onnx 1 to 13). */
#include <inttypes.h>

#include "kernels/cpu/lib/gemm_panels.h"
#include "kernels/cpu/lib/lines.h"

struct gemm_attrs {
    struct library_cache library;
    float alpha, beta;
    struct gemm_transposed transposed;
    struct gemm_panels *panels; /* as in struct gemm */
};

static tssa_status *gemm_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                 const void **state)
{
    struct gemm_attrs *attrs = ARENA_NEW(setup->arena, struct gemm_attrs);
    TRY_ALLOC(attrs);
    attrs->alpha = ir_attr_float(op, "alpha", 1);
    attrs->beta = ir_attr_float(op, "beta", 1);
    attrs->transposed = gemm_transposed_of(op);
    TRY(gemm_panels_make(setup, op, attrs->transposed, &attrs->panels));
    library_cache_open(&attrs->library, setup, gemm_weights(op) != NULL);
    gemm_panels_hold(&attrs->library, op, attrs->panels);
    *state = attrs;
    return NULL;
}

static void gemm_release(const void *state)
{
    struct gemm_attrs *attrs = (void *)state;
    gemm_panels_drop(attrs->library.context, attrs->panels);
    library_cache_close(&attrs->library);
}

static tssa_status *gemm_of(const struct tensor *a, const struct tensor *b,
                            struct gemm_transposed transposed, struct gemm *gemm)
{
    struct matmul_problem p;
    TRY(gemm_problem(a, b, transposed, &p));
    *gemm = (struct gemm){.m = p.m,
                          .n = p.n,
                          .k = p.k,
                          .a = a->data,
                          .b = b->data,
                          .a_row = p.a_row,
                          .a_column = p.a_column,
                          .b_row = p.b_row,
                          .b_column = p.b_column};
    return NULL;
}

/* One row of FLOAT; `add` may be NULL, and has a step of 0 or 1. */
static void scale_row(const struct gemm_attrs *attrs, int64_t n, float *to, const float *add,
                      int64_t column)
{
    const float alpha = attrs->alpha, beta = attrs->beta;
    if (!add)
        for (int64_t j = 0; j < n; j++)
            to[j] = alpha * to[j];
    else if (column)
        for (int64_t j = 0; j < n; j++)
            to[j] = alpha * to[j] + beta * add[j];
    else
        for (int64_t j = 0; j < n; j++)
            to[j] = alpha * to[j] + beta * *add;
}

/* y = alpha * y + beta * c, element by element, of FLOAT, DOUBLE or integers. */
static void scale_and_add(const struct gemm_attrs *attrs, struct tensor *y, const struct tensor *c,
                          int64_t row, int64_t column)
{
    int64_t m = y->dims[0], n = y->dims[1];
    size_t width = tssa_dtype_size(y->dtype);
    for (int64_t i = 0; y->dtype == TSSA_FLOAT && i < m; i++)
        scale_row(attrs, n, (float *)y->data + i * n, c ? (const float *)c->data + i * row : NULL,
                  column);
    for (int64_t i = 0; y->dtype != TSSA_FLOAT && i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            char *to = (char *)y->data + (size_t)(i * n + j) * width;
            const char *add =
                c ? (const char *)c->data + (size_t)(i * row + j * column) * width : NULL;
            double product = attrs->alpha * dtype_load_double(y->dtype, to);
            dtype_store_double(y->dtype, to,
                               add ? product + attrs->beta * dtype_load_double(y->dtype, add)
                                   : product);
        }
}

/* Integers with unit factors stay exact. */
static void add_integers(struct tensor *y, const struct tensor *c, int64_t row, int64_t column)
{
    int64_t m = y->dims[0], n = y->dims[1];
    size_t width = tssa_dtype_size(y->dtype);
    for (int64_t i = 0; c && i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            char *to = (char *)y->data + (size_t)(i * n + j) * width;
            const char *add = (const char *)c->data + (size_t)(i * row + j * column) * width;
            uint64_t sum = (uint64_t)dtype_load_int64(y->dtype, to) +
                           (uint64_t)dtype_load_int64(y->dtype, add);
            dtype_store_int64(y->dtype, to, (int64_t)sum);
        }
}

/* Two-byte floats, in float32 and rounded once. c may be NULL. */
static tssa_status *gemm_of_halves(struct kernel_args *args, const struct gemm_attrs *attrs,
                                   const struct tensor *const operands[3], const struct gemm *gemm,
                                   int64_t row, int64_t column, const struct tensor *y)
{
    struct buffer *wide[3] = {NULL}, *sums = NULL;
    struct gemm product = *gemm;
    struct tensor wide_y = *y, wide_c;
    tssa_status *status = NULL;
    for (int i = 0; i < 3 && !status; i++)
        status = elements_of(args, operands[i], TSSA_FLOAT, &wide[i]);
    if (!status)
        status = kernel_scratch(args, tensor_count(y) * sizeof(float), &sums);
    if (!status) {
        product.a = wide[0]->data;
        product.b = wide[1]->data;
        product.c = wide_y.data = sums->data;
        wide_y.dtype = TSSA_FLOAT;
        status = gemm_compute(args, NULL, TSSA_FLOAT, &product);
    }
    if (!status) {
        if (operands[2]) {
            wide_c = *operands[2];
            wide_c.dtype = TSSA_FLOAT;
            wide_c.data = wide[2]->data;
        }
        scale_and_add(attrs, &wide_y, operands[2] ? &wide_c : NULL, row, column);
        store_elements(y, 0, 1, (int64_t)tensor_count(y), TSSA_FLOAT, sums->data);
    }
    for (int i = 0; i < 3; i++)
        buffer_release(wide[i]);
    buffer_release(sums);
    return status;
}

/* What an op computes: y and c are its result and its bias. */
struct gemm_job {
    const struct gemm_attrs *attrs;
    struct gemm gemm;
    const struct tensor *operands[3];
    struct tensor *y; /* NULL: nobody wants it */
    int64_t row, column;
};

/* All but where the result lies. */
static tssa_status *open_job(const struct kernel_args *args, struct gemm_job *job)
{
    const struct tensor **a = &job->operands[0], **b = &job->operands[1], **c = &job->operands[2];
    struct gemm *gemm = &job->gemm;
    job->attrs = args->state;
    job->row = job->column = 0;
    TRY(kernel_tensor(args, 0, a));
    TRY(kernel_tensor(args, 1, b));
    TRY(kernel_optional_tensor(args, 2, c));
    TRY(gemm_of(*a, *b, job->attrs->transposed, gemm));
    if (*c && (*c)->dtype != (*a)->dtype)
        return ERROR(TSSA_RUNTIME, "the operands must be matrices of one type");
    if (*c)
        TRY(gemm_bias_steps(*c, gemm->m, gemm->n, &job->row, &job->column));
    gemm->panels = job->attrs->panels;
    gemm->weights = job->attrs->library.constant ? *b : NULL;
    return NULL;
}

static tssa_status *find_gemm(struct kernel_args *args, struct gemm_job *job)
{
    struct gemm *gemm = &job->gemm;
    TRY(open_job(args, job));
    TRY(kernel_output(args, 0, job->operands[0]->dtype, 2, (const int64_t[]){gemm->m, gemm->n},
                      &job->y));
    gemm->c = job->y ? job->y->data : NULL;
    return NULL;
}

static bool is_unit(const struct gemm_job *job)
{
    return job->attrs->alpha == 1 && job->attrs->beta == 1;
}

/* As gemm_of_halves computes it, which asks no library. */
static bool is_of_halves(const struct gemm_job *job)
{
    const tssa_dtype dtype = job->operands[0]->dtype;
    return (!is_unit(job) || job->operands[2]) && (dtype == TSSA_FLOAT16 || dtype == TSSA_BFLOAT16);
}

/* What is left to be done when y is the product. */
static void finish_gemm(const struct gemm_job *job, struct tensor *y, const struct tensor *c)
{
    if (is_unit(job) && !dtype_is_float(y->dtype))
        add_integers(y, c, job->row, job->column);
    else if (!is_unit(job) || c)
        scale_and_add(job->attrs, y, c, job->row, job->column);
}

static tssa_status *run_Gemm(struct kernel_args *args)
{
    struct gemm_attrs *attrs = (void *)args->state; /* what changes is behind the library's lock */
    struct gemm_job job;
    TRY(find_gemm(args, &job));
    struct tensor *y = job.y;
    if (!y)
        return NULL;
    if (is_of_halves(&job)) {
        library_cache_need(&attrs->library);
        return gemm_of_halves(args, attrs, job.operands, &job.gemm, job.row, job.column, y);
    }
    TRY(gemm_compute(args, &attrs->library, y->dtype, &job.gemm));
    finish_gemm(&job, y, job.operands[2]);
    return NULL;
}

static tssa_status *gemm_kernel_get_ready(struct kernel_args *args)
{
    struct gemm_attrs *attrs = (void *)args->state;
    struct gemm_job job;
    if (!kernel_knows_shapes(args)) {
        gemm_get_ready_unknown(&attrs->library, args->op->results[0].type->dtype, attrs->panels);
        return NULL;
    }
    TRY(open_job(args, &job));
    const tssa_dtype dtype = job.operands[0]->dtype;
    TRY(kernel_check_result(dtype, 2, (const int64_t[]){job.gemm.m, job.gemm.n}));
    return is_of_halves(&job) ? NULL : gemm_get_ready(args, &attrs->library, dtype, &job.gemm);
}

/* The same, by a call that is set up. */
struct gemm_call {
    struct kernel_call call;
    struct gemm_job job;
    struct tensor y, c; /* as they are in this call */
    char *data[GEMM_PLACES];
};

static void make_gemm(struct kernel_call *call)
{
    struct gemm_call *c = (struct gemm_call *)call;
    gemm_move(&c->job.gemm, c->data);
    c->y.data = c->data[GEMM_RESULT];
    c->c.data = c->data[GEMM_BIAS];
    gemm_run_direct(call->team, c->y.dtype, &c->job.gemm);
    finish_gemm(&c->job, &c->y, c->job.operands[2] ? &c->c : NULL);
}

static bool gemm_set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    struct gemm_call *c = (struct gemm_call *)call;
    struct gemm_attrs *attrs = (void *)args->state;
    tssa_status *status = find_gemm(args, &c->job);
    tssa_status_free(status);
    (void)known;
    if (status || !c->job.y ||
        !gemm_is_direct(&attrs->library, c->job.y->dtype, &c->job.gemm, args->env->team))
        return false;
    const struct tensor *bias = c->job.operands[2];
    library_cache_need(&attrs->library);
    c->y = *c->job.y;
    c->c = bias ? *bias : (struct tensor){0};
    gemm_place(&c->job.gemm, c->data);
    c->data[GEMM_BIAS] = c->c.data;
    *call = (struct kernel_call){.make = make_gemm,
                                 .data = c->data,
                                 .n_data = bias ? GEMM_PLACES : GEMM_BIAS,
                                 .team = args->env->team};
    return true;
}

const struct kernel cpu_kernel_Gemm = {.prepare = gemm_prepare,
                                       .run = run_Gemm,
                                       .get_ready = gemm_kernel_get_ready,
                                       .release = gemm_release,
                                       .packs = 1,
                                       .set_up = gemm_set_up,
                                       .call_size = sizeof(struct gemm_call)};
