/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Col2Im (ai.onnx 18): adds up the columns of sliding windows into an image: an element is the sum
 * of what the kernel's positions give it, in their row-major order, as of an axis that is not the
 * innermost one (ir/reduction.def). Floats narrower than DOUBLE are summed in float32, integers in
 * double.
 */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/add_back.h"
#include "kernels/cpu/lib/lines.h"

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
    tssa_dtype dtype; /* that is computed in */
    const void *columns;
    struct tensor *out;
};

/* Indices are (batch, channel) pairs. */
static void add_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct col2im_job *job = context;
    const struct window *w = &job->window;
    const size_t width = tssa_dtype_size(job->dtype);
    for (int64_t i = begin; i < end; i++) {
        const char *columns =
            (const char *)job->columns + (size_t)(i * w->kernel_count * w->out_count) * width;
        store_elements(job->out, i * w->in_count, 1, w->in_count, job->dtype,
                       add_back(w, job->dtype, columns, scratch));
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
    job.dtype = computed_in(x->dtype);
    if (!add_back_bytes(w, job.dtype, &bytes))
        return ERROR(TSSA_LIMIT, "the image is too large");
    if (!i64_mul(w->kernel_count, w->out_count, &cost))
        cost = INT64_MAX;
    TRY(elements_as(args, x, job.dtype, &job.columns, &columns));
    tssa_status *status = parts_for(args, dims[0] * dims[1], cost, bytes, add_planes, &job);
    buffer_release(columns);
    return status;
}

const struct kernel cpu_kernel_Col2Im = {.prepare = col2im_prepare, .run = run_Col2Im};
