/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample (ai.onnx 16, 20, 22), for any number of spatial axes; in the order of lib/sample.h. */
#include "device/grid_sample.h"
#include "kernels/cpu/lib/grid_planes.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/sample.h"

static tssa_status *grid_sample_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                        const void **state)
{
    struct grid_attrs *attrs = ARENA_NEW(setup->arena, struct grid_attrs);
    TRY_ALLOC(attrs);
    TRY(grid_sample_decode(op, attrs));
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

static double element_coordinate(const struct grid_job *job, double n, int64_t size)
{
    return job->grid->dtype == TSSA_DOUBLE
               ? sample_place_f64(n, size, job->attrs->align_corners)
               : sample_place_f32((float)n, size, job->attrs->align_corners);
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

static tssa_status *run_GridSample(struct kernel_args *args)
{
    struct grid_job job = {.attrs = args->state};
    struct buffer *values;
    int64_t dims[TSSA_MAX_RANK];
    TRY(typed_tensor(args, 0, &job.x));
    TRY(kernel_tensor(args, 1, &job.grid));
    TRY(grid_sample_resolve(job.x, job.grid, dims));
    job.rank = job.x->rank - 2;
    job.channels = job.x->dims[1];
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
