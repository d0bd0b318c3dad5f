/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize-19 of ai.onnx, and with it Resize-11 to 18; the importer carries Resize-10 and Upsample as
 * it.
 *
 * Interpolation is separable: one pass per axis that changes, shrinking axes first; in float32 for
 * float32 and narrower, in double for the others, with weights that are made in double. Nearest
 * moves elements, of any type. Sizes made from scales are floor(in * scale) in float, as ONNX's own
 * shape inference has them.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/window/resample.h"
#include "kernels/cpu/window/resample_pass.h"
#include "kernels/cpu/window/resize_nearest.h"

enum policy { POLICY_STRETCH, POLICY_NOT_LARGER, POLICY_NOT_SMALLER };

struct resize {
    struct resample_options options;
    double extrapolation;
    enum policy policy;
    bool has_axes;
    size_t n_axes;
    int64_t axes[TSSA_MAX_RANK];
};

/* ---- Attributes ------------------------------------------------------------------------------ */

static tssa_status *choice(const struct ir_op *op, const char *name, const char *fallback,
                           const char *const *names, size_t count, int *chosen)
{
    const char *text = ir_attr_str(op, name, fallback);
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0) {
            *chosen = (int)i;
            return NULL;
        }
    return ERROR(TSSA_MALFORMED, "%s is \"%s\"", name, text);
}

#define CHOICE(op, name, names, chosen)                                                            \
    choice(op, name, names[0], names, sizeof names / sizeof *names, chosen)

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    struct resize *state = ARENA_NEW(setup->arena, struct resize);
    TRY_ALLOC(state);
    *result = state;
    int chosen[4];
    TRY(CHOICE(op, "mode", modes, &chosen[0]));
    TRY(CHOICE(op, "coordinate_transformation_mode", coordinates, &chosen[1]));
    TRY(CHOICE(op, "nearest_mode", roundings, &chosen[2]));
    TRY(CHOICE(op, "keep_aspect_ratio_policy", policies, &chosen[3]));
    struct resample_options *options = &state->options;
    options->mode = (enum resample_mode)chosen[0];
    options->coordinates = (enum resample_coordinates)chosen[1];
    options->rounding = (enum resample_rounding)chosen[2];
    state->policy = (enum policy)chosen[3];
    options->antialias = ir_attr_int(op, "antialias", 0) != 0 && options->mode != RESAMPLE_NEAREST;
    options->exclude_outside = ir_attr_int(op, "exclude_outside", 0) != 0;
    options->cubic_a = (double)ir_attr_float(op, "cubic_coeff_a", -0.75f);
    state->extrapolation = (double)ir_attr_float(op, "extrapolation_value", 0);
    const int64_t *axes = ir_attr_ints(op, "axes", &state->n_axes);
    if (state->n_axes > TSSA_MAX_RANK)
        return ERROR(TSSA_MALFORMED, "axes has %zu entries", state->n_axes);
    state->has_axes = axes != NULL;
    for (size_t i = 0; axes && i < state->n_axes; i++)
        state->axes[i] = axes[i];
    return NULL;
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

struct axes {
    size_t count;
    int axis[TSSA_MAX_RANK];
};

static tssa_status *resolve_axes(const struct resize *state, int rank, struct axes *axes)
{
    axes->count = state->has_axes ? state->n_axes : (size_t)rank;
    for (size_t i = 0; i < axes->count; i++) {
        axes->axis[i] = (int)i;
        if (state->has_axes)
            TRY(kernel_axis(state->axes[i], rank, &axes->axis[i]));
    }
    return NULL;
}

/* A float operand with `count` elements; *values stays untouched when it is absent or empty. */
static tssa_status *float_operand(const struct kernel_args *args, uint32_t index, size_t count,
                                  double *values, bool *present)
{
    const struct tensor *tensor;
    TRY(kernel_optional_tensor(args, index, &tensor));
    size_t n = tensor ? tensor_count(tensor) : 0;
    *present = n > 0;
    if (n == 0)
        return NULL;
    if (!dtype_is_float(tensor->dtype) || n != count)
        return ERROR(TSSA_RUNTIME,
                     "operand %" PRIu32 " has %zu elements of type %s, not %zu floats", index, n,
                     dtype_info(tensor->dtype)->ir_name, count);
    load_doubles(tensor, 0, 1, (int64_t)n, values);
    return NULL;
}

static tssa_status *sizes_from_scales(const struct axes *axes, const double *scales,
                                      struct resample_axis *all)
{
    for (size_t i = 0; i < axes->count; i++) {
        struct resample_axis *axis = &all[axes->axis[i]];
        float size = floorf((float)axis->in * (float)scales[i]);
        if (!(scales[i] > 0) || !(size < 0x1p31f))
            return ERROR(TSSA_RUNTIME, "axis %d: scale %g of %" PRId64 " elements", axes->axis[i],
                         scales[i], axis->in);
        axis->scale = scales[i];
        axis->out = (int64_t)size;
    }
    return NULL;
}

static tssa_status *keep_aspect(const struct axes *axes, enum policy policy,
                                struct resample_axis *all)
{
    double scale = NAN;
    for (size_t i = 0; i < axes->count; i++) {
        double own = all[axes->axis[i]].scale;
        scale =
            isnan(scale) || (policy == POLICY_NOT_LARGER ? own < scale : own > scale) ? own : scale;
    }
    for (size_t i = 0; i < axes->count; i++) {
        struct resample_axis *axis = &all[axes->axis[i]];
        double size = floor(scale * (double)axis->in + 0.5);
        if (!(size < 0x1p31))
            return ERROR(TSSA_RUNTIME, "axis %d: scale %g of %" PRId64 " elements", axes->axis[i],
                         scale, axis->in);
        axis->scale = scale;
        axis->out = (int64_t)size;
    }
    return NULL;
}

static tssa_status *sizes_from_operand(struct kernel_args *args, const struct axes *axes,
                                       enum policy policy, struct resample_axis *all)
{
    int64_t sizes[TSSA_MAX_RANK];
    size_t count = 0;
    const struct tensor *tensor;
    TRY(kernel_optional_tensor(args, 3, &tensor));
    if (tensor)
        TRY(kernel_ints(args, 3, sizes, TSSA_MAX_RANK, &count));
    if (count != axes->count)
        return ERROR(TSSA_RUNTIME, "%zu sizes for %zu axes", count, axes->count);
    for (size_t i = 0; i < count; i++) {
        struct resample_axis *axis = &all[axes->axis[i]];
        if (sizes[i] < 0 || sizes[i] >= INT64_C(1) << 31 || (axis->in == 0 && sizes[i] > 0))
            return ERROR(TSSA_RUNTIME, "axis %d: %" PRId64 " elements cannot become %" PRId64,
                         axes->axis[i], axis->in, sizes[i]);
        axis->out = sizes[i];
        axis->scale = axis->in ? (double)sizes[i] / (double)axis->in : 1;
    }
    return policy == POLICY_STRETCH ? NULL : keep_aspect(axes, policy, all);
}

/* All axes of the tensor: sizes, scales, regions of interest. */
static tssa_status *resolve(struct kernel_args *args, const struct tensor *in,
                            struct resample_axis *all)
{
    const struct resize *state = args->state;
    struct axes axes;
    double scales[TSSA_MAX_RANK], roi[2 * TSSA_MAX_RANK];
    bool has_scales, has_roi = false;
    TRY(resolve_axes(state, in->rank, &axes));
    for (int i = 0; i < in->rank; i++)
        all[i] = (struct resample_axis){in->dims[i], in->dims[i], 1, 0, 1};
    TRY(float_operand(args, 2, axes.count, scales, &has_scales));
    if (has_scales)
        TRY(sizes_from_scales(&axes, scales, all));
    else
        TRY(sizes_from_operand(args, &axes, state->policy, all));
    if (state->options.coordinates != COORDINATES_TF_CROP_AND_RESIZE)
        return NULL;
    TRY(float_operand(args, 1, 2 * axes.count, roi, &has_roi));
    if (!has_roi)
        return ERROR(TSSA_RUNTIME, "tf_crop_and_resize needs operand 1, roi");
    for (size_t i = 0; i < axes.count; i++) {
        all[axes.axis[i]].roi_begin = roi[i];
        all[axes.axis[i]].roi_end = roi[axes.count + i];
    }
    return NULL;
}

static bool changes(const struct resample_axis *axis)
{
    return axis->in != axis->out || axis->scale != 1 || axis->roi_begin != 0 || axis->roi_end != 1;
}

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

/* The axes in the order of their passes: those that shrink first. */
static int order_passes(int rank, const struct resample_axis *axes,
                        const struct resample_table *tables, int *order)
{
    int count = 0;
    for (int grow = 0; grow < 2; grow++)
        for (int d = 0; d < rank; d++)
            if (tables[d].index && (axes[d].out > axes[d].in) == grow)
                order[count++] = d;
    return count;
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
    int order[TSSA_MAX_RANK], count = order_passes(in->rank, axes, tables, order);
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
    bool direct = in->dtype == dtype && order_passes(in->rank, axes, tables, order) > 0;
    if (!direct)
        TRY(elements_of(args, in, dtype, &values));
    tssa_status *status = run_passes(args, in, out, axes, tables, &values);
    if (!status && !direct)
        store_result(out, values->data);
    buffer_release(values);
    return status;
}

/* ---- The operator ---------------------------------------------------------------------------- */

static tssa_status *run(struct kernel_args *args)
{
    const struct resize *state = args->state;
    const struct tensor *in;
    struct tensor *out;
    struct resample_axis axes[TSSA_MAX_RANK];
    struct resample_table tables[TSSA_MAX_RANK] = {{0}};
    TRY(typed_tensor(args, 0, &in));
    TRY(resolve(args, in, axes));
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
        if (changes(&axes[i]))
            status = resample_table_make(args, &state->options, &axes[i], &tables[i]);
    if (!status)
        status =
            nearest ? run_nearest(args, in, out, tables) : interpolate(args, in, out, axes, tables);
    for (int i = 0; i < in->rank; i++)
        buffer_release(tables[i].buffer);
    return status;
}

extern const struct kernel cpu_kernel_resize;
const struct kernel cpu_kernel_resize = {.prepare = prepare, .run = run};
