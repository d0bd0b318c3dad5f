/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row is what lies along the last axis that changes, or, where axes behind that do not, a block
 * that is copied as it is. Neighbouring rows that have the same source are copies of one another.
 * Short rows of many planes are taken as one, of the last two axes.
 */
#include "kernels/cpu/window/resize_nearest.h"

#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/lib/lines.h"

struct nearest {
    const struct tensor *in, *out;
    const struct resample_table *tables;
    const void *fill;
    size_t size;                        /* of an element */
    int axes;                           /* how many number the rows */
    int64_t strides[TSSA_MAX_RANK];     /* of the input */
    int64_t length;                     /* elements of a row of the result */
    const struct resample_table *along; /* NULL: rows are copied as they are */
    /* So many elements of the source come so often each; behind them the row follows `along`. */
    int64_t whole, repeats;
    bool leaves; /* some element of a row lies outside */
    bool twice;  /* rows are of what write_twice takes */
};

#define INLINE static inline __attribute__((always_inline))

/* ---- Rows ------------------------------------------------------------------------------------ */

/*
 * n elements, each so many times in a row; whole factors that are usual have stores of their own.
 */
#define REPEAT(type)                                                                               \
    INLINE void repeat_##type(const type *restrict x, int64_t n, int64_t times, type *restrict y)  \
    {                                                                                              \
        if (times == 2)                                                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[2 * i] = y[2 * i + 1] = x[i];                                                    \
        else if (times == 3)                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[3 * i] = y[3 * i + 1] = y[3 * i + 2] = x[i];                                     \
        else if (times == 4)                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[4 * i] = y[4 * i + 1] = y[4 * i + 2] = y[4 * i + 3] = x[i];                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                for (int64_t k = 0; k < times; k++)                                                \
                    y[i * times + k] = x[i];                                                       \
    }

#define TAKE(type)                                                                                 \
    INLINE void take_##type(const type *restrict x, const int64_t *restrict index, int64_t n,      \
                            type *restrict y)                                                      \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = x[index[i]];                                                                    \
    }

#define ROWS(type) REPEAT(type) TAKE(type)
ROWS(uint8_t)
ROWS(uint16_t)
ROWS(uint32_t)
ROWS(uint64_t)

#define MAKE_ROW(type)                                                                             \
    do {                                                                                           \
        if (done)                                                                                  \
            repeat_##type((const type *)from, w->whole, w->repeats, (type *)to);                   \
        if (done < w->length)                                                                      \
            take_##type((const type *)from, index + done, w->length - done, (type *)to + done);    \
    } while (0)

/* Addresses of tensors' elements are aligned as those are. */
INLINE void make_row(const struct nearest *w, const void *from, void *to)
{
    const int64_t *index = w->along->index;
    const int64_t done = w->whole * w->repeats;
    switch (w->size) {
    case 1:
        MAKE_ROW(uint8_t);
        break;
    case 2:
        MAKE_ROW(uint16_t);
        break;
    case 4:
        MAKE_ROW(uint32_t);
        break;
    case 8:
        MAKE_ROW(uint64_t);
        break;
    default:
        for (int64_t i = 0; i < w->length; i++)
            memcpy((char *)to + (size_t)i * w->size,
                   (const char *)from + (size_t)index[i] * w->size, w->size);
    }
    for (int64_t i = 0; w->leaves && i < w->length; i++)
        if (w->along->outside[i])
            memcpy((char *)to + (size_t)i * w->size, w->fill, w->size);
}

#define TWICE 8
typedef uint32_t twice_lanes __attribute__((vector_size(TWICE * sizeof(uint32_t))));

/* n >= TWICE elements of 4 bytes, each twice, into two rows: what was just stored would have to be
 * loaded for the second one. What does not fill a vector is written together with what comes before
 * it. */
INLINE void write_twice(const char *x, int64_t n, char *y, char *z)
{
    for (int64_t i = 0; i < n; i += TWICE) {
        const int64_t at = i + TWICE < n ? i : n - TWICE;
        twice_lanes a, low, high;
        memcpy(&a, x + at * 4, sizeof a);
        low = __builtin_shufflevector(a, a, 0, 0, 1, 1, 2, 2, 3, 3);
        high = __builtin_shufflevector(a, a, 4, 4, 5, 5, 6, 6, 7, 7);
        memcpy(y + at * 8, &low, sizeof low);
        memcpy(y + at * 8 + sizeof low, &high, sizeof high);
        memcpy(z + at * 8, &low, sizeof low);
        memcpy(z + at * 8 + sizeof low, &high, sizeof high);
    }
}

#define BLOCK 64 /* bytes */

/* Told to the compiler, which copies a block by 16 bytes. */
typedef uint64_t half_block __attribute__((vector_size(BLOCK / 2)));

INLINE void copy_block(const char *from, char *to)
{
    half_block low, high;
    memcpy(&low, from, sizeof low);
    memcpy(&high, from + sizeof low, sizeof high);
    memcpy(to, &low, sizeof low);
    memcpy(to + sizeof low, &high, sizeof high);
}

/* Rows are often too short for a call; what is behind whole blocks is copied together with what
 * comes before it. */
INLINE void copy_row(const char *from, size_t bytes, char *to)
{
    if (bytes < BLOCK || bytes > 32 * BLOCK) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t i = 0; i + BLOCK < bytes; i += BLOCK)
        copy_block(from + i, to + i);
    copy_block(from + bytes - BLOCK, to + bytes - BLOCK);
}

/* The offset of the source at the first n coordinates; -1: outside. */
static int64_t source_of(const struct nearest *w, int n, const int64_t *at)
{
    int64_t offset = 0;
    for (int i = 0; i < n; i++) {
        const struct resample_table *table = &w->tables[i];
        if (table->index && table->outside[at[i]])
            return -1;
        offset += (table->index ? table->index[at[i]] : at[i]) * w->strides[i];
    }
    return offset;
}

/* Has the row the same source as the one before, of the result's rows along this axis? */
INLINE bool repeats(const struct resample_table *table, int64_t row)
{
    return table->index && table->index[row] == table->index[row - 1] && !table->outside[row];
}

/* Of the last of the axes that number the rows: rows [begin, end), from `offset` on; -1: they are
 * outside. */
VECTOR_PROCEDURE(make_rows,
                 (const struct nearest *w, int64_t offset, int64_t begin, int64_t end, char *to),
                 (w, offset, begin, end, to))
{
    static const struct resample_table same = {0};
    const struct resample_table *table = w->axes ? &w->tables[w->axes - 1] : &same;
    const int64_t stride = w->axes ? w->strides[w->axes - 1] : 0;
    const size_t bytes = (size_t)w->length * w->size;
    int64_t before = -1;
    for (int64_t row = begin; row < end; row++, to += bytes) {
        int64_t source = table->index ? table->index[row] : row;
        if (offset < 0 || (table->index && table->outside[row])) {
            for (int64_t i = 0; i < w->length; i++)
                memcpy(to + (size_t)i * w->size, w->fill, w->size);
            source = -1;
        } else if (source == before) {
            copy_row(to - bytes, bytes, to);
        } else if (w->twice && row + 1 < end && repeats(table, row + 1)) {
            write_twice(element_at(w->in, offset + source * stride), w->whole, to, to + bytes);
            to += bytes;
            row++;
        } else if (w->along) {
            make_row(w, element_at(w->in, offset + source * stride), to);
        } else {
            copy_row(element_at(w->in, offset + source * stride), bytes, to);
        }
        before = source;
    }
}

static void nearest_rows(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct nearest *w = context;
    (void)scratch;
    const int64_t rows = w->axes ? w->out->dims[w->axes - 1] : 1;
    while (begin < end) {
        int64_t at[TSSA_MAX_RANK], rest = begin / rows, first = begin % rows;
        int64_t last = rows - first < end - begin ? rows : first + end - begin;
        for (int i = w->axes - 2; i >= 0; rest /= w->out->dims[i], i--)
            at[i] = rest % w->out->dims[i];
        make_rows(w, source_of(w, w->axes - 1, at), first, last,
                  element_at(w->out, begin * w->length));
        begin += last - first;
    }
}

/* ---- Plan ------------------------------------------------------------------------------------ */

/* How often each element comes, where all come equally often; the last one's may be cut short. */
static int64_t repeats_of(const struct resample_table *table, int64_t n)
{
    int64_t times = 0;
    while (times < n && table->index[times] == 0)
        times++;
    for (int64_t i = 0, source = 0, k = 0; i < n; i++) {
        if (table->index[i] != source)
            return 0;
        if (++k == times) {
            k = 0;
            source++;
        }
    }
    return times;
}

/* Rows of fewer elements take longer to begin than to make. A table is made in each run: so many
 * planes at least are worth it, of so many elements at most. */
#define SHORT_ROW 32
#define LEAST_PLANES 8
#define MOST_OF_PLANE 4096

static bool has_short_rows(const struct nearest *work)
{
    const int64_t *dims = work->out->dims;
    return work->along && work->axes > 0 && !work->repeats && work->length < SHORT_ROW &&
           work->length * dims[work->axes - 1] <= MOST_OF_PLANE &&
           dims_product(dims, 0, work->axes - 1) >= LEAST_PLANES;
}

/* The table of a row's axis becomes that of it and the one before. */
static tssa_status *join_rows(struct kernel_args *args, struct nearest *work,
                              struct resample_table *plane, struct buffer **memory)
{
    const int axis = --work->axes;
    const struct resample_table *rows = &work->tables[axis], *along = work->along;
    const int64_t n = work->length * work->out->dims[axis], length = work->length;
    TRY(kernel_scratch(args, (size_t)n * (sizeof *plane->index + sizeof *plane->outside), memory));
    *plane = (struct resample_table){.taps = 1, .index = (*memory)->data};
    plane->outside = (bool *)(plane->index + n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = i / length, column = i % length;
        plane->index[i] =
            (rows->index ? rows->index[row] : row) * work->strides[axis] + along->index[column];
        plane->outside[i] = (rows->index && rows->outside[row]) || along->outside[column];
        work->leaves |= plane->outside[i];
    }
    work->along = plane;
    work->length = n;
    return NULL;
}

tssa_status *resize_nearest(struct kernel_args *args, const struct tensor *in,
                            const struct tensor *out, const struct resample_table *tables,
                            const void *fill)
{
    struct resample_table plane;
    struct buffer *memory = NULL;
    struct nearest work = {.in = in, .out = out, .tables = tables, .fill = fill};
    work.size = dtype_info(in->dtype)->size;
    int last = in->rank - 1;
    while (last >= 0 && !tables[last].index)
        last--;
    work.axes = last + 1;
    work.length = dims_product(out->dims, last + 1, out->rank);
    tensor_strides(in->rank, in->dims, work.strides);
    if (last >= 0 && work.length == 1) {
        work.axes = last;
        work.length = out->dims[last];
        work.along = &tables[last];
        work.repeats = repeats_of(work.along, work.length);
        work.whole = work.repeats ? work.length / work.repeats : 0;
        for (int64_t i = 0; i < work.length; i++)
            work.leaves |= work.along->outside[i];
        /* Compilers make lanes of it, one by one, where vectors are shorter. */
        work.twice = isa_level() >= ISA_V3 && work.size == 4 && work.repeats == 2 &&
                     work.whole >= TWICE && work.whole * 2 == work.length && !work.leaves;
    }
    if (has_short_rows(&work))
        TRY(join_rows(args, &work, &plane, &memory));
    tssa_status *status = parts_for(args, dims_product(out->dims, 0, work.axes), work.length * 2, 0,
                                    nearest_rows, &work);
    buffer_release(memory);
    return status;
}
