/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalAveragePool-22, GlobalMaxPool-22, GlobalLpPool-22 of ai.onnx: one number per batch and channel. */
#include <math.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/window/pool.h"
#include "kernels/cpu/window/pool_rows.h"

struct global_pool {
    double p;
};

static tssa_status *prepare_lp(const struct ir_op *op, const struct kernel_setup *setup,
                               const void **result)
{
    struct global_pool *state = ARENA_NEW(setup->arena, struct global_pool);
    TRY_ALLOC(state);
    *result = state;
    return pool_power(op, &state->p);
}

/* One number from a plane, whose elements may be overwritten. */
typedef double (*fold_fn)(double *x, int64_t n, double p);

static double fold_average(double *x, int64_t n, double p)
{
    (void)p;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

static double fold_max(double *x, int64_t n, double p)
{
    (void)p;
    double most = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        most = x[i] > most || x[i] != x[i] ? x[i] : most;
    return most;
}

static double fold_lp(double *x, int64_t n, double p)
{
    double sum = 0;
    pool_raise(x, n, p);
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return pool_root(sum, p);
}

struct work {
    const struct tensor *in, *out;
    int64_t n;
    double p;
    fold_fn fold;
};

static void run_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    for (int64_t plane = begin; plane < end; plane++) {
        load_doubles(w->in, plane * w->n, 1, w->n, scratch);
        double result = w->fold(scratch, w->n, w->p);
        store_doubles(w->out, plane, 1, 1, &result);
    }
}

static void average_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    (void)scratch;
    pool_average_whole(w->in, w->out, w->n, begin, end);
}

static tssa_status *run_with(struct kernel_args *args, fold_fn fold)
{
    const struct global_pool *state = args->state;
    const struct tensor *in;
    struct tensor *out;
    TRY(typed_tensor(args, 0, &in));
    if (in->rank < 2)
        return operand_error(0, in, "a tensor of batches, channels and spatial axes");
    int64_t dims[TSSA_MAX_RANK];
    for (int i = 0; i < in->rank; i++)
        dims[i] = i < 2 ? in->dims[i] : 1;
    TRY(kernel_output(args, 0, in->dtype, in->rank, dims, &out));
    if (!out)
        return NULL;
    struct work work = {in, out, dims_product(in->dims, 2, in->rank), state ? state->p : 0, fold};
    if (fold == fold_average && in->dtype == TSSA_FLOAT)
        return parts_for(args, dims[0] * dims[1], work.n * 2, 0, average_planes, &work);
    return parts_for(args, dims[0] * dims[1], work.n * 2, (size_t)work.n * sizeof(double),
                     run_planes, &work);
}

#define KERNEL(name, decode)                                                                       \
    static tssa_status *run_##name(struct kernel_args *args)                                       \
    {                                                                                              \
        return run_with(args, fold_##name);                                                        \
    }                                                                                              \
    extern const struct kernel cpu_kernel_global_##name##_pool;                                    \
    const struct kernel cpu_kernel_global_##name##_pool = {.prepare = decode, .run = run_##name};

KERNEL(average, NULL)
KERNEL(max, NULL)
KERNEL(lp, prepare_lp)
