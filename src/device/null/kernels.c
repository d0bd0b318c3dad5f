/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device that computes nothing: results have their sizes (null/sizes.h), and what a device
 * would do for them is counted.
 *
 * A view is nothing. What asks a library (device/library.def) is a call of it, all else a launch,
 * what is fused one for all of it. Bytes are those of operands in the device's memory, read, and of
 * results, written; of what reads or changes a region, those of the region; a result that cannot be
 * changed in place costs a launch more, which copies it.
 */
#include "device/devices.h"
#include "device/memory.h"
#include "device/null/library.h"
#include "device/null/sizes.h"
#include "ir/cost.h"
#include "ir/fuse.h"
#include "ir/memory.h"

/* A loop that nothing ends. */
#define ENDLESS_TRIPS 16

/* ---- Counting -------------------------------------------------------------------------------- */

static tssa_status *make_result(struct kernel_args *args, uint32_t index, struct tensor **tensor)
{
    const struct ir_type *type = args->op->results[index].type;
    int64_t dims[TSSA_MAX_RANK];
    *tensor = NULL;
    if (!args->outputs[index])
        return NULL;
    TRY(null_dims(args, index, dims));
    return kernel_output(args, index, type->dtype, type->rank, dims, tensor);
}

/* Of an operand in the device's memory. */
static uint64_t operand_bytes(const struct kernel_args *args, uint32_t index)
{
    const struct value *value = args->inputs[index];
    const bool here = value && value->kind == TSSA_KIND_TENSOR && !args->on_host[index];
    return here ? tensor_bytes(&value->tensor) : 0;
}

/* Of a type within the op; UINT64_MAX where that is not known. */
static uint64_t bytes_of(const struct kernel_args *args, const struct ir_type *type)
{
    size_t bytes = tssa_dtype_size(type->dtype);
    for (int i = 0; i < type->rank; i++) {
        int64_t size;
        if (!null_dim(args, type->dims[i], &size) || size < 0 ||
            !size_mul(bytes, (size_t)size, &bytes))
            return UINT64_MAX;
    }
    return type->rank < 0 ? UINT64_MAX : bytes;
}

/* What a fused kernel reads of an operand: regions, where that is all that it reads. */
static uint64_t fused_bytes(const struct kernel_args *args, uint32_t index)
{
    const uint64_t all = operand_bytes(args, index);
    uint64_t bytes = 0;
    for (const struct ir_use *use = ir_fuse_body(args->op)->params[index]->uses; use && bytes < all;
         use = use->next) {
        const bool region = ir_op_is(use->user, IR_OP_access) && use == use->user->operands;
        const uint64_t more = region ? bytes_of(args, use->user->results[0].type) : all;
        bytes = more < all - bytes ? bytes + more : all;
    }
    return bytes;
}

static tssa_status *count_results(struct kernel_args *args, bool region, uint64_t *bytes)
{
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        struct tensor *tensor;
        TRY(make_result(args, i, &tensor));
        *bytes += tensor ? tensor_bytes(tensor) * (region ? 2 : 1) : 0;
    }
    return NULL;
}

/* What is read and written. */
static tssa_status *count_bytes(struct kernel_args *args)
{
    const bool region = cost_moves_region(args->op);
    uint64_t bytes = 0;
    for (uint32_t i = region ? 1 : 0; i < args->n_inputs; i++)
        if (!(args->op->info->flags & IR_SHAPE))
            bytes += ir_fuse_body(args->op) ? fused_bytes(args, i) : operand_bytes(args, i);
    TRY(count_results(args, region, &bytes));
    args->env->stream->counts.bytes += bytes;
    return NULL;
}

static tssa_status *run_launch(struct kernel_args *args)
{
    args->env->stream->counts.launches++;
    return count_bytes(args);
}

/* The library counts its calls itself. */
static tssa_status *run_library(struct kernel_args *args)
{
    bool done;
    TRY(count_bytes(args));
    TRY(null_library_run(args, &done));
    if (!done)
        args->env->stream->counts.launches++;
    return NULL;
}

static tssa_status *run_view(struct kernel_args *args)
{
    const struct tensor *from;
    struct value *out = args->outputs[0];
    int64_t dims[TSSA_MAX_RANK];
    const int rank = args->op->results[0].type->rank;
    TRY(kernel_tensor(args, 0, &from));
    if (!out)
        return NULL;
    TRY(null_dims(args, 0, dims));
    value_copy(out, args->inputs[0]);
    out->tensor.rank = rank;
    for (int i = 0; i < rank; i++)
        out->tensor.dims[i] = dims[i];
    return NULL;
}

/* What is written is read from an operand of the same type. */
static tssa_status *run_update(struct kernel_args *args)
{
    struct device_counts *counts = &args->env->stream->counts;
    const tssa_dtype dtype = args->op->results[0].type->dtype;
    struct tensor *tensor;
    for (uint32_t i = 1; i < args->n_inputs; i++) {
        const struct value *value = args->inputs[i];
        counts->bytes += operand_bytes(args, i);
        if (value && value->kind == TSSA_KIND_TENSOR && value->tensor.dtype == dtype)
            counts->bytes += tensor_bytes(&value->tensor);
    }
    counts->launches++;
    if (kernel_take(args, 0, 0, &tensor))
        return NULL;
    TRY(make_result(args, 0, &tensor));
    if (tensor) {
        counts->launches++;
        counts->bytes += 2 * tensor_bytes(tensor);
    }
    return NULL;
}

/* ---- The device ------------------------------------------------------------------------------ */

static bool suits(const struct ir_type *type)
{
    return type->kind == TYPE_TENSOR && type->rank >= 0 && type->dtype != TSSA_UNDEFINED &&
           type->dtype != TSSA_STRING;
}

static const struct kernel *find_kernel(const struct ir_op *op)
{
    static const struct kernel launch = {.run = run_launch},
                               library = {.prepare = null_library_prepare,
                                          .run = run_library,
                                          .release = null_library_release},
                               view = {.run = run_view}, update = {.run = run_update};
    const bool fused = ir_op_is(op, IR_OP_fuse);
    if (op->opaque || (op->n_blocks && !fused) || op->info->cls == IR_CLASS_SEQUENCE ||
        op->info->cls == IR_CLASS_INTERNAL)
        return NULL;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted && !suits(op->results[i].type))
            return NULL;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !suits(ir_operand(op, i)->type))
            return NULL;
    const enum ir_memory memory = ir_result_memory(op, 0, 0);
    if (memory == IR_MEMORY_SHARED)
        return &view;
    if (memory == IR_MEMORY_UPDATED)
        return &update;
    return library_asks(&null_device, op) ? &library : &launch;
}

static const struct ir_fusion *lend(struct device_context *context)
{
    static const struct ir_fusion fusion = {.classes = IR_FUSES_ALL,
                                            .machine = &cost_gpu,
                                            .most_operands = 64,
                                            .moves_inside = true,
                                            .side_by_side = true};
    (void)context;
    return &fusion;
}

static void close(struct device_context *context)
{
    (void)context;
}

const struct device null_device = {
    .name = "null",
    .counts_only = true,
    .endless_trips = ENDLESS_TRIPS,
    .alignment = 256, /* as a GPU's */
    .find_kernel = find_kernel,
    .library = &null_library,
    .close = close,
    .fusion = lend,
    DEVICE_READY_STREAMS,
    DEVICE_MEMORY(null),
};
