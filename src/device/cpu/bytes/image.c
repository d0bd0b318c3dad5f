/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/bytes/image.h"

#include <string.h>

#include "base/clones.h"
#include "base/integers.h"

#define INLINE static inline __attribute__((always_inline))
#define LINE (CONV_MAX_RANK - 1) /* the axis whose pixels are neighbours */

void image_open(const struct conv_problem *problem, bool is_signed, struct image *image)
{
    *image = (struct image){.channels = problem->in_channels,
                            .used = problem->in_channels / problem->groups,
                            .pixels = 1,
                            .windows = 1,
                            .taps = 1,
                            .zero = (int32_t)problem->x_zero,
                            .is_signed = is_signed};
    for (int i = 0; i < CONV_MAX_RANK; i++) {
        const int from = i - (int)(CONV_MAX_RANK - problem->rank);
        const bool there = from >= 0;
        image->in[i] = there ? problem->in[from] : 1;
        image->out[i] = there ? problem->out[from] : 1;
        image->kernel[i] = there ? problem->kernel[from] : 1;
        image->stride[i] = there ? problem->stride[from] : 1;
        image->dilation[i] = there ? problem->dilation[from] : 1;
        image->pad[i] = there ? problem->pad_begin[from] : 0;
        image->pixels *= image->in[i];
        image->windows *= image->out[i];
        image->taps *= image->kernel[i];
    }
}

void image_window_of(const struct image *image, int64_t row, struct image_window *window)
{
    int64_t rest = row % image->windows;
    window->batch = row / image->windows;
    for (int i = LINE; i >= 0; i--) {
        window->at[i] = rest % image->out[i] * image->stride[i] - image->pad[i];
        rest /= image->out[i];
    }
}

/* In the same line without a division. */
void image_next_window(const struct image *image, int64_t row, struct image_window *window)
{
    const int64_t next = window->at[LINE] + image->stride[LINE];
    if (next <= (image->out[LINE] - 1) * image->stride[LINE] - image->pad[LINE])
        window->at[LINE] = next;
    else
        image_window_of(image, row + 1, window);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

#define LANES 16
#define SIGN_BIT 0x80

/* Bytes are taken as UINT8, of INT8 those that are 128 larger, as is their zero point. */
struct widening {
    uint8_t flip;
    int16_t zero;
    const uint8_t *end; /* the image's, behind which nothing is read */
};

INLINE int16_t wide(const struct widening *w, uint8_t byte)
{
    return (int16_t)((byte ^ w->flip) - w->zero);
}

/* A multiple of LANES. */
INLINE void widen_vectors(const struct widening *w, const uint8_t *from, int64_t n,
                          int16_t *restrict to)
{
    const struct widening own = *w;
    for (int64_t i = 0; i < n; i += LANES)
        for (int64_t j = i; j < i + LANES; j++)
            to[j] = wide(&own, from[j]);
}

INLINE int64_t whole(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

/* Whole vectors, where there are such. */
INLINE void widen(const struct widening *w, const uint8_t *from, int64_t n, int16_t *restrict to)
{
    if (w->end - from >= whole(n)) {
        widen_vectors(w, from, n, to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = wide(w, from[i]);
}

/* Where a row's next bytes go, `at` of them from the window's first one; those outside of
 * [begin, end) go nowhere. */
struct writer {
    const struct image *image;
    const struct widening *widening;
    int64_t at, begin, end;
    int16_t *to;
};

/* `from` NULL: zero points. */
INLINE void put(struct writer *w, const uint8_t *from, int64_t n)
{
    const int64_t first = w->at > w->begin ? w->at : w->begin,
                  end = w->at + n < w->end ? w->at + n : w->end;
    if (first < end && from)
        widen(w->widening, from + (first - w->at), end - first, w->to + (first - w->begin));
    else if (first < end)
        memset(w->to + (first - w->begin), 0, (size_t)(end - first) * sizeof *w->to);
    w->at += n;
}

INLINE bool is_inside(int64_t at, int64_t size)
{
    return at >= 0 && at < size;
}

/* Elements of a window in one line of the image, whose first pixel's channels of the group are at
 * `line`. */
INLINE void put_line(struct writer *w, const uint8_t *line, int64_t at)
{
    const struct image *image = w->image;
    const int64_t kernel = image->kernel[LINE], size = image->in[LINE],
                  step = image->dilation[LINE], channels = image->channels;
    if (step != 1 || image->used != channels) {
        for (int64_t t = 0; t < kernel; t++, at += step)
            put(w, is_inside(at, size) ? line + at * channels : NULL, image->used);
        return;
    }
    const int64_t begin = at < 0 ? -at : 0, end = size - at < kernel ? size - at : kernel;
    if (begin >= end) {
        put(w, NULL, kernel * channels);
        return;
    }
    put(w, NULL, begin * channels);
    put(w, line + (at + begin) * channels, (end - begin) * channels);
    put(w, NULL, (kernel - end) * channels);
}

INLINE void put_window(struct writer *w, const uint8_t *image_of_batch, const int64_t *at)
{
    const struct image *image = w->image;
    for (int64_t i = 0; i < image->kernel[0]; i++)
        for (int64_t j = 0; j < image->kernel[1]; j++) {
            const int64_t plane = at[0] + i * image->dilation[0],
                          line = at[1] + j * image->dilation[1];
            if (is_inside(plane, image->in[0]) && is_inside(line, image->in[1]))
                put_line(w,
                         image_of_batch +
                             (plane * image->in[1] + line) * image->in[LINE] * image->channels,
                         at[LINE]);
            else
                put(w, NULL, image->kernel[LINE] * image->used);
        }
}

/* Is all of the window in the image, where its elements in a line lie side by side, all are wanted,
 * and vectors may be read to the end of each line? */
INLINE bool is_within(const struct image *image, const struct image_part *p, const int64_t *at)
{
    bool within = image->dilation[LINE] == 1 && image->used == image->channels && p->begin == 0 &&
                  p->end == image->taps * image->channels;
    for (int i = 0; i < CONV_MAX_RANK; i++)
        within &= at[i] >= 0 && at[i] + (image->kernel[i] - 1) * image->dilation[i] < image->in[i];
    return within;
}

/* Bytes from the image's beginning. */
INLINE int64_t place_of(const struct image *image, int64_t plane, int64_t line, int64_t pixel)
{
    return ((plane * image->in[1] + line) * image->in[LINE] + pixel) * image->channels;
}

/* What is behind a row's columns. */
INLINE void clear(const struct image_part *p, int16_t *to)
{
    for (int64_t i = p->end - p->begin; i % p->whole != 0; i++)
        to[i] = 0;
}

/* Windows side by side that are within. */
INLINE void put_run(const struct image *image, const struct image_part *p, const struct widening *w,
                    const uint8_t *from, int64_t windows, int16_t *to)
{
    const int64_t n = image->kernel[LINE] * image->channels,
                  step = image->stride[LINE] * image->channels,
                  line = place_of(image, 0, image->dilation[1], 0),
                  plane = place_of(image, image->dilation[0], 0, 0);
    for (int64_t r = 0; r < windows; r++, from += step, to += p->width) {
        const uint8_t *in_plane = from;
        int16_t *next = to;
        for (int64_t i = 0; i < image->kernel[0]; i++, in_plane += plane)
            for (int64_t j = 0; j < image->kernel[1]; j++, next += n)
                widen_vectors(w, in_plane + j * line, n, next);
        clear(p, to);
    }
}

/* Where the bytes end that vectors of the window read. */
INLINE int64_t end_of(const struct image *image, const int64_t *at)
{
    return place_of(image, at[0] + (image->kernel[0] - 1) * image->dilation[0],
                    at[1] + (image->kernel[1] - 1) * image->dilation[1], at[LINE]) +
           whole(image->kernel[LINE] * image->channels);
}

/* How many windows from `row` on are within, in its line and of those that are wanted. There are so
 * many bytes from the batch's first pixel on. */
INLINE int64_t run_of(const struct image *image, const struct image_part *p, int64_t row,
                      const int64_t *at, int64_t bytes)
{
    const int64_t there = bytes - end_of(image, at);
    if (there < 0 || !is_within(image, p, at))
        return 0;
    const int64_t span = (image->kernel[LINE] - 1) * image->dilation[LINE],
                  step = image->stride[LINE],
                  inside = (image->in[LINE] - 1 - span - at[LINE]) / step + 1,
                  readable = there / (step * image->channels) + 1,
                  in_line = image->out[LINE] - row % image->out[LINE];
    return least(least(inside, readable), least(in_line, p->row + p->rows - row));
}

INLINE struct widening widening_of(const struct image *image, const struct image_part *p)
{
    const uint8_t flip = image->is_signed ? SIGN_BIT : 0;
    return (struct widening){flip, (int16_t)(image->zero + flip), p->bytes.end};
}

VECTOR_PROCEDURE(gather_windows, (const struct image *image, const struct image_part *p),
                 (image, p))
{
    const struct widening widening = widening_of(image, p);
    struct image_window window;
    image_window_of(image, p->row, &window);
    for (int64_t row = p->row, n; row < p->row + p->rows; row += n) {
        int16_t *to = p->to + (row - p->row) * p->width;
        const int64_t *at = window.at;
        const uint8_t *from = p->bytes.first + window.batch * image->pixels * image->channels +
                              p->group * image->used;
        n = run_of(image, p, row, at, p->bytes.end - from);
        if (n > 0) {
            put_run(image, p, &widening, from + place_of(image, at[0], at[1], at[LINE]), n, to);
            image_window_of(image, row + n, &window);
            continue;
        }
        struct writer w = {image, &widening, 0, p->begin, p->end, to};
        put_window(&w, from, at);
        clear(p, to);
        image_next_window(image, row, &window);
        n = 1;
    }
}

/* Windows of one pixel, which are all pixels. */
static bool is_matrix(const struct image *image)
{
    bool same = image->taps == 1;
    for (int i = 0; i < CONV_MAX_RANK; i++)
        same &= image->stride[i] == 1 && image->pad[i] == 0 && image->out[i] == image->in[i];
    return same;
}

VECTOR_PROCEDURE(gather_pixels, (const struct image *image, const struct image_part *p), (image, p))
{
    const int64_t columns = p->end - p->begin;
    const struct widening w = widening_of(image, p);
    const uint8_t *from =
        p->bytes.first + p->row * image->channels + p->group * image->used + p->begin;
    if (columns == image->channels && columns == p->width && columns % p->whole == 0) {
        widen(&w, from, p->rows * columns, p->to);
        return;
    }
    for (int64_t r = 0; r < p->rows; r++) {
        int16_t *to = p->to + r * p->width;
        widen(&w, from + r * image->channels, columns, to);
        clear(p, to);
    }
}

void image_gather(const struct image *image, const struct image_part *part)
{
    if (is_matrix(image))
        gather_pixels(image, part);
    else
        gather_windows(image, part);
}
