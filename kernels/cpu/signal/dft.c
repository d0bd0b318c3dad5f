/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DFT (ai.onnx 17, 20) and STFT (17). Signals end in an axis of 1 (real) or 2 (complex) elements,
 * which a real one of STFT may leave out; the transforms are in double and rounded once.
 */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/signal/fft.h"

/* Transforms, and what their tables live in. */
struct transform {
    struct fft fft;
    struct buffer *tables;
    size_t scratch; /* bytes: the values, then the transform's own */
};

static tssa_status *transform_open(struct kernel_args *args, int64_t n, struct transform *t)
{
    size_t tables, scratch;
    if (!fft_sizes(n, &tables, &scratch))
        return ERROR(TSSA_RUNTIME, "a transform of %" PRId64 " elements", n);
    TRY(kernel_scratch(args, tables * sizeof(double), &t->tables));
    fft_init(&t->fft, n, t->tables->data);
    t->scratch = (2 * (size_t)n + scratch) * sizeof(double);
    return NULL;
}

static void transform_run(const struct transform *t, double *values, bool inverse)
{
    fft_run(&t->fft, values, values + 2 * t->fft.n, inverse);
}

/* A rough count of scalar steps. */
static int64_t transform_cost(const struct transform *t)
{
    return 64 * t->fft.padded;
}

static tssa_status *check_signal(const struct tensor *x)
{
    if (x->rank >= 2 && (x->dims[x->rank - 1] == 1 || x->dims[x->rank - 1] == 2))
        return NULL;
    return operand_error(0, x, "a signal that ends in 1 or 2 parts");
}

/* ---- DFT ------------------------------------------------------------------------------------- */

struct dft_attrs {
    bool inverse, one_sided;
};

static tssa_status *dft_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                const void **state)
{
    struct dft_attrs *attrs = ARENA_NEW(setup->arena, struct dft_attrs);
    TRY_ALLOC(attrs);
    attrs->inverse = ir_attr_int(op, "inverse", 0) != 0;
    attrs->one_sided = ir_attr_int(op, "onesided", 0) != 0;
    *state = attrs;
    return NULL;
}

struct dft_job {
    const struct dft_attrs *attrs;
    struct transform transform;
    const struct tensor *in;
    struct tensor *out;
    struct lines from, to;             /* inner counts the parts too */
    int64_t in_parts, out_parts, used; /* used: elements of a line that are read */
};

/* Line `line` into values, filled up with 0. Inner positions of `from` are pairs of a place and a
 * part. */
static void load_line(const struct dft_job *job, int64_t line, double *values)
{
    int64_t n = job->transform.fft.n, places = job->from.inner / job->in_parts;
    int64_t start = line / places * job->from.n * job->from.inner + line % places * job->in_parts;
    memset(values, 0, 2 * (size_t)n * sizeof *values);
    for (int64_t i = 0; i < job->used; i++)
        for (int64_t part = 0; part < job->in_parts; part++)
            values[2 * i + part] = dtype_load_double(
                job->in->dtype, element_at(job->in, start + i * job->from.inner + part));
}

/* The half that a one-sided spectrum leaves out is the other's conjugate. */
static void complete(double *values, int64_t n)
{
    values[1] = 0;
    if (n % 2 == 0)
        values[n + 1] = 0;
    for (int64_t k = 1; k < (n + 1) / 2; k++) {
        values[2 * (n - k)] = values[2 * k];
        values[2 * (n - k) + 1] = -values[2 * k + 1];
    }
}

static void store_line(const struct dft_job *job, int64_t line, const double *values)
{
    int64_t places = job->to.inner / job->out_parts;
    int64_t start = line / places * job->to.n * job->to.inner + line % places * job->out_parts;
    for (int64_t i = 0; i < job->to.n; i++)
        for (int64_t part = 0; part < job->out_parts; part++)
            dtype_store_double(job->out->dtype,
                               element_at(job->out, start + i * job->to.inner + part),
                               values[2 * i + part]);
}

static void dft_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct dft_job *job = context;
    double *values = scratch;
    for (int64_t line = begin; line < end; line++) {
        load_line(job, line, values);
        if (job->attrs->inverse && job->attrs->one_sided)
            complete(values, job->transform.fft.n);
        transform_run(&job->transform, values, job->attrs->inverse);
        store_line(job, line, values);
    }
}

/* The axis and the transform's length. */
static tssa_status *dft_operands(const struct kernel_args *args, struct dft_job *job, int *axis,
                                 int64_t *n)
{
    const struct tensor *length, *given;
    int64_t wanted = -2;
    bool real = job->attrs->inverse && job->attrs->one_sided;
    TRY(typed_tensor(args, 0, &job->in));
    TRY(check_signal(job->in));
    TRY(kernel_optional_tensor(args, 1, &length));
    TRY(kernel_optional_tensor(args, 2, &given));
    if (given)
        TRY(kernel_scalar_int(args, 2, &wanted));
    TRY(kernel_axis(wanted, job->in->rank, axis));
    if (*axis == job->in->rank - 1)
        return ERROR(TSSA_RUNTIME, "axis %" PRId64 " is that of the parts", wanted);
    *n = job->in->dims[*axis];
    if (length)
        TRY(kernel_scalar_int(args, 1, n));
    else if (real)
        *n = 2 * (*n - 1);
    if (*n < 1)
        return ERROR(TSSA_RUNTIME, "a transform of %" PRId64 " elements", *n);
    job->used = real ? *n / 2 + 1 : *n;
    if (job->used > job->in->dims[*axis])
        job->used = job->in->dims[*axis];
    return NULL;
}

static tssa_status *run_DFT(struct kernel_args *args)
{
    struct dft_job job = {.attrs = args->state};
    int64_t dims[TSSA_MAX_RANK], n;
    int axis;
    TRY(dft_operands(args, &job, &axis, &n));
    int rank = job.in->rank;
    bool real = job.attrs->inverse && job.attrs->one_sided;
    memcpy(dims, job.in->dims, (size_t)rank * sizeof *dims);
    dims[axis] = job.attrs->one_sided && !job.attrs->inverse ? n / 2 + 1 : n;
    dims[rank - 1] = real ? 1 : 2;
    TRY(kernel_output(args, 0, job.in->dtype, rank, dims, &job.out));
    if (!job.out || tensor_count(job.out) == 0)
        return NULL;
    job.from = lines_along(job.in, axis);
    job.to = lines_along(job.out, axis);
    job.in_parts = job.in->dims[rank - 1];
    job.out_parts = dims[rank - 1];
    TRY(transform_open(args, n, &job.transform));
    tssa_status *status =
        parts_for(args, job.to.outer * (job.to.inner / job.out_parts),
                  transform_cost(&job.transform), job.transform.scratch, dft_lines, &job);
    buffer_release(job.transform.tables);
    return status;
}

const struct kernel cpu_kernel_DFT = {.prepare = dft_prepare, .run = run_DFT};

/* ---- STFT ------------------------------------------------------------------------------------ */

struct stft_attrs {
    bool one_sided;
};

static tssa_status *stft_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                 const void **state)
{
    struct stft_attrs *attrs = ARENA_NEW(setup->arena, struct stft_attrs);
    TRY_ALLOC(attrs);
    attrs->one_sided = ir_attr_int(op, "onesided", 1) != 0;
    *state = attrs;
    return NULL;
}

struct stft_job {
    struct transform transform;
    const struct tensor *in, *window; /* window may be NULL */
    struct tensor *out;
    int64_t parts; /* of an element of the signal */
    int64_t step, frames;
};

/* Indices are (batch, frame) pairs. */
static void stft_frames(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct stft_job *job = context;
    int64_t n = job->transform.fft.n, parts = job->parts, kept = job->out->dims[2];
    double *values = scratch;
    for (int64_t f = begin; f < end; f++) {
        int64_t start = f / job->frames * job->in->dims[1] + f % job->frames * job->step;
        for (int64_t i = 0; i < n; i++) {
            double weight =
                job->window ? dtype_load_double(job->window->dtype, element_at(job->window, i)) : 1;
            values[2 * i + 1] = 0;
            for (int64_t p = 0; p < parts; p++)
                values[2 * i + p] =
                    weight *
                    dtype_load_double(job->in->dtype, element_at(job->in, (start + i) * parts + p));
        }
        transform_run(&job->transform, values, false);
        store_doubles(job->out, f * kept * 2, 1, kept * 2, values);
    }
}

static tssa_status *stft_operands(const struct kernel_args *args, struct stft_job *job,
                                  int64_t *length)
{
    const struct tensor *given;
    TRY(typed_tensor(args, 0, &job->in));
    if (job->in->rank != 2 && job->in->rank != 3)
        return operand_error(0, job->in, "of rank 3 or 2");
    if (job->in->rank == 3)
        TRY(check_signal(job->in));
    job->parts = job->in->rank == 3 ? job->in->dims[2] : 1;
    TRY(kernel_scalar_int(args, 1, &job->step));
    TRY(kernel_optional_tensor(args, 2, &job->window));
    TRY(kernel_optional_tensor(args, 3, &given));
    *length = job->window && job->window->rank == 1 ? job->window->dims[0] : job->in->dims[1];
    if (given)
        TRY(kernel_scalar_int(args, 3, length));
    if (*length < 1 || *length > job->in->dims[1] || job->step < 1)
        return ERROR(TSSA_RUNTIME,
                     "frames of %" PRId64 " every %" PRId64 " in a signal of %" PRId64, *length,
                     job->step, job->in->dims[1]);
    return typed_vector(args, 2, *length, true, &job->window);
}

static tssa_status *run_STFT(struct kernel_args *args)
{
    const struct stft_attrs *attrs = args->state;
    struct stft_job job = {0};
    int64_t n;
    TRY(stft_operands(args, &job, &n));
    job.frames = 1 + (job.in->dims[1] - n) / job.step;
    int64_t dims[] = {job.in->dims[0], job.frames, attrs->one_sided ? n / 2 + 1 : n, 2};
    TRY(kernel_output(args, 0, job.in->dtype, 4, dims, &job.out));
    if (!job.out || tensor_count(job.out) == 0)
        return NULL;
    TRY(transform_open(args, n, &job.transform));
    tssa_status *status = parts_for(args, dims[0] * dims[1], transform_cost(&job.transform),
                                    job.transform.scratch, stft_frames, &job);
    buffer_release(job.transform.tables);
    return status;
}

const struct kernel cpu_kernel_STFT = {.prepare = stft_prepare, .run = run_STFT};
