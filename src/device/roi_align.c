/* SPDX-License-Identifier: Apache-2.0 */
#include "device/roi_align.h"

#include <inttypes.h>
#include <string.h>

tssa_status *roi_decode(const struct ir_op *op, struct roi_attrs *attrs)
{
    const char *mode = ir_attr_str(op, "mode", "avg");
    const char *transform = ir_attr_str(op, "coordinate_transformation_mode", "half_pixel");
    attrs->max = strcmp(mode, "max") == 0;
    attrs->half_pixel = strcmp(transform, "half_pixel") == 0;
    if (!attrs->max && strcmp(mode, "avg") != 0)
        return ERROR(TSSA_MALFORMED, "mode is \"%s\"", mode);
    if (!attrs->half_pixel && strcmp(transform, "output_half_pixel") != 0)
        return ERROR(TSSA_MALFORMED, "coordinate_transformation_mode is \"%s\"", transform);
    attrs->height = ir_attr_int(op, "output_height", 1);
    attrs->width = ir_attr_int(op, "output_width", 1);
    attrs->sampling = ir_attr_int(op, "sampling_ratio", 0);
    attrs->scale = (double)ir_attr_float(op, "spatial_scale", 1);
    if (attrs->height < 1 || attrs->width < 1 || attrs->sampling < 0)
        return ERROR(TSSA_MALFORMED,
                     "an output of %" PRId64 " by %" PRId64 ", sampled %" PRId64 " times",
                     attrs->height, attrs->width, attrs->sampling);
    return NULL;
}
