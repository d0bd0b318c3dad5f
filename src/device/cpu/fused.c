/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs compiled kernels. Axes that all arguments walk as one are merged; of what is left the
 * innermost is a row's elements, the next one the rows of a call, and each of the others a loop
 * around calls. Which those are is told from the kernel's axes alone: sizes are only read. Where a
 * kernel says which axes are a row (it reduces them), these are, and a call has whole rows. Where
 * operands lie in planes, axes are cut as these are (gir_walk_planes).
 */
#include <inttypes.h>
#include <string.h>

#include "device/cpu/walk.h"
#include "kernels/cpu/lib/lines.h"

/* ---- Arguments ------------------------------------------------------------------------------- */

/* The dims of the space that an operand has. False: it does not fit what others have told. */
static bool find_dims(const struct gir_place *place, const struct tensor *tensor, int64_t *dims)
{
    const struct gir_planes *planes = place->planes;
    const int64_t *own = planes ? planes->dims : tensor->dims;
    if (tensor->rank != (planes ? planes->operand_rank : place->rank))
        return false;
    for (int i = 0; planes && i < tensor->rank; i++)
        if (tensor->dims[i] != planes->operand_dims[i])
            return false;
    for (int i = 0; i < place->rank; i++) {
        const bool has = place->axes >> (place->first + i) & 1;
        int64_t *dim = &dims[place->first + i];
        if (has && *dim < 0)
            *dim = own[i];
        if (own[i] != (has ? *dim : 1))
            return false;
    }
    return true;
}

/* Reads the operands' shapes: the dims of the space, which are the results'. */
static tssa_status *read_operands(struct kernel_args *args, const struct device_fused *fused,
                                  struct walk *walk, int64_t *dims)
{
    const struct gir_arg *given = gir_args(fused->kernel);
    for (int i = 0; i < fused->space.rank; i++)
        dims[i] = -1;
    for (uint32_t k = 0; k < fused->kernel->n_args && !given[k].is_result; k++) {
        const struct gir_place *place = &fused->space.places[k];
        const struct tensor *tensor;
        TRY(kernel_tensor(args, place->index, &tensor));
        if (tensor->dtype != (tssa_dtype)given[k].dtype || !find_dims(place, tensor, dims))
            return walk_does_not_fit(place->index, tensor);
        walk->data[k] = tensor->data;
        if (place->planes)
            walk->data[k] +=
                place->planes->offset * (int64_t)dtype_info((tssa_dtype)given[k].dtype)->size;
    }
    for (int i = 0; i < fused->space.rank; i++)
        dims[i] = dims[i] < 0 ? 1 : dims[i];
    return NULL;
}

static tssa_status *make_results(struct kernel_args *args, const struct device_fused *fused,
                                 struct walk *walk, const int64_t *dims)
{
    const struct gir_arg *given = gir_args(fused->kernel);
    for (uint32_t k = 0; k < fused->kernel->n_args; k++) {
        const struct gir_place *place = &fused->space.places[k];
        int64_t own[TSSA_MAX_RANK];
        struct tensor *tensor;
        if (!given[k].is_result)
            continue;
        for (int i = 0; i < place->rank; i++)
            own[i] = place->axes >> (place->first + i) & 1 ? dims[place->first + i] : 1;
        TRY(kernel_output(args, place->index, given[k].dtype, place->rank, own, &tensor));
        if (!tensor)
            return ERROR(TSSA_INTERNAL, "a kernel's result is not wanted");
        walk->data[k] = tensor->data;
    }
    return NULL;
}

/* ---- Axes ------------------------------------------------------------------------------------ */

/* Does every argument have both axes, or neither? */
static bool is_one(const struct device_fused *fused, uint32_t n_args, int a, int b)
{
    for (uint32_t k = 0; k < n_args; k++)
        if ((fused->space.places[k].axes >> a & 1) != (fused->space.places[k].axes >> b & 1))
            return false;
    return true;
}

static bool has_axis(const struct device_fused *fused, uint32_t n_args, int axis)
{
    for (uint32_t k = 0; k < n_args; k++)
        if (fused->space.places[k].axes >> axis & 1)
            return true;
    return false;
}

/* The axes of a row, which every argument has or has not, are the innermost one. */
static int find_row(const struct device_fused *fused, struct walk *walk, const int64_t *dims,
                    int64_t *count)
{
    int axis = fused->space.rank;
    if (!fused->space.row)
        return axis;
    walk->n_axes = 1;
    walk->sizes[0] = 1;
    for (; axis > fused->space.rank - fused->space.row; axis--)
        walk->sizes[0] *= dims[axis - 1];
    for (uint32_t k = 0; k < walk->n_args; k++) {
        const bool moves = gir_args(fused->kernel)[k].moves;
        walk->steps[0][k] = moves ? count[k] : 0;
        count[k] *= moves ? walk->sizes[0] : 1;
    }
    return axis;
}

static void find_axes(const struct device_fused *fused, struct walk *walk, const int64_t *dims)
{
    int64_t count[GIR_MAX_ARGS];
    int last = -1;
    walk->n_axes = 0;
    for (uint32_t k = 0; k < walk->n_args; k++)
        count[k] = (int64_t)dtype_info(gir_args(fused->kernel)[k].dtype)->size;
    for (int axis = find_row(fused, walk, dims, count) - 1; axis >= 0; axis--) {
        if (!has_axis(fused, walk->n_args, axis))
            continue;
        const bool joins = last >= 0 && is_one(fused, walk->n_args, axis, last);
        const int at = joins ? walk->n_axes - 1 : walk->n_axes++;
        if (!joins)
            walk->sizes[at] = 1;
        walk->sizes[at] *= dims[axis];
        for (uint32_t k = 0; k < walk->n_args; k++) {
            const bool has = fused->space.places[k].axes >> axis & 1;
            if (!joins)
                walk->steps[at][k] = has ? count[k] : 0;
            count[k] *= has ? dims[axis] : 1;
        }
        last = axis;
    }
}

/* ---- Walking --------------------------------------------------------------------------------- */

/* Whole rows [begin, end). */
static void run_rows(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct walk *walk = context;
    while (begin < end) {
        int64_t rest = begin, rows = end - begin, index = 0;
        char *at[GIR_MAX_ARGS];
        for (uint32_t k = 0; k < walk->n_args; k++)
            at[k] = walk->data[k];
        for (int axis = 1; axis < walk->n_axes; axis++) {
            const int64_t here = rest % walk->sizes[axis];
            rest /= walk->sizes[axis];
            index = axis == 1 ? here : index;
            for (uint32_t k = 0; k < walk->n_args; k++)
                at[k] += here * walk->steps[axis][k];
        }
        rows = rows < walk->sizes[1] - index ? rows : walk->sizes[1] - index;
        walk->code->run((void *const *)at, walk->given, rows, walk->sizes[0], &walk->code->calls,
                        scratch);
        begin += rows;
    }
}

static tssa_status *run_all_rows(struct kernel_args *args, struct walk *walk, int64_t rows)
{
    const int64_t n = walk->sizes[0];
    size_t bytes;
    if (!size_mul((size_t)n + CODEGEN_MORE, walk->code->kept, &bytes))
        return ERROR(TSSA_LIMIT, "a row of %" PRId64 " elements is too long", n);
    return parts_for(args, rows, n * 2, bytes, run_rows, walk);
}

/* Finds the walk; *count: its elements, or whole rows. */
static tssa_status *find_walk(struct kernel_args *args, const struct device_fused *fused,
                              struct walk *walk, int64_t *count)
{
    int64_t dims[TSSA_MAX_RANK];
    walk->code = fused->code;
    walk->n_args = fused->kernel->n_args;
    TRY(read_operands(args, fused, walk, dims));
    TRY(make_results(args, fused, walk, dims));
    *count = 1;
    for (int i = 0; i < fused->space.rank - (fused->kernel->whole_rows ? fused->space.row : 0); i++)
        *count *= dims[i];
    if (*count == 0)
        return NULL;
    if (!gir_has_planes(fused->kernel, &fused->space))
        find_axes(fused, walk, dims);
    else if (!gir_walk_planes(fused->kernel, &fused->space, dims, &walk->n_axes, walk->sizes,
                              walk->steps))
        return ERROR(TSSA_INTERNAL, "an argument of a kernel lies elsewhere");
    walk_finish(walk);
    return NULL;
}

static tssa_status *run_fused(struct kernel_args *args)
{
    const struct device_fused *fused = args->state;
    struct walk walk;
    int64_t count;
    if (fused->n_parts)
        return cpu_run_mapped(args, fused);
    TRY(find_walk(args, fused, &walk, &count));
    if (fused->kernel->whole_rows && count)
        return run_all_rows(args, &walk, count);
    team_for(args->env->team, count, WALK_GRAIN, walk_run, &walk);
    return NULL;
}

static bool set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    const struct device_fused *fused = args->state;
    struct walk_call *c = (struct walk_call *)call;
    if (fused->n_parts)
        return cpu_set_up_mapped(args, fused, known, c);
    tssa_status *status = find_walk(args, fused, &c->walk, &c->count);
    tssa_status_free(status);
    return !status && c->count &&
           walk_set_up(c, args->env->team,
                       fused->kernel->whole_rows ? WALK_WHOLE_ROWS : WALK_ELEMENTS);
}

/* The state is the op's, as long as the graph lives. */
static tssa_status *prepare_fused(const struct ir_op *op, const struct kernel_setup *setup,
                                  const void **state)
{
    (void)setup;
    *state = op->kernel;
    return NULL;
}

/*
 * What the kernel says of its arguments: all that the operand is. Not of whole rows: short ones are
 * copied to the stack and back, and copies of rows behind wait for the stores to rows before in the
 * same memory: a softmax takes twice as long in place.
 */
static bool may_lie_on(const struct ir_op *op, uint32_t result, uint32_t operand)
{
    const struct device_fused *fused = op->kernel;
    const struct gir_arg *args = gir_args(fused->kernel);
    uint64_t operands = 0, lies_on = 0;
    for (uint32_t k = 0; k < fused->kernel->n_args; k++)
        if (!args[k].is_result && fused->space.places[k].index == operand)
            operands |= UINT64_C(1) << k;
        else if (args[k].is_result && fused->space.places[k].index == result)
            lies_on = args[k].may_lie_on;
    return !fused->kernel->whole_rows && operands && !(operands & ~lies_on);
}

const struct kernel cpu_kernel_fused = {.prepare = prepare_fused,
                                        .run = run_fused,
                                        .may_lie_on = may_lie_on,
                                        .set_up = set_up,
                                        .call_size = sizeof(struct walk_call)};
