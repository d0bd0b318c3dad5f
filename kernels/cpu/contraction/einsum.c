/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum (ai.onnx 12): which axis of which operand is which label. What is summed, and how, is in
 * einsum_pairs.c. */
#include "kernels/cpu/contraction/einsum.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/axes.h"

struct einsum_state {
    struct library_cache *library;
    struct einsum equation;
};

static tssa_status *einsum_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct einsum_state *made = ARENA_NEW(setup->arena, struct einsum_state);
    TRY_ALLOC(made);
    TRY(einsum_parse(ir_attr_str(op, "equation", ""), &made->equation));
    made->library = ARENA_NEW(setup->arena, struct library_cache);
    TRY_ALLOC(made->library);
    library_cache_open(made->library, setup, false);
    *state = made;
    return NULL;
}

static void einsum_release(const void *state)
{
    library_cache_close(((const struct einsum_state *)state)->library);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static tssa_status *size_labels(struct einsum_job *job)
{
    for (int l = 0; l < job->axes.n_labels; l++)
        job->sizes[l] = 1;
    for (int i = 0; i < job->n_operands; i++) {
        const struct tensor *x = job->operands[i];
        for (int d = 0; d < x->rank; d++) {
            int64_t *size = &job->sizes[job->axes.operands[i][d]];
            if (*size != 1 && x->dims[d] != 1 && *size != x->dims[d])
                return ERROR(TSSA_RUNTIME,
                             "axis %d of operand %d has %" PRId64 " elements, its label %" PRId64,
                             d, i, x->dims[d], *size);
            *size = *size == 1 ? x->dims[d] : *size;
        }
    }
    return NULL;
}

/* A label that an operand has twice walks its diagonal. */
static void find_strides(struct einsum_job *job)
{
    for (int i = 0; i < job->n_operands; i++) {
        const struct tensor *x = job->operands[i];
        int64_t strides[TSSA_MAX_RANK];
        tensor_strides(x->rank, x->dims, strides);
        for (int d = 0; d < x->rank; d++)
            if (x->dims[d] != 1)
                job->strides[i][job->axes.operands[i][d]] += strides[d];
    }
}

static tssa_status *open_job(struct kernel_args *args, struct einsum_job *job)
{
    const struct einsum_state *state = args->state;
    int ranks[EINSUM_MAX_OPERANDS];
    int64_t dims[TSSA_MAX_RANK], strides[TSSA_MAX_RANK];
    if (args->n_inputs > EINSUM_MAX_OPERANDS)
        return ERROR(TSSA_RUNTIME, "%" PRIu32 " operands", args->n_inputs);
    job->n_operands = (int)args->n_inputs;
    job->library = state->library;
    for (uint32_t i = 0; i < args->n_inputs; i++) {
        TRY(kernel_tensor(args, i, &job->operands[i]));
        ranks[i] = job->operands[i]->rank;
        if (!dtype_in(args->op->info->types, job->operands[i]->dtype) ||
            job->operands[i]->dtype != job->operands[0]->dtype)
            return ERROR(TSSA_RUNTIME, "the operands must be of one numeric type");
    }
    TRY(einsum_resolve(&state->equation, job->n_operands, ranks, &job->axes));
    TRY(size_labels(job));
    for (int d = 0; d < job->axes.out_rank; d++)
        dims[d] = job->sizes[job->axes.out[d]];
    TRY(kernel_output(args, 0, job->operands[0]->dtype, job->axes.out_rank, dims, &job->out));
    if (!job->out || tensor_count(job->out) == 0)
        return NULL;
    find_strides(job);
    tensor_strides(job->axes.out_rank, dims, strides);
    for (int d = 0; d < job->axes.out_rank; d++) {
        job->out_strides[job->axes.out[d]] = strides[d];
        job->kept[job->axes.out[d]] = true;
    }
    return NULL;
}

static bool is_empty(const struct einsum_job *job)
{
    for (int l = 0; l < job->axes.n_labels; l++)
        if (job->sizes[l] == 0)
            return true;
    return false;
}

static tssa_status *run_Einsum(struct kernel_args *args)
{
    struct einsum_job job = {0};
    bool done = false;
    TRY(open_job(args, &job));
    if (!job.out || tensor_count(job.out) == 0)
        return NULL;
    if (!is_empty(&job))
        TRY(einsum_pairs(args, &job, &done));
    return done ? NULL : einsum_terms(args, &job);
}

const struct kernel cpu_kernel_Einsum = {
    .prepare = einsum_prepare, .run = run_Einsum, .release = einsum_release};
