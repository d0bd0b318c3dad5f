/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that rearrange the elements of one tensor: Transpose-25, DepthToSpace-13,
 * SpaceToDepth-13, Slice-13, Expand-13, Tile-13, ReverseSequence-10, Trilu-14 of ai.onnx. They hold
 * for every element type; all but Trilu are one or two boxes for the strided-copy engine.
 */
#include <string.h>

#include "device/expand.h"
#include "ir/slice.h"
#include "kernels/cpu/lib/strided.h"

static size_t element_size(const struct tensor *tensor)
{
    return dtype_info(tensor->dtype)->size;
}

/* ---- Transpose, DepthToSpace, SpaceToDepth --------------------------------------------------- */

struct transpose {
    int rank; /* -1: reverse the axes */
    int perm[TSSA_MAX_RANK];
};

static tssa_status *transpose_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                      const void **state)
{
    size_t count;
    const int64_t *perm = ir_attr_ints(op, "perm", &count);
    struct transpose *transpose = ARENA_NEW(setup->arena, struct transpose);
    TRY_ALLOC(transpose);
    bool seen[TSSA_MAX_RANK] = {false};
    *state = transpose;
    transpose->rank = -1;
    if (!perm)
        return NULL;
    if (count > TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "perm has %zu axes, at most %d are supported", count,
                     TSSA_MAX_RANK);
    transpose->rank = (int)count;
    for (size_t i = 0; i < count; i++) {
        int axis;
        TRY(kernel_axis(perm[i], (int)count, &axis));
        if (seen[axis])
            return ERROR(TSSA_MALFORMED, "perm has axis %d twice", axis);
        seen[axis] = true;
        transpose->perm[i] = axis;
    }
    return NULL;
}

/* How elements go where axes are permuted; `dims` are those of the operand. */
static struct strided_box permuted(int rank, const int64_t *dims, const int *perm)
{
    int64_t strides[TSSA_MAX_RANK], stride = 1;
    struct strided_box box = {.rank = rank};
    tensor_strides(rank, dims, strides);
    for (int i = rank - 1; i >= 0; i--) {
        box.dims[i] = dims[perm[i]];
        box.from[i] = strides[perm[i]];
        box.to[i] = stride;
        stride *= box.dims[i];
    }
    return box;
}

/* to = from with its axes permuted. */
static void permute(struct kernel_args *args, size_t size, int rank, const int64_t *dims,
                    const int *perm, void *to, const void *from)
{
    const struct strided_box box = permuted(rank, dims, perm);
    strided_copy(args->env->team, size, &box, to, from);
}

/* Makes the result's tensor, and finds the axes in it. *y is NULL where nobody wants it. */
static tssa_status *find_transpose(struct kernel_args *args, int *perm, const struct tensor **from,
                                   struct tensor **y)
{
    const struct transpose *transpose = args->state;
    const struct tensor *x;
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &x));
    if (transpose->rank >= 0 && transpose->rank != x->rank)
        return ERROR(TSSA_RUNTIME, "perm has %d axes, the operand has rank %d", transpose->rank,
                     x->rank);
    for (int i = 0; i < x->rank; i++) {
        perm[i] = transpose->rank >= 0 ? transpose->perm[i] : x->rank - 1 - i;
        dims[i] = x->dims[perm[i]];
    }
    *from = x;
    return kernel_output(args, 0, x->dtype, x->rank, dims, y);
}

static tssa_status *transpose_run(struct kernel_args *args)
{
    const struct tensor *x;
    struct tensor *y;
    int perm[TSSA_MAX_RANK];
    TRY(find_transpose(args, perm, &x, &y));
    if (y && tensor_count(y) > 0)
        permute(args, element_size(x), x->rank, x->dims, perm, y->data, x->data);
    return NULL;
}

/* The same, by a call that is set up. */
struct transpose_call {
    struct kernel_call call;
    struct strided_box box;
    size_t size;
    char *data[2]; /* from, to */
};

static void make_transpose(struct kernel_call *call)
{
    const struct transpose_call *t = (const struct transpose_call *)call;
    strided_copy(call->team, t->size, &t->box, t->data[1], t->data[0]);
}

static bool transpose_set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    struct transpose_call *t = (struct transpose_call *)call;
    const struct tensor *x;
    struct tensor *y;
    int perm[TSSA_MAX_RANK];
    tssa_status *status = find_transpose(args, perm, &x, &y);
    tssa_status_free(status);
    (void)known;
    if (status || !y || tensor_count(y) == 0)
        return false;
    t->box = permuted(x->rank, x->dims, perm);
    t->size = element_size(x);
    t->data[0] = x->data;
    t->data[1] = y->data;
    *call = (struct kernel_call){
        .make = make_transpose, .data = t->data, .n_data = 2, .team = args->env->team};
    return true;
}

const struct kernel cpu_kernel_transpose = {.prepare = transpose_prepare,
                                            .run = transpose_run,
                                            .set_up = transpose_set_up,
                                            .call_size = sizeof(struct transpose_call)};

struct blocks {
    int64_t size;
    bool columns_first; /* mode CRD: depth is column, row, depth instead of depth, column, row */
};

static tssa_status *blocks_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct blocks *blocks = ARENA_NEW(setup->arena, struct blocks);
    TRY_ALLOC(blocks);
    const char *mode = ir_attr_str(op, "mode", "DCR");
    blocks->size = ir_attr_int(op, "blocksize", 0);
    blocks->columns_first = strcmp(mode, "CRD") == 0;
    if (!blocks->columns_first && strcmp(mode, "DCR") != 0)
        return ERROR(TSSA_MALFORMED, "mode is \"%s\", not \"DCR\" or \"CRD\"", mode);
    if (blocks->size < 1 || blocks->size > INT32_MAX)
        return ERROR(TSSA_MALFORMED, "blocksize is %lld", (long long)blocks->size);
    *state = blocks;
    return NULL;
}

static tssa_status *depth_to_space_run(struct kernel_args *args)
{
    static const int dcr[6] = {0, 3, 4, 1, 5, 2}, crd[6] = {0, 1, 4, 2, 5, 3};
    const struct blocks *blocks = args->state;
    const struct tensor *x;
    struct tensor *y;
    int64_t b = blocks->size;
    TRY(kernel_tensor(args, 0, &x));
    if (x->rank != 4 || x->dims[1] % (b * b) != 0)
        return ERROR(TSSA_RUNTIME, "the operand must be [N, C, H, W] with C divisible by %lld",
                     (long long)(b * b));
    int64_t n = x->dims[0], c = x->dims[1] / (b * b), h = x->dims[2], w = x->dims[3];
    int64_t dims[4] = {n, c, 0, 0};
    if (!i64_mul(h, b, &dims[2]) || !i64_mul(w, b, &dims[3]))
        return ERROR(TSSA_LIMIT, "the result's dims do not fit 64 bits");
    TRY(kernel_output(args, 0, x->dtype, 4, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    if (blocks->columns_first)
        permute(args, element_size(x), 6, (int64_t[]){n, c, b, b, h, w}, crd, y->data, x->data);
    else
        permute(args, element_size(x), 6, (int64_t[]){n, b, b, c, h, w}, dcr, y->data, x->data);
    return NULL;
}

const struct kernel cpu_kernel_depth_to_space = {.prepare = blocks_prepare,
                                                 .run = depth_to_space_run};

static tssa_status *space_to_depth_run(struct kernel_args *args)
{
    static const int perm[6] = {0, 3, 5, 1, 2, 4};
    const struct blocks *blocks = args->state;
    const struct tensor *x;
    struct tensor *y;
    int64_t b = blocks->size;
    TRY(kernel_tensor(args, 0, &x));
    if (x->rank != 4 || x->dims[2] % b != 0 || x->dims[3] % b != 0)
        return ERROR(TSSA_RUNTIME,
                     "the operand must be [N, C, H, W] with H and W divisible by %lld",
                     (long long)b);
    int64_t n = x->dims[0], c = x->dims[1], h = x->dims[2] / b, w = x->dims[3] / b;
    int64_t dims[4] = {n, 0, h, w};
    if (!i64_mul(c, b * b, &dims[1]))
        return ERROR(TSSA_LIMIT, "the result's dims do not fit 64 bits");
    TRY(kernel_output(args, 0, x->dtype, 4, dims, &y));
    if (y && tensor_count(y) > 0)
        permute(args, element_size(x), 6, (int64_t[]){n, c, h, b, w, b}, perm, y->data, x->data);
    return NULL;
}

const struct kernel cpu_kernel_space_to_depth = {.prepare = blocks_prepare,
                                                 .run = space_to_depth_run};

/* ---- Slice ----------------------------------------------------------------------------------- */

/* Operand `index` as one integer per axis of the slice; absent: `fallback` counted up by
 * `increment`. */
static tssa_status *slice_operand(struct kernel_args *args, uint32_t index, size_t count,
                                  int64_t fallback, int64_t increment, int64_t *values)
{
    size_t n = count;
    if (index < args->n_inputs && args->inputs[index])
        TRY(kernel_ints(args, index, values, TSSA_MAX_RANK, &n));
    else
        for (size_t i = 0; i < count; i++)
            values[i] = fallback + (int64_t)i * increment;
    if (n != count)
        return ERROR(TSSA_RUNTIME, "starts has %zu elements but operand %u has %zu", count, index,
                     n);
    return NULL;
}

/*
 * Of one element along the first axes, with steps of 1 along the next, and whole along the others.
 */
static bool slice_is_piece(const struct ir_op *op, uint32_t result)
{
    const struct ir_type *from = ir_operand(op, 0)->type, *to = op->results[result].type;
    const struct ir_value *steps = ir_operand(op, 4);
    const struct tensor *constant = steps ? ir_value_constant(steps) : NULL;
    int axis = 0;
    if (from->kind != TYPE_TENSOR || from->rank < 0 || from->rank != to->rank ||
        (steps && !constant) || (constant && !dtype_is_integer(constant->dtype)))
        return false;
    for (size_t i = 0; constant && i < tensor_count(constant); i++)
        if (dtype_load_int64(constant->dtype,
                             (const char *)constant->data + i * element_size(constant)) != 1)
            return false;
    while (axis < to->rank && dim_is(to->dims[axis], 1))
        axis++;
    for (axis++; axis < to->rank; axis++)
        if (from->dims[axis] != to->dims[axis])
            return false;
    return true;
}

/* Do its elements lie one after the other? */
static bool is_dense(const struct strided_box *box)
{
    int64_t stride = 1;
    for (int i = box->rank - 1; i >= 0; i--) {
        if (box->dims[i] != 1 && box->from[i] != stride)
            return false;
        stride *= box->dims[i];
    }
    return true;
}

static tssa_status *slice_run(struct kernel_args *args)
{
    const struct tensor *x;
    struct tensor *y;
    int64_t starts[TSSA_MAX_RANK], ends[TSSA_MAX_RANK], axes[TSSA_MAX_RANK], steps[TSSA_MAX_RANK];
    int64_t strides[TSSA_MAX_RANK];
    bool seen[TSSA_MAX_RANK] = {false};
    size_t count;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_ints(args, 1, starts, TSSA_MAX_RANK, &count));
    TRY(slice_operand(args, 2, count, 0, 0, ends));
    TRY(slice_operand(args, 3, count, 0, 1, axes));
    TRY(slice_operand(args, 4, count, 1, 0, steps));

    struct strided_box box = {.rank = x->rank};
    int64_t offset = 0;
    tensor_strides(x->rank, x->dims, strides);
    for (int i = 0; i < x->rank; i++) {
        box.dims[i] = x->dims[i];
        box.from[i] = strides[i];
    }
    for (size_t i = 0; i < count; i++) {
        int axis;
        int64_t first = starts[i];
        TRY(kernel_axis(axes[i], x->rank, &axis));
        if (seen[axis])
            return ERROR(TSSA_RUNTIME, "axis %d is sliced twice", axis);
        seen[axis] = true;
        if (steps[i] == 0)
            return ERROR(TSSA_RUNTIME, "the step of axis %d is 0", axis);
        box.dims[axis] = slice_cut(x->dims[axis], &first, ends[i], steps[i]);
        if (box.dims[axis] > 0)
            offset += first * strides[axis];
        /* A step longer than the axis takes one element, and then its stride is not used. */
        box.from[axis] = box.dims[axis] > 1 ? steps[i] * strides[axis] : 0;
    }
    if (is_dense(&box) && kernel_share_piece(args, 0, offset, x->rank, box.dims))
        return NULL;
    TRY(kernel_output(args, 0, x->dtype, x->rank, box.dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    tensor_strides(x->rank, box.dims, box.to);
    strided_copy(args->env->team, element_size(x), &box, y->data,
                 (const char *)x->data + offset * (int64_t)element_size(x));
    return NULL;
}

/* Of slices that begin where they say: what a size bounds, or is counted from the end, is not
 * affine. Where they end, their sizes tell. */
static bool slice_set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    int64_t starts[TSSA_MAX_RANK], axes[TSSA_MAX_RANK];
    size_t count = 0;
    int axis;
    if (!known[1] || (args->n_inputs > 3 && args->inputs[3] && !known[3]) ||
        !slice_is_piece(args->op, 0))
        return false;
    tssa_status *status = kernel_ints(args, 1, starts, TSSA_MAX_RANK, &count);
    if (!status)
        status = slice_operand(args, 3, count, 0, 1, axes);
    const struct tensor *x = &args->inputs[0]->tensor;
    bool inside = !status;
    for (size_t i = 0; inside && i < count; i++) {
        status = kernel_axis(axes[i], x->rank, &axis);
        inside = !status && starts[i] >= 0 && starts[i] < x->dims[axis];
    }
    tssa_status_free(status);
    return inside && kernel_set_up_piece(args, known, call, slice_run);
}

const struct kernel cpu_kernel_slice = {.run = slice_run,
                                        .is_piece = slice_is_piece,
                                        .set_up = slice_set_up,
                                        .call_size = sizeof(struct kernel_call),
                                        .names = true};

/* ---- Expand and Tile ------------------------------------------------------------------------- */

static tssa_status *expand_run(struct kernel_args *args)
{
    const struct tensor *x;
    struct tensor *y;
    struct strided_box box = {0};
    int64_t shape[TSSA_MAX_RANK];
    size_t count;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_ints(args, 1, shape, TSSA_MAX_RANK, &count));
    TRY(expand_resolve(x, shape, (int)count, &box.rank, box.dims, box.from));
    TRY(kernel_output(args, 0, x->dtype, box.rank, box.dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    tensor_strides(box.rank, box.dims, box.to);
    strided_copy(args->env->team, element_size(x), &box, y->data, x->data);
    return NULL;
}

const struct kernel cpu_kernel_expand = {.run = expand_run};

static tssa_status *tile_run(struct kernel_args *args)
{
    const struct tensor *x;
    struct tensor *y;
    int64_t repeats[TSSA_MAX_RANK], dims[TSSA_MAX_RANK];
    int64_t to[TSSA_MAX_RANK], from[TSSA_MAX_RANK];
    size_t count;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_ints(args, 1, repeats, TSSA_MAX_RANK, &count));
    if ((int)count != x->rank)
        return ERROR(TSSA_RUNTIME, "repeats has %zu elements, the operand has rank %d", count,
                     x->rank);
    for (int i = 0; i < x->rank; i++)
        if (repeats[i] < 0 || !i64_mul(x->dims[i], repeats[i], &dims[i]))
            return ERROR(TSSA_RUNTIME, "cannot repeat a dim of %lld %lld times",
                         (long long)x->dims[i], (long long)repeats[i]);
    TRY(kernel_output(args, 0, x->dtype, x->rank, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    struct strided_box box = {.rank = 0};
    tensor_strides(x->rank, dims, to);
    tensor_strides(x->rank, x->dims, from);
    for (int i = 0; i < x->rank; i++) {
        strided_push(&box, repeats[i], to[i] * x->dims[i], 0);
        strided_push(&box, x->dims[i], to[i], from[i]);
    }
    strided_copy(args->env->team, element_size(x), &box, y->data, x->data);
    return NULL;
}

const struct kernel cpu_kernel_tile = {.run = tile_run};

/* ---- ReverseSequence ------------------------------------------------------------------------- */

struct reverse_sequence {
    int64_t batch_axis, time_axis;
};

static tssa_status *reverse_sequence_prepare(const struct ir_op *op,
                                             const struct kernel_setup *setup, const void **state)
{
    struct reverse_sequence *reverse = ARENA_NEW(setup->arena, struct reverse_sequence);
    TRY_ALLOC(reverse);
    reverse->batch_axis = ir_attr_int(op, "batch_axis", 1);
    reverse->time_axis = ir_attr_int(op, "time_axis", 0);
    *state = reverse;
    return NULL;
}

static tssa_status *reverse_sequence_run(struct kernel_args *args)
{
    const struct reverse_sequence *reverse = args->state;
    const struct tensor *x, *lengths;
    struct tensor *y;
    int batch, time;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &lengths));
    TRY(kernel_axis(reverse->batch_axis, x->rank, &batch));
    TRY(kernel_axis(reverse->time_axis, x->rank, &time));
    if (batch == time)
        return ERROR(TSSA_RUNTIME, "batch_axis and time_axis are both %d", batch);
    if (lengths->dtype != TSSA_INT64 || lengths->rank != 1 || lengths->dims[0] != x->dims[batch])
        return ERROR(TSSA_RUNTIME, "sequence_lens must be i64[%lld], one per batch",
                     (long long)x->dims[batch]);
    const int64_t *length = lengths->data;
    for (int64_t b = 0; b < x->dims[batch]; b++)
        if (length[b] < 0 || length[b] > x->dims[time])
            return ERROR(TSSA_RUNTIME, "sequence_lens[%lld] is %lld, not within 0 and %lld",
                         (long long)b, (long long)length[b], (long long)x->dims[time]);
    TRY(kernel_output(args, 0, x->dtype, x->rank, x->dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;

    struct strided_box box = {.rank = x->rank};
    int64_t strides[TSSA_MAX_RANK];
    int64_t size = (int64_t)element_size(x);
    tensor_strides(x->rank, x->dims, strides);
    for (int i = 0; i < x->rank; i++) {
        box.dims[i] = i == batch ? 1 : x->dims[i];
        box.to[i] = box.from[i] = strides[i];
    }
    for (int64_t b = 0; b < x->dims[batch]; b++) {
        int64_t at = b * strides[batch] * size, step = strides[time] * size;
        const char *from = (const char *)x->data + at;
        char *to = (char *)y->data + at;
        box.dims[time] = length[b];
        box.from[time] = -strides[time];
        if (length[b] > 0)
            strided_copy(args->env->team, (size_t)size, &box, to, from + (length[b] - 1) * step);
        box.dims[time] = x->dims[time] - length[b];
        box.from[time] = strides[time];
        if (box.dims[time] > 0)
            strided_copy(args->env->team, (size_t)size, &box, to + length[b] * step,
                         from + length[b] * step);
    }
    return NULL;
}

const struct kernel cpu_kernel_reverse_sequence = {.prepare = reverse_sequence_prepare,
                                                   .run = reverse_sequence_run};

/* ---- Trilu ----------------------------------------------------------------------------------- */

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

struct trilu {
    bool upper;
};

static tssa_status *trilu_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                  const void **state)
{
    struct trilu *trilu = ARENA_NEW(setup->arena, struct trilu);
    TRY_ALLOC(trilu);
    trilu->upper = ir_attr_int(op, "upper", 1) != 0;
    *state = trilu;
    return NULL;
}

/* Rows [begin, end) of all matrices, one after the other. */
struct trilu_job {
    bool upper;
    bool is_string;
    size_t size;
    int64_t rows, columns, k;
    union stored_element zero;
    const char *from;
    char *to;
};

/* A zero is zero bytes, but of strings. */
static void trilu_zeros(const struct trilu_job *job, int64_t n, char *to)
{
    if (job->is_string)
        contiguous_fill(NULL, job->size, n, to, &job->zero);
    else
        memset(to, 0, (size_t)n * job->size);
}

static void trilu_rows(void *context, int64_t begin, int64_t end)
{
    const struct trilu_job *job = context;
    for (int64_t r = begin; r < end; r++) {
        /* The kept columns are [first, last). */
        int64_t diagonal = r % job->rows + job->k;
        int64_t first = job->upper ? clamp(diagonal, 0, job->columns) : 0;
        int64_t last = job->upper ? job->columns : clamp(diagonal + 1, 0, job->columns);
        size_t size = job->size, row = (size_t)(r * job->columns) * size;
        char *to = job->to + row;
        trilu_zeros(job, first, to);
        memcpy(to + (size_t)first * size, job->from + row + (size_t)first * size,
               (size_t)(last - first) * size);
        trilu_zeros(job, job->columns - last, to + (size_t)last * size);
    }
}

static tssa_status *trilu_run(struct kernel_args *args)
{
    const struct trilu *trilu = args->state;
    const struct tensor *x;
    struct tensor *y;
    int64_t k = 0;
    TRY(kernel_tensor(args, 0, &x));
    if (x->rank < 2)
        return ERROR(TSSA_RUNTIME, "the operand must have rank 2 or more, not %d", x->rank);
    if (args->n_inputs > 1 && args->inputs[1])
        TRY(kernel_scalar_int(args, 1, &k));
    TRY(kernel_output(args, 0, x->dtype, x->rank, x->dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    struct trilu_job job = {.upper = trilu->upper,
                            .is_string = x->dtype == TSSA_STRING,
                            .size = element_size(x),
                            .rows = x->dims[x->rank - 2],
                            .columns = x->dims[x->rank - 1],
                            .from = x->data,
                            .to = y->data};
    job.k = clamp(k, -job.rows - 1, job.columns + 1);
    stored_element_zero(x->dtype, &job.zero);
    int64_t row_bytes = job.columns * (int64_t)job.size;
    team_for(args->env->team, dims_product(x->dims, 0, x->rank - 1), 65536 / row_bytes + 1,
             trilu_rows, &job);
    return NULL;
}

const struct kernel cpu_kernel_trilu = {.prepare = trilu_prepare, .run = trilu_run};
