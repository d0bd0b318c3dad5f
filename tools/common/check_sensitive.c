/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made-up inputs may be where a division or a root magnifies whatever is rounded in another way.
 * There a difference says nothing: the original itself gives other results for inputs that are a
 * few roundings away.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/handles.h"
#include "tools/common/check_state.h"

/* Relatively: as far off as a handful of roundings. */
#define NUDGE 0x1p-22
/* The new model rounds hundreds of times where inputs are rounded once. */
#define NUDGE_TIMES 16

/* The value with each number moved a little, this way and that. */
static tssa_status *nudge(tssa_context *context, const tssa_value *value, tssa_value **moved)
{
    const struct tensor *tensor = &value->value.tensor;
    TRY(tssa_tensor_create(context, tensor->dtype, tensor->rank, tensor->dims, moved));
    const char *from = tensor->data;
    char *to = tssa_tensor_data(*moved);
    size_t size = tssa_dtype_size(tensor->dtype);
    for (size_t i = 0; i < tensor_count(tensor); i++) {
        double x = dtype_load_double(tensor->dtype, from + i * size);
        dtype_store_double(tensor->dtype, to + i * size, x * (i * 7 % 3 ? 1 + NUDGE : 1 - NUDGE));
    }
    return NULL;
}

static bool is_float_tensor(const tssa_value *value)
{
    if (!value || value->value.kind != TSSA_KIND_TENSOR)
        return false;
    return value->value.tensor.dtype == TSSA_FLOAT || value->value.tensor.dtype == TSSA_DOUBLE;
}

/* The original's outputs on nudged inputs, in outputs[2]. */
static tssa_status *run_nudged(struct check *check, const struct run_inputs *inputs)
{
    const struct engine_limits limits = {.seconds = check_time_left(check)};
    struct engine_cost cost;
    struct run_inputs moved = {.count = inputs->count};
    moved.values = calloc(inputs->count + 1, sizeof *moved.values);
    tssa_status *status = moved.values ? NULL : status_out_of_memory();
    for (size_t i = 0; i < inputs->count && !status; i++)
        if (is_float_tensor(inputs->values[i]))
            status = nudge(check->context, inputs->values[i], &moved.values[i]);
    for (size_t i = 0; i < inputs->count && !status; i++)
        if (!moved.values[i])
            moved.values[i] = inputs->values[i];
    if (!status)
        status =
            check->engine->run(check->engine, CHECK_OLD, &moved, &limits, check->outputs[2], &cost);
    for (size_t i = 0; i < inputs->count && moved.values; i++)
        if (moved.values[i] != inputs->values[i])
            tssa_value_free(moved.values[i]);
    free(moved.values);
    return status;
}

/* The greatest difference of two tensors of floats; infinity where they differ in another way. */
static double distance(const tssa_value *a, const tssa_value *b)
{
    const struct tensor *x = &a->value.tensor, *y = &b->value.tensor;
    double most = 0;
    if (!is_float_tensor(a) || !is_float_tensor(b) || x->dtype != y->dtype || x->rank != y->rank ||
        memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) != 0)
        return (double)INFINITY;
    size_t size = tssa_dtype_size(x->dtype);
    for (size_t i = 0; i < tensor_count(x); i++) {
        double p = dtype_load_double(x->dtype, (const char *)x->data + i * size);
        double q = dtype_load_double(y->dtype, (const char *)y->data + i * size);
        bool same = p == q ? p != 0 || !signbit(p) == !signbit(q) : isnan(p) && isnan(q);
        double apart = same ? 0 : p == q ? (double)INFINITY : fabs(p - q);
        most = apart <= most ? most : isnan(apart) ? (double)INFINITY : apart;
    }
    return most;
}

bool check_is_sensitive(struct check *check, const struct run_inputs *inputs)
{
    tssa_status *status = run_nudged(check, inputs);
    bool sensitive = !status;
    for (size_t i = 0; i < check->n_outputs && sensitive; i++) {
        struct compare_report report;
        const tssa_value *old = check->outputs[0][i], *new = check->outputs[1][i];
        if (compare_values(&new->value, &old->value, &check->options->rule, &report))
            continue;
        double nudged = distance(check->outputs[2][i], old);
        sensitive = isfinite(nudged) && distance(new, old) <= NUDGE_TIMES * nudged;
    }
    tssa_status_free(status);
    check_clear(check, 2);
    return sensitive;
}
