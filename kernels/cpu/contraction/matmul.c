/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul (ai.onnx 1 to 13), with numpy's broadcasting of the leading axes, and Gemm (1 to 13). */
#include <inttypes.h>

#include "kernels/cpu/lib/gemm_panels.h"
#include "kernels/cpu/lib/lines.h"

/* ---- MatMul ---------------------------------------------------------------------------------- */

struct matmul_state {
    struct library_cache library; /* constant: as in struct gemm */
    void *panels;                 /* the same */
};

static tssa_status *matmul_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct matmul_state *own = ARENA_NEW(setup->arena, struct matmul_state);
    TRY_ALLOC(own);
    TRY(gemm_panels_make(setup, op, (struct gemm_transposed){false, false}, &own->panels));
    library_cache_open(&own->library, setup, gemm_weights(op) != NULL);
    *state = own;
    return NULL;
}

static void matmul_release(const void *state)
{
    struct matmul_state *own = (void *)state;
    gemm_panels_drop(own->library.context, own->panels);
    library_cache_close(&own->library);
}

/* ---- Batches --------------------------------------------------------------------------------- */

/* Products below this many multiplications are too small to be worth all threads. */
#define SMALL_WORK (INT64_C(1) << 22)
/* What a thread should have to do, in multiplications. */
#define BATCH_GRAIN 65536

struct batches {
    const struct matmul *mm;
    tssa_dtype dtype;
    struct gemm gemm; /* of the first batch */
    const struct gemm_loop *loop;
};

static struct gemm gemm_of_batch(const struct batches *batches, int64_t i)
{
    const struct matmul *mm = batches->mm;
    size_t width = tssa_dtype_size(batches->dtype);
    struct gemm gemm = batches->gemm;
    int64_t rest = i, a_at = 0, b_at = 0;
    for (int d = mm->batch_rank - 1; d >= 0; d--) {
        a_at += rest % mm->batch[d] * mm->a_step[d];
        b_at += rest % mm->batch[d] * mm->b_step[d];
        rest /= mm->batch[d];
    }
    gemm.a = (const char *)gemm.a + (size_t)a_at * width;
    gemm.b = (const char *)gemm.b + (size_t)b_at * width;
    gemm.c = (char *)gemm.c + (size_t)(i * gemm.m * gemm.n) * width;
    return gemm;
}

static void run_batches(void *context, int64_t begin, int64_t end)
{
    const struct batches *batches = context;
    for (int64_t i = begin; i < end; i++) {
        struct gemm gemm = gemm_of_batch(batches, i);
        gemm_loop_run(batches->loop, &gemm);
    }
}

/* Are products not worth all threads, so that each is one thread's? */
static bool are_small(tssa_dtype dtype, const struct gemm *gemm)
{
    return gemm_work(gemm) < SMALL_WORK && gemm_has_loop(dtype);
}

static void run_small_batches(const struct team *team, struct batches *batches)
{
    const int64_t work = gemm_work(&batches->gemm), grain = BATCH_GRAIN / (work > 0 ? work : 1);
    team_for(team, batches->mm->batches, grain > 0 ? grain : 1, run_batches, batches);
}

/* The first product of all; `state` NULL: of operands of which nothing is known. */
static struct gemm first_of(const struct matmul_state *state, const struct matmul *mm,
                            const struct tensor *a, const struct tensor *b, void *out)
{
    struct gemm gemm = {.m = mm->a_dims[mm->a_rank - 2],
                        .k = mm->a_dims[mm->a_rank - 1],
                        .n = mm->b_dims[mm->b_rank - 1],
                        .a_column = 1,
                        .b_column = 1,
                        .a = a->data,
                        .b = b->data,
                        .c = out};
    gemm.a_row = gemm.k;
    gemm.b_row = gemm.n;
    if (mm->batches == 1 && state) {
        gemm.panels = state->panels;
        gemm.weights = state->library.constant ? b : NULL;
    }
    return gemm;
}

static tssa_status *matmul_batches(struct kernel_args *args, struct library_cache *library,
                                   tssa_dtype dtype, const struct matmul *mm,
                                   const struct gemm *first)
{
    struct batches batches = {.mm = mm, .dtype = dtype, .gemm = *first};
    if (mm->batches == 1)
        return gemm_compute(args, library, dtype, first);
    if (are_small(dtype, first)) {
        struct gemm_loop loop;
        TRY(gemm_loop_open(args, library, dtype, first, &loop));
        batches.loop = &loop;
        run_small_batches(args->env->team, &batches);
        gemm_loop_close(&loop);
        return NULL;
    }
    for (int64_t i = 0; i < mm->batches; i++) {
        struct gemm gemm = gemm_of_batch(&batches, i);
        TRY(gemm_compute(args, library, dtype, &gemm));
    }
    return NULL;
}

tssa_status *matmul_compute(struct kernel_args *args, struct library_cache *library,
                            const struct tensor *a, const struct tensor *b, void *out)
{
    struct matmul mm;
    TRY(matmul_resolve(a, b, &mm));
    matmul_fold_rows(&mm);
    const struct gemm first = first_of(NULL, &mm, a, b, out);
    return matmul_batches(args, library, a->dtype, &mm, &first);
}

/* What an op computes. */
struct matmul_job {
    struct matmul mm;
    tssa_dtype dtype;
    struct gemm first; /* c NULL: nobody wants it */
};

static tssa_status *find_matmul(struct kernel_args *args, struct matmul_job *job)
{
    const struct tensor *a, *b;
    struct tensor *out;
    int64_t dims[TSSA_MAX_RANK];
    int rank;
    TRY(kernel_tensor(args, 0, &a));
    TRY(kernel_tensor(args, 1, &b));
    if (a->dtype != b->dtype)
        return ERROR(TSSA_RUNTIME, "the operands are of different types, %s and %s",
                     tssa_dtype_name(a->dtype), tssa_dtype_name(b->dtype));
    TRY(matmul_resolve(a, b, &job->mm));
    matmul_dims(&job->mm, a, b, &rank, dims);
    TRY(kernel_output(args, 0, a->dtype, rank, dims, &out));
    matmul_fold_rows(&job->mm);
    job->dtype = a->dtype;
    job->first = first_of(args->state, &job->mm, a, b, out ? out->data : NULL);
    return NULL;
}

static tssa_status *run_MatMul(struct kernel_args *args)
{
    struct matmul_state *state =
        (void *)args->state; /* what changes is behind the library's lock */
    struct matmul_job job;
    TRY(find_matmul(args, &job));
    return job.first.c ? matmul_batches(args, &state->library, job.dtype, &job.mm, &job.first)
                       : NULL;
}

/* A call of products that need no library, of one or of small ones; see kernel.set_up. */
enum { LEFT, RIGHT, RESULT, BIAS, PLACES };
struct matmul_call {
    struct kernel_call call;
    struct matmul_job job;
    char *data[PLACES];
};

static void move_gemm(struct gemm *gemm, char *const *data)
{
    gemm->a = data[LEFT];
    gemm->b = data[RIGHT];
    gemm->c = data[RESULT];
}

static void place_gemm(const struct gemm *gemm, char **data)
{
    data[LEFT] = (char *)gemm->a;
    data[RIGHT] = (char *)gemm->b;
    data[RESULT] = gemm->c;
}

static void make_matmul(struct kernel_call *call)
{
    struct matmul_call *c = (struct matmul_call *)call;
    move_gemm(&c->job.first, c->data);
    if (c->job.mm.batches == 1) {
        gemm_run_direct(call->team, c->job.dtype, &c->job.first);
        return;
    }
    const struct gemm_loop loop = {.dtype = c->job.dtype};
    run_small_batches(call->team, &(struct batches){&c->job.mm, c->job.dtype, c->job.first, &loop});
}

static bool is_direct(struct library_cache *library, const struct matmul_job *job,
                      const struct team *team)
{
    if (job->mm.batches == 1)
        return gemm_is_direct(library, job->dtype, &job->first, team);
    return job->mm.batches > 0 && are_small(job->dtype, &job->first) &&
           gemm_is_direct(library, job->dtype, &job->first, NULL);
}

static bool matmul_set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    struct matmul_call *c = (struct matmul_call *)call;
    struct matmul_state *state = (void *)args->state;
    tssa_status *status = find_matmul(args, &c->job);
    tssa_status_free(status);
    (void)known;
    if (status || !c->job.first.c || !is_direct(&state->library, &c->job, args->env->team))
        return false;
    place_gemm(&c->job.first, c->data);
    *call = (struct kernel_call){make_matmul, c->data, BIAS, args->env->team};
    return true;
}

const struct kernel cpu_kernel_MatMul = {.prepare = matmul_prepare,
                                         .run = run_MatMul,
                                         .release = matmul_release,
                                         .set_up = matmul_set_up,
                                         .call_size = sizeof(struct matmul_call)};

/* ---- Gemm ------------------------------------------------------------------------------------ */

struct gemm_attrs {
    struct library_cache library;
    float alpha, beta;
    struct gemm_transposed transposed;
    void *panels; /* as in struct gemm */
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

/* Strides with which C is read as [m][n]; it broadcasts in one direction. */
static tssa_status *bias_steps(const struct tensor *c, int64_t m, int64_t n, int64_t *row,
                               int64_t *column)
{
    int64_t rows = c->rank == 2 ? c->dims[0] : 1, columns = c->rank >= 1 ? c->dims[c->rank - 1] : 1;
    if (c->rank > 2 || (rows != 1 && rows != m) || (columns != 1 && columns != n))
        return ERROR(TSSA_RUNTIME, "C does not broadcast to [%" PRId64 ", %" PRId64 "]", m, n);
    *row = rows == 1 ? 0 : columns;
    *column = columns == 1 ? 0 : 1;
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

static tssa_status *find_gemm(struct kernel_args *args, struct gemm_job *job)
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
        TRY(bias_steps(*c, gemm->m, gemm->n, &job->row, &job->column));
    TRY(kernel_output(args, 0, (*a)->dtype, 2, (const int64_t[]){gemm->m, gemm->n}, &job->y));
    gemm->c = job->y ? job->y->data : NULL;
    gemm->panels = job->attrs->panels;
    gemm->weights = job->attrs->library.constant ? *b : NULL;
    return NULL;
}

static bool is_unit(const struct gemm_job *job)
{
    return job->attrs->alpha == 1 && job->attrs->beta == 1;
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
    if ((!is_unit(&job) || job.operands[2]) &&
        (y->dtype == TSSA_FLOAT16 || y->dtype == TSSA_BFLOAT16))
        return gemm_of_halves(args, attrs, job.operands, &job.gemm, job.row, job.column, y);
    TRY(gemm_compute(args, &attrs->library, y->dtype, &job.gemm));
    finish_gemm(&job, y, job.operands[2]);
    return NULL;
}

/* The same, by a call that is set up. */
struct gemm_call {
    struct kernel_call call;
    struct gemm_job job;
    struct tensor y, c; /* as they are in this call */
    char *data[PLACES];
};

static void make_gemm(struct kernel_call *call)
{
    struct gemm_call *c = (struct gemm_call *)call;
    move_gemm(&c->job.gemm, c->data);
    c->y.data = c->data[RESULT];
    c->c.data = c->data[BIAS];
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
    c->y = *c->job.y;
    c->c = bias ? *bias : (struct tensor){0};
    place_gemm(&c->job.gemm, c->data);
    c->data[BIAS] = c->c.data;
    *call = (struct kernel_call){make_gemm, c->data, bias ? PLACES : BIAS, args->env->team};
    return true;
}

const struct kernel cpu_kernel_Gemm = {.prepare = gemm_prepare,
                                       .run = run_Gemm,
                                       .release = gemm_release,
                                       .set_up = gemm_set_up,
                                       .call_size = sizeof(struct gemm_call)};
