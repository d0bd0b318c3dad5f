/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul (ai.onnx 1 to 13), with numpy's broadcasting of the leading axes. */
#include "kernels/cpu/lib/gemm_panels.h"
#include "kernels/cpu/lib/lines.h"

struct matmul_state {
    struct library_cache library; /* constant: as in struct gemm */
    struct gemm_panels *panels;   /* the same */
};

static tssa_status *matmul_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct matmul_state *own = ARENA_NEW(setup->arena, struct matmul_state);
    TRY_ALLOC(own);
    TRY(gemm_panels_make(setup, op, (struct gemm_transposed){false, false}, &own->panels));
    library_cache_open(&own->library, setup, gemm_weights(op) != NULL);
    gemm_panels_hold(&own->library, op, own->panels);
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
    size_t width = tssa_dtype_size(batches->dtype);
    struct gemm gemm = batches->gemm;
    int64_t a_at, b_at;
    matmul_batch(batches->mm, i, &a_at, &b_at);
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
    if (library)
        library_cache_need(library); /* each product reads b where it is */
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
    matmul_fold(&mm);
    const struct gemm first = first_of(NULL, &mm, a, b, out);
    return matmul_batches(args, library, a->dtype, &mm, &first);
}

/* What an op computes. */
struct matmul_job {
    struct matmul mm;
    tssa_dtype dtype;
    struct gemm first; /* c NULL: nobody wants it */
};

/* All but where the result lies; *rank and dims: of it. */
static tssa_status *open_job(const struct kernel_args *args, struct matmul_job *job, int *rank,
                             int64_t *dims)
{
    const struct tensor *a, *b;
    TRY(kernel_tensor(args, 0, &a));
    TRY(kernel_tensor(args, 1, &b));
    if (a->dtype != b->dtype)
        return ERROR(TSSA_RUNTIME, "the operands are of different types, %s and %s",
                     tssa_dtype_name(a->dtype), tssa_dtype_name(b->dtype));
    TRY(matmul_resolve(a, b, &job->mm));
    matmul_dims(&job->mm, a, b, rank, dims);
    matmul_fold(&job->mm);
    job->dtype = a->dtype;
    job->first = first_of(args->state, &job->mm, a, b, NULL);
    return NULL;
}

static tssa_status *find_matmul(struct kernel_args *args, struct matmul_job *job)
{
    struct tensor *out;
    int64_t dims[TSSA_MAX_RANK];
    int rank;
    TRY(open_job(args, job, &rank, dims));
    TRY(kernel_output(args, 0, job->dtype, rank, dims, &out));
    job->first.c = out ? out->data : NULL;
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

/* As matmul_batches has it. */
static tssa_status *matmul_get_ready(struct kernel_args *args)
{
    struct matmul_state *state = (void *)args->state;
    struct matmul_job job;
    int64_t dims[TSSA_MAX_RANK];
    int rank;
    if (!kernel_knows_shapes(args)) {
        gemm_get_ready_unknown(&state->library, args->op->results[0].type->dtype, state->panels);
        return NULL;
    }
    TRY(open_job(args, &job, &rank, dims));
    TRY(kernel_check_result(job.dtype, rank, dims));
    if (job.mm.batches == 0)
        return NULL;
    return job.mm.batches > 1 && are_small(job.dtype, &job.first)
               ? gemm_loop_get_ready(args, &state->library, job.dtype, &job.first)
               : gemm_get_ready(args, &state->library, job.dtype, &job.first);
}

/* A call of products that need no library, of one or of small ones; see kernel.set_up. */
struct matmul_call {
    struct kernel_call call;
    struct matmul_job job;
    char *data[GEMM_PLACES];
};

static void make_matmul(struct kernel_call *call)
{
    struct matmul_call *c = (struct matmul_call *)call;
    gemm_move(&c->job.first, c->data);
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
    library_cache_need(&state->library);
    gemm_place(&c->job.first, c->data);
    *call = (struct kernel_call){
        .make = make_matmul, .data = c->data, .n_data = GEMM_BIAS, .team = args->env->team};
    return true;
}

const struct kernel cpu_kernel_MatMul = {.prepare = matmul_prepare,
                                         .run = run_MatMul,
                                         .get_ready = matmul_get_ready,
                                         .release = matmul_release,
                                         .packs = 1,
                                         .set_up = matmul_set_up,
                                         .call_size = sizeof(struct matmul_call)};
