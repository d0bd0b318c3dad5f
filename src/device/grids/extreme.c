/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/extreme.h"

#include "device/device.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"
#include "ir/row.h"

#define EACH 16 /* elements of a thread before there is another block */
#define MOST_BLOCKS 256

#define SIGNED                                                                                     \
    (DTYPE_BIT(TSSA_INT8) | DTYPE_BIT(TSSA_INT16) | DTYPE_BIT(TSSA_INT32) | DTYPE_BIT(TSSA_INT64))

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    (void)state;
    return grids_text_want(setup->context, GRIDS_TEXT_EXTREME, ir_operand(op, 0)->type->dtype);
}

struct job {
    tssa_dtype dtype;
    bool largest;
    int64_t n, blocks;
    struct device_place from, to;
    struct buffer *own, *values, *numbers; /* per block of the first launch, if there is a second */
};

/* Of `n` elements, with numbers or not. */
static tssa_status *launch(struct kernel_args *args, const struct job *job, bool is_second)
{
    const bool is_first = !is_second && job->blocks > 1;
    const struct device_place from = is_second ? grids_buffer(job->values) : job->from,
                              to = is_first ? grids_buffer(job->values) : job->to;
    const struct launch_param params[] = {
        grids_memory(from),
        grids_memory(is_second ? grids_buffer(job->numbers) : from),
        grids_memory(to),
        grids_memory(is_first ? grids_buffer(job->numbers) : to),
        grids_number(is_second ? job->blocks : job->n),
        grids_number(is_second),
        grids_number(is_first),
        grids_number(job->largest)};
    return grids_launch_text(args->env->stream, GRIDS_TEXT_EXTREME, job->dtype, 0,
                             is_second ? 1 : job->blocks, params, sizeof params / sizeof *params);
}

static tssa_status *reduce(struct kernel_args *args, struct job *job)
{
    const int64_t threads = grids_threads(args->env->stream->context);
    job->blocks = (job->n - 1) / (threads * EACH) + 1;
    if (job->blocks > MOST_BLOCKS)
        job->blocks = MOST_BLOCKS;
    TRY(grids_operand(args, 0, &job->own, &job->from));
    if (job->blocks == 1)
        return launch(args, job, false);
    const size_t blocks = (size_t)job->blocks;
    TRY(kernel_scratch(args, blocks * tssa_dtype_size(job->dtype), &job->values));
    TRY(kernel_scratch(args, blocks * sizeof(int64_t), &job->numbers));
    TRY(launch(args, job, false));
    return launch(args, job, true);
}

/* What none come to. */
static uint64_t bits_of_none(tssa_dtype dtype, bool largest)
{
    const uint64_t sign = UINT64_C(1) << (8 * tssa_dtype_size(dtype) - 1);
    if (dtype == TSSA_FLOAT)
        return UINT64_C(0x7f800000) | (largest ? sign : 0);
    if (dtype == TSSA_DOUBLE)
        return UINT64_C(0x7ff0000000000000) | (largest ? sign : 0);
    const bool is_signed = dtype_in(SIGNED, dtype);
    return largest ? is_signed ? sign : 0 : is_signed ? sign - 1 : sign | (sign - 1);
}

static tssa_status *write_none(struct kernel_args *args, const struct job *job)
{
    const struct launch_param params[] = {
        grids_memory(job->to), grids_number(1),
        grids_number((int64_t)bits_of_none(job->dtype, job->largest))};
    return grids_launch_text(args->env->stream, GRIDS_TEXT_SPREAD, grids_word(job->dtype), 0, 1,
                             params, sizeof params / sizeof *params);
}

static tssa_status *run(struct kernel_args *args)
{
    const int rank = args->op->results[0].type->rank;
    struct job job = {.largest = ir_op_is(args->op, IR_OP_ReduceMax)};
    int64_t dims[TSSA_MAX_RANK];
    const struct tensor *x;
    struct tensor *y;
    for (int i = 0; i < rank; i++)
        dims[i] = 1;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_output(args, 0, x->dtype, rank, dims, &y));
    if (!y)
        return NULL;
    job.dtype = x->dtype;
    job.n = (int64_t)tensor_count(x);
    job.to = grids_place(y);
    tssa_status *status = job.n ? reduce(args, &job) : write_none(args, &job);
    buffer_release(job.numbers);
    buffer_release(job.values);
    buffer_release(job.own);
    return status;
}

const struct kernel *grids_extreme_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run};
    if (!ir_op_is(op, IR_OP_ReduceMax) && !ir_op_is(op, IR_OP_ReduceMin))
        return NULL;
    const struct ir_type *type = ir_operand(op, 0)->type;
    return grids_text_takes(type->dtype) && ir_row_axes(op) == type->rank ? &kernel : NULL;
}
