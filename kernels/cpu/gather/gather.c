/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gather-13, GatherElements-13 and GatherND-13 of ai.onnx, ArrayFeatureExtractor-1 of ai.onnx.ml,
 * for every element type.
 */
#include "kernels/cpu/gather/gather.h"

#include <string.h>

#include "kernels/cpu/gather/indices.h"
#include "kernels/cpu/lib/strided.h"

struct gather {
    int64_t axis; /* GatherND: batch_dims */
};

static tssa_status *gather_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct gather *gather = ARENA_NEW(setup->arena, struct gather);
    TRY_ALLOC(gather);
    gather->axis = ir_op_is(op, IR_OP_GatherND) ? ir_attr_int(op, "batch_dims", 0) : ir_op_axis(op);
    *state = gather;
    return NULL;
}

/* ---- Blocks: Gather and GatherND ------------------------------------------------------------- */

/* Blocks of few bytes, as boxes are, one by one: no call for each. A row of smaller elements is not
 * aligned. */
#define GATHER_SMALL(size)                                                                         \
    static void gather_blocks_of_##size(                                                           \
        const char *restrict from, const int64_t *restrict offsets, int64_t n, char *restrict to)  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++, to += (size))                                              \
            memcpy(to, from + (size_t)offsets[i] * (size), size);                                  \
    }
GATHER_SMALL(4)
GATHER_SMALL(8)
GATHER_SMALL(16)
GATHER_SMALL(32)

/* Rows, those that lie one behind the other at once. */
static void gather_rows(const char *from, const int64_t *offsets, int64_t n, size_t block, char *to)
{
    for (int64_t i = 0, rows; i < n; i += rows, to += (size_t)rows * block) {
        rows = (int64_t)indices_in_row(offsets + i, (size_t)(n - i));
        memcpy(to, from + (size_t)offsets[i] * block, (size_t)rows * block);
    }
}

static void gather_some(void *context, int64_t begin, int64_t end)
{
    const struct gather_job *job = context;
    int64_t batch = begin / job->per_batch, i = begin % job->per_batch;
    for (int64_t done; begin < end; begin += done, batch++, i = 0) {
        done = job->per_batch - i < end - begin ? job->per_batch - i : end - begin;
        const int64_t *offsets = job->offsets + batch * job->offsets_batch + i;
        char *to = job->to + (size_t)begin * job->block;
        const char *from = job->from + (size_t)(batch * job->x_batch) * job->block;
        if (job->block == 4)
            gather_blocks_of_4(from, offsets, done, to);
        else if (job->block == 8)
            gather_blocks_of_8(from, offsets, done, to);
        else if (job->block == 16)
            gather_blocks_of_16(from, offsets, done, to);
        else if (job->block == 32)
            gather_blocks_of_32(from, offsets, done, to);
        else
            gather_rows(from, offsets, done, job->block, to);
    }
}

void gather_blocks(const struct team *team, const struct gather_job *job, int64_t batches)
{
    team_for(team, batches * job->per_batch, 65536 / (int64_t)job->block + 1, gather_some,
             (void *)job);
}

static tssa_status *gather_run(struct kernel_args *args)
{
    const struct gather *gather = args->state;
    const struct tensor *x, *indices;
    struct tensor *y;
    struct indices offsets = {0};
    int64_t dims[TSSA_MAX_RANK];
    int axis, rank = 0;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &indices));
    TRY(kernel_axis(gather->axis, x->rank, &axis));
    if (x->rank - 1 + indices->rank > TSSA_MAX_RANK)
        return ERROR(TSSA_LIMIT, "the result would have a rank above %d", TSSA_MAX_RANK);
    for (int i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];

    tssa_status *status = indices_find(args, 1, x->dims[axis], 1, &offsets);
    const int64_t inner = dims_product(x->dims, axis + 1, x->rank);
    if (!status && offsets.count == 1 && dims_product(x->dims, 0, axis) == 1 &&
        kernel_share_piece(args, 0, offsets.data[0] * inner, rank, dims))
        return NULL;
    if (!status)
        status = kernel_output(args, 0, x->dtype, rank, dims, &y);
    if (!status && y && tensor_count(y) > 0) {
        struct gather_job job = {.from = x->data,
                                 .to = y->data,
                                 .block = (size_t)inner * dtype_info(x->dtype)->size,
                                 .per_batch = (int64_t)offsets.count,
                                 .x_batch = x->dims[axis],
                                 .offsets = offsets.data};
        gather_blocks(args->env->team, &job, dims_product(x->dims, 0, axis));
    }
    indices_release(&offsets);
    return status;
}

/* One index, of an axis before which there are none of more than one element. */
static bool gather_is_piece(const struct ir_op *op, uint32_t result)
{
    const struct ir_type *indices = ir_operand(op, 1)->type;
    (void)result;
    return type_has_one_element(indices) && kernel_leads_with_ones(op, ir_op_axis(op));
}

/* Of a row whose number is counted from the start. */
static bool gather_set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    int64_t row;
    if (!known[1] || !gather_is_piece(args->op, 0))
        return false;
    tssa_status *status = kernel_scalar_int(args, 1, &row);
    tssa_status_free(status);
    return !status && row >= 0 && kernel_set_up_piece(args, known, call, gather_run);
}

const struct kernel cpu_kernel_gather = {.prepare = gather_prepare,
                                         .run = gather_run,
                                         .is_piece = gather_is_piece,
                                         .set_up = gather_set_up,
                                         .call_size = sizeof(struct kernel_call),
                                         .names = true};

/* Columns of the last axis: a Gather whose indices are flattened. A list counts as one row. */
static tssa_status *array_feature_extractor_run(struct kernel_args *args)
{
    const struct tensor *x, *indices;
    struct tensor *y;
    struct indices offsets = {0};
    int64_t dims[TSSA_MAX_RANK] = {1};
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &indices));
    if (x->rank == 0)
        return ERROR(TSSA_RUNTIME, "the operand is a scalar");
    int rank = x->rank > 1 ? x->rank : 2;
    const int64_t *columns = &x->dims[x->rank - 1];
    for (int i = 0; i < x->rank - 1; i++)
        dims[i] = x->dims[i];
    dims[rank - 1] = (int64_t)tensor_count(indices);
    tssa_status *status = indices_find(args, 1, *columns, 1, &offsets);
    if (!status)
        status = kernel_output(args, 0, x->dtype, rank, dims, &y);
    if (!status && y && tensor_count(y) > 0) {
        struct gather_job job = {.from = x->data,
                                 .to = y->data,
                                 .block = dtype_info(x->dtype)->size,
                                 .per_batch = (int64_t)offsets.count,
                                 .x_batch = *columns,
                                 .offsets = offsets.data};
        gather_blocks(args->env->team, &job, dims_product(x->dims, 0, x->rank - 1));
    }
    indices_release(&offsets);
    return status;
}

const struct kernel cpu_kernel_array_feature_extractor = {.run = array_feature_extractor_run};

static tssa_status *gather_nd_shapes(const struct tensor *x, const struct tensor *indices,
                                     int64_t batch_dims, int *depth)
{
    char data[160], index[160];
    bool fits = batch_dims >= 0 && batch_dims < indices->rank && batch_dims <= x->rank;
    for (int i = 0; fits && i < batch_dims; i++)
        fits = x->dims[i] == indices->dims[i];
    int64_t last = indices->rank > 0 ? indices->dims[indices->rank - 1] : -1;
    if (fits && last >= 0 && last <= x->rank - batch_dims) {
        *depth = (int)last;
        return NULL;
    }
    tensor_describe(x, data, sizeof data);
    tensor_describe(indices, index, sizeof index);
    return ERROR(TSSA_RUNTIME, "indices %s do not fit data %s with batch_dims %lld", index, data,
                 (long long)batch_dims);
}

static tssa_status *gather_nd_run(struct kernel_args *args)
{
    const struct gather *gather = args->state;
    const struct tensor *x, *indices;
    struct tensor *y;
    struct indices offsets = {0};
    int64_t dims[TSSA_MAX_RANK], strides[TSSA_MAX_RANK];
    int depth, rank = 0;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &indices));
    TRY(gather_nd_shapes(x, indices, gather->axis, &depth));
    int batch_dims = (int)gather->axis, first = batch_dims + depth;
    if (indices->rank - 1 + x->rank - first > TSSA_MAX_RANK)
        return ERROR(TSSA_LIMIT, "the result would have a rank above %d", TSSA_MAX_RANK);
    for (int i = 0; i < indices->rank - 1; i++)
        dims[rank++] = indices->dims[i];
    for (int i = first; i < x->rank; i++)
        dims[rank++] = x->dims[i];

    tensor_strides(depth, x->dims + batch_dims, strides);
    size_t count = (size_t)dims_product(indices->dims, 0, indices->rank - 1);
    tssa_status *status =
        indices_read(args, 1, count, depth, x->dims + batch_dims, strides, &offsets);
    if (!status)
        status = kernel_output(args, 0, x->dtype, rank, dims, &y);
    if (!status && y && tensor_count(y) > 0) {
        int64_t inner = dims_product(x->dims, first, x->rank);
        int64_t batches = dims_product(x->dims, 0, batch_dims);
        struct gather_job job = {.from = x->data,
                                 .to = y->data,
                                 .block = (size_t)inner * dtype_info(x->dtype)->size,
                                 .per_batch = (int64_t)offsets.count / batches,
                                 .x_batch = dims_product(x->dims, batch_dims, first),
                                 .offsets = offsets.data,
                                 .offsets_batch = (int64_t)offsets.count / batches};
        gather_blocks(args->env->team, &job, batches);
    }
    indices_release(&offsets);
    return status;
}

const struct kernel cpu_kernel_gather_nd = {.prepare = gather_prepare, .run = gather_nd_run};

/* ---- GatherElements -------------------------------------------------------------------------- */

struct gather_elements_job {
    const char *from;
    char *to;
    size_t size;
    const int64_t *offsets;
    struct grid rows; /* all dims of the result but the last */
    int64_t columns, column_stride;
};

/* Element c of a row is c * stride + offsets[c] from `from` on. */
#define GATHER_ROW(type)                                                                           \
    static void gather_row_##type(const type *restrict from, const int64_t *restrict offsets,      \
                                  int64_t stride, int64_t n, type *restrict to)                    \
    {                                                                                              \
        for (int64_t c = 0; c < n; c++)                                                            \
            to[c] = from[c * stride + offsets[c]];                                                 \
    }
GATHER_ROW(uint8_t)
GATHER_ROW(uint16_t)
GATHER_ROW(uint32_t)
GATHER_ROW(uint64_t)

/* Addresses of a tensor's elements are aligned as those are. */
static void gather_row(const struct gather_elements_job *job, const void *from,
                       const int64_t *offsets, void *to)
{
    const int64_t stride = job->column_stride, n = job->columns;
    const size_t size = job->size;
    if (size == 1)
        gather_row_uint8_t(from, offsets, stride, n, to);
    else if (size == 2)
        gather_row_uint16_t(from, offsets, stride, n, to);
    else if (size == 4)
        gather_row_uint32_t(from, offsets, stride, n, to);
    else if (size == 8)
        gather_row_uint64_t(from, offsets, stride, n, to);
    else
        for (int64_t c = 0; c < n; c++)
            memcpy((char *)to + (size_t)c * size,
                   (const char *)from + (size_t)(c * stride + offsets[c]) * size, size);
}

static void gather_elements_rows(void *context, int64_t begin, int64_t end)
{
    const struct gather_elements_job *job = context;
    struct grid rows = job->rows;
    size_t size = job->size;
    grid_seek(&rows, begin);
    for (int64_t r = begin; r < end; r++) {
        const int64_t *offsets = job->offsets + r * job->columns;
        gather_row(job, job->from + rows.offset * (int64_t)size, offsets,
                   job->to + (size_t)(r * job->columns) * size);
        grid_next(&rows);
    }
}

static tssa_status *gather_elements_run(struct kernel_args *args)
{
    const struct gather *gather = args->state;
    const struct tensor *x, *indices;
    struct tensor *y;
    struct indices offsets = {0};
    int64_t strides[TSSA_MAX_RANK];
    int axis;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &indices));
    TRY(kernel_axis(gather->axis, x->rank, &axis));
    bool fits = indices->rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++)
        fits = i == axis || indices->dims[i] <= x->dims[i];
    if (!fits) {
        char data[160], index[160];
        tensor_describe(x, data, sizeof data);
        tensor_describe(indices, index, sizeof index);
        return ERROR(TSSA_RUNTIME, "indices %s do not fit data %s", index, data);
    }
    tensor_strides(x->rank, x->dims, strides);
    tssa_status *status = indices_find(args, 1, x->dims[axis], strides[axis], &offsets);
    if (!status)
        status = kernel_output(args, 0, x->dtype, x->rank, indices->dims, &y);
    if (!status && y && tensor_count(y) > 0) {
        int last = x->rank - 1;
        struct gather_elements_job job = {.from = x->data,
                                          .to = y->data,
                                          .size = dtype_info(x->dtype)->size,
                                          .offsets = offsets.data,
                                          .rows = {.rank = last},
                                          .columns = indices->dims[last],
                                          .column_stride = axis == last ? 0 : 1};
        for (int i = 0; i < last; i++) {
            job.rows.dims[i] = indices->dims[i];
            job.rows.strides[i] = i == axis ? 0 : strides[i];
        }
        team_for(args->env->team, dims_product(indices->dims, 0, last), 8192 / job.columns + 1,
                 gather_elements_rows, &job);
    }
    indices_release(&offsets);
    return status;
}

const struct kernel cpu_kernel_gather_elements = {.prepare = gather_prepare,
                                                  .run = gather_elements_run};
