/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device that computes nothing: results have their sizes (null/sizes.h), and what a device
 * would do for them is counted (count.h).
 */
#include "device/count.h"
#include "device/devices.h"
#include "device/memory.h"
#include "device/null/library.h"
#include "device/null/sizes.h"
#include "gir/grid.h"
#include "ir/cost.h"
#include "ir/fuse.h"
#include "ir/memory.h"
#include "ir/update.h"

/* A loop that nothing ends. */
#define ENDLESS_TRIPS 16

/* ---- Kernels --------------------------------------------------------------------------------- */

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

static tssa_status *make_results(struct kernel_args *args)
{
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        struct tensor *tensor;
        TRY(make_result(args, i, &tensor));
    }
    return NULL;
}

static tssa_status *run_launch(struct kernel_args *args)
{
    TRY(make_results(args));
    args->env->stream->counts.launches++;
    count_bytes(args, NULL, null_dim);
    return count_wait(args);
}

/* The state is the operands that results update. */
static tssa_status *prepare_fused(const struct ir_op *op, const struct kernel_setup *setup,
                                  const void **state)
{
    const uint32_t *updates;
    TRY(count_find_updates(op, setup->arena, &updates));
    *state = updates;
    return NULL;
}

static tssa_status *run_fused(struct kernel_args *args)
{
    const uint32_t *updates = args->state;
    struct tensor *tensor;
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        if (updates[i] && kernel_take(args, i, updates[i] - 1, &tensor))
            continue;
        TRY(make_result(args, i, &tensor));
        if (updates[i] && tensor && !ir_fuse_writes_all(args->op, i))
            count_copy_first(args, i);
    }
    args->env->stream->counts.launches++;
    count_bytes(args, updates, null_dim);
    return count_wait(args);
}

/* The library counts its calls itself. */
static tssa_status *run_library(struct kernel_args *args)
{
    bool done;
    TRY(make_results(args));
    count_bytes(args, NULL, null_dim);
    TRY(null_library_run(args, &done));
    if (!done)
        args->env->stream->counts.launches++;
    return count_wait(args);
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

static tssa_status *run_update(struct kernel_args *args)
{
    struct tensor *tensor;
    const bool taken = kernel_take(args, 0, 0, &tensor);
    if (!taken)
        TRY(make_result(args, 0, &tensor));
    count_update(args, taken || !tensor);
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
                               fused = {.prepare = prepare_fused,
                                        .run = run_fused,
                                        .updates = count_updated},
                               library = {.prepare = null_library_prepare,
                                          .run = run_library,
                                          .release = null_library_release},
                               view = {.run = run_view}, update = {.run = run_update};
    const bool fuses = ir_op_is(op, IR_OP_fuse);
    if (op->opaque || (op->n_blocks && !fuses) || op->info->cls == IR_CLASS_SEQUENCE ||
        op->info->cls == IR_CLASS_INTERNAL)
        return NULL;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted && !suits(op->results[i].type))
            return NULL;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !suits(ir_operand(op, i)->type))
            return NULL;
    if (fuses)
        return &fused;
    const enum ir_memory memory = ir_result_memory(op, 0, 0);
    if (ir_op_is_name(op))
        return &view;
    if (memory == IR_MEMORY_UPDATED)
        return &update;
    return library_asks(&null_device, op) ? &library : &launch;
}

/* One launch is what there is a kernel for. */
static const char *refuses(void *user, const struct ir_op *op)
{
    (void)user;
    return gir_grid_refuses(op);
}

static const char *refuses_whole(void *user, const struct ir_op *fuse)
{
    struct gir_grid *grid;
    const char *why = NULL;
    (void)user;
    tssa_status *status = gir_build_grid(fuse, fuse->parent->graph->allocator, &grid, &why);
    gir_grid_free(grid);
    if (status)
        why = "memory ran out";
    tssa_status_free(status);
    return why;
}

static bool is_free_of(void *user, const struct ir_op *fuse, const struct dim *size)
{
    (void)user;
    return gir_is_free_of(fuse, size);
}

static const struct ir_fusion *lend(struct device_context *context)
{
    static const struct ir_fusion fusion = {.classes = IR_FUSES_GRIDS,
                                            .machine = &cost_gpu,
                                            .most_operands = 64,
                                            .moves_inside = true,
                                            .row_parts = true,
                                            .side_by_side = true,
                                            .updates = true,
                                            .expands = true,
                                            .refuses = refuses,
                                            .refuses_whole = refuses_whole,
                                            .is_free_of = is_free_of};
    (void)context;
    return &fusion;
}

static void close(struct device_context *context)
{
    (void)context;
}

const struct device null_device = {
    .name = "null",
    .counts = true,
    .computes_nothing = true,
    .grids = true,
    .endless_trips = ENDLESS_TRIPS,
    .alignment = 256, /* as a GPU's */
    .find_kernel = find_kernel,
    .library = &null_library,
    .close = close,
    .fusion = lend,
    DEVICE_READY_STREAMS,
    DEVICE_MEMORY(null),
};
