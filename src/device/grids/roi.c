/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/roi.h"

#include <string.h>

#include "device/device.h"
#include "device/grids/grids.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"
#include "device/roi_align.h"

#define FLOATS (DTYPE_BIT(TSSA_FLOAT) | DTYPE_BIT(TSSA_DOUBLE))

enum { X, ROIS, ITEMS, OPERANDS };

struct state {
    struct roi_attrs attrs;
    uint32_t note;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct state *made = ARENA_NEW(setup->arena, struct state);
    TRY_ALLOC(made);
    TRY(roi_decode(op, &made->attrs));
    *state = made;
    TRY(grids_text_want(setup->context, GRIDS_TEXT_ROI, op->results[0].type->dtype));
    return grids_add_note(setup->context, op->name, &made->note);
}

static tssa_status *launch(struct kernel_args *args, const struct tensor *x, const struct tensor *y,
                           struct buffer **buffers)
{
    const struct state *state = args->state;
    const struct roi_attrs *attrs = &state->attrs;
    struct grids_stream *stream = (struct grids_stream *)args->env->stream;
    const int64_t count = (int64_t)tensor_count(y);
    struct device_place places[OPERANDS];
    int64_t scale;
    memcpy(&scale, &attrs->scale, sizeof scale);
    for (uint32_t i = 0; i < OPERANDS; i++)
        TRY(grids_operand(args, i, &buffers[i], &places[i]));
    const struct launch_param params[] = {
        grids_memory(places[X]),
        grids_memory(places[ROIS]),
        grids_memory(places[ITEMS]),
        grids_memory(grids_place(y)),
        grids_memory((struct device_place){stream->notes, state->note}),
        grids_number(count),
        grids_number(x->dims[0]),
        grids_number(x->dims[1]),
        grids_number(x->dims[2]),
        grids_number(x->dims[3]),
        grids_number(attrs->height),
        grids_number(attrs->width),
        grids_number(attrs->sampling),
        grids_number(scale),
        grids_number(attrs->half_pixel),
        grids_number(attrs->max)};
    stream->launched = true;
    return grids_launch_each(args->env->stream, GRIDS_TEXT_ROI, x->dtype, 0, count, params,
                             sizeof params / sizeof *params);
}

static tssa_status *check(const struct tensor *x, const struct tensor *rois,
                          const struct tensor *items)
{
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != 4 || rois->dtype != x->dtype)
        return ERROR(TSSA_RUNTIME, "the input (rank %d) and the regions (rank %d) do not fit",
                     x->rank, rois->rank);
    if (items->dtype != TSSA_INT64 || items->rank != 1 || items->dims[0] != rois->dims[0])
        return ERROR(TSSA_RUNTIME, "there is no i64 for each region");
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    const struct roi_attrs *attrs = &((const struct state *)args->state)->attrs;
    const struct tensor *x, *rois, *items;
    struct tensor *y;
    struct buffer *buffers[OPERANDS] = {NULL};
    TRY(kernel_tensor(args, X, &x));
    TRY(kernel_tensor(args, ROIS, &rois));
    TRY(kernel_tensor(args, ITEMS, &items));
    TRY(check(x, rois, items));
    const int64_t dims[] = {rois->dims[0], x->dims[1], attrs->height, attrs->width};
    TRY(kernel_output(args, 0, x->dtype, 4, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    if (tensor_count(x) == 0)
        return ERROR(TSSA_RUNTIME, "there is nothing to pool from");
    tssa_status *status = launch(args, x, y, buffers);
    for (int i = 0; i < OPERANDS; i++)
        buffer_release(buffers[i]);
    return status;
}

const struct kernel *grids_roi_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run};
    if (!ir_op_is(op, IR_OP_RoiAlign) || !ir_operand(op, X) || !ir_operand(op, ROIS))
        return NULL;
    const tssa_dtype dtype = ir_operand(op, X)->type->dtype;
    return dtype_in(FLOATS, dtype) && ir_operand(op, ROIS)->type->dtype == dtype ? &kernel : NULL;
}
