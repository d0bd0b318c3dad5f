/* SPDX-License-Identifier: Apache-2.0 */
#include "device/null/sizes.h"

#include <math.h>

#include "device/infer_dims.h"

/* ---- By the plan ----------------------------------------------------------------------------- */

static bool told(void *context, const struct dim *symbol, int64_t *value)
{
    const struct kernel_sizes *sizes = context;
    return sizes->dim(sizes, symbol, value);
}

/* True when the plan told all of them. */
static bool by_plan(const struct kernel_args *args, const struct ir_type *type, bool *has,
                    int64_t *dims)
{
    bool all = true;
    for (int i = 0; i < type->rank; i++)
        all &= has[i] = dim_eval(type->dims[i], told, (void *)args->env->sizes, &dims[i]);
    return all;
}

/* ---- By nothing ------------------------------------------------------------------------------ */

struct guess {
    const struct kernel_sizes *sizes;
    int64_t most; /* elements of the largest operand */
    double share;
};

static bool lookup(void *context, const struct dim *symbol, int64_t *value)
{
    const struct guess *guess = context;
    if (guess->sizes->dim(guess->sizes, symbol, value))
        return true;
    const int64_t bound = guess->most < symbol->high ? guess->most : symbol->high;
    *value = guess->share < 1 ? (int64_t)ceil((double)bound * guess->share) : bound;
    if (*value < symbol->low)
        *value = symbol->low;
    return true;
}

static int64_t largest_operand(const struct kernel_args *args)
{
    size_t most = 1;
    for (uint32_t i = 0; i < args->n_inputs; i++)
        if (args->inputs[i] && args->inputs[i]->kind == TSSA_KIND_TENSOR &&
            tensor_count(&args->inputs[i]->tensor) > most)
            most = tensor_count(&args->inputs[i]->tensor);
    return most < INT64_MAX ? (int64_t)most : INT64_MAX;
}

bool null_dim(const struct kernel_args *args, const struct dim *dim, int64_t *value)
{
    struct guess guess = {args->env->sizes, largest_operand(args),
                          args->env->stream->context->data_share};
    return dim_eval(dim, lookup, &guess, value);
}

/* ---- All ------------------------------------------------------------------------------------- */

tssa_status *null_dims(const struct kernel_args *args, uint32_t index, int64_t *dims)
{
    const struct ir_type *type = args->op->results[index].type;
    bool has[TSSA_MAX_RANK];
    if (by_plan(args, type, has, dims))
        return NULL;
    TRY(device_infer_dims(args, index, has, dims));
    for (int i = 0; i < type->rank; i++)
        if ((!has[i] && !null_dim(args, type->dims[i], &dims[i])) || dims[i] < 0)
            return ERROR(TSSA_RUNTIME, "dim %d of result %u has no size", i, (unsigned)index);
    return NULL;
}
