/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample (ai.onnx 16, 20, 22), for any number of spatial axes; in the order of lib/sample.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu/lib/grid_planes.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/sample.h"

struct grid_attrs {
    enum sample_mode mode;
    enum sample_padding padding;
    bool align_corners;
};

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

static tssa_status *grid_sample_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                        const void **state)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear", "bicubic", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    struct grid_attrs *attrs = ARENA_NEW(setup->arena, struct grid_attrs);
    int mode = 0, padding = 0;
    TRY_ALLOC(attrs);
    TRY(choose(op, "mode", modes, "linear", &mode));
    TRY(choose(op, "padding_mode", paddings, "zeros", &padding));
    attrs->mode = (enum sample_mode)(mode > SAMPLE_CUBIC ? mode - 2 : mode);
    attrs->padding = (enum sample_padding)padding;
    attrs->align_corners = ir_attr_int(op, "align_corners", 0) != 0;
    *state = attrs;
    return NULL;
}

struct grid_job {
    const struct grid_attrs *attrs;
    const struct tensor *x, *grid;
    tssa_dtype dtype;   /* that is computed in */
    const void *values; /* x as such */
    struct tensor *y;
    int rank; /* spatial axes */
    int64_t channels, in_count, out_count;
};

/* From [-1, 1] to elements; in float, as other implementations do, unless the grid is double. */
static double element_coordinate(const struct grid_job *job, double n, int64_t size)
{
    if (job->grid->dtype == TSSA_DOUBLE)
        return job->attrs->align_corners ? (n + 1) / 2 * (double)(size - 1)
                                         : ((n + 1) * (double)size - 1) / 2;
    float f = (float)n;
    return (double)(job->attrs->align_corners ? (f + 1) / 2 * (float)(size - 1)
                                              : ((f + 1) * (float)size - 1) / 2);
}

/* The axes of points [first, first + n) of one batch; the grid's coordinates are x, y, z: last axis
 * first. */
static void make_points(const struct grid_job *job, int64_t first, int64_t n,
                        struct sample_axis *axes)
{
    const int64_t *sizes = job->x->dims + 2;
    int64_t strides[TSSA_MAX_RANK];
    tensor_strides(job->rank, sizes, strides);
    for (int d = 0; d < job->rank; d++) {
        const struct sample_line line = {job->attrs->mode, job->attrs->padding,
                                         job->attrs->align_corners, sizes[d], strides[d]};
        double x[GRID_POINTS];
        load_doubles(job->grid, first * job->rank + job->rank - 1 - d, job->rank, n, x);
        for (int64_t i = 0; i < n; i++)
            x[i] = element_coordinate(job, x[i], sizes[d]);
        sample_axes_init(&line, x, n, axes + d, job->rank);
    }
}

/* Points [at, at + n) of a batch, of any type and rank. */
static void sample_values(const struct grid_job *job, int64_t batch, int64_t at, int64_t n,
                          const struct sample_axis *axes)
{
    const bool narrow = job->dtype == TSSA_FLOAT;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = batch * job->channels; c < (batch + 1) * job->channels; c++) {
            const int64_t plane = c * job->in_count;
            const struct sample_axis *point = axes + i * job->rank;
            double value =
                narrow
                    ? (double)sample_floats_at((const float *)job->values + plane, point, job->rank)
                    : sample_doubles_at((const double *)job->values + plane, point, job->rank);
            dtype_store_double(job->y->dtype, element_at(job->y, c * job->out_count + at + i),
                               value);
        }
}

/* Indices are (batch, output position) pairs. */
static void sample_points(void *context, int64_t begin, int64_t end)
{
    const struct grid_job *job = context;
    struct sample_axis axes[GRID_POINTS * (TSSA_MAX_RANK - 2)];
    while (begin < end) {
        int64_t batch = begin / job->out_count, at = begin % job->out_count;
        int64_t n = job->out_count - at < end - begin ? job->out_count - at : end - begin;
        n = n < GRID_POINTS ? n : GRID_POINTS;
        make_points(job, begin, n, axes);
        if (job->y->dtype != TSSA_FLOAT || job->rank != 2) {
            sample_values(job, batch, at, n, axes);
        } else {
            int64_t plane = batch * job->channels;
            struct grid_planes planes = {(const float *)job->values + plane * job->in_count,
                                         (float *)job->y->data + plane * job->out_count + at,
                                         job->channels, job->in_count, job->out_count};
            grid_planes_sample(&planes, axes, n);
        }
        begin += n;
    }
}

static tssa_status *check_operands(const struct tensor *x, const struct tensor *grid)
{
    char text[160];
    if (x->rank < 3)
        return operand_error(0, x, "a tensor of batches, channels and spatial axes");
    if (grid->rank == x->rank && dtype_is_float(grid->dtype) && grid->dims[0] == x->dims[0] &&
        grid->dims[grid->rank - 1] == x->rank - 2)
        return NULL;
    snprintf(text, sizeof text,
             "floats of rank %d that start with %" PRId64 " (the batches) and end with %d "
             "(coordinates of a point)",
             x->rank, x->dims[0], x->rank - 2);
    return operand_error(1, grid, text);
}

static tssa_status *run_GridSample(struct kernel_args *args)
{
    struct grid_job job = {.attrs = args->state};
    struct buffer *values;
    int64_t dims[TSSA_MAX_RANK];
    TRY(typed_tensor(args, 0, &job.x));
    TRY(kernel_tensor(args, 1, &job.grid));
    TRY(check_operands(job.x, job.grid));
    job.rank = job.x->rank - 2;
    job.channels = job.x->dims[1];
    memcpy(dims, job.x->dims, 2 * sizeof *dims);
    memcpy(dims + 2, job.grid->dims + 1, (size_t)job.rank * sizeof *dims);
    TRY(kernel_output(args, 0, job.x->dtype, job.x->rank, dims, &job.y));
    if (!job.y || tensor_count(job.y) == 0)
        return NULL;
    if (tensor_count(job.x) == 0)
        return ERROR(TSSA_RUNTIME, "there is nothing to sample from");
    job.in_count = dims_product(job.x->dims, 2, job.x->rank);
    job.out_count = dims_product(dims, 2, job.x->rank);
    job.dtype = computed_in(job.x->dtype);
    TRY(elements_as(args, job.x, job.dtype, &job.values, &values));
    team_for(args->env->team, dims[0] * job.out_count, 1 + 1024 / job.channels, sample_points,
             &job);
    buffer_release(values);
    return NULL;
}

const struct kernel cpu_kernel_GridSample = {.prepare = grid_sample_prepare, .run = run_GridSample};
