/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convolve (ir/convolve.h): the library's, in one call. What it declines is Conv in plain layouts,
 * by the library or the reference, and what is done to its sums after that.
 */
#include "kernels/cpu/contraction/convolve.h"

#include <string.h>

#include "kernels/cpu/contraction/conv_library.h"
#include "kernels/cpu/lib/axes.h"

extern const struct kernel cpu_kernel_convolve;

struct convolve_state {
    struct conv_attrs attrs;
    bool x_last, y_last, winograd;
    enum convolve_after after;
    float a, b;
    struct library_cache library;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct convolve_state *state = ARENA_NEW(setup->arena, struct convolve_state);
    const struct ir_value *w = ir_operand(op, CONVOLVE_W);
    TRY_ALLOC(state);
    TRY(conv_decode(op, &state->attrs));
    state->x_last = ir_attr_int(op, CONVOLVE_X_LAST, 0) != 0;
    state->y_last = ir_attr_int(op, CONVOLVE_Y_LAST, 0) != 0;
    state->winograd = ir_attr_int(op, CONVOLVE_WINOGRAD, 0) != 0;
    state->after = convolve_after_find(ir_attr_str(op, CONVOLVE_AFTER, ""));
    state->a = ir_attr_float(op, CONVOLVE_A, 0);
    state->b = ir_attr_float(op, CONVOLVE_B, 0);
    if (state->after == AFTER_COUNT)
        return ERROR(TSSA_MALFORMED, "nothing that a convolution does is named \"%s\"",
                     ir_attr_str(op, CONVOLVE_AFTER, ""));
    library_cache_open(&state->library, setup, w && ir_value_constant(w));
    if (w && ir_value_constant(w))
        library_cache_hold(&state->library, ir_value_constant(w));
    *result = state;
    return NULL;
}

static struct convolve_state *state_of(const struct kernel_args *args)
{
    return (struct convolve_state *)(void *)args->state;
}

static void release(const void *state)
{
    library_cache_close(&((struct convolve_state *)(void *)state)->library);
}

/* ---- Without channels last ------------------------------------------------------------------- */

static void keep_sums(const void *context, int64_t channel, const void *sums, int64_t count,
                      void *out)
{
    (void)context, (void)channel;
    memcpy(out, sums, (size_t)count * sizeof(float));
}

/* The job whose sums are the job's, with channels first. */
static struct conv_job plain_of(const struct conv_job *job, const struct tensor *x)
{
    struct conv_job plain = *job;
    plain.x = x;
    plain.x_last = plain.y_last = false;
    plain.added = NULL;
    plain.after = AFTER_NOTHING;
    plain.a = plain.b = 0;
    return plain;
}

/* These sums. */
static tssa_status *plain_sums(struct kernel_args *args, const struct conv_job *job, float *x_first,
                               struct tensor *sums)
{
    struct tensor x = *job->x;
    const struct conv_job plain = plain_of(job, &x);
    bool done;
    if (job->x_last && tensor_count(&x) > 0) {
        convolve_turn(job->batch, job->window.in_count, job->in_channels, x.data, x_first);
        x.data = x_first;
    }
    TRY(conv_library(args, &state_of(args)->library, &plain, sums->data, &done));
    if (done)
        return NULL;
    library_cache_need(&state_of(args)->library);
    return conv_reference(args, &plain, NULL, sums, keep_sums, NULL);
}

static tssa_status *compute_plain(struct kernel_args *args, const struct conv_job *job,
                                  struct tensor *y)
{
    struct buffer *x_first = NULL, *memory = NULL;
    struct tensor sums = *y;
    tssa_status *status =
        job->x_last ? kernel_scratch(args, tensor_count(job->x) * sizeof(float), &x_first) : NULL;
    if (!status)
        status = kernel_scratch(args, tensor_count(y) * sizeof(float), &memory);
    if (!status) {
        sums.data = memory->data;
        sums.dims[1] = job->out_channels;
        for (int i = 0; i < job->window.rank; i++)
            sums.dims[i + 2] = job->window.out[i];
        status = plain_sums(args, job, x_first ? x_first->data : NULL, &sums);
    }
    if (!status)
        convolve_finish(args->env->team, job, sums.data, y->data);
    buffer_release(x_first);
    buffer_release(memory);
    return status;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* The same of an image whose channels are last. */
static void dims_first(int rank, int64_t *dims)
{
    const int64_t channels = dims[rank - 1];
    memmove(dims + 2, dims + 1, (size_t)(rank - 2) * sizeof channels);
    dims[1] = channels;
}

static void dims_last(int rank, int64_t *dims)
{
    const int64_t channels = dims[1];
    memmove(dims + 1, dims + 2, (size_t)(rank - 2) * sizeof channels);
    dims[rank - 1] = channels;
}

static tssa_status *open_operands(const struct kernel_args *args, struct conv_job *job)
{
    TRY(kernel_tensor(args, CONVOLVE_X, &job->x));
    TRY(kernel_tensor(args, CONVOLVE_W, &job->w));
    TRY(kernel_optional_tensor(args, CONVOLVE_BIAS, &job->bias));
    TRY(kernel_optional_tensor(args, CONVOLVE_ADDED, &job->added));
    const struct tensor *all[] = {job->x, job->w, job->bias, job->added};
    for (size_t i = 0; i < CONVOLVE_OPERANDS; i++)
        if (all[i] && all[i]->dtype != TSSA_FLOAT)
            return ERROR(TSSA_RUNTIME, "the operands must be FLOAT");
    return NULL;
}

static tssa_status *check_added(const struct tensor *added, int rank, const int64_t *dims)
{
    if (added &&
        (added->rank != rank || memcmp(added->dims, dims, (size_t)rank * sizeof *dims) != 0))
        return ERROR(TSSA_RUNTIME, "what is added does not have the result's shape");
    return NULL;
}

/* The job, whose x, of dims channels first, is *x; dims: of the result, as it lies. */
static tssa_status *open_job(const struct kernel_args *args, struct conv_job *job, struct tensor *x,
                             int64_t *dims)
{
    const struct convolve_state *state = state_of(args);
    *job = (struct conv_job){.x_last = state->x_last,
                             .y_last = state->y_last,
                             .after = state->after,
                             .a = state->a,
                             .b = state->b,
                             .winograd = state->winograd};
    TRY(open_operands(args, job));
    *x = *job->x;
    if (job->x_last && x->rank >= 3)
        dims_first(x->rank, x->dims);
    job->x = x;
    TRY(conv_resolve(&state->attrs, job, dims));
    if (job->y_last)
        dims_last(x->rank, dims);
    return check_added(job->added, x->rank, dims);
}

static tssa_status *run_convolve(struct kernel_args *args)
{
    struct conv_job job;
    struct tensor x, *y;
    int64_t dims[TSSA_MAX_RANK];
    bool done = false;
    TRY(open_job(args, &job, &x, dims));
    TRY(kernel_output(args, 0, TSSA_FLOAT, x.rank, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    TRY(conv_library(args, &state_of(args)->library, &job, y->data, &done));
    return done ? NULL : compute_plain(args, &job, y);
}

/* What the library declines is asked for once more, in plain layouts. */
static tssa_status *get_ready(struct kernel_args *args)
{
    struct library_cache *library = &state_of(args)->library;
    struct conv_job job;
    struct tensor x;
    int64_t dims[TSSA_MAX_RANK];
    bool made;
    if (!kernel_has_shapes(args))
        return NULL;
    TRY(open_job(args, &job, &x, dims));
    TRY(kernel_check_result(TSSA_FLOAT, x.rank, dims));
    if (dims_product(dims, 0, x.rank) == 0)
        return NULL;
    TRY(conv_library_get_ready(args, library, &job, &made));
    if (made)
        return NULL;
    const struct conv_job plain = plain_of(&job, &x);
    return conv_library_get_ready(args, library, &plain, &made);
}

/* What is added may be changed into the result. */
static bool may_lie_on(const struct ir_op *op, uint32_t result, uint32_t operand)
{
    (void)op, (void)result;
    return operand == CONVOLVE_ADDED;
}

const struct kernel cpu_kernel_convolve = {.prepare = prepare,
                                           .run = run_convolve,
                                           .get_ready = get_ready,
                                           .release = release,
                                           .packs = CONVOLVE_W,
                                           .may_lie_on = may_lie_on};
