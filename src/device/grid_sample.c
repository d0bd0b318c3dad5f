/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grid_sample.h"

#include <inttypes.h>
#include <string.h>

static tssa_status *choose(const struct ir_op *op, const char *name, const char *const *choices,
                           const char *fallback, int *chosen)
{
    const char *given = ir_attr_str(op, name, fallback);
    for (int i = 0; choices[i]; i++)
        if (strcmp(given, choices[i]) == 0) {
            *chosen = i;
            return NULL;
        }
    return ERROR(TSSA_MALFORMED, "%s is \"%s\"", name, given);
}

tssa_status *grid_sample_decode(const struct ir_op *op, struct grid_attrs *attrs)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear", "bicubic", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    int mode = 0, padding = 0;
    TRY(choose(op, "mode", modes, "linear", &mode));
    TRY(choose(op, "padding_mode", paddings, "zeros", &padding));
    attrs->mode = (enum sample_mode)(mode > SAMPLE_CUBIC ? mode - 2 : mode);
    attrs->padding = (enum sample_padding)padding;
    attrs->align_corners = ir_attr_int(op, "align_corners", 0) != 0;
    return NULL;
}

tssa_status *grid_sample_resolve(const struct tensor *x, const struct tensor *grid, int64_t *dims)
{
    char text[160];
    if (x->rank < 3) {
        tensor_describe(x, text, sizeof text);
        return ERROR(TSSA_RUNTIME,
                     "operand 0 is %s, not a tensor of batches, channels and spatial axes", text);
    }
    if (grid->rank != x->rank || !dtype_is_float(grid->dtype) || grid->dims[0] != x->dims[0] ||
        grid->dims[grid->rank - 1] != x->rank - 2) {
        tensor_describe(grid, text, sizeof text);
        return ERROR(TSSA_RUNTIME,
                     "operand 1 is %s, not floats of rank %d that start with %" PRId64
                     " (the batches) and end with %d (coordinates of a point)",
                     text, x->rank, x->dims[0], x->rank - 2);
    }
    memcpy(dims, x->dims, 2 * sizeof *dims);
    memcpy(dims + 2, grid->dims + 1, (size_t)(x->rank - 2) * sizeof *dims);
    return NULL;
}
