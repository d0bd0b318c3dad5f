/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/spread.h"

#include <string.h>

#include "device/device.h"
#include "device/expand.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"

/* ---- ConstantOfShape ------------------------------------------------------------------------- */

struct filling {
    tssa_dtype dtype;
    int64_t bits;
};

static tssa_status *prepare_filling(const struct ir_op *op, const struct kernel_setup *setup,
                                    const void **state)
{
    const struct tensor *value = ir_attr_tensor(op, "value");
    struct filling *filling = ARENA_NEW(setup->arena, struct filling);
    TRY_ALLOC(filling);
    *filling = (struct filling){.dtype = value ? value->dtype : TSSA_FLOAT};
    if (value) {
        if (tensor_count(value) != 1)
            return ERROR(TSSA_MALFORMED, "value has %zu elements, not 1", tensor_count(value));
        memcpy(&filling->bits, value->data, tssa_dtype_size(value->dtype));
    }
    *state = filling;
    return grids_text_want(setup->context, GRIDS_TEXT_SPREAD, grids_word(filling->dtype));
}

static tssa_status *run_filling(struct kernel_args *args)
{
    const struct filling *filling = args->state;
    struct tensor *y;
    int64_t dims[TSSA_MAX_RANK];
    size_t rank;
    TRY(grids_ints(args, 0, dims, TSSA_MAX_RANK, &rank));
    TRY(kernel_output(args, 0, filling->dtype, (int)rank, dims, &y));
    if (!y)
        return NULL;
    const int64_t count = (int64_t)tensor_count(y);
    const struct launch_param params[] = {grids_memory(grids_place(y)), grids_number(count),
                                          grids_number(filling->bits)};
    return grids_launch_each(args->env->stream, GRIDS_TEXT_SPREAD, grids_word(y->dtype), 0, count,
                             params, sizeof params / sizeof *params);
}

/* ---- Expand ---------------------------------------------------------------------------------- */

static tssa_status *prepare_expand(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    (void)state;
    return grids_text_want(setup->context, GRIDS_TEXT_SPREAD,
                           grids_word(op->results[0].type->dtype));
}

static tssa_status *spread(struct kernel_args *args, const struct tensor *y, const int64_t *steps,
                           struct buffer **buffer)
{
    struct launch_param params[3 + 2 * TSSA_MAX_RANK];
    const int64_t count = (int64_t)tensor_count(y);
    struct device_place x;
    TRY(grids_operand(args, 0, buffer, &x));
    params[0] = grids_memory(x);
    params[1] = grids_memory(grids_place(y));
    params[2] = grids_number(count);
    for (int i = 0; i < TSSA_MAX_RANK; i++) {
        const int axis = i - (TSSA_MAX_RANK - y->rank);
        params[3 + i] = grids_number(axis < 0 ? 1 : y->dims[axis]);
        params[3 + TSSA_MAX_RANK + i] = grids_number(axis < 0 ? 0 : steps[axis]);
    }
    return grids_launch_each(args->env->stream, GRIDS_TEXT_SPREAD, grids_word(y->dtype), 1, count,
                             params, sizeof params / sizeof *params);
}

static tssa_status *run_expand(struct kernel_args *args)
{
    const struct tensor *x;
    struct tensor *y;
    struct buffer *buffer = NULL;
    int64_t shape[TSSA_MAX_RANK], dims[TSSA_MAX_RANK], steps[TSSA_MAX_RANK];
    size_t count;
    int rank;
    TRY(kernel_tensor(args, 0, &x));
    TRY(grids_ints(args, 1, shape, TSSA_MAX_RANK, &count));
    TRY(expand_resolve(x, shape, (int)count, &rank, dims, steps));
    TRY(kernel_output(args, 0, x->dtype, rank, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    tssa_status *status = spread(args, y, steps, &buffer);
    buffer_release(buffer);
    return status;
}

/* ---------------------------------------------------------------------------------------------- */

const struct kernel *grids_spread_find(const struct ir_op *op)
{
    static const struct kernel filling = {.prepare = prepare_filling, .run = run_filling},
                               expand = {.prepare = prepare_expand, .run = run_expand};
    if (grids_word(op->results[0].type->dtype) == TSSA_UNDEFINED)
        return NULL;
    if (ir_op_is(op, IR_OP_ConstantOfShape))
        return &filling;
    return ir_op_is(op, IR_OP_Expand) ? &expand : NULL;
}
