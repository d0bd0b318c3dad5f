/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxRoiPool-22 of ai.onnx, as in Fast R-CNN: a region's corners are rounded to elements, both
 * included; bins overlap where they do not divide it; an empty bin is 0.
 */
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/lib/lines.h"

struct roi_pool {
    int64_t height, width;
    double scale;
};

#define POOLED_LIMIT (INT64_C(1) << 24)

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct roi_pool *state = ARENA_NEW(setup->arena, struct roi_pool);
    TRY_ALLOC(state);
    *result = state;
    size_t count;
    const int64_t *shape = ir_attr_ints(op, "pooled_shape", &count);
    if (!shape || count != 2 || shape[0] < 1 || shape[1] < 1 || shape[0] > POOLED_LIMIT ||
        shape[1] > POOLED_LIMIT)
        return ERROR(TSSA_MALFORMED, "pooled_shape is not a height and a width");
    state->height = shape[0];
    state->width = shape[1];
    state->scale = (double)ir_attr_float(op, "spatial_scale", 1);
    return NULL;
}

struct work {
    const struct roi_pool *state;
    const struct tensor *in, *rois, *out;
};

/* Bin `i` of `bins` over the elements [first, first + length), clipped to [0, n). */
static void bin_range(double first, double length, int64_t i, int64_t bins, int64_t n,
                      int64_t *begin, int64_t *end)
{
    double low = floor((double)i * length / (double)bins) + first;
    double high = ceil((double)(i + 1) * length / (double)bins) + first, most = (double)n;
    *begin = (int64_t)fmin(fmax(low, 0), most);
    *end = (int64_t)fmin(fmax(high, 0), most);
}

static double bin_max(const struct tensor *in, int64_t plane, const int64_t *y, const int64_t *x)
{
    double most = 0;
    bool first = true;
    for (int64_t r = y[0]; r < y[1]; r++)
        for (int64_t c = x[0]; c < x[1]; c++) {
            double v;
            load_doubles(in, plane + r * in->dims[3] + c, 1, 1, &v);
            most = first || v > most || isnan(v) ? v : most;
            first = false;
        }
    return most;
}

/* One index: one channel of one region. */
static void run_planes(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const int64_t *dims = w->in->dims;
    (void)scratch;
    for (int64_t p = begin; p < end; p++) {
        double roi[5], first[2], length[2];
        load_doubles(w->rois, p / dims[1] * 5, 1, 5, roi);
        for (int i = 0; i < 2; i++) { /* x, y */
            first[i] = round(roi[1 + i] * w->state->scale);
            length[i] = fmax(round(roi[3 + i] * w->state->scale) - first[i] + 1, 1);
        }
        int64_t plane = ((int64_t)roi[0] * dims[1] + p % dims[1]) * dims[2] * dims[3], bins[2][2];
        int64_t to = p * w->state->height * w->state->width;
        for (int64_t r = 0; r < w->state->height; r++) {
            bin_range(first[1], length[1], r, w->state->height, dims[2], &bins[0][0], &bins[0][1]);
            for (int64_t c = 0; c < w->state->width; c++) {
                bin_range(first[0], length[0], c, w->state->width, dims[3], &bins[1][0],
                          &bins[1][1]);
                double most = bin_max(w->in, plane, bins[0], bins[1]);
                store_doubles(w->out, to + r * w->state->width + c, 1, 1, &most);
            }
        }
    }
}

static tssa_status *check_rois(const struct tensor *rois, int64_t batches)
{
    for (int64_t i = 0; i < rois->dims[0]; i++) {
        double roi[5];
        load_doubles(rois, i * 5, 1, 5, roi);
        if (!(roi[0] >= 0 && roi[0] < (double)batches))
            return ERROR(TSSA_RUNTIME, "region %" PRId64 " is in batch %g of %" PRId64, i, roi[0],
                         batches);
        for (int k = 1; k < 5; k++)
            if (!isfinite(roi[k]))
                return ERROR(TSSA_RUNTIME, "region %" PRId64 " is not finite", i);
    }
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    const struct roi_pool *state = args->state;
    const struct tensor *in, *rois;
    struct tensor *out;
    TRY(typed_tensor(args, 0, &in));
    TRY(typed_tensor(args, 1, &rois));
    if (in->rank != 4)
        return operand_error(0, in, "a tensor of rank 4");
    if (rois->rank != 2 || rois->dims[1] != 5)
        return operand_error(1, rois, "regions of shape [n, 5]");
    TRY(check_rois(rois, in->dims[0]));
    const int64_t dims[4] = {rois->dims[0], in->dims[1], state->height, state->width};
    TRY(kernel_output(args, 0, in->dtype, 4, dims, &out));
    if (!out)
        return NULL;
    struct work work = {state, in, rois, out};
    return parts_for(args, dims[0] * dims[1],
                     in->dims[2] * in->dims[3] + state->height * state->width * 8, 0, run_planes,
                     &work);
}

extern const struct kernel cpu_kernel_max_roi_pool;
const struct kernel cpu_kernel_max_roi_pool = {.prepare = prepare, .run = run};
