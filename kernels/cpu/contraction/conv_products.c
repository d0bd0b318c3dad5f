/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With AVX2, oneDNN reorders images of few pixels into blocks of 8 channels where groups fill such
 * blocks (those of 272 channels do not), and does not compute these quickly. Here an image stays as
 * it is: of each group it is a matrix of channels by pixels, the right one of a product. (Images of
 * more pixels are that to oneDNN, too, which is up to a tenth faster then.) Microseconds of oneDNN
 * and of this, one thread of an EPYC with AVX2:
 *
 *     channels  groups     4 x 4      7 x 7    10 x 10    11 x 11
 *     544            4   110  33   240 107   398 189    453 226
 *     240            3    32  11    68  30   110  53    126  64
 *     128            2    14   5    29  14    49  23     53  27
 *     272            4    12  11    31  30    51  52     60  63
 *     64            16     9   3    10   4    11   5     12   5
 */
#include "kernels/cpu/contraction/conv_products.h"

#include <string.h>

#include "base/isa.h"
#include "base/team.h"
#include "kernels/cpu/contraction/convolve.h"
#include "kernels/cpu/lib/gemm_fused.h"

#define COLUMNS GEMM_FUSED_ALIGNED
#define HALF (COLUMNS / 2) /* a vector of AVX2 */

#define GRAIN 65536 /* multiplications */

static bool is_product(const struct conv_job *job)
{
    const struct window *w = &job->window;
    bool product = w->kernel_count == 1;
    for (int i = 0; i < w->rank; i++)
        product &= w->stride[i] == 1 && w->pad_begin[i] == 0 && w->out[i] == w->in[i];
    return product;
}

bool conv_products_takes(const struct conv_job *job)
{
    return isa_level() == ISA_V3 && job->groups > 1 && job->in_channels > job->groups &&
           job->out_channels > job->groups && !job->x_last && !job->y_last && !job->added &&
           job->w->dtype == TSSA_FLOAT && is_product(job) && job->window.out_count >= COLUMNS &&
           job->window.out_count < CONV_MANY_PIXELS;
}

struct products {
    const struct conv_job *job;
    float *y;
    int64_t in, out; /* channels of a group */
};

/* Some rows of one group, and of these a multiple of HALF columns from `column` on. */
static void multiply(const struct products *p, int64_t row, int64_t rows, int64_t column,
                     int64_t columns)
{
    const struct conv_job *job = p->job;
    const int64_t pixels = job->window.out_count, channel = row % job->out_channels;
    const int64_t group = row / p->out; /* of all images */
    const struct gemm_fused gemm = {.m = rows,
                                    .n = columns,
                                    .k = p->in,
                                    .a = (const float *)job->w->data + channel * p->in,
                                    .b = (const float *)job->x->data + group * p->in * pixels +
                                         column,
                                    .c = p->y + row * pixels + column,
                                    .a_row = p->in,
                                    .b_row = pixels,
                                    .b_panel = GEMM_FUSED_PANEL,
                                    .c_row = pixels,
                                    .factor = 1};
    gemm_fused_f32(&gemm);
}

/* Columns that do not fill vectors are computed with some of those before them, again: no memory
 * behind the image is read, and the bits are the same. */
static void multiply_rows(const struct products *p, int64_t row, int64_t rows)
{
    const int64_t pixels = p->job->window.out_count, rest = pixels % COLUMNS;
    const int64_t last = rest > HALF ? COLUMNS : HALF;
    multiply(p, row, rows, 0, pixels - rest);
    if (rest > 0)
        multiply(p, row, rows, pixels - last, last);
}

static void compute_rows(void *context, int64_t begin, int64_t end)
{
    const struct products *p = context;
    for (int64_t row = begin, rows; row < end; row += rows) {
        rows = p->out - row % p->out < end - row ? p->out - row % p->out : end - row;
        multiply_rows(p, row, rows);
        convolve_finish_rows(p->job, p->y, row, row + rows);
    }
}

void conv_products(const struct team *team, const struct conv_job *job, float *y)
{
    const struct products p = {.job = job,
                               .y = y,
                               .in = job->in_channels / job->groups,
                               .out = job->out_channels / job->groups};
    const int64_t work = p.in * job->window.out_count;
    team_for(team, job->batch * job->out_channels, GRAIN / work + 1, compute_rows, (void *)&p);
}
