/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/quantization/byte_sums.h"

#include "device/cpu/provider.h"
#include "device/matmul.h"

/* Below so many multiplications making a primitive costs more than many runs of the reference. */
#define MIN_WORK 8192
/* Products of bytes less their zero points are 255 * 255 at most. */
#define MOST_TERMS (INT32_MAX / (255 * 255))

#define SIGN_BIT 0x80u

bool byte_sums_constant(const struct ir_op *op, uint32_t operand)
{
    const struct ir_value *value = ir_operand(op, operand);
    return value && ir_value_constant(value);
}

tssa_status *byte_sums_check(const struct tensor *tensor, const char *what)
{
    if (dtype_in(T_I8U8, tensor->dtype))
        return NULL;
    return ERROR(TSSA_RUNTIME, "%s must be INT8 or UINT8, not %s", what,
                 tssa_dtype_name(tensor->dtype));
}

static void lose_128(const struct tensor *from, void *to)
{
    const uint8_t *bytes = from->data;
    uint8_t *lower = to;
    const size_t n = tensor_count(from);
    for (size_t i = 0; i < n; i++)
        lower[i] = bytes[i] ^ SIGN_BIT;
}

#define TILE 64 /* rows and columns that are in the cache at once */

void byte_sums_turn(int64_t rows, int64_t columns, const uint8_t *from, uint8_t *to)
{
    for (int64_t i = 0; i < rows; i += TILE)
        for (int64_t j = 0; j < columns; j += TILE) {
            const int64_t i_end = i + TILE < rows ? i + TILE : rows,
                          j_end = j + TILE < columns ? j + TILE : columns;
            for (int64_t column = j; column < j_end; column++)
                for (int64_t row = i; row < i_end; row++)
                    to[column * rows + row] = from[row * columns + column];
        }
}

/* Of dims [out][in], whose bytes lie as [in][out]. */
static void turn_matrix(const struct tensor *from, void *to)
{
    byte_sums_turn(from->dims[1], from->dims[0], from->data, to);
}

static void turn_and_lose_128(const struct tensor *from, void *to)
{
    struct tensor turned = *from;
    turn_matrix(from, to);
    turned.data = to;
    lose_128(&turned, to);
}

/* Weights as INT8. */
static struct library_weights lowered(const struct tensor *tensor)
{
    return (struct library_weights){.tensor = tensor,
                                    .widened_bytes =
                                        tensor->dtype == TSSA_UINT8 ? tensor_count(tensor) : 0,
                                    .widen = lose_128};
}

/* All zero points are this number; false: they are not one number. */
static bool same_zero(const double *zeros, int64_t n, int64_t *zero)
{
    *zero = zeros && n > 0 ? (int64_t)zeros[0] : 0;
    for (int64_t i = 1; zeros && i < n; i++)
        if ((int64_t)zeros[i] != *zero)
            return false;
    return true;
}

static int64_t work_of(int64_t results, int64_t terms)
{
    int64_t work;
    return i64_mul(results, terms, &work) ? work : INT64_MAX;
}

static bool is_worth_it(int64_t results, int64_t terms)
{
    return terms <= MOST_TERMS && results > 0 && work_of(results, terms) >= MIN_WORK;
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

static struct library_weights weights_of(const struct tensor *w, bool turned)
{
    struct library_weights weights = lowered(w);
    if (turned) {
        weights.widen = weights.widened_bytes ? turn_and_lose_128 : turn_matrix;
        weights.widened_bytes = tensor_count(w);
    }
    return weights;
}

/* Of a job without a quantizer: without its bias. False: there is no library, or it is not asked.
 */
static bool find_problem(const struct kernel_args *args, const struct library_cache *cache,
                         const struct conv_job *job, const struct conv_zeros *zeros,
                         const struct library_quantizer *quantizer, struct library_problem *problem)
{
    const int64_t lost = job->w->dtype == TSSA_UINT8 ? SIGN_BIT : 0;
    const int64_t results = job->batch * job->out_channels * job->window.out_count;
    const int64_t terms = job->in_channels / job->groups * job->window.kernel_count;
    struct conv_job asked = *job;
    int64_t w_zero;
    if (!quantizer)
        asked.bias = NULL;
    if (!is_worth_it(results, terms) || !same_zero(zeros->w, job->out_channels, &w_zero) ||
        !conv_problem(&asked, job->x->dtype, problem))
        return false;
    problem->conv.x_zero = (int64_t)zeros->x;
    problem->conv.w_zero = w_zero - lost;
    problem->conv.quantizer = (intptr_t)quantizer;
    problem->threads =
        cpu_library_byte_threads(cache->context, args->env->team, work_of(results, terms));
    return problem->threads > 0;
}

static tssa_status *convolve(struct kernel_args *args, struct library_cache *cache,
                             const struct conv_job *job, bool turned,
                             const struct conv_zeros *zeros,
                             const struct library_quantizer *quantizer, void *y, bool *done)
{
    const struct library_weights weights = weights_of(job->w, turned);
    const struct tensor *bias = quantizer ? job->bias : NULL;
    struct library_problem problem;
    *done = false;
    if (!find_problem(args, cache, job, zeros, quantizer, &problem))
        return NULL;
    struct library_call call = {
        .operands = {{job->x->data, 0}, {job->w->data, 0}, {bias ? bias->data : NULL, 0}},
        .result = {y, 0}};
    return library_compute(args, cache, &problem, &weights, &call, done);
}

tssa_status *byte_sums_get_ready(struct kernel_args *args, struct library_cache *cache,
                                 const struct conv_job *job, bool turned,
                                 const struct conv_zeros *zeros,
                                 const struct library_quantizer *quantizer, bool *made)
{
    const struct library_weights weights = weights_of(job->w, turned);
    struct library_problem problem;
    *made = false;
    return find_problem(args, cache, job, zeros, quantizer, &problem)
               ? library_get_ready(args, cache, &problem, &weights, made)
               : NULL;
}

tssa_status *byte_sums_conv(struct kernel_args *args, struct library_cache *cache,
                            const struct conv_job *job, bool turned, const struct conv_zeros *zeros,
                            int32_t *sums, bool *done)
{
    return convolve(args, cache, job, turned, zeros, NULL, sums, done);
}

tssa_status *byte_sums_quantized(struct kernel_args *args, struct library_cache *cache,
                                 const struct conv_job *job, bool turned,
                                 const struct conv_zeros *zeros,
                                 const struct library_quantizer *quantizer, void *y, bool *done)
{
    return convolve(args, cache, job, turned, zeros, quantizer, y, done);
}

/* ---- Products -------------------------------------------------------------------------------- */

struct products {
    struct matmul mm;
    struct library_problem problem;        /* of one */
    const struct library_weights *weights; /* NULL: they are as they are wanted */
    const char *a, *b;
    int32_t *sums;
};

static tssa_status *multiply(struct kernel_args *args, struct library_cache *cache,
                             const struct products *p, int64_t i, bool *done)
{
    int64_t a, b;
    matmul_batch(&p->mm, i, &a, &b);
    struct library_call call = {
        .operands = {{(void *)(p->a + a), 0}, {(void *)(p->b + b), 0}},
        .result = {p->sums + i * p->problem.matmul.m * p->problem.matmul.n, 0}};
    return library_compute(args, cache, &p->problem, p->weights, &call, done);
}

static tssa_status *multiply_all(struct kernel_args *args, struct library_cache *cache,
                                 const struct products *p, bool *done)
{
    *done = p->problem.threads > 0;
    for (int64_t i = 0; i < p->mm.batches && *done; i++) {
        *done = false;
        TRY(multiply(args, cache, p, i, done));
    }
    return NULL;
}

/* UINT8 right operands as INT8: of one matrix the library's cache keeps them, and packed if it is a
 * constant, of several nobody. */
static tssa_status *multiply_lowered(struct kernel_args *args, struct library_cache *cache,
                                     const struct products *p, const struct tensor *b, bool *done)
{
    const struct library_weights weights = lowered(b);
    struct products own = *p;
    struct buffer *memory = NULL;
    if ((weights.widened_bytes || p->problem.matmul.b_constant) && p->mm.batches == 1) {
        own.weights = &weights;
    } else if (weights.widened_bytes) {
        TRY(kernel_scratch(args, weights.widened_bytes, &memory));
        lose_128(b, memory->data);
        own.b = memory->data;
    }
    tssa_status *status = multiply_all(args, cache, &own, done);
    buffer_release(memory);
    return status;
}

tssa_status *byte_sums_matmul(struct kernel_args *args, struct library_cache *cache,
                              const struct tensor *a, const struct tensor *b, const double *a_zeros,
                              const double *b_zeros, int32_t *sums, bool *done)
{
    struct products p = {.a = a->data, .b = b->data, .sums = sums};
    int64_t a_zero, b_zero;
    *done = false;
    TRY(matmul_resolve(a, b, &p.mm));
    const struct matmul_problem one = matmul_of_batch(&p.mm);
    if (!same_zero(a_zeros, one.m, &a_zero) || !same_zero(b_zeros, one.n, &b_zero))
        return NULL;
    matmul_fold(&p.mm);
    p.problem = (struct library_problem){
        .kind = LIBRARY_MATMUL, .dtype = a->dtype, .matmul = matmul_of_batch(&p.mm)};
    p.problem.matmul.a_zero = a_zero;
    p.problem.matmul.b_constant = cache->constant && p.mm.batches == 1;
    p.problem.matmul.b_zero = b_zero - (b->dtype == TSSA_UINT8 ? (int64_t)SIGN_BIT : 0);
    const int64_t results = p.problem.matmul.m * one.n;
    if (!is_worth_it(results, one.k))
        return NULL;
    p.problem.threads = /* which opens the library */
        cpu_library_byte_threads(cache->context, args->env->team, work_of(results, one.k));
    return multiply_lowered(args, cache, &p, b, done);
}
