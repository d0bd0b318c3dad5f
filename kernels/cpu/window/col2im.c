/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im (ai.onnx 18): adds up the columns of sliding windows into an image. Sums are in double. */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/window.h"

static tssa_status *col2im_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct window_attrs *attrs = ARENA_NEW(setup->arena, struct window_attrs);
    TRY_ALLOC(attrs);
    *state = attrs;
    return window_decode(op, attrs);
}

struct col2im_job {
    struct window window;
    const double *columns;
    struct tensor *out;
};

/* Indices are (batch, channel) pairs. */
static void add_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct col2im_job *job = context;
    const struct window *w = &job->window;
    for (int64_t i = begin; i < end; i++) {
        const double *columns = job->columns + i * w->kernel_count * w->out_count;
        memset(scratch, 0, (size_t)w->in_count * sizeof(double));
        for (int64_t k = 0; k < w->kernel_count; k++)
            window_add_back(w, k, 1, columns + k * w->out_count, scratch);
        store_doubles(job->out, i * w->in_count, 1, w->in_count, scratch);
    }
}

static tssa_status *resolve(const struct kernel_args *args, const struct tensor *x,
                            struct window *w)
{
    int64_t image[WINDOW_MAX_RANK], block[WINDOW_MAX_RANK];
    size_t rank, n;
    TRY(kernel_ints(args, 1, image, WINDOW_MAX_RANK, &rank));
    TRY(kernel_ints(args, 2, block, WINDOW_MAX_RANK, &n));
    if (x->rank != 3 || rank == 0 || rank != n)
        return ERROR(TSSA_RUNTIME, "%zu image axes and %zu block axes for columns of rank %d", rank,
                     n, x->rank);
    for (size_t i = 0; i < rank; i++)
        if (image[i] < 0)
            return ERROR(TSSA_RUNTIME, "the image has %" PRId64 " elements along axis %zu",
                         image[i], i);
    TRY(window_resolve(args->state, (int)rank, image, block, w));
    if (x->dims[1] % w->kernel_count || x->dims[2] != w->out_count)
        return ERROR(TSSA_RUNTIME,
                     "%" PRId64 " blocks of %" PRId64 " elements do not fit columns of %" PRId64
                     " and %" PRId64,
                     w->out_count, w->kernel_count, x->dims[2], x->dims[1]);
    return NULL;
}

static tssa_status *run_Col2Im(struct kernel_args *args)
{
    struct col2im_job job;
    const struct tensor *x;
    struct buffer *columns;
    int64_t dims[TSSA_MAX_RANK], cost;
    size_t bytes;
    TRY(typed_tensor(args, 0, &x));
    TRY(resolve(args, x, &job.window));
    const struct window *w = &job.window;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1] / w->kernel_count;
    memcpy(dims + 2, w->in, (size_t)w->rank * sizeof *dims);
    TRY(kernel_output(args, 0, x->dtype, w->rank + 2, dims, &job.out));
    if (!job.out || tensor_count(job.out) == 0)
        return NULL;
    if (!size_mul((size_t)w->in_count, sizeof(double), &bytes))
        return ERROR(TSSA_LIMIT, "the image is too large");
    if (!i64_mul(w->kernel_count, w->out_count, &cost))
        cost = INT64_MAX;
    TRY(doubles_of(args, x, &columns));
    job.columns = columns->data;
    tssa_status *status = parts_for(args, dims[0] * dims[1], cost, bytes, add_planes, &job);
    buffer_release(columns);
    return status;
}

const struct kernel cpu_kernel_Col2Im = {.prepare = col2im_prepare, .run = run_Col2Im};
