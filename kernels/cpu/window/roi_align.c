/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoiAlign (ai.onnx 10, 16, 22). Mode "max" is that of the ONNX reference: the largest of the
 * weighted corners of all samples of a bin, not of the interpolated samples. Where samples lie and
 * their weights are made in double, what is made of elements is in double for DOUBLE and in float32
 * for narrower types.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "device/roi_align.h"
#include "kernels/cpu/lib/lines.h"

static tssa_status *roi_align_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                      const void **state)
{
    struct roi_attrs *attrs = ARENA_NEW(setup->arena, struct roi_attrs);
    TRY_ALLOC(attrs);
    *state = attrs;
    return roi_decode(op, attrs);
}

/* One axis of one region: `bins` bins of `samples` samples each. */
struct roi_axis {
    double start, bin;
    int64_t samples, size;
};

struct roi_job {
    const struct roi_attrs *attrs;
    const struct tensor *x, *rois, *items;
    tssa_dtype dtype;   /* that is computed in */
    const void *values; /* x as such */
    struct tensor *y;
    int64_t channels;
};

static double roi_corner(const struct roi_job *job, int64_t roi, int which)
{
    double corner = dtype_load_double(job->rois->dtype, element_at(job->rois, roi * 4 + which));
    return corner * job->attrs->scale - (job->attrs->half_pixel ? 0.5 : 0);
}

/* Samples of more than this many positions along an axis are not meant seriously. */
#define MAX_SAMPLES 65536

/* vertical: corners 1 and 3. false: the region is not finite, or absurdly large. */
static bool roi_axis_init(const struct roi_job *job, int64_t roi, bool vertical,
                          struct roi_axis *axis)
{
    int64_t bins = vertical ? job->attrs->height : job->attrs->width;
    axis->size = job->x->dims[vertical ? 2 : 3];
    axis->start = roi_corner(job, roi, vertical ? 1 : 0);
    double length = roi_corner(job, roi, vertical ? 3 : 2) - axis->start;
    if (!job->attrs->half_pixel && length < 1)
        length = 1;
    axis->bin = length / (double)bins;
    double samples = job->attrs->sampling ? (double)job->attrs->sampling : ceil(axis->bin);
    if (!isfinite(axis->start) || !(samples <= MAX_SAMPLES))
        return false;
    axis->samples = samples > 0 ? (int64_t)samples : 0;
    return true;
}

/*
 * The two elements around sample s of a bin and the second one's weight; false: beyond the input.
 */
static bool roi_sample(const struct roi_axis *axis, int64_t bin, int64_t s, int64_t at[2],
                       double *weight)
{
    double last = (double)(axis->size - 1);
    double x = axis->start + (double)bin * axis->bin +
               ((double)s + 0.5) * axis->bin / (double)axis->samples;
    if (!(x >= -1 && x <= (double)axis->size))
        return false;
    x = x > 0 ? x < last ? x : last : 0;
    at[0] = (int64_t)x;
    at[1] = at[0] < axis->size - 1 ? at[0] + 1 : at[0];
    *weight = x - (double)at[0];
    return true;
}

/* The four elements of a sample, in row-major order, and their weights. */
struct roi_corners {
    int64_t at[4];
    double weight[4];
    float narrow[4]; /* the same, rounded */
};

/* Sample i of a bin; false: beyond the input, 0. */
static bool roi_corners_init(struct roi_corners *corners, const struct roi_axis *rows,
                             const struct roi_axis *columns, int64_t bin_y, int64_t bin_x,
                             int64_t i)
{
    int64_t y[2], x[2];
    double wy, wx;
    if (!roi_sample(rows, bin_y, i / columns->samples, y, &wy) ||
        !roi_sample(columns, bin_x, i % columns->samples, x, &wx))
        return false;
    *corners = (struct roi_corners){{y[0] * columns->size + x[0], y[0] * columns->size + x[1],
                                     y[1] * columns->size + x[0], y[1] * columns->size + x[1]},
                                    {(1 - wy) * (1 - wx), (1 - wy) * wx, wy * (1 - wx), wy * wx},
                                    {0}};
    for (int k = 0; k < 4; k++)
        corners->narrow[k] = (float)corners->weight[k];
    return true;
}

/* A bin of a plane. value: a sample, interpolated, or its largest weighted corner; of two zeros the
 * first one. */
#define POOL_BIN(name, T, weights)                                                                 \
    static T name##_value(const T *plane, const struct roi_corners *corners, bool max)             \
    {                                                                                              \
        T result = corners->weights[0] * plane[corners->at[0]];                                    \
        for (int i = 1; i < 4; i++) {                                                              \
            T corner = corners->weights[i] * plane[corners->at[i]];                                \
            if (!max)                                                                              \
                result += corner;                                                                  \
            else if (corner > result || isnan(result))                                             \
                result = corner;                                                                   \
        }                                                                                          \
        return result;                                                                             \
    }                                                                                              \
    static T name(const T *plane, const struct roi_axis *rows, const struct roi_axis *columns,     \
                  int64_t bin_y, int64_t bin_x, bool max)                                          \
    {                                                                                              \
        int64_t count = rows->samples * columns->samples;                                          \
        T result = 0;                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            struct roi_corners corners;                                                            \
            T value = 0;                                                                           \
            if (roi_corners_init(&corners, rows, columns, bin_y, bin_x, i))                        \
                value = name##_value(plane, &corners, max);                                        \
            if (!max)                                                                              \
                result += value;                                                                   \
            else if (i == 0 || value > result)                                                     \
                result = value;                                                                    \
        }                                                                                          \
        return max || count == 0 ? result : result / (T)count;                                     \
    }
POOL_BIN(float_bin, float, narrow)
POOL_BIN(double_bin, double, weight)

/* Indices are (region, channel) pairs; regions were checked. */
static void pool_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct roi_job *job = context;
    int64_t bins = job->attrs->height * job->attrs->width, width = job->attrs->width;
    const bool narrow = job->dtype == TSSA_FLOAT, max = job->attrs->max;
    float *floats = scratch;
    double *doubles = scratch;
    for (int64_t i = begin; i < end; i++) {
        int64_t roi = i / job->channels, channel = i % job->channels;
        int64_t item = ((const int64_t *)job->items->data)[roi];
        struct roi_axis rows, columns;
        if (!roi_axis_init(job, roi, true, &rows) || !roi_axis_init(job, roi, false, &columns))
            continue;
        const int64_t plane = (item * job->channels + channel) * rows.size * columns.size;
        for (int64_t b = 0; b < bins; b++)
            if (narrow)
                floats[b] = float_bin((const float *)job->values + plane, &rows, &columns,
                                      b / width, b % width, max);
            else
                doubles[b] = double_bin((const double *)job->values + plane, &rows, &columns,
                                        b / width, b % width, max);
        store_elements(job->y, i * bins, 1, bins, job->dtype, scratch);
    }
}

/* ---- Of float32: where a region's samples lie is found once, channels are lanes -------------- */

#define INLINE static inline __attribute__((always_inline))
#define LANES 4
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t mask __attribute__((vector_size(LANES * sizeof(int32_t))));

/* Samples of a region, at most, that are worth the memory. */
#define MAX_TABLE 32768

/* Samples of bin b are corners[first[b]] to corners[first[b + 1] - 1]. Those beyond the input,
 * which are 0, are left out of sums; a maximum has them, as BEYOND. */
struct roi_table {
    int64_t bins, count, *first; /* count: samples of a bin, with those left out */
    struct roi_corners *corners;
    bool max;
};

#define BEYOND (-1) /* in the place of the first element's */

static void put_corners(const struct roi_axis *rows, const struct roi_axis *columns, int64_t bin_y,
                        int64_t bin_x, struct roi_table *table, int64_t *n)
{
    for (int64_t i = 0; i < table->count; i++) {
        struct roi_corners *corners = &table->corners[*n];
        const bool inside = roi_corners_init(corners, rows, columns, bin_y, bin_x, i);
        if (!inside)
            corners->at[0] = BEYOND;
        *n += inside || table->max;
    }
}

static bool make_table(const struct roi_job *job, int64_t roi, struct roi_table *table)
{
    struct roi_axis rows, columns;
    if (!roi_axis_init(job, roi, true, &rows) || !roi_axis_init(job, roi, false, &columns))
        return false;
    int64_t n = 0, width = job->attrs->width;
    table->count = rows.samples * columns.samples;
    for (int64_t b = 0; b < table->bins; b++) {
        table->first[b] = n;
        put_corners(&rows, &columns, b / width, b % width, table, &n);
    }
    table->first[table->bins] = n;
    return true;
}

/* Plane l is x[l], its bins are y[l]: float_bin's operations in their order. */
VECTOR_PROCEDURE(average_bins,
                 (const struct roi_table *table, const float *const *x, float *const *y),
                 (table, x, y))
{
    const float *a = x[0], *b = x[1], *c = x[2], *d = x[3];
    for (int64_t bin = 0; bin < table->bins; bin++) {
        lanes sum = {0};
        for (int64_t i = table->first[bin]; i < table->first[bin + 1]; i++) {
            const struct roi_corners *corners = &table->corners[i];
            lanes value = {0};
            for (int k = 0; k < 4; k++) {
                const int64_t at = corners->at[k];
                const lanes v = {a[at], b[at], c[at], d[at]};
                value += corners->narrow[k] * v;
            }
            sum += value;
        }
        if (table->count)
            sum /= (float)table->count;
        for (int l = 0; l < LANES; l++)
            y[l][bin] = sum[l];
    }
}

INLINE void take(mask takes, const lanes *from, lanes *to)
{
    *to = (lanes)(((mask)*from & takes) | ((mask)*to & ~takes));
}

#define IS_NAN(x) ((x) != (x))

/* The same of the largest weighted corners. */
VECTOR_PROCEDURE(max_bins, (const struct roi_table *table, const float *const *x, float *const *y),
                 (table, x, y))
{
    const float *a = x[0], *b = x[1], *c = x[2], *d = x[3];
    for (int64_t bin = 0; bin < table->bins; bin++) {
        const int64_t first = table->first[bin];
        lanes largest = {0};
        for (int64_t i = first; i < table->first[bin + 1]; i++) {
            const struct roi_corners *corners = &table->corners[i];
            lanes value = {0};
            for (int k = 0; k < 4 && corners->at[0] != BEYOND; k++) {
                const int64_t at = corners->at[k];
                const lanes v = {a[at], b[at], c[at], d[at]}, corner = corners->narrow[k] * v;
                take((corner > value) | IS_NAN(value) | -(k == 0), &corner, &value);
            }
            take((value > largest) | -(i == first), &value, &largest);
        }
        for (int l = 0; l < LANES; l++)
            y[l][bin] = largest[l];
    }
}

/* Indices as those of pool_planes; scratch has room for the table. */
static void pool_lanes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct roi_job *job = context;
    const int64_t size = job->x->dims[2] * job->x->dims[3], channels = job->channels;
    struct roi_table table = {
        .bins = job->attrs->height * job->attrs->width, .first = scratch, .max = job->attrs->max};
    table.corners = (struct roi_corners *)(void *)(table.first + table.bins + 1);
    while (begin < end) {
        int64_t roi = begin / channels, next = (roi + 1) * channels;
        next = next < end ? next : end;
        int64_t item = ((const int64_t *)job->items->data)[roi];
        if (make_table(job, roi, &table))
            for (int64_t i = begin; i < next; i += LANES) {
                const float *x[LANES];
                float *y[LANES];
                for (int64_t l = 0; l < LANES; l++) { /* the last again, where there are no more */
                    int64_t plane = i + l < next ? i + l : next - 1;
                    x[l] = (const float *)job->x->data +
                           (item * channels + plane - roi * channels) * size;
                    y[l] = (float *)job->y->data + plane * table.bins;
                }
                (table.max ? max_bins : average_bins)(&table, x, y);
            }
        begin = next;
    }
}

/* ---- The operator ---------------------------------------------------------------------------- */

static tssa_status *check_regions(const struct roi_job *job, int64_t *samples)
{
    *samples = 1;
    for (int64_t i = 0; i < job->rois->dims[0]; i++) {
        int64_t item = ((const int64_t *)job->items->data)[i];
        struct roi_axis rows, columns;
        if (item < 0 || item >= job->x->dims[0])
            return ERROR(TSSA_RUNTIME, "region %" PRId64 " is of item %" PRId64 " of %" PRId64, i,
                         item, job->x->dims[0]);
        if (!roi_axis_init(job, i, true, &rows) || !roi_axis_init(job, i, false, &columns))
            return ERROR(TSSA_RUNTIME, "region %" PRId64 " is not finite or too large", i);
        int64_t count = rows.samples * columns.samples;
        *samples = count > *samples ? count : *samples;
    }
    return NULL;
}

static tssa_status *open_job(struct kernel_args *args, struct roi_job *job)
{
    TRY(typed_tensor(args, 0, &job->x));
    TRY(typed_tensor(args, 1, &job->rois));
    TRY(kernel_tensor(args, 2, &job->items));
    if (job->x->rank != 4)
        return operand_error(0, job->x, "of rank 4");
    if (job->rois->rank != 2 || job->rois->dims[1] != 4)
        return operand_error(1, job->rois, "a list of 4 corners");
    if (job->items->dtype != TSSA_INT64 || job->items->rank != 1 ||
        job->items->dims[0] != job->rois->dims[0])
        return operand_error(2, job->items, "an i64 per region");
    job->channels = job->x->dims[1];
    return NULL;
}

static tssa_status *run_RoiAlign(struct kernel_args *args)
{
    struct roi_job job = {.attrs = args->state};
    int64_t samples, bins;
    TRY(open_job(args, &job));
    int64_t dims[] = {job.rois->dims[0], job.channels, job.attrs->height, job.attrs->width};
    TRY(kernel_output(args, 0, job.x->dtype, 4, dims, &job.y));
    if (!job.y || tensor_count(job.y) == 0)
        return NULL;
    if (tensor_count(job.x) == 0)
        return ERROR(TSSA_RUNTIME, "there is nothing to pool from");
    TRY(check_regions(&job, &samples));
    bins = dims[2] * dims[3]; /* of a tensor that is there */
    int64_t cost = bins < 65536 ? bins * (samples < 65536 ? samples : 65536) : INT64_C(1) << 32;
    if (job.x->dtype == TSSA_FLOAT && bins <= MAX_TABLE && samples <= MAX_TABLE &&
        bins * samples <= MAX_TABLE) {
        size_t bytes = (size_t)(bins + 1) * sizeof(int64_t) +
                       (size_t)(bins * samples) * sizeof(struct roi_corners);
        return parts_for(args, dims[0] * dims[1], cost, bytes, pool_lanes, &job);
    }
    struct buffer *values;
    job.dtype = computed_in(job.x->dtype);
    TRY(elements_as(args, job.x, job.dtype, &job.values, &values));
    tssa_status *status =
        parts_for(args, dims[0] * dims[1], cost, (size_t)bins * sizeof(double), pool_planes, &job);
    buffer_release(values);
    return status;
}

const struct kernel cpu_kernel_RoiAlign = {.prepare = roi_align_prepare, .run = run_RoiAlign};
