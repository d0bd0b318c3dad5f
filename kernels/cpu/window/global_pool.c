/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalAveragePool-22, GlobalMaxPool-22, GlobalLpPool-22 of ai.onnx: one number per batch and
 * channel. */
#include <inttypes.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/window/pool.h"
#include "kernels/cpu/window/pool_sums.h"

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
    const struct pool_sum_loops *loops;
};

static void raise_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const tssa_dtype dtype = w->loops->dtype;
    for (int64_t plane = begin; plane < end; plane++) {
        double sum; /* or a float */
        load_elements(w->in, plane * w->n, 1, w->n, dtype, scratch);
        w->loops->raise(scratch, w->n, w->p);
        reduce_lines(REDUCTION_Sum, dtype, &sum, scratch, w->n, 1, w->n, NULL);
        w->loops->root(&sum, 1, w->p);
        store_elements(w->out, plane, 1, 1, dtype, &sum);
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

void pool_reduce(const struct kernel_args *args, enum reduction_row row, const struct tensor *in,
                 struct tensor *out)
{
    struct axis_nest kept, reduced;
    bool marked[TSSA_MAX_RANK];
    for (int i = 0; i < in->rank; i++)
        marked[i] = i >= 2;
    axis_nest_init(&kept, in, marked, false);
    axis_nest_init(&reduced, in, marked, true);
    reduce_tensor(args->env->team, row, in, &kept, &reduced, NULL, out);
}

static tssa_status *run_reduction(struct kernel_args *args, enum reduction_row row)
{
    const struct tensor *in;
    struct tensor *out;
    TRY(open_planes(args, &in, &out));
    if (out)
        pool_reduce(args, row, in, out);
    return NULL;
}

static tssa_status *run_lp(struct kernel_args *args)
{
    const struct global_pool *state = args->state;
    struct work work = {.p = state->p};
    struct tensor *out;
    size_t bytes;
    if (state->p == 1 || state->p == 2)
        return run_reduction(args, state->p == 1 ? REDUCTION_L1 : REDUCTION_L2);
    TRY(open_planes(args, &work.in, &out));
    if (!out)
        return NULL;
    work.out = out;
    work.n = dims_product(work.in->dims, 2, work.in->rank);
    work.loops = work.in->dtype == TSSA_DOUBLE ? &pool_sum_loops_f64 : &pool_sum_loops_f32;
    if (!size_mul((size_t)work.n, work.loops->width, &bytes))
        return ERROR(TSSA_LIMIT, "a plane of %" PRId64 " elements is too large", work.n);
    return parts_for(args, dims_product(work.in->dims, 0, 2), work.n * 16, bytes, raise_planes,
                     &work);
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
