/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/onednn/winograd.h"

#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "device/cpu/onednn/unit.h"

#define BLOCK 16 /* channels that lie side by side in a strip */
#define TAPS 3   /* of a kernel, along each axis */
/* Fewer channels, or pixels of all images for which the larger weights are read, are computed as
 * quickly without. */
#define MIN_CHANNELS 64
#define MIN_PIXELS 320
/* And shorter sides of pictures, of which too much is beside the tiles' pixels. */
#define MIN_SIDE 8
/* Pixels for each time that weights grow by their size: what is saved is as much as there are
 * pixels, and what has grown stays in memory, and is read in each run. */
#define GROWTH_PIXELS 250
/* About so many pixels of results are a strip. */
#define STRIP_PIXELS 1568

/* Images of the caller, and their parts in a strip, [images][channels / BLOCK][rows][columns]
 * [BLOCK], which begin so many pixels before those of the results. */
struct side {
    int64_t channels, high, wide;
    int64_t to_image, to_row, to_pixel, to_channel; /* from one to the next, in floats */
    int64_t rows, columns, before[2];
};

struct winograd {
    struct library_primitive base;
    const struct onednn_engine *engine;
    int threads;
    bool added;
    char name[64];
    int64_t step[2];              /* dilations: from a pixel of a picture to its neighbour */
    int64_t pictures, high, wide; /* of all images together; of results of each */
    int64_t images;               /* pictures of a strip */
    struct side x, y;
    struct conv_unit conv;            /* of a strip */
    struct onednn_unit weights;       /* packs them */
    dnnl_memory_desc_t plain_weights; /* as the caller has them */
    size_t x_at, y_at;                /* of strips in the scratch memory */
};

/* ---- Making ---------------------------------------------------------------------------------- */

static bool is_worth_it(const struct library_problem *problem)
{
    const struct conv_problem *c = &problem->conv;
    bool suits = problem->dtype == TSSA_FLOAT && c->winograd && c->rank == 2 && c->groups == 1;
    for (int i = 0; suits && i < 2; i++)
        suits = c->kernel[i] == TAPS && c->stride[i] == 1;
    return suits && c->in_channels % BLOCK == 0 && c->out_channels % BLOCK == 0 &&
           least(c->in_channels, c->out_channels) >= MIN_CHANNELS &&
           least(c->out[0] / c->dilation[0], c->out[1] / c->dilation[1]) >= MIN_SIDE &&
           c->batch * c->out[0] * c->out[1] >= MIN_PIXELS;
}

static void describe_images(struct side *side, int64_t channels, const int64_t *sizes, bool last)
{
    side->channels = channels;
    side->high = sizes[0];
    side->wide = sizes[1];
    side->to_image = channels * sizes[0] * sizes[1];
    side->to_row = last ? sizes[1] * channels : sizes[1];
    side->to_pixel = last ? channels : 1;
    side->to_channel = last ? 1 : sizes[0] * sizes[1];
}

/* Rows of large pictures, or several small ones. */
static void choose_strips(struct winograd *p, const struct conv_problem *c)
{
    for (int i = 0; i < 2; i++)
        p->step[i] = c->dilation[i];
    p->pictures = c->batch * p->step[0] * p->step[1];
    p->high = divide_up(c->out[0], p->step[0]);
    p->wide = divide_up(c->out[1], p->step[1]);
    const int64_t pixels = p->high * p->wide;
    p->images = pixels < STRIP_PIXELS ? least(STRIP_PIXELS / pixels, p->pictures) : 1;
    const int64_t rows = divide_up(p->high, divide_up(pixels, STRIP_PIXELS));
    describe_images(&p->x, c->in_channels, c->in, c->x_last);
    describe_images(&p->y, c->out_channels, c->out, c->y_last);
    for (int i = 0; i < 2; i++)
        p->x.before[i] = c->pad_begin[i];
    p->y.rows = rows;
    p->y.columns = p->wide;
    p->x.rows = rows + TAPS - 1;
    p->x.columns = p->wide + TAPS - 1;
}

static bool make_conv(struct winograd *p, const struct conv_problem *whole,
                      const struct onednn_attrs *attrs)
{
    static const dnnl_data_type_t types[OPERANDS] = {dnnl_f32, dnnl_f32, dnnl_f32, dnnl_f32};
    static const struct conv_layouts blocks = {BLOCKS_16, BLOCKS_16};
    struct conv_problem c = *whole;
    dnnl_memory_desc_t descs[OPERANDS];
    dnnl_primitive_desc_t desc = NULL;
    c.batch = p->images;
    c.in[0] = p->x.rows;
    c.in[1] = p->x.columns;
    c.out[0] = p->y.rows;
    c.out[1] = p->y.columns;
    for (int i = 0; i < 2; i++) {
        c.pad_begin[i] = c.pad_end[i] = 0;
        c.dilation[i] = 1;
    }
    memset(descs, 0, sizeof descs);
    if (conv_describe(&c, types, &blocks, true, descs))
        desc = conv_create_desc(p->engine, &c, dnnl_convolution_winograd, descs, attrs->conv);
    conv_drop_descs(descs);
    if (!desc)
        return false;
    strncpy(p->name, conv_name(desc), sizeof p->name - 1);
    p->base.name = p->name;
    if (strstr(p->name, "wino"))
        return conv_unit_make(&p->conv, p->engine, c.biased, desc);
    dnnl_primitive_desc_destroy(desc);
    return false;
}

static int packing_threads(const struct winograd *p)
{
    return onednn_packing_threads(dnnl_memory_desc_get_size(DESC(p->plain_weights)), p->threads);
}

/* A reorder runs on as many threads as there were when it was made. */
static bool make_packing(struct winograd *p, dnnl_primitive_attr_t attr)
{
    struct onednn_setting before = onednn_enter(packing_threads(p));
    const bool made = onednn_unit_reorder(&p->weights, p->engine, DESC(p->plain_weights),
                                          DESC(p->conv.used[WEIGHTS]), attr);
    onednn_leave(before);
    return made && p->weights.primitive;
}

static bool make_weights(struct winograd *p, const struct conv_problem *c,
                         const struct onednn_attrs *attrs)
{
    const dnnl_dims_t dims = {c->out_channels, c->in_channels, TAPS, TAPS};
    p->base.packed_bytes = dnnl_memory_desc_get_size(DESC(p->conv.used[WEIGHTS]));
    return desc_make(&p->plain_weights, 4, dims, dnnl_f32, dnnl_abcd) &&
           make_packing(p, attrs->reorder);
}

static bool pays(const struct winograd *p, const struct conv_problem *c)
{
    const double before = (double)dnnl_memory_desc_get_size(DESC(p->plain_weights)),
                 growth = (double)p->base.packed_bytes / before - 1;
    return (double)(c->batch * c->out[0] * c->out[1]) >= GROWTH_PIXELS * growth;
}

/* Where strips begin, behind what the library needs. */
static void lay_out(struct winograd *p)
{
    const size_t conv = p->conv.unit.scratch_bytes, weights = p->weights.scratch_bytes;
    p->base.pack_scratch_bytes = weights;
    p->x_at = onednn_aligned(conv > weights ? conv : weights);
    p->y_at = p->x_at + onednn_aligned(dnnl_memory_desc_get_size(DESC(p->conv.used[SRC])));
    p->base.scratch_bytes =
        p->y_at + onednn_aligned(dnnl_memory_desc_get_size(DESC(p->conv.used[DST])));
}

/* ---- Strips ---------------------------------------------------------------------------------- */

/* A row of a strip as the caller's image has it. */
struct row {
    bool there;
    int64_t at, step;   /* of position 0, if there were one, and between positions: in floats */
    int64_t first, end; /* positions that there are */
};

static struct row find_row(const struct winograd *p, const struct side *side, int64_t picture,
                           int64_t number)
{
    const int64_t phases = p->step[0] * p->step[1], phase = picture % phases;
    const int64_t y = number * p->step[0] + phase / p->step[1] - side->before[0],
                  x = phase % p->step[1] - side->before[1];
    struct row row = {.there = picture < p->pictures && y >= 0 && y < side->high,
                      .step = p->step[1] * side->to_pixel};
    if (!row.there)
        return row;
    row.at = picture / phases * side->to_image + y * side->to_row + x * side->to_pixel;
    row.first = x < 0 ? least(divide_up(-x, p->step[1]), side->columns) : 0;
    row.end = x < side->wide ? least(divide_up(side->wide - x, p->step[1]), side->columns) : 0;
    return row;
}

/* A block of channels, of which `image` is the first one; what is not there is 0. */
static void load_block(const struct row *row, const float *image, int64_t to_channel,
                       int64_t columns, float *strip)
{
    const size_t before = (size_t)(row->first * BLOCK),
                 after = (size_t)(columns - row->end) * BLOCK;
    memset(strip, 0, before * sizeof *strip);
    if (to_channel == 1)
        for (int64_t i = row->first; i < row->end; i++)
            memcpy(strip + i * BLOCK, image + row->at + i * row->step, BLOCK * sizeof *strip);
    else
        for (int64_t c = 0; c < BLOCK; c++)
            for (int64_t i = row->first; i < row->end; i++)
                strip[i * BLOCK + c] = image[row->at + i * row->step + c * to_channel];
    memset(strip + row->end * BLOCK, 0, after * sizeof *strip);
}

static void store_block(const struct row *row, const float *strip, int64_t to_channel, float *image)
{
    if (to_channel == 1)
        for (int64_t i = row->first; i < row->end; i++)
            memcpy(image + row->at + i * row->step, strip + i * BLOCK, BLOCK * sizeof *strip);
    else
        for (int64_t c = 0; c < BLOCK; c++)
            for (int64_t i = row->first; i < row->end; i++)
                image[row->at + i * row->step + c * to_channel] = strip[i * BLOCK + c];
}

enum direction { LOAD, STORE };

/* A row of one of the strip's images, all channels. */
static void move_row(const struct side *side, const struct row *row, enum direction direction,
                     float *image, float *strip)
{
    const int64_t plane = side->rows * side->columns * BLOCK;
    for (int64_t i = 0; i < side->channels; i += BLOCK, strip += plane) {
        if (direction == LOAD)
            load_block(row, image + i * side->to_channel, side->to_channel, side->columns, strip);
        else
            store_block(row, strip, side->to_channel, image + i * side->to_channel);
    }
}

/* The strip from that picture and row of results on. */
static void move_strip(const struct winograd *p, const struct side *side, int64_t picture,
                       int64_t first, float *image, enum direction direction, float *strip)
{
#pragma omp parallel for if (p->threads > 1)
    for (int64_t i = 0; i < p->images * side->rows; i++) {
        const int64_t k = i / side->rows, row = i % side->rows;
        const struct row there = find_row(p, side, picture + k, first + row);
        move_row(side, &there, direction, image,
                 strip + (k * side->channels * side->rows + row * BLOCK) * side->columns);
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool compute_strip(struct winograd *p, const struct library_call *call, int64_t picture,
                          int64_t first)
{
    char *scratch = device_place_at(call->scratch);
    float *x = device_place_at(call->operands[SRC]), *y = device_place_at(call->result);
    float *x_strip = (float *)(void *)(scratch + p->x_at),
          *y_strip = (float *)(void *)(scratch + p->y_at);
    const struct conv_places places = {.at = {[SRC] = x_strip,
                                              [WEIGHTS] = device_place_at(call->operands[WEIGHTS]),
                                              [BIAS] = device_place_at(call->operands[BIAS]),
                                              [DST] = y_strip},
                                       .scratch = scratch};
    move_strip(p, &p->x, picture, first, x, LOAD, x_strip);
    if (p->added)
        move_strip(p, &p->y, picture, first, y, LOAD, y_strip);
    if (!conv_unit_run(&p->conv, &places))
        return false;
    move_strip(p, &p->y, picture, first, y, STORE, y_strip);
    return true;
}

static bool run(const struct library_primitive *base, struct device_stream *stream,
                const struct library_call *call)
{
    struct winograd *p = (struct winograd *)(void *)base; /* but for what is kept, unchanged */
    struct onednn_setting before = onednn_enter(p->threads);
    bool done = true;
    (void)stream;
    for (int64_t picture = 0; picture < p->pictures && done; picture += p->images)
        for (int64_t row = 0; row < p->high && done; row += p->y.rows)
            done = compute_strip(p, call, picture, row);
    onednn_leave(before);
    return done;
}

static bool pack(const struct library_primitive *base, const void *weights, void *packed,
                 void *scratch)
{
    const struct winograd *p = (const struct winograd *)base;
    struct onednn_setting before = onednn_enter(packing_threads(p));
    const bool done = onednn_reorder(&p->weights, p->engine, DESC(p->plain_weights), weights,
                                     DESC(p->conv.used[WEIGHTS]), packed, scratch);
    onednn_leave(before);
    return done;
}

/* ---- A primitive ----------------------------------------------------------------------------- */

static void release(struct library_primitive *base)
{
    struct winograd *p = (struct winograd *)base;
    conv_unit_drop(&p->conv);
    onednn_unit_drop(&p->weights);
    desc_drop(&p->plain_weights);
    free(p);
}

static bool same_packing(const struct library_primitive *a, const struct library_primitive *b)
{
    return conv_unit_same_packing(&((const struct winograd *)a)->conv,
                                  &((const struct winograd *)b)->conv);
}

struct library_primitive *winograd_make(struct cpu_engine *engine,
                                        const struct library_problem *problem,
                                        const struct onednn_attrs *attrs)
{
    static const struct primitive_table table = {
        .same_packing = same_packing, .pack = pack, .run = run, .release = release};
    const struct conv_problem *c = &problem->conv;
    struct winograd *p = is_worth_it(problem) ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    p->base.table = &table;
    p->engine = (const struct onednn_engine *)engine;
    p->threads = (int)problem->threads;
    p->added = c->added != 0;
    choose_strips(p, c);
    if (make_conv(p, c, attrs) && make_weights(p, c, attrs) && pays(p, c)) {
        lay_out(p);
        return &p->base;
    }
    release(&p->base);
    return NULL;
}
