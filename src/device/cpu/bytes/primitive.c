/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product of windows over an image and weights, in blocks of rows and stretches of terms, both
 * widened to 16 bits in memory of each thread. Convolutions keep their weights in panels of bytes;
 * right operands of products are packed stretch by stretch.
 */
#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "base/team.h"
#include "device/cpu/bytes/bytes.h"
#include "device/cpu/bytes/depthwise.h"
#include "device/cpu/bytes/image.h"
#include "device/cpu/bytes/sink.h"
#include "device/cpu/bytes/tiles.h"
#include "device/cpu/bytes/winograd.h"

#define MOST_TERMS 768 /* of a stretch: a panel of it is three quarters of a first cache */
#define MOST_ROWS 384  /* of a block, which is a part of a second cache */
#define FEW_ROWS 144
#define MOST_PANELS 24 /* whose sums are kept from one stretch to the next */
#define PART (1 << 18) /* products that are worth a thread */
#define CROSSED_ROWS 8 /* that share what crossing takes from columns (tiles.h) */

enum method { ROWS, DEPTHWISE, WINOGRAD };

struct primitive {
    struct library_primitive base;
    struct team team;
    struct image image;
    enum method method;
    struct winograd winograd; /* by that alone, of which rows are tiles */
    const struct library_quantizer *quantizer;
    int64_t batch;
    /* Of the image as it is given, where channels are not last: bytes from one pixel, and from one
     * channel to the next. */
    bool turns, result_first;
    int64_t pixel_step, channel_step;
    /* Of a right operand: bytes from one term, and from one column to the next. */
    bool is_product;
    int64_t b_row, b_column;
    bool packs;                           /* weights; else they are packed whenever they are read */
    bool is_narrow;                       /* tiles.h */
    int32_t w_zero;                       /* which panels have not lost */
    int64_t groups, rows, columns, terms; /* of a group but for rows */
    int64_t panels, stretch, stretches, width, block;
    int64_t parts;               /* for threads: of rows, or of panels */
    bool shares_panels, crosses; /* tiles.h */
    size_t part_bytes;           /* of scratch memory, behind which the turned image is */
};

struct job {
    const struct primitive *p;
    struct image_bytes bytes;
    const int8_t *weights;
    const int32_t *bias; /* NULL: none */
    struct sink sink;
    char *scratch;
};

static void *at(struct device_place place)
{
    return place.memory ? (char *)place.memory + place.offset : NULL;
}

/* ---- Computing ------------------------------------------------------------------------------- */

/* What one thread computes, and where. */
struct part {
    int64_t first_row, end_row, first_panel, end_panel;
    int16_t *a, *b;
    int32_t *sums; /* a block's of one panel, or of all where there are several stretches */
};

struct stretch {
    int64_t group, first_panel, end_panel, row, rows;
    int64_t begin, end; /* terms */
};

static size_t a_bytes(const struct primitive *p)
{
    return aligned((size_t)(p->block * p->width + IMAGE_SLACK) * sizeof(int16_t),
                   LIBRARY_ALIGNMENT);
}

static size_t b_bytes(const struct primitive *p)
{
    return aligned((size_t)(p->stretch * TILE_COLUMNS) * sizeof(int16_t), LIBRARY_ALIGNMENT);
}

static size_t sums_bytes(const struct primitive *p)
{
    const int64_t panels = p->stretches > 1 ? least(p->panels, MOST_PANELS) : 1;
    return (size_t)(panels * p->block * TILE_COLUMNS) * sizeof(int32_t);
}

static int columns_of(const struct primitive *p, int64_t panel)
{
    return (int)least(p->columns - panel * TILE_COLUMNS, TILE_COLUMNS);
}

/* A panel's weights, which are packed. */
static const int8_t *panel_at(const struct job *job, const struct stretch *s, int64_t panel,
                              int64_t term)
{
    const struct primitive *p = job->p;
    return job->weights +
           ((s->group * p->panels + panel) * tile_terms(p->terms) + term) * TILE_COLUMNS;
}

/* What is read behind this panel: the next one, of the last one the first of the next stretch. */
static void find_next(const struct job *job, const struct stretch *s, int64_t panel,
                      struct tile_panel *tile)
{
    const struct primitive *p = job->p;
    const bool is_last = panel + 1 == s->end_panel;
    const int64_t begin = is_last ? s->end : s->begin,
                  end = is_last ? least(s->end + p->stretch, p->terms) : s->end;
    if (!p->packs || begin >= end)
        return;
    tile->next = panel_at(job, s, is_last ? s->first_panel : panel + 1, begin);
    tile->next_bytes = tile_terms(end - begin) * TILE_COLUMNS;
}

/* To `b`, unless it is read as it is packed. */
static void find_panel(const struct job *job, const struct stretch *s, int64_t panel, int16_t *b)
{
    const struct primitive *p = job->p;
    const int64_t terms = s->end - s->begin;
    if (p->is_narrow)
        return;
    if (p->packs)
        tile_widen(tile_terms(terms) * TILE_COLUMNS, panel_at(job, s, panel, s->begin), p->w_zero,
                   b);
    else
        tile_pack(terms, columns_of(p, panel),
                  job->weights + s->begin * p->b_row + panel * TILE_COLUMNS * p->b_column, p->b_row,
                  p->b_column, p->w_zero, b);
}

/* What sums of a panel begin with: in the first stretch its bias. */
static void find_starts(const struct job *job, const struct stretch *s, int64_t channel,
                        int columns, const int16_t *b, int32_t *starts)
{
    memset(starts, 0, TILE_COLUMNS * sizeof *starts);
    if (job->bias && s->begin == 0)
        memcpy(starts, job->bias + channel, (size_t)columns * sizeof *starts);
    if (job->p->crosses)
        tile_column_starts(tile_terms(s->end - s->begin), b, starts);
}

static void multiply_panel(const struct job *job, const struct part *part, const struct stretch *s,
                           int64_t panel, struct tile_panel tile)
{
    const struct primitive *p = job->p;
    const int columns = columns_of(p, panel);
    const int64_t channel = s->group * p->columns + panel * TILE_COLUMNS;
    struct tile_quantizer quantizer;
    int32_t starts[TILE_COLUMNS];
    find_panel(job, s, panel, part->b);
    find_starts(job, s, channel, columns, part->b, starts);
    tile.starts = starts;
    tile.narrow = p->is_narrow ? panel_at(job, s, panel, s->begin) : NULL;
    if (p->stretches > 1)
        tile.sums += (panel - s->first_panel) * p->block * TILE_COLUMNS;
    tile.bytes = s->end == p->terms ? sink_bytes(&job->sink, channel, columns, s->row) : NULL;
    if (tile.bytes) {
        sink_quantizer(&job->sink, channel, columns, &quantizer);
        tile.quantizer = &quantizer;
    }
    tile.is_half = columns <= TILE_COLUMNS / 2;
    find_next(job, s, panel, &tile);
    tile_multiply(&tile);
    if (s->end == p->terms && !tile.bytes)
        sink_store(&job->sink, channel, columns, s->row, s->rows, tile.sums);
}

static void multiply_stretch(const struct job *job, const struct part *part,
                             const struct stretch *s)
{
    const struct primitive *p = job->p;
    const struct image_part rows = {.bytes = job->bytes,
                                    .group = s->group,
                                    .row = s->row,
                                    .rows = s->rows,
                                    .begin = s->begin,
                                    .end = s->end,
                                    .width = p->width,
                                    .whole = TILE_TERMS,
                                    .to = part->a};
    int32_t row_starts[MOST_ROWS];
    const struct tile_panel tile = {.rows = s->rows,
                                    .terms = tile_terms(s->end - s->begin),
                                    .a = part->a,
                                    .a_row = p->width,
                                    .b = part->b,
                                    .row_starts = p->crosses || p->is_narrow ? row_starts : NULL,
                                    .crosses = p->crosses,
                                    .adds = s->begin > 0,
                                    .sums = part->sums,
                                    .step = job->sink.channels};
    image_gather(&p->image, &rows);
    if (p->crosses)
        tile_row_starts(tile.rows, tile.terms, tile.a, tile.a_row, row_starts);
    else if (p->is_narrow)
        tile_narrow_starts(tile.rows, tile.terms, tile.a, tile.a_row, p->w_zero, row_starts);
    for (int64_t panel = s->first_panel; panel < s->end_panel; panel++)
        multiply_panel(job, part, s, panel, tile);
}

static void compute_panels(const struct job *job, const struct part *part, struct stretch s)
{
    const struct primitive *p = job->p;
    for (s.row = part->first_row; s.row < part->end_row; s.row += p->block) {
        s.rows = least(part->end_row - s.row, p->block);
        for (s.begin = 0; s.begin < p->terms; s.begin += p->stretch) {
            s.end = least(s.begin + p->stretch, p->terms);
            multiply_stretch(job, part, &s);
        }
    }
}

static void compute_part(const struct job *job, const struct part *part)
{
    const int64_t most = job->p->stretches > 1 ? MOST_PANELS : job->p->panels;
    for (int64_t group = 0; group < job->p->groups; group++)
        for (int64_t i = part->first_panel; i < part->end_panel; i += most) {
            const struct stretch s = {
                .group = group, .first_panel = i, .end_panel = least(i + most, part->end_panel)};
            compute_panels(job, part, s);
        }
}

/* The i-th of `parts` parts of n. */
static int64_t share(int64_t n, int64_t i, int64_t parts)
{
    return n / parts * i + least(i, n % parts);
}

/* What part `i` has, of rows or of panels; of the other it has all. */
static void share_out(const struct primitive *p, int64_t i, struct part *part)
{
    part->end_row = p->rows;
    part->end_panel = p->panels;
    if (p->shares_panels) {
        part->first_panel = share(p->panels, i, p->parts);
        part->end_panel = share(p->panels, i + 1, p->parts);
    } else {
        part->first_row = share(p->rows, i, p->parts);
        part->end_row = share(p->rows, i + 1, p->parts);
    }
}

static void compute_rows(void *context, int64_t begin, int64_t end)
{
    const struct job *job = context;
    const struct primitive *p = job->p;
    for (int64_t i = begin; i < end; i++) {
        char *scratch = job->scratch + (size_t)i * p->part_bytes;
        struct part part = {.a = (void *)scratch,
                            .b = (void *)(scratch + a_bytes(p)),
                            .sums = (void *)(scratch + a_bytes(p) + b_bytes(p))};
        share_out(p, i, &part);
        compute_part(job, &part);
    }
}

static void compute_tiles(void *context, int64_t begin, int64_t end)
{
    const struct job *job = context;
    const struct primitive *p = job->p;
    for (int64_t i = begin; i < end; i++) {
        struct part part = {0};
        share_out(p, i, &part);
        const struct winograd_part tiles = {.winograd = &p->winograd,
                                            .image = &p->image,
                                            .packed = job->weights,
                                            .bytes = job->bytes,
                                            .bias = job->bias,
                                            .sink = &job->sink,
                                            .first_tile = part.first_row,
                                            .end_tile = part.end_row,
                                            .first_panel = part.first_panel,
                                            .end_panel = part.end_panel,
                                            .scratch = job->scratch + (size_t)i * p->part_bytes};
        winograd_run(&tiles);
    }
}

static void compute_windows(void *context, int64_t begin, int64_t end)
{
    const struct job *job = context;
    const struct depthwise work = {&job->p->image, job->weights, job->bytes,
                                   job->bias,      &job->sink,   job->scratch};
    for (int64_t i = begin; i < end; i++)
        depthwise_run(&work, share(job->p->rows, i, job->p->parts),
                      share(job->p->rows, i + 1, job->p->parts));
}

static void (*const compute[])(void *context, int64_t begin, int64_t end) = {
    [ROWS] = compute_rows, [DEPTHWISE] = compute_windows, [WINOGRAD] = compute_tiles};

/* ---- Running --------------------------------------------------------------------------------- */

#define TURNED 32 /* pixels and channels that are in a cache at once */

static void turn(const struct primitive *p, const uint8_t *from, uint8_t *to)
{
    const int64_t pixels = p->image.pixels, channels = p->image.channels;
    for (int64_t i = 0; i < pixels; i += TURNED)
        for (int64_t j = 0; j < channels; j += TURNED)
            for (int64_t pixel = i; pixel < least(i + TURNED, pixels); pixel++)
                for (int64_t c = j; c < least(j + TURNED, channels); c++)
                    to[pixel * channels + c] = from[pixel * p->pixel_step + c * p->channel_step];
}

/* The image with its channels last. */
static void open_image(struct job *job, const uint8_t *x)
{
    const struct primitive *p = job->p;
    const int64_t size = p->image.pixels * p->image.channels;
    uint8_t *turned = (uint8_t *)job->scratch + (size_t)p->parts * p->part_bytes;
    job->bytes.first = p->turns ? turned : x;
    /* Rows of a left operand may have a gap between them, but not behind the last one. */
    job->bytes.end =
        job->bytes.first + p->batch * size - (p->is_product ? p->image.channels - p->terms : 0);
    for (int64_t i = 0; i < p->batch && p->turns; i++)
        turn(p, x + i * size, turned + i * size);
}

static bool run(const struct library_primitive *base, struct device_stream *stream,
                const struct library_call *call)
{
    const struct primitive *p = (const struct primitive *)base;
    struct job job = {.p = p,
                      .weights = at(call->operands[LIBRARY_WEIGHTS]),
                      .bias = at(call->operands[LIBRARY_BIAS]),
                      .sink = {.quantizer = p->quantizer,
                               .y = at(call->result),
                               .channels = p->groups * p->columns,
                               .windows = p->image.windows,
                               .channels_first = p->result_first},
                      .scratch = at(call->scratch)};
    (void)stream;
    if (!job.scratch)
        return false;
    open_image(&job, at(call->operands[0]));
    if (p->method == DEPTHWISE) {
        const struct depthwise work = {&p->image, job.weights, job.bytes,
                                       job.bias,  &job.sink,   job.scratch};
        depthwise_open(&work);
    }
    team_for(&p->team, p->parts, 1, compute[p->method], &job);
    return true;
}

/* ---- Packing --------------------------------------------------------------------------------- */

/* Terms of a panel, of each two both of all columns. */
static int64_t place_of(int64_t term)
{
    return term / 2 * 2 * TILE_COLUMNS + term % 2;
}

/* Weights of a column, [channels][taps], to its place in a panel. */
static void pack_column(const struct primitive *p, const int8_t *w, int8_t *to)
{
    int64_t k = 0;
    for (int64_t tap = 0; tap < p->image.taps; tap++)
        for (int64_t c = 0; c < p->image.used; c++, k++)
            to[place_of(k)] = w[c * p->image.taps + tap];
}

static void pack_panels(const struct primitive *p, const int8_t *w, int8_t *to)
{
    const int64_t panel_bytes = tile_terms(p->terms) * TILE_COLUMNS;
    memset(to, 0, p->base.packed_bytes);
    for (int64_t i = 0; i < p->groups * p->panels; i++, to += panel_bytes)
        for (int c = 0; c < columns_of(p, i % p->panels); c++, w += p->terms)
            pack_column(p, w, to + 2 * (ptrdiff_t)c);
}

static void pack_operand(const struct primitive *p, const int8_t *b, int8_t *to)
{
    const int64_t panel_bytes = tile_terms(p->terms) * TILE_COLUMNS;
    memset(to, 0, p->base.packed_bytes);
    for (int64_t i = 0; i < p->panels; i++, to += panel_bytes, b += TILE_COLUMNS * p->b_column)
        for (int64_t k = 0; k < p->terms; k++)
            for (int c = 0; c < columns_of(p, i); c++)
                to[place_of(k) + 2 * (int64_t)c] = b[k * p->b_row + c * p->b_column];
}

static bool pack(const struct library_primitive *base, const void *weights, void *packed,
                 void *scratch)
{
    const struct primitive *p = (const struct primitive *)base;
    (void)scratch;
    if (p->method == DEPTHWISE)
        depthwise_pack(&p->image, weights, (int8_t)p->w_zero, packed);
    else if (p->is_product)
        pack_operand(p, weights, packed);
    else
        pack_panels(p, weights, packed);
    return true;
}

/* Panels of ROWS and WINOGRAD are the same; those of DEPTHWISE have lost the zero point. */
static bool same_packing(const struct library_primitive *a, const struct library_primitive *b)
{
    const struct primitive *one = (const struct primitive *)a, *two = (const struct primitive *)b;
    const bool loses = one->method == DEPTHWISE;
    return one->packs && two->packs && loses == (two->method == DEPTHWISE) &&
           (!loses || one->w_zero == two->w_zero) && one->groups == two->groups &&
           one->columns == two->columns && one->terms == two->terms &&
           one->image.taps == two->image.taps && one->b_row == two->b_row &&
           one->b_column == two->b_column;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static void release(struct library_primitive *base)
{
    free(base);
}

/* How threads share it. */
static void divide(struct primitive *p, int64_t threads)
{
    const bool tiled = p->method == WINOGRAD;
    const int64_t terms = tiled ? p->winograd.in * WINOGRAD_PRODUCTS : p->terms;
    const double work = (double)p->rows * (double)p->columns * (double)terms * (double)p->groups;
    const int64_t worth = work / PART < (double)threads ? (int64_t)(work / PART) : threads,
                  parts = worth > 1 ? worth : 1,
                  few = 2 * (tiled ? WINOGRAD_FEW_TILES : FEW_ROWS) * parts;
    p->shares_panels = p->method != DEPTHWISE && p->panels >= parts && p->rows < few;
    p->parts = least(parts, p->shares_panels ? p->panels : p->rows);
    team_open(&p->team, (int)p->parts);
}

/* Terms of a stretch are what a panel has whole, and rows are no power of two apart. */
static void measure(struct primitive *p)
{
    p->panels = (p->columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
    p->stretches = (p->terms + MOST_TERMS - 1) / MOST_TERMS;
    p->stretch = tile_terms((p->terms + p->stretches - 1) / p->stretches);
    const int64_t most = p->stretch * MOST_ROWS > MOST_TERMS * FEW_ROWS ? FEW_ROWS : MOST_ROWS,
                  blocks = (p->rows + most - 1) / most, rows = (p->rows + blocks - 1) / blocks;
    p->block = (rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    p->crosses = p->rows >= CROSSED_ROWS && tile_crosses(p->stretch, p->columns);
    p->is_narrow = p->packs && tile_is_narrow(p->rows);
    p->width = p->stretch + (p->stretch % 256 == 0 ? TILE_COLUMNS : 0);
}

static void measure_memory(struct primitive *p)
{
    const size_t turned = p->turns ? (size_t)(p->batch * p->image.pixels * p->image.channels) : 0;
    p->part_bytes = a_bytes(p) + b_bytes(p) + sums_bytes(p);
    if (p->method == DEPTHWISE) /* of all threads, and never more than that of one */
        p->part_bytes = aligned(depthwise_scratch_bytes(&p->image), LIBRARY_ALIGNMENT);
    else if (p->method == WINOGRAD)
        p->part_bytes = winograd_scratch_bytes(&p->winograd);
    p->base.scratch_bytes = (size_t)p->parts * p->part_bytes + turned;
    if (p->method == DEPTHWISE)
        p->base.packed_bytes = depthwise_packed_bytes(&p->image);
    else if (p->packs)
        p->base.packed_bytes =
            (size_t)(p->groups * p->panels * tile_terms(p->terms) * TILE_COLUMNS);
}

static bool describe_conv(struct primitive *p, const struct library_problem *problem)
{
    const struct conv_problem *c = &problem->conv;
    p->quantizer = (const struct library_quantizer *)(intptr_t)c->quantizer;
    if (c->rank < 1 || c->rank > CONV_MAX_RANK || c->turned || c->added || c->adds ||
        (c->biased && !p->quantizer))
        return false;
    image_open(c, problem->dtype == TSSA_INT8, &p->image);
    p->packs = true;
    p->w_zero = (int32_t)c->w_zero;
    p->batch = c->batch;
    p->turns = !c->x_last;
    p->pixel_step = 1;
    p->channel_step = p->image.pixels;
    p->result_first = !c->y_last;
    p->method = depthwise_takes(c) ? DEPTHWISE : winograd_takes(c) ? WINOGRAD : ROWS;
    p->groups = c->groups;
    p->rows = c->batch * p->image.windows;
    p->columns = c->out_channels / c->groups;
    p->terms = p->image.used * p->image.taps;
    if (p->method == WINOGRAD) {
        winograd_open(c, &p->winograd);
        p->rows = p->winograd.tiles;
    }
    return true;
}

/* The left operand as an image of one line; of other strides than those of rows side by side it is
 * copied. */
static bool describe_product(struct primitive *p, const struct library_problem *problem)
{
    const struct matmul_problem *m = &problem->matmul;
    const bool lies = m->a_column == 1 && (m->a_row >= m->k || m->m == 1);
    const struct conv_problem image = {.rank = 1,
                                       .groups = 1,
                                       .in_channels = lies && m->m > 1 ? m->a_row : m->k,
                                       .in = {m->m},
                                       .out = {m->m},
                                       .kernel = {1},
                                       .stride = {1},
                                       .dilation = {1},
                                       .x_zero = m->a_zero};
    image_open(&image, problem->dtype == TSSA_INT8, &p->image);
    p->image.used = m->k;
    p->is_product = true;
    p->batch = m->batch;
    p->turns = !lies;
    p->pixel_step = m->a_row;
    p->channel_step = m->a_column;
    p->b_row = m->b_row;
    p->b_column = m->b_column;
    p->packs = m->b_constant;
    p->w_zero = (int32_t)m->b_zero;
    p->groups = 1;
    p->rows = m->m;
    p->columns = m->n;
    p->terms = m->k;
    return m->batch == 1;
}

struct library_primitive *bytes_make(const struct library_problem *problem)
{
    static const struct primitive_table table = {
        .same_packing = same_packing, .pack = pack, .run = run, .release = release};
    struct primitive p = {.base = {.table = &table, .name = "products of bytes in 16 bits"}};
    if ((problem->dtype != TSSA_UINT8 && problem->dtype != TSSA_INT8) ||
        !(problem->kind == LIBRARY_CONV ? describe_conv(&p, problem)
                                        : describe_product(&p, problem)) ||
        p.rows <= 0 || p.columns <= 0 || p.terms <= 0)
        return NULL;
    measure(&p);
    divide(&p, problem->threads);
    measure_memory(&p);
    struct primitive *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    *made = p;
    return &made->base;
}
