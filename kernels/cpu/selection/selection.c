/* SPDX-License-Identifier: Apache-2.0 */
/* Compress-11 and NonZero-13 of ai.onnx. */
#include <string.h>

#include "base/clones.h"
#include "device/kernel.h"
#include "kernels/cpu/lib/keep.h"
#include "kernels/cpu/lib/strided.h"

/* ---- Elements that are not zero -------------------------------------------------------------- */

/* Elements that are looked at together. */
#define BLOCK 64

/*
 * count_NAME: how many elements are not zero. mark_NAME: a byte for each, which is zero where that
 * is. `of` makes a `small` of an element, which is zero where that is; vectors of the machine hold
 * many of them.
 */
#define FIND(name, type, small, of)                                                                \
    VECTOR_FUNCTION(int64_t, count_##name, (const void *data, int64_t count, uint64_t bits),       \
                    (data, count, bits))                                                           \
    {                                                                                              \
        const type *x = data;                                                                      \
        int64_t found = 0, i = 0;                                                                  \
        const small mask = (small)bits;                                                            \
        while (count - i >= BLOCK) {                                                               \
            small counts[BLOCK] = {0};                                                             \
            for (int k = 0; k < UINT8_MAX && count - i >= BLOCK; k++, i += BLOCK, x += BLOCK)      \
                for (int at = 0; at < BLOCK; at++)                                                 \
                    counts[at] += of(x[at]) != 0;                                                  \
            for (int at = 0; at < BLOCK; at++)                                                     \
                found += counts[at];                                                               \
        }                                                                                          \
        for (; i < count; i++, x++)                                                                \
            found += of(*x) != 0;                                                                  \
        return found;                                                                              \
    }                                                                                              \
    VECTOR_PROCEDURE(mark_##name,                                                                  \
                     (const void *data, int64_t count, uint64_t bits, uint8_t *restrict marks),    \
                     (data, count, bits, marks))                                                   \
    {                                                                                              \
        const type *x = data;                                                                      \
        const small mask = (small)bits;                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            marks[i] = of(x[i]) != 0;                                                              \
    }

struct words {
    uint64_t a, b;
};

#define BITS(x) ((x)&mask)
#define BITS_OF_BOTH(x) (((x).a | (x).b) & mask)
#define BYTES(x) ((x).size & mask)
FIND(2, uint16_t, uint16_t, BITS)
FIND(4, uint32_t, uint32_t, BITS)
FIND(8, uint64_t, uint64_t, BITS)
FIND(16, struct words, uint64_t, BITS_OF_BOTH)
FIND(string, tssa_string, uint64_t, BYTES)

/* Of bytes all of which counts: they are marks. */
static int64_t count_1(const void *data, int64_t count, uint64_t bits)
{
    (void)bits;
    return keep_count(data, count);
}

struct finder {
    int64_t (*count)(const void *data, int64_t count, uint64_t bits);
    void (*mark)(const void *data, int64_t count, uint64_t bits, uint8_t *marks); /* or NULL */
};

static const struct finder finders[] = {{count_1, NULL},     {count_2, mark_2},
                                        {count_4, mark_4},   {count_8, mark_8},
                                        {count_16, mark_16}, {count_string, mark_string}};

static const struct finder *finder_of(tssa_dtype dtype)
{
    if (dtype == TSSA_STRING)
        return &finders[5];
    return &finders[__builtin_ctzll(dtype_info(dtype)->size)];
}

/* Numbers are made together, each of which knows how many there are in those before it: returns how
 * many there are in all n, which is the last entry then. */
static int64_t add_up(int64_t *found, int64_t n)
{
    int64_t sum = 0;
    for (int64_t c = 0; c < n; c++) {
        int64_t here = found[c];
        found[c] = sum;
        sum += here;
    }
    return found[n] = sum;
}

/* ---- Compress -------------------------------------------------------------------------------- */

struct compress {
    bool flat; /* no axis: select elements of the flattened operand */
    int64_t axis;
};

static tssa_status *compress_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                     const void **state)
{
    struct compress *compress = ARENA_NEW(setup->arena, struct compress);
    TRY_ALLOC(compress);
    compress->flat = !ir_attr(op, "axis");
    compress->axis = ir_op_axis(op);
    *state = compress;
    return NULL;
}

/* Rows are kept in chunks, each of which knows how many are in those before it. */
struct keep {
    const uint8_t *mask;
    int64_t n;        /* entries of the mask, none of them behind the axis */
    int64_t chunk;    /* entries of each but the last */
    int64_t n_chunks; /* of the mask; there are as many for each row of what is before the axis */
    int64_t *kept;    /* per chunk, and one more */
    const char *from;
    char *to;
    size_t block;  /* bytes of a row */
    int64_t limit; /* rows along the axis */
};

static int64_t keep_length(const struct keep *job, int64_t chunk)
{
    const int64_t rest = job->n - chunk * job->chunk;
    return rest < job->chunk ? rest : job->chunk;
}

static void count_kept(void *context, int64_t begin, int64_t end)
{
    const struct keep *job = context;
    for (int64_t c = begin; c < end; c++)
        job->kept[c] = keep_count(job->mask + c * job->chunk, keep_length(job, c));
}

static void keep_chunks(void *context, int64_t begin, int64_t end)
{
    const struct keep *job = context;
    const int64_t all = job->kept[job->n_chunks];
    for (int64_t i = begin; i < end; i++) {
        const int64_t outer = i / job->n_chunks, c = i % job->n_chunks, first = c * job->chunk;
        const char *from = job->from + (size_t)(outer * job->limit + first) * job->block;
        char *to = job->to + (size_t)(outer * all + job->kept[c]) * job->block;
        keep_rows(job->mask + first, keep_length(job, c), from, job->block, to,
                  job->kept[c + 1] - job->kept[c]);
    }
}

/* Behind the axis nothing is true. */
static tssa_status *check_rest(const struct tensor *condition, int64_t limit)
{
    const uint8_t *mask = condition->data;
    for (int64_t i = condition->dims[0]; i > limit; i--)
        if (mask[i - 1])
            return ERROR(TSSA_RUNTIME, "condition is true for number %lld of %lld",
                         (long long)i - 1, (long long)limit);
    return NULL;
}

#define FEW 8 /* chunks, and one more, that need no scratch memory */

/* Bytes of rows that a thread is started for. */
#define KEEP_GRAIN 262144

/* Where rows are: all but the mask and what is kept of it. */
static tssa_status *compress_shape(const struct kernel_args *args, const struct compress *compress,
                                   struct keep *job, int *rank, int64_t *dims, int *axis)
{
    const struct tensor *x;
    TRY(kernel_tensor(args, 0, &x));
    *axis = 0;
    *rank = 1;
    job->from = x->data;
    job->block = dtype_info(x->dtype)->size;
    job->limit = (int64_t)tensor_count(x);
    if (compress->flat)
        return NULL;
    TRY(kernel_axis(compress->axis, x->rank, axis));
    *rank = x->rank;
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    job->block *= (size_t)dims_product(x->dims, *axis + 1, x->rank);
    job->limit = x->dims[*axis];
    return NULL;
}

static tssa_status *compress_chunks(struct kernel_args *args, struct keep *job, int rank,
                                    int64_t *dims, int axis)
{
    struct tensor *y;
    team_for(args->env->team, job->n_chunks, 2, count_kept, job);
    dims[axis] = add_up(job->kept, job->n_chunks);
    TRY(kernel_output(args, 0, args->inputs[0]->tensor.dtype, rank, dims, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    job->to = y->data;
    const int64_t grain = KEEP_GRAIN / (job->chunk * (int64_t)job->block) + 1;
    team_for(args->env->team, dims_product(dims, 0, axis) * job->n_chunks, grain, keep_chunks, job);
    return NULL;
}

static tssa_status *compress_run(struct kernel_args *args)
{
    struct keep job;
    const struct tensor *condition;
    struct buffer *kept;
    int64_t dims[TSSA_MAX_RANK], few[FEW];
    int axis, rank;
    TRY(kernel_tensor(args, 1, &condition));
    TRY(compress_shape(args, args->state, &job, &rank, dims, &axis));
    if (condition->dtype != TSSA_BOOL || condition->rank != 1)
        return ERROR(TSSA_RUNTIME, "condition must be a list of bool");
    TRY(check_rest(condition, job.limit));
    job.mask = condition->data;
    job.n = condition->dims[0] < job.limit ? condition->dims[0] : job.limit;
    /* as many as a thread is started for, or fewer, whole words of the mask */
    job.chunk = job.block + 8 > KEEP_GRAIN / BLOCK
                    ? BLOCK
                    : KEEP_GRAIN / (int64_t)(job.block + 8) / BLOCK * BLOCK;
    job.n_chunks = (job.n + job.chunk - 1) / job.chunk;
    if (job.n_chunks < FEW) { /* most masks */
        job.kept = few;
        return compress_chunks(args, &job, rank, dims, axis);
    }
    TRY(kernel_scratch(args, (size_t)(job.n_chunks + 1) * sizeof *job.kept, &kept));
    job.kept = kept->data;
    tssa_status *status = compress_chunks(args, &job, rank, dims, axis);
    buffer_release(kept);
    return status;
}

const struct kernel cpu_kernel_compress = {.prepare = compress_prepare, .run = compress_run};

/* ---- NonZero --------------------------------------------------------------------------------- */

/* Elements are looked at in chunks, each of which knows how many were found in those before it. */
#define CHUNK 32768
#define MARKS 1024 /* elements of more than a byte that are marked before they are numbered */

struct non_zero {
    const struct tensor *x;
    const struct finder *finder;
    uint64_t bits;
    int64_t count; /* elements */
    int64_t
        *found;    /* per chunk: in those before it, once all are counted; the last entry: in all */
    int64_t *rows; /* the result: a row for each axis */
};

static int64_t chunk_length(const struct non_zero *job, int64_t chunk)
{
    int64_t rest = job->count - chunk * CHUNK;
    return rest < CHUNK ? rest : CHUNK;
}

static const void *chunk_data(const struct non_zero *job, int64_t chunk)
{
    return (const char *)job->x->data + (size_t)(chunk * CHUNK) * dtype_info(job->x->dtype)->size;
}

static void count_chunks(void *context, int64_t begin, int64_t end)
{
    const struct non_zero *job = context;
    for (int64_t c = begin; c < end; c++)
        job->found[c] = job->finder->count(chunk_data(job, c), chunk_length(job, c), job->bits);
}

/* The numbers, from `first` on, of those of n elements that are not zero; the room is for as many
 * as are to come. */
static int64_t find(const struct non_zero *job, int64_t element, int64_t n, int64_t first,
                    int64_t *to, int64_t room)
{
    const char *x = (const char *)job->x->data + (size_t)element * dtype_info(job->x->dtype)->size;
    uint8_t marks[MARKS];
    int64_t found = 0;
    if (!job->finder->mark)
        return keep_numbers((const uint8_t *)x, n, first, to, room);
    for (int64_t i = 0; i < n && found < room; i += MARKS) {
        const int64_t count = n - i < MARKS ? n - i : MARKS;
        job->finder->mark(x + (size_t)i * dtype_info(job->x->dtype)->size, count, job->bits, marks);
        found += keep_numbers(marks, count, first + i, to + found, room - found);
    }
    return found;
}

/*
 * Numbers of one chunk, of which the first one is `column` of its line, become which line it is, of
 * those of the chunk, and where in it: quotients and rests, in place. A number is below 2 * CHUNK
 * then, or lines are longer than that, so that it is of the first or the second one; a quotient is
 * a product with 2^SHIFT / length, rounded up, which is exact for such numbers.
 */
#define SHIFT 40
VECTOR_PROCEDURE(split,
                 (int64_t *restrict numbers, int64_t *restrict lines, int64_t n, int64_t column,
                  int64_t length),
                 (numbers, lines, n, column, length))
{
    const uint64_t inverse = ((UINT64_C(1) << SHIFT) - 1) / (uint64_t)length + 1;
    for (int64_t i = 0; i < n && length > CHUNK; i++) {
        const int64_t number = numbers[i] + column, line = number >= length;
        lines[i] = line;
        numbers[i] = number - line * length;
    }
    for (int64_t i = 0; i < n && length <= CHUNK; i++) {
        const uint64_t number = (uint64_t)(numbers[i] + column), line = number * inverse >> SHIFT;
        lines[i] = (int64_t)line;
        numbers[i] = (int64_t)(number - line * (uint64_t)length);
    }
}

/* Entries [begin, end) of the last row are numbers from `first` on: takes them apart into
 * coordinates. */
static void split_numbers(const struct non_zero *job, int64_t first, int64_t begin, int64_t end,
                          int64_t found)
{
    int64_t *row = job->rows + (job->x->rank - 1) * found;
    for (int d = job->x->rank - 1; d > 0; d--, row -= found) {
        const int64_t length = job->x->dims[d];
        split(row + begin, row - found + begin, end - begin, first % length, length);
        first /= length;
    }
    for (int64_t i = begin; i < end; i++)
        row[i] += first;
}

static void find_chunks(void *context, int64_t begin, int64_t end)
{
    const struct non_zero *job = context;
    const int64_t n_chunks = (job->count + CHUNK - 1) / CHUNK, found = job->found[n_chunks];
    const int last = job->x->rank - 1;
    for (int64_t c = begin; c < end; c++) {
        const int64_t to = job->found[c], next = job->found[c + 1], first = c * CHUNK;
        find(job, first, chunk_length(job, c), last ? 0 : first, job->rows + last * found + to,
             next - to);
        if (last)
            split_numbers(job, first, to, next, found);
    }
}

static tssa_status *find_non_zero(struct kernel_args *args, struct non_zero *job)
{
    struct tensor *y;
    int64_t n_chunks = (job->count + CHUNK - 1) / CHUNK;
    team_for(args->env->team, n_chunks, 2, count_chunks, job);
    int64_t found = add_up(job->found, n_chunks);
    /* A scalar has no coordinates: unlike numpy's, the result is [0, 1] or [0, 0]. */
    TRY(kernel_output(args, 0, TSSA_INT64, 2, (const int64_t[]){job->x->rank, found}, &y));
    if (!y || tensor_count(y) == 0)
        return NULL;
    job->rows = y->data;
    team_for(args->env->team, n_chunks, 2, find_chunks, job);
    return NULL;
}

static tssa_status *non_zero_run(struct kernel_args *args)
{
    struct non_zero job = {0};
    struct buffer *found;
    TRY(kernel_tensor(args, 0, &job.x));
    job.bits = dtype_value_bits(job.x->dtype);
    if (job.bits == 0)
        return ERROR(TSSA_UNSUPPORTED, "%s has no zero test", dtype_info(job.x->dtype)->ir_name);
    job.finder = finder_of(job.x->dtype);
    job.count = (int64_t)tensor_count(job.x);
    TRY(kernel_scratch(args, (size_t)(job.count / CHUNK + 2) * sizeof *job.found, &found));
    job.found = found->data;
    tssa_status *status = find_non_zero(args, &job);
    buffer_release(found);
    return status;
}

const struct kernel cpu_kernel_non_zero = {.run = non_zero_run};
