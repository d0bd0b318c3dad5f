/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/grid_sample.h"

#include "device/device.h"
#include "device/grid_sample.h"
#include "device/grids/grids.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/windows.h"

#define WIDE (DTYPE_BIT(TSSA_FLOAT) | DTYPE_BIT(TSSA_DOUBLE))
#define FLOATS (WIDE | DTYPE_BIT(TSSA_FLOAT16) | DTYPE_BIT(TSSA_BFLOAT16))

/* Of points and channels: as many keep a card busy, so a thread takes several channels of a point
 * where there are more. */
#define ENOUGH_THREADS (INT64_C(1) << 17)

enum { X, GRID, OPERANDS };

/* A grid's numbers, by the text's own defines. */
enum { SINGLES, DOUBLES, AS_X };

static bool takes(tssa_dtype x, tssa_dtype grid)
{
    return dtype_in(FLOATS, x) && (dtype_in(WIDE, grid) || grid == x);
}

static int64_t numbers_of(tssa_dtype grid)
{
    if (!dtype_in(WIDE, grid))
        return AS_X;
    return grid == TSSA_DOUBLE ? DOUBLES : SINGLES;
}

static enum grids_text text_of(enum sample_mode mode)
{
    static const enum grids_text texts[] = {[SAMPLE_NEAREST] = GRIDS_TEXT_GRID_SAMPLE_NEAREST,
                                            [SAMPLE_LINEAR] = GRIDS_TEXT_GRID_SAMPLE_LINEAR,
                                            [SAMPLE_CUBIC] = GRIDS_TEXT_GRID_SAMPLE_CUBIC};
    return texts[mode];
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct grid_attrs *attrs = ARENA_NEW(setup->arena, struct grid_attrs);
    TRY_ALLOC(attrs);
    TRY(grid_sample_decode(op, attrs));
    *state = attrs;
    return grids_text_want(setup->context, text_of(attrs->mode), op->results[0].type->dtype);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Channels that a thread computes of each of so many points. */
static int64_t channels_each(int64_t points, int64_t channels)
{
    const int64_t parts = ceil_div(ENOUGH_THREADS, points);
    return ceil_div(channels, parts < channels ? parts : channels);
}

static tssa_status *launch(struct kernel_args *args, const struct tensor *x,
                           const struct tensor *grid, const struct tensor *y,
                           struct buffer **buffers)
{
    enum { SIZES_AT = 8 };
    const struct grid_attrs *attrs = args->state;
    const int64_t batch = y->dims[0], channels = y->dims[1],
                  points = (int64_t)tensor_count(y) / batch / channels,
                  each = channels_each(batch * points, channels);
    struct device_place places[OPERANDS];
    for (uint32_t i = 0; i < OPERANDS; i++)
        TRY(grids_operand(args, i, &buffers[i], &places[i]));
    struct launch_param params[SIZES_AT + WINDOW_AXES + 3] = {
        grids_memory(places[X]),
        grids_memory(places[GRID]),
        grids_memory(grids_place(y)),
        grids_number(batch),
        grids_number(channels),
        grids_number(each),
        grids_number(points),
        grids_number(x->rank - 2),
        {0},
        {0},
        {0},
        grids_number(attrs->padding),
        grids_number(attrs->align_corners),
        grids_number(numbers_of(grid->dtype))};
    grids_axes(params + SIZES_AT, x->rank - 2, (struct axes){x->dims + 2, 1});
    return grids_launch_each(args->env->stream, text_of(attrs->mode), x->dtype, 0,
                             batch * points * ceil_div(channels, each), params,
                             sizeof params / sizeof *params);
}

static tssa_status *run(struct kernel_args *args)
{
    const struct tensor *x, *grid;
    struct tensor *y;
    struct buffer *buffers[OPERANDS] = {NULL};
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, X, &x));
    TRY(kernel_tensor(args, GRID, &grid));
    TRY(grid_sample_resolve(x, grid, dims));
    if (x->rank > WINDOW_AXES + 2 || !takes(x->dtype, grid->dtype))
        return ERROR(TSSA_RUNTIME, "a grid of %d axes of %s", x->rank - 2,
                     dtype_info(grid->dtype)->ir_name);
    TRY(kernel_output(args, 0, x->dtype, x->rank, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    if (tensor_count(x) == 0)
        return ERROR(TSSA_RUNTIME, "there is nothing to sample from");
    tssa_status *status = launch(args, x, grid, y, buffers);
    for (int i = 0; i < OPERANDS; i++)
        buffer_release(buffers[i]);
    return status;
}

const struct kernel *grids_grid_sample_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run};
    if (!ir_op_is(op, IR_OP_GridSample) || !ir_operand(op, X) || !ir_operand(op, GRID))
        return NULL;
    const struct ir_type *type = ir_operand(op, X)->type;
    return takes(type->dtype, ir_operand(op, GRID)->type->dtype) && type->rank <= WINDOW_AXES + 2
               ? &kernel
               : NULL;
}
