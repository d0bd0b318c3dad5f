/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/convolve.h"

#include "device/grids/windows.h"

/* Of the texts' tiles, by their own defines; rows of large ones are a warp's. */
enum { LARGE_ROWS = 8, LARGE_COLUMNS = 64, SMALL_COLUMNS = 32 };

/* For large tiles: fewer leave most of a card idle. */
#define ENOUGH_TILES 32
/* What threads of tiles count in int, with room for the sum of two. */
#define MOST_PLACES (INT64_C(1) << 30)

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t product(const int64_t *sizes, int64_t rank)
{
    int64_t all = 1;
    for (int64_t i = 0; i < rank; i++)
        all *= sizes[i];
    return all;
}

/* ---- Which text ------------------------------------------------------------------------------ */

/* Is each element met by one of each channel, so that it is a product of matrices, for each item?
 */
static bool is_product(const struct conv_problem *p)
{
    bool is = !p->turned && p->groups == 1 && p->in_channels > 0;
    for (int64_t i = 0; i < p->rank; i++)
        is &= p->kernel[i] == 1 && p->stride[i] == 1 && p->pad_begin[i] == 0 && p->pad_end[i] == 0;
    return is;
}

static struct matmul_problem product_of(const struct conv_problem *p)
{
    const int64_t n = product(p->out, p->rank), k = p->in_channels;
    return (struct matmul_problem){.batch = p->batch,
                                   .m = p->out_channels,
                                   .n = n,
                                   .k = k,
                                   .a_row = k,
                                   .a_column = 1,
                                   .b_batch = k * n,
                                   .b_row = n,
                                   .b_column = 1};
}

/* Are places, and how far from the window's begin they are, ints? */
static bool has_small_sizes(const struct conv_problem *p)
{
    bool small =
        product(p->out, p->rank) < MOST_PLACES && product(p->kernel, p->rank) < MOST_PLACES;
    for (int64_t i = 0; i < p->rank; i++)
        small &= p->in[i] + p->pad_begin[i] + p->pad_end[i] < MOST_PLACES &&
                 p->kernel[i] * p->dilation[i] < MOST_PLACES && p->stride[i] < MOST_PLACES;
    return small;
}

static int64_t columns_of(const struct conv_problem *p)
{
    return p->batch * product(p->out, p->rank);
}

enum grids_text convolve_text(const struct device_context *context, const struct conv_problem *p)
{
    const int64_t warps = context->device->launcher->height, rows = LARGE_ROWS * warps,
                  filters = p->out_channels / p->groups, columns = columns_of(p);
    if (is_product(p)) {
        const struct matmul_problem matmul = product_of(p);
        return multiply_text(context, &matmul);
    }
    /* of smaller ones more than half a tile would be for nothing */
    if (p->turned || filters < warps / 2 || columns < SMALL_COLUMNS / 2 || !has_small_sizes(p))
        return GRIDS_TEXT_CONV_EACH;
    return filters >= rows / 2 && columns >= LARGE_COLUMNS / 2 &&
                   p->groups * ceil_div(filters, rows) * ceil_div(columns, LARGE_COLUMNS) >=
                       ENOUGH_TILES
               ? GRIDS_TEXT_CONV
               : GRIDS_TEXT_CONV_SMALL;
}

/* ---- The launch ------------------------------------------------------------------------------ */

/* What all texts of convolutions begin with: x, w, bias, what is added, y, and these. */
enum { SIZES_AT = 5, WINDOW_AT = 9, BIAS_AT = WINDOW_AT + WINDOW_PARAMS, FOLLOWS_AT, MORE_AT };

/* Of the texts' own defines. */
enum { ADDS = 1, CLIPS = 2 };

static int64_t follows_of(const struct conv_problem *p)
{
    return (p->adds ? ADDS : 0) | (p->clips ? CLIPS : 0);
}

static void fill_params(struct launch_param *params, const struct conv_problem *p,
                        const struct library_call *call)
{
    params[0] = grids_memory(call->operands[0]);
    params[1] = grids_memory(call->operands[1]);
    params[2] = grids_memory(call->operands[p->biased ? LIBRARY_BIAS : 1]);
    params[3] = grids_memory(call->operands[p->adds ? LIBRARY_ADDED : 1]);
    params[4] = grids_memory(call->result);
    params[SIZES_AT] = grids_number(p->batch);
    params[SIZES_AT + 1] = grids_number(p->groups);
    params[SIZES_AT + 2] = grids_number(p->in_channels / p->groups);
    params[SIZES_AT + 3] = grids_number(p->out_channels / p->groups);
    grids_window(params + WINDOW_AT, (int)p->rank, p->in, p->out, p->kernel, p->stride, p->dilation,
                 p->pad_begin);
    params[BIAS_AT] = grids_number(p->biased);
    params[FOLLOWS_AT] = grids_number(follows_of(p));
}

static tssa_status *launch_tiles(struct device_stream *stream, enum grids_text text,
                                 const struct conv_problem *p, tssa_dtype dtype,
                                 const struct library_call *call)
{
    const int64_t warps = stream->context->device->launcher->height,
                  rows = text == GRIDS_TEXT_CONV ? LARGE_ROWS * warps : warps,
                  columns = text == GRIDS_TEXT_CONV ? LARGE_COLUMNS : SMALL_COLUMNS,
                  down = ceil_div(p->out_channels / p->groups, rows),
                  across = ceil_div(columns_of(p), columns);
    struct launch_param params[MORE_AT + 2];
    fill_params(params, p, call);
    params[MORE_AT] = grids_number(down);
    params[MORE_AT + 1] = grids_number(across);
    return grids_launch_text(stream, text, dtype, 0, p->groups * down * across, params,
                             MORE_AT + 2);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static tssa_status *launch_each(struct device_stream *stream, const struct conv_problem *p,
                                tssa_dtype dtype, const struct library_call *call)
{
    enum { TURNED = MORE_AT + 2 * WINDOW_AXES };
    struct launch_param params[TURNED];
    int64_t next[CONV_MAX_RANK], back[CONV_MAX_RANK];
    fill_params(params, p, call);
    for (int64_t i = 0; i < p->rank; i++) {
        next[i] = p->stride[i] / common_divisor(p->stride[i], p->dilation[i]);
        back[i] = next[i] * p->dilation[i] / p->stride[i];
    }
    grids_axes(params + MORE_AT, (int)p->rank, (struct axes){next, 1});
    grids_axes(params + MORE_AT + WINDOW_AXES, (int)p->rank, (struct axes){back, 1});
    return grids_launch_each(stream, GRIDS_TEXT_CONV_EACH, dtype, p->turned != 0,
                             columns_of(p) * p->out_channels, params, p->turned ? TURNED : MORE_AT);
}

tssa_status *convolve_add_bias(struct device_stream *stream, const struct conv_problem *p,
                               tssa_dtype dtype, const struct library_call *call)
{
    const int64_t plane = product(p->out, p->rank), count = p->batch * p->out_channels * plane;
    const struct launch_param params[] = {grids_memory(call->result),
                                          grids_memory(call->operands[2]), grids_number(count),
                                          grids_number(plane), grids_number(p->out_channels)};
    return grids_launch_each(stream, GRIDS_TEXT_BIAS, dtype, 0, count, params,
                             sizeof params / sizeof *params);
}

tssa_status *convolve_follow(struct device_stream *stream, const struct conv_problem *p,
                             tssa_dtype dtype, const struct library_call *call)
{
    const int64_t count = p->batch * p->out_channels * product(p->out, p->rank);
    const struct launch_param params[] = {grids_memory(call->result),
                                          grids_memory(call->operands[p->adds ? LIBRARY_ADDED : 1]),
                                          grids_number(count), grids_number(follows_of(p))};
    if (!follows_of(p))
        return NULL;
    return grids_launch_each(stream, GRIDS_TEXT_BIAS, dtype, 1, count, params,
                             sizeof params / sizeof *params);
}

/* The bias is a column that is added to each. */
static tssa_status *multiply_items(struct device_stream *stream, const struct conv_problem *p,
                                   tssa_dtype dtype, const struct library_call *call)
{
    struct product product = {.problem = product_of(p), .dtype = dtype, .finish = FINISH_NOTHING};
    const struct library_call turned = {
        .operands = {call->operands[1], call->operands[0], call->operands[2]},
        .result = call->result};
    product.finish.with_c = p->biased;
    product.finish.c_row = 1;
    TRY(multiply(stream, &product, &turned));
    return convolve_follow(stream, p, dtype, call);
}

tssa_status *convolve(struct device_stream *stream, const struct conv_problem *p, tssa_dtype dtype,
                      const struct library_call *call)
{
    const enum grids_text text = convolve_text(stream->context, p);
    if (text == GRIDS_TEXT_CONV || text == GRIDS_TEXT_CONV_SMALL)
        return launch_tiles(stream, text, p, dtype, call);
    return text == GRIDS_TEXT_CONV_EACH ? launch_each(stream, p, dtype, call)
                                        : multiply_items(stream, p, dtype, call);
}
