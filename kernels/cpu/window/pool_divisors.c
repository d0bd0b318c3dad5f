/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/window/pool_divisors.h"

#include "kernels/cpu/window/pool_sums.h"

/* How many taps of axis i lie in the input (include_pad: or in its padding) for window o. */
static int64_t taps_inside(const struct window *w, int i, int64_t o, bool include_pad)
{
    int64_t low = include_pad ? -w->pad_begin[i] : 0,
            high = w->in[i] + (include_pad ? w->pad_end[i] : 0);
    int64_t start = o * w->stride[i] - w->pad_begin[i], d = w->dilation[i];
    int64_t first = start >= low ? 0 : (low - start + d - 1) / d;
    int64_t last = start >= high ? 0 : (high - start + d - 1) / d;
    last = last < w->kernel[i] ? last : w->kernel[i];
    return last > first ? last - first : 0;
}

/* Of all axes but the last. */
static void count_rows(const struct window *w, bool include_pad, double *counts)
{
    int64_t block = 1; /* rows per index of the axes before i */
    counts[0] = 1;
    for (int i = 0; i < w->rank - 1; i++) {
        /* From the back, so that what is read is not yet overwritten. */
        for (int64_t b = block - 1; b >= 0; b--) {
            double before = counts[b];
            for (int64_t o = w->out[i] - 1; o >= 0; o--)
                counts[b * w->out[i] + o] = before * (double)taps_inside(w, i, o, include_pad);
        }
        block *= w->out[i];
    }
}

/* Numbers the counts in place, as they come first, and tells of each row which is its. Returns how
 * many there are. */
static int64_t number_counts(double *counts, int64_t rows, int64_t *row)
{
    int64_t n = 0, k = 0;
    for (int64_t r = 0; r < rows; r++) {
        const double count = counts[r];
        if (r == 0 || count != counts[k]) /* mostly the same as before */
            for (k = 0; k < n && counts[k] != count; k++)
                ;
        if (k == n)
            counts[n++] = count;
        row[r] = k;
    }
    return n;
}

/* The lines of rows with these counts; `line`: room for one. */
static void fill_lines(const struct pool_sum_loops *loops, const struct window *w, bool include_pad,
                       const double *counts, int64_t n, int64_t pitch, double *line, char *lines)
{
    const int last = w->rank - 1;
    for (int64_t k = 0; k < n; k++, lines += (size_t)pitch * loops->width) {
        for (int64_t o = 0; o < pitch; o++)
            line[o] =
                o < w->out[last] ? counts[k] * (double)taps_inside(w, last, o, include_pad) : 1;
        loops->divisors(line, pitch, lines);
    }
}

static tssa_status *fill(struct kernel_args *args, const struct pool_sum_loops *loops,
                         const struct window *w, bool include_pad, int64_t rows, int64_t pitch,
                         double *counts, struct pool_divisors *divisors)
{
    const size_t row_bytes = (size_t)rows * sizeof *divisors->row;
    int64_t *row = (int64_t *)(void *)(counts + rows + pitch);
    size_t bytes;
    count_rows(w, include_pad, counts);
    const int64_t n = number_counts(counts, rows, row);
    if (!size_mul((size_t)n, (size_t)pitch * loops->width, &bytes) ||
        !size_add(bytes, row_bytes, &bytes))
        return ERROR(TSSA_LIMIT, "too many windows");
    TRY(kernel_scratch(args, bytes, &divisors->memory));
    char *lines = divisors->memory->data;
    int64_t *at = (int64_t *)(void *)(lines + bytes - row_bytes);
    fill_lines(loops, w, include_pad, counts, n, pitch, counts + rows, lines);
    for (int64_t r = 0; r < rows; r++)
        at[r] = row[r] * pitch;
    divisors->lines = lines;
    divisors->row = at;
    return NULL;
}

tssa_status *pool_divisors_make(struct kernel_args *args, const struct pool_sum_loops *loops,
                                const struct window *w, bool include_pad,
                                struct pool_divisors *divisors)
{
    const int64_t columns = w->out[w->rank - 1], rows = w->out_count / columns,
                  pitch = (columns + POOL_DIVISORS - 1) / POOL_DIVISORS * POOL_DIVISORS;
    size_t elements, bytes;
    struct buffer *counts;
    if (!size_mul((size_t)rows, 2, &elements) || !size_add(elements, (size_t)pitch, &elements) ||
        !size_mul(elements, sizeof(double), &bytes))
        return ERROR(TSSA_LIMIT, "too many windows");
    TRY(kernel_scratch(args, bytes, &counts));
    tssa_status *status = fill(args, loops, w, include_pad, rows, pitch, counts->data, divisors);
    buffer_release(counts);
    return status;
}

void pool_divisors_release(struct pool_divisors *divisors)
{
    buffer_release(divisors->memory);
}
