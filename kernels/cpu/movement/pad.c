/* SPDX-License-Identifier: Apache-2.0 */
/* Pad-25 and CenterCropPad-18 of ai.onnx, for every element type. */
#include <string.h>

#include "kernels/cpu/lib/strided.h"

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

struct pad {
    enum pad_mode mode;
};

static tssa_status *pad_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                const void **state)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *mode = ir_attr_str(op, "mode", "constant");
    struct pad *pad = ARENA_NEW(setup->arena, struct pad);
    TRY_ALLOC(pad);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(mode, names[i]) == 0) {
            pad->mode = (enum pad_mode)i;
            *state = pad;
            return NULL;
        }
    }
    return ERROR(TSSA_MALFORMED, "mode is \"%s\", not constant, reflect, edge or wrap", mode);
}

/*
 * y = value, and x where the shifted x is inside y. Element i of axis a of y is i - before[a] of x.
 */
static void pad_constant(struct kernel_args *args, const struct tensor *x, const int64_t *before,
                         const union stored_element *value, struct tensor *y)
{
    size_t size = dtype_info(x->dtype)->size;
    int64_t x_strides[TSSA_MAX_RANK], y_strides[TSSA_MAX_RANK], x_offset = 0, y_offset = 0;
    struct strided_box box = {.rank = 0};
    bool whole = true;
    tensor_strides(x->rank, x->dims, x_strides);
    tensor_strides(y->rank, y->dims, y_strides);
    for (int i = 0; i < x->rank; i++) {
        int64_t x_first = before[i] < 0 ? -before[i] : 0, y_first = before[i] > 0 ? before[i] : 0;
        int64_t x_left = x->dims[i] - x_first, y_left = y->dims[i] - y_first;
        int64_t dim = x_left < y_left ? x_left : y_left;
        whole = whole && dim == y->dims[i];
        strided_push(&box, dim < 0 ? 0 : dim, y_strides[i], x_strides[i]);
        x_offset += dim > 0 ? x_first * x_strides[i] : 0;
        y_offset += dim > 0 ? y_first * y_strides[i] : 0;
    }
    if (!whole)
        contiguous_fill(args->env->team, size, (int64_t)tensor_count(y), y->data, value);
    strided_copy(args->env->team, size, &box, (char *)y->data + y_offset * (int64_t)size,
                 (const char *)x->data + x_offset * (int64_t)size);
}

/* One axis of a pad that repeats elements of x: elements [low, high) of x are kept. */
struct pad_axis {
    int64_t before, low, high;
};

/* The element of x that element `i` of y is. Repeated reflection, as numpy does it. */
static int64_t pad_source(enum pad_mode mode, const struct pad_axis *axis, int64_t i)
{
    int64_t n = axis->high - axis->low, at = i - axis->before;
    if (at >= 0 && at < n)
        return axis->low + at;
    if (mode == PAD_EDGE)
        return at < 0 ? axis->low : axis->high - 1;
    int64_t period = mode == PAD_WRAP ? n : n > 1 ? 2 * (n - 1) : 1;
    at %= period;
    at += at < 0 ? period : 0;
    return axis->low + (at < n ? at : period - at);
}

/* Elements that lie anywhere in a row of x, at so many bytes, one behind the other. */
typedef void (*pick_fn)(char *restrict to, const char *restrict from, const int64_t *columns,
                        int64_t n);

#define PICK(size)                                                                                 \
    static void pick_##size(char *restrict to, const char *restrict from, const int64_t *columns,  \
                            int64_t n)                                                             \
    {                                                                                              \
        for (int64_t c = 0; c < n; c++)                                                            \
            memcpy(to + c * (size), from + columns[c], size);                                      \
    }
PICK(1)
PICK(2)
PICK(4)
PICK(8)
PICK(16)

static const pick_fn pick_of_size[] = {
    [1] = pick_1, [2] = pick_2, [4] = pick_4, [8] = pick_8, [16] = pick_16};

/* The rows of y, by tables of which element of x (in bytes along the axis) each coordinate is. */
struct pad_job {
    const struct tensor *x, *y;
    size_t size;
    pick_fn pick;
    const int64_t *table[TSSA_MAX_RANK];
    int64_t inner_first, inner_last; /* columns of y that are one piece of x */
};

/* The row behind the one at these coordinates. */
static void next_row(const struct tensor *y, int64_t *at)
{
    for (int i = y->rank - 2; i >= 0 && ++at[i] == y->dims[i]; i--)
        at[i] = 0;
}

static void pad_rows(void *context, int64_t begin, int64_t end)
{
    const struct pad_job *job = context;
    const int last = job->y->rank - 1;
    const int64_t *columns = job->table[last], width = job->y->dims[last],
                  size = (int64_t)job->size;
    const int64_t first = job->inner_first, behind = job->inner_last;
    int64_t at[TSSA_MAX_RANK], rest = begin;
    for (int i = last - 1; i >= 0; i--) {
        at[i] = rest % job->y->dims[i];
        rest /= job->y->dims[i];
    }
    char *to = (char *)job->y->data + begin * width * size;
    for (int64_t row = begin; row < end; row++, to += width * size) {
        const char *from = job->x->data;
        for (int i = 0; i < last; i++)
            from += job->table[i][at[i]];
        job->pick(to, from, columns, first);
        if (behind > first)
            memcpy(to + first * size, from + columns[first], (size_t)((behind - first) * size));
        job->pick(to + behind * size, from, columns + behind, width - behind);
        next_row(job->y, at);
    }
}

static tssa_status *pad_repeat(struct kernel_args *args, enum pad_mode mode, const struct tensor *x,
                               const struct pad_axis *axes, struct tensor *y)
{
    const size_t size = dtype_info(x->dtype)->size;
    struct pad_job job = {.x = x, .y = y, .size = size, .pick = pick_of_size[size]};
    int64_t strides[TSSA_MAX_RANK];
    size_t entries = 0;
    struct buffer *scratch;
    for (int i = 0; i < y->rank; i++)
        entries += (size_t)y->dims[i];
    TRY(kernel_scratch(args, entries * sizeof(int64_t), &scratch));
    int64_t *table = scratch->data;
    tensor_strides(x->rank, x->dims, strides);
    for (int i = 0; i < y->rank; i++) {
        for (int64_t j = 0; j < y->dims[i]; j++)
            table[j] = pad_source(mode, &axes[i], j) * strides[i] * (int64_t)job.size;
        job.table[i] = table;
        table += y->dims[i];
    }
    const struct pad_axis *inner = &axes[y->rank - 1];
    int64_t width = y->dims[y->rank - 1], last = inner->before + inner->high - inner->low;
    job.inner_first = inner->before < width ? inner->before : width;
    job.inner_last = last < width ? last : width;
    team_for(args->env->team, dims_product(y->dims, 0, y->rank - 1),
             65536 / (width * (int64_t)job.size) + 1, pad_rows, &job);
    buffer_release(scratch);
    return NULL;
}

/* The pads of every axis of x, from operand 1 and the axes in operand 3. */
static tssa_status *read_pads(struct kernel_args *args, const struct tensor *x, int64_t *before,
                              int64_t *after)
{
    int64_t pads[2 * TSSA_MAX_RANK], axes[TSSA_MAX_RANK];
    bool seen[TSSA_MAX_RANK] = {false};
    size_t count, n_axes = (size_t)x->rank;
    TRY(kernel_ints(args, 1, pads, 2 * TSSA_MAX_RANK, &count));
    for (int i = 0; i < x->rank; i++) {
        before[i] = after[i] = 0;
        axes[i] = i;
    }
    if (args->n_inputs > 3 && args->inputs[3])
        TRY(kernel_ints(args, 3, axes, TSSA_MAX_RANK, &n_axes));
    if (count != 2 * n_axes)
        return ERROR(TSSA_RUNTIME, "pads has %zu elements, not two for each of %zu axes", count,
                     n_axes);
    for (size_t i = 0; i < n_axes; i++) {
        int axis;
        TRY(kernel_axis(axes[i], x->rank, &axis));
        if (seen[axis])
            return ERROR(TSSA_RUNTIME, "axis %d is padded twice", axis);
        seen[axis] = true;
        before[axis] = pads[i];
        after[axis] = pads[n_axes + i];
    }
    return NULL;
}

static tssa_status *pad_value(const struct kernel_args *args, const struct tensor *x,
                              union stored_element *value)
{
    const struct tensor *constant;
    stored_element_zero(x->dtype, value);
    TRY(kernel_optional_tensor(args, 2, &constant));
    if (!constant)
        return NULL;
    if (constant->dtype != x->dtype || tensor_count(constant) != 1)
        return ERROR(TSSA_RUNTIME, "constant_value must be one %s", dtype_info(x->dtype)->ir_name);
    memcpy(value, constant->data, dtype_info(x->dtype)->size);
    return NULL;
}

/* The parts of the axis that negative pads leave of x; the pads that are then repeated. */
static tssa_status *pad_axis_init(struct pad_axis *axis, int64_t dim, int64_t before, int64_t after,
                                  int64_t result, int index)
{
    axis->low = before < 0 ? -before : 0;
    axis->high = after < 0 ? dim + after : dim;
    axis->before = before > 0 ? before : 0;
    if (result > 0 && axis->low >= axis->high)
        return ERROR(TSSA_RUNTIME, "axis %d has no element that could be repeated", index);
    return NULL;
}

static tssa_status *pad_run(struct kernel_args *args)
{
    const struct pad *pad = args->state;
    const struct tensor *x;
    struct tensor *y;
    union stored_element value;
    int64_t before[TSSA_MAX_RANK], after[TSSA_MAX_RANK], dims[TSSA_MAX_RANK];
    struct pad_axis axes[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &x));
    TRY(read_pads(args, x, before, after));
    TRY(pad_value(args, x, &value));
    for (int i = 0; i < x->rank; i++) {
        if (before[i] == INT64_MIN || !i64_add(x->dims[i], before[i], &dims[i]) ||
            !i64_add(dims[i], after[i], &dims[i]) || dims[i] < 0)
            return ERROR(TSSA_RUNTIME, "cannot pad axis %d of size %lld by %lld and %lld", i,
                         (long long)x->dims[i], (long long)before[i], (long long)after[i]);
        if (pad->mode != PAD_CONSTANT)
            TRY(pad_axis_init(&axes[i], x->dims[i], before[i], after[i], dims[i], i));
    }
    TRY(kernel_output(args, 0, x->dtype, x->rank, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    if (pad->mode == PAD_CONSTANT || x->rank == 0)
        pad_constant(args, x, before, &value, y);
    else
        return pad_repeat(args, pad->mode, x, axes, y);
    return NULL;
}

const struct kernel cpu_kernel_pad = {.prepare = pad_prepare, .run = pad_run};

/* ---- CenterCropPad --------------------------------------------------------------------------- */

struct center_crop_pad {
    int n_axes; /* -1: all */
    int64_t axes[TSSA_MAX_RANK];
};

static tssa_status *center_crop_pad_prepare(const struct ir_op *op,
                                            const struct kernel_setup *setup, const void **state)
{
    size_t count;
    const int64_t *axes = ir_attr_ints(op, "axes", &count);
    struct center_crop_pad *center = ARENA_NEW(setup->arena, struct center_crop_pad);
    TRY_ALLOC(center);
    *state = center;
    center->n_axes = -1;
    if (!axes)
        return NULL;
    if (count > TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "axes has %zu elements, at most %d are supported", count,
                     TSSA_MAX_RANK);
    center->n_axes = (int)count;
    for (size_t i = 0; i < count; i++)
        center->axes[i] = axes[i];
    return NULL;
}

static tssa_status *center_crop_pad_run(struct kernel_args *args)
{
    const struct center_crop_pad *center = args->state;
    const struct tensor *x;
    struct tensor *y;
    union stored_element zero;
    int64_t shape[TSSA_MAX_RANK], dims[TSSA_MAX_RANK], before[TSSA_MAX_RANK] = {0};
    bool seen[TSSA_MAX_RANK] = {false};
    size_t count;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_ints(args, 1, shape, TSSA_MAX_RANK, &count));
    int n_axes = center->n_axes < 0 ? x->rank : center->n_axes;
    if ((int)count != n_axes)
        return ERROR(TSSA_RUNTIME, "shape has %zu elements for %d axes", count, n_axes);
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    for (int i = 0; i < n_axes; i++) {
        int axis;
        TRY(kernel_axis(center->n_axes < 0 ? i : center->axes[i], x->rank, &axis));
        if (seen[axis] || shape[i] < 0)
            return ERROR(TSSA_RUNTIME,
                         seen[axis] ? "axis %d is given twice"
                                    : "the target size of axis %d is negative",
                         axis);
        seen[axis] = true;
        dims[axis] = shape[i];
        /* What does not divide evenly is cropped, or padded, at the end. */
        before[axis] = shape[i] >= x->dims[axis] ? (shape[i] - x->dims[axis]) / 2
                                                 : -((x->dims[axis] - shape[i]) / 2);
    }
    TRY(kernel_output(args, 0, x->dtype, x->rank, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    stored_element_zero(x->dtype, &zero);
    pad_constant(args, x, before, &zero, y);
    return NULL;
}

const struct kernel cpu_kernel_center_crop_pad = {.prepare = center_crop_pad_prepare,
                                                  .run = center_crop_pad_run};
