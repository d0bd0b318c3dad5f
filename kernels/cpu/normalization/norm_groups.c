/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LpNormalization-22 and MeanVarianceNormalization-13 of ai.onnx: elements by what a reduction
 * makes of all those with the same indices along the axes that it keeps. DOUBLE is computed in
 * double, narrower types in float32, operation by operation as ir/composition.def has it.
 */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/normalization/normalize.h"

#define CHUNK 1024 /* elements that are converted at once */

/* Which group an element belongs to: steps over the axes, 0 for the reduced ones. */
struct groups {
    const struct tensor *in;
    struct axis_nest kept, reduced;
    int64_t steps[TSSA_MAX_RANK];
};

static void find_groups(struct groups *groups, const struct tensor *in, const bool *reduced)
{
    int64_t step = 1;
    groups->in = in;
    axis_nest_init(&groups->kept, in, reduced, false);
    axis_nest_init(&groups->reduced, in, reduced, true);
    for (int i = in->rank - 1; i >= 0; i--) {
        groups->steps[i] = reduced[i] ? 0 : step;
        step *= reduced[i] ? 1 : in->dims[i];
    }
}

/* Statistics per group, of the loops' type. shift NULL: of MeanVarianceNormalization only. */
struct work {
    const struct groups *groups;
    const struct tensor *out;
    const struct normalize_loops *loops;
    const char *shift, *norm;
};

/* n elements of a row, the first of which belongs to `group`. */
static void normalize_run(const struct work *w, int64_t offset, int64_t group, int64_t step,
                          int64_t n)
{
    _Alignas(64) char buffer[CHUNK * sizeof(double)];
    const struct tensor *in = w->groups->in;
    size_t width = w->loops->width, at = (size_t)group * width;
    const void *x = buffer;
    void *y = buffer;
    if (in->dtype == w->loops->dtype) {
        x = element_at(in, offset);
        y = element_at(w->out, offset);
    } else {
        convert_elements(n, in->dtype, element_at(in, offset), 1, w->loops->dtype, buffer, 1,
                         &convert_default);
    }
    w->loops->by_group(x, y, n, w->shift ? w->shift + at : NULL, w->norm + at, step);
    if (y == buffer)
        convert_elements(n, w->loops->dtype, buffer, 1, in->dtype, element_at(w->out, offset), 1,
                         &convert_default);
}

/* Rows of the last axis. */
static void normalize_rows(void *context, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const struct tensor *in = w->groups->in;
    int last = in->rank - 1;
    int64_t n = last >= 0 ? in->dims[last] : 1, step = last >= 0 ? w->groups->steps[last] : 0;
    for (int64_t row = begin; row < end; row++) {
        int64_t group = 0, rest = row;
        for (int i = last - 1; i >= 0; rest /= in->dims[i], i--)
            group += rest % in->dims[i] * w->groups->steps[i];
        for (int64_t i = 0; i < n; i += CHUNK)
            normalize_run(w, row * n + i, group + i * step, step, n - i < CHUNK ? n - i : CHUNK);
    }
}

/* One number per group, in memory of the caller's. */
static void reduce_groups(const struct kernel_args *args, const struct work *w,
                          enum reduction_row row, const void *shift, void *results)
{
    struct tensor out = {.dtype = w->loops->dtype, .data = results};
    reduce_tensor(args->env->team, row, w->groups->in, &w->groups->kept, &w->groups->reduced, shift,
                  &out);
}

/* p 1 or 2: by that norm. 0: by mean and deviation. */
static tssa_status *run_on(struct kernel_args *args, const struct tensor *in, const bool *reduced,
                           int64_t p)
{
    struct groups groups;
    struct tensor *out;
    TRY(kernel_output(args, 0, in->dtype, in->rank, in->dims, &out));
    if (!out || tensor_count(in) == 0)
        return NULL;
    find_groups(&groups, in, reduced);
    struct work work = {.groups = &groups, .out = out};
    work.loops = in->dtype == TSSA_DOUBLE ? &normalize_loops_f64 : &normalize_loops_f32;
    size_t bytes = (size_t)groups.kept.count * work.loops->width;
    struct buffer *buffer;
    TRY(kernel_scratch(args, 2 * bytes, &buffer));
    char *shift = buffer->data, *norm = shift + bytes;
    work.norm = norm;
    if (p) {
        reduce_groups(args, &work, p == 1 ? REDUCTION_L1 : REDUCTION_L2, NULL, norm);
    } else {
        work.shift = shift;
        reduce_groups(args, &work, REDUCTION_Mean, NULL, shift);
        reduce_groups(args, &work, REDUCTION_Variance, shift, norm);
        work.loops->deviate(norm, groups.kept.count);
    }
    int64_t n = in->rank ? in->dims[in->rank - 1] : 1;
    team_for(args->env->team, (int64_t)tensor_count(in) / n, 32768 / n + 1, normalize_rows, &work);
    buffer_release(buffer);
    return NULL;
}

/* ---- LpNormalization ------------------------------------------------------------------------- */

struct lp {
    int64_t axis, p;
};

static tssa_status *prepare_lp(const struct ir_op *op, const struct kernel_setup *setup,
                               const void **result)
{
    struct lp *state = ARENA_NEW(setup->arena, struct lp);
    TRY_ALLOC(state);
    *result = state;
    state->axis = ir_op_axis(op);
    state->p = ir_attr_int(op, "p", 2);
    if (state->p != 1 && state->p != 2)
        return ERROR(TSSA_MALFORMED, "p is %" PRId64 ", not 1 or 2", state->p);
    return NULL;
}

static tssa_status *run_lp(struct kernel_args *args)
{
    const struct lp *state = args->state;
    const struct tensor *in;
    bool reduced[TSSA_MAX_RANK] = {false};
    int axis;
    TRY(typed_tensor(args, 0, &in));
    TRY(kernel_axis(state->axis, in->rank, &axis));
    reduced[axis] = true;
    return run_on(args, in, reduced, state->p);
}

/* ---- MeanVarianceNormalization --------------------------------------------------------------- */

struct mvn {
    size_t n_axes;
    int64_t axes[TSSA_MAX_RANK];
};

static tssa_status *prepare_mvn(const struct ir_op *op, const struct kernel_setup *setup,
                                const void **result)
{
    static const int64_t usual[] = {0, 2, 3};
    struct mvn *state = ARENA_NEW(setup->arena, struct mvn);
    TRY_ALLOC(state);
    *result = state;
    const int64_t *axes = ir_attr_ints(op, "axes", &state->n_axes);
    if (!axes) {
        axes = usual;
        state->n_axes = 3;
    }
    if (state->n_axes > TSSA_MAX_RANK)
        return ERROR(TSSA_MALFORMED, "axes has %zu entries", state->n_axes);
    memcpy(state->axes, axes, state->n_axes * sizeof *axes);
    return NULL;
}

static tssa_status *run_mvn(struct kernel_args *args)
{
    const struct mvn *state = args->state;
    const struct tensor *in;
    bool reduced[TSSA_MAX_RANK] = {false};
    TRY(typed_tensor(args, 0, &in));
    for (size_t i = 0; i < state->n_axes; i++) {
        int axis;
        TRY(kernel_axis(state->axes[i], in->rank, &axis));
        reduced[axis] = true;
    }
    return run_on(args, in, reduced, 0);
}

extern const struct kernel cpu_kernel_lp_normalization, cpu_kernel_mean_variance;
const struct kernel cpu_kernel_lp_normalization = {.prepare = prepare_lp, .run = run_lp};
const struct kernel cpu_kernel_mean_variance = {.prepare = prepare_mvn, .run = run_mvn};
