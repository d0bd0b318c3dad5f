/* SPDX-License-Identifier: Apache-2.0 */
#define T float
#define T_IS_FLOAT
#define T_IS_FLOAT32
#include "base/clones.h"
#include "base/team.h"
#include "ir/scalar/ops.h"
#include "kernels/cpu/contraction/conv.h"
#include "kernels/cpu/contraction/convolve.h"

/* ---- What is done to sums -------------------------------------------------------------------- */

#define A a
#define B b
#define X x
#define AFTER(name, expression)                                                                    \
    VECTOR_PROCEDURE(after_##name, (float *y, int64_t n, float a, float b), (y, n, a, b))          \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const float x = y[i];                                                                  \
            y[i] = expression;                                                                     \
        }                                                                                          \
    }
#include "ir/after.def"
#undef AFTER

typedef void (*after_loop)(float *y, int64_t n, float a, float b);

static const after_loop loops[AFTER_COUNT] = {
#define AFTER(name, expression) [AFTER_##name] = after_##name,
#include "ir/after.def"
#undef AFTER
};

/* ---- Of images ------------------------------------------------------------------------------- */

#define GRAIN 8192 /* elements */

struct finish {
    const struct conv_job *job;
    const float *sums;
    float *y;
    int64_t rows, size; /* of y, and of each */
};

/* From one element of a row of y to the next the sums go on by so much; *from is where they begin.
 */
static int64_t step_of(const struct finish *f, int64_t row, const float **from)
{
    const int64_t pixels = f->job->window.out_count, channels = f->job->out_channels;
    if (!f->job->y_last) {
        *from = f->sums + row * pixels;
        return 1;
    }
    *from = f->sums + row / pixels * pixels * channels + row % pixels;
    return pixels;
}

static void finish_rows(void *context, int64_t begin, int64_t end)
{
    const struct finish *f = context;
    const struct conv_job *job = f->job;
    const float *added = job->added ? job->added->data : NULL;
    for (int64_t row = begin; row < end; row++) {
        const float *from;
        float *y = f->y + row * f->size;
        const int64_t step = step_of(f, row, &from);
        for (int64_t i = 0; i < f->size; i++)
            y[i] = added ? from[i * step] + added[row * f->size + i] : from[i * step];
        if (loops[job->after])
            loops[job->after](y, f->size, job->a, job->b);
    }
}

void convolve_finish_rows(const struct conv_job *job, float *y, int64_t begin, int64_t end)
{
    const int64_t pixels = job->window.out_count;
    for (int64_t row = begin; row < end; row++) {
        if (job->bias)
            conv_add_bias(job->bias, row % job->out_channels, TSSA_FLOAT, y + row * pixels, pixels);
        if (loops[job->after])
            loops[job->after](y + row * pixels, pixels, job->a, job->b);
    }
}

void convolve_finish(const struct team *team, const struct conv_job *job, const float *sums,
                     float *y)
{
    const int64_t pixels = job->window.out_count, channels = job->out_channels;
    struct finish f = {.job = job,
                       .sums = sums,
                       .y = y,
                       .rows = job->batch * (job->y_last ? pixels : channels),
                       .size = job->y_last ? channels : pixels};
    team_for(team, f.rows, GRAIN / (f.size + 1) + 1, finish_rows, &f);
}

void convolve_turn(int64_t batch, int64_t rows, int64_t columns, const float *from, float *to)
{
    for (int64_t b = 0; b < batch; b++, from += rows * columns, to += rows * columns)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                to[j * rows + i] = from[i * columns + j];
}
