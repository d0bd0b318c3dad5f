/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/strided.h"

#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/lib/squares.h"

/* Bytes that are worth a thread of their own, and rows that one step of a parallel copy handles. */
#define GRAIN_BYTES 65536
#define BLOCK_ROWS 32
/* The same of what lies beyond a second-level cache anyway, where long jumps are the larger cost:
 * 84 rows of 8,400 floats are turned in 132 us instead of 150. */
#define LARGE_BLOCK_ROWS 64
#define LARGE_BYTES (INT64_C(1) << 21)

/* One plane: `rows` x `columns` elements; strides in bytes. */
struct plane {
    int64_t rows, columns;
    int64_t to_row, to_column, from_row, from_column;
};

/* Rows at this distance share their places in a first-level cache, as those of images often do. */
#define CACHE_PERIOD 4096
#define CACHE_LINE 64

/*
 * A square of 4 x 4 elements, as in squares.h, where vectors pay for four bytes only: of eight,
 * four are no vector of the least processor.
 */
#define SQUARE(size)                                                                               \
    static inline void square_##size(char *to, int64_t to_row, const char *from, int64_t from_row) \
    {                                                                                              \
        for (int r = 0; r < 4; r++)                                                                \
            for (int c = 0; c < 4; c++)                                                            \
                memcpy(to + r * to_row + c * (size), from + c * from_row + r * (size), size);      \
    }
SQUARE(1)
SQUARE(2)
SQUARE(8)
SQUARE(16)

/* The beginning of the next block of rows, which is read next, of one column: no hardware foresees
 * those jumps. */
static inline void prefetch_rows(const char *from, int64_t rows, size_t size)
{
    uintptr_t next = (uintptr_t)from + (uintptr_t)rows * size;
    for (size_t i = 0; i < BLOCK_ROWS * size; i += CACHE_LINE)
        __builtin_prefetch((const void *)(next + i));
}

/*
 * memcpy of a constant size is a plain load and store, and allows any alignment. At most
 * LARGE_BLOCK_ROWS rows.
 *
 * copy: any strides. Columns are walked in blocks, so that a transposing copy reads the cache lines
 * of a block of rows again while they are still near. squares: elements lie side by side in a row
 * of `to` and in a column of `from`, so that 4 x 4 of them are a few vectors. tile: the same by way
 * of a tile, for rows of `to` that would evict each other from the cache. Measured on floats, GB/s
 * of copy, squares and tile: 255 x 40 x 40 to channels last 8, 16 and 9; 64 x 224 x 224 to channels
 * last 6, 14 and 7, and back 8, 5 and 8; 1024 x 1024 5, 5 and 8.
 */
#define COPY_PLANE(size)                                                                           \
    static void copy_plane_##size(const struct plane *p, char *to, const char *from)               \
    {                                                                                              \
        for (int64_t first = 0; first < p->columns; first += BLOCK_ROWS) {                         \
            int64_t end = p->columns - first > BLOCK_ROWS ? first + BLOCK_ROWS : p->columns;       \
            for (int64_t r = 0; r < p->rows; r++) {                                                \
                char *t = to + r * p->to_row;                                                      \
                const char *f = from + r * p->from_row;                                            \
                for (int64_t c = first; c < end; c++)                                              \
                    memcpy(t + c * p->to_column, f + c * p->from_column, size);                    \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static inline void columns_##size(char *to, int64_t to_row, const char *from, int64_t step,    \
                                      int64_t rows, int64_t columns)                               \
    {                                                                                              \
        for (int64_t c = 0; c < columns; c++)                                                      \
            for (int64_t r = 0; r < rows; r++)                                                     \
                memcpy(to + r * to_row + c * (size), from + c * step + r * (size), size);          \
    }                                                                                              \
    static void squares_##size(const struct plane *p, char *to, const char *from)                  \
    {                                                                                              \
        int64_t step = p->from_column, rows = p->rows & ~3, left = p->columns;                     \
        for (; left >= 4; left -= 4, to += 4 * (size), from += 4 * step) {                         \
            for (int c = 0; c < 4; c++)                                                            \
                prefetch_rows(from + c * step, p->rows, size);                                     \
            for (int64_t r = 0; r < rows; r += 4)                                                  \
                square_##size(to + r * p->to_row, p->to_row, from + r * (size), step);             \
            columns_##size(to + rows * p->to_row, p->to_row, from + rows * (size), step,           \
                           p->rows - rows, 4);                                                     \
        }                                                                                          \
        columns_##size(to, p->to_row, from, step, p->rows, left);                                  \
    }                                                                                              \
    static void tile_##size(const struct plane *p, char *to, const char *from)                     \
    {                                                                                              \
        char tile[BLOCK_ROWS][BLOCK_ROWS * (size)];                                                \
        struct plane part = *p;                                                                    \
        part.to_row = sizeof tile[0];                                                              \
        for (int64_t first = 0; first < p->columns; first += BLOCK_ROWS) {                         \
            int64_t left = p->columns - first;                                                     \
            part.columns = left < BLOCK_ROWS ? left : BLOCK_ROWS;                                  \
            squares_##size(&part, tile[0], from + first * p->from_column);                         \
            for (int64_t r = 0; r < p->rows; r++)                                                  \
                memcpy(to + r * p->to_row + first * (size), tile[r],                               \
                       (size_t)part.columns * (size));                                             \
        }                                                                                          \
    }                                                                                              \
    static void fill_row_##size(char *to, const char *value, int64_t count)                        \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            memcpy(to + i * (size), value, size);                                                  \
    }

COPY_PLANE(1)
COPY_PLANE(2)
COPY_PLANE(4)
COPY_PLANE(8)
COPY_PLANE(16)

/* ---- Larger squares -------------------------------------------------------------------------- */

/* As squares_, by squares of n x n; what is left is squares_'s. */
#define LARGER_SQUARES(name, attribute, n, size, square)                                           \
    attribute static void name(const struct plane *p, char *to, const char *from)                  \
    {                                                                                              \
        const int64_t step = p->from_column, rows = p->rows & ~(int64_t)((n)-1);                   \
        struct plane rest = *p;                                                                    \
        for (; rest.columns >= (n); rest.columns -= (n), to += (n) * (size), from += (n)*step) {   \
            for (int c = 0; c < (n); c++)                                                          \
                prefetch_rows(from + c * step, p->rows, size);                                     \
            for (int64_t r = 0; r < rows; r += (n))                                                \
                square(to + r * p->to_row, p->to_row, from + r * (size), step);                    \
            columns_##size(to + rows * p->to_row, p->to_row, from + rows * (size), step,           \
                           p->rows - rows, n);                                                     \
        }                                                                                          \
        squares_##size(&rest, to, from);                                                           \
    }

LARGER_SQUARES(squares_of_bytes, , 16, 1, square_of_sixteen)

#ifdef VECTOR_V3
/* As squares_4, by larger squares: an eighth less time. Squares of 16 x 16, of AVX-512, are no
 * faster: memory is the limit. */
LARGER_SQUARES(squares_4_v3, VECTOR_V3, 8, 4, square_of_eight)
#endif

static void squares_of_four(const struct plane *p, char *to, const char *from)
{
#ifdef VECTOR_V3
    if (isa_level() >= ISA_V3) {
        squares_4_v3(p, to, from);
        return;
    }
#endif
    squares_4(p, to, from);
}

/* ---- Two and three rows, and every second element -------------------------------------------- */

typedef uint32_t word __attribute__((aligned(1), may_alias));

/* Rows of 2 elements of four bytes, one behind the other, as SpaceToDepth's blocks, to 2 rows. */
VECTOR_PROCEDURE(split_in_two, (const struct plane *p, char *to, const char *from), (p, to, from))
{
    const word *restrict x = (const word *)(const void *)from;
    word *restrict a = (word *)(void *)to, *restrict b = (word *)(void *)(to + p->to_row);
    for (int64_t i = 0; i < p->columns; i++) {
        a[i] = x[2 * i];
        b[i] = x[2 * i + 1];
    }
}

/* Rows of 3 of them, as the pixels of images, to 3 rows. */
VECTOR_PROCEDURE(split_in_three, (const struct plane *p, char *to, const char *from), (p, to, from))
{
    const word *restrict x = (const word *)(const void *)from;
    word *restrict a = (word *)(void *)to, *restrict b = (word *)(void *)(to + p->to_row),
                   *restrict c = (word *)(void *)(to + 2 * p->to_row);
    for (int64_t i = 0; i < p->columns; i++) {
        a[i] = x[3 * i];
        b[i] = x[3 * i + 1];
        c[i] = x[3 * i + 2];
    }
}

/* Those of any rows, as slices with a step of 2 take them. */
VECTOR_PROCEDURE(every_second, (const struct plane *p, char *to, const char *from), (p, to, from))
{
    for (int64_t r = 0; r < p->rows; r++) {
        const word *restrict x = (const word *)(const void *)(from + r * p->from_row);
        word *restrict y = (word *)(void *)(to + r * p->to_row);
        for (int64_t i = 0; i < p->columns; i++)
            y[i] = x[2 * i];
    }
}

typedef void (*plane_copy)(const struct plane *plane, char *to, const char *from);

/* What splits rows of so few elements. */
static plane_copy split_of(const struct plane *p, int64_t size)
{
    if (size != 4 || p->from_column != p->rows * size)
        return NULL;
    return p->rows == 2 ? split_in_two : p->rows == 3 ? split_in_three : NULL;
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

struct loops {
    void (*copy)(const struct plane *plane, char *to, const char *from);
    void (*squares)(const struct plane *plane, char *to, const char *from);
    void (*tile)(const struct plane *plane, char *to, const char *from);
    void (*fill)(char *to, const char *value, int64_t count);
};

#define LOOPS(size, squares)                                                                       \
    {                                                                                              \
        copy_plane_##size, squares, tile_##size, fill_row_##size                                   \
    }
static const struct loops loops_of_size[] = {[1] = LOOPS(1, squares_of_bytes),
                                             [2] = LOOPS(2, squares_2),
                                             [4] = LOOPS(4, squares_of_four),
                                             [8] = LOOPS(8, squares_8),
                                             [16] = LOOPS(16, squares_16)};

/* A copy in the form in which it is carried out; strides in bytes. */
struct job {
    size_t size;
    int rank;
    int64_t dims[STRIDED_MAX_RANK], to_strides[STRIDED_MAX_RANK], from_strides[STRIDED_MAX_RANK];
    char *to;
    const char *from;
    int64_t block_rows, blocks; /* of a plane: rows of a block, and blocks */
    const struct loops *loops;
};

static int64_t magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/*
 * Drops dims of 1, joins neighbours that are one dim in both arrays, and makes short contiguous
 * rows into larger elements. false: there is nothing to copy.
 */
static bool job_init(struct job *job, size_t size, const struct strided_box *box)
{
    int n = 0;
    job->size = size;
    for (int i = 0; i < box->rank; i++)
        if (box->dims[i] <= 0)
            return false;
    for (int i = 0; i < box->rank; i++) {
        int64_t dim = box->dims[i];
        if (dim == 1)
            continue;
        int64_t to = box->to[i] * (int64_t)size, from = box->from[i] * (int64_t)size;
        if (n > 0 && job->to_strides[n - 1] == to * dim && job->from_strides[n - 1] == from * dim) {
            n--;
            dim *= job->dims[n];
        }
        job->dims[n] = dim;
        job->to_strides[n] = to;
        job->from_strides[n] = from;
        n++;
    }
    if (n > 0 && job->to_strides[n - 1] == (int64_t)size &&
        job->from_strides[n - 1] == (int64_t)size) {
        int64_t bytes = job->dims[n - 1] * (int64_t)size;
        if (bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16) {
            job->size = (size_t)bytes;
            n--;
        }
    }
    job->rank = n;
    return true;
}

/* Makes the dim that is densest in `from` the last but one, when the last is not: a tiled
 * transpose. */
static void job_order(struct job *job)
{
    int last = job->rank - 1, densest = last;
    for (int i = 0; i <= last; i++)
        if (job->from_strides[i] != 0 && job->from_strides[densest] != 0 &&
            magnitude(job->from_strides[i]) < magnitude(job->from_strides[densest]))
            densest = i;
    if (densest >= last - 1)
        return;
    int64_t dim = job->dims[densest], to = job->to_strides[densest],
            from = job->from_strides[densest];
    for (int i = densest; i < last - 1; i++) {
        job->dims[i] = job->dims[i + 1];
        job->to_strides[i] = job->to_strides[i + 1];
        job->from_strides[i] = job->from_strides[i + 1];
    }
    job->dims[last - 1] = dim;
    job->to_strides[last - 1] = to;
    job->from_strides[last - 1] = from;
}

/* One plane, or a part of it. */
static void copy_plane(const struct job *job, const struct plane *plane, char *to, const char *from)
{
    int64_t size = (int64_t)job->size;
    const plane_copy split = split_of(plane, size);
    if (plane->to_column == size && plane->from_column == size) {
        for (int64_t r = 0; r < plane->rows; r++)
            memcpy(to + r * plane->to_row, from + r * plane->from_row,
                   (size_t)(plane->columns * size));
    } else if (plane->to_column == size && plane->from_column == 0) {
        for (int64_t r = 0; r < plane->rows; r++)
            job->loops->fill(to + r * plane->to_row, from + r * plane->from_row, plane->columns);
    } else if (plane->to_column == size && plane->from_row == size) {
        if (split) {
            split(plane, to, from);
            return;
        }
        bool evict = plane->to_row % CACHE_PERIOD == 0 && plane->rows > 1;
        (evict ? job->loops->tile : job->loops->squares)(plane, to, from);
    } else if (plane->to_column == 4 && size == 4 && plane->from_column == 8) {
        every_second(plane, to, from);
    } else {
        job->loops->copy(plane, to, from);
    }
}

/* Units [begin, end) of a job: unit u is block u % blocks of plane u / blocks. */
static void run_blocks(void *context, int64_t begin, int64_t end)
{
    const struct job *job = context;
    int outer = job->rank - 2;
    struct plane plane = {.columns = job->dims[outer + 1],
                          .to_row = job->to_strides[outer],
                          .to_column = job->to_strides[outer + 1],
                          .from_row = job->from_strides[outer],
                          .from_column = job->from_strides[outer + 1]};
    int64_t index[STRIDED_MAX_RANK], to = 0, from = 0;
    int64_t block = begin % job->blocks, rest = begin / job->blocks;
    for (int i = outer - 1; i >= 0; i--) {
        index[i] = rest % job->dims[i];
        rest /= job->dims[i];
        to += index[i] * job->to_strides[i];
        from += index[i] * job->from_strides[i];
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t row = block * job->block_rows, left = job->dims[outer] - row;
        plane.rows = left < job->block_rows ? left : job->block_rows;
        copy_plane(job, &plane, job->to + (to + row * plane.to_row),
                   job->from + (from + row * plane.from_row));
        if (++block < job->blocks)
            continue;
        block = 0;
        for (int i = outer - 1; i >= 0; i--) {
            to += job->to_strides[i];
            from += job->from_strides[i];
            if (++index[i] < job->dims[i])
                break;
            to -= index[i] * job->to_strides[i];
            from -= index[i] * job->from_strides[i];
            index[i] = 0;
        }
    }
}

/* Elements [begin, end) of a job with one dim. */
static void run_line(void *context, int64_t begin, int64_t end)
{
    const struct job *job = context;
    struct plane plane = {.rows = 1,
                          .columns = end - begin,
                          .to_column = job->to_strides[0],
                          .from_column = job->from_strides[0]};
    copy_plane(job, &plane, job->to + begin * plane.to_column,
               job->from + begin * plane.from_column);
}

/* Tiles, which are small, gain nothing by it. */
static int64_t block_rows_of(const struct job *job, int64_t elements)
{
    const bool large = elements > LARGE_BYTES / (int64_t)job->size,
               evict = job->to_strides[job->rank - 2] % CACHE_PERIOD == 0;
    return large && !evict ? LARGE_BLOCK_ROWS : BLOCK_ROWS;
}

static int64_t at_least_one(int64_t value)
{
    return value > 1 ? value : 1;
}

void strided_copy(const struct team *team, size_t size, const struct strided_box *box, void *to,
                  const void *from)
{
    struct job job;
    if (!job_init(&job, size, box))
        return;
    job.to = to;
    job.from = from;
    job.loops = &loops_of_size[job.size];
    if (job.rank == 0) {
        memcpy(to, from, job.size);
        return;
    }
    if (job.rank == 1) {
        team_for(team, job.dims[0], at_least_one(GRAIN_BYTES / (int64_t)job.size), run_line, &job);
        return;
    }
    job_order(&job);
    int64_t rows = job.dims[job.rank - 2];
    job.block_rows = block_rows_of(&job, rows * job.dims[job.rank - 1]);
    job.blocks = (rows + job.block_rows - 1) / job.block_rows;
    int64_t unit = (rows < job.block_rows ? rows : job.block_rows) * job.dims[job.rank - 1];
    int64_t units = dims_product(job.dims, 0, job.rank - 2) * job.blocks;
    team_for(team, units, at_least_one(GRAIN_BYTES / (int64_t)job.size / unit), run_blocks, &job);
}

void strided_fill(const struct team *team, size_t size, const struct strided_box *box, void *to,
                  const void *value)
{
    struct strided_box repeated = *box;
    for (int i = 0; i < box->rank; i++)
        repeated.from[i] = 0;
    strided_copy(team, size, &repeated, to, value);
}

void contiguous_copy(const struct team *team, void *to, const void *from, size_t bytes)
{
    struct strided_box box = {.rank = 1, .dims = {(int64_t)bytes}, .to = {1}, .from = {1}};
    strided_copy(team, 1, &box, to, from);
}

tssa_status *update_input(struct kernel_args *args, struct tensor **output)
{
    const struct tensor *x;
    TRY(kernel_tensor(args, 0, &x));
    if (kernel_take(args, 0, 0, output))
        return NULL;
    TRY(kernel_output(args, 0, x->dtype, x->rank, x->dims, output));
    if (*output)
        contiguous_copy(args->env->team, (*output)->data, x->data, tensor_bytes(x));
    return NULL;
}

void contiguous_fill(const struct team *team, size_t size, int64_t count, void *to,
                     const void *value)
{
    struct strided_box box = {.rank = 1, .dims = {count}, .to = {1}, .from = {0}};
    strided_copy(team, size, &box, to, value);
}

void stored_element_zero(tssa_dtype dtype, union stored_element *element)
{
    memset(element, 0, sizeof *element);
    if (dtype == TSSA_STRING)
        element->string.data = "";
}
