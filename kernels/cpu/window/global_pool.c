/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalAveragePool-22, GlobalMaxPool-22, GlobalLpPool-22 of ai.onnx: one number per batch and channel. */
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/window/pool.h"

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

struct work {
    const struct tensor *in, *out;
    int64_t n;
    double p;
};

/* GlobalLpPool: in double. */
static void raise_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    for (int64_t plane = begin; plane < end; plane++) {
        double *x = scratch, sum = 0;
        load_doubles(w->in, plane * w->n, 1, w->n, x);
        pool_raise(x, w->n, w->p);
        for (int64_t i = 0; i < w->n; i++)
            sum += x[i];
        double result = pool_root(sum, w->p);
        store_doubles(w->out, plane, 1, 1, &result);
    }
}

static tssa_status *open_planes(struct kernel_args *args, const struct tensor **in,
                                struct tensor **out)
{
    TRY(typed_tensor(args, 0, in));
    if ((*in)->rank < 2)
        return operand_error(0, *in, "a tensor of batches, channels and spatial axes");
    int64_t dims[TSSA_MAX_RANK];
    for (int i = 0; i < (*in)->rank; i++)
        dims[i] = i < 2 ? (*in)->dims[i] : 1;
    return kernel_output(args, 0, (*in)->dtype, (*in)->rank, dims, out);
}

static tssa_status *run_lp(struct kernel_args *args)
{
    const struct global_pool *state = args->state;
    const struct tensor *in;
    struct tensor *out;
    TRY(open_planes(args, &in, &out));
    if (!out)
        return NULL;
    struct work work = {in, out, dims_product(in->dims, 2, in->rank), state->p};
    return parts_for(args, in->dims[0] * in->dims[1], work.n * 2, (size_t)work.n * sizeof(double),
                     raise_planes, &work);
}

/* The others are reductions (ir/reduction.def). */
static tssa_status *run_reduction(struct kernel_args *args, enum reduction_row row)
{
    const struct tensor *in;
    struct tensor *out;
    struct axis_nest kept, reduced;
    bool marked[TSSA_MAX_RANK];
    TRY(open_planes(args, &in, &out));
    if (!out)
        return NULL;
    for (int i = 0; i < in->rank; i++)
        marked[i] = i >= 2;
    axis_nest_init(&kept, in, marked, false);
    axis_nest_init(&reduced, in, marked, true);
    reduce_tensor(args->env->team, row, in, &kept, &reduced, NULL, out);
    return NULL;
}

static tssa_status *run_average(struct kernel_args *args)
{
    return run_reduction(args, REDUCTION_Mean);
}

static tssa_status *run_max(struct kernel_args *args)
{
    return run_reduction(args, REDUCTION_Max);
}

extern const struct kernel cpu_kernel_global_average_pool, cpu_kernel_global_max_pool;
extern const struct kernel cpu_kernel_global_lp_pool;
const struct kernel cpu_kernel_global_average_pool = {.run = run_average};
const struct kernel cpu_kernel_global_max_pool = {.run = run_max};
const struct kernel cpu_kernel_global_lp_pool = {.prepare = prepare_lp, .run = run_lp};
