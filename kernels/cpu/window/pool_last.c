/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/window/pool_last.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/lib/lines.h"

struct images {
    struct window window;
    int64_t channels;
    const float *in;
    float *out;
    int64_t rows; /* of an image of the result: all axes but the last spatial one */
};

/* The larger one of each of n numbers; a NaN is. So many times, of which x is so much further on
 * each. */
VECTOR_PROCEDURE(max_into,
                 (float *restrict y, const float *restrict x, int64_t n, int64_t count,
                  int64_t step),
                 (y, x, n, count, step))
{
    for (int64_t k = 0; k < count; k++, y += n, x += step)
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] > y[i] || x[i] != x[i] ? x[i] : y[i];
}

/* What the windows of a row of the result have in one row of the image: each column of the kernel
 * in its turn. */
static void max_row(const struct images *s, const float *in, float *out)
{
    const struct window *w = &s->window;
    const int last = w->rank - 1;
    for (int64_t k = 0; k < w->kernel[last]; k++) {
        const int64_t offset = k * w->dilation[last] - w->pad_begin[last];
        int64_t begin, end;
        window_valid_range(offset, w->stride[last], w->in[last], w->out[last], &begin, &end);
        if (begin >= end)
            continue;
        const int64_t stride = w->stride[last], n = s->channels;
        const float *from = in + (begin * stride + offset) * n;
        if (stride == 1)
            max_into(out + begin * n, from, (end - begin) * n, 1, 0);
        else
            max_into(out + begin * n, from, n, end - begin, stride * n);
    }
}

/* Rows of the result, of all images. */
static void max_rows(void *context, int64_t begin, int64_t end)
{
    const struct images *s = context;
    const struct window *w = &s->window;
    const int last = w->rank - 1;
    const int64_t size = w->out[last] * s->channels;
    for (int64_t i = begin; i < end; i++) {
        const float *image = s->in + i / s->rows * w->in_count * s->channels;
        float *out = s->out + i * size;
        for (int64_t k = 0; k < size; k++)
            out[k] = -INFINITY;
        for (int64_t k = 0; k < w->kernel_count / w->kernel[last]; k++) {
            const int64_t row = window_input_row(w, i % s->rows, k);
            if (row >= 0)
                max_row(s, image + row * w->in[last] * s->channels, out);
        }
    }
}

#define GRAIN 32768 /* elements that are compared */

tssa_status *pool_max_last(struct kernel_args *args)
{
    const struct pool_state *state = args->state;
    struct images s;
    const struct tensor *in;
    struct tensor *out;
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &in));
    if (in->rank < 3 || in->dtype != TSSA_FLOAT)
        return operand_error(0, in, "FLOAT images with channels last");
    TRY(window_resolve(&state->attrs, in->rank - 2, in->dims + 1, NULL, &s.window));
    const struct window *w = &s.window;
    dims[0] = in->dims[0];
    memcpy(dims + 1, w->out, (size_t)w->rank * sizeof *dims);
    dims[in->rank - 1] = s.channels = in->dims[in->rank - 1];
    TRY(kernel_output(args, 0, TSSA_FLOAT, in->rank, dims, &out));
    if (!out || tensor_count(out) == 0)
        return NULL;
    s.in = in->data;
    s.out = out->data;
    s.rows = w->out_count / w->out[w->rank - 1];
    const int64_t cost = w->out[w->rank - 1] * s.channels * w->kernel_count;
    team_for(args->env->team, in->dims[0] * s.rows, GRAIN / (cost + 1) + 1, max_rows, &s);
    return NULL;
}
