/* SPDX-License-Identifier: Apache-2.0 */
/* Inference for Resize: sizes from its operands, where those are known. */
#include <math.h>
#include <string.h>

#include "ir/infer.h"

struct axes {
    size_t count;
    int axis[TSSA_MAX_RANK];
};

static tssa_status *find_axes(const struct ir_op *op, int rank, struct axes *axes)
{
    const int64_t *given = ir_attr_ints(op, "axes", &axes->count);
    if (!given)
        axes->count = (size_t)rank;
    if (axes->count > TSSA_MAX_RANK)
        return ERROR(TSSA_MALFORMED, "axes has %zu entries", axes->count);
    for (size_t i = 0; i < axes->count; i++) {
        axes->axis[i] = (int)i;
        if (given)
            TRY(infer_axis(op, given[i], rank, &axes->axis[i]));
    }
    return NULL;
}

/* floor(in * scale), computed in float as the kernel does; exact for the scales that are named
 * here. */
static const struct dim *scaled(struct ir_op *op, const struct dim *in, float scale)
{
    struct dim_table *dims = &op->parent->graph->dims;
    int64_t size;
    if (scale == 1)
        return in;
    if (dim_is_const(in, &size)) {
        float out = floorf((float)size * scale);
        return out >= 0 && out < 0x1p31f ? dim_const(dims, (int64_t)out) : infer_fresh(op);
    }
    int exponent;
    bool power_of_two = scale > 0 && frexpf(scale, &exponent) == 0.5f;
    const struct dim *factor;
    if (scale > 1 && scale < 0x1p20f && floorf(scale) == scale) {
        factor = dim_const(dims, (int64_t)scale);
        return factor ? dim_mul(dims, in, factor) : NULL;
    }
    if (power_of_two && scale < 1 && scale > 0x1p-20f) {
        factor = dim_const(dims, (int64_t)(1 / scale));
        return factor ? dim_floordiv(dims, in, factor) : NULL;
    }
    return infer_fresh(op);
}

static tssa_status *apply_scales(struct ir_op *op, const struct axes *axes,
                                 const struct tensor *scales, const struct dim **dims)
{
    size_t count = tensor_count(scales);
    if (count != axes->count)
        return ERROR(TSSA_MALFORMED, "%zu scales for %zu axes", count, axes->count);
    for (size_t i = 0; i < count; i++) {
        const char *element = (const char *)scales->data + i * dtype_info(scales->dtype)->size;
        const struct dim **dim = &dims[axes->axis[i]];
        *dim = scaled(op, *dim, (float)dtype_load_double(scales->dtype, element));
        TRY_ALLOC(*dim);
    }
    return NULL;
}

INFER_RULE(resize)
{
    (void)graph;
    int rank = infer_rank(op, 0);
    tssa_dtype dtype = infer_dtype(op, 0);
    if (rank < 0)
        return infer_set_unranked(op, 0, dtype);
    struct axes axes;
    const struct dim *dims[TSSA_MAX_RANK];
    TRY(find_axes(op, rank, &axes));
    for (int i = 0; i < rank; i++)
        dims[i] = infer_dim(op, 0, i);
    const struct tensor *scales = infer_const_tensor(op, 2);
    if (scales && tensor_count(scales) > 0 && dtype_is_float(scales->dtype)) {
        TRY(apply_scales(op, &axes, scales, dims));
        return infer_set_tensor(op, 0, dtype, rank, dims);
    }
    /* Scales that only a run knows may be empty, which leaves the choice to the sizes. */
    const struct ir_known *sizes = infer_known(op, 3);
    bool certain = (!ir_operand(op, 2) || scales) && sizes && sizes->count == axes.count &&
                   strcmp(ir_attr_str(op, "keep_aspect_ratio_policy", "stretch"), "stretch") == 0;
    for (size_t i = 0; i < axes.count; i++) {
        const struct dim *size = certain ? sizes->elements[i] : NULL;
        dims[axes.axis[i]] = size ? size : infer_fresh(op);
    }
    return infer_set_tensor(op, 0, dtype, rank, dims);
}
