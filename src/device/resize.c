/* SPDX-License-Identifier: Apache-2.0 */
#include "device/resize.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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

tssa_status *resize_decode(const struct ir_op *op, struct resize *state)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    int chosen[4];
    TRY(CHOICE(op, "mode", modes, &chosen[0]));
    TRY(CHOICE(op, "coordinate_transformation_mode", coordinates, &chosen[1]));
    TRY(CHOICE(op, "nearest_mode", roundings, &chosen[2]));
    TRY(CHOICE(op, "keep_aspect_ratio_policy", policies, &chosen[3]));
    struct resample_options *options = &state->options;
    options->mode = (enum resample_mode)chosen[0];
    options->coordinates = (enum resample_coordinates)chosen[1];
    options->rounding = (enum resample_rounding)chosen[2];
    state->policy = (enum resize_policy)chosen[3];
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
static tssa_status *float_operand(const struct tensor *tensor, int index, size_t count,
                                  double *values, bool *present)
{
    const size_t n = tensor ? tensor_count(tensor) : 0;
    *present = n > 0;
    if (n == 0)
        return NULL;
    if (!dtype_is_float(tensor->dtype) || n != count)
        return ERROR(TSSA_RUNTIME, "operand %d has %zu elements of type %s, not %zu floats", index,
                     n, dtype_info(tensor->dtype)->ir_name, count);
    for (size_t i = 0; i < n; i++)
        values[i] = dtype_load_double(tensor->dtype, (const char *)tensor->data +
                                                         i * tssa_dtype_size(tensor->dtype));
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

static tssa_status *keep_aspect(const struct axes *axes, enum resize_policy policy,
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

static tssa_status *sizes_from_operand(const struct tensor *tensor, const struct axes *axes,
                                       enum resize_policy policy, struct resample_axis *all)
{
    int64_t sizes[TSSA_MAX_RANK];
    const size_t count = tensor ? tensor_count(tensor) : 0;
    if (tensor && !dtype_is_integer(tensor->dtype))
        return ERROR(TSSA_RUNTIME, "sizes are %s", dtype_info(tensor->dtype)->ir_name);
    if (count != axes->count)
        return ERROR(TSSA_RUNTIME, "%zu sizes for %zu axes", count, axes->count);
    for (size_t i = 0; i < count; i++)
        sizes[i] = dtype_load_int64(tensor->dtype, (const char *)tensor->data +
                                                       i * tssa_dtype_size(tensor->dtype));
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

tssa_status *resize_resolve(const struct resize *state, const struct resize_operands *operands,
                            struct resample_axis *all)
{
    const struct tensor *in = operands->in;
    struct axes axes;
    double scales[TSSA_MAX_RANK], roi[2 * TSSA_MAX_RANK];
    bool has_scales, has_roi = false;
    TRY(resolve_axes(state, in->rank, &axes));
    for (int i = 0; i < in->rank; i++)
        all[i] = (struct resample_axis){in->dims[i], in->dims[i], 1, 0, 1};
    TRY(float_operand(operands->scales, 2, axes.count, scales, &has_scales));
    if (has_scales)
        TRY(sizes_from_scales(&axes, scales, all));
    else
        TRY(sizes_from_operand(operands->sizes, &axes, state->policy, all));
    if (state->options.coordinates != COORDINATES_TF_CROP_AND_RESIZE)
        return NULL;
    TRY(float_operand(operands->roi, 1, 2 * axes.count, roi, &has_roi));
    if (!has_roi)
        return ERROR(TSSA_RUNTIME, "tf_crop_and_resize needs operand 1, roi");
    for (size_t i = 0; i < axes.count; i++) {
        all[axes.axis[i]].roi_begin = roi[i];
        all[axes.axis[i]].roi_end = roi[axes.count + i];
    }
    return NULL;
}

bool resize_changes(const struct resample_axis *axis)
{
    return axis->in != axis->out || axis->scale != 1 || axis->roi_begin != 0 || axis->roi_end != 1;
}

/* The axes in the order of their passes: those that shrink first. */
int resize_order(int rank, const struct resample_axis *axes, int *order)
{
    int count = 0;
    for (int grow = 0; grow < 2; grow++)
        for (int d = 0; d < rank; d++)
            if (resize_changes(&axes[d]) && (axes[d].out > axes[d].in) == grow)
                order[count++] = d;
    return count;
}
