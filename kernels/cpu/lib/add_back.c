/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strided images, of kernels of few positions, are summed row by row: elements of a row that lie
 * `stride` apart get theirs from the same positions of the kernel, so a row is kept as so many
 * rows, its phases, in which they are neighbours, and put together when it is done. Whatever else
 * there is goes position by position. (Without strides that is faster, too, by a fifth for rows
 * of 20.)
 */
#include "kernels/cpu/lib/add_back.h"

#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/lib/reduce_levels.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- Position by position -------------------------------------------------------------------- */

/* Rows [first, end) of the output, some of which read padding; of a plane none do, and row r reads
 * r * step + from. */
struct rows_back {
    bool plane;
    int64_t first, end, step, from;
};

static struct rows_back rows_back(const struct window *w, int64_t kernel_row)
{
    const int64_t length = w->out[w->rank - 1];
    struct rows_back rows = {.plane = w->rank == 2, .end = length > 0 ? w->out_count / length : 0};
    if (!rows.plane)
        return rows;
    rows.step = w->stride[0];
    rows.from = kernel_row * w->dilation[0] - w->pad_begin[0];
    window_valid_range(rows.from, rows.step, w->in[0], rows.end, &rows.first, &rows.end);
    return rows;
}

/* to[i] += from[i], for n elements. */
#define ADD_ALL(T, to, from, n)                                                                    \
    do {                                                                                           \
        for (int64_t i = 0; i < (n); i++)                                                          \
            (to)[i] += (from)[i];                                                                  \
    } while (0)

/*
 * Of short rows of which some elements fill no vector: with AVX-512 compilers add these one by one.
 * They are added together with some of those before them, all loaded before these are stored.
 */
#define ADD_BYTES 32
#define ADD_SHORT 192
#define ADD_OVERLAPPING(T, to, from, n)                                                            \
    do {                                                                                           \
        typedef T lanes __attribute__((vector_size(ADD_BYTES)));                                   \
        const int64_t most = ADD_BYTES / (int64_t)sizeof(T), rest = (n)-most;                      \
        lanes sum, term, last, last_term;                                                          \
        if (rest < 0) {                                                                            \
            ADD_ALL(T, to, from, n);                                                               \
            break;                                                                                 \
        }                                                                                          \
        memcpy(&last, (to) + rest, sizeof last);                                                   \
        memcpy(&last_term, (from) + rest, sizeof last_term);                                       \
        last += last_term;                                                                         \
        for (int64_t i = 0; i < rest; i += most) {                                                 \
            memcpy(&sum, (to) + i, sizeof sum);                                                    \
            memcpy(&term, (from) + i, sizeof term);                                                \
            sum += term;                                                                           \
            memcpy((to) + i, &sum, sizeof sum);                                                    \
        }                                                                                          \
        memcpy((to) + rest, &last, sizeof last);                                                   \
    } while (0)

/* Adds what each element of `out` gives to the one that it read at this position. */
#define ADD_POSITION(name, T, neighbours)                                                          \
    VECTOR_PROCEDURE(name, (const struct window *w, int64_t position, const T *out, T *in),        \
                     (w, position, out, in))                                                       \
    {                                                                                              \
        const int last = w->rank - 1;                                                              \
        const int64_t stride = w->stride[last], length = w->out[last];                             \
        const int64_t offset =                                                                     \
            position % w->kernel[last] * w->dilation[last] - w->pad_begin[last];                   \
        const int64_t kernel_row = position / w->kernel[last];                                     \
        const struct rows_back rows = rows_back(w, kernel_row);                                    \
        int64_t begin, end;                                                                        \
        window_valid_range(offset, stride, w->in[last], length, &begin, &end);                     \
        for (int64_t r = rows.first; r < rows.end && begin < end; r++) {                           \
            const int64_t row =                                                                    \
                rows.plane ? r * rows.step + rows.from : window_input_row(w, r, kernel_row);       \
            if (row < 0)                                                                           \
                continue;                                                                          \
            T *restrict to = in + row * w->in[last] + offset + begin * stride;                     \
            const T *restrict from = out + r * length + begin;                                     \
            if (stride == 1)                                                                       \
                neighbours(T, to, from, end - begin);                                              \
            else                                                                                   \
                for (int64_t i = 0; i < end - begin; i++)                                          \
                    to[i * stride] += from[i];                                                     \
        }                                                                                          \
    }
ADD_POSITION(add_floats, float, ADD_ALL)
ADD_POSITION(add_doubles, double, ADD_ALL)
ADD_POSITION(add_short_floats, float, ADD_OVERLAPPING)

static bool is_short(const struct window *w)
{
    const int64_t bytes = w->out[w->rank - 1] * (int64_t)sizeof(float);
    return isa_level() == ISA_V4 && bytes > ADD_BYTES && bytes <= ADD_SHORT && bytes % ADD_BYTES;
}

static void *add_positions(const struct window *w, tssa_dtype dtype, const char *planes,
                           void *memory)
{
    const size_t width = tssa_dtype_size(dtype), plane = (size_t)w->out_count * width;
    const bool overlaps = is_short(w);
    struct reduce_levels levels;
    reduce_levels_begin(&levels, reduce_loops_of(REDUCTION_Sum, dtype), width, w->in_count, memory);
    for (int64_t k = 0; k < w->kernel_count; k++, planes += plane) {
        if (dtype == TSSA_FLOAT && overlaps)
            add_short_floats(w, k, (const float *)(const void *)planes, memory);
        else if (dtype == TSSA_FLOAT)
            add_floats(w, k, (const float *)(const void *)planes, memory);
        else
            add_doubles(w, k, (const double *)(const void *)planes, memory);
        reduce_levels_add(&levels, 1);
    }
    return reduce_levels_end(&levels);
}

/* ---- Row by row ------------------------------------------------------------------------------ */

#define MOST REDUCTION_RADIX /* positions, and phases: sums are of one level */
/* Rows whose phases lie together, and are put together at once: what was just stored in parts
 * cannot be loaded as a whole without waiting for it. */
#define SPREAD 8
#define FEWEST 16 /* bytes of a vector */

/* A column of the kernel: elements [begin, end) of its phase get what lies `shift` before them in a
 * row of the output. */
struct column {
    int64_t index, shift, begin, end;
};

/* The columns of all phases, one phase behind the other: `firsts` tells where each begins. */
struct phases {
    struct column columns[MOST];
    int firsts[MOST + 1];
    int64_t length; /* elements of a phase */
};

/* What is added up in a phase: where it is read, and elements [low, high), none or a vector of them
 * at least, that all of it gives to. */
struct terms {
    int n;
    int64_t low, high;
    int64_t begin[MOST], end[MOST];
    const void *from[MOST];
};

static struct column column_of(const struct window *w, int64_t index, int64_t *phase)
{
    const int last = w->rank - 1;
    const int64_t stride = w->stride[last];
    const int64_t offset = index * w->dilation[last] - w->pad_begin[last];
    struct column c = {.index = index};
    window_valid_range(offset, stride, w->in[last], w->out[last], &c.begin, &c.end);
    *phase = (offset % stride + stride) % stride;
    c.shift = (offset - *phase) / stride;
    c.begin += c.shift;
    c.end += c.shift;
    return c;
}

static int64_t phase_length(const struct window *w)
{
    const int last = w->rank - 1;
    return (w->in[last] + w->stride[last] - 1) / w->stride[last];
}

/* Columns that no element reads are left out. */
static void sort_columns(const struct window *w, struct phases *p)
{
    const int last = w->rank - 1;
    int n = 0;
    p->length = phase_length(w);
    for (int64_t phase = 0; phase < w->stride[last]; phase++) {
        p->firsts[phase] = n;
        for (int64_t i = 0, of; i < w->kernel[last]; i++) {
            const struct column c = column_of(w, i, &of);
            if (of == phase && c.begin < c.end)
                p->columns[n++] = c;
        }
    }
    p->firsts[w->stride[last]] = n;
}

/* The row of the output that reads row `y` of the input at this row of the kernel; -1: none. */
static inline int64_t output_row(const struct window *w, int64_t y, int64_t kernel_row)
{
    if (w->rank == 1)
        return 0;
    const int64_t at = y + w->pad_begin[0] - kernel_row * w->dilation[0], stride = w->stride[0];
    if (at < 0)
        return -1;
    const int64_t row = stride == 1 ? at : stride == 2 ? at >> 1 : at / stride;
    return row * stride == at && row < w->out[0] ? row : -1;
}

/* What a row and a phase are made of, in the order of the kernel's positions. */
INLINE void collect(const struct window *w, const struct phases *p, int64_t y, int64_t phase,
                    const char *planes, size_t width, struct terms *t)
{
    const int last = w->rank - 1;
    const int64_t rows = w->rank == 2 ? w->kernel[0] : 1;
    t->n = 0;
    t->low = 0;
    t->high = p->length;
    for (int64_t k = 0; k < rows; k++) {
        const int64_t row = output_row(w, y, k);
        const int end = row < 0 ? 0 : p->firsts[phase + 1];
        for (int i = p->firsts[phase]; i < end; i++, t->n++) {
            const struct column *c = &p->columns[i];
            const int64_t at = (k * w->kernel[last] + c->index) * w->out_count;
            t->from[t->n] = planes + (at + row * w->out[last] - c->shift) * (int64_t)width;
            t->begin[t->n] = c->begin;
            t->end[t->n] = c->end;
            t->low = c->begin > t->low ? c->begin : t->low;
            t->high = c->end < t->high ? c->end : t->high;
        }
    }
    if (t->high - t->low < FEWEST / (int64_t)width)
        t->high = t->low;
}

/*
 * Sums of elements [low, high), as many at a time as V has; what is left over with some of those
 * before it, again. False: there are not so many.
 */
#define SUM_BY(name, T, V)                                                                         \
    INLINE bool name(const struct terms *t, T *to)                                                 \
    {                                                                                              \
        const int64_t lanes = (int64_t)(sizeof(V) / sizeof(T));                                    \
        if (t->high - t->low < lanes)                                                              \
            return false;                                                                          \
        for (int64_t i = t->low; i < t->high; i += lanes) {                                        \
            const int64_t at = i + lanes < t->high ? i : t->high - lanes;                          \
            V sum = {0}, term;                                                                     \
            for (int k = 0; k < t->n; k++) {                                                       \
                memcpy(&term, (const T *)t->from[k] + at, sizeof term);                            \
                sum += term;                                                                       \
            }                                                                                      \
            memcpy(to + at, &sum, sizeof sum);                                                     \
        }                                                                                          \
        return true;                                                                               \
    }

#define SUM_ROWS(name, T)                                                                          \
    typedef T name##_wide __attribute__((vector_size(32)));                                        \
    typedef T name##_half __attribute__((vector_size(FEWEST)));                                    \
    SUM_BY(name##_by_wide, T, name##_wide)                                                         \
    SUM_BY(name##_by_half, T, name##_half)                                                         \
    INLINE void name##_outside(const struct terms *t, int64_t length, T *to)                       \
    {                                                                                              \
        for (int64_t i = t->low > 0 ? 0 : t->high; i < length;                                     \
             i = i + 1 == t->low ? t->high : i + 1) {                                              \
            T sum = 0;                                                                             \
            for (int k = 0; k < t->n; k++)                                                         \
                if (i >= t->begin[k] && i < t->end[k])                                             \
                    sum += ((const T *)t->from[k])[i];                                             \
            to[i] = sum;                                                                           \
        }                                                                                          \
    }                                                                                              \
    INLINE void name##_of_phase(const struct terms *t, int64_t length, T *to)                      \
    {                                                                                              \
        name##_outside(t, length, to);                                                             \
        if (!name##_by_wide(t, to))                                                                \
            name##_by_half(t, to);                                                                 \
    }                                                                                              \
    INLINE void name##_spread(const T *restrict phases, int64_t stride, int64_t apart, int64_t n,  \
                              T *restrict to)                                                      \
    {                                                                                              \
        const int64_t whole = n / stride;                                                          \
        if (stride == 2)                                                                           \
            for (int64_t i = 0; i < whole; i++) {                                                  \
                to[2 * i] = phases[i];                                                             \
                to[2 * i + 1] = phases[apart + i];                                                 \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < whole; i++)                                                    \
                for (int64_t phase = 0; phase < stride; phase++)                                   \
                    to[i * stride + phase] = phases[phase * apart + i];                            \
        for (int64_t i = whole * stride; i < n; i++)                                               \
            to[i] = phases[(i - whole * stride) * apart + whole];                                  \
    }                                                                                              \
    VECTOR_PROCEDURE(                                                                              \
        name,                                                                                      \
        (const struct window *w, const struct phases *p, const void *planes, T *in, T *phases),    \
        (w, p, planes, in, phases))                                                                \
    {                                                                                              \
        const int last = w->rank - 1;                                                              \
        const int64_t rows = w->rank == 2 ? w->in[0] : 1, stride = w->stride[last];                \
        const int64_t n = w->in[last], length = p->length, apart = SPREAD * length;                \
        struct terms terms;                                                                        \
        for (int64_t y = 0; y < rows; y++) {                                                       \
            const int64_t at = y % SPREAD, together = n % stride ? 1 : at + 1;                     \
            for (int64_t phase = 0; phase < stride; phase++) {                                     \
                collect(w, p, y, phase, planes, sizeof(T), &terms);                                \
                name##_of_phase(&terms, length, phases + phase * apart + at * length);             \
            }                                                                                      \
            if (at < SPREAD - 1 && y < rows - 1)                                                   \
                continue;                                                                          \
            for (int64_t i = 0; i <= at; i += together)                                            \
                name##_spread(phases + i * length, stride, apart, together * n,                    \
                              in + (y - at + i) * n);                                              \
        }                                                                                          \
    }

SUM_ROWS(sum_float_rows, float)
SUM_ROWS(sum_double_rows, double)

/* ---- All ------------------------------------------------------------------------------------- */

static bool goes_by_rows(const struct window *w)
{
    const int64_t stride = w->stride[w->rank - 1];
    return w->rank <= 2 && w->kernel_count <= MOST && stride > 1 && stride <= MOST;
}

bool add_back_bytes(const struct window *w, tssa_dtype dtype, size_t *bytes)
{
    const size_t width = tssa_dtype_size(dtype);
    size_t phases = 0;
    if (goes_by_rows(w) &&
        !size_mul((size_t)(SPREAD * w->stride[w->rank - 1] * phase_length(w)), width, &phases))
        return false;
    return size_mul((size_t)w->in_count, (size_t)reduce_levels_needed(w->kernel_count) * width,
                    bytes) &&
           size_add(*bytes, phases, bytes);
}

void *add_back(const struct window *w, tssa_dtype dtype, const void *planes, void *memory)
{
    struct phases phases;
    if (!goes_by_rows(w))
        return add_positions(w, dtype, planes, memory);
    sort_columns(w, &phases);
    if (dtype == TSSA_FLOAT)
        sum_float_rows(w, &phases, planes, memory, (float *)memory + w->in_count);
    else
        sum_double_rows(w, &phases, planes, memory, (double *)memory + w->in_count);
    return memory;
}

/* ---- Side by side ---------------------------------------------------------------------------- */

bool add_back_is_apart(const struct window *w)
{
    bool apart = w->rank == 2 && w->kernel[1] == 2;
    for (int i = 0; apart && i < 2; i++)
        apart = w->kernel[i] == w->stride[i] && w->dilation[i] == 1 && w->pad_begin[i] == 0 &&
                w->in[i] == w->out[i] * w->stride[i];
    return apart;
}

/* A sum begins with 0, which a term of -0 is added to. */
VECTOR_PROCEDURE(put_pairs, (const struct window *w, const float *planes, float more, float *to),
                 (w, planes, more, to))
{
    const int64_t length = w->out[1];
    for (int64_t row = 0; row < w->in[0]; row++, to += 2 * length) {
        const float *even = planes + row % w->stride[0] * 2 * w->out_count +
                            row / w->stride[0] * length,
                    *odd = even + w->out_count;
        for (int64_t i = 0; i < length; i++) {
            to[2 * i] = 0.0F + even[i] + more;
            to[2 * i + 1] = 0.0F + odd[i] + more;
        }
    }
}

void add_back_apart(const struct window *w, const float *planes, float more, float *to)
{
    put_pairs(w, planes, more, to);
}
