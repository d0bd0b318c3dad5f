/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/reduce.h"

#include <string.h>

#include "ir/ops.h"
#include "kernels/cpu/lib/convert.h"

#define LANES REDUCE_LANES
#define RADIX REDUCE_RADIX
#define CHUNK (RADIX * LANES) /* neighbours that are folded at once */
#define BLOCK 512             /* results that are computed together */
#define LEVELS 11             /* RADIX to this power is more than there are elements */
#define WIDEST 8              /* bytes of an accumulator */

#define NONE -1
#define GIVEN -2
#define SHIFT_NONE NONE
#define SHIFT_GIVEN GIVEN
#define SHIFT_Max REDUCE_Max

static const struct {
    dtype_mask types;
    int shift;         /* a row, NONE or GIVEN */
    const char *after; /* the expression */
} rows[REDUCE_ROWS] = {
#define REDUCTION(row, types, shift, identity, before, combine, after)                             \
    [REDUCE_##row] = {types, SHIFT_##shift, #after},
#include "ir/reduction.def"
#undef REDUCTION
};

tssa_dtype reduce_type(enum reduce_row row, tssa_dtype dtype)
{
    if (dtype == TSSA_DOUBLE || dtype == TSSA_UINT64)
        return dtype_in(rows[row].types, dtype) ? dtype : TSSA_DOUBLE;
    if (dtype_is_float(dtype))
        return TSSA_FLOAT;
    if (!dtype_in(rows[row].types, TSSA_INT64))
        return TSSA_DOUBLE;
    return dtype == TSSA_INT32 && !strstr(rows[row].after, "COUNT") ? TSSA_INT32 : TSSA_INT64;
}

const struct reduce_loops *reduce_loops_of(enum reduce_row row, tssa_dtype dtype)
{
    switch (dtype) {
    case TSSA_FLOAT:
        return &reduce_loops_f32[row];
    case TSSA_DOUBLE:
        return &reduce_loops_f64[row];
    case TSSA_INT32:
        return &reduce_loops_i32[row];
    case TSSA_INT64:
        return &reduce_loops_i64[row];
    case TSSA_UINT64:
        return &reduce_loops_u64[row];
    default:
        return NULL;
    }
}

/* ---- Steps, counted ------------------------------------------------------------------------------- */

/*
 * Accumulators of `n` results or lanes. Level 0 has the last steps, fewer than RADIX; level l + 1 what came from
 * level l. Levels above `top` are not there yet: to combine with an identity changes nothing.
 */
struct levels {
    const struct reduce_loops *loops;
    char *memory; /* LEVELS times n accumulators */
    int64_t n, steps;
    size_t bytes; /* of a level */
    int top;
};

static void levels_begin(struct levels *levels, const struct reduce_loops *loops, size_t width,
                         int64_t n, char *memory)
{
    *levels = (struct levels){loops, memory, n, 0, (size_t)n * width, 0};
    loops->fill(memory, n);
}

/* After RADIX steps, level 0 goes up; after RADIX times that, level 1 does. */
static void levels_carry(struct levels *levels)
{
    int64_t count = levels->steps;
    for (int level = 0; count % RADIX == 0; level++, count /= RADIX) {
        char *from = levels->memory + (size_t)level * levels->bytes, *to = from + levels->bytes;
        if (level == levels->top) {
            levels->loops->fill(to, levels->n);
            levels->top++;
        }
        levels->loops->join(to, from, levels->n);
        levels->loops->fill(from, levels->n);
    }
}

/* How many steps fit, of so many. */
static int64_t levels_room(const struct levels *levels, int64_t steps)
{
    int64_t room = RADIX - levels->steps % RADIX;
    return steps < room ? steps : room;
}

static void levels_add(struct levels *levels, int64_t steps)
{
    levels->steps += steps;
    if (levels->steps % RADIX == 0)
        levels_carry(levels);
}

/* The accumulators of all steps. */
static char *levels_end(struct levels *levels)
{
    char *at = levels->memory;
    for (int level = 0; level < levels->top; level++, at += levels->bytes)
        levels->loops->join(at + levels->bytes, at, levels->n);
    return at;
}

/* ---- Lines: the innermost axis is reduced ----------------------------------------------------------- */

/* n neighbours of the loops' type. */
static void add_line(struct levels *levels, size_t width, const char *x, int64_t n,
                     const void *shift)
{
    while (n > 0) {
        int64_t steps = levels_room(levels, (n + LANES - 1) / LANES);
        int64_t taken = steps * LANES < n ? steps * LANES : n;
        levels->loops->fold(levels->memory, x, taken, shift);
        levels_add(levels, steps);
        x += (size_t)taken * width;
        n -= taken;
    }
}

void reduce_lines(enum reduce_row row, tssa_dtype dtype, void *out, const void *x, int64_t stride,
                  int64_t lines, int64_t n, const void *shift)
{
    const struct reduce_loops *loops = reduce_loops_of(row, dtype);
    size_t width = tssa_dtype_size(dtype);
    if (n <= CHUNK)
        loops->lines(out, x, stride, lines, n, shift);
    for (int64_t i = 0; n > CHUNK && i < lines; i++) {
        _Alignas(64) char memory[LEVELS * LANES * WIDEST];
        struct levels levels;
        levels_begin(&levels, loops, width, LANES, memory);
        add_line(&levels, width, (const char *)x + i * stride * (int64_t)width, n,
                 shift ? (const char *)shift + (size_t)i * width : NULL);
        char *lanes = levels_end(&levels);
        loops->halve(lanes);
        memcpy((char *)out + (size_t)i * width, lanes, width);
    }
    loops->finish(out, lines, n, shift);
}

/* ---- Tensors --------------------------------------------------------------------------------------- */

struct reduce {
    enum reduce_row row;
    const struct tensor *in;
    struct tensor *out;
    const struct axis_nest *kept, *reduced;
    const char *shift;      /* given, per result */
    tssa_dtype dtype;       /* of accumulators */
    size_t width, in_width; /* bytes */
};

static const char *element(const struct reduce *r, int64_t offset)
{
    return (const char *)r->in->data + (size_t)offset * r->in_width;
}

/* n neighbours from `offset` on in the accumulators' type; in `buffer` where that is not the tensor's. */
static const void *neighbours(const struct reduce *r, int64_t offset, int64_t n, void *buffer)
{
    if (r->in->dtype == r->dtype)
        return element(r, offset);
    convert_elements(n, r->in->dtype, element(r, offset), 1, r->dtype, buffer, 1, &convert_default);
    return buffer;
}

/* One result, whose runs of neighbours are innermost. */
static void fold_runs(const struct reduce *r, const struct reduce_loops *loops, int64_t offset,
                      const void *shift, void *result)
{
    _Alignas(64) char memory[LEVELS * LANES * WIDEST], buffer[CHUNK * WIDEST];
    struct levels levels;
    int64_t run = r->reduced->sizes[r->reduced->rank - 1];
    levels_begin(&levels, loops, r->width, LANES, memory);
    for (int64_t i = 0; i < r->reduced->count; i += run) {
        int64_t from = offset + axis_nest_offset(r->reduced, i);
        for (int64_t done = 0; done < run; done += CHUNK) {
            int64_t n = run - done < CHUNK ? run - done : CHUNK;
            add_line(&levels, r->width, neighbours(r, from + done, n, buffer), n, shift);
        }
    }
    char *lanes = levels_end(&levels);
    loops->halve(lanes);
    memcpy(result, lanes, r->width);
}

/* n results whose lines begin `stride` apart. */
static void fold_lines(const struct reduce *r, const struct reduce_loops *loops, int64_t offset,
                       int64_t stride, int64_t n, const char *shift, char *results)
{
    if (r->in->dtype == r->dtype && r->reduced->rank == 1 && r->reduced->count <= CHUNK) {
        loops->lines(results, element(r, offset), stride, n, r->reduced->count, shift);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        fold_runs(r, loops, offset + i * stride, shift ? shift + (size_t)i * r->width : NULL,
                  results + (size_t)i * r->width);
}

/* n results that lie side by side, as their elements do. */
static void fold_rows(const struct reduce *r, const struct reduce_loops *loops, int64_t offset,
                      int64_t n, const void *shift, void *results)
{
    _Alignas(64) char memory[LEVELS * BLOCK * WIDEST], buffer[BLOCK * WIDEST];
    const struct axis_nest *reduced = r->reduced;
    int64_t run = reduced->rank ? reduced->sizes[reduced->rank - 1] : 1;
    int64_t stride = reduced->rank ? reduced->strides[reduced->rank - 1] : 0;
    bool converts = r->in->dtype != r->dtype;
    struct levels levels;
    levels_begin(&levels, loops, r->width, n, memory);
    for (int64_t i = 0; i < reduced->count;) {
        int64_t count = converts ? 1 : levels_room(&levels, run - i % run);
        const void *x = neighbours(r, offset + axis_nest_offset(reduced, i), n, buffer);
        loops->rows(memory, x, stride, count, n, shift);
        levels_add(&levels, count);
        i += count;
    }
    memcpy(results, levels_end(&levels), (size_t)n * r->width);
}

/* At most BLOCK results of a run of kept neighbours. */
static void fold_block(const struct reduce *r, enum reduce_row row, int64_t first, int64_t n,
                       const void *shift, void *results)
{
    const struct reduce_loops *loops = reduce_loops_of(row, r->dtype);
    int last = r->kept->rank - 1;
    int64_t offset = axis_nest_offset(r->kept, first);
    int64_t stride = last >= 0 ? r->kept->strides[last] : 0;
    if (r->reduced->count == 0)
        loops->fill(results, n);
    else if (r->reduced->rank && r->reduced->strides[r->reduced->rank - 1] == 1)
        fold_lines(r, loops, offset, stride, n, shift, results);
    else
        fold_rows(r, loops, offset, n, shift, results);
    loops->finish(results, n, r->reduced->count, shift);
}

static void reduce_range(void *context, int64_t begin, int64_t end)
{
    const struct reduce *r = context;
    _Alignas(64) char results[BLOCK * WIDEST], shifts[BLOCK * WIDEST];
    int64_t run = r->kept->rank ? r->kept->sizes[r->kept->rank - 1] : 1;
    size_t out_width = tssa_dtype_size(r->out->dtype);
    for (int64_t i = begin, n; i < end; i += n) {
        n = run - i % run < end - i ? run - i % run : end - i;
        n = n < BLOCK ? n : BLOCK;
        const void *shift = r->shift ? r->shift + (size_t)i * r->width : NULL;
        if (rows[r->row].shift >= 0) {
            fold_block(r, (enum reduce_row)rows[r->row].shift, i, n, NULL, shifts);
            shift = shifts;
        }
        fold_block(r, r->row, i, n, shift, results);
        convert_elements(n, r->dtype, results, 1, r->out->dtype,
                         (char *)r->out->data + (size_t)i * out_width, 1, &convert_default);
    }
}

/* How many results, of so many elements each, are enough for a thread. */
static int64_t grain_of(int64_t reduced)
{
    int64_t grain = 32768 / (reduced > 0 ? reduced : 1);
    return grain > 0 ? grain : 1;
}

void reduce_tensor(const struct team *team, enum reduce_row row, const struct tensor *in,
                   const struct axis_nest *kept, const struct axis_nest *reduced, const void *shift,
                   struct tensor *out)
{
    tssa_dtype dtype = reduce_type(row, in->dtype);
    struct reduce r = {.row = row,
                       .in = in,
                       .out = out,
                       .kept = kept,
                       .reduced = reduced,
                       .shift = shift,
                       .dtype = dtype,
                       .width = tssa_dtype_size(dtype),
                       .in_width = tssa_dtype_size(in->dtype)};
    team_for(team, kept->count, grain_of(reduced->count), reduce_range, &r);
}
