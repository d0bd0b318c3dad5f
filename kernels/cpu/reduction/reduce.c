/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduce* (ai.onnx 1 to 20), which are rows of ir/reduction.def. An empty set gives what the row
 * makes of its identity.
 */
#include "kernels/cpu/lib/reduce.h"
#include "device/kernel.h"

struct reduce_attrs {
    bool keepdims, noop_with_empty_axes;
};

static tssa_status *reduce_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct reduce_attrs *attrs = ARENA_NEW(setup->arena, struct reduce_attrs);
    TRY_ALLOC(attrs);
    attrs->keepdims = ir_attr_int(op, "keepdims", 1) != 0;
    attrs->noop_with_empty_axes = ir_attr_int(op, "noop_with_empty_axes", 0) != 0;
    *state = attrs;
    return NULL;
}

static tssa_status *marked_axes(const struct kernel_args *args, int rank, bool *marked)
{
    const struct reduce_attrs *attrs = args->state;
    int64_t axes[TSSA_MAX_RANK];
    size_t count = 0;
    const struct tensor *given;
    TRY(kernel_optional_tensor(args, 1, &given));
    if (given)
        TRY(kernel_ints(args, 1, axes, TSSA_MAX_RANK, &count));
    for (int i = 0; i < rank; i++)
        marked[i] = count == 0 && !attrs->noop_with_empty_axes;
    for (size_t i = 0; i < count; i++) {
        int axis;
        TRY(kernel_axis(axes[i], rank, &axis));
        marked[axis] = true;
    }
    return NULL;
}

/* Of integers of which there are none: the bound of the type that everything is beyond. */
static void fill_bounds(struct tensor *out, bool lowest)
{
    const struct dtype_info *info = dtype_info(out->dtype);
    bool is_signed = info->cls == DTYPE_CLASS_SIGNED;
    uint64_t highest = out->dtype == TSSA_BOOL ? 1
                       : is_signed             ? (UINT64_C(1) << (info->file_bits - 1)) - 1
                                               : UINT64_MAX >> (64 - info->file_bits);
    uint64_t low = is_signed ? ~highest : 0;
    for (size_t i = 0; i < tensor_count(out); i++)
        dtype_store_int64(out->dtype, (char *)out->data + i * info->size,
                          (int64_t)(lowest ? low : highest));
}

static tssa_status *reduce_run(struct kernel_args *args)
{
    const enum reduction_row row = args->op->info->reduction->row;
    const struct reduce_attrs *attrs = args->state;
    const struct tensor *in;
    struct tensor *out;
    bool marked[TSSA_MAX_RANK];
    int64_t dims[TSSA_MAX_RANK];
    int rank = 0;
    TRY(kernel_tensor(args, 0, &in));
    if (!dtype_in(args->op->info->types, in->dtype))
        return ERROR(TSSA_RUNTIME, "elements of type %s cannot be reduced",
                     tssa_dtype_name(in->dtype));
    TRY(marked_axes(args, in->rank, marked));
    struct axis_nest kept, reduced;
    axis_nest_init(&kept, in, marked, false);
    axis_nest_init(&reduced, in, marked, true);
    for (int i = 0; i < in->rank; i++)
        if (!marked[i] || attrs->keepdims)
            dims[rank++] = marked[i] ? 1 : in->dims[i];
    TRY(kernel_output(args, 0, in->dtype, rank, dims, &out));
    if (!out)
        return NULL;
    if (reduced.count == 0 && (row == REDUCTION_Max || row == REDUCTION_Min) &&
        !dtype_is_float(in->dtype))
        fill_bounds(out, row == REDUCTION_Max);
    else
        reduce_tensor(args->env->team, row, in, &kept, &reduced, NULL, out);
    return NULL;
}

extern const struct kernel cpu_kernel_reduce;
const struct kernel cpu_kernel_reduce = {.prepare = reduce_prepare, .run = reduce_run};
