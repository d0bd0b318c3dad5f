/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul (ai.onnx 1 to 13), with numpy's broadcasting of the leading axes, and Gemm (1 to 13). */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/gemm.h"

/* ---- MatMul --------------------------------------------------------------------------------------- */

struct matmul_state {
    struct device_context *context;
};

static tssa_status *matmul_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **result)
{
    struct matmul_state *state = ARENA_NEW(setup->arena, struct matmul_state);
    TRY_ALLOC(state);
    (void)op;
    state->context = setup->context;
    *result = state;
    return NULL;
}

/* A vector is a matrix of one row (left) or one column (right) whose axis the result drops. */
struct matmul {
    int64_t a_dims[TSSA_MAX_RANK], b_dims[TSSA_MAX_RANK]; /* promoted */
    int a_rank, b_rank;
    int batch_rank;
    int64_t batch[TSSA_MAX_RANK], a_step[TSSA_MAX_RANK],
        b_step[TSSA_MAX_RANK]; /* steps in elements */
    int64_t batches;
};

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
        mm->batches *= mm->batch[i];
    }
    return NULL;
}

/* ---- Batches -------------------------------------------------------------------------------------- */

/* Products below this many multiplications are too small to be worth all threads. */
#define SMALL_WORK (INT64_C(1) << 22)
/* What a thread should have to do, in multiplications. */
#define BATCH_GRAIN 65536

struct batches {
    const struct matmul *mm;
    struct device_context *context;
    tssa_dtype dtype;
    struct gemm gemm; /* of the first batch */
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
        gemm_on_this_thread(batches->context, batches->dtype, &gemm);
    }
}

static tssa_status *matmul_batches(struct kernel_args *args, struct device_context *context,
                                   const struct matmul *mm, const struct tensor *a,
                                   const struct tensor *b, void *out)
{
    struct batches batches = {.mm = mm,
                              .context = context,
                              .dtype = a->dtype,
                              .gemm = {.m = mm->a_dims[mm->a_rank - 2],
                                       .k = mm->a_dims[mm->a_rank - 1],
                                       .n = mm->b_dims[mm->b_rank - 1],
                                       .a_column = 1,
                                       .b_column = 1,
                                       .a = a->data,
                                       .b = b->data,
                                       .c = out}};
    batches.gemm.a_row = batches.gemm.k;
    batches.gemm.b_row = batches.gemm.n;
    int64_t work = gemm_work(&batches.gemm);
    if (mm->batches > 1 && work < SMALL_WORK && gemm_has_loop(a->dtype)) {
        int64_t grain = BATCH_GRAIN / (work > 0 ? work : 1);
        team_for(args->env->team, mm->batches, grain > 0 ? grain : 1, run_batches, &batches);
        return NULL;
    }
    for (int64_t i = 0; i < mm->batches; i++) {
        struct gemm gemm = gemm_of_batch(&batches, i);
        TRY(gemm_compute(args, context, a->dtype, &gemm));
    }
    return NULL;
}

/* One matrix for all batches: the batches of the left operand are just more rows. */
static bool fold_rows(struct matmul *mm)
{
    for (int i = 0; i < mm->batch_rank; i++)
        if (mm->b_step[i] != 0 && mm->batch[i] != 1)
            return false;
    for (int i = 0; i < mm->batch_rank; i++)
        if (mm->a_step[i] == 0 && mm->batch[i] != 1)
            return false;
    return mm->batches > 1;
}

static tssa_status *matmul_resolve(const struct tensor *a, const struct tensor *b,
                                   struct matmul *mm)
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

tssa_status *matmul_shape(const struct tensor *a, const struct tensor *b, int *rank, int64_t *dims)
{
    struct matmul mm;
    TRY(matmul_resolve(a, b, &mm));
    *rank = mm.batch_rank;
    memcpy(dims, mm.batch, (size_t)mm.batch_rank * sizeof *dims);
    if (a->rank > 1)
        dims[(*rank)++] = mm.a_dims[mm.a_rank - 2];
    if (b->rank > 1)
        dims[(*rank)++] = mm.b_dims[mm.b_rank - 1];
    return NULL;
}

tssa_status *matmul_compute(struct kernel_args *args, struct device_context *context,
                            const struct tensor *a, const struct tensor *b, void *out)
{
    struct matmul mm;
    TRY(matmul_resolve(a, b, &mm));
    if (fold_rows(&mm)) {
        mm.a_dims[mm.a_rank - 2] *= mm.batches;
        mm.batches = 1;
        mm.batch_rank = 0;
    }
    return matmul_batches(args, context, &mm, a, b, out);
}

static tssa_status *run_MatMul(struct kernel_args *args)
{
    const struct matmul_state *state = args->state;
    const struct tensor *a, *b;
    struct tensor *out;
    int64_t dims[TSSA_MAX_RANK];
    int rank;
    TRY(kernel_tensor(args, 0, &a));
    TRY(kernel_tensor(args, 1, &b));
    if (a->dtype != b->dtype)
        return ERROR(TSSA_RUNTIME, "the operands are of different types, %s and %s",
                     tssa_dtype_name(a->dtype), tssa_dtype_name(b->dtype));
    TRY(matmul_shape(a, b, &rank, dims));
    TRY(kernel_output(args, 0, a->dtype, rank, dims, &out));
    return out ? matmul_compute(args, state->context, a, b, out->data) : NULL;
}

const struct kernel cpu_kernel_MatMul = {.prepare = matmul_prepare, .run = run_MatMul};

/* ---- Gemm ----------------------------------------------------------------------------------------- */

struct gemm_attrs {
    struct device_context *context;
    float alpha, beta;
    bool trans_a, trans_b;
};

static tssa_status *gemm_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                 const void **state)
{
    struct gemm_attrs *attrs = ARENA_NEW(setup->arena, struct gemm_attrs);
    TRY_ALLOC(attrs);
    attrs->context = setup->context;
    attrs->alpha = ir_attr_float(op, "alpha", 1);
    attrs->beta = ir_attr_float(op, "beta", 1);
    attrs->trans_a = ir_attr_int(op, "transA", 0) != 0;
    attrs->trans_b = ir_attr_int(op, "transB", 0) != 0;
    *state = attrs;
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

/* y = alpha * y + beta * c, element by element. */
static void scale_and_add(const struct gemm_attrs *attrs, struct tensor *y, const struct tensor *c,
                          int64_t row, int64_t column)
{
    int64_t m = y->dims[0], n = y->dims[1];
    size_t width = tssa_dtype_size(y->dtype);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            char *to = (char *)y->data + (size_t)(i * n + j) * width;
            const char *add =
                c ? (const char *)c->data + (size_t)(i * row + j * column) * width : NULL;
            if (y->dtype == TSSA_FLOAT) {
                float product = attrs->alpha * *(float *)(void *)to;
                *(float *)(void *)to =
                    add ? product + attrs->beta * *(const float *)(const void *)add : product;
                continue;
            }
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

static tssa_status *run_Gemm(struct kernel_args *args)
{
    const struct gemm_attrs *attrs = args->state;
    const struct tensor *a, *b, *c;
    struct tensor *y;
    int64_t row = 0, column = 0;
    TRY(kernel_tensor(args, 0, &a));
    TRY(kernel_tensor(args, 1, &b));
    TRY(kernel_optional_tensor(args, 2, &c));
    if (a->rank != 2 || b->rank != 2 || a->dtype != b->dtype || (c && c->dtype != a->dtype))
        return ERROR(TSSA_RUNTIME, "the operands must be matrices of one type");
    struct gemm gemm = {.m = a->dims[attrs->trans_a],
                        .k = a->dims[!attrs->trans_a],
                        .n = b->dims[!attrs->trans_b],
                        .a = a->data,
                        .b = b->data};
    if (b->dims[attrs->trans_b] != gemm.k)
        return ERROR(TSSA_RUNTIME, "%" PRId64 " columns times %" PRId64 " rows", gemm.k,
                     b->dims[attrs->trans_b]);
    *(attrs->trans_a ? &gemm.a_column : &gemm.a_row) = a->dims[1];
    *(attrs->trans_a ? &gemm.a_row : &gemm.a_column) = 1;
    *(attrs->trans_b ? &gemm.b_column : &gemm.b_row) = b->dims[1];
    *(attrs->trans_b ? &gemm.b_row : &gemm.b_column) = 1;
    if (c)
        TRY(bias_steps(c, gemm.m, gemm.n, &row, &column));
    TRY(kernel_output(args, 0, a->dtype, 2, (const int64_t[]){gemm.m, gemm.n}, &y));
    if (!y)
        return NULL;
    gemm.c = y->data;
    TRY(gemm_compute(args, attrs->context, a->dtype, &gemm));
    bool unit = attrs->alpha == 1 && attrs->beta == 1;
    if (unit && !dtype_is_float(y->dtype))
        add_integers(y, c, row, column);
    else if (!unit || c)
        scale_and_add(attrs, y, c, row, column);
    return NULL;
}

const struct kernel cpu_kernel_Gemm = {.prepare = gemm_prepare, .run = run_Gemm};
