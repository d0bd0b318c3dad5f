/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/sizes.h"

#include "base/dtype.h"
#include "device/grids/operands.h"
#include "device/infer_dims.h"

/* ---- Dims ------------------------------------------------------------------------------------ */

static const struct tensor *tensor_of(const struct value *value)
{
    return value && value->kind == TSSA_KIND_TENSOR ? &value->tensor : NULL;
}

static bool told_by_shape(const struct ir_type *type, const struct tensor *tensor,
                          const struct dim *dim, int64_t *value)
{
    int i = 0;
    if (!tensor || type->kind != TYPE_TENSOR || type->rank != tensor->rank)
        return false;
    while (i < type->rank && type->dims[i] != dim)
        i++;
    if (i < type->rank)
        *value = tensor->dims[i];
    return i < type->rank;
}

/* Of a small operand that inference has names for the elements of. */
static bool told_by_elements(const struct ir_value *operand, const struct tensor *tensor,
                             const struct dim *dim, int64_t *value)
{
    const struct ir_known *known = operand->known;
    if (!known || !tensor || !dtype_is_integer(tensor->dtype) ||
        known->count != tensor_count(tensor))
        return false;
    size_t i = 0;
    while (i < known->count && known->elements[i] != dim)
        i++;
    if (i < known->count)
        *value = dtype_load_int64(tensor->dtype,
                                  (const char *)tensor->data + i * tssa_dtype_size(tensor->dtype));
    return i < known->count;
}

/* A size that something has as it is, symbol or not. */
static bool find_part(void *context, const struct dim *dim, int64_t *value)
{
    const struct kernel_args *args = context;
    for (uint32_t i = 0; i < args->n_inputs; i++) {
        const struct ir_value *operand = ir_operand(args->op, i);
        const struct tensor *tensor = tensor_of(args->inputs[i]);
        if (operand && (told_by_shape(operand->type, tensor, dim, value) ||
                        (args->on_host[i] && told_by_elements(operand, tensor, dim, value))))
            return true;
    }
    for (uint32_t i = 0; i < args->n_outputs; i++)
        if (args->outputs[i] &&
            told_by_shape(args->op->results[i].type, tensor_of(args->outputs[i]), dim, value))
            return true;
    return args->env->sizes->dim(args->env->sizes, dim, value);
}

bool grids_tell(const struct kernel_args *args, const struct dim *dim, int64_t *value)
{
    return dim_eval_parts(dim, find_part, (void *)args, value);
}

tssa_status *grids_result_dims(const struct kernel_args *args, uint32_t index, int64_t *dims)
{
    const struct ir_type *type = args->op->results[index].type;
    bool has[TSSA_MAX_RANK], all = true;
    for (int i = 0; i < type->rank; i++)
        all &= has[i] = grids_tell(args, type->dims[i], &dims[i]);
    if (!all)
        TRY(device_infer_dims(args, index, has, dims));
    for (int i = 0; i < type->rank; i++)
        if (!has[i] || dims[i] < 0)
            return ERROR(TSSA_RUNTIME, "dim %d of result %u has no size", i, (unsigned)index);
    return NULL;
}

/* ---- Spaces ---------------------------------------------------------------------------------- */

static bool tell_product(const struct kernel_args *args, const struct dim *const *dims, int n,
                         int64_t *product)
{
    int64_t size;
    *product = 1;
    for (int i = 0; i < n; i++) {
        if (!grids_tell(args, dims[i], &size))
            return false;
        *product *= size;
    }
    return true;
}

/* Of a loop an operand may tell, for which the host waits where the device computes it. */
static tssa_status *find_rows(const struct kernel_args *args, const struct gir_grid_part *part,
                              int64_t *rows, bool *told)
{
    *told = part->trips || grids_tell(args, part->dims[part->column], rows);
    return part->trips ? grids_int(args, part->trips - 1, rows) : NULL;
}

static tssa_status *find_space(const struct kernel_args *args, const struct gir_grid_part *part,
                               int64_t *rows, int64_t *n, bool *told)
{
    const int outer = part->row ? part->rank - part->row : 0, behind = part->column + 1;
    int64_t before, after;
    if (part->column < 0) {
        *told = tell_product(args, part->dims, outer, rows) &&
                tell_product(args, part->dims + outer, part->rank - outer, n);
        return NULL;
    }
    *told = tell_product(args, part->dims, part->column, &before) &&
            tell_product(args, part->dims + behind, part->rank - behind, &after);
    if (!*told)
        return NULL;
    *n = before * after;
    return find_rows(args, part, rows, told);
}

static tssa_status *not_told(void)
{
    return ERROR(TSSA_RUNTIME, "a size of what a launch goes over is not told");
}

tssa_status *grids_part_space(const struct kernel_args *args, const struct gir_grid_part *part,
                              int64_t *rows, int64_t *n)
{
    bool told;
    TRY(find_space(args, part, rows, n, &told));
    return told ? NULL : not_told();
}

tssa_status *grids_trips(const struct kernel_args *args, const struct gir_grid *grid,
                         int64_t *trips)
{
    *trips = 1;
    if (grid->trips_operand)
        return grids_int(args, grid->trips_operand - 1, trips);
    return !grid->trips || grids_tell(args, grid->trips, trips) ? NULL : not_told();
}

tssa_status *grids_part_axes(const struct kernel_args *args, const struct gir_grid_part *part,
                             int64_t *along, int64_t *inner)
{
    const int from = part->turned_from, to = part->turned_to;
    return tell_product(args, part->dims + from, to - from, along) &&
                   tell_product(args, part->dims + to, part->rank - to, inner)
               ? NULL
               : not_told();
}
