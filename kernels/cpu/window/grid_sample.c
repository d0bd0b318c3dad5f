/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample (ai.onnx 16, 20, 22), for any number of spatial axes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
    const double *values; /* x as doubles */
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

/* Indices are (batch, output position) pairs; the grid's coordinates are x, y, z: last axis first. */
static void sample_points(void *context, int64_t begin, int64_t end)
{
    const struct grid_job *job = context;
    const int64_t *sizes = job->x->dims + 2;
    int64_t strides[TSSA_MAX_RANK];
    tensor_strides(job->rank, sizes, strides);
    for (int64_t i = begin; i < end; i++) {
        struct sample_axis axes[TSSA_MAX_RANK];
        int64_t n = i / job->out_count, at = i % job->out_count;
        for (int d = 0; d < job->rank; d++) {
            double value = dtype_load_double(
                job->grid->dtype, element_at(job->grid, i * job->rank + job->rank - 1 - d));
            sample_axis_init(&axes[d], job->attrs->mode, job->attrs->padding,
                             job->attrs->align_corners, element_coordinate(job, value, sizes[d]),
                             sizes[d], strides[d]);
        }
        for (int64_t c = n * job->channels; c < (n + 1) * job->channels; c++) {
            double value = sample_at(job->values + c * job->in_count, axes, job->rank);
            dtype_store_double(job->y->dtype, element_at(job->y, c * job->out_count + at), value);
        }
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
    TRY(doubles_of(args, job.x, &values));
    job.values = values->data;
    team_for(args->env->team, dims[0] * job.out_count, 1 + 1024 / job.channels, sample_points,
             &job);
    buffer_release(values);
    return NULL;
}

const struct kernel cpu_kernel_GridSample = {.prepare = grid_sample_prepare, .run = run_GridSample};
