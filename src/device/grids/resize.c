/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places and weights are the host's, which makes the tables that the CPU goes by, of a few bytes
 * for each element along an axis, and copies them to the device.
 */
#include "device/grids/resize.h"

#include <string.h>

#include "device/device.h"
#include "device/grids/operands.h"
#include "device/grids/programs.h"
#include "device/grids/texts.h"
#include "device/resize.h"

#define FLOATS (DTYPE_BIT(TSSA_FLOAT) | DTYPE_BIT(TSSA_DOUBLE))

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    const tssa_dtype dtype = ir_operand(op, 0)->type->dtype;
    struct resize *state = ARENA_NEW(setup->arena, struct resize);
    TRY_ALLOC(state);
    TRY(resize_decode(op, state));
    *result = state;
    return state->options.mode == RESAMPLE_NEAREST
               ? grids_text_want(setup->context, GRIDS_TEXT_NEAREST, grids_word(dtype))
               : grids_text_want(setup->context, GRIDS_TEXT_RESAMPLE, dtype);
}

/* ---- Operands -------------------------------------------------------------------------------- */

/* One that tells sizes, with its elements in the host's memory. */
struct small {
    struct tensor tensor;
    double elements[2 * TSSA_MAX_RANK];
};

/* *read NULL: it is absent. One with more elements is read in part: it does not fit, by its dims.
 */
static tssa_status *read_small(const struct kernel_args *args, uint32_t index, struct small *small,
                               const struct tensor **read)
{
    const struct tensor *tensor;
    TRY(kernel_optional_tensor(args, index, &tensor));
    *read = NULL;
    if (!tensor)
        return NULL;
    const size_t size = tensor_bytes(tensor);
    TRY(grids_read(args, index, 0, small->elements,
                   size < sizeof small->elements ? size : sizeof small->elements));
    small->tensor = *tensor;
    small->tensor.data = small->elements;
    small->tensor.offset = 0;
    *read = &small->tensor;
    return NULL;
}

static tssa_status *resolve(const struct kernel_args *args, const struct tensor *x,
                            struct resample_axis *axes)
{
    struct small smalls[3];
    struct resize_operands operands = {.in = x};
    TRY(read_small(args, 1, &smalls[0], &operands.roi));
    TRY(read_small(args, 2, &smalls[1], &operands.scales));
    TRY(read_small(args, 3, &smalls[2], &operands.sizes));
    return resize_resolve(args->state, &operands, axes);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* Of all axes that change, one behind the other, and before them one of an axis that does not. */
struct tables {
    int64_t taps[TSSA_MAX_RANK], first[TSSA_MAX_RANK];
    int64_t count;   /* of places, and of weights */
    int64_t *places; /* the host's; behind them the weights */
    struct buffer *on_device;
};

static size_t width_of(const struct resize *state, tssa_dtype dtype)
{
    return state->options.mode == RESAMPLE_NEAREST ? 0 : tssa_dtype_size(dtype);
}

/* Copies a table behind what is there. */
static void put_table(const struct resample_table *table, int64_t out, size_t width, int64_t first,
                      struct tables *tables)
{
    const int64_t n = out * table->taps;
    char *weights = (char *)(tables->places + tables->count) + (size_t)first * width;
    memcpy(tables->places + first, table->index, (size_t)n * sizeof *table->index);
    for (int64_t o = 0; o < out; o++)
        if (table->outside[o])
            tables->places[first + o * table->taps] = -1;
    if (width)
        memcpy(weights, width == sizeof(float) ? (const void *)table->narrow : table->weight,
               (size_t)n * width);
}

static void put_one(size_t width, struct tables *tables)
{
    const float narrow = 1;
    const double wide = 1;
    tables->places[0] = 0;
    if (width)
        memcpy(tables->places + tables->count,
               width == sizeof(float) ? (const void *)&narrow : &wide, width);
}

/* How large they are, and what making the largest of them takes. */
static tssa_status *measure(const struct resize *state, int rank, const struct resample_axis *axes,
                            struct tables *tables, size_t *most)
{
    *most = 0;
    tables->count = 1;
    for (int i = 0; i < rank; i++) {
        struct resample_table table;
        size_t bytes;
        if (!resize_changes(&axes[i]))
            continue;
        TRY(resample_table_size(&state->options, &axes[i], &table, &bytes));
        tables->taps[i] = table.taps;
        tables->first[i] = tables->count;
        if (!i64_add(tables->count, axes[i].out * table.taps, &tables->count))
            return ERROR(TSSA_LIMIT, "the axes are too long");
        *most = bytes > *most ? bytes : *most;
    }
    return NULL;
}

static tssa_status *copy_tables(struct kernel_args *args, struct tables *tables, size_t bytes)
{
    struct device_stream *stream = args->env->stream;
    TRY(kernel_scratch(args, bytes, &tables->on_device));
    return stream->context->device->copy(stream, DEVICE_COPY_IN, grids_buffer(tables->on_device),
                                         (struct device_place){tables->places, 0}, bytes);
}

static tssa_status *make_tables(struct kernel_args *args, tssa_dtype dtype, int rank,
                                const struct resample_axis *axes, struct tables *tables)
{
    const struct resize *state = args->state;
    const tssa_allocator *allocator = args->env->stream->context->allocator;
    const size_t width = width_of(state, dtype);
    size_t most, bytes, all;
    TRY(measure(state, rank, axes, tables, &most));
    if (!size_mul((size_t)tables->count, sizeof *tables->places + width, &bytes) ||
        !size_add(bytes, most, &all))
        return ERROR(TSSA_LIMIT, "the axes are too long");
    tables->places = allocator_alloc(allocator, bytes);
    void *memory = allocator_alloc(allocator, most + 1);
    tssa_status *status = tables->places && memory ? NULL : status_out_of_memory();
    if (!status)
        put_one(width, tables);
    for (int i = 0; i < rank && !status; i++) {
        struct resample_table table = {.taps = tables->taps[i]};
        if (!resize_changes(&axes[i]))
            continue;
        resample_table_fill(&state->options, &axes[i], memory, &table);
        put_table(&table, axes[i].out, width, tables->first[i], tables);
    }
    if (!status)
        status = copy_tables(args, tables, bytes);
    allocator_free(allocator, memory);
    allocator_free(allocator, tables->places);
    return status;
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* Of dims that are aligned at their ends; `lacking` of those that are not there. */
static void put_axes(struct launch_param *params, int rank, const int64_t *values, int64_t lacking)
{
    for (int i = 0; i < TSSA_MAX_RANK; i++) {
        const int axis = i - (TSSA_MAX_RANK - rank);
        params[i] = grids_number(axis < 0 ? lacking : values[axis]);
    }
}

static void find_steps(int rank, const int64_t *dims, int64_t *steps)
{
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        steps[i] = step;
        step *= dims[i];
    }
}

static int64_t bits_of(tssa_dtype dtype, double value)
{
    int64_t bits = 0;
    if (dtype_in(FLOATS, dtype))
        dtype_store_double(dtype, &bits, value);
    return bits;
}

static tssa_status *launch_nearest(struct kernel_args *args, const struct tensor *x,
                                   const struct tensor *y, struct device_place from,
                                   const struct tables *tables)
{
    const struct resize *state = args->state;
    const int64_t count = (int64_t)tensor_count(y);
    struct launch_param params[5 + 3 * TSSA_MAX_RANK] = {
        grids_memory(from), grids_memory(grids_buffer(tables->on_device)),
        grids_memory(grids_place(y)), grids_number(count),
        grids_number(bits_of(x->dtype, state->extrapolation))};
    int64_t steps[TSSA_MAX_RANK];
    find_steps(x->rank, x->dims, steps);
    put_axes(params + 5, x->rank, y->dims, 1);
    put_axes(params + 5 + TSSA_MAX_RANK, x->rank, steps, 0);
    put_axes(params + 5 + 2 * TSSA_MAX_RANK, x->rank, tables->first, -1);
    return grids_launch_each(args->env->stream, GRIDS_TEXT_NEAREST, grids_word(x->dtype), 0, count,
                             params, sizeof params / sizeof *params);
}

enum { AXES_OF_LAUNCH = 3 };

/* A launch: of elements `dims`, of which `n` axes become those of `to`. */
struct pass {
    tssa_dtype dtype;
    int rank, n;
    int axes[AXES_OF_LAUNCH];
    int64_t dims[TSSA_MAX_RANK], to_dims[TSSA_MAX_RANK];
    struct device_place from, to;
};

static tssa_status *launch_pass(struct kernel_args *args, const struct pass *pass,
                                const struct tables *tables)
{
    enum { AXES_AT = 6, MORE_AT = AXES_AT + 3 * AXES_OF_LAUNCH };
    const struct resize *state = args->state;
    const struct device_place places = grids_buffer(tables->on_device);
    struct device_place weights = places;
    struct launch_param params[MORE_AT + 2 * TSSA_MAX_RANK];
    int64_t steps[TSSA_MAX_RANK], count = 1;
    weights.offset += (size_t)tables->count * sizeof *tables->places;
    for (int i = 0; i < pass->rank; i++)
        count *= pass->to_dims[i];
    params[0] = grids_memory(pass->from);
    params[1] = grids_memory(places);
    params[2] = grids_memory(weights);
    params[3] = grids_memory(pass->to);
    params[4] = grids_number(count);
    params[5] = grids_number(bits_of(pass->dtype, state->extrapolation));
    for (int i = 0; i < AXES_OF_LAUNCH; i++) {
        const bool is_there = i < pass->n;
        const int axis = is_there ? pass->axes[i] : 0;
        struct launch_param *own = params + AXES_AT + i;
        own[0] = grids_number(is_there ? axis + TSSA_MAX_RANK - pass->rank : -1);
        own[AXES_OF_LAUNCH] = grids_number(is_there ? tables->taps[axis] : 1);
        own[2 * AXES_OF_LAUNCH] = grids_number(is_there ? tables->first[axis] : 0);
    }
    find_steps(pass->rank, pass->dims, steps);
    put_axes(params + MORE_AT, pass->rank, pass->to_dims, 1);
    put_axes(params + MORE_AT + TSSA_MAX_RANK, pass->rank, steps, 0);
    return grids_launch_each(args->env->stream, GRIDS_TEXT_RESAMPLE, pass->dtype, 0, count, params,
                             sizeof params / sizeof *params);
}

/* The next axes of the order, into `to`, or where there are more axes into new memory. */
static tssa_status *run_pass(struct kernel_args *args, struct pass *pass, const int *order,
                             int left, const struct resample_axis *axes, struct device_place y,
                             const struct tables *tables, struct buffer **buffer)
{
    size_t bytes = tssa_dtype_size(pass->dtype);
    pass->n = left < AXES_OF_LAUNCH ? left : AXES_OF_LAUNCH;
    memcpy(pass->to_dims, pass->dims, sizeof pass->dims);
    for (int i = 0; i < pass->n; i++) {
        pass->axes[i] = order[i];
        pass->to_dims[order[i]] = axes[order[i]].out;
    }
    for (int i = 0; i < pass->rank; i++)
        if (!size_mul(bytes, (size_t)pass->to_dims[i], &bytes))
            return ERROR(TSSA_LIMIT, "the result is larger than memory can be");
    pass->to = y;
    if (left > pass->n) {
        TRY(kernel_scratch(args, bytes, buffer));
        pass->to = grids_buffer(*buffer);
    }
    TRY(launch_pass(args, pass, tables));
    pass->from = pass->to;
    memcpy(pass->dims, pass->to_dims, sizeof pass->dims);
    return NULL;
}

static tssa_status *interpolate(struct kernel_args *args, const struct tensor *x,
                                const struct tensor *y, struct device_place from,
                                const struct resample_axis *axes, const struct tables *tables)
{
    enum { MOST = (TSSA_MAX_RANK + AXES_OF_LAUNCH - 1) / AXES_OF_LAUNCH };
    struct pass pass = {.dtype = x->dtype, .rank = x->rank, .from = from};
    struct buffer *buffers[MOST] = {NULL};
    int order[TSSA_MAX_RANK];
    const int count = resize_order(x->rank, axes, order);
    tssa_status *status = NULL;
    memcpy(pass.dims, x->dims, sizeof pass.dims);
    for (int i = 0; i < count && !status; i += AXES_OF_LAUNCH)
        status = run_pass(args, &pass, order + i, count - i, axes, grids_place(y), tables,
                          &buffers[i / AXES_OF_LAUNCH]);
    for (int i = 0; i < MOST; i++)
        buffer_release(buffers[i]);
    return status;
}

/* ---- The kernel ------------------------------------------------------------------------------ */

static tssa_status *resize(struct kernel_args *args, const struct tensor *x, const struct tensor *y,
                           const struct resample_axis *axes, struct buffer **own)
{
    const struct resize *state = args->state;
    struct tables tables;
    struct device_place from;
    for (int i = 0; i < TSSA_MAX_RANK; i++)
        tables.first[i] = -1;
    tables.on_device = NULL;
    TRY(grids_operand(args, 0, own, &from));
    tssa_status *status = make_tables(args, x->dtype, x->rank, axes, &tables);
    if (!status)
        status = state->options.mode == RESAMPLE_NEAREST
                     ? launch_nearest(args, x, y, from, &tables)
                     : interpolate(args, x, y, from, axes, &tables);
    buffer_release(tables.on_device);
    return status;
}

static tssa_status *run(struct kernel_args *args)
{
    struct resample_axis axes[TSSA_MAX_RANK];
    int64_t dims[TSSA_MAX_RANK];
    const struct tensor *x;
    struct tensor *y;
    struct buffer *own = NULL;
    int order[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &x));
    TRY(resolve(args, x, axes));
    for (int i = 0; i < x->rank; i++)
        dims[i] = axes[i].out;
    TRY(kernel_output(args, 0, x->dtype, x->rank, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    if (resize_order(x->rank, axes, order) == 0)
        return grids_copy(args, 0, y);
    tssa_status *status = resize(args, x, y, axes, &own);
    buffer_release(own);
    return status;
}

const struct kernel *grids_resize_find(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run};
    if (!ir_op_is(op, IR_OP_Resize) || !ir_operand(op, 0))
        return NULL;
    const tssa_dtype dtype = ir_operand(op, 0)->type->dtype;
    const bool moves = strcmp(ir_attr_str(op, "mode", "nearest"), "nearest") == 0 &&
                       strcmp(ir_attr_str(op, "coordinate_transformation_mode", ""),
                              "tf_crop_and_resize") != 0; /* which converts a number */
    return dtype_in(FLOATS, dtype) || (moves && grids_word(dtype) != TSSA_UNDEFINED) ? &kernel
                                                                                     : NULL;
}
