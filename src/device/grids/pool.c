/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/pool.h"

#include <math.h>
#include <string.h>

#include "device/device.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/windows.h"
#include "device/window.h"

#define FLOATS (DTYPE_BIT(TSSA_FLOAT) | DTYPE_BIT(TSSA_DOUBLE))

struct state {
    struct window_attrs attrs;
    bool averages, is_global, with_padding, column_major;
};

/* What of a call is not empty. */
struct job {
    const struct state *state;
    struct window window;
    tssa_dtype dtype;
    int64_t planes;
    struct tensor *y, *indices; /* NULL: not wanted */
    struct device_place x;
};

static tssa_status *want_texts(struct device_context *context, const struct state *state,
                               tssa_dtype dtype)
{
    if (state->is_global || state->averages) /* a window may be the whole plane */
        TRY(grids_text_want(context, GRIDS_TEXT_PLANES, dtype));
    if (state->is_global)
        return NULL;
    return grids_text_want(context, state->averages ? GRIDS_TEXT_AVERAGE : GRIDS_TEXT_POOL, dtype);
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct state *made = ARENA_NEW(setup->arena, struct state);
    TRY_ALLOC(made);
    made->averages = ir_op_is(op, IR_OP_AveragePool) || ir_op_is(op, IR_OP_GlobalAveragePool);
    made->is_global = ir_op_is(op, IR_OP_GlobalMaxPool) || ir_op_is(op, IR_OP_GlobalAveragePool);
    if (!made->is_global)
        TRY(window_decode(op, &made->attrs));
    made->with_padding = ir_attr_int(op, "count_include_pad", 0) != 0;
    made->column_major = ir_attr_int(op, "storage_order", 0) != 0;
    *state = made;
    return want_texts(setup->context, made, ir_operand(op, 0)->type->dtype);
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* Of a whole plane each: a reduction, of which a warp has one. */
static tssa_status *launch_planes(struct device_stream *stream, const struct job *job)
{
    const int64_t warps = stream->context->device->launcher->height;
    const struct launch_param params[] = {grids_memory(job->x), grids_memory(grids_place(job->y)),
                                          grids_number(job->planes),
                                          grids_number(job->window.in_count)};
    return grids_launch_text(stream, GRIDS_TEXT_PLANES, job->dtype, !job->state->averages,
                             (job->planes + warps - 1) / warps, params,
                             sizeof params / sizeof *params);
}

static void fill_window(struct launch_param *params, const struct window *w)
{
    grids_window(params, w->rank, w->in, w->out, w->kernel, w->stride, w->dilation, w->pad_begin);
}

static tssa_status *launch_averages(struct device_stream *stream, const struct job *job)
{
    enum { WINDOW_AT = 3, END_AT = WINDOW_AT + WINDOW_PARAMS, COUNT = END_AT + WINDOW_AXES + 1 };
    struct launch_param params[COUNT] = {grids_memory(job->x), grids_memory(grids_place(job->y)),
                                         grids_number(job->planes)};
    fill_window(params + WINDOW_AT, &job->window);
    grids_axes(params + END_AT, job->window.rank, (struct axes){job->window.pad_end, 0});
    params[COUNT - 1] = grids_number(job->state->with_padding);
    return grids_launch_each(stream, GRIDS_TEXT_AVERAGE, job->dtype, 0,
                             job->planes * job->window.out_count, params, COUNT);
}

/* What the largest of nothing is. */
static int64_t lowest_bits(tssa_dtype dtype)
{
    int64_t bits = 0;
    if (dtype_in(FLOATS, dtype))
        dtype_store_double(dtype, &bits, (double)-INFINITY);
    return dtype == TSSA_INT8 ? INT8_MIN : bits;
}

static tssa_status *launch_largest(struct device_stream *stream, const struct job *job)
{
    enum { MOST = 4 + WINDOW_PARAMS + 3 };
    struct launch_param params[MOST];
    const bool with_indices = job->indices != NULL;
    const struct tensor *y = job->y ? job->y : job->indices;
    uint32_t n = 0;
    params[n++] = grids_memory(job->x);
    params[n++] = grids_memory(grids_place(y));
    if (with_indices)
        params[n++] = grids_memory(grids_place(job->indices));
    params[n++] = grids_number(job->planes);
    fill_window(params + n, &job->window);
    n += WINDOW_PARAMS;
    params[n++] = grids_number(lowest_bits(job->dtype));
    if (with_indices) {
        params[n++] = grids_number(job->y != NULL);
        params[n++] = grids_number(job->state->column_major);
    }
    return grids_launch_each(stream, GRIDS_TEXT_POOL, job->dtype, with_indices,
                             job->planes * job->window.out_count, params, n);
}

/* ---- The kernel ------------------------------------------------------------------------------ */

/* Is there one window, which is all of the plane? Then its mean is a reduction. */
static bool is_whole(const struct window *w)
{
    bool whole = true;
    for (int i = 0; i < w->rank; i++)
        whole &= w->out[i] == 1 && w->pad_begin[i] == 0 && w->pad_end[i] == 0 &&
                 w->dilation[i] == 1 && w->kernel[i] == w->in[i];
    return whole;
}

static tssa_status *launch(struct kernel_args *args, struct job *job, struct buffer **buffer)
{
    struct device_stream *stream = args->env->stream;
    TRY(grids_operand(args, 0, buffer, &job->x));
    if (job->state->is_global || (job->state->averages && is_whole(&job->window)))
        return launch_planes(stream, job);
    return job->state->averages ? launch_averages(stream, job) : launch_largest(stream, job);
}

static tssa_status *resolve(const struct state *state, const struct tensor *x,
                            struct window *window, int64_t *dims)
{
    const int rank = x->rank - 2;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    if (!state->is_global) {
        TRY(window_resolve(&state->attrs, rank, x->dims + 2, NULL, window));
        memcpy(dims + 2, window->out, (size_t)rank * sizeof *dims);
        return NULL;
    }
    window->rank = rank;
    window->in_count = window->out_count = 1;
    for (int i = 0; i < rank; i++) {
        window->in_count *= x->dims[2 + i];
        dims[2 + i] = 1;
    }
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    struct job job = {.state = args->state};
    const struct tensor *x;
    struct buffer *buffer = NULL;
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &x));
    if (x->rank < (job.state->is_global ? 2 : 3))
        return ERROR(TSSA_RUNTIME, "operand 1 has rank %d, not batches, channels and spatial axes",
                     x->rank);
    TRY(resolve(job.state, x, &job.window, dims));
    TRY(kernel_output(args, 0, x->dtype, x->rank, dims, &job.y));
    TRY(kernel_output(args, 1, TSSA_INT64, x->rank, dims, &job.indices));
    job.dtype = x->dtype;
    job.planes = x->dims[0] * x->dims[1];
    if ((!job.y && !job.indices) || job.planes * job.window.out_count == 0)
        return NULL;
    tssa_status *status = launch(args, &job, &buffer);
    buffer_release(buffer);
    return status;
}

const struct kernel *grids_pool_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run};
    const bool is_max = ir_op_is(op, IR_OP_MaxPool);
    if ((!is_max && !ir_op_is(op, IR_OP_AveragePool) && !ir_op_is(op, IR_OP_GlobalMaxPool) &&
         !ir_op_is(op, IR_OP_GlobalAveragePool)) ||
        !ir_operand(op, 0))
        return NULL;
    const struct ir_type *type = ir_operand(op, 0)->type;
    return dtype_in(is_max ? FLOATS | T_I8U8 : FLOATS, type->dtype) && type->rank <= WINDOW_AXES + 2
               ? &kernel
               : NULL;
}
