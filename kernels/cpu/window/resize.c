/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize-19 of ai.onnx, and with it Resize-11 to 18; the importer carries Resize-10 and Upsample as
 * it.
 *
 * Interpolation is separable: one pass per axis that changes, shrinking axes first; in float32 for
 * float32 and narrower, in double for the others, with weights that are made in double. Nearest
 * moves elements, of any type.
 */
#include <math.h>
#include <string.h>

#include "device/resize.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/window/resample_pass.h"
#include "kernels/cpu/window/resize_nearest.h"

static tssa_status *run_nearest(struct kernel_args *args, const struct tensor *in,
                                const struct tensor *out, const struct resample_table *tables)
{
    const struct resize *state = args->state;
    char fill[16] = {0}; /* the extrapolation value as an element */
    if (convert_supports(in->dtype))
        convert_elements(1, TSSA_DOUBLE, &state->extrapolation, 1, in->dtype, fill, 1,
                         &convert_default);
    return resize_nearest(args, in, out, tables, fill);
}

/* ---- Linear and cubic ------------------------------------------------------------------------ */

/* Integers are rounded, half to even, and stay within the type's range. */
static void round_integers(tssa_dtype dtype, int64_t count, double *values)
{
    const struct dtype_info *info = dtype_info(dtype);
    for (int64_t i = 0; i < count; i++)
        values[i] = rint(values[i]);
    if (info->size < 8) {
        bool sign = info->cls == DTYPE_CLASS_SIGNED;
        double high = (double)((INT64_C(1) << (info->file_bits - sign)) - 1),
               low = sign ? -high - 1 : 0;
        for (int64_t i = 0; i < count; i++)
            values[i] = values[i] > high ? high : values[i] < low ? low : values[i];
    }
}

static void store_result(const struct tensor *out, void *values)
{
    int64_t count = (int64_t)tensor_count(out);
    if (dtype_is_integer(out->dtype))
        round_integers(out->dtype, count, values);
    store_elements(out, 0, 1, count, computed_in(out->dtype), values);
}

/* Scratch memory for `pass`'s result. */
static tssa_status *pass_buffer(struct kernel_args *args, const struct resample_pass *pass,
                                struct buffer **buffer)
{
    int64_t rows;
    size_t bytes;
    if (!i64_mul(pass->outer, pass->out, &rows) ||
        !size_mul((size_t)rows, (size_t)pass->inner, &bytes) ||
        !size_mul(bytes, tssa_dtype_size(pass->dtype), &bytes))
        return ERROR(TSSA_LIMIT, "the result is larger than memory can be");
    return kernel_scratch(args, bytes, buffer);
}

/* From `values`, or where there are none from the input itself to the result itself: elements that
 * are computed in. */
static tssa_status *run_passes(struct kernel_args *args, const struct tensor *in,
                               const struct tensor *out, const struct resample_axis *axes,
                               const struct resample_table *tables, struct buffer **values)
{
    const struct resize *state = args->state;
    const bool direct = *values == NULL;
    int64_t dims[TSSA_MAX_RANK];
    int order[TSSA_MAX_RANK], count = resize_order(in->rank, axes, order);
    memcpy(dims, in->dims, (size_t)in->rank * sizeof *dims);
    tssa_status *status = NULL;
    for (int i = 0; i < count && !status; i++) {
        const int d = order[i];
        struct buffer *to = NULL;
        struct resample_pass pass = {.table = &tables[d],
                                     .dtype = computed_in(in->dtype),
                                     .from = *values ? (*values)->data : in->data,
                                     .outer = dims_product(dims, 0, d),
                                     .in = dims[d],
                                     .out = axes[d].out,
                                     .inner = dims_product(dims, d + 1, in->rank),
                                     .extrapolation = state->extrapolation};
        if (!direct || i < count - 1)
            status = pass_buffer(args, &pass, &to);
        pass.to = to ? to->data : out->data;
        if (!status)
            status = resample_pass_run(args, &pass);
        buffer_release(*values);
        *values = to;
        dims[d] = axes[d].out;
    }
    return status;
}

static tssa_status *interpolate(struct kernel_args *args, const struct tensor *in,
                                const struct tensor *out, const struct resample_axis *axes,
                                const struct resample_table *tables)
{
    struct buffer *values = NULL;
    int order[TSSA_MAX_RANK];
    tssa_dtype dtype = computed_in(in->dtype);
    bool direct = in->dtype == dtype && resize_order(in->rank, axes, order) > 0;
    if (!direct)
        TRY(elements_of(args, in, dtype, &values));
    tssa_status *status = run_passes(args, in, out, axes, tables, &values);
    if (!status && !direct)
        store_result(out, values->data);
    buffer_release(values);
    return status;
}

/* ---- The operator ---------------------------------------------------------------------------- */

static tssa_status *make_table(struct kernel_args *args, const struct resample_options *options,
                               const struct resample_axis *axis, struct resample_table *table,
                               struct buffer **buffer)
{
    size_t bytes;
    TRY(resample_table_size(options, axis, table, &bytes));
    TRY(kernel_scratch(args, bytes, buffer));
    resample_table_fill(options, axis, (*buffer)->data, table);
    return NULL;
}

static tssa_status *operands_of(const struct kernel_args *args, struct resize_operands *operands)
{
    TRY(typed_tensor(args, 0, &operands->in));
    TRY(kernel_optional_tensor(args, 1, &operands->roi));
    TRY(kernel_optional_tensor(args, 2, &operands->scales));
    return kernel_optional_tensor(args, 3, &operands->sizes);
}

static tssa_status *run(struct kernel_args *args)
{
    const struct resize *state = args->state;
    struct resize_operands operands;
    struct tensor *out;
    struct resample_axis axes[TSSA_MAX_RANK];
    struct resample_table tables[TSSA_MAX_RANK] = {{0}};
    struct buffer *buffers[TSSA_MAX_RANK] = {NULL};
    TRY(operands_of(args, &operands));
    TRY(resize_resolve(state, &operands, axes));
    const struct tensor *in = operands.in;
    bool nearest = state->options.mode == RESAMPLE_NEAREST;
    if (!nearest && !convert_supports(in->dtype))
        return operand_error(0, in, "numbers to interpolate between");
    int64_t dims[TSSA_MAX_RANK];
    for (int i = 0; i < in->rank; i++)
        dims[i] = axes[i].out;
    TRY(kernel_output(args, 0, in->dtype, in->rank, dims, &out));
    if (!out || tensor_count(out) == 0)
        return NULL;
    tssa_status *status = NULL;
    for (int i = 0; i < in->rank && !status; i++)
        if (resize_changes(&axes[i]))
            status = make_table(args, &state->options, &axes[i], &tables[i], &buffers[i]);
    if (!status)
        status =
            nearest ? run_nearest(args, in, out, tables) : interpolate(args, in, out, axes, tables);
    for (int i = 0; i < in->rank; i++)
        buffer_release(buffers[i]);
    return status;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct resize *state = ARENA_NEW(setup->arena, struct resize);
    TRY_ALLOC(state);
    *result = state;
    return resize_decode(op, state);
}

extern const struct kernel cpu_kernel_resize;
const struct kernel cpu_kernel_resize = {.prepare = prepare, .run = run};
