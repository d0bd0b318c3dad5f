/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/scatter.h"

#include <string.h>

#include "device/grids/grids.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"

struct scatter {
    bool by_tuples; /* ScatterND */
    int64_t axis;
    uint32_t note;
};

enum { DATA, INDICES, UPDATES, OPERANDS };

/* What a call does. */
struct job {
    struct tensor x, indices, updates; /* dims and types */
    int axis, depth;
    int64_t count, width; /* places, and elements of an update */
    struct tensor *y;
    struct buffer *buffers[OPERANDS], *places, *last;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct scatter *scatter = ARENA_NEW(setup->arena, struct scatter);
    TRY_ALLOC(scatter);
    scatter->by_tuples = ir_op_is(op, IR_OP_ScatterND);
    scatter->axis = ir_op_axis(op);
    *state = scatter;
    TRY(grids_text_want(setup->context, GRIDS_TEXT_SCATTER,
                        grids_word(op->results[0].type->dtype)));
    return grids_add_note(setup->context, op->name, &scatter->note);
}

/* ---- What fits ------------------------------------------------------------------------------- */

static bool tuples_fit(struct job *job)
{
    const struct tensor *x = &job->x, *indices = &job->indices, *updates = &job->updates;
    if (indices->rank < 1)
        return false;
    const int outer = indices->rank - 1;
    if (indices->dims[outer] > x->rank)
        return false;
    job->depth = (int)indices->dims[outer];
    if (updates->rank != outer + x->rank - job->depth)
        return false;
    job->count = job->width = 1;
    for (int i = 0; i < updates->rank; i++) {
        const int64_t dim = i < outer ? indices->dims[i] : x->dims[job->depth + i - outer];
        *(i < outer ? &job->count : &job->width) *= dim;
        if (updates->dims[i] != dim)
            return false;
    }
    return true;
}

static bool elements_fit(struct job *job)
{
    const struct tensor *x = &job->x, *indices = &job->indices;
    bool fits = indices->rank == x->rank && tensor_same_shape(indices, &job->updates);
    for (int i = 0; fits && i < x->rank; i++)
        fits = i == job->axis || indices->dims[i] <= x->dims[i];
    job->count = (int64_t)tensor_count(indices);
    job->width = 1;
    return fits;
}

static tssa_status *check(const struct kernel_args *args, struct job *job)
{
    const struct scatter *scatter = args->state;
    const struct tensor *x, *indices, *updates;
    TRY(kernel_tensor(args, DATA, &x));
    TRY(kernel_tensor(args, INDICES, &indices));
    TRY(kernel_tensor(args, UPDATES, &updates));
    job->x = *x;
    job->indices = *indices;
    job->updates = *updates;
    if (!scatter->by_tuples)
        TRY(kernel_axis(scatter->axis, x->rank, &job->axis));
    if (x->dtype == updates->dtype && (scatter->by_tuples ? tuples_fit(job) : elements_fit(job)))
        return NULL;
    char data[160], index[160], update[160];
    tensor_describe(x, data, sizeof data);
    tensor_describe(indices, index, sizeof index);
    tensor_describe(updates, update, sizeof update);
    return ERROR(TSSA_RUNTIME, "data %s, indices %s and updates %s do not fit together", data,
                 index, update);
}

/* ---- Launches -------------------------------------------------------------------------------- */

static tssa_status *launch(struct kernel_args *args, const struct job *job, uint32_t function,
                           int64_t items, const struct launch_param *params, uint32_t n)
{
    return grids_launch_each(args->env->stream, GRIDS_TEXT_SCATTER, grids_word(job->x.dtype),
                             function, items, params, n);
}

static tssa_status *find_places(struct kernel_args *args, struct job *job)
{
    const struct scatter *scatter = args->state;
    struct grids_stream *stream = (struct grids_stream *)args->env->stream;
    const struct tensor *x = &job->x, *of = scatter->by_tuples ? x : &job->indices;
    const int rank = scatter->by_tuples ? job->depth : x->rank,
              first = scatter->by_tuples ? 0 : TSSA_MAX_RANK - rank; /* of the text's axes */
    struct launch_param params[7 + 2 * TSSA_MAX_RANK];
    struct device_place indices;
    int64_t steps[TSSA_MAX_RANK];
    uint32_t n = 0;
    TRY(grids_operand(args, INDICES, &job->buffers[INDICES], &indices));
    params[n++] = grids_memory(indices);
    params[n++] = grids_memory(grids_buffer(job->places));
    params[n++] = grids_memory((struct device_place){stream->notes, scatter->note});
    params[n++] = grids_number(job->count);
    params[n++] = grids_number(scatter->by_tuples ? job->depth : first + job->axis);
    if (!scatter->by_tuples)
        params[n++] = grids_number(x->dims[job->axis]);
    params[n++] = grids_number(job->indices.dtype == TSSA_INT64);
    tensor_strides(rank, x->dims, steps);
    for (int i = 0; i < TSSA_MAX_RANK; i++) {
        const bool is_axis = i >= first && i - first < rank;
        params[n + (uint32_t)i] = grids_number(is_axis ? of->dims[i - first] : 1);
        params[n + TSSA_MAX_RANK + (uint32_t)i] = grids_number(is_axis ? steps[i - first] : 0);
    }
    stream->launched = true;
    return launch(args, job, scatter->by_tuples ? 0 : 1, job->count, params, n + 2 * TSSA_MAX_RANK);
}

static tssa_status *find_last(struct kernel_args *args, const struct job *job)
{
    const struct scatter *scatter = args->state;
    int64_t along = job->count, inner = 1;
    if (!scatter->by_tuples) {
        along = job->indices.dims[job->axis];
        for (int i = job->axis + 1; i < job->indices.rank; i++)
            inner *= job->indices.dims[i];
    }
    const struct launch_param params[] = {
        grids_memory(grids_buffer(job->places)), grids_memory(grids_buffer(job->last)),
        grids_number(job->count), grids_number(along), grids_number(inner)};
    return launch(args, job, 2, job->count, params, sizeof params / sizeof *params);
}

static tssa_status *write_updates(struct kernel_args *args, struct job *job)
{
    const int64_t count = job->count * job->width;
    struct device_place updates;
    TRY(grids_operand(args, UPDATES, &job->buffers[UPDATES], &updates));
    const struct launch_param params[] = {
        grids_memory(updates), grids_memory(grids_buffer(job->last)),
        grids_memory(grids_place(job->y)), grids_number(count), grids_number(job->width)};
    return launch(args, job, 3, count, params, sizeof params / sizeof *params);
}

/* The data, changed in place or copied. */
static tssa_status *make_result(struct kernel_args *args, struct job *job)
{
    const struct tensor *x = &args->inputs[DATA]->tensor;
    if (kernel_take(args, 0, DATA, &job->y))
        return NULL;
    TRY(kernel_output(args, 0, x->dtype, x->rank, x->dims, &job->y));
    return job->y ? grids_copy(args, DATA, job->y) : NULL;
}

static tssa_status *write(struct kernel_args *args, struct job *job)
{
    const size_t bytes = (size_t)job->count * sizeof(int64_t);
    TRY(kernel_scratch(args, bytes, &job->places));
    TRY(kernel_scratch(args, bytes, &job->last));
    TRY(find_places(args, job));
    TRY(find_last(args, job));
    return job->width ? write_updates(args, job) : NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    struct job job = {0};
    TRY(check(args, &job));
    TRY(make_result(args, &job));
    if (!job.y || job.count == 0)
        return NULL;
    tssa_status *status = write(args, &job);
    buffer_release(job.last);
    buffer_release(job.places);
    for (int i = 0; i < OPERANDS; i++)
        buffer_release(job.buffers[i]);
    return status;
}

const struct kernel *grids_scatter_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run};
    if (!ir_op_is(op, IR_OP_ScatterND) && !ir_op_is(op, IR_OP_ScatterElements))
        return NULL;
    const bool reduces = strcmp(ir_attr_str(op, "reduction", "none"), "none") != 0;
    return reduces || grids_word(op->results[0].type->dtype) == TSSA_UNDEFINED ? NULL : &kernel;
}
